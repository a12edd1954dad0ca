"""The audit trail of one memory: each change with time, actor and the fields it touched; what it
replaced and what replaced it; the turns of the conversation it came from.

Whoever may not see the memory gets NotFound, as everywhere; a conversation is shown to its own user
and to operators only, because a memory's readers were not in the room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, func, or_, select

from memcore.database import queries
from memcore.database.tables import (
    ConversationRow,
    HistoryRow,
    MemoryRow,
    MessageRow,
)
from memcore.errors import NotFound
from memcore.models import Actor, Memory
from memcore.services.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was done to a memory."""

    at: datetime
    actor: str
    action: str
    """add, status, edit, delete, supersede, undo, expire."""
    fields: Mapping[str, tuple[Any, Any]]
    """Field → (before, after), only where they differ."""
    batch_id: str
    """What `MemoryService.undo` takes."""
    undone: bool


@dataclass(frozen=True, slots=True)
class Links:
    """Where a memory stands in a chain of corrections."""

    replaces: tuple[Memory, ...]
    """Those it superseded, newest first."""
    replaced_by: Memory | None


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    role: str
    content: str
    at: datetime
    source: bool
    """True: the memory came from this turn."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The conversation a memory came from, as far as the actor may read it."""

    conversation_id: str
    title: str
    turns: tuple[Turn, ...]
    """In order; around the source turn where it is known, else the last ones."""


_AROUND = 3


class Changes:
    """Part of HistoryService: one memory's past."""

    _runtime: Runtime

    def of_memory(self, memory_id: str, *, actor: Actor) -> list[Change]:
        """Newest first, its creation last. Raises NotFound."""
        memory = self._seen(memory_id, actor)
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(
                select(*HistoryRow.__table__.columns)
                .where(
                    HistoryRow.kind == "memory",
                    HistoryRow.subject_id == memory.id,
                    HistoryRow.action != "import",  # its creation, which comes last anyway
                )
                .order_by(HistoryRow.id.desc())
            )
            changes = [_change(row) for row in rows]
        created = Change(memory.created_at, memory.created_by, "add", {}, "", False)
        return [*changes, created]

    def links(self, memory_id: str, *, actor: Actor) -> Links:
        """What it superseded and what superseded it, of what the actor may see. Raises NotFound."""
        memory = self._seen(memory_id, actor)
        query = (
            select(*queries.MEMORY_COLUMNS)
            .where(
                queries.visible(actor),
                or_(MemoryRow.superseded_by == memory.id, MemoryRow.id == memory.superseded_by)
                if memory.superseded_by
                else MemoryRow.superseded_by == memory.id,
            )
            .order_by(MemoryRow.created_at.desc(), MemoryRow.id)
        )
        with self._runtime.engine.connect() as connection:
            found = [queries.memory_from(row) for row in connection.execute(query)]
        by = next((m for m in found if m.id == memory.superseded_by), None)
        return Links(tuple(m for m in found if m is not by), by)

    def origin(self, memory_id: str, *, actor: Actor) -> Origin | None:
        """The conversation it came from; None where there is none or it is not the actor's to
        read. Raises NotFound for the memory."""
        memory = self._seen(memory_id, actor)
        if memory.conversation_id is None:
            return None
        readable = [ConversationRow.id == memory.conversation_id]
        if not actor.operator:
            readable.append(ConversationRow.user_id == actor.user_id)
        with self._runtime.engine.connect() as connection:
            conversation = connection.execute(
                select(ConversationRow.id, ConversationRow.title).where(and_(*readable))
            ).first()
            if conversation is None:
                return None
            m = MessageRow
            here = m.conversation_id == conversation.id
            at = None
            if memory.source_message_id and queries.is_uuid(memory.source_message_id):
                at = connection.scalar(select(m.seq).where(here, m.id == memory.source_message_id))
            if at is None:
                last = connection.scalar(select(func.max(m.seq)).where(here)) or 0
                span = m.seq > last - 2 * _AROUND
            else:
                span = m.seq.between(at - _AROUND, at + _AROUND)
            rows = connection.execute(
                select(m.id, m.role, m.content, m.created_at)
                .where(here, span, ~m.injected)
                .order_by(m.seq)
            )
            turns = tuple(
                Turn(r.id, r.role, r.content, r.created_at, r.id == memory.source_message_id)
                for r in rows
            )
        return Origin(conversation.id, conversation.title, turns)

    def _seen(self, memory_id: str, actor: Actor) -> Memory:
        if queries.is_uuid(memory_id):
            query = select(*queries.MEMORY_COLUMNS).where(
                MemoryRow.id == memory_id, queries.visible(actor)
            )
            with self._runtime.engine.connect() as connection:
                row = connection.execute(query).first()
            if row is not None:
                return queries.memory_from(row)
        raise NotFound("There is no such memory, or none you may see.")


def _change(row: Any) -> Change:
    before, after = row.before or {}, row.after or {}
    fields = {
        name: (before.get(name), after[name])
        for name in after
        if name != "content_hash" and before.get(name) != after[name]
    }
    return Change(
        row.at, row.actor, row.action, fields, str(row.batch_id), row.undone_by is not None
    )
