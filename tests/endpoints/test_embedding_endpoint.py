"""Embedding over real HTTP, with a server that answers well, badly, late or not at all."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from memcore.embeddings.openai import EndpointEmbedder
from memcore.endpoints.client import Client
from memcore.errors import (
    ConfigError,
    EndpointError,
    EndpointRefused,
    EndpointReply,
    EndpointTimeout,
    MemcoreError,
)
from memcore.secrets import Secret
from tests.loopback import KEY, Loopback, Reply

_opened: list[Client] = []


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


def client_of(server: Loopback, **options: Any) -> Client:
    options = {"allowed": frozenset({server.host}), "timeout": 2.0, "budget": 4.0} | options
    key = options.pop("key", KEY)
    client = Client(options.pop("url", server.base_url), Secret(key), **options)
    _opened.append(client)
    return client


def embedder_of(server: Loopback, dimensions: int | None = 64, **options: Any) -> EndpointEmbedder:
    mine = {k: options.pop(k) for k in ("model", "send_dimensions") if k in options}
    model = mine.pop("model", "loop-embed")
    return EndpointEmbedder("endpoint:1", client_of(server, **options), model, dimensions, **mine)


def test_vectors_come_in_the_order_of_their_texts_over_several_batches(server: Loopback) -> None:
    texts = [f"记录 {i}: prefers window seats" for i in range(150)]
    rows = embedder_of(server).embed_documents(texts)
    alone = embedder_of(server).embed_query(texts[131])
    assert np.allclose(rows[131], alone)
    assert [len(r.body["input"]) for r in server.requests] == [64, 64, 22, 1]


def test_floats_are_asked_for_and_no_parameter_a_plain_server_would_refuse(
    server: Loopback,
) -> None:
    embedder_of(server).embed_query("tea")
    assert server.requests[0].body == {
        "input": ["tea"], "model": "loop-embed", "encoding_format": "float",
    }  # fmt: skip


def test_vectors_out_of_order_are_put_in_order_by_their_index(server: Loopback) -> None:
    server.next(Reply(change=lambda answer: answer | {"data": answer["data"][::-1]}))
    embedder = embedder_of(server)
    rows = embedder.embed_documents(["tea", "coffee", "water"])
    assert np.allclose(rows[2], embedder.embed_query("water"))


def test_a_server_that_leaves_out_the_index_is_taken_in_its_order(server: Loopback) -> None:
    def without(answer: dict[str, Any]) -> dict[str, Any]:
        for item in answer["data"]:
            del item["index"]
        return answer

    server.next(Reply(change=without))
    embedder = embedder_of(server)
    rows = embedder.embed_documents(["tea", "coffee"])
    assert np.allclose(rows[1], embedder.embed_query("coffee"))


def _set(i: int, value: Any) -> Any:
    def change(answer: dict[str, Any]) -> dict[str, Any]:
        answer["data"][i]["embedding"] = value
        return answer

    return change


BAD_REPLIES = {
    "one vector too few": lambda a: a | {"data": a["data"][:-1]},
    "one vector too many": lambda a: a | {"data": a["data"] + a["data"][:1]},
    "an index twice": lambda a: a | {"data": [d | {"index": 0} for d in a["data"]]},
    "a shorter vector": _set(1, [0.5] * 16),
    "base64": _set(0, "AAAAAAAA"),
    "a zero vector": _set(0, [0.0] * 64),
    "words for numbers": _set(0, ["x"] * 64),
    "null numbers": _set(0, [None] * 64),
    "no vector": _set(0, None),
    "data that is no list": lambda a: a | {"data": {"0": []}},
    "no data": lambda a: {"object": "list"},
    "a bare list": lambda a: a["data"],
    "a string": lambda a: "ok",
}


@pytest.mark.parametrize("what", BAD_REPLIES)
def test_a_bad_reply_refuses_the_whole_batch(server: Loopback, what: str) -> None:
    server.next(Reply(change=BAD_REPLIES[what]))
    with pytest.raises(EndpointReply):
        embedder_of(server).embed_documents(["tea", "coffee", "water"])
    assert len(server.requests) == 1


def test_a_reply_with_infinity_is_refused(server: Loopback) -> None:
    numbers = ", ".join(["1e999"] * 64)
    server.next(Reply(raw=f'{{"data": [{{"index": 0, "embedding": [{numbers}]}}]}}'.encode()))
    with pytest.raises(EndpointReply, match="finite"):
        embedder_of(server).embed_query("tea")


@pytest.mark.parametrize("raw", [b"<html>Welcome</html>", b"", b'{"data": [', b"\xff\xfe"])
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
def test_a_page_instead_of_vectors_says_what_to_check(
    server: Loopback, raw: bytes, kind: str
) -> None:
    server.next(Reply(raw=raw, headers={"Content-Type": kind}))
    with pytest.raises(EndpointReply, match="base URL"):
        embedder_of(server).embed_query("tea")


def test_another_length_than_set_up_is_refused_with_both_numbers(server: Loopback) -> None:
    with pytest.raises(EndpointReply, match=r"64 dimensions.*with 48"):
        embedder_of(server, 48).embed_query("tea")


def test_an_endpoint_set_up_without_dimensions_learns_them(server: Loopback) -> None:
    embedder = embedder_of(server, None)
    assert embedder.dimensions == 64
    assert embedder.embed_documents([]).shape == (0, 64)


def test_dimensions_are_sent_where_supported() -> None:
    with Loopback(takes_dimensions=True, models=("text-embedding-3-small",)) as server:
        row = embedder_of(server, 32, model="text-embedding-3-small").embed_query("tea")
        assert row.shape == (32,)
        assert server.requests[0].body["dimensions"] == 32


def test_a_server_that_knows_no_dimensions_parameter_is_asked_without(server: Loopback) -> None:
    embedder = embedder_of(server, send_dimensions=True)
    assert embedder.embed_query("tea").shape == (64,)
    assert embedder.embed_query("tea").shape == (64,)
    assert ["dimensions" in r.body for r in server.requests] == [True, False, False]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_passing_failure_is_tried_again(server: Loopback, status: int) -> None:
    server.next(Reply(status, headers={"Retry-After": "0"}))
    assert embedder_of(server).embed_query("tea").shape == (64,)
    assert len(server.requests) == 2


def test_a_lost_connection_is_tried_again(server: Loopback) -> None:
    server.next(Reply(hang_up=True))
    assert embedder_of(server).embed_query("tea").shape == (64,)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_tried_again(server: Loopback, status: int) -> None:
    server.next(Reply(status, body={"error": {"message": "no such thing"}}))
    with pytest.raises(EndpointRefused, match=str(status)):
        embedder_of(server).embed_query("tea")
    assert len(server.requests) == 1


def test_an_empty_account_is_not_asked_again(server: Loopback) -> None:
    body = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    server.next(Reply(429, body=body))
    with pytest.raises(EndpointRefused, match="quota"):
        embedder_of(server).embed_query("tea")
    assert len(server.requests) == 1


def test_retries_end_after_two(server: Loopback) -> None:
    server.next(*[Reply(503, body={}, headers={"Retry-After": "0"})] * 9)
    with pytest.raises(EndpointError, match="503"):
        embedder_of(server).embed_query("tea")
    assert len(server.requests) == 3


def test_a_wait_beyond_the_budget_is_not_waited(server: Loopback) -> None:
    server.next(Reply(429, body={}, headers={"Retry-After": "600"}))
    began = time.monotonic()
    with pytest.raises(EndpointRefused, match="slow down"):
        embedder_of(server).embed_query("tea")
    assert time.monotonic() - began < 2


def test_a_server_that_hangs_is_left_within_the_budget(server: Loopback) -> None:
    server.next(*[Reply(delay=30)] * 5)
    began = time.monotonic()
    with pytest.raises(EndpointTimeout, match="did not answer"):
        embedder_of(server, timeout=0.4, budget=1.0).embed_query("tea")
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("how", ["drip", "slow"])
def test_a_server_that_drips_its_body_or_its_headers_is_left_in_time(
    server: Loopback, how: str
) -> None:
    # Each byte comes well within a read's timeout; all of them would take a minute.
    server.next(*[Reply(change=lambda a: a, **{how: 0.1})] * 8)
    embedder = embedder_of(server, timeout=0.5, budget=1.2)
    began = time.monotonic()
    with pytest.raises(EndpointTimeout, match="did not answer"):
        embedder.embed_query("tea")
    assert 0.4 < time.monotonic() - began < 1.7
    began = time.monotonic()
    with pytest.raises(EndpointTimeout):
        embedder_of(server, timeout=60, budget=0.8, retries=0).embed_query("tea")
    assert time.monotonic() - began < 1.3


def test_after_a_slow_reply_the_next_call_has_all_its_time_again(server: Loopback) -> None:
    embedder = embedder_of(server, timeout=0.5, budget=0.6, retries=0)
    for _ in range(3):
        assert embedder.embed_query("tea").shape == (64,)
        server.next(Reply(slow=0.1))
        with pytest.raises(EndpointTimeout):
            embedder.embed_query("tea")
        time.sleep(0.3)
        assert embedder.embed_query("tea").shape == (64,)


def test_a_server_that_never_finishes_the_tls_handshake_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        client = Client(
            f"https://127.0.0.1:{port}/v1", None, timeout=0.5, budget=0.8, retries=0,
            allowed=frozenset({f"127.0.0.1:{port}"}),
        )  # fmt: skip
        began = time.monotonic()
        with pytest.raises(EndpointError):
            client.ask(lambda opened: opened.models.list())
        assert time.monotonic() - began < 1.3
        client.close()


def test_a_name_that_is_looked_up_for_ever_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        ended.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    client = Client("https://models.example/v1", None, timeout=0.3, budget=0.5, retries=0)
    began = time.monotonic()
    with pytest.raises(EndpointTimeout):
        client.ask(lambda opened: opened.models.list())
    assert time.monotonic() - began < 1
    ended.set()
    client.close()


def test_an_address_that_swallows_everything_leaves_time_for_the_next(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 192.0.2.0/24 is for documentation: nothing answers there, or the network refuses at once.
    monkeypatch.setattr(
        "memcore.endpoints.transport.guard.check", lambda *_: ("192.0.2.1", "127.0.0.1")
    )
    assert embedder_of(server, timeout=1.0, budget=2.0).embed_query("tea").shape == (64,)


def test_reruns_do_not_pile_calls_up_on_a_server_that_hangs(server: Loopback) -> None:
    server.next(*[Reply(delay=30)] * 40)
    embedder = embedder_of(server, timeout=0.4, budget=0.8, retries=0)

    def call(_: int) -> str:
        with pytest.raises(EndpointTimeout) as caught:
            embedder.embed_query("tea")
        return str(caught.value)

    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(call, range(16)))
    assert len(server.requests) <= 12
    assert any("busy" in line for line in said)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server: Loopback, status: int) -> None:
    with Loopback() as other:
        server.next(Reply(status, body={}, headers={"Location": f"{other.base_url}/embeddings"}))
        with pytest.raises(EndpointRefused, match="redirects elsewhere"):
            embedder_of(server).embed_query("tea")
        assert other.requests == []


def test_a_server_that_is_down_says_so() -> None:
    with Loopback() as server:
        embedder = embedder_of(server, retries=0)
    with pytest.raises(EndpointError, match="cannot be reached"):
        embedder.embed_query("tea")


def test_an_address_nobody_allowed_is_not_even_connected_to(server: Loopback) -> None:
    with pytest.raises(ConfigError, match="MEMCORE_ALLOWED_ENDPOINTS"):
        embedder_of(server, allowed=frozenset()).embed_query("tea")
    assert server.requests == []


@pytest.mark.parametrize(
    "spelling", ["http://{}", "http://{}/v1", "http://{}/v1/", " http://{}/v1 "]
)
def test_all_spellings_reach_the_endpoint(server: Loopback, spelling: str) -> None:
    url = spelling.format(server.host)
    assert embedder_of(server, url=url).embed_query("tea").shape == (64,)


def test_the_key_is_in_no_message_repr_or_log(
    server: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "sk-live-zyxwvutsrqponmlk4321"
    embedder = embedder_of(server, key=wrong)
    said = [repr(embedder)]
    server.next(Reply(401, body={"error": {"message": f"Incorrect key: {wrong}"}}))
    server.next(Reply(400, body={"error": {"message": f"Incorrect key: {wrong}"}}))
    for _ in range(3):
        with pytest.raises(MemcoreError) as caught:
            embedder.embed_query("tea")
        said += [str(caught.value), repr(caught.value), caught.value.hint or ""]
    assert server.requests[0].headers["authorization"] == f"Bearer {wrong}"
    for line in [*said, caplog.text]:
        assert wrong not in line
        assert wrong[3:-4] not in line
    assert "••••4321" in said[1]


def test_names_in_the_environment_do_not_reach_the_endpoint(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    embedder_of(server).embed_query("tea")
    assert not {"openai-organization", "openai-project"} & set(server.requests[0].headers)


def test_odd_texts_are_sent_as_something_every_server_takes(server: Loopback) -> None:
    rows = embedder_of(server).embed_documents(["", "a\ud83d", "正常"])
    assert rows.shape == (3, 64)


def test_eight_threads_share_one_endpoint(server: Loopback) -> None:
    embedder = embedder_of(server)
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda i: embedder.embed_query(f"note {i}"), range(24)))
    assert np.allclose(rows[17], embedder.embed_query("note 17"))
