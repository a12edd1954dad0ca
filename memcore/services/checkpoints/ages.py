"""Since when a tool call is in the state: the oldest ancestor whose conversation names its id.

Ids are looked for in the stored bytes, nothing is decoded. A conversation only grows, so a call
that is there stays there, and bisecting the versions reads a few blobs instead of all of them: a
long thread has thousands, each as large as the conversation was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from memcore.services.checkpoints.index import moment
from memcore.services.checkpoints.store import Conn

MOST_CALLS = 20
_MOST_ANCESTORS = 5000


def first_seen(
    connection: Conn,
    thread_id: str,
    ns: str,
    checkpoint_id: str,
    channel: str,
    call_ids: Sequence[str],
) -> dict[str, datetime]:
    """Call id → when it came into `channel` on the line that leads to this checkpoint. Calls that
    no stored version names are left out, and those beyond the first MOST_CALLS."""
    rows = connection.execute(
        "WITH RECURSIVE line AS (SELECT checkpoint_id, parent_checkpoint_id, 1 AS n,"
        " checkpoint -> 'channel_versions' ->> %(channel)s AS version"
        " FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s"
        " AND checkpoint_id = %(id)s UNION ALL SELECT c.checkpoint_id, c.parent_checkpoint_id,"
        " line.n + 1, c.checkpoint -> 'channel_versions' ->> %(channel)s"
        " FROM line JOIN checkpoints c ON c.thread_id = %(thread)s AND c.checkpoint_ns = %(ns)s"
        " AND c.checkpoint_id = line.parent_checkpoint_id WHERE line.n < %(most)s)"
        " SELECT checkpoint_id, version FROM line ORDER BY n DESC",
        {
            "thread": thread_id,
            "ns": ns,
            "id": checkpoint_id,
            "channel": channel,
            "most": _MOST_ANCESTORS,
        },
    ).fetchall()
    versions: list[tuple[str, str]] = []
    for row in rows:  # oldest first
        if row["version"] and (not versions or versions[-1][1] != row["version"]):
            versions.append((row["checkpoint_id"], row["version"]))
    found: dict[str, datetime] = {}
    for call_id in call_ids[:MOST_CALLS]:

        def named(place: int, call_id: str = call_id) -> bool:
            return bool(
                connection.execute(
                    "SELECT 1 FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = %s"
                    " AND channel = %s AND version = %s"
                    " AND position(convert_to(%s, 'UTF8') IN blob) > 0",
                    (thread_id, ns, channel, versions[place][1], call_id),
                ).fetchone()
            )

        place = bisect(len(versions), named)
        if place is not None and (at := moment(None, versions[place][0])) is not None:
            found[call_id] = at
    return found


def bisect(count: int, holds: Callable[[int], bool]) -> int | None:
    """The first of `count` places where `holds`, which holds from some place on; None where it
    does not hold at the last one."""
    if not count or not holds(count - 1):
        return None
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
