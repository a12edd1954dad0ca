"""Which single setting would bring a memory into a recall, and by how little. Pure: no I/O.

Every setting that can matter is moved as little as brings the memory among the hits, the others
left alone; what is offered is checked by ranking again. The least move comes first, each measured
by a step a person would call a step: a tenth of a weight, a threshold's 0.05, one more hit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memcore.explanations import Change
from memcore.models import Candidate
from memcore.rules.ranking import rank
from memcore.settings import SPECS, RankingSettings

_WEIGHTS = (
    "similarity_weight",
    "confidence_weight",
    "scope_weight",
    "keyword_weight",
    "recency_weight",
    "usage_weight",
)
_SHARES = ("dense_weight", "session_priority", "project_priority", "user_priority")

_STEPS = {"max_recall": 1.0, "similarity_threshold": 0.05, "dedupe_threshold": 0.05}
_STEP = 0.1
_MOST_OF_A_WEIGHT = 3.0
_DIGITS = 2


Found = Callable[[RankingSettings], bool]


def remedies(
    candidates: Sequence[Candidate],
    memory_id: str,
    settings: RankingSettings,
    *,
    now: datetime | None = None,
) -> tuple[Change, ...]:
    """Changes each of which alone makes `memory_id` a hit, the smallest first. Empty when no single
    one does; `memory_id` must be among the candidates and not be a hit already."""

    def found(changed: RankingSettings) -> bool:
        return any(h.memory.id == memory_id for h in rank(candidates, changed, now=now).hits)

    offers = (
        _more_hits(found, settings, len(candidates)),
        *_lower_threshold(found, settings),
        *_other_dedupe(found, settings),
        *(_least(found, settings, name, 0.0, _MOST_OF_A_WEIGHT) for name in _WEIGHTS),
        *(_least(found, settings, name, 0.0, 1.0) for name in _SHARES),
    )
    return tuple(sorted((o for o in offers if o), key=lambda c: (c.steps, c.setting)))


def _change(settings: RankingSettings, name: str, after: Any, steps: float | None = None) -> Change:
    before = getattr(settings, name)
    if steps is None:
        steps = abs(after - before) / _STEPS.get(name, _STEP)
    return Change(name, before, after, round(steps, 3))


def _more_hits(found: Found, settings: RankingSettings, candidates: int) -> Change | None:
    most = int(SPECS["max_recall"].high or 100)
    low, high = settings.max_recall, min(most, candidates)
    if high <= low or not found(replace(settings, max_recall=high)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if found(replace(settings, max_recall=middle)):
            high = middle
        else:
            low = middle
    return _change(settings, "max_recall", high)


def _lower_threshold(found: Found, settings: RankingSettings) -> Iterable[Change]:
    now = settings.similarity_threshold
    if now is None:
        return
    lower = _least(found, settings, "similarity_threshold", 0.0, now)
    if lower:
        yield lower
    elif found(replace(settings, similarity_threshold=None)):
        yield _change(settings, "similarity_threshold", None, now / _STEPS["similarity_threshold"])


def _other_dedupe(found: Found, settings: RankingSettings) -> Iterable[Change | None]:
    if settings.dedupe == "near_duplicate":
        yield _least(found, settings, "dedupe_threshold", settings.dedupe_threshold, 1.0)
    if settings.dedupe == "one_per_type" and found(replace(settings, dedupe="near_duplicate")):
        yield _change(settings, "dedupe", "near_duplicate", 1.0)
    if settings.dedupe != "off" and found(replace(settings, dedupe="off")):
        yield _change(settings, "dedupe", "off", 2.0)


def _least(
    found: Found, settings: RankingSettings, name: str, low: float, high: float
) -> Change | None:
    """The nearest value in [low, high], rounded to two digits, that brings it in, upwards or
    downwards; None when neither end nor anything probed on the way does."""
    before = float(getattr(settings, name))
    best: Change | None = None
    for end in (low, high):
        # The outcome need not be monotone in a weight, so a few points are probed before halving.
        points = [before + (end - before) * share for share in (0.1, 0.25, 0.5, 0.75, 1.0)]
        reached = next((p for p in points if _at(found, settings, name, p)), None)
        if reached is None or reached == before:
            continue
        short = before
        for _ in range(12):
            middle = (short + reached) / 2
            if _at(found, settings, name, middle):
                reached = middle
            else:
                short = middle
        # Rounded away from where it is now, so that it still works and can be typed.
        scale = 10**_DIGITS
        outwards = math.ceil if end > before else math.floor
        value = min(high, max(low, outwards(reached * scale) / scale))
        if not _at(found, settings, name, value):
            value = reached
        change = _change(settings, name, value)
        if best is None or change.steps < best.steps:
            best = change
    return best


def _at(found: Found, settings: RankingSettings, name: str, value: float) -> bool:
    changed: dict[str, Any] = {name: value}
    return found(replace(settings, **changed))
