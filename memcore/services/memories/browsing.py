"""Reading memories as a person does: list, count, one by id. Every statement goes through
`queries.visible`, so totals and pages agree with what the actor may see."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.sql import Select

from memcore.database import queries
from memcore.database.tables import MemoryRow
from memcore.errors import InvalidInput, NotFound
from memcore.models import Actor, Memory, MemoryType, Scope, Status
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime

_SORTS: dict[str, ColumnElement[Any]] = {
    "newest": MemoryRow.created_at.desc(),
    "oldest": MemoryRow.created_at.asc(),
    "updated": MemoryRow.updated_at.desc(),
    "used": MemoryRow.access_count.desc(),
    "confidence": MemoryRow.confidence.desc(),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories; None and empty mean any."""

    library_id: str | None = None
    types: tuple[MemoryType, ...] = ()
    statuses: tuple[Status, ...] = ()
    scopes: tuple[Scope, ...] = ()
    tags: tuple[str, ...] = ()
    """A memory with any of them."""
    user_id: str | None = None
    project_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    text: str = ""
    """Part of title or content, case ignored."""
    since: datetime | None = None
    """Created at or after."""
    until: datetime | None = None
    """Created before."""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    memories: tuple[Memory, ...]
    total: int


class Browsing:
    """Part of MemoryService: reading."""

    _runtime: Runtime
    _libraries: LibraryService

    def get(self, memory_id: str, *, actor: Actor) -> Memory:
        """Raises NotFound, also for what the actor may not see."""
        page = self.browse(Filter(ids=(memory_id,)), actor=actor, limit=1)
        if not page.memories:
            raise NotFound("There is no such memory, or none you may see.")
        return page.memories[0]

    def browse(
        self,
        filter: Filter = Filter(),
        *,
        actor: Actor,
        sort: str = "newest",
        limit: int = 50,
        offset: int = 0,
    ) -> Page:
        """One page and the total, sorted and filtered in SQL. `sort`: newest, oldest, updated,
        used, confidence."""
        if sort not in _SORTS:
            raise InvalidInput(f"sort is {sort!r}, but takes one of {', '.join(_SORTS)}.")
        where = and_(queries.visible(actor), *conditions(filter))
        rows: Select[tuple[object, ...]] = (
            select(*queries.MEMORY_COLUMNS)
            .where(where)
            .order_by(_SORTS[sort], MemoryRow.id)
            .limit(limit)
            .offset(offset)
        )
        with self._runtime.engine.connect() as connection:
            found = tuple(queries.memory_from(row) for row in connection.execute(rows))
            total = connection.scalar(select(func.count()).where(where).select_from(MemoryRow))
        return Page(found, total or 0)


def conditions(filter: Filter) -> list[ColumnElement[bool]]:
    """`filter` as SQL, visibility not included."""
    m = MemoryRow
    out: list[ColumnElement[bool]] = []
    if filter.library_id:
        out.append(m.library_id == filter.library_id)
    if filter.types:
        out.append(m.memory_type.in_(filter.types))
    if filter.statuses:
        out.append(m.status.in_(filter.statuses))
    if filter.scopes:
        out.append(m.scope.in_(filter.scopes))
    if filter.tags:
        out.append(m.tags.overlap(list(filter.tags)))
    if filter.user_id:
        out.append(m.user_id == filter.user_id)
    if filter.project_id:
        out.append(m.project_id == filter.project_id)
    if filter.agent_id:
        out.append(m.agent_id == filter.agent_id)
    if filter.session_id:
        out.append(m.conversation_id == filter.session_id)
    if filter.text:
        out.append(
            (m.content.icontains(filter.text, autoescape=True))
            | (m.title.icontains(filter.text, autoescape=True))
        )
    if filter.since:
        out.append(m.created_at >= filter.since)
    if filter.until:
        out.append(m.created_at < filter.until)
    if filter.ids:
        out.append(m.id.in_([i for i in filter.ids if _is_uuid(i)]))
    return out


def _is_uuid(value: str) -> bool:
    try:
        uuid.UUID(value)
    except ValueError:
        return False
    return True
