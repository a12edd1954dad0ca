"""Giving a library another embedder, and embedding again what has no or an outdated vector.

Another embedder gets a collection of its own, filled in the background while the library goes on
with the old one; then one transaction switches. A job whose process was killed is started again
and goes on where it stopped. Vectors of two embedders never share a collection.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select, text, update

from memcore.database import queries
from memcore.database.jobs import Job, Report
from memcore.database.tables import CollectionRow, EmbeddingRow, LibraryRow, MemoryRow
from memcore.embeddings import Embedder
from memcore.errors import Conflict, MemcoreError, StoreError
from memcore.models import Actor, Library
from memcore.rules import permissions
from memcore.services.libraries.keeping import FRESH_SECONDS
from memcore.services.runtime import Runtime
from memcore.vectors import Record, as_array, checked
from memcore.vectors.pgvector import PgVectorStore

_BATCH = 64
_GRACE = FRESH_SECONDS + 1
"""Seconds for which readers may still know the old collection."""
_PATIENCE = 20
_LAST = 256
"""Where writers do not leave a moment with nothing missing in `_PATIENCE` tries, up to so many
are embedded while they wait for the switch."""
_MOST_PAIRS = 1500
"""Memories compared for `pairs`: the newest."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories of one scope and how near they are."""

    similarity: float
    first: str
    second: str


