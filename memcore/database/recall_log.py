"""The recall log: what an agent's recall was decided on, without the texts it was decided about.

A candidate is kept as numbers beside its memory's id. Its text is read again when the log is, so
what was deleted or erased since is in no log, and a replay needs no I/O of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy import ColumnElement, Connection, select

from memcore.database import queries
from memcore.database.tables import MemoryRow, RecallRow
from memcore.explanations import LoggedRecall
from memcore.models import (
    Candidate,
    Memory,
    MemoryType,
    Scope,
    SearchResult,
    Status,
    Subject,
    Visibility,
)
from memcore.settings import RankingSettings

# The two share the counting; neither holds a value, all are parameters.
_USED = """
UPDATE memories SET access_count = access_count + 1, last_used_at = now(),
    relevance = used.similarity
FROM unnest(%(ids)s::uuid[], %(similarities)s::float8[]) AS used(id, similarity)
WHERE memories.id = used.id
"""
_LOGGED = f"""
WITH used AS ({_USED} RETURNING 1)
INSERT INTO recalls (library_id, agent_id, user_id, project_id, conversation_id, query,
    candidates, settings, hits, timings)
VALUES (%(library)s, %(agent)s, %(user)s, %(project)s, %(session)s, %(query)s,
    %(candidates)s, %(settings)s, %(hits)s, %(timings)s)
RETURNING id
"""  # noqa: S608


def used(
    connection: Connection, result: SearchResult, subject: Subject, *, logged: bool
) -> int | None:
    """Count the use of the hits and, where `logged`, keep the recall: one statement. Returns the
    log's number."""
    values: dict[str, Any] = {
        "ids": [hit.memory.id for hit in result.hits],
        "similarities": [hit.terms[0].value for hit in result.hits],
    }
    driver = connection.connection.driver_connection
    assert driver is not None
    if not logged:
        if result.hits:
            driver.execute(_USED, values)
        return None
    values |= {
        "library": subject.library_id,
        "agent": subject.agent_id,
        "user": subject.user_id,
        "project": subject.project_id,
        "session": subject.session_id,
        "query": result.query,
        "candidates": Jsonb([_facts(c) for c in result.candidates]),
        "settings": Jsonb({**asdict(result.ranking), "mode": result.mode}),
        "hits": Jsonb([hit.memory.id for hit in result.hits]),
        "timings": Jsonb({name: round(ms, 3) for name, ms in result.timings.items()}),
    }
    row = driver.execute(_LOGGED, values).fetchone()
    return int(row[0])


def read(
    connection: Connection,
    *,
    library_id: str,
    visible: ColumnElement[bool],
    limit: int,
    user_id: str | None = None,
    agent_id: str | None = None,
    recall_id: int | None = None,
) -> list[LoggedRecall]:
    """The newest logged recalls of a library, newest first. `visible` is the predicate for the
    memories whose texts may be shown."""
    log = RecallRow.__table__
    wanted = [log.c.library_id == library_id]
    for column, value in (
        (log.c.user_id, user_id),
        (log.c.agent_id, agent_id),
        (log.c.id, recall_id),
    ):
        if value is not None:
            wanted.append(column == value)
    rows = connection.execute(
        select(log).where(*wanted).order_by(log.c.id.desc()).limit(limit)
    ).all()
    ids = {facts["id"] for row in rows for facts in row.candidates}
    known: dict[str, Memory] = {}
    if ids:
        found = connection.execute(
            select(*queries.MEMORY_COLUMNS).where(MemoryRow.id.in_(ids), visible)
        )
        known = {memory.id: memory for memory in map(queries.memory_from, found)}
    return [_logged(row, known) for row in rows]


def _logged(row: Any, known: Mapping[str, Memory]) -> LoggedRecall:
    names = RankingSettings.__dataclass_fields__
    return LoggedRecall(
        id=row.id,
        at=row.at,
        subject=Subject(
            row.library_id, row.user_id, row.project_id, row.conversation_id, row.agent_id
        ),
        query=row.query,
        mode=row.settings.get("mode", "hybrid"),
        candidates=tuple(_candidate(facts, known, row) for facts in row.candidates),
        ranking=RankingSettings(**{k: v for k, v in row.settings.items() if k in names}),
        hits=tuple(row.hits),
        timings=row.timings,
        gone=frozenset(f["id"] for f in row.candidates if f["id"] not in known),
    )


def _candidate(facts: Mapping[str, Any], known: Mapping[str, Memory], row: Any) -> Candidate:
    at = datetime.fromisoformat(facts["created_at"])
    memory = known.get(facts["id"]) or Memory(
        id=facts["id"], content="", title="", tags=(), memory_type=MemoryType(facts["type"]),
        scope=Scope(facts["scope"]), scope_id="", confidence=facts["confidence"], relevance=0.0,
        visibility=Visibility.OWNER_ONLY, status=Status.SUPPRESSED, library_id=row.library_id,
        user_id="", created_by="", source="", content_hash=facts["id"], created_at=at,
        updated_at=at,
    )  # fmt: skip
    # Judged on what was known then, shown with the text of now.
    memory = replace(
        memory, memory_type=MemoryType(facts["type"]), scope=Scope(facts["scope"]),
        confidence=facts["confidence"], access_count=facts["access_count"], created_at=at,
    )  # fmt: skip
    return Candidate(
        memory, facts["similarity"], facts["lexical"], facts["dense_rank"],
        facts["lexical_rank"], tuple(facts["matched"]), facts["reranked"],
    )  # fmt: skip


def _facts(candidate: Candidate) -> dict[str, Any]:
    memory = candidate.memory
    return {
        "id": memory.id,
        "similarity": candidate.similarity,
        "lexical": candidate.lexical,
        "dense_rank": candidate.dense_rank,
        "lexical_rank": candidate.lexical_rank,
        "matched": candidate.matched,
        "reranked": candidate.reranked,
        "type": memory.memory_type,
        "scope": memory.scope,
        "confidence": memory.confidence,
        "access_count": memory.access_count,
        "created_at": memory.created_at.isoformat(),
    }
