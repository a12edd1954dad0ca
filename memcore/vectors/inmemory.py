"""Vectors in this process's memory: exact, and gone when it ends. `mirror.py` fills it from the
database when it is opened."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from memcore.embeddings import Vectors
from memcore.vectors import Match, Record, Where, checked, nearest_first, place


class InMemoryStore:
    """One collection, as rows of one matrix of unit vectors that is rebuilt after a change."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._records: dict[str, Record] = {}
        self._matrix: Vectors | None = None
        self._ids: list[str] = []
        self._lock = threading.RLock()

    def upsert(self, records: Sequence[Record]) -> None:
        vectors = [checked(record.vector, self._dimensions)[0].copy() for record in records]
        with self._lock:
            for record, vector in zip(records, vectors, strict=True):
                self._records[record.id] = Record(
                    record.id, vector, record.scope, record.scope_id, record.status,
                    record.content_hash,
                )  # fmt: skip
            self._matrix = None

    def query(self, vector: Vectors, k: int, where: Where | None = None) -> list[Match]:
        asked = checked(vector, self._dimensions)[0]
        with self._lock:
            if self._matrix is None:
                self._ids = list(self._records)
                rows = [self._records[i].vector for i in self._ids]
                matrix = np.array(rows, dtype=np.float32).reshape(-1, self._dimensions)
                self._matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
            cosines = self._matrix @ (asked / np.linalg.norm(asked))
            meets = _filter(where)
            return nearest_first(
                (
                    Match(i, float(cosine))
                    for i, cosine in zip(self._ids, cosines, strict=True)
                    if meets(self._records[i])
                ),
                k,
            )

    def fetch(self, ids: Sequence[str]) -> dict[str, Vectors]:
        with self._lock:
            return {i: self._records[i].vector.copy() for i in ids if i in self._records}

    def delete(self, ids: Sequence[str]) -> None:
        with self._lock:
            for i in ids:
                self._records.pop(i, None)
            self._matrix = None

    def ids(self) -> set[str]:
        with self._lock:
            return set(self._records)

    def count(self, where: Where | None = None) -> int:
        meets = _filter(where)
        with self._lock:
            return sum(meets(record) for record in self._records.values())

    def drop(self) -> None:
        with self._lock:
            self._records.clear()
            self._matrix = None

    def close(self) -> None:
        """Nothing is held open."""


class _filter:
    def __init__(self, where: Where | None) -> None:
        where = where or Where()
        self._places = (
            None if where.scopes is None else {place(scope, id) for scope, id in where.scopes}
        )
        self._statuses = None if where.statuses is None else set(where.statuses)
        self._ids = None if where.ids is None else set(where.ids)

    def __call__(self, record: Record) -> bool:
        return (
            (self._ids is None or record.id in self._ids)
            and (self._statuses is None or record.status in self._statuses)
            and (self._places is None or place(record.scope, record.scope_id) in self._places)
        )
