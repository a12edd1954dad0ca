"""A model endpoint on this machine that speaks real HTTP and takes nothing that OpenAI's own
would not: what `memcore` sends is checked here, not in a mock.

    with Loopback() as server:
        server.base_url, server.requests, server.host
        server.say('[{"type": "fact", …}]')      # the next chat reply's content
        server.next(Reply(429, headers={"Retry-After": "0"}))   # before the normal replies

Vectors are those of HashEmbedder(server.dimensions).
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from memcore.embeddings.hashing import HashEmbedder

KEY = "sk-loopback-0123456789abcdef"


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    """What to answer instead of the normal reply. `change` edits the normal one; `raw` sends
    bytes as they are; `delay` seconds pass before, `drip` seconds between single bytes of the body,
    `slow` between those of the whole answer, status line first."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    change: Callable[[dict[str, Any]], Any] | None = None
    raw: bytes | None = None
    delay: float = 0.0
    drip: float = 0.0
    slow: float = 0.0
    hang_up: bool = False


class _Slow:
    """Writes a byte at a time."""

    def __init__(self, inner: Any, seconds: float, stopping: threading.Event) -> None:
        self._inner = inner
        self._seconds = seconds
        self._stopping = stopping

    def write(self, data: bytes) -> int:
        for i in range(len(data)):
            self._inner.write(data[i : i + 1])
            self._inner.flush()
            if self._stopping.wait(self._seconds):
                break
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Loopback:
    """`models`: names that exist. `takes_dimensions`: whether that parameter is known."""

    def __init__(
        self,
        *,
        dimensions: int = 64,
        models: tuple[str, ...] = ("loop-embed", "loop-chat"),
        takes_dimensions: bool = False,
        key: str | None = KEY,
    ) -> None:
        self.dimensions = dimensions
        self.models = models
        self.takes_dimensions = takes_dimensions
        self.key = key
        self.requests: list[Asked] = []
        self._next: deque[Reply] = deque()
        self._chat: deque[dict[str, Any]] = deque()
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def __enter__(self) -> Loopback:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                outer._answer(self)

            do_GET = do_POST

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a client that gave up is part of the test

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.port = self._server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        self.base_url = f"http://{self.host}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def next(self, *replies: Reply) -> None:
        self._next.extend(replies)

    def say(self, content: str | None, *, finish_reason: str = "stop", **message: Any) -> None:
        """The next chat completion: its text, or other fields of its message."""
        self._chat.append(
            {
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish_reason,
            }
        )

    def asked(self, path: str) -> list[Asked]:
        return [request for request in self.requests if request.path == path]

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        raw = handler.rfile.read(length)
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            self.requests.append(Asked(handler.command, handler.path, headers, body))
            special = self._next.popleft() if self._next else Reply()
        if special.delay:
            self._stopping.wait(special.delay)
        if special.hang_up:
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        if special.status == 200 and special.raw is None and special.body is None:
            status, answer = self._normal(handler.command, handler.path, headers, body)
            if special.change is not None and status == 200:
                answer = special.change(answer)
        else:
            status, answer = special.status, special.body
        if special.slow:
            handler.wfile = cast(Any, _Slow(handler.wfile, special.slow, self._stopping))
        payload = special.raw if special.raw is not None else json.dumps(answer).encode()
        handler.send_response(status)
        sent = {"Content-Type": "application/json", **special.headers}
        for name, value in sent.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(payload)))
        handler.end_headers()
        if special.drip:
            for i in range(len(payload)):
                handler.wfile.write(payload[i : i + 1])
                handler.wfile.flush()
                if self._stopping.wait(special.drip):
                    return
        else:
            handler.wfile.write(payload)

    def _normal(
        self, method: str, path: str, headers: dict[str, str], body: Any
    ) -> tuple[int, dict[str, Any]]:
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            return _error(401, "Incorrect API key provided.", "invalid_api_key")
        if method == "GET" and path == "/v1/models":
            return 200, {"object": "list", "data": [{"id": m} for m in self.models]}
        if method != "POST" or path not in ("/v1/embeddings", "/v1/chat/completions"):
            return _error(404, f"Unknown request URL: {method} {path}.")
        if headers.get("content-type") != "application/json" or not isinstance(body, dict):
            return _error(400, "We could not parse the JSON body of your request.")
        if body.get("model") not in self.models:
            return _error(404, f"The model `{body.get('model')}` does not exist.")
        return self._embed(body) if path == "/v1/embeddings" else self._complete(body)

    def _embed(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        known = {"input", "model", "encoding_format", "user"}
        if self.takes_dimensions:
            known.add("dimensions")
        for name in body:
            if name not in known:
                return _error(400, f"Unrecognized request argument supplied: {name}")
        texts = body.get("input")
        if not isinstance(texts, list) or not 1 <= len(texts) <= 2048:
            return _error(400, "'input' must be an array of 1 to 2048 strings.")
        if not all(isinstance(text, str) and text for text in texts):
            return _error(400, "'input' may not hold an empty string.")
        if body.get("encoding_format") != "float":
            return _error(400, "This server answers floats only; ask for them.")
        vectors = HashEmbedder(body.get("dimensions", self.dimensions)).embed_documents(texts)
        return 200, {
            "object": "list",
            "model": body["model"],
            "data": [
                {"object": "embedding", "index": i, "embedding": [float(x) for x in row]}
                for i, row in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)},
        }

    def _complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            return _error(400, "'messages' must be a non-empty array.")
        for message in messages:
            if message.get("role") not in ("system", "developer", "user", "assistant", "tool"):
                return _error(400, f"Invalid role {message.get('role')!r}.")
            if not isinstance(message.get("content"), str):
                return _error(400, "Each message needs content.")
        with self._lock:
            choice = (
                self._chat.popleft()
                if self._chat
                else {
                    "message": {"role": "assistant", "content": "[]"},
                    "finish_reason": "stop",
                }
            )
        return 200, {
            "id": f"chatcmpl-{len(self.requests)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body["model"],
            "choices": [{"index": 0, **choice}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
        }


def _error(status: int, message: str, code: str | None = None) -> tuple[int, dict[str, Any]]:
    return status, {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    }
