"""Another embedder: filled in the background, one switch, nothing lost, nothing mixed."""

import threading

import numpy as np
import pytest
from sqlalchemy import text

from memcore.core import open_core
from memcore.embeddings.hashing import HashEmbedder
from memcore.errors import EndpointError
from memcore.models import Actor, Draft, Subject

BOSS = Actor("boss", operator=True)
TOPICS = ("oolong tea", "window seats", "the Hangzhou office", "badminton", "Rust", "short replies")
PEOPLE = (
    "Alice Boris Carol Dmitri Elena Felix Greta Hugo Irina Jonas Karin Leon Maria Nadia Oscar "
    "Paula Quentin Rosa Stefan Tilda Ulrich Vera Walter Yvonne"
).split()


def liking(i):
    """One statement about one person; no two are alike to a small hash embedder."""
    return f"{PEOPLE[i]} {PEOPLE[i - 1]} prefers {TOPICS[i % 6]}"


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch):
    monkeypatch.setattr("memcore.services.libraries.embedding._GRACE", 0.05)


@pytest.fixture
def filled(core, library):
    who = Subject(library.id, user_id="u1")
    for i in range(len(PEOPLE)):
        added = core.memories.add(Draft(liking(i)), subject=who)
        assert added.verdict.outcome == "stored"
    return who


def swap(core, library, name):
    job = core.runtime.jobs.wait(core.libraries.change_embedder(library.id, name).id)
    assert job.state == "done", job.note
    return job


def count(core, sql, **values):
    with core.runtime.engine.connect() as connection:
        return connection.scalar(text(sql), values)


def test_everything_is_embedded_anew_and_found_by_the_new_vectors(core, library, filled):
    stored = count(core, "SELECT count(*) FROM memories")
    job = swap(core, library, "hash:128")
    after = core.libraries.get(library.id)
    assert (after.embedder, after.dimensions) == ("hash:128", 128)
    assert after.collection_id != library.collection_id
    assert str(stored) in job.note
    assert core.runtime.store_for(after).count() == stored
    hits = core.memories.recall("badminton", subject=filled, mode="vector", k=3).hits
    assert "badminton" in hits[0].memory.content
    assert core.libraries.health(library.id).well


def test_the_old_vectors_are_dropped_after_the_switch(core, library, filled):
    swap(core, library, "hash:128")
    assert count(core, "SELECT count(*) FROM collections") == 1
    assert count(core, "SELECT count(DISTINCT vector_dims(embedding)) FROM embeddings") == 1


def test_the_library_is_searched_by_its_old_vectors_until_the_switch(
    core, library, filled, monkeypatch
):
    reached, go_on = threading.Event(), threading.Event()
    embed = HashEmbedder.embed_documents

    def slow(self, texts):
        if self.dimensions == 128:
            reached.set()
            go_on.wait(20)
        return embed(self, texts)

    monkeypatch.setattr(HashEmbedder, "embed_documents", slow)
    job = core.libraries.change_embedder(library.id, "hash:128")
    assert reached.wait(10)
    assert core.libraries.get(library.id).dimensions == 64
    assert core.memories.recall("badminton", subject=filled, mode="vector").hits
    late = core.memories.add(Draft("Moved to Lisbon last spring"), subject=filled)
    core.memories.delete(core.memories.recall("Rust", subject=filled, k=1).hits[0].memory.id,
                         actor=BOSS)  # fmt: skip
    go_on.set()
    assert core.runtime.jobs.wait(job.id).state == "done"
    health = core.libraries.health(library.id)
    assert health.well, health
    assert health.vectors == health.memories == count(core, "SELECT count(*) FROM memories")
    found = core.memories.recall("Lisbon spring", subject=filled, mode="vector", k=1).hits
    assert found[0].memory.id == late.memory.id


def test_a_failure_says_how_far_it_came_and_changes_nothing(core, library, filled, monkeypatch):
    embed = HashEmbedder.embed_documents

    def broken(self, texts):
        if self.dimensions == 128:
            raise EndpointError("The endpoint failed.")
        return embed(self, texts)

    monkeypatch.setattr(HashEmbedder, "embed_documents", broken)
    stored = count(core, "SELECT count(*) FROM memories")
    job = core.runtime.jobs.wait(core.libraries.change_embedder(library.id, "hash:128").id)
    assert job.state == "failed"
    assert f"0 of {stored}" in job.note
    assert "The endpoint failed" in job.note
    assert core.libraries.get(library.id).dimensions == 64
    assert core.memories.recall("badminton", subject=filled, mode="vector").hits


def test_a_killed_re_embedding_goes_on_where_it_stopped(core, library, filled, monkeypatch):
    embedded = []
    embed = HashEmbedder.embed_documents

    def counting(self, texts):
        if self.dimensions == 128:
            embedded.append(len(texts))
            if len(embedded) == 2:
                raise RuntimeError("killed")
        return embed(self, texts)

    monkeypatch.setattr(HashEmbedder, "embed_documents", counting)
    monkeypatch.setattr("memcore.services.libraries.embedding._BATCH", 5)
    stored = count(core, "SELECT count(*) FROM memories")
    first = core.runtime.jobs.wait(core.libraries.change_embedder(library.id, "hash:128").id)
    assert first.state == "failed"
    assert count(core, "SELECT count(*) FROM collections WHERE state = 'building'") == 1
    swap(core, library, "hash:128")
    assert sum(embedded) == stored + 5  # only the batch that failed was done twice
    assert core.libraries.get(library.id).dimensions == 128


