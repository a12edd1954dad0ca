"""pgvector in another database than the one that holds the rows: for scaling vectors apart.

One table per collection. As in the main database, scans are exact within the filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import sql
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from memcore.embeddings import Vectors
from memcore.errors import StoreError
from memcore.vectors import Match, Record, Where, as_array, checked, place


class PgVectorElsewhereStore:
    """One table. The engine stays its owner's: `close` leaves it open."""

    def __init__(self, engine: Engine, name: str, dimensions: int) -> None:
        self._engine = engine
        self._table = sql.Identifier(name)
        self._dimensions = dimensions
        with self._cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [name])
            cursor.execute(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (id text PRIMARY KEY, place text NOT NULL, "
                    "status text NOT NULL, content_hash text NOT NULL, "
                    "embedding vector({}) NOT NULL)"
                ).format(self._table, sql.Literal(dimensions))
            )
            cursor.execute(
                sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} (place, status)").format(
                    sql.Identifier(f"{name}_place"), self._table
                )
            )
            cursor.execute(
                "SELECT atttypmod FROM pg_attribute "
                "WHERE attrelid = to_regclass(%s) AND attname = 'embedding'",
                [name],
            )
            (dims,) = cursor.fetchone()
            if dims != dimensions:
                raise StoreError(
                    f"The table {name} holds {dims} dimensions, not {dimensions}.",
                    hint="Re-embed the library; it builds a new table.",
                )

    def upsert(self, records: Sequence[Record]) -> None:
        rows = [
            (r.id, place(r.scope, r.scope_id), r.status.value, r.content_hash,
             checked(r.vector, self._dimensions)[0])
            for r in records
        ]  # fmt: skip
        if not rows:
            return
        with self._cursor() as cursor:
            cursor.executemany(
                sql.SQL(
                    "INSERT INTO {} VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET "
                    "place = excluded.place, status = excluded.status, "
                    "content_hash = excluded.content_hash, embedding = excluded.embedding"
                ).format(self._table),
                rows,
            )

    def query(self, vector: Vectors, k: int, where: Where | None = None) -> list[Match]:
        asked = checked(vector, self._dimensions)[0]
        condition, values = _condition(where)
        with self._cursor() as cursor:
            cursor.execute(
                sql.SQL(
                    "SELECT id, embedding <=> %s AS distance FROM {} WHERE {} "
                    "ORDER BY distance, id LIMIT %s"
                ).format(self._table, condition),
                [asked, *values, max(k, 0)],
            )
            return [Match(id, 1 - distance) for id, distance in cursor.fetchall()]

    def fetch(self, ids: Sequence[str]) -> dict[str, Vectors]:
        with self._cursor() as cursor:
            cursor.execute(
                sql.SQL("SELECT id, embedding FROM {} WHERE id = ANY(%s)").format(self._table),
                [list(ids)],
            )
            return {id: as_array(vector) for id, vector in cursor.fetchall()}

    def delete(self, ids: Sequence[str]) -> None:
        with self._cursor() as cursor:
            cursor.execute(
                sql.SQL("DELETE FROM {} WHERE id = ANY(%s)").format(self._table), [list(ids)]
            )

    def ids(self) -> set[str]:
        with self._cursor() as cursor:
            cursor.execute(sql.SQL("SELECT id FROM {}").format(self._table))
            return {id for (id,) in cursor.fetchall()}

    def count(self, where: Where | None = None) -> int:
        condition, values = _condition(where)
        with self._cursor() as cursor:
            cursor.execute(
                sql.SQL("SELECT count(*) FROM {} WHERE {}").format(self._table, condition), values
            )
            (counted,) = cursor.fetchone()
            return int(counted)

    def drop(self) -> None:
        with self._cursor() as cursor:
            cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(self._table))

    def close(self) -> None:
        """The engine belongs to whoever opened it."""

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A psycopg cursor in one transaction, its trouble as StoreError."""
        import psycopg

        try:
            with self._engine.begin() as connection:
                driver: Any = connection.connection.driver_connection
                with driver.cursor() as cursor:
                    yield cursor
        except (DBAPIError, psycopg.Error) as error:
            url = self._engine.url
            raise StoreError(
                f"The vector database {url.host or ''}/{url.database} failed: "
                f"{str(getattr(error, 'orig', error)).strip().splitlines()[0][:200]}",
                hint="Check that it runs, has pgvector, and that its address is right.",
            ) from error


def _condition(where: Where | None) -> tuple[sql.Composable, list[Any]]:
    where = where or Where()
    parts: list[sql.Composable] = [sql.SQL("true")]
    values: list[Any] = []
    if where.scopes is not None:
        parts.append(sql.SQL("place = ANY(%s)"))
        values.append([place(scope, i) for scope, i in where.scopes])
    if where.statuses is not None:
        parts.append(sql.SQL("status = ANY(%s)"))
        values.append([status.value for status in where.statuses])
    if where.ids is not None:
        parts.append(sql.SQL("id = ANY(%s)"))
        values.append(list(where.ids))
    return sql.SQL(" AND ").join(parts), values
