"""Delta channels: channels that store no value of their own at most checkpoints.

LangGraph's `DeltaChannel` (beta) keeps a snapshot now and then; between snapshots the value is
rebuilt from the writes recorded on the ancestors (base.get_delta_channel_history). The graph's
reducer is not known here and is not imported: chat messages are folded by their ids, as LangGraph's
own reducer does; anything else is shown as the snapshot and the writes since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from memcore.services.checkpoints.chat import fold, is_message
from memcore.services.checkpoints.decode import MAX_BYTES, decode, unwrap_delta
from memcore.services.checkpoints.index import path_column
from memcore.services.checkpoints.store import Conn

MOST_ANCESTORS = 5000
COUNTERS = "counters_since_delta_snapshot"
JS_MARK = "delta_writes_versioned"


@dataclass(frozen=True, slots=True)
class Rebuilt:
    value: Any
    octets: int
    writes: int
    problem: str | None
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ancestry:
    """The way back to the last stored value of a channel."""

    checkpoints: tuple[str, ...]
    """The ancestors whose writes are needed, nearest first; the last one holds the snapshot."""
    seed_version: str | None
    inline: Any = None
    complete: bool = True
    """False: an ancestor it needs is not stored."""


def delta_channels(connection: Conn, thread_id: str, ns: str) -> frozenset[str]:
    """Names of the delta channels of a namespace, told from the counters LangGraph keeps."""
    rows = connection.execute(
        "SELECT DISTINCT jsonb_object_keys(metadata -> %s) AS name FROM checkpoints"
        " WHERE thread_id = %s AND checkpoint_ns = %s"
        " AND jsonb_typeof(metadata -> %s) = 'object'",
        (COUNTERS, thread_id, ns, COUNTERS),
    )
    return frozenset(r["name"] for r in rows)


def walk(
    parents: Mapping[str, str | None],
    stored: Mapping[str, tuple[bool, Any, str | None]],
    start: str,
) -> Ancestry:
    """Ancestors of `start` (itself not counted) up to the first with a stored value. `stored`:
    checkpoint → (has a blob, inline value, version) of the channel. Pure."""
    chain: list[str] = []
    at = parents.get(start)
    seen = {start}
    while at is not None and at not in seen:
        if at not in stored:
            return Ancestry(tuple(chain), None, complete=False)
        seen.add(at)
        chain.append(at)
        has_blob, inline, version = stored[at]
        if has_blob or inline is not None:
            return Ancestry(tuple(chain), version, None if has_blob else inline)
        at = parents.get(at)
    return Ancestry(tuple(chain), None)


def delta_value(
    connection: Conn, thread_id: str, ns: str, checkpoint_id: str, channel: str
) -> Rebuilt:
    """The value of a delta channel at a checkpoint that does not store it."""
    rows = connection.execute(
        "SELECT c.checkpoint_id, c.parent_checkpoint_id,"
        " c.checkpoint -> 'channel_versions' ->> %s AS version,"
        " c.checkpoint -> 'channel_values' -> %s AS inline,"
        " EXISTS (SELECT 1 FROM checkpoint_blobs b WHERE b.thread_id = c.thread_id"
        " AND b.checkpoint_ns = c.checkpoint_ns AND b.channel = %s AND b.type <> 'empty'"
        " AND b.version = c.checkpoint -> 'channel_versions' ->> %s) AS has_blob"
        " FROM checkpoints c WHERE c.thread_id = %s AND c.checkpoint_ns = %s"
        " AND c.checkpoint_id <= %s ORDER BY c.checkpoint_id DESC LIMIT %s",
        (channel, channel, channel, channel, thread_id, ns, checkpoint_id, MOST_ANCESTORS),
    ).fetchall()
    way = walk(
        {r["checkpoint_id"]: r["parent_checkpoint_id"] for r in rows},
        {r["checkpoint_id"]: (r["has_blob"], r["inline"], r["version"]) for r in rows},
        checkpoint_id,
    )
    types: set[str] = set()
    problem = None if way.complete else "an ancestor that its value needs is not stored"
    base: Any = way.inline
    octets = 0
    if way.seed_version is not None and way.inline is None:
        blob = connection.execute(
            "SELECT type, octet_length(blob) AS octets, CASE WHEN octet_length(blob) <= %s"
            " THEN blob END AS blob FROM checkpoint_blobs WHERE thread_id = %s"
            " AND checkpoint_ns = %s AND channel = %s AND version = %s",
            (MAX_BYTES, thread_id, ns, channel, way.seed_version),
        ).fetchone()
        if blob is not None:
            seed = decode(blob["type"], blob["blob"])
            octets += blob["octets"] or 0
            base = unwrap_delta(seed.value)
            problem = problem or seed.problem
            types |= set(seed.types)
    writes = []
    for kind, data in _writes(connection, thread_id, ns, channel, way.checkpoints):
        found = decode(kind, data)
        octets += len(data or b"")
        writes.append(found.value)
        problem = problem or found.problem
        types |= set(found.types)
    return Rebuilt(_folded(base, writes), octets, len(writes), problem, tuple(sorted(types)))


def _writes(
    connection: Conn, thread_id: str, ns: str, channel: str, chain: Iterable[str]
) -> list[tuple[str, bytes]]:
    """Recorded writes to the channel on the ancestors, in the order they were applied."""
    query = sql.SQL(
        "SELECT w.type, w.blob FROM checkpoint_writes w WHERE w.thread_id = %s"
        " AND w.checkpoint_ns = %s AND w.channel = %s AND w.checkpoint_id = ANY(%s)"
        " ORDER BY w.checkpoint_id, {path}, w.task_id, w.idx"
    ).format(path=path_column(connection))
    rows = connection.execute(query, (thread_id, ns, channel, list(chain)))
    return [(r["type"], bytes(r["blob"])) for r in rows]


def _folded(base: Any, writes: list[Any]) -> Any:
    items = [x for w in writes for x in (w if isinstance(w, list) else [w])]
    if items and all(is_message(item) for item in items):
        return fold(base, writes)
    if not writes:
        return base
    return {"snapshot": base, "writes since": writes}
