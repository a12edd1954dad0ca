"""What storing a memory costs above the SQL it cannot do without.

    python -m benchmarks.add                  # one by one, then in bulk
    python -m benchmarks.add --memories 2000

One by one: `add_explicit_memory` (clean, judge against the neighbours, store row, vector and
decision) against a transaction that inserts the same row and vector through psycopg and commits.
The two take turns, so that whatever else the machine does hits both alike; medians and ratio.

In bulk: `add_many` against COPY of the same rows and vectors. Vectors are ready made in both: an
embedder's time is not ours to measure here.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.worlds import USERS, build, driver, sentence, vectors
from memcore.core import open_core
from memcore.models import Draft, Library, Subject
from memcore.rules import lexical
from memcore.text import content_hash

_ROW = """
INSERT INTO memories (library_id, user_id, scope, scope_id, memory_type, content, confidence,
    created_by, content_hash, vector_id, keywords, id)
VALUES (%s, %s, 'user', %s, 'fact', %s, 0.8, %s, %s, %s, array_to_tsvector(%s), %s)
"""
_VECTOR = """
INSERT INTO embeddings (collection_id, memory_id, content_hash, embedding)
VALUES (%s, %s, %s, %s)
"""


def row(library: Library, user: str, text: str) -> tuple[list[Any], str, str]:
    """Values of `_ROW`, the id and the hash."""
    memory_id, digest = str(uuid.uuid4()), content_hash(text)
    terms = list(lexical.index_terms(text))
    return (
        [library.id, user, user, text, user, digest, memory_id, terms, memory_id],
        memory_id,
        digest,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--stored", type=int, default=20_000, help="memories there already")
    parser.add_argument("--memories", type=int, default=400)
    parser.add_argument("--bulk", type=int, default=2_000)
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="mb-", dir="/tmp"))
    home.chmod(0o755)
    chance = np.random.default_rng(3)
    try:
        with open_core(home=home) as core, driver(core) as raw:
            library = build(core, arguments.stored, 384).library
            made = vectors(arguments.memories, 384, chance)
            embedder = core.runtime.embedder_for(library)
            spent: dict[str, list[float]] = {"add": [], "insert": []}
            for i, vector in enumerate(made):
                embedder.embed_documents = lambda _, v=vector: v[None]  # type: ignore[method-assign]
                user = f"u{chance.integers(USERS)}"
                for way in chance.permutation(["add", "insert"]):
                    text = sentence(chance, 10**6 + 2 * i + (way == "add"))
                    started = time.perf_counter()
                    if way == "add":
                        added = core.memories.add_explicit_memory(
                            text, subject=Subject(library.id, user)
                        )
                        assert added.memory is not None, added.verdict
                    else:
                        values, memory_id, digest = row(library, user, text)
                        with raw.transaction():
                            raw.execute(_ROW, values)
                            raw.execute(_VECTOR, [library.collection_id, memory_id, digest, vector])
                    if i >= arguments.memories // 5:  # the first fifth warms up
                        spent[str(way)].append((time.perf_counter() - started) * 1e3)
            ours, floor = (statistics.median(spent[way]) for way in ("add", "insert"))
            print(f"one by one: add {ours:.2f} ms, insert transaction {floor:.2f} ms, "
                  f"ratio {ours / floor:.2f}")  # fmt: skip
            bulk(core, raw, library, arguments.bulk, chance)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def bulk(core: Any, raw: Any, library: Library, count: int, chance: np.random.Generator) -> None:
    texts = [sentence(chance, 10**7 + i) for i in range(2 * count)]
    made = vectors(2 * count, 384, chance)
    started = time.perf_counter()
    rows = [row(library, "u1", text) for text in texts[:count]]
    with raw.transaction():
        with raw.cursor().copy(
            "COPY memories (library_id, user_id, scope, scope_id, memory_type, content, "
            "confidence, created_by, content_hash, vector_id, keywords, id) FROM STDIN"
        ) as copy:
            for values, _, _ in rows:
                owner, user, place, text, by, digest, vector_id, terms, memory_id = values
                lexemes = " ".join(f"'{term}'" for term in sorted(terms))
                copy.write_row((owner, user, "user", place, "fact", text, 0.8, by, digest,
                                vector_id, lexemes, memory_id))  # fmt: skip
        with raw.cursor().copy(
            "COPY embeddings (collection_id, memory_id, content_hash, embedding) "
            "FROM STDIN (FORMAT BINARY)"
        ) as copy:
            copy.set_types(["int8", "uuid", "text", "vector"])
            for (_, memory_id, digest), vector in zip(rows, made, strict=False):
                copy.write_row((library.collection_id, uuid.UUID(memory_id), digest, vector))
    floor = time.perf_counter() - started

    ready = dict(zip(texts[count:], made[count:], strict=True))

    def embed(asked: Sequence[str]) -> Any:
        return np.stack([ready[text] for text in asked])

    core.runtime.embedder_for(library).embed_documents = embed
    started = time.perf_counter()
    judged = core.memories.add_many(
        [Draft(text) for text in texts[count:]], subject=Subject(library.id, "u2")
    )
    ours = time.perf_counter() - started
    assert all(item.memory for item in judged)
    print(f"in bulk: add_many {count / ours:,.0f} rows/s, COPY {count / floor:,.0f} rows/s, "
          f"ratio {ours / floor:.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
