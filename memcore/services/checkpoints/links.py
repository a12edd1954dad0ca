"""From a thread to the memories that came out of it."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Engine, or_, select

from memcore.database import queries
from memcore.database.tables import MemoryRow
from memcore.models import Actor, Memory

MOST = 500


def memories_of(
    engine: Engine, thread_id: str, message_ids: Iterable[str], actor: Actor
) -> dict[str, tuple[Memory, ...]]:
    """Memories extracted from these messages, by message id, oldest first; under '' those of the
    session named like the thread whose message is not among them. Only what `actor` may see."""
    wanted = {i for i in message_ids if i}
    query = (
        select(*queries.MEMORY_COLUMNS)
        .where(queries.visible(actor))
        .where(
            or_(
                MemoryRow.source_message_id.in_(sorted(wanted)),
                MemoryRow.conversation_id == thread_id,
            )
        )
        .order_by(MemoryRow.created_at, MemoryRow.id)
        .limit(MOST)
    )
    out: dict[str, list[Memory]] = {}
    with engine.connect() as connection:
        for row in connection.execute(query):
            memory = queries.memory_from(row)
            key = memory.source_message_id or ""
            out.setdefault(key if key in wanted else "", []).append(memory)
    return {key: tuple(found) for key, found in out.items()}
