"""The gate: facts and settings → verdict. Pure: no I/O. All five checks are always evaluated."""

from __future__ import annotations

from memcore.models import Check, Draft, Facts, Verdict
from memcore.settings import GateSettings

# A float32 column turns 0.7 into 0.699999988; that is still 0.7.
_FLOAT32 = 1e-6


def judge(draft: Draft, facts: Facts, settings: GateSettings) -> Verdict:
    """The verdict on a draft, by what was gathered about it."""
    length = len(facts.text)
    nearest = facts.neighbours[0] if facts.neighbours else None
    threshold = settings.duplicate_threshold - _FLOAT32
    near = nearest is not None and (nearest.exact or nearest.similarity >= threshold)
    checks = (
        Check(
            "confidence", facts.confidence >= settings.min_confidence - _FLOAT32,
            facts.confidence, settings.min_confidence, "",
        ),
        Check(
            "sensitive", not facts.sensitive or settings.sensitive_action == "redact",
            len(facts.sensitive), 0, ", ".join(f.kind for f in facts.sensitive),
        ),
        Check(
            "length", settings.min_length <= length <= settings.max_length, length,
            settings.min_length if length < settings.min_length else settings.max_length, "",
        ),
        Check(
            "duplicate", facts.neighbours is not None and not near,
            nearest.similarity if nearest else None, settings.duplicate_threshold,
            "unavailable" if facts.neighbours is None else "",
        ),
        Check(
            "rate", facts.rate_exempt or facts.extractions_in_window < settings.max_extractions,
            facts.extractions_in_window, settings.max_extractions, "",
        ),
    )  # fmt: skip
    blocked_by = next((c.name for c in checks if not c.passed), None)
    outcome = "stored" if blocked_by is None else "rejected"
    if blocked_by == "duplicate":
        outcome = "unchecked" if facts.neighbours is None else "duplicate"
    matched = nearest.memory_id if near and nearest else None
    return Verdict(checks, blocked_by is None, blocked_by, outcome, matched)
