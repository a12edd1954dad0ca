"""A thread's checkpoints in order, with forks, subgraph calls and bytes per step. No blob of the
agent's state is read.

Sizes are joined here and not in SQL: the planner misjudges rows per thread, and a join by thread
can turn quadratic on the few large threads that matter most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from psycopg import sql

from memcore.errors import InvalidInput, NotFound
from memcore.services.checkpoints.index import (
    MOST_CONTROL,
    holds,
    moment,
    path_column,
    step_of,
)
from memcore.services.checkpoints.ledger import Growth
from memcore.services.checkpoints.store import CheckpointStore, Conn
from memcore.services.checkpoints.tasks import (
    SENT_TASK,
    TASKS,
    WriteKey,
    named,
    next_nodes,
    read_tasks,
    status_of,
)
from memcore.services.checkpoints.values import Step, ThreadStatus, Timeline

LONGEST = 5000

BlobKey = tuple[str, str, str]
"""Namespace, channel, version."""


def timeline(store: CheckpointStore, thread_id: str, *, limit: int = 1000) -> Timeline:
    """The newest `limit` checkpoints of a thread, newest first, over all namespaces. Raises
    NotFound where the thread has none."""
    if not 1 <= limit <= LONGEST:
        raise InvalidInput(f"limit is {limit}; a timeline has 1 to {LONGEST} checkpoints.")
    with store.reading() as connection:
        rows, total = checkpoint_rows(connection, thread_id, limit)
        if not rows:
            raise NotFound(
                f"There is no thread {thread_id!r} in {store.where}.",
                hint="It may have been pruned: look among the archived ones.",
            )
        sizes = blob_sizes(connection, thread_id)
        writes = write_keys(connection, thread_id)
        idle = idle_controls(connection, thread_id)
    return Timeline(thread_id, steps_of(rows, sizes, writes, idle), total, total > len(rows))


def checkpoint_rows(
    connection: Conn, thread_id: str, limit: int = LONGEST
) -> tuple[list[dict[str, Any]], int]:
    """Checkpoints without values, newest first, and how many there are in all."""
    rows = connection.execute(
        "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, metadata,"
        " checkpoint ->> 'ts' AS ts, checkpoint -> 'channel_versions' AS versions,"
        " checkpoint -> 'versions_seen' AS seen, checkpoint -> 'updated_channels' AS updated,"
        " ARRAY(SELECT jsonb_object_keys(coalesce(checkpoint -> 'channel_values', '{}')))"
        " AS inline, octet_length(checkpoint::text) + octet_length(metadata::text) AS octets,"
        " count(*) OVER () AS total FROM checkpoints WHERE thread_id = %s"
        " ORDER BY checkpoint_id DESC, checkpoint_ns LIMIT %s",
        (thread_id, limit),
    ).fetchall()
    return rows, rows[0]["total"] if rows else 0


def blob_sizes(connection: Conn, thread_id: str) -> dict[BlobKey, int]:
    """Bytes of each stored blob of the thread."""
    return {
        (r["checkpoint_ns"], r["channel"], r["version"]): r["octets"] or 0
        for r in connection.execute(
            "SELECT checkpoint_ns, channel, version, octet_length(blob) AS octets"
            " FROM checkpoint_blobs WHERE thread_id = %s AND type <> 'empty'",
            (thread_id,),
        )
    }


def idle_controls(connection: Conn, thread_id: str) -> frozenset[BlobKey]:
    """Stored values that make no node run: joins that still lack a source, work sent to nobody."""
    rows = connection.execute(
        "SELECT checkpoint_ns, channel, version, type, octet_length(blob) AS octets,"
        " CASE WHEN channel <> %(sends)s AND octet_length(blob) <= %(most)s THEN blob END AS blob"
        " FROM checkpoint_blobs WHERE thread_id = %(thread)s AND type <> 'empty'"
        " AND (channel = %(sends)s OR channel LIKE 'branch:to:%%' OR channel LIKE 'join:%%')",
        {"thread": thread_id, "sends": TASKS, "most": MOST_CONTROL},
    )
    return frozenset(
        (r["checkpoint_ns"], r["channel"], r["version"])
        for r in rows
        if not holds(r["channel"], r["octets"] or 0, r["type"], r["blob"])
    )


def write_keys(
    connection: Conn, thread_id: str
) -> dict[tuple[str, str], list[tuple[WriteKey, int]]]:
    """The writes recorded on each checkpoint (namespace, id) of the thread, with their bytes."""
    query = sql.SQL(
        "SELECT w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx, w.channel,"
        " {path} AS task_path, octet_length(w.blob) AS octets FROM checkpoint_writes w"
        " WHERE w.thread_id = %s ORDER BY task_path, w.task_id, w.idx"
    ).format(path=path_column(connection))
    out: dict[tuple[str, str], list[tuple[WriteKey, int]]] = {}
    for r in connection.execute(query, (thread_id,)):
        key = WriteKey(r["task_id"], r["idx"], r["channel"], r["task_path"])
        place = (r["checkpoint_ns"], r["checkpoint_id"])
        out.setdefault(place, []).append((key, r["octets"] or 0))
    return out


def steps_of(
    rows: Sequence[Mapping[str, Any]],
    sizes: Mapping[BlobKey, int],
    writes: Mapping[tuple[str, str], list[tuple[WriteKey, int]]],
    idle: Collection[BlobKey] = (),
) -> tuple[Step, ...]:
    present = {(r["checkpoint_ns"], r["checkpoint_id"]) for r in rows}
    oldest = rows[-1]["checkpoint_id"]
    added, state = _octets(rows, sizes)
    children: dict[tuple[str, str], int] = {}
    for r in rows:
        if r["parent_checkpoint_id"]:
            place = (r["checkpoint_ns"], r["parent_checkpoint_id"])
            children[place] = children.get(place, 0) + 1
    steps = []
    for i, r in enumerate(rows):
        place = (r["checkpoint_ns"], r["checkpoint_id"])
        parent = r["parent_checkpoint_id"]
        versions = r["versions"] or {}
        recorded = writes.get(place, [])
        keys = {c: (r["checkpoint_ns"], c, str(v)) for c, v in versions.items()}
        stored = {c for c, key in keys.items() if key in sizes and key not in idle}
        tasks = read_tasks(w for w, _ in recorded)
        due = next_nodes(versions, r["seen"] or {}, {*r["inline"], *stored}, tasks)
        # Only the end of a line waits or fails: one with a child was passed.
        passed = children.get(place, 0) > 0
        made_by = [w for w, _ in writes.get((r["checkpoint_ns"], parent or ""), [])]
        steps.append(
            Step(
                r["checkpoint_id"],
                r["checkpoint_ns"],
                parent,
                step_of(r["metadata"]),
                str((r["metadata"] or {}).get("source") or ""),
                moment(r["ts"], r["checkpoint_id"]),
                _makers(made_by, r["seen"] or {}),
                tuple(str(c) for c in r["updated"] or ()),
                ThreadStatus.PASSED if passed else status_of(tasks, due, int(TASKS in stored)),
                added[i] + sum(n for _, n in recorded) + r["octets"],
                state[i],
                children=children.get(place, 0),
                parent_missing=bool(
                    parent and (r["checkpoint_ns"], parent) not in present and parent >= oldest
                ),
                metadata=r["metadata"] or {},
            )
        )
    return lanes(steps)


def _makers(writes: Iterable[WriteKey], seen: Mapping[str, Any]) -> tuple[str, ...]:
    """The nodes whose writes made a checkpoint with these `versions_seen`."""
    # A node that only ever was sent work is known there, but saw no channel.
    sent = [n for n, known in seen.items() if not known and not n.startswith("__")]
    nodes = [t.node for t in read_tasks(writes) if t.finished and t.node]
    return named(sent[0] if n == SENT_TASK and len(sent) == 1 else n for n in nodes)


def _octets(
    rows: Sequence[Mapping[str, Any]], sizes: Mapping[BlobKey, int]
) -> tuple[list[int], list[int]]:
    """For each row (newest first): bytes of blobs it is the first to refer to, and of all it
    refers to."""
    first: dict[BlobKey, int] = {}
    state = [0] * len(rows)
    for i, r in enumerate(rows):
        for channel, version in (r["versions"] or {}).items():
            key = (r["checkpoint_ns"], channel, str(version))
            if key in sizes:
                state[i] += sizes[key]
                first[key] = i  # rows come newest first, so the last one set is the oldest
    added = [0] * len(rows)
    for key, i in first.items():
        added[i] += sizes[key]
    return added, state


def lanes(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps with their lane for drawing, in each namespace: lane 0 is the line that ends in the
    newest checkpoint, each other end of a line gets the next one up to where it branches off."""
    by_id = {(s.checkpoint_ns, s.checkpoint_id): s for s in steps}
    lane: dict[tuple[str, str], int] = {}
    used: dict[str, int] = {}
    for s in steps:  # newest first, so the main line is walked first
        at: Step | None = s
        if (s.checkpoint_ns, s.checkpoint_id) in lane:
            continue
        number = used.get(s.checkpoint_ns, 0)
        used[s.checkpoint_ns] = number + 1
        while at is not None and (at.checkpoint_ns, at.checkpoint_id) not in lane:
            lane[(at.checkpoint_ns, at.checkpoint_id)] = number
            at = by_id.get((at.checkpoint_ns, at.parent_checkpoint_id or ""))
    return tuple(replace(s, lane=lane[(s.checkpoint_ns, s.checkpoint_id)]) for s in steps)


def growth(steps: Sequence[Step]) -> tuple[Growth, ...]:
    """What a thread took to store, step by step, oldest first: everything kept so far beside the
    state at that moment."""
    out = []
    stored = 0
    for s in sorted(steps, key=lambda s: (s.checkpoint_id, s.checkpoint_ns)):
        stored += s.octets
        out.append(Growth(s.checkpoint_id, s.step, s.created_at, s.octets, stored, s.state_octets))
    return tuple(out)


def namespace_label(ns: str) -> str:
    """A namespace for people: `plan:3a3b…|search:77…` → plan › search; '' → root graph."""
    if not ns:
        return "root graph"
    return " › ".join(part.split(":", 1)[0] for part in ns.split("|"))


def task_names(namespaces: Iterable[str]) -> dict[str, str]:
    """Task id → node, from subgraph namespaces (`node:<task id>`), which name both."""
    out = {}
    for ns in namespaces:
        node, _, task_id = ns.rsplit("|", 1)[-1].partition(":")
        if task_id:
            out[task_id] = node
    return out
