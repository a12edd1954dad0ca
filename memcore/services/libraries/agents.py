"""Agents: who remembers. Each is bound to one library at most; one library serves many."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased

from memcore.database import queries
from memcore.database.tables import (
    AgentRow,
    ConversationRow,
    HistoryRow,
    LibraryRow,
    MemoryRow,
)
from memcore.errors import AgentMemoryOff, Conflict, InvalidInput, NotFound
from memcore.models import Actor, Agent, Status, Subject
from memcore.rules import permissions
from memcore.services.libraries.keeping import FRESH_SECONDS, Keeping, record
from memcore.text import clean

_COLUMNS = tuple(c for c in AgentRow.__table__.columns if c.name != "updated_at")
_FIELDS = ("name", "library_id", "memory_enabled", "extraction_enabled", "short_term_memory_size")
_WINDOW = 20
_LARGEST_WINDOW = 10_000


class Agents(Keeping):
    """Part of LibraryService."""

    def create_agent(
        self,
        name: str,
        *,
        library_id: str | None = None,
        memory_enabled: bool | None = None,
        extraction_enabled: bool = True,
        short_term_memory_size: int | None = None,
        actor: Actor | None = None,
    ) -> Agent:
        """A new agent. Its memory is on when a library is given, unless said otherwise. Raises
        InvalidInput, Conflict (name taken), NotFound (library), PermissionDenied."""
        permissions.need_operator(actor)
        if memory_enabled is None:
            memory_enabled = library_id is not None
        values = self._checked_agent(
            name, library_id, memory_enabled, extraction_enabled, short_term_memory_size
        )
        with self._runtime.engine.begin() as connection:
            try:
                row = connection.execute(
                    insert(AgentRow).values(**values).returning(*_COLUMNS)
                ).one()
            except IntegrityError:
                raise _taken(values["name"]) from None
            record(connection, "agent", row.id, row.library_id, "add", actor, {}, values)
        return Agent(**row._mapping)

    def edit_agent(
        self,
        agent_id: str,
        *,
        name: str,
        library_id: str | None,
        memory_enabled: bool,
        extraction_enabled: bool,
        short_term_memory_size: int | None,
        actor: Actor | None = None,
    ) -> Agent:
        """Change all of it. Memories it made in another library stay there. Raises as
        `create_agent` does."""
        permissions.need_operator(actor)
        agent = self.agent(agent_id)
        values = self._checked_agent(
            name, library_id, memory_enabled, extraction_enabled, short_term_memory_size
        )
        with self._runtime.engine.begin() as connection:
            before = _locked(connection, agent.id)
            if before is None:
                raise _unknown(agent_id)
            changed = {n: v for n, v in values.items() if v != getattr(before, n)}
            try:
                row = connection.execute(
                    update(AgentRow)
                    .where(AgentRow.id == agent.id)
                    .values(updated_at=func.now(), **values)
                    .returning(*_COLUMNS)
                ).one()
            except IntegrityError:
                raise _taken(values["name"]) from None
            if changed:
                record(
                    connection, "agent", agent.id, row.library_id, "edit", actor,
                    {n: getattr(before, n) for n in changed}, changed,
                )  # fmt: skip
        self.forget()
        return Agent(**row._mapping)

    def delete_agent(self, agent_id: str, *, actor: Actor | None = None) -> str:
        """Remove it; returns the id for `undo`. What it remembered stays in the library, as no
        agent's own. Raises NotFound, PermissionDenied."""
        permissions.need_operator(actor)
        agent = self.agent(agent_id)
        with self._runtime.engine.begin() as connection:
            row = _locked(connection, agent.id)
            if row is None:
                raise _unknown(agent_id)
            owned = {
                name: list(connection.scalars(select(table.id).where(table.agent_id == agent.id)))
                for name, table in _OWNED.items()
            }
            owned["superseded"] = _give_way(connection, agent.id)
            connection.execute(delete(AgentRow).where(AgentRow.id == agent.id))
            batch = record(
                connection, "agent", agent.id, row.library_id, "delete", actor,
                {**row._mapping, **owned}, {},
            )  # fmt: skip
        self.forget()
        return batch

    def agent(self, agent_id: str) -> Agent:
        """By id or name. Raises NotFound."""
        matches = AgentRow.name == agent_id
        if queries.is_uuid(agent_id):
            matches = matches | (AgentRow.id == agent_id)
        with self._runtime.engine.connect() as connection:
            row = connection.execute(select(*_COLUMNS).where(matches)).first()
        if row is None:
            raise _unknown(agent_id)
        return Agent(**row._mapping)

    def agents(self, library_id: str | None = None) -> list[Agent]:
        """All agents, or those bound to one library, by name."""
        query = select(*_COLUMNS).order_by(AgentRow.name)
        if library_id is not None:
            query = query.where(AgentRow.library_id == self.get(library_id).id)
        with self._runtime.engine.connect() as connection:
            return [Agent(**row._mapping) for row in connection.execute(query)]

    def bar(self, subject: Subject) -> AgentMemoryOff | None:
        """Why the subject's agent may neither recall nor write, where it may not; a switch in
        another process is seen two seconds later. Raises NotFound for an unknown agent."""
        if subject.agent_id is None:
            return None
        with self._lock:
            known = self._agents.get(subject.agent_id)
        if known and time.monotonic() - known[0] < FRESH_SECONDS:
            agent = known[1]
        else:
            agent = self.agent(subject.agent_id)
            with self._lock:
                self._agents[subject.agent_id] = (time.monotonic(), agent)
        nothing = "nothing is recalled or written for it."
        if agent.library_id is None:
            return AgentMemoryOff(
                f"The memory of the agent {agent.name!r} is switched off, since it is bound to no "
                f"library: {nothing}",
                hint="Bind it on the Libraries page, under Agents.",
            )
        if not agent.memory_enabled:
            return AgentMemoryOff(
                f"The memory of the agent {agent.name!r} is switched off: {nothing}",
                hint="Switch it on on the Libraries page, under Agents.",
            )
        asked = self.get(subject.library_id)
        if agent.library_id != asked.id:
            return AgentMemoryOff(
                f"The agent {agent.name!r} is bound to another library than {asked.name!r}: "
                f"{nothing}",
                hint="Bind it to this one on the Libraries page, under Agents.",
            )
        return None

    # ---- parts

    def _checked_agent(
        self,
        name: str,
        library_id: str | None,
        memory_enabled: bool,
        extraction_enabled: bool,
        short_term_memory_size: int | None,
    ) -> dict[str, Any]:
        name = _name(name)
        if memory_enabled and library_id is None:
            raise _unbound(name)
        return {
            "name": name,
            "library_id": self.get(library_id).id if library_id is not None else None,
            "memory_enabled": memory_enabled,
            "extraction_enabled": extraction_enabled,
            "short_term_memory_size": _window(short_term_memory_size),
        }

    def _undo_agent(self, connection: Connection, row: Any, actor: Actor | None) -> Agent:
        """Take back the change that the history line `row` tells of."""
        before, after = dict(row.before or {}), dict(row.after or {})
        library_id = before.get("library_id")
        gone = library_id is not None and not connection.scalar(
            select(LibraryRow.id)
            .where(LibraryRow.id == library_id, LibraryRow.deleted_at.is_(None))
        )  # fmt: skip
        if row.action == "delete":
            agent = _again(connection, before, unbound=gone)
        else:
            current = _locked(connection, row.subject_id)
            if current is None:
                raise Conflict("The agent was deleted since.")
            if any(getattr(current, name) != value for name, value in after.items()):
                raise Conflict("It was changed again since.")
            if gone:
                raise Conflict("The library it was bound to was deleted since.")
            try:
                with connection.begin_nested():
                    agent = connection.execute(
                        update(AgentRow)
                        .where(AgentRow.id == row.subject_id)
                        .values(updated_at=func.now(), **before)
                        .returning(*_COLUMNS)
                    ).one()
            except IntegrityError:
                raise _taken(str(before.get("name"))) from None
        kept = {name: before[name] for name in _FIELDS if name in before}
        batch = record(
            connection, "agent", row.subject_id, agent.library_id, "undo", actor, after, kept
        )
        connection.execute(
            update(HistoryRow).where(HistoryRow.id == row.id).values(undone_by=batch)
        )
        return Agent(**agent._mapping)


