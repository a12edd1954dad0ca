"""Why is this memory not among the hits? The first reason, and the least that would change it.

The steps are those a recall takes: the library, the visibility-and-status predicate part by part,
the vector, the candidates, the threshold, near-duplicates, the top K. Each is shown with what was
observed beside its limit.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, select

from memcore.database import queries
from memcore.database.tables import EmbeddingRow, MemoryRow
from memcore.explanations import Change, WhyNot
from memcore.models import (
    Actor,
    Check,
    Library,
    Memory,
    Scope,
    SearchResult,
    Status,
    Subject,
    Visibility,
)
from memcore.rules import ranking
from memcore.rules.remedies import remedies
from memcore.services.memories.recalling import Mode, Recalling, candidates_each
from memcore.settings import RankingSettings

_DROPPED_AT = {
    "below_threshold": "threshold",
    "near_duplicate": "distinct",
    "one_per_type": "distinct",
    "outranked": "top_k",
}


class Explaining(Recalling):
    """Part of MemoryService: absence."""

    def get(self, memory_id: str, *, actor: Actor) -> Memory:
        raise NotImplementedError  # Browsing has it

    def why_not(
        self,
        memory_id: str,
        query: str,
        *,
        subject: Subject,
        actor: Actor | None = None,
        k: int | None = None,
        mode: Mode | None = None,
        settings: RankingSettings | None = None,
    ) -> WhyNot:
        """Why `memory_id` is not a hit of `query` for `subject`, or at which place it is. Leaves
        no trace. Raises NotFound where there is no such memory or `actor` may not see it, and what
        `recall` raises."""
        actor = actor or Actor(subject.user_id)
        library = self._libraries.get(subject.library_id)
        kept = self._runtime.settings_of(library).settings
        memory = self.get(memory_id, actor=actor)
        known = self._known(memory, library, subject, share=kept.share_between_agents)
        standing = _standing(
            memory, known, library, subject, enabled=kept.enabled,
            agent=self._agent_check(library, subject),
        )  # fmt: skip
        checks = tuple(check for check, _ in standing)
        barred = [(check, change) for check, change in standing if not check.passed]
        if barred:
            check, change = barred[0]
            # One change helps only where nothing else stands in the way. Searching for the person
            # whose memory it is opens both scope and visibility.
            names = {check.name for check, _ in barred}
            alone = len(barred) == 1 or (
                memory.scope is Scope.USER and names == {"scope", "visibility"}
            )
            changes = (change,) if change and alone else ()
            return WhyNot(
                memory, query, False, None, check.name, check.note, checks, changes
            )  # fmt: skip
        result = self.recall(
            query, subject=subject, actor=actor, k=k, mode=mode, settings=settings,
            also=(memory.id,),
        )  # fmt: skip
        return _ranked(memory, known, result, checks)

    def _agent_check(self, library: Library, subject: Subject) -> tuple[Check, Change]:
        """Whether the subject's agent may recall anything here at all."""
        barred = self._libraries.bar(subject)
        note = barred.message if barred else "The agent's memory is on, or no agent asks."
        check = Check("agent_off", barred is None, "off" if barred else "on", "on", note)
        if barred and subject.agent_id:
            bound = self._libraries.agent(subject.agent_id).library_id
            if bound != library.id:
                return check, Change("agent's library", bound, library.id)
        return check, Change("agent's memory", False, True)

    def _known(
        self, memory: Memory, library: Library, subject: Subject, *, share: bool
    ) -> dict[str, bool]:
        """Which parts of the one predicate let the memory through, and how its vector is."""
        there = replace(subject, library_id=memory.library_id)
        parts = (
            queries.in_scope(there).label("in_scope"),
            queries.of_agent(subject, share_between_agents=share).label("of_agent"),
            queries.visible(Actor(subject.user_id)).label("visible"),
            queries.unexpired().label("unexpired"),
            EmbeddingRow.memory_id.is_not(None).label("has_vector"),
            (EmbeddingRow.content_hash == MemoryRow.content_hash).label("fresh_vector"),
        )
        vector = and_(
            EmbeddingRow.collection_id == library.collection_id,
            EmbeddingRow.memory_id == MemoryRow.id,
        )
        with self._runtime.engine.connect() as connection:
            row = connection.execute(
                select(*parts)
                .select_from(MemoryRow)
                .outerjoin(EmbeddingRow, vector)
                .where(MemoryRow.id == memory.id)
            ).one()
        known = {name: bool(value) for name, value in row._mapping.items()}
        if library.vector_store != "pgvector":
            known["has_vector"] = bool(self._runtime.store_for(library).fetch([memory.id]))
            known["fresh_vector"] = known["has_vector"]
        return known


