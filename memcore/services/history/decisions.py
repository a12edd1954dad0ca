"""The gate's log: every draft it judged, on which facts, under which settings, with what outcome.

A neighbour is kept as numbers and a relation beside its memory's id; its text is read again when
the log is, so what was deleted or may not be seen is in no log. Decisions belong to their user: an
actor who is no operator sees their own. Replaying them needs no I/O (`gate.replay`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, true

from memcore.database import queries, records
from memcore.database.tables import AgentRow, DecisionRow, MemoryRow
from memcore.errors import NotFound
from memcore.models import Actor, Draft, Facts, Subject, Verdict
from memcore.rules import gate
from memcore.services.runtime import Runtime
from memcore.settings import GateSettings

OUTCOMES = (
    "stored", "update", "conflict", "review", "duplicate", "rejected", "unchecked",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """One draft as the gate judged it."""

    id: int
    at: datetime
    subject: Subject
    agent: str | None
    """Name."""
    draft: Draft
    """Without secrets."""
    facts: Facts
    """Neighbours carry their text as it is now, blank where it is gone or may not be seen."""
    settings: GateSettings
    verdict: Verdict
    memory_id: str | None
    """What became of it; None where nothing was stored."""
    run_id: str | None


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which decisions; None and empty mean any."""

    library_id: str | None = None
    outcomes: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    """Names of checks that blocked first."""
    sources: tuple[str, ...] = ()
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    memory_id: str | None = None
    """Decisions that made, matched or replaced this memory."""
    text: str = ""
    """Part of the draft, case ignored."""
    since: datetime | None = None
    until: datetime | None = None
    waiting: bool = False
    """Held for a person and not yet approved."""


@dataclass(frozen=True, slots=True)
class DecisionPage:
    decisions: tuple[LoggedDecision, ...]
    """Newest first."""
    total: int
    outcomes: Mapping[str, int]
    """Outcome → how many under all filters but the one on outcome."""


class Decisions:
    """Part of HistoryService: what the gate decided."""

    _runtime: Runtime

    def decisions(
        self, filter: DecisionFilter, *, actor: Actor, limit: int = 50, offset: int = 0
    ) -> DecisionPage:
        """One page of the log. Raises DatabaseError."""
        d = DecisionRow
        wanted = _where(filter, actor)
        by_outcome = replace(filter, outcomes=())
        with self._runtime.engine.connect() as connection:
            counts = connection.execute(
                select(d.outcome, func.count()).where(_where(by_outcome, actor)).group_by(d.outcome)
            ).all()
            rows = connection.execute(
                select(d, AgentRow.name.label("agent"))
                .outerjoin(AgentRow, AgentRow.id == d.agent_id)
                .where(wanted)
                .order_by(d.id.desc())
                .limit(limit)
                .offset(offset)
            ).all()
            texts = _texts(connection, rows, actor)
        outcomes = {outcome: int(number) for outcome, number in counts}
        total = sum(n for o, n in outcomes.items() if not filter.outcomes or o in filter.outcomes)
        return DecisionPage(tuple(_decision(row, texts) for row in rows), total, outcomes)

    def decision(self, decision_id: int, *, actor: Actor) -> LoggedDecision:
        """One decision. Raises NotFound, also for what the actor may not see."""
        d = DecisionRow
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(
                select(d, AgentRow.name.label("agent"))
                .outerjoin(AgentRow, AgentRow.id == d.agent_id)
                .where(d.id == decision_id, _own(actor))
            ).all()
            if not rows:
                raise NotFound("There is no such decision in the log, or none you may see.")
            return _decision(rows[0], _texts(connection, rows, actor))

    def replay_decisions(
        self, filter: DecisionFilter, settings: GateSettings, *, actor: Actor, limit: int = 200
    ) -> tuple[tuple[LoggedDecision, ...], gate.Replay]:
        """The newest `limit` decisions judged again under `settings`: as they stand and what they
        would be."""
        decisions = self.decisions(filter, actor=actor, limit=limit).decisions
        return decisions, replayed(decisions, settings)


def replayed(decisions: Sequence[LoggedDecision], settings: GateSettings) -> gate.Replay:
    """`decisions` under `settings`, without I/O."""
    return gate.replay([(d.draft, d.facts, d.verdict) for d in decisions], settings)


def _own(actor: Actor) -> ColumnElement[bool]:
    return true() if actor.operator else DecisionRow.user_id == actor.user_id


def _where(filter: DecisionFilter, actor: Actor) -> ColumnElement[bool]:
    d = DecisionRow
    wanted: list[ColumnElement[bool]] = [_own(actor)]
    for column, value in (
        (d.library_id, filter.library_id),
        (d.user_id, filter.user_id),
        (d.agent_id, filter.agent_id),
        (d.conversation_id, filter.session_id),
    ):
        if value is not None:
            wanted.append(column == value)
    for column, values in (
        (d.outcome, filter.outcomes),
        (d.blocked_by, filter.blocked_by),
        (d.source, filter.sources),
    ):
        if values:
            wanted.append(column.in_(values))
    if filter.memory_id is not None:
        wanted.append(or_(d.memory_id == filter.memory_id, d.matched_id == filter.memory_id))
    if filter.text:
        wanted.append(d.facts["text"].as_string().icontains(filter.text, autoescape=True))
    if filter.since is not None:
        wanted.append(d.at >= filter.since)
    if filter.until is not None:
        wanted.append(d.at < filter.until)
    if filter.waiting:
        wanted += [d.outcome.in_(("review", "unchecked")), d.memory_id.is_(None)]
    return and_(*wanted)


def _texts(connection: Connection, rows: Sequence[Any], actor: Actor) -> dict[str, str]:
    """Memory id → content, of the neighbours the actor may see."""
    ids = {n["memory_id"] for row in rows for n in row.facts.get("neighbours") or ()}
    if not ids:
        return {}
    found = connection.execute(
        select(MemoryRow.id, MemoryRow.content).where(MemoryRow.id.in_(ids), queries.visible(actor))
    )
    return {row.id: row.content for row in found}


def _decision(row: Any, texts: Mapping[str, str]) -> LoggedDecision:
    facts = records.facts_from(row.facts)
    if facts.neighbours is not None:
        known = tuple(replace(n, content=texts.get(n.memory_id, "")) for n in facts.neighbours)
        facts = replace(facts, neighbours=known)
    return LoggedDecision(
        id=row.id,
        at=row.at,
        subject=Subject(
            row.library_id, row.user_id, row.project_id, row.conversation_id, row.agent_id
        ),
        agent=row.agent,
        draft=records.draft_from(row.draft),
        facts=facts,
        settings=records.gate_settings_from(row.settings),
        verdict=Verdict(
            checks=records.checks_from(row.checks),
            accepted=row.accepted,
            blocked_by=row.blocked_by,
            outcome=row.outcome,
            matched_id=row.matched_id,
        ),
        memory_id=row.memory_id,
        run_id=row.run_id,
    )
