"""Vectors → `Picture`: the one function that draws, from nothing at all to a hundred thousand rows.

No I/O. Honest below 16 distinct rows (UMAP would raise or invent structure), above `sample_above`
(a sample is fitted, the rest placed), and where UMAP fails (the PCA picture stays and says so).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memcore.projection import (
    EXACT_UP_TO,
    SMALLEST_FOR_UMAP,
    Floats,
    Indexes,
    MapSettings,
    Method,
    Pairs,
    Picture,
    Progress,
)
from memcore.projection.arrangement import PLACING_NEIGHBOURS, arrange, pca, place
from memcore.projection.clusters import clustered, isolation
from memcore.projection.faithfulness import measured
from memcore.projection.islands import gathered
from memcore.projection.neighbours import nearest, nearest_among, nearest_drawn
from memcore.projection.rows import distinct, prepare

NEIGHBOURS = 15
"""Nearest neighbours kept and compared, whatever `MapSettings.neighbours` UMAP arranges by."""

Early = Callable[["tuple[str, ...]", Floats], None]
"""Called once with ids and their PCA coordinates, long before UMAP is ready."""


def draw(
    ids: Sequence[str],
    vectors: Sequence[Any] | npt.NDArray[np.floating[Any]],
    settings: MapSettings | None = None,
    *,
    dimensions: int | None = None,
    pair_floor: float = 0.8,
    pair_limit: int = 20_000,
    exact_up_to: int = EXACT_UP_TO,
    early: Early | None = None,
    progress: Progress | None = None,
) -> Picture:
    """The picture of `vectors` (one per id; None where there is none). The same set gives the same
    picture in any order. `pair_floor`: cosine from which pairs are near-duplicates; at most
    `pair_limit` are listed. Raises InvalidInput for repeated ids, or `dimensions` nobody has."""
    settings = settings or MapSettings()
    watch = _Watch(progress)
    watch.stage("Reading vectors")
    rows = prepare(ids, vectors, dimensions=dimensions)
    first, spot = distinct(rows.unit)
    unit = rows.unit if len(first) == len(rows.ids) else rows.unit[first]
    m, n = len(unit), len(rows.ids)
    watch.stage("Drawing with PCA")
    linear = pca(unit)
    if early is not None and n:
        early(rows.ids, linear[spot])
    watch.stage("Comparing memories")
    k = min(NEIGHBOURS, max(m - 1, 0))
    wanted = min(max(settings.neighbours, NEIGHBOURS), max(m - 1, 0))
    found = nearest(
        unit, wanted, pair_floor=pair_floor, pair_limit=pair_limit, exact_up_to=exact_up_to,
        progress=progress,
    )  # fmt: skip
    near, similarity = found.index[:, :k], found.similarity[:, :k]
    watch.stage("Arranging with UMAP")
    fitted: Indexes | None = None
    if m < SMALLEST_FOR_UMAP:
        method, explanation, coordinates = _small(m, n, linear)
    elif m > settings.sample_above:
        fitted = _sample(rows.ids, first, settings.sample_above)
        method, explanation, coordinates = _sampled(unit, fitted, linear, settings, progress)
    else:
        method, explanation, coordinates = _arranged(
            unit, found.index[:, : settings.neighbours],
            found.similarity[:, : settings.neighbours], linear, settings, progress,
        )  # fmt: skip
    watch.stage("Finding groups")
    if fitted is None:
        label = clustered(coordinates) if method == "umap" else np.full(m, -1, dtype=np.int32)
    else:
        label = _joined(coordinates, fitted)
    alone, limit = isolation(similarity)
    watch.stage("Measuring the picture")
    figures, own = measured(unit, coordinates, near)
    placed = np.zeros(m, dtype=bool)
    if fitted is not None:
        placed[:] = True
        placed[fitted] = False
    pairs = _pairs(found, first, spot, pair_limit, pair_floor)
    return Picture(
        ids=rows.ids, coordinates=coordinates[spot], spot=spot, placed=placed[spot],
        neighbours=np.where(near < 0, -1, first[near])[spot].astype(np.int32) if k
        else np.empty((n, 0), np.int32),
        neighbour_similarity=similarity[spot], preservation=own[spot], cluster=label[spot],
        isolation=alone[spot], isolation_limit=limit, pairs=pairs, method=method,
        explanation=explanation, faithfulness=figures, left_out=rows.left_out,
        dimensions=rows.unit.shape[1], groups=rows.groups, neighbour_recall=found.recall,
        seconds=watch.finished(),
    )  # fmt: skip


def _small(m: int, n: int, linear: Floats) -> tuple[Method, str, Floats]:
    """Pictures of fewer than 16 distinct rows."""
    if m == 0:
        return "nothing", "There is nothing to draw: no memory has a usable vector.", linear
    if m == 1:
        copies = f"All {n} memories have the same vector" if n > 1 else "There is one memory"
        return "one_spot", f"{copies}, so there is one spot.", linear
    if m == 2:
        return (
            "line",
            "There are two distinct vectors: a picture can only show their distance.",
            (linear),
        )
    return "pca", (
        f"Drawn with PCA: {m} distinct vectors are too few for UMAP, which needs "
        f"{SMALLEST_FOR_UMAP} to find neighbourhoods."
    ), linear  # fmt: skip


def _arranged(
    unit: Floats, near: Indexes, similarity: Floats, linear: Floats, settings: MapSettings,
    progress: Progress | None,
) -> tuple[Method, str, Floats]:  # fmt: skip
    """UMAP, or the PCA picture with the reason where UMAP fails."""
    missing = near < 0
    if missing.any():
        # A row in a sparse cell found fewer than k; the farthest it has stands in.
        near, similarity = near.copy(), similarity.copy()
        for row in np.flatnonzero(missing.any(axis=1)):
            last = int((~missing[row]).sum()) - 1
            near[row, last + 1 :], similarity[row, last + 1 :] = (
                near[row, last],
                similarity[row, last],
            )
    coordinates = arrange(unit, near, similarity, settings, linear, progress)
    if not np.isfinite(coordinates).all():
        return "pca", "Drawn with PCA: UMAP gave coordinates that are not numbers.", linear
    coordinates = gathered(coordinates)
    return "umap", (
        f"UMAP of {len(unit)} distinct vectors by cosine: {near.shape[1]} neighbours, minimum "
        f"distance {settings.min_dist:g}, seed {settings.seed}."
    ), coordinates  # fmt: skip


def _sample(ids: tuple[str, ...], first: Indexes, size: int) -> Indexes:
    """Which distinct rows are fitted: those whose ids hash lowest. A library that grows keeps most
    of its sample, which a random draw would not."""
    import hashlib

    keys = [hashlib.blake2b(ids[i].encode(), digest_size=8).digest() for i in first]
    return np.sort(sorted(range(len(first)), key=keys.__getitem__)[:size]).astype(np.int32)


def _sampled(
    unit: Floats, fitted: Indexes, linear: Floats, settings: MapSettings,
    progress: Progress | None,
) -> tuple[Method, str, Floats]:  # fmt: skip
    """UMAP of the fitted rows, the others placed among them."""
    sample = unit[fitted]
    found = nearest(
        sample, settings.neighbours, pair_floor=2.0, pair_limit=0,
        exact_up_to=EXACT_UP_TO, progress=progress,
    )  # fmt: skip
    method, explanation, drawn = _arranged(
        sample, found.index, found.similarity, linear[fitted], settings, progress
    )
    coordinates = np.empty((len(unit), 2), dtype=np.float32)
    if method == "pca":
        return method, explanation, linear
    near, similarity = nearest_among(unit, sample, PLACING_NEIGHBOURS, progress=progress)
    coordinates[:] = place(similarity, drawn[near], float(np.ptp(drawn, axis=0).max()))
    coordinates[fitted] = drawn
    rest = len(unit) - len(fitted)
    return method, f"{explanation} The other {rest} are placed among them.", coordinates


def _joined(coordinates: Floats, fitted: Indexes) -> Indexes:
    """Groups of the fitted points, each other point in the group of the point drawn nearest."""
    label = clustered(coordinates[fitted])
    return label[nearest_drawn(coordinates[fitted], coordinates, 1)[:, 0]]


def _pairs(found: Any, first: Indexes, spot: Indexes, limit: int, asked: float) -> Pairs:
    """Pairs over all rows: those of distinct rows, and each copy with its original (cosine 1)."""
    copies = np.flatnonzero(first[spot] != np.arange(len(spot), dtype=np.int32)).astype(np.int32)
    originals = first[spot[copies]] if len(copies) else copies
    left = np.concatenate([originals, first[found.first]] if len(first) else [originals])
    right = np.concatenate([copies, first[found.second]] if len(first) else [copies])
    value = np.concatenate([np.ones(len(copies), np.float32), found.pair_similarity])
    if len(value) > limit:
        left, right, value = left[:limit], right[:limit], value[:limit]
    floor = max(found.floor, asked)
    if len(copies) + len(found.first) > limit and len(value):
        floor = float(value[-1])
    return Pairs(left, right, value, floor, found.total + len(copies))


class _Watch:
    """Seconds per stage, and the stage said to whoever listens."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._laps: list[tuple[str, float]] = []
        self._started = time.perf_counter()

    def stage(self, name: str) -> None:
        self._close()
        self._laps.append((name, 0.0))
        if self._progress is not None:
            self._progress(name, 0, 0)

    def _close(self) -> None:
        now = time.perf_counter()
        if self._laps:
            self._laps[-1] = (self._laps[-1][0], now - self._started)
        self._started = now

    def finished(self) -> tuple[tuple[str, float], ...]:
        self._close()
        return tuple(self._laps)
