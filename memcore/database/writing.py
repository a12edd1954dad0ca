"""The statements of one add, sent through the driver: building them with SQLAlchemy took longer
than running them, and each round trip is waited for while the scope is locked.

Three in one transaction: `enter` (who writes, what they may, the lock), `nearest` (facts other
writers could change, read after the lock), `store` (memory, vector and decision).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from psycopg.errors import UndefinedTable
from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from memcore.database import queries
from memcore.database.engine import driven
from memcore.database.rate import lock_key
from memcore.embeddings import Vectors
from memcore.errors import EmbedderChanged
from memcore.models import Library, Memory, Role, Scope, Subject

# Everybody is introduced before the lock is asked for, as an import does: the other way round the
# two could wait for each other.
_ENTER = """
WITH person AS (
    INSERT INTO users (id) VALUES (%(user)s) ON CONFLICT DO NOTHING RETURNING id
), made AS (
    INSERT INTO projects (id) SELECT %(project)s::text WHERE %(project)s::text IS NOT NULL
    ON CONFLICT DO NOTHING RETURNING id
), owner AS (
    INSERT INTO project_members (user_id, project_id, role)
    SELECT %(user)s, id, 'owner' FROM made RETURNING user_id, project_id, role
), ready AS (
    SELECT (SELECT count(*) FROM person) + (SELECT count(*) FROM owner) AS known
)
SELECT pg_advisory_xact_lock(CASE WHEN known >= 0 THEN %(key)s::bigint END),
    (SELECT jsonb_object_agg(project_id, role) FROM (
        SELECT project_id, role FROM project_members WHERE user_id = %(actor)s
        UNION ALL SELECT project_id, role FROM owner WHERE user_id = %(actor)s
    ) roles)
FROM ready
"""
_NEAREST = """
SELECT memories.id::text, memories.content, memories.memory_type, memories.user_id,
    memories.created_by, memories.content_hash = %(hash)s AS same, {distance} AS distance
FROM memories {join}
WHERE {living}{only}
ORDER BY same DESC, distance, memories.id LIMIT {limit}
"""
_JSON = ("draft", "facts", "settings", "checks")
_DECISION = (
    "library_id", "agent_id", "user_id", "project_id", "conversation_id", "run_id", "source",
    "accepted", "outcome", "blocked_by", "memory_id", "matched_id", *_JSON,
)  # fmt: skip
# The database sets these.
_UNSET = {"superseded_by", "access_count", "last_used_at", "version", "updated_at"}
_MEMORY = tuple(f.name for f in fields(Memory) if f.name not in _UNSET | {"created_at"})
_UUIDS = {"id", "library_id", "agent_id", "run_id", "memory_id", "matched_id"}


def enter(
    connection: Connection, subject: Subject, actor_id: str, scope: Scope, place: str
) -> dict[str, Role]:
    """Make sure that the subject's user and project exist (`queries.introduce`), let one writer at
    a time into the scope until the transaction ends, and say the actor's role in each project."""
    values = {
        "user": subject.user_id,
        "project": subject.project_id,
        "actor": actor_id,
        "key": lock_key(subject.library_id, scope, place),
    }
    with driven(connection) as driver:
        row = driver.execute(_ENTER, values, binary=True).fetchone()
    assert row is not None
    return {project: Role(role) for project, role in (row[1] or {}).items()}


def nearest(
    connection: Connection,
    library: Library,
    scope: Scope,
    place: str,
    subject: Subject,
    *,
    share: bool,
    content_hash: str,
    vector: Vectors | None,
    limit: int,
) -> list[tuple[str, str, str, str, str, bool, float | None]]:
    """Living memories of the scope (`queries.living_in_scope`): id, content, type, user, creator,
    whether the hash is the same, cosine distance. Exact ones first, then nearest; without a vector
    the exact ones alone. Raises EmbedderChanged where the collection is gone."""
    named = subject.agent_id is not None and not share
    collection = library.collection_id if vector is not None else None
    values = {
        "library": library.id, "place": place, "user": subject.user_id,
        "agent": subject.agent_id, "hash": content_hash, "vector": vector,
    }  # fmt: skip
    sql = _nearest(scope, named, collection, limit)
    try:
        with driven(connection) as driver:
            return driver.execute(sql, values, binary=True).fetchall()
    except UndefinedTable:
        # The library was embedded anew a moment ago and its former collection is gone.
        raise EmbedderChanged(hint="Try again.") from None


