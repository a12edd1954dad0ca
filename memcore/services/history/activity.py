"""The overview's figures: what is stored, what the gate let through, what agents recalled.

Each figure is counted in SQL through the one visibility predicate, so a card never says another
number than the page it opens. Decisions and recalls belong to their user: an actor who is no
operator sees their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

from sqlalchemy import ColumnElement, Date, cast, func, select, true
from sqlalchemy.orm import InstrumentedAttribute

from memcore.database import queries
from memcore.database.tables import AgentRow, DecisionRow, MemoryRow, RecallRow
from memcore.models import Actor, MemoryType, Scope, Status
from memcore.services.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Figures:
    """What a library holds and did. Counts are memories unless said otherwise."""

    statuses: Mapping[Status, int]
    """Every status, 0 included."""
    types: Mapping[MemoryType, int]
    """Active ones."""
    scopes: Mapping[Scope, int]
    """Active ones."""
    expired: int
    """Active in the table but past their expiry, so no longer recalled."""
    judged: int
    """Drafts the gate judged in the window."""
    accepted: int
    blocked: Mapping[str, int]
    """Check name → drafts it was the first to block, in the window."""
    recalls: int
    """Recalls logged in the window."""
    recalls_with_hits: int
    recall_ms: float | None
    """Median duration of those recalls; None where none was logged."""
    stored_by_day: Mapping[date, int]
    """Memories created per day of the viewer's zone, in the window; days without are absent."""
    window_days: int


@dataclass(frozen=True, slots=True)
class Glance:
    """One line of a log, for a list that links to the page with all of it."""

    id: int
    at: datetime
    user_id: str
    agent: str | None
    text: str
    """The draft, masked, or the query."""
    outcome: str
    """Decisions: stored, rejected, …; recalls: the number of hits."""
    reason: str | None
    """Decisions: the check that blocked it."""
    memory_ids: tuple[str, ...]


class Activity:
    """Part of HistoryService: figures and the latest lines of both logs."""

    _runtime: Runtime

    def figures(
        self, library_id: str, *, actor: Actor, zone: tzinfo, now: datetime, window_days: int = 21
    ) -> Figures:
        """Counted now; the window are the last `window_days` days up to `now`."""
        m = MemoryRow
        mine = (m.library_id == library_id, queries.visible(actor))
        since = now - timedelta(days=window_days)
        day = cast(func.timezone(str(zone), m.created_at), Date)
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(
                select(m.status, m.memory_type, m.scope, func.count())
                .where(*mine)
                .group_by(m.status, m.memory_type, m.scope)
            ).all()
            expired = connection.scalar(
                select(func.count()).select_from(m).where(
                    *mine, m.status == Status.ACTIVE, ~queries.unexpired()
                )
            )  # fmt: skip
            by_day = {
                row[0]: row[1]
                for row in connection.execute(
                    select(day, func.count()).where(*mine, m.created_at >= since).group_by(day)
                )
            }
            d = DecisionRow
            judged = connection.execute(
                select(d.accepted, d.blocked_by, func.count())
                .where(d.library_id == library_id, d.at >= since, _own(d.user_id, actor))
                .group_by(d.accepted, d.blocked_by)
            ).all()
            r = RecallRow
            total = r.timings["total"].as_float()
            recalls = connection.execute(
                select(
                    func.count(),
                    func.count().filter(func.jsonb_array_length(r.hits) > 0),
                    func.percentile_cont(0.5).within_group(total),
                ).where(r.library_id == library_id, r.at >= since, _own(r.user_id, actor))
            ).one()
        statuses = dict.fromkeys(Status, 0)
        types: dict[MemoryType, int] = {}
        scopes: dict[Scope, int] = {}
        for status, memory_type, scope, count in rows:
            statuses[status] += count
            if status == Status.ACTIVE:
                types[memory_type] = types.get(memory_type, 0) + count
                scopes[scope] = scopes.get(scope, 0) + count
        return Figures(
            statuses=statuses,
            types=types,
            scopes=scopes,
            expired=expired or 0,
            judged=sum(row[2] for row in judged),
            accepted=sum(row[2] for row in judged if row[0]),
            blocked={row[1]: row[2] for row in judged if not row[0] and row[1]},
            recalls=recalls[0],
            recalls_with_hits=recalls[1],
            recall_ms=recalls[2],
            stored_by_day=by_day,
            window_days=window_days,
        )

    def latest_decisions(self, library_id: str, *, actor: Actor, limit: int = 8) -> list[Glance]:
        """Newest first."""
        d = DecisionRow
        query = (
            select(d, AgentRow.name.label("agent"))
            .outerjoin(AgentRow, AgentRow.id == d.agent_id)
            .where(d.library_id == library_id, _own(d.user_id, actor))
            .order_by(d.at.desc(), d.id.desc())
            .limit(limit)
        )
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(query).all()
        return [
            Glance(
                row.id, row.at, row.user_id, row.agent, row.facts.get("text", ""), row.outcome,
                row.blocked_by, tuple(i for i in (row.memory_id, row.matched_id) if i),
            )
            for row in rows
        ]  # fmt: skip

    def latest_recalls(self, library_id: str, *, actor: Actor, limit: int = 8) -> list[Glance]:
        """Newest first."""
        r = RecallRow
        query = (
            select(r, AgentRow.name.label("agent"))
            .outerjoin(AgentRow, AgentRow.id == r.agent_id)
            .where(r.library_id == library_id, _own(r.user_id, actor))
            .order_by(r.at.desc(), r.id.desc())
            .limit(limit)
        )
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(query).all()
        return [
            Glance(
                row.id, row.at, row.user_id, row.agent, row.query, str(len(row.hits)), None,
                tuple(_memory_id(hit) for hit in row.hits),
            )
            for row in rows
        ]  # fmt: skip


def _own(column: InstrumentedAttribute[str], actor: Actor) -> ColumnElement[bool]:
    return true() if actor.operator else column == actor.user_id


def _memory_id(hit: Any) -> str:
    return str(hit["memory_id"] if isinstance(hit, dict) else hit)
