# ruff: noqa: E501
"""The write filter: five checks on gathered facts, always all of them, always in one order.

Pure: no I/O. confidence → sensitive → length → duplicate → rate. Facts are gathered once and may be
judged any number of times, so a page can move a threshold and see what would have happened.
docs/gate.md states every rule; thresholds count as met at equality, and a number is taken to be
what it was before a float32 column rounded it (`TOLERANCE`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memcore.models import Check, Draft, Facts, Neighbour, Verdict
from memcore.rules import duplicates, noise
from memcore.rules.sensitive import KINDS
from memcore.settings import GateSettings

CHECKS = ("confidence", "sensitive", "length", "duplicate", "rate")

TOLERANCE = 2.0**-24
"""Unit roundoff of float32: 0.7 read back from a float32 column is 0.699999988 and still meets a
limit of 0.7; 0.6999999 does not."""


def judge(draft: Draft, facts: Facts, settings: GateSettings) -> Verdict:
    """Every check on `facts` under `settings`. Never raises for odd numbers: a NaN meets no limit.

    `draft` gives its memory type, which a duplicate's note compares with the match's.
    """
    confidence = _confidence(facts, settings)
    sensitive, held = _sensitive(facts, settings)
    length = _length(facts, settings)
    duplicate, relation, match = _duplicate(draft, facts, settings)
    rate = _rate(facts, settings)
    checks = (confidence, sensitive, length, duplicate, rate)
    blocked_by = next((c.name for c in checks if not c.passed), None)
    if blocked_by is None:
        outcome = relation or "stored"
    elif blocked_by == "sensitive" and held and length.passed and duplicate.passed and rate.passed:
        outcome = "review"
    elif blocked_by == "duplicate":
        outcome = relation or "rejected"
    else:
        outcome = "rejected"
    return Verdict(
        checks=checks,
        accepted=blocked_by is None,
        blocked_by=blocked_by,
        outcome=outcome,
        matched_id=match.memory_id if match is not None else None,
    )


@dataclass(frozen=True, slots=True)
class Flip:
    """A stored decision that would come out otherwise."""

    index: int
    before: Verdict
    after: Verdict


@dataclass(frozen=True, slots=True)
class Replay:
    """What stored decisions become under other settings."""

    verdicts: tuple[Verdict, ...]
    flips: tuple[Flip, ...]
    """Where acceptance or outcome changes, in the order given."""
    counts_before: dict[str, int]
    """Outcome → how many."""
    counts_after: dict[str, int]

    @property
    def newly_accepted(self) -> int:
        return sum(f.after.accepted and not f.before.accepted for f in self.flips)

    @property
    def newly_refused(self) -> int:
        return sum(f.before.accepted and not f.after.accepted for f in self.flips)


def judge_many(cases: Iterable[tuple[Draft, Facts]], settings: GateSettings) -> tuple[Verdict, ...]:
    """`judge` of each; facts whose neighbours carry their comparison cost microseconds."""
    return tuple(judge(draft, facts, settings) for draft, facts in cases)


def replay(decisions: Sequence[tuple[Draft, Facts, Verdict]], settings: GateSettings) -> Replay:
    """Stored decisions judged again under `settings`: counts by outcome, and those that flip."""
    verdicts = judge_many(((d, f) for d, f, _ in decisions), settings)
    flips = []
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for i, ((_, _, old), new) in enumerate(zip(decisions, verdicts, strict=True)):
        before[old.outcome] = before.get(old.outcome, 0) + 1
        after[new.outcome] = after.get(new.outcome, 0) + 1
        if (old.accepted, old.outcome) != (new.accepted, new.outcome):
            flips.append(Flip(i, old, new))
    return Replay(verdicts, tuple(flips), before, after)


def near_floor(threshold: float) -> float:
    """Similarity from which a pair is looked at: as far below the threshold as that is below 1."""
    return max(0.0, 2 * threshold - 1)


def certain(threshold: float) -> float:
    """Similarity from which a rewording is a duplicate without doubt: halfway to 1."""
    return (1 + threshold) / 2


def meets(value: float, limit: float) -> bool:
    """value ≥ limit, float32 rounding forgiven; False for NaN."""
    return value >= limit - TOLERANCE


def apart(value: float, limit: float) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to tell them apart, at least two."""
    exact = len(f"{limit:.6g}".partition(".")[2])
    for digits in range(max(2, exact), 9):
        a, b = f"{value:.{digits}f}", f"{limit:.{digits}f}"
        if a != b or abs(value - limit) <= TOLERANCE:
            return a, b
    return repr(value), repr(limit)


def _confidence(facts: Facts, settings: GateSettings) -> Check:
    value, limit = facts.confidence, settings.min_confidence
    passed = meets(value, limit)
    if not math.isfinite(value):
        note = "The confidence is not a number."
    else:
        a, b = apart(value, limit)
        note = (
            f"Confidence {a} reaches the minimum of {b}."
            if passed
            else f"Confidence {a} is below the minimum of {b}."
        )
    return Check("confidence", passed, value, limit, note)


