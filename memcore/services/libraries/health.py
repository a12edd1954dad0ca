"""Whether a library's vectors and its rows agree. `reindex` repairs what is found."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from memcore.errors import MemcoreError
from memcore.models import Library
from memcore.services.runtime import Runtime
from memcore.vectors.mirror import MirroredStore


@dataclass(frozen=True, slots=True)
class Health:
    """Counts of one library, taken now."""

    memories: int
    vectors: int
    """In the database, of its current collection."""
    missing: int
    """Memories without a vector: found by keywords only, and no duplicate of anything."""
    stale: int
    """Vectors made from an older text."""
    mismatched: int
    """Vectors of another length than the library's."""
    left_over: int
    """Vectors of collections that are neither current nor being built."""
    elsewhere: int | None
    """Vectors in its other store; None where it has none, or that store does not answer."""
    waiting: int
    """Changes its other store has not taken over yet."""
    orphans: int
    """Vectors in its other store without a row: ignored by searches."""
    absent: int
    """Vectors its other store lacks."""
    trouble: str
    """Why the embedder or the other store cannot be used; empty: they can."""

    @property
    def well(self) -> bool:
        return not (
            self.missing or self.stale or self.mismatched or self.left_over or self.orphans
            or self.absent or self.trouble
        )  # fmt: skip


_COUNTS = text(
    """
    SELECT count(*) AS memories, count(e.memory_id) AS vectors,
        count(*) FILTER (WHERE e.memory_id IS NULL) AS missing,
        count(*) FILTER (WHERE e.content_hash <> m.content_hash) AS stale,
        count(*) FILTER (WHERE vector_dims(e.embedding) <> :dimensions) AS mismatched,
        (SELECT count(*) FROM embeddings x JOIN collections c ON c.id = x.collection_id
            WHERE c.library_id = :library AND c.state = 'retired') AS left_over
    FROM memories m
    LEFT JOIN embeddings e ON e.memory_id = m.id AND e.collection_id = :collection
    WHERE m.library_id = :library
    """
)


class HealthChecks:
    """Part of LibraryService."""

    _runtime: Runtime

    def get(self, library_id: str) -> Library:
        raise NotImplementedError  # Keeping has it

    def health(self, library_id: str) -> Health:
        """Counts in the database and, where the library has one, in its other store."""
        library = self.get(library_id)
        with self._runtime.engine.connect() as connection:
            row = connection.execute(
                _COUNTS,
                {
                    "library": library.id,
                    "collection": library.collection_id,
                    "dimensions": library.dimensions,
                },
            ).one()
        trouble = ""
        try:
            embedder = self._runtime.embedder_for(library)
            if embedder.dimensions != library.dimensions:
                trouble = (
                    f"The embedder now makes {embedder.dimensions} dimensions, but the library "
                    f"holds {library.dimensions}: re-embed it."
                )
        except MemcoreError as error:
            trouble = str(error)
        elsewhere, waiting, orphans, absent = None, 0, 0, 0
        if library.vector_store != "pgvector":
            try:
                store = self._runtime.store_for(library)
                if isinstance(store, MirroredStore):
                    waiting = store.behind()
                there = store.ids()
                here = self._ids(library)
                elsewhere = len(there)
                orphans, absent = len(there - here), len(here - there)
            except MemcoreError as error:
                trouble = str(error)
        return Health(
            row.memories, row.vectors, row.missing, row.stale, row.mismatched, row.left_over,
            elsewhere, waiting, orphans, absent, trouble,
        )  # fmt: skip

    def _ids(self, library: Library) -> set[str]:
        with self._runtime.engine.connect() as connection:
            return set(
                connection.scalars(
                    text("SELECT memory_id::text FROM embeddings WHERE collection_id = :c"),
                    {"c": library.collection_id},
                )
            )
