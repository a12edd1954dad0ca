"""Snapshots: what a session's agent knew at a moment, kept in memcore's own database.

A checkpoint may be pruned; a snapshot stays until its thread is forgotten. It is plain JSON, so it
can be read without LangGraph, and compared with any checkpoint.
"""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import Engine, insert, select

from memcore.database.tables import SessionStateSnapshotRow
from memcore.errors import NotFound
from memcore.models import Actor
from memcore.plain import plain
from memcore.services.checkpoints.ledger import Snapshot
from memcore.services.checkpoints.values import Checkpoint
from memcore.text import clean

_TABLE = SessionStateSnapshotRow


def take(engine: Engine, checkpoint: Checkpoint, source: str, label: str, actor: Actor) -> Snapshot:
    """Keep this checkpoint's conversation and state."""
    statement = (
        insert(_TABLE)
        .values(
            source=source,
            thread_id=checkpoint.thread_id,
            checkpoint_ns=checkpoint.checkpoint_ns,
            checkpoint_id=checkpoint.checkpoint_id,
            label=clean(label)[:200],
            taken_by=actor.user_id,
            state_at=checkpoint.created_at,
            messages=plain(checkpoint.messages),
            agent_state=plain(checkpoint.state),
            tool_states=plain(checkpoint.tool_states),
            pending_tool_calls=plain(checkpoint.pending_tool_calls),
        )
        .returning(_TABLE)
    )
    with engine.begin() as connection:
        return _snapshot(connection.execute(statement).one())


def listed(engine: Engine, thread_id: str, limit: int) -> tuple[Snapshot, ...]:
    """Snapshots of a thread, newest first."""
    query = (
        select(_TABLE)
        .where(_TABLE.thread_id == thread_id)
        .order_by(_TABLE.taken_at.desc(), _TABLE.id)
        .limit(limit)
    )
    with engine.connect() as connection:
        return tuple(_snapshot(row) for row in connection.execute(query))


def one(engine: Engine, snapshot_id: str) -> Snapshot:
    """Raises NotFound."""
    try:
        wanted = str(uuid.UUID(snapshot_id))
    except ValueError:
        raise NotFound(f"There is no snapshot {snapshot_id[:80]!r}.") from None
    with engine.connect() as connection:
        row = connection.execute(select(_TABLE).where(_TABLE.id == wanted)).first()
    if row is None:
        raise NotFound(f"There is no snapshot {snapshot_id!r}.")
    return _snapshot(row)


def _snapshot(row: Any) -> Snapshot:
    return Snapshot(
        str(row.id),
        row.thread_id,
        row.checkpoint_id,
        row.checkpoint_ns,
        row.label,
        row.taken_at,
        row.taken_by,
        row.state_at,
        tuple(row.messages),
        row.agent_state,
        tuple(row.tool_states),
        tuple(row.pending_tool_calls),
    )
