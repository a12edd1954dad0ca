"""Libraries and agents: configuration and container of memories, and who uses them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from memcore import settings as settings_rules
from memcore.database import queries
from memcore.database.tables import AgentRow, LibraryRow
from memcore.embeddings import Embedder, open_embedder
from memcore.errors import Conflict, InvalidInput, NotFound
from memcore.models import Agent, Library
from memcore.services.runtime import Runtime
from memcore.settings import Resolved
from memcore.text import clean

# Settings change rarely and are read at every recall; another process sees a change this late.
_FRESH_SECONDS = 2.0

_LIBRARY_COLUMNS = tuple(c for c in LibraryRow.__table__.columns if c.name != "deleted_at")
_AGENT_COLUMNS = tuple(c for c in AgentRow.__table__.columns if c.name != "updated_at")


class LibraryService:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._cache: dict[str, tuple[float, Library]] = {}
        self._lock = threading.Lock()

    # ---- libraries

    def create(
        self,
        name: str,
        *,
        embedder: str = "local",
        description: str = "",
        overrides: Mapping[str, Any] | None = None,
    ) -> Library:
        """A new library with its own collection. Raises InvalidInput, Conflict (name taken),
        ConfigError (a setting), EndpointError (the embedder's dimensions cannot be learnt)."""
        name = clean(name)
        if not 1 <= len(name) <= 100:
            raise InvalidInput(f"A library's name has 1 to 100 characters; this has {len(name)}.")
        checked = self._checked(overrides or {})
        opened: Embedder = open_embedder(embedder)
        with self._runtime.engine.begin() as connection:
            try:
                library_id = connection.execute(
                    insert(LibraryRow)
                    .values(
                        name=name,
                        description=clean(description),
                        embedder=opened.name,
                        dimensions=opened.dimensions,
                        overrides=checked,
                    )
                    .returning(LibraryRow.id)
                ).scalar_one()
            except IntegrityError:
                raise Conflict(
                    f"There is a library called {name!r} already.", hint="Choose another name."
                ) from None
            collection_id = queries.create_collection(
                connection, library_id, opened.name, opened.dimensions
            )
            connection.execute(
                update(LibraryRow)
                .where(LibraryRow.id == library_id)
                .values(collection_id=collection_id)
            )
        return self.get(library_id)

    def get(self, library_id: str) -> Library:
        """By id or by name, at most two seconds old. Raises NotFound."""
        with self._lock:
            known = self._cache.get(library_id)
            if known and time.monotonic() - known[0] < _FRESH_SECONDS:
                return known[1]
        matches = LibraryRow.name == library_id
        if queries.is_uuid(library_id):
            matches = matches | (LibraryRow.id == library_id)
        with self._runtime.engine.connect() as connection:
            row = connection.execute(
                select(*_LIBRARY_COLUMNS).where(matches, LibraryRow.deleted_at.is_(None))
            ).first()
        if row is None:
            raise NotFound(
                f"There is no library {library_id!r}.", hint="See the Libraries page for all."
            )
        library = Library(**row._mapping)
        with self._lock:
            for key in (library.id, library.name):
                self._cache[key] = (time.monotonic(), library)
        return library

    def all(self) -> list[Library]:
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(
                select(*_LIBRARY_COLUMNS)
                .where(LibraryRow.deleted_at.is_(None))
                .order_by(LibraryRow.created_at, LibraryRow.id)
            )
            return [Library(**row._mapping) for row in rows]

    def settings(self, library_id: str) -> Resolved:
        """Effective settings and where each comes from."""
        return self._runtime.settings_of(self.get(library_id))

    def set(self, library_id: str, overrides: Mapping[str, Any]) -> Library:
        """Replace what is set by hand. Raises ConfigError; other settings fall back to their
        environment variable, calibration or default."""
        library = self.get(library_id)
        checked = self._checked(overrides)
        with self._runtime.engine.begin() as connection:
            connection.execute(
                update(LibraryRow)
                .where(LibraryRow.id == library.id)
                .values(overrides=checked, updated_at=func.now())
            )
        self.forget()
        return self.get(library.id)

    def forget(self) -> None:
        """Drop cached libraries, so that the next read is fresh."""
        with self._lock:
            self._cache.clear()

    def _checked(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        checked = {
            name: settings_rules.parse(name, value)
            for name, value in overrides.items()
            if value is not None and value != ""
        }
        settings_rules.resolve(checked, environment=self._runtime.environment)
        return checked

    # ---- agents

    def create_agent(
        self,
        name: str,
        *,
        library_id: str | None = None,
        short_term_memory_size: int | None = None,
    ) -> Agent:
        """A new agent, its memory on when a library is given. Raises InvalidInput, Conflict."""
        name = clean(name)
        if not 1 <= len(name) <= 100:
            raise InvalidInput(f"An agent's name has 1 to 100 characters; this has {len(name)}.")
        values: dict[str, Any] = {"name": name}
        if short_term_memory_size is not None and short_term_memory_size > 0:
            values["short_term_memory_size"] = short_term_memory_size
        if library_id is not None:
            values |= {"library_id": self.get(library_id).id, "memory_enabled": True}
        with self._runtime.engine.begin() as connection:
            try:
                row = connection.execute(
                    insert(AgentRow).values(**values).returning(*_AGENT_COLUMNS)
                ).one()
            except IntegrityError:
                raise Conflict(
                    f"There is an agent called {name!r} already.", hint="Choose another name."
                ) from None
        return Agent(**row._mapping)

    def agent(self, agent_id: str) -> Agent:
        """By id or name. Raises NotFound."""
        matches = AgentRow.name == agent_id
        if queries.is_uuid(agent_id):
            matches = matches | (AgentRow.id == agent_id)
        with self._runtime.engine.connect() as connection:
            row = connection.execute(select(*_AGENT_COLUMNS).where(matches)).first()
        if row is None:
            raise NotFound(f"There is no agent {agent_id!r}.")
        return Agent(**row._mapping)

    def agents(self, library_id: str | None = None) -> list[Agent]:
        """All agents, or those bound to one library, by name."""
        query = select(*_AGENT_COLUMNS).order_by(AgentRow.name)
        if library_id is not None:
            query = query.where(AgentRow.library_id == self.get(library_id).id)
        with self._runtime.engine.connect() as connection:
            return [Agent(**row._mapping) for row in connection.execute(query)]
