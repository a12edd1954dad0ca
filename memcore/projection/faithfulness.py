"""How far a picture may be believed: which neighbourhoods survived the flattening. Pure: no I/O."""

from __future__ import annotations

import numpy as np

from memcore.projection import Faithfulness, Floats, Indexes
from memcore.projection.neighbours import nearest_drawn

_MEASURED = 1000


def measured(
    unit: Floats, coordinates: Floats, near: Indexes
) -> tuple[Faithfulness | None, Floats]:
    """The figures of a picture of m distinct rows, and each row's own preservation (m,).

    `near` (m, k): true nearest neighbours by cosine, −1 where there is none. None and NaN where
    fewer than four rows are drawn: then every row is everybody's neighbour.
    """
    m = len(unit)
    k = min(near.shape[1], (m - 1) // 2)
    if k < 1 or m < 4:
        return None, np.full(m, np.nan, dtype=np.float32)
    drawn = _drawn_neighbours(coordinates, k)
    own = np.zeros(m, dtype=np.float32)
    for column in range(k):
        own += (drawn == near[:, column : column + 1]).any(axis=1)
    own /= k
    trust = _trustworthiness(unit, drawn, k) if m >= 2 * k + 2 else None
    return Faithfulness(k, float(own.mean()), k / (m - 1), trust), own


def _drawn_neighbours(coordinates: Floats, k: int) -> Indexes:
    """(m, k) nearest others in the picture."""
    m = len(coordinates)
    found = nearest_drawn(coordinates, coordinates, k + 1)
    # A point is its own first neighbour unless others lie exactly on it.
    itself = found == np.arange(m)[:, None]
    itself[~itself.any(axis=1), -1] = True
    others: Indexes = found[~itself].reshape(m, k)
    return others


def _trustworthiness(unit: Floats, drawn: Indexes, k: int) -> float:
    """1 − 2 / (k (2m − 3k − 1)) × mean over rows of Σ max(0, rank − k) over drawn neighbours
    (Venna & Kaski 2001), over at most 1,000 evenly spaced rows."""
    m = len(unit)
    rows = np.unique(np.linspace(0, m - 1, min(m, _MEASURED), dtype=np.int64))
    penalty = 0
    for block in np.array_split(rows, max(1, len(rows) * m // 20_000_000)):
        cosine = unit[block] @ unit.T
        cosine[np.arange(len(block)), block] = -np.inf
        for column in range(k):
            stranger = cosine[np.arange(len(block)), drawn[block, column]]
            rank = 1 + (cosine > stranger[:, None]).sum(axis=1)
            penalty += int(np.maximum(rank - k, 0).sum())
    return 1 - 2 / (k * (2 * m - 3 * k - 1)) * penalty / len(rows)
