"""Where the bytes are: by thread, channel and step, and what is left of them in the newest state.

Sizes are uncompressed lengths, which the server keeps beside each value; `disk` is what the values
take compressed. No blob is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from psycopg import sql

from memcore.errors import NotFound
from memcore.services.checkpoints.ledger import Share, Usage
from memcore.services.checkpoints.retention import freed
from memcore.services.checkpoints.store import CheckpointStore, Conn
from memcore.services.checkpoints.timeline import (
    LONGEST,
    checkpoint_rows,
    growth,
    steps_of,
    write_keys,
)

# What the newest checkpoint of each namespace refers to.
_LIVE = sql.SQL(
    "WITH live AS (SELECT h.thread_id, h.checkpoint_ns, v.key AS channel, v.value AS version FROM"
    " (SELECT thread_id, checkpoint_ns, max(checkpoint_id) AS head FROM checkpoints"
    " WHERE %(thread)s::text IS NULL OR thread_id = %(thread)s GROUP BY 1, 2) AS h"
    " JOIN checkpoints c ON c.thread_id = h.thread_id AND c.checkpoint_ns = h.checkpoint_ns"
    " AND c.checkpoint_id = h.head"
    " CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') AS v)"
    " SELECT {by}, sum(octet_length(b.blob)) AS octets FROM live JOIN checkpoint_blobs b"
    " USING (thread_id, checkpoint_ns, channel, version) GROUP BY {by}"
)


def usage(store: CheckpointStore, thread_id: str | None = None, *, top: int = 50) -> Usage:
    """Bytes of one thread with its growth, or of the whole database with its `top` threads.
    Raises NotFound for an unknown thread."""
    with store.reading() as connection:
        if thread_id is None:
            return _whole(connection, top)
        return _thread(connection, store.where, thread_id)


def _whole(connection: Conn, top: int) -> Usage:
    totals = _one(
        connection,
        "SELECT count(*) AS checkpoints, count(DISTINCT thread_id) AS threads,"
        " coalesce(sum(pg_column_size(checkpoint) + pg_column_size(metadata)), 0) AS rows,"
        " pg_total_relation_size('checkpoints') + pg_total_relation_size('checkpoint_blobs')"
        " + pg_total_relation_size('checkpoint_writes') AS disk FROM checkpoints",
        {},
    )
    writes = _one(
        connection,
        "SELECT coalesce(sum(octet_length(blob)), 0) AS octets FROM checkpoint_writes",
        {},
    )
    orphans = _one(
        connection,
        # Left behind where rows were deleted from one table only.
        "SELECT coalesce(sum(octets), 0) AS octets FROM (SELECT thread_id,"
        " octet_length(blob) AS octets FROM checkpoint_blobs UNION ALL SELECT thread_id,"
        " octet_length(blob) FROM checkpoint_writes) AS stored WHERE NOT EXISTS"
        " (SELECT 1 FROM checkpoints c WHERE c.thread_id = stored.thread_id)",
        {},
    )
    channels = _channels(connection, None)
    live = _live(connection, "thread_id", None)
    rows = connection.execute(
        "SELECT thread_id, sum(octets) AS octets, sum(n) AS n FROM"
        " (SELECT thread_id, sum(octet_length(blob)) AS octets, count(*) AS n"
        " FROM checkpoint_blobs GROUP BY 1 UNION ALL SELECT thread_id,"
        " sum(octet_length(blob)), count(*) FROM checkpoint_writes GROUP BY 1) AS stored"
        " GROUP BY thread_id ORDER BY octets DESC NULLS LAST, thread_id LIMIT %s",
        (top,),
    )
    by_thread = tuple(
        Share(r["thread_id"], int(r["octets"] or 0), int(r["n"]), live.get(r["thread_id"], 0))
        for r in rows
    )
    return Usage(
        "",
        totals["checkpoints"],
        totals["threads"],
        sum(c.octets for c in channels),
        int(writes["octets"]),
        int(totals["rows"]),
        sum(c.live_octets for c in channels),
        int(orphans["octets"]),
        int(totals["disk"]),
        channels,
        by_thread,
    )


def _thread(connection: Conn, where: str, thread_id: str) -> Usage:
    rows, total = checkpoint_rows(connection, thread_id, LONGEST)
    stored: dict[tuple[str, str, str], int] = {}
    disk = 0
    for r in connection.execute(
        "SELECT checkpoint_ns, channel, version, octet_length(blob) AS octets,"
        " pg_column_size(blob) AS disk FROM checkpoint_blobs WHERE thread_id = %s",
        (thread_id,),
    ):
        stored[(r["checkpoint_ns"], r["channel"], r["version"])] = r["octets"] or 0
        disk += r["disk"] or 0
    writes = write_keys(connection, thread_id)
    if not (rows or stored or writes):
        raise NotFound(f"There is no thread {thread_id!r} in {where}.")
    disk += int(
        _one(
            connection,
            "SELECT coalesce(sum(pg_column_size(blob)), 0) AS octets FROM checkpoint_writes"
            " WHERE thread_id = %(thread)s",
            {"thread": thread_id},
        )["octets"]
    )
    channels = _channels(connection, thread_id)
    referred = {
        (r["checkpoint_ns"], channel, str(version))
        for r in rows
        for channel, version in (r["versions"] or {}).items()
    }
    known = {(r["checkpoint_ns"], r["checkpoint_id"]) for r in rows}
    orphans = sum(n for key, n in stored.items() if key not in referred) + sum(
        n for place, found in writes.items() if place not in known for _, n in found
    )
    row_octets = sum(r["octets"] for r in rows)
    return Usage(
        thread_id,
        total,
        1,
        sum(stored.values()),
        sum(n for found in writes.values() for _, n in found),
        row_octets,
        sum(c.live_octets for c in channels),
        orphans if total <= LONGEST else 0,
        disk + row_octets,
        channels,
        growth=growth(steps_of(rows, stored, writes)) if rows else (),
        freed=freed(connection, thread_id, datetime.now(UTC)),
    )


def _channels(connection: Conn, thread_id: str | None) -> tuple[Share, ...]:
    """Blobs by channel, largest first, beside what the newest checkpoints refer to."""
    values = {"thread": thread_id}
    live = _live(connection, "channel", thread_id)
    rows = connection.execute(
        "SELECT channel, count(*) AS n, coalesce(sum(octet_length(blob)), 0) AS octets"
        " FROM checkpoint_blobs WHERE %(thread)s::text IS NULL OR thread_id = %(thread)s"
        " GROUP BY channel ORDER BY octets DESC, channel",
        values,
    )
    return tuple(
        Share(r["channel"], int(r["octets"]), r["n"], live.get(r["channel"], 0)) for r in rows
    )


def _live(connection: Conn, by: str, thread_id: str | None) -> dict[str, int]:
    query = _LIVE.format(by=sql.Identifier(by))
    rows = connection.execute(query, {"thread": thread_id})
    return {r[by]: int(r["octets"] or 0) for r in rows}


def _one(connection: Conn, query: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return row
