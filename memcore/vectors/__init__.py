"""Vector stores: an index over rows that are the truth. The protocol here, adapters beside it.

A store instance serves one collection (one embedder, one dimension count). Similarity is cosine,
higher is nearer, the same in every backend.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from memcore.embeddings import Vectors
from memcore.errors import InvalidVector
from memcore.models import Scope, Status

SMALLEST_NORM = 1e-6


@dataclass(frozen=True, slots=True)
class Record:
    """One vector with the fields a store can filter by."""

    id: str
    vector: Vectors
    scope: Scope
    scope_id: str
    status: Status = Status.ACTIVE
    content_hash: str = ""
    """Of the text it was made from; a row whose hash differs has a stale vector."""


@dataclass(frozen=True, slots=True)
class Where:
    """A filter, applied before the limit. None means any."""

    scopes: tuple[tuple[Scope, str], ...] | None = None
    """(scope, scope_id) pairs; a record matches any one of them."""
    statuses: tuple[Status, ...] | None = None
    ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Match:
    id: str
    similarity: float
    """Cosine in [-1, 1], not clamped."""


class VectorStore(Protocol):
    """Promises, each a contract test on every backend: read your writes; cosine within 1e-4;
    nearest first, ties by id; filter before limit; a k beyond the collection returns all; upsert
    replaces; unknown ids are ignored; bad vectors are refused before any I/O; collections do not
    see each other; reopening keeps data (not in-process memory); eight threads may share one."""

    def upsert(self, records: Sequence[Record]) -> None: ...

    def query(self, vector: Vectors, k: int, where: Where | None = None) -> list[Match]: ...

    def fetch(self, ids: Sequence[str]) -> dict[str, Vectors]: ...

    def delete(self, ids: Sequence[str]) -> None: ...

    def count(self, where: Where | None = None) -> int: ...

    def ids(self) -> set[str]:
        """Of every vector it holds; for finding orphans."""
        ...

    def drop(self) -> None:
        """Remove the collection with all its vectors."""
        ...

    def close(self) -> None: ...


def place(scope: Scope, scope_id: str) -> str:
    """A scope and its id as the one field that stores outside the database filter by: 40 hex
    digits. So no id can break out of a filter, none is too long, and no user's name leaves."""
    named = f"{scope.value}:{scope_id}".encode("utf-8", "replace")
    return hashlib.sha256(named).hexdigest()[:40]


def nearest_first(matches: Iterable[Match], k: int) -> list[Match]:
    """At most `k`, nearest first, ties by id."""
    return sorted(matches, key=lambda match: (-match.similarity, match.id))[: max(k, 0)]


_USUAL = (4 * SMALLEST_NORM**2, 1e30)
"""Squared norms of vectors whose every value is finite and that have a length, rounding apart."""


def checked(vectors: Vectors, dimensions: int) -> Vectors:
    """`vectors` as contiguous float32 (n, dimensions). Raises InvalidVector for a wrong length, a
    norm below 1e-6 (its cosine is NaN, and NaN passes thresholds) or a value that is not finite."""
    array = np.ascontiguousarray(vectors, dtype=np.float32)
    if array.ndim == 1:
        # One pass says it all of a usual vector; the rest is for saying what is wrong.
        if len(array) == dimensions and _USUAL[0] <= float(array @ array) <= _USUAL[1]:
            return array[None, :]
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != dimensions:
        raise InvalidVector(
            f"A vector has {array.shape[-1]} dimensions, but the collection holds {dimensions}.",
            hint="Use the library's own embedder, or re-embed the library with the new one.",
        )
    if not np.isfinite(array).all():
        raise InvalidVector("A vector has a value that is not a finite number.")
    if len(array) and not float(np.linalg.norm(array, axis=1).min()) >= SMALLEST_NORM:
        raise InvalidVector("A vector has no length, so its direction means nothing.")
    return array


def as_array(value: Any) -> Vectors:
    """A vector as the driver gives it (its own type, an array or a list) as float32."""
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    return np.asarray(value, dtype=np.float32)
