"""Agents: who remembers. Each is bound to one library at most; one library serves many."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from memcore.database import queries
from memcore.database.tables import AgentRow
from memcore.errors import Conflict, InvalidInput, NotFound
from memcore.models import Agent, Library
from memcore.services.runtime import Runtime
from memcore.text import clean

_COLUMNS = tuple(c for c in AgentRow.__table__.columns if c.name != "updated_at")
_WINDOW = 20
_LARGEST_WINDOW = 10_000


class Agents:
    """Part of LibraryService."""

    _runtime: Runtime

    def get(self, library_id: str) -> Library:
        raise NotImplementedError  # Keeping has it

    def create_agent(
        self,
        name: str,
        *,
        library_id: str | None = None,
        memory_enabled: bool | None = None,
        extraction_enabled: bool = True,
        short_term_memory_size: int | None = None,
    ) -> Agent:
        """A new agent. Its memory is on when a library is given, unless said otherwise. Raises
        InvalidInput, Conflict (name taken), NotFound (library)."""
        library = self.get(library_id) if library_id is not None else None
        values: dict[str, Any] = {
            "name": _name(name),
            "library_id": library.id if library else None,
            "memory_enabled": (library is not None) and memory_enabled is not False,
            "extraction_enabled": extraction_enabled,
            "short_term_memory_size": _window(short_term_memory_size),
        }
        if memory_enabled and library is None:
            raise _unbound(values["name"])
        with self._runtime.engine.begin() as connection:
            try:
                row = connection.execute(
                    insert(AgentRow).values(**values).returning(*_COLUMNS)
                ).one()
            except IntegrityError:
                raise _taken(values["name"]) from None
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
    ) -> Agent:
        """Change all of it. Memories it made in another library stay there. Raises as
        `create_agent` does."""
        agent = self.agent(agent_id)
        library = self.get(library_id) if library_id is not None else None
        values: dict[str, Any] = {
            "name": _name(name),
            "library_id": library.id if library else None,
            "memory_enabled": memory_enabled,
            "extraction_enabled": extraction_enabled,
            "short_term_memory_size": _window(short_term_memory_size),
        }
        if memory_enabled and library is None:
            raise _unbound(values["name"])
        with self._runtime.engine.begin() as connection:
            try:
                row = connection.execute(
                    update(AgentRow)
                    .where(AgentRow.id == agent.id)
                    .values(updated_at=func.now(), **values)
                    .returning(*_COLUMNS)
                ).one()
            except IntegrityError:
                raise _taken(values["name"]) from None
        return Agent(**row._mapping)

    def delete_agent(self, agent_id: str) -> None:
        """Remove it. What it remembered stays in the library, as no agent's own. Raises
        NotFound."""
        agent = self.agent(agent_id)
        with self._runtime.engine.begin() as connection:
            connection.execute(delete(AgentRow).where(AgentRow.id == agent.id))

    def agent(self, agent_id: str) -> Agent:
        """By id or name. Raises NotFound."""
        matches = AgentRow.name == agent_id
        if queries.is_uuid(agent_id):
            matches = matches | (AgentRow.id == agent_id)
        with self._runtime.engine.connect() as connection:
            row = connection.execute(select(*_COLUMNS).where(matches)).first()
        if row is None:
            raise NotFound(f"There is no agent {agent_id!r}.")
        return Agent(**row._mapping)

    def agents(self, library_id: str | None = None) -> list[Agent]:
        """All agents, or those bound to one library, by name."""
        query = select(*_COLUMNS).order_by(AgentRow.name)
        if library_id is not None:
            query = query.where(AgentRow.library_id == self.get(library_id).id)
        with self._runtime.engine.connect() as connection:
            return [Agent(**row._mapping) for row in connection.execute(query)]


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


def _taken(name: str) -> Conflict:
    return Conflict(f"There is an agent called {name!r} already.", hint="Choose another name.")


def _unbound(name: str) -> InvalidInput:
    return InvalidInput(
        f"{name} is bound to no library, so it cannot remember.", hint="Choose its library."
    )
