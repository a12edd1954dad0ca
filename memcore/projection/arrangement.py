"""Where distinct rows are drawn: PCA at once, UMAP when ready, placing for what comes later.

UMAP is three steps: neighbours, their fuzzy graph, its layout. memcore has found the neighbours
already (pairs, outliers and faithfulness need them too) and makes the graph with NumPy; umap-learn
does the layout. That starts from the PCA picture instead of umap-learn's eigenvectors: it never
fails on small, wide or disconnected data, is the same on every run, and people see the first
picture turn into the second instead of jumping.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from memcore.projection import Floats, Indexes, MapSettings, Progress

PLACING_NEIGHBOURS = 15


def pca(unit: Floats, seed: int = 0) -> Floats:
    """(m, 2) first principal components of unit vectors (m, d), centred, widest first; the largest
    entry of each axis's direction is positive, so the picture never comes out mirrored.

    Randomised range finder with four power steps (Halko, Martinsson & Tropp 2011, alg. 4.4).
    """
    m, d = unit.shape
    out = np.zeros((m, 2), dtype=np.float32)
    if m < 2:
        return out
    centred = unit - unit.mean(axis=0, dtype=np.float64).astype(np.float32)
    basis = np.random.default_rng(seed).standard_normal((d, min(12, d)), dtype=np.float32)
    for _ in range(5):
        basis, _ = np.linalg.qr(centred.T @ (centred @ basis))
    values, vectors = np.linalg.eigh((centred @ basis).astype(np.float64).T @ (centred @ basis))
    for axis in range(min(2, len(values))):
        direction = basis @ vectors[:, -1 - axis].astype(np.float32)
        sign = np.sign(direction[np.abs(direction).argmax()]) or np.float32(1)
        out[:, axis] = centred @ (direction * sign)
    return out


def arrange(
    unit: Floats,
    near: Indexes,
    similarity: Floats,
    settings: MapSettings,
    start: Floats,
    progress: Progress | None = None,
) -> Floats:
    """(m, 2) UMAP coordinates of m distinct rows whose neighbours are known: `near` (m, k) with
    their cosine. `start` (m, 2) is where the layout begins. Not finite where UMAP fails."""
    umap_ = _umap()
    m = len(near)
    graph = fuzzy_graph(near, similarity)
    random = np.random.RandomState(settings.seed)
    a, b = umap_.find_ab_params(1.0, settings.min_dist)
    coordinates, _ = umap_.simplicial_set_embedding(
        unit, graph, 2, 1.0, a, b, 1.0, 5, _epochs(m), _spread(start, settings.seed), random,
        "cosine", {}, False, {}, False, tqdm_kwds=_watched(progress),
    )  # fmt: skip
    return np.asarray(coordinates, dtype=np.float32)


@lru_cache(maxsize=1)
def warm() -> None:
    """Load umap-learn and have numba compile its layout, once per process: seconds that can pass
    while vectors are being read. Arranges a picture of twenty rows and throws it away."""
    ring = np.arange(20, dtype=np.int32)
    near = np.stack([(ring + 1) % 20, (ring + 2) % 20], axis=1)
    start = np.stack([np.cos(ring), np.sin(ring)], axis=1).astype(np.float32)
    arrange(start, near, np.full((20, 2), 0.5, np.float32), MapSettings(), start)


def fuzzy_graph(near: Indexes, similarity: Floats) -> Any:
    """The fuzzy neighbour graph (SciPy sparse, m × m) that umap-learn lays out: for each row
    exp(−(d − ρ) / σ) to its neighbours, ρ the distance to the nearest that differs, σ such that the
    row sums to log₂(k + 1); joined as a + b − ab (McInnes, Healy & Melville 2018, algorithms 2–4).

    The same numbers as umap-learn's `fuzzy_simplicial_set` to float32, without the five seconds
    numba needs to compile that.
    """
    import scipy.sparse

    sparse: Any = scipy.sparse
    m, k = near.shape
    distance = np.maximum(1 - similarity.astype(np.float64), 0)
    positive = np.where(distance > 0, distance, np.inf)
    nearest = positive.min(axis=1, keepdims=True)
    rho = np.where(np.isfinite(nearest), nearest, 0)
    beyond = np.maximum(distance - rho, 0)
    low, high = np.zeros((m, 1)), np.full((m, 1), np.inf)
    sigma = np.ones((m, 1))
    for _ in range(64):
        above = np.exp(-beyond / sigma).sum(axis=1, keepdims=True) > np.log2(k + 1)
        high = np.where(above, sigma, high)
        low = np.where(above, low, sigma)
        sigma = np.where(np.isinf(high), sigma * 2, (low + high) / 2)
    # umap-learn's floor, with the row itself (distance 0) among its neighbours.
    mean = distance.sum(axis=1, keepdims=True) / (k + 1)
    sigma = np.maximum(sigma, 1e-3 * np.where(rho > 0, mean, mean.mean()))
    strength = np.exp(-beyond / np.maximum(sigma, 1e-300)).astype(np.float32)
    edges = (strength.ravel(), (np.repeat(np.arange(m), k), near.ravel()))
    graph = sparse.coo_matrix(edges, shape=(m, m)).tocsr()
    # A row that stands in for a missing neighbour is summed; no strength exceeds 1.
    graph.data = np.minimum(graph.data, 1)
    other = graph.T.tocsr()
    joined = graph + other - graph.multiply(other)
    joined.eliminate_zeros()
    return joined


@lru_cache(maxsize=1)
def _umap() -> Any:
    """umap-learn's module. Loading takes seconds, and it warns of a package it can do without."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap.umap_

        return umap.umap_


