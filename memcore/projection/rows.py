"""Rows as they can be drawn: sorted by id, of one length, of norm 1, equal ones found.

Pure: no I/O. What cannot be drawn is listed with its reason, never dropped in silence and never
an exception: one bad vector must not cost a person the map.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from memcore.errors import InvalidInput
from memcore.projection import Floats, Indexes, LeftOut
from memcore.vectors import SMALLEST_NORM

_BLOCK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    ids: tuple[str, ...]
    unit: Floats
    """(n, d): norm 1, so that a product is a cosine."""
    groups: tuple[tuple[int, int], ...]
    """(dimensions, rows), largest group first."""
    left_out: tuple[LeftOut, ...]


def prepare(
    ids: Sequence[str],
    vectors: Sequence[Any] | npt.NDArray[np.floating[Any]],
    *,
    dimensions: int | None = None,
) -> Rows:
    """Usable rows in the order of their ids. `vectors`: one per id, or None where there is none.

    Vectors of several lengths cannot share a picture: `dimensions` chooses which are drawn (default
    the commonest, the longer on a tie), the others are listed. Raises InvalidInput for ids that
    repeat or do not match the vectors.
    """
    if len(ids) != len(vectors):
        raise InvalidInput(f"There are {len(ids)} ids but {len(vectors)} vectors.")
    if len(set(ids)) != len(ids):
        twice = next(i for i, n in Counter(ids).items() if n > 1)
        raise InvalidInput(f"The id {twice!r} comes twice.")
    order = sorted(range(len(ids)), key=ids.__getitem__)
    if isinstance(vectors, np.ndarray) and vectors.ndim == 2:
        chosen = vectors.shape[1]
        groups: tuple[tuple[int, int], ...] = ((chosen, len(ids)),) if len(ids) else ()
        if dimensions not in (None, chosen):
            raise InvalidInput(
                f"No vector has {dimensions} dimensions; all {len(ids)} have {chosen}."
            )
        matrix = np.asarray(vectors[order], dtype=np.float32)
        kept = [ids[i] for i in order]
        left_out: list[LeftOut] = []
    else:
        kept, matrix, groups, left_out = _stack(ids, vectors, order, dimensions)
    finite = np.isfinite(matrix).all(axis=1)
    # A norm in float64: squares of large float32 values would overflow to infinity.
    norms = np.zeros(len(matrix))
    for i in range(0, len(matrix), _BLOCK):
        norms[i : i + _BLOCK] = np.linalg.norm(matrix[i : i + _BLOCK].astype(np.float64), axis=1)
    long_enough = norms >= SMALLEST_NORM
    for i in np.flatnonzero(~finite).tolist():
        left_out.append(
            LeftOut(kept[i], "not_finite", "It has a value that is not a finite number.")
        )
    for i in np.flatnonzero(finite & ~long_enough).tolist():
        left_out.append(
            LeftOut(kept[i], "zero", "It has no length, so its direction means nothing.")
        )
    good = finite & long_enough
    unit = (matrix[good] / norms[good, None]).astype(np.float32)
    left_out.sort(key=lambda row: row.id)
    return Rows(
        tuple(kept[i] for i in np.flatnonzero(good)), np.ascontiguousarray(unit),
        groups, tuple(left_out),
    )  # fmt: skip


def _stack(
    ids: Sequence[str], vectors: Any, order: list[int], dimensions: int | None
) -> tuple[list[str], Floats, tuple[tuple[int, int], ...], list[LeftOut]]:
    """Rows of the chosen length as a matrix, what lengths there are, and the rows left out."""
    lengths: Counter[int] = Counter()
    left_out: list[LeftOut] = []
    rows: dict[int, Floats] = {}
    for i in order:
        if vectors[i] is None:
            left_out.append(LeftOut(ids[i], "missing", "It has no vector yet."))
            continue
        row = np.asarray(vectors[i], dtype=np.float32)
        if row.ndim != 1 or not len(row):
            left_out.append(LeftOut(ids[i], "missing", "Its vector is empty."))
            continue
        rows[i] = row
        lengths[len(row)] += 1
    groups = tuple(sorted(lengths.items(), key=lambda g: (-g[1], -g[0])))
    if dimensions is not None and groups and dimensions not in lengths:
        raise InvalidInput(
            f"No vector has {dimensions} dimensions; "
            f"there are {', '.join(str(d) for d in sorted(lengths))}."
        )
    chosen = dimensions or (groups[0][0] if groups else 0)
    kept = []
    for i, row in rows.items():
        if len(row) == chosen:
            kept.append(i)
        else:
            left_out.append(LeftOut(
                ids[i], "other_dimensions",
                f"It has {len(row)} dimensions; this picture draws those with {chosen}.",
            ))  # fmt: skip
    matrix = np.stack([rows[i] for i in kept]) if kept else np.zeros((0, chosen), np.float32)
    return [ids[i] for i in kept], matrix, groups, left_out


def distinct(unit: Floats) -> tuple[Indexes, Indexes]:
    """Which rows differ: (m,) position of each distinct row's first occurrence, in order, and (n,)
    for every row the number of its distinct row. Rows equal to six decimals count as equal."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    spot = np.empty(len(unit), dtype=np.int32)
    for start in range(0, len(unit), _BLOCK):
        # Adding 0 turns −0.0 into 0.0, which has other bytes.
        rounded = np.round(unit[start : start + _BLOCK], 6) + np.float32(0)
        for i, row in enumerate(rounded, start):
            key = hashlib.blake2b(row.tobytes(), digest_size=16).digest()
            number = seen.setdefault(key, len(first))
            if number == len(first):
                first.append(i)
            spot[i] = number
    return np.array(first, dtype=np.int32), spot