class Reembedding:
    """Part of LibraryService."""

    _runtime: Runtime

    def get(self, library_id: str) -> Library:
        raise NotImplementedError  # Keeping has it

    def forget(self) -> None:
        raise NotImplementedError  # Keeping has it

    def change_embedder(self, library_id: str, embedder: str, *, actor: Actor | None = None) -> Job:
        """Start to embed everything with `embedder`, also where it has that one already. The
        library is searched by its present vectors until the switch. Raises ConfigError, NotFound,
        EndpointError (its dimensions cannot be learnt)."""
        permissions.need_operator(actor)
        library = self.get(library_id)
        opened = self._runtime.embedder_named(embedder)
        return self._runtime.jobs.start(
            "reembed",
            library.id,
            lambda report: self._reembed(library.id, opened, report),
            {"embedder": opened.name, "dimensions": opened.dimensions},
        )

    def reindex(self, library_id: str, *, actor: Actor | None = None) -> Job:
        """Start to embed what has no vector or one of an older text, and to bring another vector
        store level with the database."""
        permissions.need_operator(actor)
        library = self.get(library_id)
        return self._runtime.jobs.start(
            "reindex", library.id, lambda report: self._reindex(library.id, report)
        )

    def job(self, library_id: str) -> Job | None:
        """The newest of its re-embeddings and reindexings that is running, else the newest."""
        library = self.get(library_id)
        found = [
            job
            for kind in ("reembed", "reindex", "store")
            if (job := self._runtime.jobs.latest(kind, library.id))
        ]
        return max(found, key=lambda job: (job.running, job.created_at), default=None)

    def pairs(self, library_id: str, *, around: float, limit: int = 12) -> list[Pair]:
        """Pairs of active memories whose similarity is nearest to `around`, most similar first:
        what a duplicate threshold there would and would not take for the same."""
        library = self.get(library_id)
        m = MemoryRow
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(
                select(m.scope, m.scope_id, m.content, EmbeddingRow.embedding)
                .join(EmbeddingRow, EmbeddingRow.memory_id == m.id)
                .where(
                    m.library_id == library.id,
                    m.status == "active",
                    EmbeddingRow.collection_id == library.collection_id,
                )
                .order_by(m.created_at.desc())
                .limit(_MOST_PAIRS)
            ).all()
        if len(rows) < 2:
            return []
        vectors = np.stack([as_array(row.embedding) for row in rows])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = vectors @ vectors.T
        place = np.unique([f"{row.scope}:{row.scope_id}" for row in rows], return_inverse=True)[1]
        away = np.abs(cosines - around)
        away[(place[:, None] != place[None, :]) | ~np.triu(np.ones_like(away, dtype=bool), 1)] = 9
        order = np.argsort(away, axis=None)[:limit]
        found = [np.unravel_index(i, away.shape) for i in order]
        pairs = [
            Pair(float(cosines[i, j]), rows[i].content, rows[j].content)
            for i, j in found
            if away[i, j] < 9
        ]
        return sorted(pairs, key=lambda pair: -pair.similarity)

    # ---- the work, in a job's thread

    def _reembed(self, library_id: str, embedder: Embedder, report: Report) -> str:
        report("Preparing", 0, 0)
        collection_id = self._building(library_id, embedder)
        store = PgVectorStore(self._runtime.engine, collection_id, embedder.dimensions)
        retired: list[int] | None = None
        for attempt in range(1000):
            self._embed_missing(library_id, collection_id, embedder, store, report)
            most = 0 if attempt < _PATIENCE else _LAST
            retired = self._switch(library_id, collection_id, embedder, store, most)
            if retired is not None:
                break
        self.forget()
        self._mark(library_id, collection_id)
        report("Waiting for readers of the old vectors", 0, 0)
        time.sleep(_GRACE)
        with self._runtime.engine.begin() as connection:
            queries.drop_collections(connection, retired or [])
        count = store.count()
        return f"Embedded {count} memories with {embedder.name} ({embedder.dimensions} dimensions)."

    def _building(self, library_id: str, embedder: Embedder) -> int:
        """The collection to fill: the one an earlier try left, or a new one."""
        with self._runtime.engine.begin() as connection:
            connection.execute(
                text("SELECT pg_advisory_xact_lock(hashtextextended(:id, 9))"), {"id": library_id}
            )
            # Locked: one that is being switched to at this moment is not dropped as half-built.
            rows = connection.execute(
                select(CollectionRow.id, CollectionRow.embedder, CollectionRow.dimensions)
                .where(CollectionRow.library_id == library_id, CollectionRow.state == "building")
                .order_by(CollectionRow.id)
                .with_for_update()
            ).all()
            found: int | None = None
            other = []
            for row in rows:
                if (row.embedder, row.dimensions) == (embedder.name, embedder.dimensions):
                    found = row.id
                else:
                    other.append(row.id)
            queries.drop_collections(connection, other)
            return found or queries.create_collection(
                connection, library_id, embedder.name, embedder.dimensions, "building"
            )

    def _embed_missing(
        self,
        library_id: str,
        collection_id: int,
        embedder: Embedder,
        store: PgVectorStore,
        report: Report,
    ) -> int:
        """Embed until nothing is missing or outdated; returns how many. Raises MemcoreError that
        says how far it came."""
        with self._runtime.engine.connect() as connection:
            total = connection.scalar(
                select(func.count()).where(MemoryRow.library_id == library_id)
            )
            left = connection.scalar(_missing_count(library_id, collection_id))
        total, left = int(total or 0), int(left or 0)
        done = total - left
        embedded = 0
        after: str | None = None
        while True:
            report("Embedding", min(done, total), total)
            with self._runtime.engine.connect() as connection:
                query = _missing(library_id, collection_id).order_by(MemoryRow.id).limit(_BATCH)
                if after is not None:
                    query = query.where(MemoryRow.id > after)
                rows = connection.execute(query).all()
            if not rows:
                return embedded
            after = rows[-1].id
            try:
                kept = self._embed(rows, embedder, store)
            except MemcoreError as error:
                raise StoreError(
                    f"Stopped after {done} of {total} memories: {error.message}",
                    hint=error.hint or "What was embedded is kept; start it again.",
                ) from error
            done += kept
            embedded += kept

    def _embed(
        self, rows: Any, embedder: Embedder, store: PgVectorStore,
        connection: Connection | None = None,
    ) -> int:  # fmt: skip
        """Embed and store `rows`, but for memories that are gone or changed meanwhile. Returns
        how many were stored."""
        vectors = checked(
            embedder.embed_documents([row.content for row in rows]), embedder.dimensions
        )
        if connection is None:
            with self._runtime.engine.begin() as own:
                return self._keep(own, rows, vectors, store)
        return self._keep(connection, rows, vectors, store)

    def _keep(self, connection: Connection, rows: Any, vectors: Any, store: PgVectorStore) -> int:
        found = connection.execute(
            select(MemoryRow.id, MemoryRow.content_hash)
            .where(MemoryRow.id.in_([row.id for row in rows]))
            .with_for_update(read=True, key_share=True)
        )
        living = {row.id: row.content_hash for row in found}
        records = [
            Record(row.id, vector, row.scope, row.scope_id, row.status, row.content_hash)
            for row, vector in zip(rows, vectors, strict=True)
            if living.get(row.id) == row.content_hash
        ]
        store.upsert(records, connection)
        return len(records)

    def _mark(self, library_id: str, collection_id: int) -> None:
        """A memory that had no vector has one now."""
        with self._runtime.engine.begin() as connection:
            connection.execute(_MARK, {"collection": collection_id, "library": library_id})

    def _switch(
        self,
        library_id: str,
        collection_id: int,
        embedder: Embedder,
        store: PgVectorStore,
        most: int,
    ) -> list[int] | None:
        """Make the collection the current one, in one transaction for which writers wait. None
        where more than `most` were written meanwhile; else the collections retired now."""
        with self._runtime.engine.begin() as connection:
            _lock_library(connection, library_id)
            state = connection.scalar(
                select(CollectionRow.state)
                .where(CollectionRow.id == collection_id)
                .with_for_update()
            )
            if state not in ("building", "current"):
                raise Conflict("Another embedder was chosen meanwhile, so this one is not used.")
            rows = connection.execute(_missing(library_id, collection_id).limit(most + 1)).all()
            if len(rows) > most:
                return None
            if rows:
                self._embed(rows, embedder, store, connection)
            connection.execute(
                update(LibraryRow)
                .where(LibraryRow.id == library_id)
                .values(
                    collection_id=collection_id, embedder=embedder.name,
                    dimensions=embedder.dimensions, updated_at=func.now(),
                )
            )  # fmt: skip
            retired = list(
                connection.scalars(
                    update(CollectionRow)
                    .where(
                        CollectionRow.library_id == library_id,
                        CollectionRow.id != collection_id,
                        CollectionRow.state == "current",
                    )
                    .values(state="retired")
                    .returning(CollectionRow.id)
                )
            )
            connection.execute(
                update(CollectionRow)
                .where(CollectionRow.id == collection_id)
                .values(state="current")
            )
            queries.queue_vectors(connection, library_id)
            return retired

    def _reindex(self, library_id: str, report: Report) -> str:
        library = self.get(library_id)
        embedder = self._runtime.embedder_for(library)
        store = PgVectorStore(self._runtime.engine, library.collection_id, library.dimensions)
        embedded = self._embed_missing(library.id, library.collection_id, embedder, store, report)
        self._mark(library.id, library.collection_id)
        said = f"Embedded {embedded} memories."
        if library.vector_store != "pgvector":
            said += " " + self._runtime.stores.level(library, report)
        return said


_MARK = text(
    "UPDATE memories SET vector_id = id::text WHERE library_id = :library AND vector_id IS NULL "
    "AND EXISTS (SELECT 1 FROM embeddings e WHERE e.collection_id = :collection "
    "AND e.memory_id = memories.id)"
)


def _lock_library(connection: Connection, library_id: str) -> None:
    connection.execute(
        select(LibraryRow.id).where(LibraryRow.id == library_id).with_for_update()
    ).one()


def _missing(library_id: str, collection_id: int) -> Any:
    """Memories of the library with no vector in the collection, or one of an older text."""
    m = MemoryRow
    fresh = (
        select(EmbeddingRow.memory_id)
        .where(
            EmbeddingRow.collection_id == collection_id,
            EmbeddingRow.memory_id == m.id,
            EmbeddingRow.content_hash == m.content_hash,
        )
        .exists()
    )
    return select(m.id, m.content, m.content_hash, m.scope, m.scope_id, m.status).where(
        m.library_id == library_id, ~fresh
    )


def _missing_count(library_id: str, collection_id: int) -> Any:
    return select(func.count()).select_from(_missing(library_id, collection_id).subquery())