def _epochs(m: int) -> int:
    """Layout rounds: umap-learn's own defaults."""
    return 500 if m <= 10_000 else 200


def _spread(start: Floats, seed: int) -> Floats:
    """`start` with a trace of noise, so that no two points begin in one place and no axis is flat
    (umap-learn divides by each axis's width)."""
    noise = np.random.default_rng(seed).standard_normal(start.shape)
    width = float(np.ptp(start, axis=0).max()) or 1.0
    return (start / width * 10 + noise * 1e-3).astype(np.float32)


def _watched(progress: Progress | None) -> dict[str, Any]:
    """umap-learn reports rounds through tqdm; this reads its text instead of printing it."""
    if progress is None:
        return {"disable": True}

    return {"disable": False, "file": _Rounds(progress), "bar_format": "{n_fmt}/{total_fmt}",
            "mininterval": 0.5}  # fmt: skip


class _Rounds:
    """A text file to tqdm: takes "12/200" and passes it on as progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def write(self, text: str) -> None:
        found = re.search(r"(\d+)/(\d+)", text)
        if found:
            self._progress("Arranging with UMAP", int(found[1]), int(found[2]))

    def flush(self) -> None:
        """Nothing is held back."""


def place(similarity: Floats, coordinates: Floats, width: float) -> Floats:
    """(q, 2): where rows belong among fitted points, none of which move.

    `similarity` (q, k): cosine to the k nearest fitted points, nearest first; `coordinates`
    (q, k, 2): their places; `width`: of the whole picture. Each neighbour weighs
    exp(−(d − d₁) / mean(d − d₁)), d = 1 − cosine, the shape of UMAP's membership strength. The row
    goes to the densest part of its neighbours (kernel of 1 % of the width), never to the middle of
    two groups, where nothing like it is. An exact copy lands on its original. docs/map.md has this
    beside umap-learn's own transform, which keeps fewer neighbours and takes minutes.
    """
    distance = 1 - similarity.astype(np.float64)
    beyond = distance - distance[:, :1]
    weight = np.exp(-beyond / np.maximum(beyond.mean(axis=1, keepdims=True), 1e-12))
    copies = distance[:, 0] < 1e-6
    weight[copies] = distance[copies] < 1e-6
    out = np.empty((len(distance), 2), dtype=np.float32)
    reach = max(0.01 * width, 1e-9)
    for start in range(0, len(distance), 4096):
        rows = slice(start, start + 4096)
        places, strength = coordinates[rows].astype(np.float64), weight[rows]
        apart = ((places[:, :, None] - places[:, None]) ** 2).sum(-1)
        density = np.einsum("qij,qj->qi", np.exp(-apart / (2 * reach**2)), strength)
        densest = density.argmax(axis=1)
        near = apart[np.arange(len(places)), densest] < (2 * reach) ** 2
        strength = strength * near
        strength /= np.maximum(strength.sum(axis=1, keepdims=True), 1e-300)
        out[rows] = np.einsum("qk,qkc->qc", strength, places)
    return out


def aligned(moving: Floats, fixed: Floats, shared: tuple[Indexes, Indexes]) -> Floats:
    """`moving` (n, 2) shifted, turned, mirrored and scaled as a whole to lie over `fixed` (p, 2)
    as well as it can; `shared` pairs rows of the two. Orthogonal Procrustes (Schönemann 1966)."""
    ours, theirs = moving[shared[0]].astype(np.float64), fixed[shared[1]].astype(np.float64)
    if len(ours) < 2:
        return moving
    our_centre, their_centre = ours.mean(axis=0), theirs.mean(axis=0)
    left, strength, right = np.linalg.svd((ours - our_centre).T @ (theirs - their_centre))
    spread = ((ours - our_centre) ** 2).sum()
    scale = strength.sum() / spread if spread > 0 and strength.sum() > 0 else 1.0
    turned: Floats = ((moving - our_centre) @ (left @ right) * scale + their_centre).astype(
        np.float32
    )
    return turned
