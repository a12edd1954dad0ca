"""The thread list, by our own SQL. No blob of the agent's state is read: sizes come from the length
the server keeps beside each value, activity from the checkpoint ids, which sort by time. Only
LangGraph's control channels, sets of a few node names, are looked into, to tell what is due.

`PostgresSaver.list` decodes every blob of every checkpoint it passes (benchmarks/checkpoints.py).
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from memcore.errors import InvalidInput
from memcore.services.checkpoints.decode import decode
from memcore.services.checkpoints.store import CheckpointStore, Conn
from memcore.services.checkpoints.tasks import (
    CONTROL,
    ERROR,
    INTERRUPT,
    NULL_TASK,
    RESUME,
    SCHEDULED,
    SENT_TASK,
    START,
    TASKS,
    WriteKey,
    is_control,
    named,
    next_nodes,
    read_tasks,
    ready,
    status_of,
)
from memcore.services.checkpoints.values import Thread, ThreadPage, ThreadStatus

MATCHES = ("exact", "prefix", "contains")
ORDERS = ("activity", "size", "checkpoints", "oldest")
STATUSES = (ThreadStatus.WAITING, ThreadStatus.FAILED, ThreadStatus.UNFINISHED)
"""What the list can be filtered by: all that is not simply finished."""
LARGEST_PAGE = 500
MOST_CONTROL = 64 * 1024
"""Bytes up to which the stored value of a control channel (a set of node names) is read."""
_GREGORIAN = datetime(1582, 10, 15, tzinfo=UTC)

_ORDER_SQL = {
    "activity": "newest DESC, thread_id",
    "oldest": "newest, thread_id",
    "checkpoints": "checkpoints DESC, newest DESC, thread_id",
    "size": "octets DESC, newest DESC, thread_id",
}


def threads(
    store: CheckpointStore,
    *,
    search: str = "",
    match: str = "contains",
    metadata: Mapping[str, Any] | None = None,
    status: ThreadStatus | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    order: str = "activity",
    limit: int = 50,
    offset: int = 0,
) -> ThreadPage:
    """One page of threads, newest activity first. `search` is compared with the thread id exactly,
    as prefix, or anywhere in it (characters like % and _ mean themselves); `metadata` must be
    contained in that of one of its checkpoints (7 and "7" find either); `status` is waiting,
    failed or unfinished; `since` and `until` bound the last activity."""
    if match not in MATCHES:
        raise InvalidInput(f"match is {match!r}, but takes one of {', '.join(MATCHES)}.")
    if order not in ORDERS:
        raise InvalidInput(f"order is {order!r}, but takes one of {', '.join(ORDERS)}.")
    if not 1 <= limit <= LARGEST_PAGE or offset < 0:
        raise InvalidInput(f"limit is {limit}, offset {offset}; a page has 1 to {LARGEST_PAGE}.")
    if status is not None and status not in STATUSES:
        words = ", ".join(STATUSES)
        raise InvalidInput(f"Threads can be filtered by {words}, not by {status}.")
    if any(at is not None and at.tzinfo is None for at in (since, until)):
        raise InvalidInput("since and until need a time zone.")
    source = store.source()
    if not source.ready:
        return ThreadPage((), 0, match, False, source)
    with store.reading() as connection:
        where, values = _filters(connection, search, match, metadata, status)
        active = _active(since, until)
        sizes = sql.SQL("")
        octets = sql.SQL("0 AS octets")
        if order == "size":
            sizes = sql.SQL(_SIZES)
            octets = sql.SQL("coalesce(sum(octets), 0) AS octets")
        query = sql.SQL(
            "WITH found AS (SELECT thread_id, max(checkpoint_id) AS newest,"
            " min(checkpoint_id) AS oldest, count(*) AS checkpoints,"
            " max(checkpoint_id) FILTER (WHERE checkpoint_ns = '') AS head"
            " FROM checkpoints{where} GROUP BY thread_id{active})"
            " SELECT thread_id, newest, oldest, checkpoints, head, {octets},"
            " count(*) OVER () AS total FROM found{sizes}"
            " GROUP BY thread_id, newest, oldest, checkpoints, head"
            " ORDER BY {order} LIMIT {limit} OFFSET {offset}"
        ).format(
            where=where,
            active=active,
            octets=octets,
            sizes=sizes,
            order=sql.SQL(_ORDER_SQL[order]),
            limit=limit,
            offset=offset,
        )
        rows = connection.execute(query, values).fetchall()
        total = rows[0]["total"] if rows else 0
        if not rows and offset:
            counted = sql.SQL(
                "SELECT count(*) AS n FROM (SELECT 1 FROM checkpoints{where} GROUP BY thread_id"
                "{active}) AS found"
            ).format(where=where, active=active)
            total = (connection.execute(counted, values).fetchone() or {"n": 0})["n"]
        exact = bool(
            search
            and connection.execute(
                "SELECT 1 FROM checkpoints WHERE thread_id = %s LIMIT 1", (storable(search),)
            ).fetchone()
        )
        return ThreadPage(_described(connection, rows), total, match, exact, source)


_SIZES = (
    " LEFT JOIN (SELECT thread_id, sum(octet_length(blob)) AS octets FROM checkpoint_blobs"
    " GROUP BY thread_id UNION ALL SELECT thread_id, sum(octet_length(blob)) FROM"
    " checkpoint_writes GROUP BY thread_id) AS sized USING (thread_id)"
)


def _active(since: datetime | None, until: datetime | None) -> sql.Composable:
    """The bounds of the last activity, as bounds of the newest id."""
    parts = [
        sql.SQL("max(checkpoint_id) {} {}").format(sql.SQL(sign), id_before(at))
        for sign, at in ((">=", since), ("<", until))
        if at is not None
    ]
    return sql.SQL(" HAVING ") + sql.SQL(" AND ").join(parts) if parts else sql.SQL("")


def _filters(
    connection: Conn,
    search: str,
    match: str,
    metadata: Mapping[str, Any] | None,
    status: ThreadStatus | None,
) -> tuple[sql.Composable, list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if search:
        test = {
            "exact": "thread_id = %s",
            "prefix": "starts_with(thread_id, %s)",
            "contains": "strpos(lower(thread_id), lower(%s)) > 0",
        }[match]
        conditions.append(test)
        values.append(storable(search))
    if metadata:
        each = " AND ".join(["metadata @> ANY(%s)"] * len(metadata))
        test = f"thread_id IN (SELECT thread_id FROM checkpoints WHERE {each})"  # noqa: S608
        conditions.append(test)
        for key, value in metadata.items():
            values.append([Jsonb({storable(key): form}) for form in forms(value, key)])
    if status is not None:
        conditions.append("thread_id = ANY(%s)")
        values.append(standing_at(connection, status))
    if not conditions:
        return sql.SQL(""), values
    return sql.SQL(" WHERE " + " AND ".join(conditions)), values


def storable(text: str) -> str:
    """`text` as PostgreSQL may hold it: the saver drops NUL, and lone surrogates cannot be sent."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def forms(value: Any, key: str = "") -> list[Any]:
    """What a metadata value may be stored as: whoever looks for user 7 does not know whether it was
    saved as a number or as text. Raises InvalidInput for a number that is not finite."""
    if isinstance(value, str):
        text = storable(value)
        try:
            typed = json.loads(text if len(text) > 5 else text.lower())
        except (ValueError, RecursionError):
            return [text]
        scalar = isinstance(typed, (bool, int, float)) and math.isfinite(typed)
        return [text, *forms(typed)] if scalar else [text]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"metadata {key} is {value}, but takes a finite number.")
    if isinstance(value, bool):
        return [value, str(value), str(value).lower()]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return [value, json.dumps(value), str(int(value))]
    if isinstance(value, (int, float)):
        return [value, json.dumps(value)]
    return [value]


