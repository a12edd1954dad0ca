"""Re-embedding and kill -9: a child process is killed in the middle, the library goes on with its
old vectors, another process takes the work up where it stopped, and there is one switch."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from memcore.core import Core, open_core
from memcore.models import Actor, Draft, Library, Subject

BOSS = Actor("boss", operator=True)
TEXTS = 320
CHILD = """
import sys, time
from memcore.core import open_core
from memcore.embeddings.hashing import HashEmbedder

embed = HashEmbedder.embed_documents

def slow(self, texts):
    if self.dimensions == 128:
        time.sleep(float(sys.argv[3]))
    return embed(self, texts)

HashEmbedder.embed_documents = slow
with open_core(home=sys.argv[1]) as core:
    job = core.libraries.change_embedder(sys.argv[2], "hash:128")
    print(core.runtime.jobs.wait(job.id).note, flush=True)
"""
COLLECTIONS = text(
    "SELECT c.state, c.dimensions, count(e.memory_id) AS vectors FROM collections c "
    "LEFT JOIN embeddings e ON e.collection_id = c.id GROUP BY c.id ORDER BY c.id"
)


def words(n: int) -> str:
    """Eight invented words, so that no two statements are near each other."""
    letters = random.Random(n)
    return " ".join(
        "".join(letters.choice("bdfgklmnprstvz") + letters.choice("aeiou") for _ in range(3))
        for _ in range(8)
    )


@pytest.fixture
def filled(core: Core, library: Library) -> Subject:
    who = Subject(library.id, user_id="u1")
    judged = core.memories.add_many([Draft(words(n)) for n in range(TEXTS)], subject=who)
    assert all(j.memory and j.verdict and j.verdict.outcome == "stored" for j in judged)
    return who


@pytest.fixture
def watching(database_url: str) -> Iterator[Engine]:
    engine = create_engine(database_url, isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


def child(url: str, home: Path, library: Library, *, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home), library.id, str(seconds)],
        env=os.environ | {"DATABASE_URL": url},
        stdout=subprocess.PIPE,
        text=True,
    )


def state(watching: Engine) -> list[tuple[str, int, int]]:
    with watching.connect() as connection:
        return [tuple(row) for row in connection.execute(COLLECTIONS)]


def built(watching: Engine) -> int:
    return sum(n for state_, _, n in state(watching) if state_ == "building")


def until(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + 40
    while not condition():
        assert process is None or process.poll() is None, "the child ended too early"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def killed_at(least: int, url: str, home: Path, library: Library, watching: Engine) -> int:
    """Vectors of the new embedder that are there once the child is dead."""
    running = child(url, home, library, seconds=0.4)
    try:
        until(lambda: built(watching) >= least, running)
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait(10)
        running.stdout.close()
    # Its sessions end when the server notices; what it had not committed is gone.
    with watching.connect() as connection:
        until(
            lambda: (
                connection.scalar(
                    text(
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                        "AND state LIKE 'idle in transaction%'"
                    )
                )
                == 0
            )
        )
    return built(watching)


def test_a_re_embedding_killed_twice_is_finished_by_another_process(
    core: Core, library: Library, filled: Subject, watching: Engine, database_url: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    first = killed_at(64, database_url, tmp_path, library, watching)
    assert 0 < first < TEXTS
    # Nothing was switched: searched by the old vectors, in this process and in a new one.
    with open_core(url=database_url, home=tmp_path) as fresh:
        for opened in (core, fresh):
            assert opened.libraries.get(library.id).dimensions == 64
            hits = opened.memories.recall(words(7), subject=filled, mode="vector", k=1).hits
            assert hits[0].memory.content == words(7)
    assert state(watching)[0] == ("current", 64, TEXTS)
    (card,) = core.libraries.cards()
    assert (card.reembedding, card.half_built) == (False, True)
    assert (job := core.libraries.job(library.id)) is not None
    assert (job.state, job.input["embedder"]) == ("lost", "hash:128")
    # Meanwhile one memory is added, one changed and one deleted.
    late = core.memories.add(Draft("Moved to Lisbon last spring"), subject=filled).memory
    changed, gone = _two(core, filled)
    core.memories.edit(changed, actor=BOSS, content="Sold a museum in Porto")
    core.memories.delete([gone], actor=BOSS)

    second = killed_at(first + 64, database_url, tmp_path, library, watching)
    assert second > first
    assert [s for s, _, _ in state(watching)] == ["current", "building"]

    began = time.monotonic()
    last = child(database_url, tmp_path, library, seconds=0)
    seen = set()
    while last.poll() is None:
        seen.add(tuple((s, d) for s, d, _ in state(watching)))
        assert core.memories.recall(words(5), subject=filled, mode="vector", k=1).hits
        time.sleep(0.01)
    said, _ = last.communicate()
    assert last.returncode == 0
    assert f"Embedded {TEXTS} memories with hash:128" in said
    # Not after the time a lost job may take to be noticed.
    assert time.monotonic() - began < 15
    # One switch: old current, then new current, never both and never none.
    assert seen <= {
        (("current", 64), ("building", 128)),
        (("retired", 64), ("current", 128)),
        (("current", 128),),
    }
    assert state(watching) == [("current", 128, TEXTS)]
    core.libraries.forget()
    assert core.libraries.get(library.id).dimensions == 128
    health = core.libraries.health(library.id)
    assert health.well, health
    assert late is not None
    for query, wanted in (
        ("Moved to Lisbon last spring", late.id),
        ("Sold a museum in Porto", changed),
    ):
        hits = core.memories.recall(query, subject=filled, mode="vector", k=1).hits
        assert hits[0].memory.id == wanted


def _two(core: Core, who: Subject) -> tuple[str, str]:
    found = [core.memories.recall(words(n), subject=who, k=1).hits[0].memory.id for n in (7, 11)]
    return found[0], found[1]