def _standing(
    memory: Memory,
    known: dict[str, bool],
    library: Library,
    subject: Subject,
    *,
    enabled: bool,
    agent: tuple[Check, Change],
) -> list[tuple[Check, Change | None]]:
    """The checks before any ranking, each with the change that would let the memory through."""
    same_library = memory.library_id == library.id
    mine = {Scope.USER: subject.user_id, Scope.PROJECT: subject.project_id,
            Scope.SESSION: subject.session_id}[memory.scope]  # fmt: skip
    asked = {scope.value: id for scope, id in queries.scopes_of(subject)}
    widened = (
        Change("visibility", memory.visibility.value, Visibility.MEMBERS.value)
        if memory.visibility is Visibility.OWNER_ONLY
        else Change("membership", None, memory.project_id)
    )
    expiry = memory.expires_at.isoformat() if memory.expires_at else None
    return [
        (
            Check("library_disabled", enabled, "on" if enabled else "off", "on",
                  "The library is switched on." if enabled
                  else f"The library {library.name!r} is switched off."),
            Change("enabled", False, True),
        ),
        agent,
        (
            Check("other_library", same_library, memory.library_id, library.id,
                  "It is in the library searched." if same_library
                  else "It is in another library than the one searched."),
            Change("library", library.id, memory.library_id),
        ),
        (
            Check("status", memory.status is Status.ACTIVE, memory.status.value, "active",
                  f"It is {memory.status}; only active memories are recalled."
                  if memory.status is not Status.ACTIVE else "It is active."),
            Change("status", memory.status.value, Status.ACTIVE.value),
        ),
        (
            Check("expired", known["unexpired"], expiry, datetime.now(UTC).isoformat(),
                  "It has not expired." if known["unexpired"] else f"It expired at {expiry}."),
            Change("expires_at", expiry, None),
        ),
        (
            Check("scope", known["in_scope"], f"{memory.scope}: {memory.scope_id}",
                  ", ".join(f"{s}: {i}" for s, i in asked.items()),
                  "It is in a scope searched." if known["in_scope"]
                  else f"It belongs to {memory.scope} {memory.scope_id!r}, "
                  f"and the search was for {mine or 'none'!r}."),
            Change(memory.scope.value, mine, memory.scope_id),
        ),
        (
            Check("visibility", known["visible"], memory.visibility.value,
                  f"visible to {subject.user_id}",
                  f"{subject.user_id} may see it." if known["visible"]
                  else f"It is {memory.visibility}, and {subject.user_id!r} may not see it."),
            widened,
        ),
        (
            Check("other_agent", known["of_agent"], memory.agent_id, subject.agent_id,
                  "The agent may use it." if known["of_agent"]
                  else "It belongs to another agent and is not shared."),
            Change("shared", False, True),
        ),
    ]  # fmt: skip