def metadata_value(text: str) -> Any:
    """A metadata value as a person types it: JSON where it is a list, a mapping or in quotes,
    else the text itself, which `forms` compares as text and as number."""
    try:
        typed = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return typed if isinstance(typed, (str, list, dict)) else text


_OPEN_TASKS = sql.SQL(
    "SELECT w.thread_id, w.checkpoint_id, w.task_id FROM checkpoint_writes w"
    " WHERE w.channel = %(channel)s AND w.checkpoint_ns = ''{only}"
    " AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.thread_id = w.thread_id"
    " AND c.checkpoint_ns = '' AND c.checkpoint_id > w.checkpoint_id{line}){finished}{unanswered}"
)
_SAME_STEP = sql.SQL(
    "SELECT 1 FROM checkpoint_writes o WHERE o.thread_id = w.thread_id"
    " AND o.checkpoint_ns = '' AND o.checkpoint_id = w.checkpoint_id"
)
_UNFINISHED = sql.SQL(
    " AND NOT EXISTS ({same} AND o.task_id = w.task_id AND NOT o.channel = ANY(%(control)s))"
).format(same=_SAME_STEP)
_UNANSWERED = sql.SQL(
    " AND (NOT EXISTS ({same} AND o.task_id = %(null)s AND o.channel = %(resume)s)"
    " OR EXISTS ({same} AND o.task_id = w.task_id AND o.channel = %(resume)s))"
).format(same=_SAME_STEP)