def test_choosing_yet_another_embedder_leaves_nothing_of_the_half_built(
    core, library, filled, monkeypatch
):
    embed = HashEmbedder.embed_documents

    def broken(self, texts):
        if self.dimensions == 128:
            raise RuntimeError
        return embed(self, texts)

    monkeypatch.setattr(HashEmbedder, "embed_documents", broken)
    core.runtime.jobs.wait(core.libraries.change_embedder(library.id, "hash:128").id)
    swap(core, library, "hash:32")
    assert count(core, "SELECT count(*) FROM collections") == 1


def test_a_writer_that_still_knows_the_old_embedder_stores_with_the_new(
    core, library, filled, database_url, tmp_path
):
    with open_core(url=database_url, home=tmp_path / "other") as other:
        assert other.libraries.get(library.id).dimensions == 64  # now cached there
        swap(core, library, "hash:128")
        with other.libraries._lock:
            other.libraries._cache[library.id] = (1e12, library)  # as old as can be
        added = other.memories.add(Draft("Moved to Lisbon last spring"), subject=filled)
    assert added.memory is not None
    assert core.libraries.health(library.id).missing == 0


def test_writers_during_the_change_lose_nothing(core, library, filled):
    stop = threading.Event()
    stored = []

    def write():
        i = 0
        while not stop.is_set():
            i += 1
            added = core.memories.add(
                Draft(f"Fact {i * 7919}: {TOPICS[i % 6]} number {i * 31}"), subject=filled
            )
            if added.memory:
                stored.append(added.memory.id)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        swap(core, library, "hash:128")
        swap(core, library, "hash:96")
    finally:
        stop.set()
        writer.join()
    assert stored
    health = core.libraries.health(library.id)
    assert health.well, health
    assert core.libraries.get(library.id).dimensions == 96


def test_the_same_embedder_again_builds_all_vectors_anew(core, library, filled):
    swap(core, library, "hash:64")
    assert core.libraries.get(library.id).collection_id != library.collection_id
    assert core.libraries.health(library.id).well


def test_a_large_embedding_model_neither_crashes_nor_needs_an_index(core, library, filled):
    swap(core, library, "hash:3072")
    assert core.memories.recall("badminton", subject=filled, mode="vector").hits


# ---- health and repair


def test_missing_and_stale_vectors_are_counted_and_repaired(core, library, filled):
    with core.runtime.engine.begin() as connection:
        connection.execute(
            text("DELETE FROM embeddings WHERE memory_id IN (SELECT id FROM memories LIMIT 3)")
        )
        connection.execute(
            text("UPDATE embeddings SET content_hash = 'older' WHERE memory_id IN "
                 "(SELECT memory_id FROM embeddings LIMIT 2)")
        )  # fmt: skip
    health = core.libraries.health(library.id)
    assert (health.missing, health.stale, health.well) == (3, 2, False)
    job = core.runtime.jobs.wait(core.libraries.reindex(library.id).id)
    assert (job.state, job.note) == ("done", "Embedded 5 memories.")
    assert core.libraries.health(library.id).well


def test_a_repair_that_fails_does_not_claim_success(core, library, filled, monkeypatch):
    with core.runtime.engine.begin() as connection:
        connection.execute(text("DELETE FROM embeddings"))

    def broken(self, texts):
        raise EndpointError("The endpoint failed.")

    monkeypatch.setattr(HashEmbedder, "embed_documents", broken)
    stored = count(core, "SELECT count(*) FROM memories")
    job = core.runtime.jobs.wait(core.libraries.reindex(library.id).id)
    assert job.state == "failed"
    assert f"0 of {stored}" in job.note
    assert core.libraries.health(library.id).missing == stored


def test_a_vector_of_another_length_never_gets_into_a_collection(core, library, filled):
    with core.runtime.engine.connect() as connection:
        memory_id = connection.scalar(text("SELECT id::text FROM memories LIMIT 1"))
    wrong = np.ones(32, dtype=np.float32)
    with (
        pytest.raises(Exception, match="dimensions"),
        core.runtime.engine.begin() as connection,
    ):
        connection.execute(
            text("UPDATE embeddings SET embedding = :v WHERE memory_id = CAST(:id AS uuid)"),
            {"v": wrong, "id": memory_id},
        )
    assert core.libraries.health(library.id).mismatched == 0


def test_pairs_around_a_threshold_are_of_one_scope_and_nearest_to_it(core, library, filled):
    elsewhere = Subject(library.id, user_id="u2")
    core.memories.add(Draft(liking(0)), subject=elsewhere)
    pairs = core.libraries.pairs(library.id, around=0.8, limit=5)
    assert len(pairs) == 5
    assert [p.similarity for p in pairs] == sorted((p.similarity for p in pairs), reverse=True)
    wider = core.libraries.pairs(library.id, around=0.8, limit=50)
    reach = max(abs(p.similarity - 0.8) for p in pairs)
    assert all(abs(p.similarity - 0.8) >= reach - 1e-9 for p in wider if p not in pairs)
    assert max(p.similarity for p in wider) < 0.9999
