"""The value objects that explain a recall: absence, what would change it, replay. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memcore.models import Candidate, Check, Hit, Memory, Ranking, Subject
from memcore.settings import RankingSettings


@dataclass(frozen=True, slots=True)
class Change:
    """One setting moved, all others left alone."""

    setting: str
    """A setting's name, or what else would have to change: status, expires_at, project, …"""
    before: Any
    after: Any
    steps: float = 1.0
    """How far it moves: a tenth of a weight, 0.05 of a threshold or one more hit is one step."""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why one memory is not among a query's hits, or at which place it is."""

    memory: Memory
    query: str
    present: bool
    place: int | None
    """From 1; None when it is not a hit."""
    reason: str
    """recalled, or the first that keeps it out: library_disabled, agent_off, other_library, status,
    expired, scope, visibility, other_agent, no_vector, stale_vector, not_matched, below_threshold,
    near_duplicate, one_per_type, not_a_candidate, outranked."""
    detail: str
    checks: tuple[Check, ...]
    """Every step on the way, in order, with what was observed beside its limit."""
    changes: tuple[Change, ...] = ()
    """Single changes each of which would bring it in, the smallest first."""
    hit: Hit | None = None
    """Its terms, wherever it stands; None when it was not scored."""

    @property
    def change(self) -> Change | None:
        """The smallest single change that would bring it in; None when no single one does."""
        return self.changes[0] if self.changes else None


@dataclass(frozen=True, slots=True)
class LoggedRecall:
    """One recall of an agent, as it was logged."""

    id: int
    at: datetime
    subject: Subject
    query: str
    mode: str
    candidates: tuple[Candidate, ...]
    """The facts of then with the texts of now. A memory that is gone, or that may not be seen, has
    no text and is in `gone`."""
    ranking: RankingSettings
    hits: tuple[str, ...]
    """Memory ids, best first."""
    timings: Mapping[str, float]
    gone: frozenset[str]


@dataclass(frozen=True, slots=True)
class Move:
    """A memory's place in two rankings, from 1; None: not among the hits."""

    memory_id: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What other settings do to one recall."""

    moves: tuple[Move, ...]
    """Every hit of either ranking, in the order of the second, then what it lost."""
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def same(self) -> bool:
        return all(m.before == m.after for m in self.moves)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A logged recall ranked under other settings."""

    recall: LoggedRecall
    ranking: Ranking
    comparison: Comparison
