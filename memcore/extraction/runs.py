"""Extraction runs as they are logged and compared: what was read, proposed, judged, stored.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memcore.extraction import Action, Evidence, Extraction, Flag, Proposal, Skipped
from memcore.models import Check, Draft, MemoryType, Message, Scope, ToolCall, Verdict, Visibility
from memcore.rules.lexical import index_terms
from memcore.text import normalise


@dataclass(frozen=True, slots=True)
class Judged:
    """One proposal and what became of it."""

    number: int
    """Its place in the run, from 0; what a person ticks."""
    proposal: Proposal
    status: str
    """proposed (a dry run; the gate would let it in), added, updated, deleted, rejected (by the
    gate), held (for a person), repeat (this message yielded it before), refused (trouble)."""
    verdict: Verdict | None = None
    note: str = ""
    memory_id: str | None = None
    decision_id: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One extraction, as the log keeps it. Secrets are masked in texts and reply."""

    id: str
    at: datetime
    library_id: str
    user_id: str
    agent_id: str | None
    project_id: str | None
    session_id: str | None
    extractor: str
    outcome: str
    """An Outcome, or rate_limited, failed (the endpoint), off, running."""
    detail: str
    items: tuple[Judged, ...]
    skipped: tuple[Skipped, ...]
    counts: Mapping[str, int]
    """extracted, kept, held, skipped, collapsed; added, updated, deleted, rejected, repeat."""
    ms: float
    tokens: int
    mode: str
    read_by: str
    dry_run: bool
    counted: bool
    """True: the rate check counts it. Only runs that stored something are."""
    context: tuple[Message, ...]
    messages: tuple[Message, ...]
    raw_reply: str
    missed: tuple[str, ...] = ()
    repeats: str | None = None
    """The run it repeats with another extractor."""
    upto: int = 0
    """Place of the last message read; 0 for a conversation that is not stored."""

    @property
    def failed(self) -> bool:
        return self.outcome in ("refused", "truncated", "unparsable", "failed")


@dataclass(frozen=True, slots=True)
class Pair:
    """One statement in two runs; either side may lack it."""

    left: Judged | None
    right: Judged | None
    agreement: float
    """Share of words in common, [0, 1]; 0 where one side lacks it."""


def compare(left: Run, right: Run, *, least: float = 0.5) -> tuple[Pair, ...]:
    """Statements of two runs side by side, best agreement first; each stands in one pair."""
    terms = {
        id(j): frozenset(index_terms(normalise(j.proposal.draft.content)))
        for j in (*left.items, *right.items)
    }
    scored = sorted(
        (
            (_overlap(terms[id(a)], terms[id(b)]), -a.number, -b.number, a, b)
            for a in left.items
            for b in right.items
        ),
        key=lambda x: x[:3],
        reverse=True,
    )
    used: set[int] = set()
    pairs = []
    for score, _, _, a, b in scored:
        if score >= least and not used & {id(a), id(b)}:
            used |= {id(a), id(b)}
            pairs.append(Pair(a, b, score))
    pairs += [Pair(a, None, 0.0) for a in left.items if id(a) not in used]
    pairs += [Pair(None, b, 0.0) for b in right.items if id(b) not in used]
    return tuple(pairs)


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a and b else 0.0


def counts_of(extraction: Extraction, items: Sequence[Judged]) -> dict[str, int]:
    """The run's report in numbers."""
    by_status = {s: sum(j.status == s for j in items) for s in _STATUSES}
    return {**extraction.counts, **by_status}


_STATUSES = ("added", "updated", "deleted", "rejected", "repeat", "refused")


# ---- from JSON -------------------------------------------------------------------------------


def judged_from(value: Mapping[str, Any]) -> Judged:
    """What `plain` made of a Judged."""
    verdict = value.get("verdict")
    return Judged(
        value["number"],
        proposal_from(value["proposal"]),
        value["status"],
        Verdict(**{**verdict, "checks": tuple(Check(**c) for c in verdict["checks"])})
        if verdict
        else None,
        value.get("note", ""),
        value.get("memory_id"),
        value.get("decision_id"),
    )


def proposal_from(value: Mapping[str, Any]) -> Proposal:
    evidence = value.get("evidence")
    return Proposal(
        draft_from(value["draft"]),
        Evidence(**evidence) if evidence else None,
        Action(value["action"]),
        value.get("target_id"),
        tuple(Flag(**f) for f in value.get("flags", ())),
        tuple(value.get("notes", ())),
    )


def draft_from(value: Mapping[str, Any]) -> Draft:
    moments = {
        k: datetime.fromisoformat(value[k]) for k in ("expires_at", "created_at") if value.get(k)
    }
    return Draft(
        **{
            **value,
            "memory_type": MemoryType(value["memory_type"]),
            "scope": Scope(value["scope"]),
            "visibility": Visibility(value["visibility"]),
            "tags": tuple(value["tags"]),
            **moments,
        }
    )


def message_from(value: Mapping[str, Any]) -> Message:
    at = value.get("created_at")
    return Message(
        **{
            **value,
            "created_at": datetime.fromisoformat(at) if at else None,
            "tool_calls": tuple(ToolCall(**c) for c in value.get("tool_calls", ())),
        }
    )