def open_tasks(
    connection: Conn, channel: str = INTERRUPT, *, heads: bool, thread_id: str | None = None
) -> list[tuple[str, str, str]]:
    """(thread, checkpoint, task) of root tasks that recorded `channel` (an interrupt or an error);
    for an interrupt, only while the task is unfinished. `heads`: on threads' newest checkpoints
    and not answered yet; else on the end of any line, for an abandoned branch can still be
    answered, and an answer that was not used is needed still. `thread_id`: only of this thread."""
    query = _OPEN_TASKS.format(
        only=sql.SQL(" AND w.thread_id = %(thread)s" if thread_id is not None else ""),
        line=sql.SQL("" if heads else " AND c.parent_checkpoint_id = w.checkpoint_id"),
        finished=_UNFINISHED if channel == INTERRUPT else sql.SQL(""),
        unanswered=_UNANSWERED if channel == INTERRUPT and heads else sql.SQL(""),
    )
    rows = connection.execute(
        query,
        {
            "channel": channel,
            "control": [*CONTROL, SCHEDULED],
            "thread": thread_id,
            "null": NULL_TASK,
            "resume": RESUME,
        },
    )
    return [(r["thread_id"], r["checkpoint_id"], r["task_id"]) for r in rows]


def standing_at(connection: Conn, status: ThreadStatus) -> list[str]:
    """The threads that wait, failed or are unfinished."""
    if status is not ThreadStatus.UNFINISHED:
        channel = INTERRUPT if status is ThreadStatus.WAITING else ERROR
        return [t for t, _, _ in open_tasks(connection, channel, heads=True)]
    # Those whose newest checkpoint holds something in a channel that makes a node run; what stands
    # there exactly is told as for the page itself.
    rows = connection.execute(
        "SELECT c.thread_id, c.checkpoint_id FROM (SELECT thread_id, max(checkpoint_id) AS id"
        " FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id) AS head"
        " JOIN checkpoints c ON c.thread_id = head.thread_id AND c.checkpoint_ns = ''"
        " AND c.checkpoint_id = head.id WHERE EXISTS (SELECT 1 FROM"
        " jsonb_object_keys(coalesce(c.checkpoint -> 'channel_values', '{}')) AS k(name)"
        " WHERE k.name = %(start)s OR k.name LIKE 'branch:to:%%') OR EXISTS (SELECT 1 FROM"
        " jsonb_each_text(c.checkpoint -> 'channel_versions') AS v(key, version)"
        " JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = ''"
        " AND b.channel = v.key AND b.version = v.version AND b.type <> 'empty'"
        " WHERE v.key IN (%(start)s, %(sends)s) OR v.key LIKE 'branch:to:%%'"
        " OR v.key LIKE 'join:%%')",
        {"start": START, "sends": TASKS},
    ).fetchall()
    heads = head_rows(connection, ((r["thread_id"], r["checkpoint_id"]) for r in rows))
    return [r["thread_id"] for r in heads if standing(r)[0] is status]


