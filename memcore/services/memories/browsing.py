"""Reading memories as a person does: list, count, one by id. Every statement goes through
`queries.visible`, so totals and pages agree with what the actor may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, select, text, tuple_
from sqlalchemy.sql import Select

from memcore.database import queries
from memcore.database.tables import AgentRow, LibraryRow, MemoryRow
from memcore.errors import InvalidInput, NotFound
from memcore.models import Actor, Memory, MemoryType, Scope, Status
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime

_SORTS: dict[str, ColumnElement[Any]] = {
    "newest": MemoryRow.created_at.desc(),
    "oldest": MemoryRow.created_at.asc(),
    "updated": MemoryRow.updated_at.desc(),
    "used": MemoryRow.access_count.desc(),
    "recalled": MemoryRow.last_used_at.desc().nulls_last(),
    "confidence": MemoryRow.confidence.desc(),
    "unsure": MemoryRow.confidence.asc(),
    "expiring": MemoryRow.expires_at.asc().nulls_last(),
}
SORTS = tuple(_SORTS)


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
    shorter_than: int | None = None
    """Content of fewer characters."""
    confidence_below: float | None = None
    never_recalled: bool = False
    expired: bool = False
    """Past their expiry, whatever their status."""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facets:
    """What there is to filter by, with counts. Everything that exists is in here, whichever page
    of the list is shown."""

    statuses: Mapping[Status, int]
    """Under all filters but the one on status; every status, 0 included."""
    types: Mapping[MemoryType, int]
    """These and the following: of the whole library, most frequent first."""
    scopes: Mapping[Scope, int]
    tags: Mapping[str, int]
    users: Mapping[str, int]
    projects: Mapping[str, int]
    agents: Mapping[str, tuple[str, int]]
    """Agent id → name, count."""
    sessions: Mapping[str, int]


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
        """One page and the total, sorted and filtered in SQL. `sort`: one of SORTS."""
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

    def ids(self, filter: Filter, *, actor: Actor, limit: int = 100_000) -> list[str]:
        """Ids of all that match, oldest first; for acts on a whole result."""
        query = (
            select(MemoryRow.id)
            .where(queries.visible(actor), *conditions(filter))
            .order_by(MemoryRow.created_at, MemoryRow.id)
            .limit(limit)
        )
        with self._runtime.engine.connect() as connection:
            return list(connection.scalars(query))

    def facets(self, filter: Filter, *, actor: Actor) -> Facets:
        """What exists to filter by in the filter's library, and the status counts under it."""
        m = MemoryRow
        here = [queries.visible(actor), *conditions(Filter(library_id=filter.library_id))]
        dimensions = (m.memory_type, m.scope, m.user_id, m.project_id, m.agent_id,
                      m.conversation_id)  # fmt: skip
        counted = select(*dimensions, func.grouping(*dimensions), func.count().label("count"))
        tag = func.unnest(m.tags).label("tag")
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(
                counted.where(*here)
                .group_by(func.grouping_sets(*(tuple_(d) for d in dimensions)))
                .order_by(text("count DESC"))
            ).all()
            tags = connection.execute(
                select(tag, func.count().label("count"))
                .where(*here)
                .group_by(tag)
                .order_by(text("count DESC"), tag)
            ).all()
            statuses = connection.execute(
                select(m.status, func.count())
                .where(queries.visible(actor), *conditions(replace(filter, statuses=())))
                .group_by(m.status)
            ).all()
            names = {
                row.id: row.name for row in connection.execute(select(AgentRow.id, AgentRow.name))
            }
        # GROUPING() has a 0 bit for the dimension a row counts, the first one leftmost.
        width = len(dimensions)
        found: list[dict[Any, int]] = [{} for _ in dimensions]
        for row in rows:
            place = next(i for i in range(width) if not row[width] & (1 << (width - 1 - i)))
            if row[place] is not None:
                found[place][row[place]] = row[width + 1]
        types, scopes, users, projects, agents, sessions = found
        return Facets(
            statuses=dict.fromkeys(Status, 0) | {row[0]: row[1] for row in statuses},
            types=types,
            scopes=scopes,
            tags={row[0]: row[1] for row in tags},
            users=users,
            projects=projects,
            agents={i: (names.get(i, i), n) for i, n in agents.items()},
            sessions=sessions,
        )


def conditions(filter: Filter) -> list[ColumnElement[bool]]:
    """`filter` as SQL, visibility not included."""
    m = MemoryRow
    out: list[ColumnElement[bool]] = []
    if filter.library_id:
        out.append(m.library_id == filter.library_id)
    else:
        # A deleted library's memories are nowhere until it is brought back.
        out.append(m.library_id.in_(select(LibraryRow.id).where(LibraryRow.deleted_at.is_(None))))
    if filter.types:
        out.append(m.memory_type.in_(filter.types))
    if filter.statuses:
        out.append(m.status.in_(filter.statuses))
    if filter.scopes:
        out.append(m.scope.in_(filter.scopes))
    if filter.tags:
        out.append(m.tags.bool_op("&&")(list(filter.tags)))
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
    if filter.shorter_than is not None:
        out.append(func.char_length(m.content) < filter.shorter_than)
    if filter.confidence_below is not None:
        out.append(m.confidence < filter.confidence_below)
    if filter.never_recalled:
        out.append(m.access_count == 0)
    if filter.expired:
        out.append(~queries.unexpired())
    if filter.ids:
        out.append(m.id.in_([i for i in filter.ids if queries.is_uuid(i)]))
    return out
