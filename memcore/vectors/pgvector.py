"""pgvector in the database that holds the rows: row and vector commit together.

Similarity is 1 - `<=>`. Scans are exact within the filter: one scope holds tens to thousands of
rows, where an exact scan is faster than an index and misses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, and_, delete, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert

from memcore.database.tables import EmbeddingRow, MemoryRow
from memcore.embeddings import Vectors
from memcore.vectors import Match, Record, Where, checked


class PgVectorStore:
    """One collection of `embeddings`."""

    def __init__(self, engine: Engine, collection_id: int, dimensions: int) -> None:
        self._engine = engine
        self._collection_id = collection_id
        self._dimensions = dimensions

    def upsert(self, records: Sequence[Record], connection: Connection | None = None) -> None:
        """With `connection`: within the caller's transaction."""
        if not records:
            return
        vectors = [checked(r.vector, self._dimensions)[0] for r in records]
        statement = insert(EmbeddingRow).values(
            [
                {
                    "collection_id": self._collection_id,
                    "memory_id": record.id,
                    "content_hash": record.content_hash,
                    "embedding": vector,
                }
                for record, vector in zip(records, vectors, strict=True)
            ]
        )
        statement = statement.on_conflict_do_update(
            index_elements=[EmbeddingRow.collection_id, EmbeddingRow.memory_id],
            set_={
                "embedding": statement.excluded.embedding,
                "content_hash": statement.excluded.content_hash,
            },
        )
        if connection is not None:
            connection.execute(statement)
            return
        with self._engine.begin() as own:
            own.execute(statement)

    def query(self, vector: Vectors, k: int, where: Where | None = None) -> list[Match]:
        distance = EmbeddingRow.embedding.op("<=>")(checked(vector, self._dimensions)[0])
        statement = (
            select(EmbeddingRow.memory_id, distance.label("distance"))
            .where(self._mine(where))
            .order_by(text("distance"), EmbeddingRow.memory_id)
            .limit(k)
        )
        with self._engine.connect() as connection:
            rows = connection.execute(self._joined(statement, where))
            return [Match(row.memory_id, 1 - row.distance) for row in rows]

    def fetch(self, ids: Sequence[str]) -> dict[str, Vectors]:
        statement = select(EmbeddingRow.memory_id, EmbeddingRow.embedding).where(
            self._mine(None), EmbeddingRow.memory_id.in_(ids)
        )
        with self._engine.connect() as connection:
            return {
                row.memory_id: row.embedding.to_numpy()
                if hasattr(row.embedding, "to_numpy")
                else row.embedding
                for row in connection.execute(statement)
            }

    def delete(self, ids: Sequence[str]) -> None:
        with self._engine.begin() as connection:
            connection.execute(
                delete(EmbeddingRow).where(self._mine(None), EmbeddingRow.memory_id.in_(ids))
            )

    def count(self, where: Where | None = None) -> int:
        statement = select(func.count()).select_from(EmbeddingRow).where(self._mine(where))
        with self._engine.connect() as connection:
            return connection.scalar(self._joined(statement, where)) or 0

    def close(self) -> None:
        """The engine belongs to the core."""

    def _mine(self, where: Where | None) -> Any:
        conditions = [EmbeddingRow.collection_id == self._collection_id]
        if where and where.ids is not None:
            conditions.append(EmbeddingRow.memory_id.in_(where.ids))
        if where and where.statuses is not None:
            conditions.append(MemoryRow.status.in_(where.statuses))
        if where and where.scopes is not None:
            conditions.append(
                or_(
                    *(
                        and_(MemoryRow.scope == scope, MemoryRow.scope_id == scope_id)
                        for scope, scope_id in where.scopes
                    )
                )
            )
        return and_(*conditions)

    def _joined(self, statement: Any, where: Where | None) -> Any:
        if where and (where.statuses is not None or where.scopes is not None):
            return statement.join(MemoryRow, MemoryRow.id == EmbeddingRow.memory_id)
        return statement