# ---- details of one page -------------------------------------------------------------------------


def _described(connection: Conn, rows: Sequence[Mapping[str, Any]]) -> tuple[Thread, ...]:
    if not rows:
        return ()
    ids = [r["thread_id"] for r in rows]
    rooted = [(r["thread_id"], r["head"]) for r in rows if r["head"]]
    heads = {r["thread_id"]: r for r in head_rows(connection, rooted)}
    sizes = {
        r["thread_id"]: r
        for r in connection.execute(
            "SELECT t.thread_id, (SELECT count(DISTINCT checkpoint_ns) FROM checkpoints c"
            " WHERE c.thread_id = t.thread_id) AS namespaces,"
            " (SELECT coalesce(sum(octet_length(blob)), 0) FROM checkpoint_blobs b"
            " WHERE b.thread_id = t.thread_id)"
            " + (SELECT coalesce(sum(octet_length(blob)), 0) FROM checkpoint_writes w"
            " WHERE w.thread_id = t.thread_id) AS octets"
            " FROM unnest(%s::text[]) AS t(thread_id)",
            (ids,),
        )
    }
    out = []
    for row in rows:
        head = heads.get(row["thread_id"])
        status, nodes = standing(head) if head else (ThreadStatus.FINISHED, ())
        size = sizes[row["thread_id"]]
        out.append(
            Thread(
                row["thread_id"],
                row["head"],
                status,
                nodes,
                head["step"] if head else None,
                head["source"] if head else "",
                moment(None, row["oldest"]),
                moment(
                    head["ts"] if head and row["head"] == row["newest"] else None, row["newest"]
                ),
                row["checkpoints"],
                size["namespaces"],
                int(size["octets"]),
                head["metadata"] if head else {},
            )
        )
    return tuple(out)