def _ranked(
    memory: Memory, known: dict[str, bool], result: SearchResult, checks: tuple[Check, ...]
) -> WhyNot:
    """What ranking made of it. The recall was told to fetch it wherever it stands."""
    candidate = next((c for c in result.candidates if c.memory.id == memory.id), None)
    settings = result.ranking
    vector = Check(
        "vector", known["has_vector"] and known["fresh_vector"],
        "none" if not known["has_vector"] else "fresh" if known["fresh_vector"] else "stale",
        "fresh",
        "It has a vector of its text." if known["fresh_vector"]
        else "Its vector was made of an older text." if known["has_vector"]
        else "It has no vector, so only keywords can find it.",
    )  # fmt: skip
    if candidate is None:
        note = (
            "None of its words is in the query, and vectors were not searched."
            if result.terms
            else "The query has no word to search for, and vectors were not searched."
        )
        matched = Check("not_matched", False, 0.0, 0.0, note)
        mode = Change("mode", result.mode, "hybrid")
        return WhyNot(
            memory, result.query, False, None, matched.name, note, (*checks, vector, matched),
            (mode,),
        )  # fmt: skip
    now = result.at
    ordered = ranking.in_order(result.candidates, settings, now=now)
    hit = next(h for h, _, _ in ordered if h.memory.id == memory.id)
    place = next((i for i, h in enumerate(result.hits, 1) if h.memory.id == memory.id), None)
    dropped = next((d for d in result.dropped if d.memory.id == memory.id), None)
    by_score = next(i for i, (h, _, _) in enumerate(ordered, 1) if h.memory.id == memory.id)
    stages = _stages(candidate, by_score, result, dropped)
    checks = (*checks, vector, *stages)
    if place is not None:
        detail = f"It is hit {place} of {len(result.hits)}."
        return WhyNot(
            memory, result.query, True, place, "recalled", detail, checks, (), hit
        )  # fmt: skip
    assert dropped is not None
    reason, detail = dropped.reason, dropped.detail
    changes = remedies(result.candidates, memory.id, settings, now=now)
    if not vector.passed and result.mode != "keyword":
        reason = "no_vector" if not known["has_vector"] else "stale_vector"
        detail = f"{vector.note} By keywords alone: {dropped.detail}."
        changes = (Change("vector", vector.observed, "fresh"), *changes)
    elif not stages[0].passed and reason == "outranked":
        reason, detail = "not_a_candidate", f"{stages[0].note} {detail}."
    return WhyNot(
        memory, result.query, False, None, reason, detail, checks, changes, hit
    )  # fmt: skip


def _stages(candidate: Any, by_score: int, result: SearchResult, dropped: Any) -> tuple[Check, ...]:
    """Candidates, threshold, distinct, top K: each passed or not, with its numbers."""
    settings = result.ranking
    each = candidates_each(settings)
    places = [
        f"{place} by {name}"
        for place, name in ((candidate.dense_rank, "vector"), (candidate.lexical_rank, "keyword"))
        if place is not None
    ]
    nearest = min(
        (p for p in (candidate.dense_rank, candidate.lexical_rank) if p is not None), default=None
    )
    inside = by_score <= each or (nearest is not None and nearest <= each)
    fell = _DROPPED_AT.get(dropped.reason, "top_k") if dropped else None
    similarity = ranking.absolute_similarity(candidate, settings)
    said = dropped.detail if dropped else ""
    order = ("candidates", "threshold", "distinct", "top_k")
    reached = order.index(fell) if fell else len(order)

    def stage(name: str, observed: Any, limit: Any, note: str) -> Check:
        return Check(name, order.index(name) < reached, observed, limit,
                     said if name == fell else note)  # fmt: skip

    place = f"Place {' and '.join(places)}" if places else "It is near by neither channel"
    return (
        Check(
            "candidates", inside, nearest, each,
            f"{place} of {result.documents}; the {each} nearest of each are looked at.",
        ),
        stage("threshold", similarity, settings.similarity_threshold,
              "Its similarity is enough." if settings.similarity_threshold is not None
              else "No threshold is set."),
        stage("distinct", None, settings.dedupe, "No hit says the same."),
        stage("top_k", None, settings.max_recall, "It is among the hits."),
    )  # fmt: skip
