"""pgvector in the database that holds the rows: row and vector commit together.

Similarity is 1 - `<=>`. Scans are exact within the filter: one scope holds tens to thousands of
rows, where an exact scan is faster than an index and misses nothing. Scope and status are the
row's own, so they are never out of date.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, and_, delete, false, func, or_, select, text
from sqlalchemy.exc import DBAPIError

from memcore.database import queries
from memcore.database.tables import EmbeddingRow, MemoryRow
from memcore.embeddings import Vectors
from memcore.errors import StoreError
from memcore.vectors import Match, Record, Where, as_array, checked


class PgVectorStore:
    """One collection of `embeddings`. The engine stays its owner's: `close` leaves it open."""

    def __init__(self, engine: Engine, collection_id: int, dimensions: int) -> None:
        self._engine = engine
        self._collection_id = collection_id
        self._dimensions = dimensions

    def upsert(self, records: Sequence[Record], connection: Connection | None = None) -> None:
        """With `connection`: within the caller's transaction. Each id is a memory's."""
        rows = [
            (
                self._collection_id,
                record.id,
                record.content_hash,
                checked(record.vector, self._dimensions)[0],
            )
            for record in records
        ]
        if not rows:
            return
        with self._using(connection) as own:
            driver: Any = own.connection.driver_connection
            with driver.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO embeddings (collection_id, memory_id, content_hash, embedding) "
                    "VALUES (%s, %s, %s, %s) ON CONFLICT (collection_id, memory_id) DO UPDATE "
                    "SET embedding = excluded.embedding, content_hash = excluded.content_hash",
                    rows,
                )

    def query(self, vector: Vectors, k: int, where: Where | None = None) -> list[Match]:
        distance = EmbeddingRow.embedding.op("<=>")(checked(vector, self._dimensions)[0])
        statement = (
            select(EmbeddingRow.memory_id, distance.label("distance"))
            .where(self._mine(where))
            .order_by(text("distance"), EmbeddingRow.memory_id)
            .limit(max(k, 0))
        )
        with self._using() as connection:
            rows = connection.execute(self._joined(statement, where))
            return [Match(row.memory_id, 1 - row.distance) for row in rows]

    def fetch(self, ids: Sequence[str]) -> dict[str, Vectors]:
        statement = select(EmbeddingRow.memory_id, EmbeddingRow.embedding).where(
            self._mine(None), EmbeddingRow.memory_id.in_(ids)
        )
        with self._using() as connection:
            return {row.memory_id: as_array(row.embedding) for row in connection.execute(statement)}

    def delete(self, ids: Sequence[str]) -> None:
        with self._using() as connection:
            connection.execute(
                delete(EmbeddingRow).where(self._mine(None), EmbeddingRow.memory_id.in_(ids))
            )

    def count(self, where: Where | None = None) -> int:
        statement = select(func.count()).select_from(EmbeddingRow).where(self._mine(where))
        with self._using() as connection:
            return connection.scalar(self._joined(statement, where)) or 0

    def ids(self) -> set[str]:
        with self._using() as connection:
            return set(connection.scalars(select(EmbeddingRow.memory_id).where(self._mine(None))))

    def drop(self) -> None:
        with self._using() as connection:
            queries.drop_collections(connection, [self._collection_id])

    def close(self) -> None:
        """The engine belongs to the core."""

    @contextmanager
    def _using(self, connection: Connection | None = None) -> Iterator[Connection]:
        """The caller's transaction, whose trouble is the caller's, or one of its own."""
        if connection is not None:
            yield connection
            return
        import psycopg

        try:
            with self._engine.begin() as own:
                yield own
        except (DBAPIError, psycopg.Error) as error:
            cause = str(getattr(error, "orig", error)).strip().splitlines()[0]
            raise StoreError(
                f"The vectors in the database cannot be used: {cause[:200]}",
                hint="See Database on the Admin page.",
            ) from error

    def _mine(self, where: Where | None) -> Any:
        conditions = [EmbeddingRow.collection_id == self._collection_id]
        if where and where.ids is not None:
            conditions.append(EmbeddingRow.memory_id.in_(where.ids))
        if where and where.statuses is not None:
            conditions.append(MemoryRow.status.in_(where.statuses))
        if where and where.scopes is not None:
            conditions.append(
                or_(
                    false(),
                    *(
                        and_(MemoryRow.scope == scope, MemoryRow.scope_id == scope_id)
                        for scope, scope_id in where.scopes
                    ),
                )
            )
        return and_(*conditions)

    def _joined(self, statement: Any, where: Where | None) -> Any:
        if where and (where.statuses is not None or where.scopes is not None):
            return statement.join(MemoryRow, MemoryRow.id == EmbeddingRow.memory_id)
        return statement
