"""Reading and pruning LangGraph threads at 100,000 checkpoints, against PostgresSaver itself.

    python benchmarks/checkpoints.py [--threads 2500] [--turns 13]

A real agent writes one thread; the server multiplies it. Prints medians and, beside each, how many
times longer the saver takes for the same answer. Needs the `langgraph` extra and 2 GB of disk.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from memcore.core import open_core
from memcore.database.embedded import Cluster
from memcore.models import Actor
from memcore.services.checkpoints import Policy

ME = Actor("benchmark", operator=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=2500)
    options.add_argument("--turns", type=int, default=13, help="of 500 characters, 3 steps each")
    options.add_argument("--repeat", type=int, default=5)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="mc-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with Cluster.at(Path(folder), fsync=False).use() as cluster:
            run(cluster, Path(folder), chosen)


def run(cluster: Cluster, home: Path, chosen: argparse.Namespace) -> None:
    with open_core(url=cluster.url(), home=home) as core:
        write_one(core.checkpoints.saver(), chosen.turns)
        multiply(cluster.dsn(), chosen.threads)
        with saver_on(cluster.dsn()) as saver:
            compare(core.checkpoints, saver, chosen.repeat)
        retention(core.checkpoints)


def write_one(saver: Any, turns: int) -> None:
    from typing import Annotated

    from langgraph.graph import START, StateGraph, add_messages
    from langgraph.types import interrupt
    from typing_extensions import TypedDict

    def text(seed: int) -> str:
        words = (
            hashlib.sha256(f"{seed} {i}".encode()).hexdigest()[: 2 + i % 7] for i in range(100)
        )
        return " ".join(words)[:500]

    def speak(state: Any) -> Any:
        if state["messages"][-1].content.startswith("last"):
            interrupt({"question": "May I?"})
        said = {"role": "assistant", "content": text(len(state["messages"]))}
        return {"messages": [said], "todos": [{"content": "answer", "status": "done"}]}

    graph = StateGraph(TypedDict("S", {"messages": Annotated[list, add_messages], "todos": list}))
    graph.add_node("speak", speak)
    graph.add_edge(START, "speak")
    agent = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "seed", "user_id": "u0"}}
    for turn in range(turns):
        said = text(1000 + turn) if turn < turns - 1 else "last question"
        agent.invoke({"messages": [{"role": "user", "content": said}]}, config)


def multiply(dsn: str, threads: int) -> None:
    """Every thread gets the seed's rows with ids, and so times, of its own."""
    shifted = (
        "substr({0}, 1, 2) || lpad(to_hex(n / 4096), 3, '0') || '00'"
        " || substr({0}, 8, 17) || lpad(to_hex(n % 4096), 3, '0') || substr({0}, 28)"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        for table, names in (
            ("checkpoints", ("checkpoint_id", "parent_checkpoint_id")),
            ("checkpoint_blobs", ()),
            ("checkpoint_writes", ("checkpoint_id",)),
        ):
            columns = [
                r[0]
                for r in connection.execute(
                    "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass"
                    " AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                    (table,),
                )
            ]
            values = [
                "'thread-' || lpad(n::text, 6, '0')" if c == "thread_id"
                else shifted.format(f"t.{c}") if c in names
                else "t.metadata || jsonb_build_object('user_id', 'u' || n % 97)"
                if c == "metadata"
                else f"t.{c}"
                for c in columns
            ]  # fmt: skip
            statement = (
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)}"  # noqa: S608
                f" FROM {table} t, generate_series(1, {threads}) AS n WHERE thread_id = 'seed'"
            )
            connection.execute(statement)
            connection.execute(f"VACUUM ANALYZE {table}")
        row = connection.execute(
            "SELECT count(*), pg_size_pretty(pg_total_relation_size('checkpoints')"
            " + pg_total_relation_size('checkpoint_blobs')"
            " + pg_total_relation_size('checkpoint_writes')) FROM checkpoints"
        ).fetchone()
        assert row is not None
        print(f"{row[0]:,} checkpoints of {threads + 1:,} threads, {row[1]} on disk\n")


