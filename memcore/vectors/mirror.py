"""Another store kept level with the database, which always has every vector.

A vector commits with its row in PostgreSQL; what another store holds is an index of that. Each
change notes itself in `vector_changes` within its own transaction (database/tables.py), and is
carried over before the next query, so a reader sees what was written and a store that was away
catches up by itself. While it is far behind, the database answers in its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import Connection, Engine, bindparam, text

from memcore.embeddings import Vectors
from memcore.errors import StoreError
from memcore.models import Scope, Status
from memcore.vectors import Match, Record, VectorStore, Where, as_array

_T = TypeVar("_T")

_BATCH = 500
FAR_BEHIND = 1000
"""From this many changes on, the database answers until they are carried over."""
_REFILL_AFTER = 12 * 3600.0
"""Seconds after which an in-process copy is filled anew: older changes may have been pruned."""


class MirroredStore:
    """One collection of another store. `open` opens it, and again after it failed. `private`: it
    lives in this process alone, so it reads changes without using them up."""

    def __init__(
        self,
        engine: Engine,
        collection_id: int,
        open: Callable[[], VectorStore],
        source: VectorStore,
        *,
        private: bool = False,
    ) -> None:
        self._engine = engine
        self._collection_id = collection_id
        self._open = open
        self._source = source
        self._private = private
        self._inner: VectorStore | None = None
        self._lock = threading.RLock()
        self._seen: int | None = None
        self._level_at = 0.0

    def query(self, vector: Vectors, k: int, where: Where | None = None) -> list[Match]:
        if not self._private and self.behind() > FAR_BEHIND:
            return self._source.query(vector, k, where)
        self.catch_up()
        return self._tried(lambda store: store.query(vector, k, where))

    def count(self, where: Where | None = None) -> int:
        self.catch_up()
        return self._tried(lambda store: store.count(where))

    def fetch(self, ids: Sequence[str]) -> dict[str, Vectors]:
        self.catch_up()
        return self._tried(lambda store: store.fetch(ids))

    def ids(self) -> set[str]:
        self.catch_up()
        return self._tried(lambda store: store.ids())

    def upsert(self, records: Sequence[Record]) -> None:
        self._tried(lambda store: store.upsert(records))

    def delete(self, ids: Sequence[str]) -> None:
        self._tried(lambda store: store.delete(ids))

    def drop(self) -> None:
        self._tried(lambda store: store.drop())

    def close(self) -> None:
        with self._lock:
            if self._inner is not None:
                self._inner.close()
                self._inner = None
                self._seen = None

    def behind(self) -> int:
        """Changes noted and not carried over yet; counted up to a little beyond FAR_BEHIND."""
        with self._engine.connect() as connection:
            found = connection.scalar(
                text(
                    "SELECT count(*) FROM (SELECT 1 FROM vector_changes "
                    "WHERE collection_id = :collection LIMIT :most) AS noted"
                ),
                {"collection": self._collection_id, "most": FAR_BEHIND + 1},
            )
        return int(found or 0)

    def catch_up(self, report: Callable[[int], None] = lambda _: None) -> int:
        """Carry over what changed; returns how many memories. `report` is told the running sum.
        Raises StoreError; what was not carried over stays noted."""
        if self._private:
            return self._catch_up_alone()
        carried = 0
        while done := self._carry_batch():
            carried += done
            report(carried)
        return carried

    def level(self, memory_ids: Sequence[str]) -> None:
        """Put or remove exactly these, as the database has them now."""
        with self._engine.connect() as connection:
            self._apply(connection, memory_ids)

    # ---- parts

    def _carry_batch(self) -> int:
        with self._engine.connect() as connection:
            noted = connection.scalar(
                text("SELECT 1 FROM vector_changes WHERE collection_id = :collection LIMIT 1"),
                {"collection": self._collection_id},
            )
        if noted is None:
            return 0
        with self._engine.begin() as connection:
            # One at a time: of two carriers the slower could put back an older state.
            connection.execute(
                text("SELECT pg_advisory_xact_lock(hashtextextended('vector_changes', :c))"),
                {"c": self._collection_id},
            )
            rows = connection.execute(
                text(
                    "SELECT id, memory_id::text AS memory_id FROM vector_changes "
                    "WHERE collection_id = :collection ORDER BY id LIMIT :batch"
                ),
                {"collection": self._collection_id, "batch": _BATCH},
            ).all()
            wanted = list(dict.fromkeys(row.memory_id for row in rows))
            self._apply(connection, wanted)
            connection.execute(
                text("DELETE FROM vector_changes WHERE id = ANY(:ids)"),
                {"ids": [row.id for row in rows]},
            )
        return len(wanted)

    def _catch_up_alone(self) -> int:
        with self._lock, self._engine.connect() as connection:
            # Everything older than the oldest transaction still open has been seen by now; what
            # is younger is looked at again next time.
            horizon = connection.scalar(
                text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
            )
            stale = time.monotonic() - self._level_at > _REFILL_AFTER
            values: dict[str, int] = {"c": self._collection_id}
            if self._seen is None or self._inner is None or stale:
                self._inner = self._open()
                wanted = "SELECT memory_id::text FROM embeddings WHERE collection_id = :c"
            else:
                wanted = (
                    "SELECT DISTINCT memory_id::text FROM vector_changes "
                    "WHERE collection_id = :c AND transaction_id >= :seen"
                )
                values["seen"] = self._seen
            ids = connection.scalars(text(wanted), values).all()
            for start in range(0, len(ids), _BATCH):
                self._apply(connection, ids[start : start + _BATCH])
            self._seen = horizon
            self._level_at = time.monotonic()
            return len(ids)

    def _apply(self, connection: Connection, memory_ids: Sequence[str]) -> None:
        rows = connection.execute(
            text(
                "SELECT m.id::text AS id, m.scope, m.scope_id, m.status, e.content_hash, "
                "e.embedding FROM embeddings e JOIN memories m ON m.id = e.memory_id "
                "WHERE e.collection_id = :collection AND e.memory_id = ANY(CAST(:ids AS uuid[]))"
            ).bindparams(bindparam("ids", list(memory_ids))),
            {"collection": self._collection_id},
        ).all()
        there = [
            Record(
                row.id, as_array(row.embedding), Scope(row.scope), row.scope_id,
                Status(row.status), row.content_hash,
            )
            for row in rows
        ]  # fmt: skip
        gone = set(memory_ids) - {record.id for record in there}
        if there:
            self._tried(lambda store: store.upsert(there))
        if gone:
            self._tried(lambda store: store.delete(sorted(gone)))

    def _tried(self, act: Callable[[VectorStore], _T]) -> _T:
        """`act`, and once more on a store opened anew: a server that restarted forgets what was
        loaded."""
        with self._lock:
            first = self._inner
            if first is None:
                first = self._inner = self._open()
        try:
            return act(first)
        except StoreError:
            if self._private:
                raise
            with self._lock:
                if self._inner is first:
                    first.close()
                    self._inner = None
                    self._inner = self._open()
                again = self._inner
            assert again is not None
            return act(again)
