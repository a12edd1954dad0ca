"""One guarded connection to an OpenAI-compatible endpoint.

Wraps the `openai` client with what it leaves open: the address that was judged is the one
connected to, redirects end the call, retries are bounded in total time and not only in number,
replies in size, and every failure becomes one of memcore's errors that says the cause and what to
do. The key appears in no message.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from memcore.endpoints import guard
from memcore.errors import (
    EndpointError,
    EndpointRefused,
    EndpointReply,
    EndpointTimeout,
    MemcoreError,
)
from memcore.secrets import Secret
from memcore.text import shorten

if TYPE_CHECKING:
    import openai

_T = TypeVar("_T")

_AT_ONCE = 4
_RETRIED = (408, 409, 425, 429)


class Client:
    """An endpoint that can be asked from several threads; at most four calls run at a time, so
    reruns of a page cannot pile calls up on a server that hangs.

    `timeout`: seconds for one try, from looking up the name to the reply's last byte; `budget`:
    seconds for a call with all its tries and waits; `retries`: tries after the first.
    """

    def __init__(
        self,
        base_url: str,
        key: Secret | None,
        *,
        timeout: float = 10.0,
        budget: float = 15.0,
        retries: int = 2,
        allowed: frozenset[str] | None = None,
    ) -> None:
        self.url = guard.base_url(base_url)
        self._key = key
        self._timeout = timeout
        self._budget = budget
        self._retries = retries
        self._allowed = allowed
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._opening = threading.Lock()
        self._opened: openai.OpenAI | None = None

    def __repr__(self) -> str:
        return f"<endpoint {self.url}, key {self._key!r}>"

    def ask(self, call: Callable[[openai.OpenAI], _T], *, budget: float | None = None) -> _T:
        """`call(client)`, tried again on 408, 429, 5xx and lost connections while `budget`
        lasts. Raises ConfigError (address refused), EndpointRefused, EndpointTimeout,
        EndpointReply, EndpointError."""
        deadline = time.monotonic() + (budget or self._budget)
        if not self._turns.acquire(timeout=budget or self._budget):
            raise EndpointTimeout(
                f"{self.url} is still busy with {_AT_ONCE} earlier calls.",
                hint="Wait for them to end, or check that the server answers.",
            )
        try:
            return self._tried(call, deadline)
        finally:
            self._turns.release()

    def _tried(self, call: Callable[[openai.OpenAI], _T], deadline: float) -> _T:
        client = self._client()
        for attempt in range(self._retries + 1):
            given = max(0.1, min(self._timeout, deadline - time.monotonic()))
            try:
                return call(client.with_options(timeout=given))
            except MemcoreError:
                raise
            except Exception as error:
                failure, again = self._explained(error, given)
                wait = _wait(error, attempt)
                if not again or attempt == self._retries:
                    raise failure from None
                if time.monotonic() + wait >= deadline:
                    raise failure from None
                time.sleep(wait)
        raise AssertionError("unreachable")

    def close(self) -> None:
        with self._opening:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _client(self) -> openai.OpenAI:
        import httpx2
        import openai

        from memcore.endpoints.transport import Pinned

        unnamed: Any = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        with self._opening:
            if self._opened is None:
                self._opened = openai.OpenAI(
                    api_key=self._key.reveal() if self._key else "none",
                    base_url=str(self.url),
                    # Accounts that the environment names are not this endpoint's business.
                    default_headers=unnamed,
                    max_retries=0,
                    http_client=httpx2.Client(
                        transport=Pinned(self.url, self._allowed),
                        follow_redirects=False,
                        trust_env=False,
                    ),
                )
            return self._opened

    def _explained(self, error: Exception, given: float) -> tuple[MemcoreError, bool]:
        """What went wrong within the `given` seconds, in memcore's words, and whether another try
        may help."""
        import openai

        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, MemcoreError):
                return cause, False
            cause = cause.__cause__
        if isinstance(error, openai.APITimeoutError):
            return EndpointTimeout(
                f"{self.url} did not answer within {given:.2g} s.",
                hint="Check that the server is up and not overloaded, then try again.",
            ), True
        if isinstance(error, openai.APIStatusError):
            return self._status(error)
        if isinstance(error, openai.APIConnectionError):
            return EndpointError(
                f"{self.url} cannot be reached: {self._safe(str(error.__cause__ or error))}.",
                hint="Check that the server is up and the base URL's host and port are right.",
            ), True
        if isinstance(error, (openai.APIError, ValueError, TypeError, AttributeError, KeyError)):
            return EndpointReply(
                f"{self.url} answered something that is not OpenAI's format.",
                hint="Check the base URL: it should end where /embeddings or /chat begins.",
            ), False
        raise error

    def _status(self, error: openai.APIStatusError) -> tuple[MemcoreError, bool]:
        status = error.status_code
        said = self._said(error)
        if 300 <= status < 400:
            return EndpointRefused(
                f"{self.url} redirects elsewhere ({status}), which is not followed.",
                hint="If you trust the new address, enter it as base URL.",
            ), False
        if status == 401:
            return EndpointRefused(
                f"{self.url} refused the key {self._key!r} (401).", hint="Enter a valid API key."
            ), False
        if status == 403:
            return EndpointRefused(
                f"{self.url} does not allow this (403){said}.",
                hint="Check that the key may use this model.",
            ), False
        if status == 404:
            return EndpointRefused(
                f"{self.url} knows no such model or path (404){said}.",
                hint="Check the model's name and the base URL.",
            ), False
        if status == 429:
            spent = getattr(error, "code", None) == "insufficient_quota"
            return EndpointRefused(
                f"{self.url} {'has no quota left' if spent else 'asks to slow down'} (429){said}.",
                hint="Top up the account." if spent else "Try again in a minute.",
            ), not spent
        if status >= 500 or status in _RETRIED:
            return EndpointError(
                f"{self.url} failed ({status}){said}.",
                hint="Try again; look at its log if it stays.",
            ), True
        return EndpointRefused(
            f"{self.url} refused the request ({status}){said}.",
            hint="Check the model's name and its options.",
        ), False

    def _said(self, error: openai.APIStatusError) -> str:
        body = error.body
        if isinstance(body, dict):
            body = body.get("message") or body.get("error") or body.get("detail")
        return f": {self._safe(body)}" if isinstance(body, str) and body else ""

    def _safe(self, text: str) -> str:
        if self._key:
            text = text.replace(self._key.reveal(), repr(self._key))
        # Servers echo part of a key they refuse.
        text = re.sub(r"\b(sk|key|Bearer)[-_ ][\w*.-]{6,}", "••••", text)
        return shorten(text, 160).rstrip(".")


def _wait(error: Exception, attempt: int) -> float:
    """Seconds before the next try: what the server asks for, else 0.5 s doubling, with jitter."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    try:
        asked = float(headers.get("retry-after", "nan"))
    except ValueError:
        asked = float("nan")
    if 0 <= asked <= 3600:
        return asked
    return float(0.5 * 2**attempt * (0.75 + random.random() / 2))
