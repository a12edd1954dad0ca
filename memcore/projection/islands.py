"""Islands of a picture, drawn nearer to each other. No I/O; SciPy loads on use.

UMAP pushes groups that share no neighbours apart without limit, so that two languages can leave
most of the picture empty. How wide such a gap is means nothing. Islands are moved as wholes towards
the middle until they nearly touch: inside them nothing changes, and their directions stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memcore.projection import Floats, Indexes
from memcore.projection.neighbours import nearest_drawn

_NEAR = 10
_REACH = 4.0
"""Times the typical distance to the tenth neighbour beyond which nothing joins two points, and the
width of the strait that is left between two islands."""


def gathered(coordinates: Floats) -> Floats:
    """(m, 2) with islands moved together; the same array where there is one island."""
    m = len(coordinates)
    if m <= _NEAR + 1:
        return coordinates
    near = nearest_drawn(coordinates, coordinates, _NEAR + 1)
    apart = np.linalg.norm(coordinates[near] - coordinates[:, None], axis=2)
    strait = _REACH * float(np.median(apart[:, -1]))
    label, middle, radius = _circled(
        coordinates.astype(np.float64), _islands(near, apart, strait), strait
    )
    if len(middle) < 2:
        return coordinates
    moved = _drawn_in(middle, radius, int(np.bincount(label).argmax()), strait)
    shifted: Floats = (coordinates + (moved - middle)[label]).astype(np.float32)
    return shifted


def _circled(coordinates: Any, label: Indexes, strait: float) -> tuple[Indexes, Any, Any]:
    """Islands whose circles overlap made one, until none do: label (m,), middles, radii. A stray
    point beside an island belongs to it."""
    while True:
        count = int(label.max()) + 1
        middle, radius = np.zeros((count, 2)), np.zeros(count)
        for island in range(count):
            members = coordinates[label == island]
            middle[island] = (members.min(axis=0) + members.max(axis=0)) / 2
            radius[island] = np.linalg.norm(members - middle[island], axis=1).max()
        between = np.linalg.norm(middle[:, None] - middle[None], axis=2)
        overlap = between < radius[:, None] + radius[None] + strait
        merged, new = _connected(overlap)
        if merged == count:
            return label, middle, radius
        label = new[label]


def _connected(edges: Any) -> tuple[int, Indexes]:
    import scipy.sparse.csgraph

    csgraph: Any = scipy.sparse.csgraph
    count, label = csgraph.connected_components(edges, directed=False)
    return int(count), label


def _islands(near: Indexes, apart: Any, strait: float) -> Indexes:
    """(m,) the island of each point: what a chain of near neighbours joins."""
    import scipy.sparse

    sparse: Any = scipy.sparse
    m = len(near)
    rows, columns = np.nonzero(apart <= strait)
    edges = (np.ones(len(rows), dtype=np.int8), (rows, near[rows, columns]))
    return _connected(sparse.coo_matrix(edges, shape=(m, m)))[1]


def _drawn_in(middle: Any, radius: Any, largest: int, strait: float) -> Any:
    """Middles moved straight towards the largest island's, the nearest first, each as far as those
    already there let it."""
    way = middle - middle[largest]
    order = np.argsort(np.linalg.norm(way, axis=1), kind="stable")
    out = middle.copy()
    for i, island in enumerate(order[1:], 1):
        there = order[:i]
        least = radius[there] + radius[island] + strait

        def free(
            share: float, island: int = island, there: Any = there, least: Any = least
        ) -> bool:
            at = middle[largest] + way[island] * share
            return bool((np.linalg.norm(out[there] - at, axis=1) >= least).all())

        low, high = 0.0, 1.0
        for _ in range(40):
            share = (low + high) / 2
            low, high = (low, share) if free(share) else (share, high)
        out[island] = middle[largest] + way[island] * high
    return out
