"""Groups in a picture, and rows that are near nobody. No I/O; scikit-learn loads on use."""

from __future__ import annotations

from typing import Any

import numpy as np

from memcore.projection import Floats, Indexes

_NEAREST = 5


def clustered(coordinates: Floats) -> Indexes:
    """(m,) group of each point: 0 the largest, ties by the first row; −1 in none. HDBSCAN on the
    picture (Campello, Moulavi & Sander 2013): what people see as a group is what gets a name. None
    holds more than 40 % of a larger picture."""
    m = len(coordinates)
    if m < 10:
        return np.full(m, -1, dtype=np.int32)
    import sklearn.cluster

    sklearn_cluster: Any = sklearn.cluster
    # Without a cap, two languages are two groups and everything in them goes unnamed.
    model = sklearn_cluster.HDBSCAN(
        min_cluster_size=smallest_group(m), max_cluster_size=max(20, int(0.4 * m)),
        min_samples=5, copy=True,
    )  # fmt: skip
    found = model.fit_predict(coordinates.astype(np.float64))
    return by_size(found.astype(np.int32))


def smallest_group(m: int) -> int:
    """Points that make a group: 5 in a small picture, growing with the square root of its size,
    so that 300 memories may have a group of 8 and 10,000 one of 50."""
    return max(5, int(m**0.5 / 2))


def by_size(label: Indexes) -> Indexes:
    """`label` renumbered: 0 the largest, ties by the first row; −1 stays."""
    names, first, count = np.unique(label, return_index=True, return_counts=True)
    order = [i for i in np.lexsort((first, -count)) if names[i] >= 0]
    out = np.full(len(label), -1, dtype=np.int32)
    for number, i in enumerate(order):
        out[label == names[i]] = number
    return out


def isolation(similarity: Floats) -> tuple[Floats, float]:
    """(m,) 1 − mean cosine to the nearest five others, and the limit above which a row is an
    outlier: median + 3 × 1.4826 × MAD. Infinite where there are too few rows to tell (< 10)."""
    nearest = similarity[:, :_NEAREST]
    m = len(nearest)
    if not nearest.size or np.isnan(nearest).all():
        return np.full(m, np.nan, dtype=np.float32), float("inf")
    alone = (1 - np.nanmean(nearest, axis=1)).astype(np.float32)
    if m < 10:
        return alone, float("inf")
    median = float(np.median(alone))
    return alone, median + 3 * 1.4826 * float(np.median(np.abs(alone - median)))
