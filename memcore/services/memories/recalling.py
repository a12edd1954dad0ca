"""The read path: query → candidates in one SQL round trip → pure ranking → hits and dropped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import and_, func, select, text, update

from memcore.database import queries
from memcore.database.tables import EmbeddingRow, MemoryRow
from memcore.models import Actor, Candidate, Library, Memory, SearchResult, Subject
from memcore.rules import lexical, ranking
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime
from memcore.settings import LibrarySettings
from memcore.text import clean

_CANDIDATES = 200


class Recalling:
    """Part of MemoryService: finding."""

    _runtime: Runtime
    _libraries: LibraryService

    def _open(self, subject: Subject) -> tuple[Library, LibrarySettings]:
        raise NotImplementedError  # Adding has it

    def search_memories(
        self,
        query: str,
        *,
        subject: Subject,
        actor: Actor | None = None,
        k: int | None = None,
    ) -> SearchResult:
        """Memories of the subject's scopes for `query`, best first, with what was dropped and why.
        Raises LibraryDisabled, NotFound, EndpointError, DatabaseError."""
        started = time.perf_counter()
        library, settings = self._open(subject)
        query = clean(query)
        vector = self._runtime.embedder_for(library).embed_query(query)
        embedded = time.perf_counter()
        terms = lexical.query_terms(query)
        distance = EmbeddingRow.embedding.op("<=>")(vector).label("distance")
        where = queries.recallable(
            subject,
            actor or Actor(subject.user_id),
            share_between_agents=settings.share_between_agents,
        )
        del terms
        statement = (
            select(*queries.MEMORY_COLUMNS, distance)
            .join(
                EmbeddingRow,
                and_(
                    EmbeddingRow.collection_id == library.collection_id,
                    EmbeddingRow.memory_id == MemoryRow.id,
                ),
            )
            .where(where)
            .order_by(text("distance"), MemoryRow.id)
            .limit(_CANDIDATES)
        )
        with self._runtime.engine.connect() as connection:
            rows = connection.execute(statement).all()
        candidates = tuple(_candidate(row) for row in rows)
        fetched = time.perf_counter()
        ranked = ranking.rank(candidates, settings.ranking)
        hits = ranked.hits[: k or settings.ranking.max_recall]
        if subject.agent_id and hits:
            self._touch([h.memory.id for h in hits])
        done = time.perf_counter()
        return SearchResult(
            query,
            hits,
            ranked.dropped,
            ranked.stages,
            {
                "embed": (embedded - started) * 1e3,
                "sql": (fetched - embedded) * 1e3,
                "rank": (done - fetched) * 1e3,
                "total": (done - started) * 1e3,
            },
            candidates,
        )

    def _touch(self, ids: Sequence[str]) -> None:
        with self._runtime.engine.begin() as connection:
            connection.execute(
                update(MemoryRow)
                .where(MemoryRow.id.in_(ids))
                .values(access_count=MemoryRow.access_count + 1, last_used_at=func.now())
            )


def _candidate(row: Any) -> Candidate:
    values = dict(row._mapping)
    distance = values.pop("distance")
    memory: Memory = queries.memory_from(values)
    return Candidate(memory, float(np.clip(1 - distance, 0, 1)))