_OWNED: Mapping[str, Any] = {"memories": MemoryRow, "conversations": ConversationRow}
"""What loses its agent when that is deleted, and gets it back by undo."""


def _locked(connection: Connection, agent_id: str) -> Any:
    return connection.execute(
        select(*_COLUMNS).where(AgentRow.id == agent_id).with_for_update()
    ).first()


def _again(connection: Connection, image: Mapping[str, Any], *, unbound: bool) -> Any:
    """A deleted agent, inserted again with all that was its own and is nobody's now."""
    values = {name: image[name] for name in ("id", *_FIELDS)}
    values["created_at"] = datetime.fromisoformat(image["created_at"])
    if unbound:
        values |= {"library_id": None, "memory_enabled": False}
    try:
        with connection.begin_nested():
            row = connection.execute(insert(AgentRow).values(**values).returning(*_COLUMNS)).one()
    except IntegrityError:
        raise _taken(str(image["name"])) from None
    for name, table in _OWNED.items():
        connection.execute(
            update(table)
            .where(table.id.in_(image[name]), table.agent_id.is_(None))
            .values(agent_id=row.id)
        )
    connection.execute(
        update(MemoryRow)
        .where(
            MemoryRow.id.in_(image["superseded"]),
            MemoryRow.agent_id == row.id,
            MemoryRow.status == Status.SUPERSEDED,
        )
        .values(status=Status.ACTIVE, superseded_by=None)
    )
    return row


