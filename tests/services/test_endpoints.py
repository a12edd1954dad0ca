"""Endpoints: whose they are, what is known of their keys, and libraries that stand on them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from memcore.endpoints import guard
from memcore.errors import (
    ConfigError,
    Conflict,
    EndpointError,
    EndpointRefused,
    InvalidInput,
    NotFound,
    PermissionDenied,
)
from memcore.models import Actor, Subject
from memcore.plain import plain
from tests.loopback import KEY, Loopback, Reply

BOSS = Actor("boss", operator=True)
ANN, BEN = Actor("ann"), Actor("ben")


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with Loopback() as running:
        monkeypatch.setenv(guard.VARIABLE, running.host)
        yield running


def make(core, loop, name="own", actor=BOSS, **fields):
    fields = {"base_url": loop.base_url, "model": "loop-embed", "key": KEY} | fields
    return core.endpoints.create(name, actor=actor, **fields)


def test_a_test_call_shows_model_dimensions_and_time(core, loop):
    endpoint = make(core, loop)
    assert endpoint.dimensions is None
    tested = core.endpoints.test(endpoint.id, actor=BOSS)
    assert (tested.model, tested.dimensions) == ("loop-embed", 64)
    assert tested.milliseconds > 0
    assert core.endpoints.get(endpoint.id, actor=BOSS).dimensions == 64


def test_a_chat_endpoint_is_tested_with_a_word(core, loop):
    loop.say("ready")
    endpoint = make(core, loop, kind="chat", model="loop-chat")
    assert core.endpoints.test(endpoint.id, actor=BOSS).sample == "ready"


def test_the_key_is_encrypted_at_rest_and_shown_masked(core, loop):
    endpoint = make(core, loop)
    assert endpoint.key == "••••cdef"
    with core.runtime.engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM endpoints")).one()
    assert KEY not in str(row)
    assert KEY not in str(plain(core.endpoints.all(actor=BOSS)))
    assert KEY not in repr(core.endpoints.embedder(endpoint.id))


def test_a_user_sees_shared_ones_and_their_own(core, loop):
    shared = make(core, loop, "shared", shared=True)
    anns = make(core, loop, "anns", ANN)
    make(core, loop, "anns", BEN)
    assert {e.id for e in core.endpoints.all(actor=ANN)} == {shared.id, anns.id}
    with pytest.raises(NotFound):
        core.endpoints.get(anns.id, actor=BEN)
    with pytest.raises(NotFound):
        core.endpoints.test(anns.id, actor=BEN)
    with pytest.raises(PermissionDenied):
        core.endpoints.delete(shared.id, actor=ANN)
    with pytest.raises(PermissionDenied):
        make(core, loop, "x", ANN, shared=True)
    with pytest.raises(Conflict, match="anns"):
        make(core, loop, "anns", ANN)


def test_create_embeddings_takes_the_users_own_then_a_shared_one_then_an_offline_one(core, loop):
    assert core.endpoints.create_embeddings("ann").name.startswith("local:")
    shared = make(core, loop, "shared", shared=True)
    anns = make(core, loop, "anns", ANN, dimensions=64)
    assert core.endpoints.create_embeddings("ann").name == f"endpoint:{anns.id}"
    assert core.endpoints.create_embeddings("ben").name == f"endpoint:{shared.id}"
    assert core.endpoints.create_embeddings("ann").embed_query("tea").shape == (64,)


def test_an_address_that_is_not_allowed_is_refused_when_it_is_entered(core, loop):
    for url in ("http://127.0.0.1:1/v1", "http://169.254.169.254/latest", "ftp://x.example"):
        with pytest.raises(ConfigError):
            make(core, loop, base_url=url)
    assert core.endpoints.all(actor=BOSS) == []


def test_another_host_asks_for_the_key_again(core, loop, monkeypatch):
    endpoint = make(core, loop)
    with Loopback() as other:
        monkeypatch.setenv(guard.VARIABLE, f"{loop.host},{other.host}")
        with pytest.raises(InvalidInput, match="key"):
            core.endpoints.edit(
                endpoint.id, actor=BOSS, name="own", base_url=other.base_url, model="loop-embed"
            )
        moved = core.endpoints.edit(
            endpoint.id, actor=BOSS, name="own", base_url=other.base_url, model="loop-embed",
            key=KEY,
        )  # fmt: skip
        assert moved.base_url == other.base_url
        core.endpoints.test(endpoint.id, actor=BOSS)
        assert loop.requests == []


def test_the_same_host_keeps_the_key(core, loop):
    endpoint = make(core, loop)
    edited = core.endpoints.edit(
        endpoint.id, actor=BOSS, name="renamed", base_url=loop.base_url + "/", model="loop-embed"
    )
    assert (edited.name, edited.key) == ("renamed", "••••cdef")
    assert core.endpoints.test(endpoint.id, actor=BOSS).dimensions == 64


def test_a_library_on_an_endpoint_stores_and_finds(core, loop):
    endpoint = make(core, loop, dimensions=64)
    library = core.libraries.create("remote", embedder=f"endpoint:{endpoint.id}")
    assert library.dimensions == 64
    who = Subject(library.id, user_id="u1")
    core.memories.add_explicit_memory("Prefers oolong tea in the morning", subject=who)
    assert core.memories.recall("oolong tea", subject=who, mode="vector").hits
    with pytest.raises(Conflict, match="remote"):
        core.endpoints.delete(endpoint.id, actor=BOSS)
    with pytest.raises(Conflict, match="remote"):
        core.endpoints.edit(
            endpoint.id, actor=BOSS, name="own", base_url=loop.base_url, model="other"
        )


def test_a_changed_key_is_used_at_once(core, loop):
    endpoint = make(core, loop, dimensions=64, key="sk-old-and-wrong-000000")
    library = core.libraries.create("remote", embedder=f"endpoint:{endpoint.id}")
    with pytest.raises(EndpointRefused, match="401"):
        core.runtime.embedder_for(library).embed_query("tea")
    core.endpoints.edit(
        endpoint.id, actor=BOSS, name="own", base_url=loop.base_url, model="loop-embed",
        key=KEY, dimensions=64,
    )  # fmt: skip
    assert core.runtime.embedder_for(library).embed_query("tea").shape == (64,)


def test_a_model_of_another_length_is_refused_with_both_numbers_and_stores_nothing(core, loop):
    endpoint = make(core, loop, dimensions=64)
    library = core.libraries.create("remote", embedder=f"endpoint:{endpoint.id}")
    who = Subject(library.id, user_id="u1")
    loop.dimensions = 48  # the server changed its model
    result = core.memories.add_explicit_memory("Prefers oolong tea in the morning", subject=who)
    said = str(plain(result.verdict))
    assert "48" in said
    assert "64" in said
    with core.runtime.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM embeddings")) == 0
    with pytest.raises(EndpointError, match="48"):
        core.memories.recall("tea", subject=who, mode="vector")


def test_re_embedding_to_an_endpoint_that_fails_says_how_many_of_how_many(core, loop, library):
    who = Subject(library.id, user_id="u1")
    for topic in ("oolong tea", "badminton", "Hangzhou"):
        core.memories.add_explicit_memory(f"Often talks about {topic}", subject=who)
    endpoint = make(core, loop, dimensions=64)
    loop.next(*[Reply(400, body={"error": {"message": "input too strange"}})] * 9)
    job = core.libraries.change_embedder(library.id, f"endpoint:{endpoint.id}")
    ended = core.runtime.jobs.wait(job.id)
    assert ended.state == "failed"
    assert "0 of 3" in ended.note
    assert "input too strange" in ended.note
    assert core.libraries.get(library.id).embedder == library.embedder


def test_rotation_keeps_every_key_usable(core, loop):
    endpoint = make(core, loop)
    core.stores.create("es", kind="elasticsearch", address="https://x.example", secret="t" * 20)
    assert core.rotate_secrets() == 2
    assert core.endpoints.test(endpoint.id, actor=BOSS).dimensions == 64


def test_a_key_that_cannot_be_decrypted_is_said_so_and_the_rest_is_shown(core, loop, tmp_path):
    make(core, loop)
    (tmp_path / "secret.key").unlink()
    (endpoint,) = core.endpoints.all(actor=BOSS)
    assert endpoint.key == "cannot be decrypted"
    with pytest.raises(ConfigError, match="enter it again"):
        core.endpoints.test(endpoint.id, actor=BOSS)


def test_eight_threads_open_one_endpoint_once(core, loop):
    endpoint = make(core, loop, dimensions=64)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(core.endpoints.embedder(endpoint.id)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(e) for e in found}) == 1