@contextmanager
def saver_on(dsn: str) -> Iterator[Any]:
    from langgraph.checkpoint.postgres import PostgresSaver

    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        yield PostgresSaver(connection)


def compare(ours: Any, saver: Any, repeat: int) -> None:
    def newest_threads() -> None:
        """As far as the saver can: it lists checkpoints until they belong to 50 threads."""
        seen: set[str] = set()
        before = None
        while len(seen) < 50:
            page = list(saver.list(None, before=before, limit=500))
            seen |= {t.config["configurable"]["thread_id"] for t in page}
            before = page[-1].config

    config = {"configurable": {"thread_id": "thread-000007"}}
    pairs: list[tuple[str, Callable[[], Any], Callable[[], Any] | None]] = [
        ("50 newest threads", lambda: ours.threads(actor=ME), newest_threads),
        ("one thread by id", lambda: ours.threads("thread-000007", match="exact", actor=ME), None),
        ("threads of one user", lambda: ours.threads(actor=ME, metadata={"user_id": "u7"}),
         lambda: list(saver.list(None, filter={"user_id": "u7"}, limit=50 * 40))),
        ("waiting threads", lambda: ours.threads(actor=ME, status="waiting"), None),
        ("unfinished threads", lambda: ours.threads(actor=ME, status="unfinished"), None),
        ("threads by size", lambda: ours.threads(actor=ME, order="size"), None),
        ("timeline of a thread", lambda: ours.timeline("thread-000007", actor=ME),
         lambda: list(saver.list(config))),
        ("one checkpoint decoded", lambda: ours.checkpoint("thread-000007", actor=ME),
         lambda: saver.get_tuple(config)),
        ("usage of a thread", lambda: ours.usage("thread-000007", actor=ME), None),
        ("usage of all", lambda: ours.usage(actor=ME), None),
    ]  # fmt: skip
    print(f"{'':28}{'ours, ms':>10}{'saver, ms':>12}{'ratio':>9}")
    for name, mine, theirs in pairs:
        a = timed(mine, repeat)
        b = timed(theirs, max(1, repeat // 2)) if theirs else None
        tail = f"{b:12.1f}{b / a:8.1f}×" if b else ""
        print(f"{name:28}{a:10.1f}{tail}")


def timed(act: Callable[[], Any], repeat: int) -> float:
    """Median milliseconds, after one run that warms up."""
    act()
    spent = []
    for _ in range(repeat):
        start = time.perf_counter()
        act()
        spent.append((time.perf_counter() - start) * 1000)
    return statistics.median(spent)


def retention(ours: Any) -> None:
    start = time.perf_counter()
    plan = ours.plan_prune(Policy(keep_last=1), actor=ME)
    planned = time.perf_counter() - start
    print(f"\ndry run of keep_last=1: {plan.checkpoints:,} checkpoints of {plan.examined:,} "
          f"threads in {planned:.1f} s")  # fmt: skip
    few = ours.plan_prune(
        Policy(keep_last=1, thread_ids=tuple(f"thread-{n:06}" for n in range(1, 201))), actor=ME
    )
    start = time.perf_counter()
    report = ours.prune(few, actor=ME)
    spent = time.perf_counter() - start
    ratio = report.octets / report.archived_octets
    print(f"200 threads archived and pruned in {spent:.1f} s: {report.octets / 1e6:.1f} MB became "
          f"{report.archived_octets / 1e6:.2f} MB ({ratio:.0f}×)")  # fmt: skip
    entry = ours.archived(actor=ME, limit=1)[0]
    start = time.perf_counter()
    ours.restore(entry.id, actor=ME)
    print(f"one thread restored in {(time.perf_counter() - start) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