def _give_way(connection: Connection, agent_id: str) -> list[str]:
    """The agent's memories that say what an active one of nobody's says too: they are superseded
    by it, since one statement lives once. Returns their ids."""
    same = aliased(MemoryRow)
    return list(
        connection.scalars(
            update(MemoryRow)
            .where(
                MemoryRow.agent_id == agent_id,
                MemoryRow.status == Status.ACTIVE,
                same.agent_id.is_(None),
                same.status == Status.ACTIVE,
                same.library_id == MemoryRow.library_id,
                same.scope == MemoryRow.scope,
                same.scope_id == MemoryRow.scope_id,
                same.content_hash == MemoryRow.content_hash,
                same.private_to.is_not_distinct_from(MemoryRow.private_to),
            )
            .values(status=Status.SUPERSEDED, superseded_by=same.id)
            .returning(MemoryRow.id)
        )
    )


def _name(name: str) -> str:
    name = clean(name)
    if not 1 <= len(name) <= 100:
        raise InvalidInput(f"An agent's name has 1 to 100 characters; this has {len(name)}.")
    return name


def _window(size: int | None) -> int:
    if size is None or size <= 0:
        return _WINDOW
    if size > _LARGEST_WINDOW:
        raise InvalidInput(
            f"short_term_memory_size is {size}, outside its range from 1 to {_LARGEST_WINDOW}."
        )
    return size


def _unknown(agent_id: str) -> NotFound:
    return NotFound(
        f"There is no agent {agent_id!r}.", hint="See the Libraries page, under Agents."
    )


def _taken(name: str) -> Conflict:
    return Conflict(f"There is an agent called {name!r} already.", hint="Choose another name.")


def _unbound(name: str) -> InvalidInput:
    return InvalidInput(
        f"{name} is bound to no library, so it cannot remember.", hint="Choose its library."
    )
