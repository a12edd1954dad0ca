"""What a recall costs above the SQL it cannot do without.

    python -m benchmarks.search                   # 10k and 100k memories, 384 and 1536 dimensions
    python -m benchmarks.search --sizes 10000 1000000 --dimensions 384
    python -m benchmarks.search --sizes 10000 1000000 --per-user 10

A recall reads one person's scopes, every memory of them: with 1,000 users however many memories
there are, it reads ten times as much where there are ten times as many. `--per-user` lets the users
grow with the memories instead.

Memories of 1,000 users are copied into an embedded PostgreSQL of its own, then three ways of
answering the same query take turns, query by query, so that whatever else the machine does hits
all alike. Medians in milliseconds and their ratios; trust the ratios.

- vector floor: the least SQL that answers at all: the visibility predicate, cosine distance, the
  best eight rows, through psycopg, prepared, binary, rows left as tuples.
- recall floor: the statement of memcore/database/recall.py (both channels, every candidate,
  counts), sent and fetched the same way, rows left as tuples.
- search_memories: the whole, from text to explained hits, with the vector ready made.

recall@10 compares the ten nearest candidates with the ten an exact scan in numpy finds.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from benchmarks.worlds import USERS, World, build, driver, sentence, vectors
from memcore.core import open_core
from memcore.database import queries, recall
from memcore.models import Actor, Subject
from memcore.rules import lexical
from memcore.services.memories.recalling import candidates_each

_VECTOR_FLOOR = """
SELECT {columns}, e.embedding <=> $3 AS distance
FROM memories JOIN embeddings_{collection} e ON e.memory_id = memories.id
WHERE memories.library_id = $1 AND memories.scope = 'user'
    AND memories.scope_id = $2 AND memories.status = 'active'
    AND (memories.expires_at IS NULL OR memories.expires_at > now())
ORDER BY distance LIMIT 8
"""


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    out = act()
    return (time.perf_counter() - started) * 1e3, out


def _fetched(cursor: Any, sql: str, values: list[Any]) -> Any:
    return cursor.execute(sql, values, binary=True).fetchall()


def measure(world: World, count: int, people: int) -> tuple[dict[str, float], float]:
    """Median milliseconds of each way, and recall@10."""
    core, library = world.core, world.library
    chance = np.random.default_rng(1)
    asked = vectors(count, library.dimensions, chance)
    embedder = core.runtime.embedder_for(library)
    settings = core.libraries.settings(library.id).settings.ranking
    each = candidates_each(settings)
    ways: dict[str, list[float]] = {"vector floor": [], "recall floor": [], "search_memories": []}
    right = 0
    floor = _VECTOR_FLOOR.format(
        columns=", ".join(f"memories.{column.name}" for column in queries.MEMORY_COLUMNS),
        collection=library.collection_id,
    )
    with driver(core) as connection, psycopg.RawCursor(connection) as cursor:
        for i, vector in enumerate(asked):
            number = int(chance.integers(people))
            who = Subject(library.id, f"u{number}")
            query = sentence(chance, i)
            embedder.embed_query = lambda _, vector=vector: vector  # type: ignore[method-assign]
            sql, values = recall.statement(
                who, Actor(who.user_id), settings, share_between_agents=False,
                terms=lexical.query_terms(query), each=each, collection_id=library.collection_id,
                vector=vector,
            )  # fmt: skip
            acts: dict[str, Callable[[], Any]] = {
                "vector floor": partial(_fetched, cursor, floor, [library.id, who.user_id, vector]),
                "recall floor": partial(_fetched, cursor, sql, values),
                "search_memories": partial(core.memories.search_memories, query, subject=who),
            }
            for name in chance.permutation(list(acts)):
                spent, out = timed(acts[str(name)])
                if i >= count // 5:  # the first fifth warms up
                    ways[str(name)].append(spent)
                if name == "search_memories":
                    mine = np.flatnonzero(world.users == number)
                    best = mine[np.argsort(-(world.vectors[mine] @ vector), kind="stable")[:10]]
                    nearest = sorted(out.candidates, key=lambda c: -c.similarity)[:10]
                    right += len({world.ids[j] for j in best} & {c.memory.id for c in nearest})
    wanted = count * min(10, len(world.ids) // people)
    return {name: statistics.median(ms) for name, ms in ways.items()}, right / wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[384, 1536])
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--per-user", type=int, help="memories of each user; default: 1,000 users")
    arguments = parser.parse_args()
    print("dimensions  memories  vector floor  recall floor  search_memories  "
          "÷ vector floor  ÷ recall floor  ÷ smallest  recall@10")  # fmt: skip
    for dimensions in arguments.dimensions:
        smallest = None
        for size in arguments.sizes:
            people = size // arguments.per_user if arguments.per_user else USERS
            home = Path(tempfile.mkdtemp(prefix="mb-", dir="/tmp"))
            home.chmod(0o755)
            try:
                with open_core(home=home) as core:
                    ms, found = measure(
                        build(core, size, dimensions, people), arguments.queries, people
                    )
            finally:
                shutil.rmtree(home, ignore_errors=True)
            ours = ms["search_memories"]
            smallest = smallest or ours
            print(
                f"{dimensions:10d}  {size:8d}  {ms['vector floor']:12.2f}  "
                f"{ms['recall floor']:12.2f}  {ours:15.2f}  {ours / ms['vector floor']:14.2f}  "
                f"{ours / ms['recall floor']:14.2f}  {ours / smallest:10.2f}  {found:9.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
