"""Giving a thread other times, so that demo data can have happened when its story says.

A checkpoint's time is in its id, so ids, links to parents, times and the parents that subgraph
calls name all move together; order and distances stay.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from memcore.errors import NotFound
from memcore.services.checkpoints.index import id_before, moment
from memcore.services.checkpoints.store import CheckpointStore

_LOW = 2**64 - 1


def move_thread(
    store: CheckpointStore, thread_id: str, end: datetime, start: datetime | None = None
) -> None:
    """Let the thread's newest checkpoint be of the moment `end`; with `start`, its oldest be of
    that one and the others in proportion. Raises NotFound."""
    with store.writing() as connection:
        rows = connection.execute(
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint ->> 'ts' AS ts,"
            " metadata FROM checkpoints WHERE thread_id = %s ORDER BY checkpoint_id DESC",
            (thread_id,),
        ).fetchall()
        newest = moment(rows[0]["ts"], rows[0]["checkpoint_id"]) if rows else None
        if newest is None:
            raise NotFound(f"There is no thread {thread_id!r} in {store.where}.")
        oldest = min(
            (m for r in rows if (m := moment(r["ts"], r["checkpoint_id"]))), default=newest
        )
        factor = 1.0
        if start is not None and newest > oldest:
            factor = (end - start) / (newest - oldest)

        def moved(at: datetime) -> datetime:
            return end - (newest - at) * factor

        ids = {r["checkpoint_id"]: _moved(r["checkpoint_id"], moved) for r in rows}
        for r in rows:
            at = moment(r["ts"], r["checkpoint_id"])
            new = ids[r["checkpoint_id"]]
            connection.execute(
                "UPDATE checkpoints SET checkpoint_id = %s, parent_checkpoint_id = %s,"
                " checkpoint = checkpoint || %s, metadata = %s WHERE thread_id = %s"
                " AND checkpoint_ns = %s AND checkpoint_id = %s",
                (
                    new,
                    ids.get(r["parent_checkpoint_id"], r["parent_checkpoint_id"]),
                    Jsonb({"id": new, "ts": moved(at).isoformat() if at else r["ts"]}),
                    Jsonb(_relinked(r["metadata"], ids)),
                    thread_id,
                    r["checkpoint_ns"],
                    r["checkpoint_id"],
                ),
            )
        for old, new in ids.items():
            connection.execute(
                "UPDATE checkpoint_writes SET checkpoint_id = %s"
                " WHERE thread_id = %s AND checkpoint_id = %s",
                (new, thread_id, old),
            )


def _moved(checkpoint_id: str, moved: Callable[[datetime], datetime]) -> str:
    at = moment(None, checkpoint_id)
    if at is None:
        return checkpoint_id
    # The low half tells apart what was made in the same microsecond.
    return str(
        uuid.UUID(int=uuid.UUID(id_before(moved(at))).int | uuid.UUID(checkpoint_id).int & _LOW)
    )


def _relinked(metadata: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    parents = metadata.get("parents")
    if not isinstance(parents, dict):
        return metadata
    return {**metadata, "parents": {ns: ids.get(i, i) for ns, i in parents.items()}}
