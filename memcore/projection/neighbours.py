"""Nearest neighbours and near-duplicate pairs, in one pass over the vectors. Pure: no I/O.

Up to 20,000 distinct rows every pair is compared (blocked matrix product). Above, rows are put in
cells around centres and each is compared with the rows of the nearest cells; how many of the true
neighbours that found is measured on a sample and reported, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from memcore.projection import EXACT_UP_TO, Floats, Indexes, Progress

_BLOCK = 1024
_PROBED = 10
_MEASURED = 400


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    index: Indexes
    """(m, k): nearest others, nearest first, ties by position; −1 where there is none."""
    similarity: Floats
    """(m, k): their cosine; NaN where there is none."""
    first: Indexes
    second: Indexes
    pair_similarity: Floats
    """Pairs at or above `floor`, most similar first, ties by position; first < second."""
    floor: float
    total: int
    """Pairs at or above the floor asked for, listed or not."""
    recall: float
    """Share of true neighbours found; 1 when every pair was compared."""


def nearest(
    unit: Floats,
    k: int,
    *,
    pair_floor: float,
    pair_limit: int,
    exact_up_to: int = EXACT_UP_TO,
    progress: Progress | None = None,
) -> Neighbours:
    """The k nearest others of each row of `unit` (m, d) and all pairs at or above `pair_floor`.

    When more than `pair_limit` pairs qualify the most similar are kept and `floor` says from where.
    """
    m = len(unit)
    index = np.full((m, k), -1, dtype=np.int32)
    similarity = np.full((m, k), np.nan, dtype=np.float32)
    pairs = _PairList(pair_floor, pair_limit)
    cells = None if m <= exact_up_to else _cells(unit)
    done = 0
    for rows, columns in _work(m, cells):
        cosine = unit[rows] @ (unit if columns is None else unit[columns]).T
        np.clip(cosine, -1, 1, out=cosine)
        _without_itself(cosine, rows, columns)
        near, value = _top(cosine, k)
        found = near if columns is None else np.where(near < 0, -1, columns[near])
        index[rows, : near.shape[1]] = found
        similarity[rows, : near.shape[1]] = value
        pairs.add(cosine, rows, columns)
        done += len(rows)
        if progress is not None:
            progress("Comparing memories", done, m)
    first, second, pair_similarity = pairs.listed()
    recall = 1.0 if cells is None else _recall(unit, index, k)
    return Neighbours(
        index, similarity, first, second, pair_similarity, pairs.floor, pairs.total, recall
    )


def nearest_among(
    unit: Floats, fitted: Floats, k: int, *, progress: Progress | None = None
) -> tuple[Indexes, Floats]:
    """For each row of `unit` (q, d) the k nearest rows of `fitted` (p, d): their positions
    (q, min(k, p)) and their cosine, nearest first."""
    index = np.empty((len(unit), min(k, len(fitted))), dtype=np.int32)
    similarity = np.empty(index.shape, dtype=np.float32)
    for start in range(0, len(unit), _BLOCK):
        rows = slice(start, start + _BLOCK)
        index[rows], similarity[rows] = _top(np.clip(unit[rows] @ fitted.T, -1, 1), k)
        if progress is not None:
            progress("Placing the rest", min(start + _BLOCK, len(unit)), len(unit))
    return index, similarity


def nearest_drawn(fitted: Floats, points: Floats, k: int) -> Indexes:
    """(q, k): for each of `points` (q, 2) the k nearest of `fitted` (p, 2) in the picture."""
    import scipy.spatial

    spatial: Any = scipy.spatial
    _, found = spatial.KDTree(fitted).query(points, k=np.arange(1, k + 1))
    index: Indexes = found.astype(np.int32)
    return index


def _work(
    m: int, cells: tuple[Indexes, list[Indexes]] | None
) -> Iterator[tuple[Indexes, Indexes | None]]:
    """Blocks of rows and the columns to compare them with; None means all."""
    if cells is None:
        for start in range(0, m, _BLOCK):
            yield np.arange(start, min(start + _BLOCK, m), dtype=np.int32), None
        return
    member, near = cells
    order = np.argsort(member, kind="stable").astype(np.int32)
    bounds = np.searchsorted(member[order], np.arange(len(near) + 1))
    for cell, probed in enumerate(near):
        rows = order[bounds[cell] : bounds[cell + 1]]
        columns = np.sort(np.concatenate([order[bounds[c] : bounds[c + 1]] for c in probed]))
        for start in range(0, len(rows), _BLOCK):
            yield rows[start : start + _BLOCK], columns


def _cells(unit: Floats) -> tuple[Indexes, list[Indexes]]:
    """Each row's cell (m,), and for each cell the cells to search, itself among them. If one cell
    is searched from another, so is the other from it: every pair is then met from both sides.
    Centres: five rounds of spherical k-means on an evenly spaced subset."""
    m = len(unit)
    count = int(np.sqrt(m))
    subset = unit[np.linspace(0, m - 1, min(m, 40 * count), dtype=np.int64)]
    centres = subset[np.linspace(0, len(subset) - 1, count, dtype=np.int64)].copy()
    for _ in range(5):
        member = _closest(subset, centres)
        order = np.argsort(member, kind="stable")
        present, starts = np.unique(member[order], return_index=True)
        sums = np.add.reduceat(subset[order], starts, axis=0)
        length = np.linalg.norm(sums, axis=1)
        usable = length > 1e-6
        centres[present[usable]] = sums[usable] / length[usable, None]
    between = centres @ centres.T
    np.fill_diagonal(between, 2)
    probed = np.argsort(-between, axis=1, kind="stable")[:, : min(_PROBED, count)]
    both = np.zeros((count, count), dtype=bool)
    both[np.arange(count)[:, None], probed] = True
    both |= both.T
    return _closest(unit, centres), [np.flatnonzero(row).astype(np.int32) for row in both]


def _closest(unit: Floats, centres: Floats) -> Indexes:
    out = np.empty(len(unit), dtype=np.int32)
    for start in range(0, len(unit), 8 * _BLOCK):
        out[start : start + 8 * _BLOCK] = (unit[start : start + 8 * _BLOCK] @ centres.T).argmax(1)
    return out


def _without_itself(cosine: Floats, rows: Indexes, columns: Indexes | None) -> None:
    """Puts −inf where a row meets itself."""
    if columns is None:
        cosine[np.arange(len(rows)), rows] = -np.inf
        return
    at = np.searchsorted(columns, rows)
    cosine[np.arange(len(rows)), at] = -np.inf


def _top(cosine: Floats, k: int) -> tuple[Indexes, Floats]:
    """(b, min(k, width)) positions and values of the largest in each row, descending, ties by
    position; −1 and NaN for −inf.

    A full partition costs more than the product itself. Instead the k-th largest of a slice bounds
    each row from below, and only what passes the bound is sorted.
    """
    b, width = cosine.shape
    k = min(k, width)
    if not k:
        return np.empty((b, 0), np.int32), np.empty((b, 0), np.float32)
    if width > 64 * k:
        step = width // (16 * k)
        bound = np.partition(cosine[:, ::step], -k, axis=1)[:, -k]
        passed = cosine >= bound[:, None]
        if int(np.count_nonzero(passed)) > 64 * k * b:  # many equal values, such as all 0
            chosen = np.sort(np.argpartition(cosine, width - k, axis=1)[:, width - k :], axis=1)
            row, column = np.repeat(np.arange(b), k), chosen.ravel()
        else:
            row, column = np.nonzero(passed)
    else:
        row, column = np.divmod(np.arange(b * width), width)
    value = cosine[row, column]
    order = np.lexsort((column, -value, row))
    starts = np.searchsorted(row, np.arange(b))
    take = order[starts[:, None] + np.arange(k)]
    near, best = column[take].astype(np.int32), value[take].astype(np.float32)
    nobody = np.isneginf(best)
    return np.where(nobody, -1, near), np.where(nobody, np.nan, best)


class _PairList:
    """Collects pairs above a floor that rises once far more than the limit are held. Every pair
    is met twice, once from each side; it is counted from both and kept from one."""

    def __init__(self, floor: float, limit: int) -> None:
        self.floor = floor
        self._asked = floor
        self._limit = limit
        self._sides = 0
        self._held: list[tuple[Indexes, Indexes, Floats]] = []

    @property
    def total(self) -> int:
        return self._sides // 2

    def add(self, cosine: Floats, rows: Indexes, columns: Indexes | None) -> None:
        self._sides += int(np.count_nonzero(cosine >= self._asked))
        row, column = np.nonzero(cosine >= self.floor)
        left = rows[row]
        right = (column if columns is None else columns[column]).astype(np.int32)
        once = left < right
        self._held.append((left[once], right[once], cosine[row[once], column[once]]))
        if sum(len(part[0]) for part in self._held) > 4 * self._limit:
            self._cut()

    def _cut(self) -> None:
        first, second, value = (np.concatenate([p[i] for p in self._held]) for i in range(3))
        order = np.lexsort((second, first, -value))
        if len(order) > self._limit:
            order = order[: self._limit]
            self.floor = float(value[order[-1]])
        self._held = [(first[order], second[order], value[order])]

    def listed(self) -> tuple[Indexes, Indexes, Floats]:
        if not self._held:
            empty = np.empty(0, np.int32)
            return empty, empty, np.empty(0, np.float32)
        self._cut()
        first, second, value = self._held[0]
        return first, second, value.astype(np.float32)


def _recall(unit: Floats, index: Indexes, k: int) -> float:
    """Share of the true k nearest that `index` holds, over evenly spaced rows."""
    rows = np.unique(np.linspace(0, len(unit) - 1, _MEASURED, dtype=np.int64)).astype(np.int32)
    cosine = unit[rows] @ unit.T
    _without_itself(cosine, rows, None)
    true, _ = _top(cosine, k)
    hits = [len(np.intersect1d(a, b)) for a, b in zip(true, index[rows], strict=True)]
    return sum(hits) / true.size