def _sensitive(facts: Facts, settings: GateSettings) -> tuple[Check, bool]:
    """The check, and whether what failed only waits for a person (instruction-like text)."""
    secrets = [f for f in facts.sensitive if f.kind != "instruction"]
    instructions = len(facts.sensitive) - len(secrets)
    observed = ", ".join(dict.fromkeys(f.kind for f in facts.sensitive)) or "nothing"
    names = ", ".join(dict.fromkeys(KINDS[f.kind] for f in secrets))
    redact = settings.sensitive_action == "redact"
    limit = "masked" if redact else "none allowed"
    if secrets and not redact:
        spans = ", ".join(dict.fromkeys(f.masked for f in secrets))
        note = f"It contains a secret: {names}. Masked: {spans}."
        return Check("sensitive", False, observed, limit, note), False
    if instructions:
        note = "It reads like an instruction to the agent, not a fact: a person has to approve it."
        return Check("sensitive", False, observed, limit, note), True
    if secrets:
        note = f"It contains a secret ({names}), which is masked before it is stored."
        return Check("sensitive", True, observed, limit, note), False
    return Check("sensitive", True, observed, limit, "No secret was found."), False


def _length(facts: Facts, settings: GateSettings) -> Check:
    length = len(facts.text)
    observed = 0 if noise.only_noise(facts.text) else length
    limit = f"{settings.min_length}–{settings.max_length}"
    passed = settings.min_length <= observed <= settings.max_length
    if observed < length and not passed:
        note = f"Its {length} characters only greet, thank or acknowledge: nothing to remember."
    elif observed < settings.min_length:
        note = f"{length} characters are fewer than the {settings.min_length} a memory needs."
    elif observed > settings.max_length:
        note = f"{length} characters are more than the {settings.max_length} a memory may have."
    else:
        note = f"{length} characters lie within {limit}."
    return Check("length", passed, observed, limit, note)


def _duplicate(
    draft: Draft, facts: Facts, settings: GateSettings
) -> tuple[Check, str, Neighbour | None]:
    """The check, the outcome it asks for ("" for none) and the memory it is about."""
    limit = settings.duplicate_threshold
    if facts.neighbours is None:
        why = facts.trouble.rstrip(".") or "the similarity query failed"
        note = f"Could not be checked: {why}. It is held, not stored."
        return Check("duplicate", False, None, limit, note), "unchecked", None
    for n in facts.neighbours:
        if n.exact:
            note = f"The same statement is already stored{_other_type(draft, n)}."
            return Check("duplicate", False, 1.0, limit, note), "duplicate", n
    floor, sure = near_floor(limit), certain(limit)
    unknown = False
    nearest = 0.0
    found: dict[str, tuple[Neighbour, str]] = {}
    for n in facts.neighbours:
        s = n.similarity
        if not math.isfinite(s):
            unknown = True
            continue
        nearest = max(nearest, s)
        if not meets(s, floor) and n.relation != "same":
            continue
        relation, reason = n.relation, n.reason
        if not relation:
            pair = duplicates.compare(n.content, facts.text)
            relation, reason = pair.relation, pair.reason
        if relation == "same":
            outcome = "duplicate"
        elif relation in ("covered", "reworded") and meets(s, limit):
            outcome = "duplicate" if relation == "covered" or meets(s, sure) else "review"
        elif relation == "covered" and meets(s, floor):
            outcome = "review"
        elif relation == "extended" and meets(s, floor):
            outcome = "update"
        elif relation in ("update", "conflict"):
            outcome = relation
        else:
            outcome = "near" if meets(s, limit) else ""
        if outcome in ("update", "conflict") and not n.replaceable:
            outcome, reason = "review", f"{reason} It is another person's, so it stays."
        if outcome and outcome not in found:
            found[outcome] = (n, reason)
    for outcome in ("duplicate", "conflict", "update", "review"):
        if outcome in found:
            n, reason = found[outcome]
            note = _note(outcome, n, limit, reason, draft)
            check = Check("duplicate", outcome != "duplicate", n.similarity, limit, note)
            return check, outcome, n
    if unknown:
        note = "Could not be checked: a similarity is not a number. It is held, not stored."
        return Check("duplicate", False, None, limit, note), "unchecked", None
    if "near" in found:
        n, reason = found["near"]
        a, b = apart(n.similarity, limit)
        note = f"Similarity {a} reaches {b}, but it is not a duplicate: {reason}"
        return Check("duplicate", True, n.similarity, limit, note), "", None
    if not facts.neighbours:
        note = "Nothing is stored here yet that it could repeat."
    else:
        a, b = apart(nearest, limit)
        note = f"The nearest memory has similarity {a}, below {b}."
    return Check("duplicate", True, nearest, limit, note), "", None


def _note(outcome: str, n: Neighbour, limit: float, reason: str, draft: Draft) -> str:
    a, b = apart(n.similarity, limit)
    if outcome == "duplicate":
        return f"It repeats a stored memory{_other_type(draft, n)} (similarity {a}, limit {b}): {reason}"
    what = {
        "conflict": "It contradicts a stored memory, which it will supersede",
        "update": "It updates a stored memory, which it will supersede",
        "review": "It is close to a stored memory; both are kept and flagged for review",
    }[outcome]
    return f"{what} (similarity {a}, limit {b}): {reason}"


def _other_type(draft: Draft, n: Neighbour) -> str:
    if draft.memory_type == n.memory_type:
        return ""
    return f" (there as {n.memory_type.value}, here as {draft.memory_type.value})"


def _rate(facts: Facts, settings: GateSettings) -> Check:
    used, limit = facts.extractions_in_window, settings.max_extractions
    if facts.rate_exempt:
        note = "Written by hand: the limit on extractions does not apply."
        return Check("rate", True, used, limit, note)
    left = max(0, limit - used)
    passed = used < limit
    note = f"{used} of {limit} extraction runs used in the last 24 hours, {left} left."
    if not passed:
        note = f"All {limit} extraction runs of the last 24 hours are used."
        if facts.next_slot is not None:
            note += f" The next slot opens at {facts.next_slot:%Y-%m-%d %H:%M} UTC."
    return Check("rate", passed, used, limit, note)