@lru_cache(maxsize=256)
def _nearest(scope: Scope, agent: bool, collection_id: int | None, limit: int) -> str:
    names = ("library", "place", "user", "agent")
    library, place, user, asking = map(queries.mark, names)
    subject = Subject(library, user, agent_id=asking if agent else None)
    living = queries.placed(
        queries.living_in_scope(library, scope, place, subject, share=not agent), names
    )
    if collection_id is None:
        distance, join, only = "NULL::float8", "", " AND memories.content_hash = %(hash)s"
    else:
        # The partition by its own name; the number was made by the database.
        distance = "e.embedding <=> %(vector)s"
        join = f"LEFT JOIN embeddings_{int(collection_id)} e ON e.memory_id = memories.id"
        only = ""
    return _NEAREST.format(distance=distance, join=join, living=living, only=only, limit=limit)


def store(
    connection: Connection,
    library: Library,
    memory: Memory | None,
    terms: list[str],
    vector: Vectors | None,
    decision: Mapping[str, Any],
    *,
    created_at: datetime | None = None,
) -> tuple[int, Memory | None]:
    """Insert the decision and, where given, the memory with its keyword `terms` and its vector, in
    one round trip. Returns the decision's number and the memory with its times; `decision` has the
    columns of its row but for number, time and memory. `created_at`: None is now. Raises
    EmbedderChanged where the library was given another embedder since it was read,
    psycopg.errors.UniqueViolation for a living duplicate."""
    values = {f"d_{k}": Jsonb(decision[k]) if k in _JSON else decision.get(k) for k in _DECISION}
    if memory is not None:
        values |= {f"m_{name}": getattr(memory, name) for name in _MEMORY}
        values |= {
            "d_memory_id": memory.id,
            "m_tags": list(memory.tags),
            "m_attributes": Jsonb(dict(memory.attributes)),
            "created_at": created_at,
            "terms": terms,
            "vector": vector,
            "collection": library.collection_id,
        }
    sql = _store(memory is not None, vector is not None)
    with driven(connection) as driver:
        row = driver.execute(sql, values, binary=True).fetchone()
    assert row is not None
    number, vectors, made_at, updated_at = row
    if memory is None:
        return number, None
    if vector is not None and not vectors:
        raise EmbedderChanged(hint="Try again.")
    return number, replace(memory, created_at=made_at, updated_at=updated_at)


@lru_cache(maxsize=4)
def _store(memory: bool, vector: bool) -> str:
    # Only names of columns are put into the text; every value is a parameter.
    noted = (
        f"INSERT INTO decisions ({', '.join(_DECISION)}) "  # noqa: S608
        f"VALUES ({', '.join(_place('d', name) for name in _DECISION)}) RETURNING id"
    )
    if not memory:
        return f"WITH noted AS ({noted}) SELECT id, 0, NULL, NULL FROM noted"  # noqa: S608
    stored = "SELECT NULL WHERE false"
    if vector:
        # The library's row is held: until the transaction ends no other embedder takes it over.
        stored = """
            INSERT INTO embeddings (collection_id, memory_id, content_hash, embedding)
            SELECT collection_id, %(m_id)s::uuid, %(m_content_hash)s, %(vector)s
            FROM (SELECT collection_id FROM libraries WHERE id = %(m_library_id)s::uuid FOR SHARE)
            held WHERE collection_id = %(collection)s RETURNING 1"""
    return f"""
        WITH made AS (
            INSERT INTO memories ({", ".join(_MEMORY)}, keywords, created_at)
            VALUES ({", ".join(_place("m", name) for name in _MEMORY)},
                array_to_tsvector(%(terms)s::text[]), coalesce(%(created_at)s, now()))
            RETURNING created_at, updated_at
        ), stored AS ({stored}), noted AS ({noted})
        SELECT noted.id, (SELECT count(*) FROM stored), made.created_at, made.updated_at
        FROM made, noted"""  # noqa: S608


def _place(table: str, name: str) -> str:
    return f"%({table}_{name})s{'::uuid' if name in _UUIDS else ''}"
