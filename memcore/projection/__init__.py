"""The map: vectors → a picture of a library in two dimensions, and how far to trust it.

An adapter over umap-learn, scikit-learn and SciPy. All three are imported inside the functions
that need them, never when memcore is imported. No database here: arrays in, value objects out.
One rule runs through it: the same vectors give the same picture, whatever the order they were
read in, so rows are sorted by id, identical rows are fitted once, and every seed is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from memcore.errors import InvalidInput

Floats = npt.NDArray[np.float32]
Indexes = npt.NDArray[np.int32]

Progress = Callable[[str, int, int], None]
"""(stage, done, total). May raise to stop the work."""

Method = Literal["nothing", "one_spot", "line", "pca", "umap"]
Reason = Literal["missing", "zero", "not_finite", "other_dimensions"]

SMALLEST_FOR_UMAP = 16
"""Distinct vectors below which UMAP has too few neighbours to arrange: the picture is linear."""

EXACT_UP_TO = 20_000
"""Distinct vectors up to which every pair is compared. Above, neighbours are searched in cells."""


@dataclass(frozen=True, slots=True)
class MapSettings:
    """What a person may choose about a picture. Every allowed value gives finite coordinates."""

    neighbours: int = 15
    """2–200: few show fine clumps, many the broad shape. Cut to what the data has."""
    min_dist: float = 0.05
    """[0, 0.99]: how tightly UMAP may pack points; 0 packs near-duplicates into knots."""
    seed: int = 42
    """0–2³¹−1. Another seed is another, equally valid picture of the same vectors."""
    sample_above: int = 20_000
    """200–1,000,000: with more distinct vectors, this many are fitted and the others placed."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("neighbours", 2, 200), ("min_dist", 0, 0.99), ("seed", 0, 2**31 - 1),
            ("sample_above", 200, 1_000_000),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidInput(f"{name} is {value}, outside its range from {low} to {high}.")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that cannot be drawn, and why."""

    id: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """How much of the neighbourhoods survives the flattening to two dimensions."""

    k: int
    """Neighbours compared."""
    preservation: float
    """[0, 1]: mean share of a point's k nearest that are also among its k nearest drawn."""
    chance: float
    """What `preservation` would be if points were scattered at random."""
    trustworthiness: float | None
    """[0, 1], Venna & Kaski 2001: 1 when no stranger is drawn close. None below 2k + 2 points."""

    @property
    def grade(self) -> Literal["good", "fair", "weak"]:
        """good from 0.5 preserved, fair from 0.25, weak below."""
        if self.preservation >= 0.5:
            return "good"
        return "fair" if self.preservation >= 0.25 else "weak"


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Near-duplicate pairs of drawn rows, most similar first."""

    first: Indexes
    second: Indexes
    """Positions in `Picture.ids`; first < second."""
    similarity: Floats
    """Cosine."""
    floor: float
    """Pairs below it are not listed."""
    total: int
    """How many lie at or above the floor asked for: more than listed where the list was cut."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A library drawn. Arrays run over `ids` (n rows, sorted by id)."""

    ids: tuple[str, ...]
    coordinates: Floats
    """(n, 2), finite."""
    spot: Indexes
    """(n,): rows with equal vectors share a spot number and a place."""
    placed: npt.NDArray[np.bool_]
    """(n,): True where it was placed among fitted points instead of fitted itself."""
    neighbours: Indexes
    """(n, k): nearest other spots' first rows by cosine, nearest first; −1 where there is none."""
    neighbour_similarity: Floats
    """(n, k): their cosine; NaN where there is none."""
    preservation: Floats
    """(n,): each row's own share of preserved neighbours; NaN where too few to tell."""
    cluster: Indexes
    """(n,): 0 is the largest; −1 is in none."""
    isolation: Floats
    """(n,): 1 − mean cosine to its nearest five; NaN where there are none."""
    isolation_limit: float
    """Above it a row counts as an outlier: median + 3 × 1.4826 × MAD of isolation."""
    pairs: Pairs
    method: Method
    explanation: str
    """Which method drew it and why, for people."""
    faithfulness: Faithfulness | None
    """None where there are too few points to tell."""
    left_out: tuple[LeftOut, ...]
    dimensions: int
    groups: tuple[tuple[int, int], ...]
    """(dimensions, rows) of every vector length met, largest group first."""
    neighbour_recall: float
    """Share of true nearest neighbours that the search found; 1 when every pair was compared."""
    seconds: tuple[tuple[str, float], ...]
    """Stage → seconds, in order."""

    @property
    def spots(self) -> int:
        """How many distinct vectors are drawn."""
        return int(self.spot.max()) + 1 if len(self.spot) else 0