def head_rows(connection: Conn, heads: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """What is needed to tell how a thread stands, of root checkpoints (thread, checkpoint), with
    their writes' keys under `writes`. No values."""
    pairs = list(heads)
    threads_, ids = [p[0] for p in pairs], [p[1] for p in pairs]
    rows = connection.execute(
        "SELECT c.thread_id, c.checkpoint_id, c.checkpoint ->> 'ts' AS ts, c.metadata,"
        " c.metadata ->> 'source' AS source, c.checkpoint -> 'channel_versions' AS versions,"
        " c.checkpoint -> 'versions_seen' AS seen,"
        " ARRAY(SELECT jsonb_object_keys(coalesce(c.checkpoint -> 'channel_values', '{}')))"
        " AS inline,"
        " ARRAY(SELECT jsonb_build_array(v.key, octet_length(b.blob), b.type, CASE WHEN"
        " v.key NOT IN (%(start)s, %(sends)s) AND octet_length(b.blob) <= %(most)s"
        " THEN encode(b.blob, 'hex') END)"
        " FROM jsonb_each_text(c.checkpoint -> 'channel_versions') AS v(key, version)"
        " JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = ''"
        " AND b.channel = v.key AND b.version = v.version AND b.type <> 'empty'"
        " WHERE v.key IN (%(start)s, %(sends)s) OR v.key LIKE 'branch:to:%%'"
        " OR v.key LIKE 'join:%%') AS control"
        " FROM unnest(%(threads)s::text[], %(ids)s::text[]) AS t(thread_id, checkpoint_id)"
        " JOIN checkpoints c ON c.thread_id = t.thread_id AND c.checkpoint_ns = ''"
        " AND c.checkpoint_id = t.checkpoint_id",
        {"start": START, "sends": TASKS, "most": MOST_CONTROL, "threads": threads_, "ids": ids},
    ).fetchall()
    writes: dict[str, list[WriteKey]] = {}
    query = sql.SQL(
        "SELECT w.thread_id, w.task_id, w.idx, w.channel, {path} AS task_path"
        " FROM unnest(%s::text[], %s::text[]) AS t(thread_id, checkpoint_id)"
        " JOIN checkpoint_writes w ON w.thread_id = t.thread_id AND w.checkpoint_ns = ''"
        " AND w.checkpoint_id = t.checkpoint_id ORDER BY task_path, w.task_id, w.idx"
    ).format(path=path_column(connection))
    for r in connection.execute(query, (threads_, ids)):
        key = WriteKey(r["task_id"], r["idx"], r["channel"], r["task_path"])
        writes.setdefault(r["thread_id"], []).append(key)
    for row in rows:
        row["writes"] = writes.get(row["thread_id"], [])
        row["step"] = step_of(row["metadata"])
    return rows


def standing(row: Mapping[str, Any]) -> tuple[ThreadStatus, tuple[str, ...]]:
    """Status and the nodes it concerns, of one row of `head_rows`."""
    tasks = read_tasks(row["writes"])
    stored = {
        channel
        for channel, octets, kind, blob in row["control"]
        if holds(channel, octets or 0, kind, bytes.fromhex(blob) if blob else None)
    }
    due = next_nodes(row["versions"] or {}, row["seen"] or {}, {*row["inline"], *stored}, tasks)
    status = status_of(tasks, due, int(TASKS in stored))
    if status is ThreadStatus.WAITING:
        return status, named(t.node for t in tasks if t.interrupted and not t.answered)
    if status is ThreadStatus.FAILED:
        return status, named(t.node for t in tasks if t.failed)
    return status, due + ((SENT_TASK,) if TASKS in stored else ())


def holds(channel: str, octets: int, kind: str | None, blob: bytes | None) -> bool:
    """Whether a stored channel holds something that makes a node run. Of the work that was sent
    only the size is looked at: an empty list is one byte. `blob`: of control channels."""
    if channel == TASKS:
        return octets > 1
    return not is_control(channel) or blob is None or ready(channel, decode(kind, blob).value)


def path_column(connection: Conn, alias: str = "w") -> sql.Composable:
    """`task_path` is in LangGraph's schema since version 9; before, tasks have no names."""
    known = connection.execute(
        "SELECT 1 FROM pg_attribute WHERE attrelid = 'checkpoint_writes'::regclass"
        " AND attname = 'task_path' AND NOT attisdropped"
    ).fetchone()
    return sql.SQL(f"{alias}.task_path") if known else sql.SQL("''::text")


# ---- small facts ---------------------------------------------------------------------------------


def moment(ts: str | None, checkpoint_id: str | None) -> datetime | None:
    """When a checkpoint was made: its own `ts`, else the time in its id (UUID version 6)."""
    if ts:
        try:
            at = datetime.fromisoformat(ts)
            return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        except ValueError:
            pass
    try:
        key = uuid.UUID(checkpoint_id or "")
    except ValueError:
        return None
    if key.version != 6:
        return None
    ticks = (key.int >> 80) << 12 | (key.int >> 64) & 0x0FFF
    return _GREGORIAN + timedelta(microseconds=ticks // 10)


def id_before(at: datetime) -> str:
    """The smallest checkpoint id of that moment: ids below it are older. The inverse of
    `moment`, so that age can be compared in an index."""
    ticks = (at - _GREGORIAN) // timedelta(microseconds=1) * 10
    return str(uuid.UUID(int=(ticks >> 12) << 80 | 0x6000 << 64 | (ticks & 0x0FFF) << 64))


def step_of(metadata: Mapping[str, Any] | None) -> int | None:
    step = (metadata or {}).get("step")
    return step if isinstance(step, int) and not isinstance(step, bool) else None
