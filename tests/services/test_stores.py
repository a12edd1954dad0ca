"""Libraries whose vectors another store serves: kept level with the database, whatever happens."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from memcore.core import open_core
from memcore.errors import ConfigError, Conflict, InvalidInput, NotFound, StoreError
from memcore.models import Actor, Draft, Status, Subject
from memcore.vectors.inmemory import InMemoryStore

BOSS = Actor("boss", operator=True)
TOPICS = ("oolong tea", "window seats", "the Hangzhou office", "badminton", "Rust", "short replies")
STATEMENTS = (
    "Drinks oolong tea every morning", "Books window seats on long flights",
    "Works from the Hangzhou office", "Plays badminton on Tuesdays", "Writes services in Rust",
    "Wants short replies", "Grew up near Lisbon", "Keeps two grey cats",
)  # fmt: skip


@pytest.fixture
def who(library):
    return Subject(library.id, user_id="u1")


@pytest.fixture(params=["memory", "pgvector"])
def elsewhere(request, core, database_url):
    address = "" if request.param == "memory" else database_url.replace("+psycopg", "")
    return core.stores.create("elsewhere", kind=request.param, address=address)


@pytest.fixture
def moved(core, library, who, elsewhere):
    for text_ in STATEMENTS:
        assert core.memories.add(Draft(text_), subject=who).memory, text_
    job = core.runtime.jobs.wait(core.stores.move(library, elsewhere.id).id)
    assert job.state == "done", job.note
    core.libraries.forget()
    return core.libraries.get(library.id)


def found(core, who, query, k=3):
    return [h.memory.content for h in core.memories.recall(query, subject=who, mode="vector",
                                                           k=k).hits]  # fmt: skip


def stored(core):
    with core.runtime.engine.connect() as connection:
        return connection.scalar(text("SELECT count(*) FROM memories"))


def test_a_moved_library_is_filled_and_searched_there(core, moved, who, elsewhere):
    assert moved.vector_store == elsewhere.id
    assert core.runtime.store_for(moved).count() == stored(core)
    assert "badminton" in found(core, who, "badminton")[0]
    assert core.libraries.health(moved.id).well
    status = core.stores.test(elsewhere.id)
    assert (status.reachable, status.collections) == (True, 1)


def test_every_change_reaches_the_other_store_before_the_next_search(core, moved, who):
    added = core.memories.add(Draft("Collects fountain pens from Nagoya"), subject=who).memory
    assert "fountain pens" in found(core, who, "fountain pens")[0]
    core.memories.edit(added.id, actor=BOSS, content="Collects pocket watches from Geneva")
    assert "pocket watches" in found(core, who, "pocket watches")[0]
    assert not any("fountain" in text for text in found(core, who, "fountain pens", 20))
    core.memories.change_status(added.id, Status.SUPPRESSED, actor=BOSS)
    assert not any("pocket" in text for text in found(core, who, "pocket watches", 20))
    core.memories.change_status(added.id, Status.ACTIVE, actor=BOSS)
    deleted = core.memories.delete(added.id, actor=BOSS)
    assert not any("pocket" in text for text in found(core, who, "pocket watches", 20))
    assert added.id not in core.runtime.store_for(moved).ids()
    core.memories.undo(deleted.batch_id, actor=BOSS)
    assert "pocket watches" in found(core, who, "pocket watches")[0]


def test_another_process_sees_the_change_too(core, moved, who, database_url, tmp_path):
    with open_core(url=database_url, home=tmp_path) as other:
        assert found(other, who, "badminton")
        core.memories.add(Draft("Collects fountain pens from Nagoya"), subject=who)
        assert "fountain pens" in found(other, who, "fountain pens")[0]
        assert "fountain pens" in found(core, who, "fountain pens")[0]


def test_eight_threads_write_and_search(core, moved, who):
    trouble = []

    def work(i):
        try:
            for j in range(4):
                core.memories.add(Draft(f"Thread {i} visited place {i * 100 + j}"), subject=who)
                found(core, who, f"place {i * 100 + j}")
        except Exception as error:
            trouble.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trouble == []
    health = core.libraries.health(moved.id)
    assert (health.absent, health.orphans, health.missing) == (0, 0, 0)


def test_another_embedder_fills_a_collection_of_its_own_there(core, moved, who, monkeypatch):
    monkeypatch.setattr("memcore.services.libraries.embedding._GRACE", 0.05)
    job = core.runtime.jobs.wait(core.libraries.change_embedder(moved.id, "hash:96").id)
    assert job.state == "done", job.note
    assert "badminton" in found(core, who, "badminton")[0]
    after = core.libraries.get(moved.id)
    assert core.runtime.store_for(after).count() == stored(core)


def test_back_to_the_main_database(core, moved, who):
    core.runtime.jobs.wait(core.stores.move(moved, "pgvector").id)
    core.libraries.forget()
    assert core.libraries.get(moved.id).vector_store == "pgvector"
    assert "badminton" in found(core, who, "badminton")[0]


def test_lost_vectors_and_orphans_are_found_and_repaired(core, moved, who, elsewhere):
    store = core.runtime.store_for(moved)
    gone = sorted(store.ids())[:1]
    store.delete(gone)
    if elsewhere.kind == "pgvector":
        with core.runtime.engine.begin() as connection:
            name = f"memcore_{moved.id.replace('-', '')[:12]}_{moved.collection_id}"
            connection.execute(
                text(f"INSERT INTO {name} SELECT gen_random_uuid()::text, place, status, "  # noqa: S608
                     f"content_hash, embedding FROM {name} LIMIT 2")
            )  # fmt: skip
    health = core.libraries.health(moved.id)
    orphans = 2 if elsewhere.kind == "pgvector" else 0
    assert (health.absent, health.orphans, health.well) == (1, orphans, False)
    job = core.runtime.jobs.wait(core.libraries.reindex(moved.id).id)
    assert "1 vectors put back" in job.note
    assert f"{orphans} orphans removed" in job.note
    assert core.libraries.health(moved.id).well


def test_a_store_that_is_down_leaves_keywords_and_says_so(core, moved, who, monkeypatch):
    store = core.runtime.store_for(moved)

    def down(*_):
        raise StoreError("The store cannot be reached.")

    monkeypatch.setattr(store, "_open", down)
    store.close()
    result = core.memories.recall("badminton", subject=who)
    assert result.hits
    assert "The store cannot be reached" in result.notice
    core.memories.add(Draft("Collects fountain pens from Nagoya"), subject=who)
    assert "cannot be reached" in core.libraries.health(moved.id).trouble
    monkeypatch.undo()
    store._open = core.stores._inner.__get__(core.stores) and (lambda: core.stores._inner(moved))
    assert "fountain pens" in found(core, who, "fountain pens")[0]


def test_far_behind_the_database_answers_in_its_place(core, moved, who, elsewhere, monkeypatch):
    if elsewhere.kind == "memory":
        return
    monkeypatch.setattr("memcore.vectors.mirror.FAR_BEHIND", 0)
    core.memories.add(Draft("Collects fountain pens from Nagoya"), subject=who)
    store = core.runtime.store_for(moved)
    assert store.behind() > 0
    assert "fountain pens" in found(core, who, "fountain pens")[0]
    assert store.behind() > 0


def test_a_library_can_start_in_another_store(core, elsewhere):
    made = core.libraries.create("new", embedder="hash:64", vector_store=elsewhere.id)
    who = Subject(made.id, user_id="u1")
    core.memories.add(Draft("Collects fountain pens from Nagoya"), subject=who)
    assert found(core, who, "fountain pens")


def test_a_store_in_use_is_not_forgotten(core, moved, elsewhere):
    with pytest.raises(Conflict, match="team"):
        core.stores.delete(elsewhere.id)
    core.stores.move(moved, "pgvector")
    core.stores.delete(elsewhere.id)
    with pytest.raises(NotFound):
        core.stores.get(elsewhere.id)


# ---- configuring


def test_a_password_in_the_address_is_taken_out_and_encrypted(core):
    store = core.stores.create(
        "far", kind="pgvector", address="postgresql://vec:hunter2secret99@db.example:5432/v"
    )
    assert store.address == "postgresql://vec@db.example:5432/v"
    assert store.secret == "••••et99"
    with core.runtime.engine.connect() as connection:
        row = str(connection.execute(text("SELECT config, secret FROM vector_stores")).one())
    assert "hunter2" not in row


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("milvus", ""), ("milvus", "vectors.sqlite"), ("elasticsearch", "search.example:9200"),
        ("elasticsearch", "ftp://search.example"), ("pgvector", "mysql://db.example/v"),
        ("redis", "http://x"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_is_refused(core, kind, address):
    with pytest.raises((InvalidInput, ConfigError)):
        core.stores.create("x", kind=kind, address=address)


def test_a_store_that_is_down_is_shown_with_its_cause(core, library):
    store = core.stores.create("far", kind="pgvector", address="postgresql://u@127.0.0.1:9/v")
    status = core.stores.test(store.id)
    assert not status.reachable
    assert "127.0.0.1:9" in status.trouble
    with pytest.raises(StoreError):
        core.stores.move(library, store.id)
    assert core.libraries.get(library.id).vector_store == "pgvector"


def test_the_secret_is_asked_for_again_at_another_address(core):
    store = core.stores.create(
        "far", kind="elasticsearch", address="https://a.example:9200", secret="s" * 20
    )
    with pytest.raises(InvalidInput, match="secret"):
        core.stores.edit(store.id, name="far", address="https://b.example:9200")
    assert core.stores.edit(store.id, name="near", address="https://a.example:9200").secret


def test_milvus_serves_a_library_too(core, library, who, tmp_path: Path):
    for i in range(6):
        core.memories.add(Draft(f"Note {i * 37}: prefers {TOPICS[i]}"), subject=who)
    store = core.stores.create("lite", kind="milvus", address=str(tmp_path / "v.db"))
    job = core.runtime.jobs.wait(core.stores.move(library, store.id).id)
    assert job.state == "done", job.note
    core.libraries.forget()
    assert "badminton" in found(core, who, "badminton")[0]
    assert core.libraries.health(library.id).well


def test_an_in_process_store_begins_empty_and_is_filled_when_opened(core, moved, elsewhere):
    if elsewhere.kind != "memory":
        return
    store = core.runtime.store_for(moved)
    assert isinstance(store._inner, InMemoryStore)
    core.stores.forget()
    assert core.runtime.store_for(moved).count() == stored(core)
