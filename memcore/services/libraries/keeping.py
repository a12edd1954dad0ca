"""Making, changing, copying, disabling, deleting libraries, and taking that back.

A deleted library is hidden at once, with all that hangs on it, and comes back whole by `undo`
until a sweep purges it.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from memcore import settings as settings_rules
from memcore.database import queries
from memcore.database.tables import AgentRow, HistoryRow, LibraryRow
from memcore.errors import (
    AgentMemoryOff,
    ConfigError,
    Conflict,
    InvalidInput,
    LibraryDisabled,
    NotFound,
)
from memcore.extraction import prompt
from memcore.models import Actor, Agent, Library, Subject
from memcore.rules import permissions
from memcore.services.libraries.presets import PRESETS
from memcore.services.runtime import Runtime
from memcore.settings import LibrarySettings, Resolved
from memcore.text import clean

# Settings change rarely and are read at every recall; another process sees a change this late.
FRESH_SECONDS = 2.0

_LIBRARY_COLUMNS = tuple(c for c in LibraryRow.__table__.columns if c.name != "deleted_at")


class Keeping:
    """Part of LibraryService."""

    _runtime: Runtime
    _cache: dict[str, tuple[float, Library]]
    _agents: dict[str, tuple[float, Agent]]
    _lock: threading.Lock

    def bar(self, subject: Subject) -> AgentMemoryOff | None:
        raise NotImplementedError  # Agents has it

    def _undo_agent(self, connection: Connection, row: Any, actor: Actor | None) -> Agent:
        raise NotImplementedError  # Agents has it

    def create(
        self,
        name: str,
        *,
        embedder: str = "local",
        description: str = "",
        overrides: Mapping[str, Any] | None = None,
        preset: str = "basic",
        vector_store: str = "pgvector",
        actor: Actor | None = None,
    ) -> Library:
        """A new library with its own collection. `overrides` go above those of the preset. Raises
        InvalidInput, Conflict (name taken), ConfigError (a setting), NotFound (embedder, store),
        EndpointError (the embedder's dimensions cannot be learnt), PermissionDenied."""
        permissions.need_operator(actor)
        if preset not in PRESETS:
            raise InvalidInput(f"preset is {preset!r}, but takes one of {', '.join(PRESETS)}.")
        name = _name(name)
        checked = self._checked({**PRESETS[preset].overrides, **(overrides or {})})
        opened = self._runtime.embedder_named(embedder)
        if vector_store != "pgvector":
            self._runtime.stores.get(vector_store)
        values = {
            "name": name,
            "description": clean(description),
            "embedder": opened.name,
            "dimensions": opened.dimensions,
            "vector_store": vector_store,
            "overrides": checked,
        }
        with self._runtime.engine.begin() as connection:
            try:
                with connection.begin_nested():
                    library_id: str = connection.execute(
                        insert(LibraryRow).values(**values).returning(LibraryRow.id)
                    ).scalar_one()
            except IntegrityError:
                raise _taken(name) from None
            collection_id = queries.create_collection(
                connection, library_id, opened.name, opened.dimensions
            )
            connection.execute(
                update(LibraryRow)
                .where(LibraryRow.id == library_id)
                .values(collection_id=collection_id)
            )
            self._record(connection, library_id, "add", actor, {}, values)
        return self.get(library_id)

    def duplicate(self, library_id: str, name: str, *, actor: Actor | None = None) -> Library:
        """A new library with the same settings, embedder and store, and without memories or
        agents. Raises as `create` does."""
        library = self.get(library_id)
        return self.create(
            name,
            embedder=library.embedder,
            description=library.description,
            overrides=library.overrides,
            vector_store=library.vector_store,
            actor=actor,
        )

    def get(self, library_id: str) -> Library:
        """By id or by name, at most two seconds old. Raises NotFound."""
        with self._lock:
            known = self._cache.get(library_id)
            if known and time.monotonic() - known[0] < FRESH_SECONDS:
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

    def set(
        self,
        library_id: str,
        overrides: Mapping[str, Any],
        *,
        seen: Mapping[str, Any] | None = None,
        actor: Actor | None = None,
    ) -> Library:
        """Replace what is set by hand; other settings fall back to their environment variable,
        calibration or default. `seen`: what was set by hand when the editor began. Raises
        ConfigError, Conflict where somebody changed it since."""
        checked = self._checked(overrides)

        def replaced(row: Any) -> dict[str, Any]:
            if seen is not None and row.overrides != dict(seen):
                names = sorted(
                    n for n in {*row.overrides, *seen} if row.overrides.get(n) != seen.get(n)
                )
                raise Conflict(
                    f"{', '.join(names)} was changed elsewhere since you opened the settings.",
                    hint="Nothing was saved. Look at both values, then save again.",
                )
            return {"overrides": checked}

        return self._change(library_id, actor, replaced)

    def adjust(
        self, library_id: str, changes: Mapping[str, Any], *, actor: Actor | None = None
    ) -> Library:
        """Set these by hand and leave the others as they are at this moment; None or an empty text
        goes back to the default. Raises ConfigError."""
        return self._change(
            library_id,
            actor,
            lambda row: {"overrides": self._checked({**row.overrides, **changes})},
        )

    def opened(self, subject: Subject) -> tuple[Library, LibrarySettings]:
        """The library that is to be recalled from or written to for `subject`, and its settings.
        Raises NotFound, LibraryDisabled, AgentMemoryOff."""
        library = self.get(subject.library_id)
        settings = self._runtime.settings_of(library).settings
        if not settings.enabled:
            raise LibraryDisabled(
                f"The library {library.name!r} is switched off: nothing is recalled or written.",
                hint="Switch it on on the Libraries page.",
            )
        if (barred := self.bar(subject)) is not None:
            raise barred
        return library, settings

    def enable(self, library_id: str, enabled: bool, *, actor: Actor | None = None) -> Library:
        """Switch it on or off. Off, it is neither recalled nor written, and says so."""
        return self.adjust(library_id, {"enabled": None if enabled else False}, actor=actor)

    def edit(
        self,
        library_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        actor: Actor | None = None,
    ) -> Library:
        """Rename or describe it. Raises InvalidInput, Conflict (name taken)."""
        values: dict[str, Any] = {}
        if name is not None:
            values["name"] = _name(name)
        if description is not None:
            values["description"] = clean(description)
        return self._change(library_id, actor, lambda _: values)

    def delete(self, library_id: str, *, actor: Actor | None = None) -> str:
        """Hide it with all it holds and unbind its agents; returns the id for `undo`. A sweep
        purges it after 30 days."""
        permissions.need_operator(actor)
        library = self.get(library_id)
        with self._runtime.engine.begin() as connection:
            bound = {
                row.id: row.memory_enabled
                for row in connection.execute(
                    select(AgentRow.id, AgentRow.memory_enabled)
                    .where(AgentRow.library_id == library.id)
                    .with_for_update()
                )
            }
            connection.execute(
                update(AgentRow)
                .where(AgentRow.id.in_(list(bound)))
                .values(library_id=None, memory_enabled=False, updated_at=func.now())
            )
            gone_at = connection.execute(
                update(LibraryRow)
                .where(LibraryRow.id == library.id, LibraryRow.deleted_at.is_(None))
                # Its name becomes free for another library.
                .values(deleted_at=func.now(), name=f"{library.name} ({library.id})")
                .returning(LibraryRow.deleted_at)
            ).scalar_one_or_none()
            if gone_at is None:
                raise NotFound(f"{library.name} is deleted already.")
            batch = self._record(
                connection, library.id, "delete", actor,
                {"name": library.name, "agents": bound}, {"deleted_at": gone_at.isoformat()},
            )  # fmt: skip
        self.forget()
        return batch

    def undo(self, batch_id: str, *, actor: Actor | None = None) -> Library | Agent:
        """Take back a deletion or a change of a library or an agent. Raises NotFound, Conflict
        (changed again since, purged, or its name is taken)."""
        permissions.need_operator(actor)
        with self._runtime.engine.begin() as connection:
            row = None
            if queries.is_uuid(batch_id):
                row = connection.execute(
                    select(*HistoryRow.__table__.columns)
                    .where(
                        HistoryRow.batch_id == batch_id,
                        HistoryRow.kind.in_(("library", "agent")),
                        HistoryRow.action.in_(("edit", "delete")),
                        HistoryRow.undone_by.is_(None),
                    )
                    .with_for_update()
                ).first()
            if row is None:
                raise NotFound("There is nothing left to undo.")
            agent = None
            if row.kind == "agent":
                agent = self._undo_agent(connection, row, actor)
            else:
                self._undo_library(connection, row, actor)
        self.forget()
        return agent or self.get(row.subject_id)

    def last_change(
        self, subject_id: str, kind: Literal["library", "agent"] = "library"
    ) -> str | None:
        """Id of the newest change of a library or an agent that `undo` takes back."""
        with self._runtime.engine.connect() as connection:
            found: str | None = connection.scalar(
                select(HistoryRow.batch_id)
                .where(
                    HistoryRow.kind == kind,
                    HistoryRow.subject_id == subject_id,
                    HistoryRow.action.in_(("edit", "delete")),
                    HistoryRow.undone_by.is_(None),
                )
                .order_by(HistoryRow.id.desc())
                .limit(1)
            )
        return found

    def forget(self) -> None:
        """Drop cached libraries and agents, so that the next read is fresh."""
        with self._lock:
            self._cache.clear()
            self._agents.clear()

    # ---- parts

    def _undo_library(self, connection: Connection, row: Any, actor: Actor | None) -> None:
        current = connection.execute(
            select(*LibraryRow.__table__.columns)
            .where(LibraryRow.id == row.subject_id)
            .with_for_update()
        ).first()
        if current is None:
            raise Conflict("The library was purged since.")
        before, after = dict(row.before or {}), dict(row.after or {})
        agents = before.pop("agents", {})
        if row.action == "delete":
            before["deleted_at"] = None
        elif any(getattr(current, name) != value for name, value in after.items()):
            raise Conflict("It was changed again since.")
        try:
            with connection.begin_nested():
                connection.execute(
                    update(LibraryRow)
                    .where(LibraryRow.id == row.subject_id)
                    .values(updated_at=func.now(), **before)
                )
        except IntegrityError:
            raise _taken(str(before.get("name"))) from None
        for agent_id, remembers in agents.items():
            connection.execute(
                update(AgentRow)
                .where(AgentRow.id == agent_id, AgentRow.library_id.is_(None))
                .values(library_id=row.subject_id, memory_enabled=remembers)
            )
        batch = self._record(connection, row.subject_id, "undo", actor, after, before)
        connection.execute(
            update(HistoryRow).where(HistoryRow.id == row.id).values(undone_by=batch)
        )

    def _change(
        self, library_id: str, actor: Actor | None, make: Callable[[Any], dict[str, Any]]
    ) -> Library:
        """Write what `make` says of the row as it is now."""
        permissions.need_operator(actor)
        library = self.get(library_id)
        with self._runtime.engine.begin() as connection:
            row = connection.execute(
                select(*_LIBRARY_COLUMNS).where(LibraryRow.id == library.id).with_for_update()
            ).one()
            values = make(row)
            before = {name: getattr(row, name) for name in values}
            changed = {n: v for n, v in values.items() if v != before[n]}
            if changed:
                try:
                    with connection.begin_nested():
                        connection.execute(
                            update(LibraryRow)
                            .where(LibraryRow.id == library.id)
                            .values(updated_at=func.now(), **changed)
                        )
                except IntegrityError:
                    raise _taken(str(values.get("name"))) from None
                self._record(
                    connection, library.id, "edit", actor, {n: before[n] for n in changed}, changed
                )
        self.forget()
        return self.get(library.id)

    def _record(
        self,
        connection: Connection,
        library_id: str,
        action: str,
        actor: Actor | None,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> str:
        return record(connection, "library", library_id, library_id, action, actor, before, after)

    def _checked(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        checked = {
            name: settings_rules.parse(name, value)
            for name, value in overrides.items()
            if value is not None and value != ""
        }
        settings_rules.resolve(checked, environment=self._runtime.environment)
        if lacking := prompt.missing(checked.get("extraction_prompt", "")):
            raise ConfigError(
                f"extraction_prompt does not {', nor '.join(lacking)}.",
                hint="Ask for a JSON array of objects with type, title, content and tags.",
            )
        return checked


def _name(name: str) -> str:
    name = clean(name)
    if not 1 <= len(name) <= 100:
        raise InvalidInput(f"A library's name has 1 to 100 characters; this has {len(name)}.")
    return name


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a library called {name!r} already.", hint="Choose another name.")


def record(
    connection: Connection,
    kind: str,
    subject_id: str,
    library_id: str | None,
    action: str,
    actor: Actor | None,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> str:
    """Write a history line of one act on a library or an agent; returns the id `undo` takes."""
    batch = str(uuid.uuid4())
    connection.execute(
        insert(HistoryRow).values(
            actor=actor.user_id if actor else "system", action=action, kind=kind,
            subject_id=subject_id, library_id=library_id, batch_id=batch,
            before=_plain(before), after=_plain(after),
        )
    )  # fmt: skip
    return batch


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {n: v.isoformat() if isinstance(v, datetime) else v for n, v in values.items()}
