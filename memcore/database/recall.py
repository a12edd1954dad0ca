"""The one statement of a recall: every scope, both channels, hits and candidates in one round trip.

It is an exact scan of the rows `queries.recallable` lets through (filter before limit, so nothing
is lost to an index that stops early), each with its cosine and with one bit per query term it has.
Candidates are the best by score, the nearest by vector and the best by keyword, so many of each.

The score is worked out in SQL only to choose candidates: whatever could become a hit under the
settings in force is among them, however far down either channel it stands. What is shown is
rules/ranking.py's; a test compares the two.

A statement is built once per shape and sent through the driver: building one with SQLAlchemy costs
more than running it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import psycopg
from sqlalchemy import Connection, select

from memcore.database import queries
from memcore.database.tables import MemoryRow
from memcore.embeddings import Vectors
from memcore.models import (
    Actor,
    Candidate,
    Memory,
    MemoryType,
    Scope,
    Status,
    Subject,
    Visibility,
    maker,
)
from memcore.rules.ranking import USES_AT_HALF
from memcore.settings import RankingSettings

_PLACE = re.compile(r"%\((\w+)\)s")
_TERM_STEPS = (0, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 40, 50, 60)
_VALUES = ("library", "user", "project", "session", "agent", "asker")
_FIELDS = tuple(f.name for f in dataclasses.fields(Memory))
_UUIDS = frozenset({"id", "library_id", "agent_id", "superseded_by"})
_TYPES = {str(m): m for m in MemoryType}
_SCOPES = {str(s): s for s in Scope}
_STATUSES = {str(s): s for s in Status}
_VISIBILITIES = {str(v): v for v in Visibility}


@dataclass(frozen=True, slots=True)
class Pool:
    """What a recall found, before ranking."""

    candidates: tuple[Candidate, ...]
    documents: int
    """Memories a recall for this subject may return; every one was looked at."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """All that the statement's text depends on."""

    collection_id: int | None
    given: bool
    project: bool
    session: bool
    agent: bool
    asker: Literal["self", "other", "operator"]
    terms: int
    recency: bool
    usage: bool
    per_type: bool
    also: bool


def fetch(
    driver: psycopg.Connection[Any],
    subject: Subject,
    actor: Actor,
    settings: RankingSettings,
    *,
    terms: Sequence[str],
    **how: Any,
) -> Pool:
    """Candidates for a query; see `statement` for what it takes."""
    sql, values = statement(subject, actor, settings, terms=terms, **how)
    with psycopg.RawCursor(driver) as cursor:
        rows = cursor.execute(sql, values, binary=True).fetchall()
    matched = _matched(terms)
    candidates = []
    for *fields, cosine, coverage, mask, by_vector, by_keyword, keywords, _ in rows:
        candidates.append(
            _candidate(
                _memory(fields),
                (cosine if cosine < 1.0 else 1.0) if cosine is not None and cosine > 0 else 0.0,
                coverage,
                by_vector if cosine is not None else None,
                by_keyword if mask else None,
                matched(mask) if mask else (),
                None,
                frozenset(keywords),
            )
        )
    return Pool(tuple(candidates), rows[0][-1] if rows else 0)


def statement(
    subject: Subject,
    actor: Actor,
    settings: RankingSettings,
    *,
    share_between_agents: bool,
    terms: Sequence[str],
    each: int,
    collection_id: int | None = None,
    vector: Vectors | None = None,
    cosines: Mapping[str, float] | None = None,
    also: Sequence[str] = (),
) -> tuple[bytes, list[Any]]:
    """SQL with its values, as psycopg's RawCursor takes them, that finds candidates: `each` of
    every kind (module docstring) and those of `also` (memory ids) that a recall may return.

    Vectors are compared in SQL when `vector` and its `collection_id` are given; `cosines` (memory
    id → cosine) come from another vector store; with neither, keywords alone decide.
    """
    shape = _Shape(
        collection_id=collection_id if vector is not None else None,
        given=cosines is not None,
        project=bool(subject.project_id),
        session=bool(subject.session_id),
        agent=subject.agent_id is not None and not share_between_agents,
        asker="operator" if actor.operator
        else "self" if actor.user_id == subject.user_id else "other",
        terms=next(step for step in _TERM_STEPS if step >= len(terms)),
        recency=settings.recency_weight > 0,
        usage=settings.usage_weight > 0,
        per_type=settings.dedupe == "one_per_type",
        also=bool(also),
    )  # fmt: skip
    values: dict[str, Any] = {
        "library": subject.library_id,
        "user": subject.user_id,
        "project": subject.project_id,
        "session": subject.session_id,
        "agent": subject.agent_id,
        "asker": actor.user_id,
        "each": each,
        "vector": vector,
        "ids": list(cosines or ()),
        "cosines": list((cosines or {}).values()),
        "also": list(also),
        "padding": shape.terms - len(terms),
        **_numbers(settings),
    }
    for i in range(shape.terms):
        values[f"t{i}"] = _lexeme(terms[i]) if i < len(terms) else None
    sql, names = _text(shape)
    return sql, [values[name] for name in names]


def newest(
    connection: Connection,
    subject: Subject,
    actor: Actor,
    *,
    share_between_agents: bool,
    limit: int,
) -> tuple[Memory, ...]:
    """The newest memories a recall for `subject` may return."""
    rows = connection.execute(
        select(*queries.MEMORY_COLUMNS)
        .where(queries.recallable(subject, actor, share_between_agents=share_between_agents))
        .order_by(MemoryRow.created_at.desc(), MemoryRow.id)
        .limit(limit)
    )
    return tuple(queries.memory_from(row) for row in rows)


def _numbers(settings: RankingSettings) -> dict[str, float]:
    weight = settings.dense_weight
    return {
        "of_dense": min(1.0, 2.0 * weight) if settings.lexical else 1.0,
        "of_keyword": min(1.0, 2.0 - 2.0 * weight) if settings.lexical else 0.0,
        "floor": float(settings.similarity_threshold or 0.0),
        "unrelated": float(settings.unrelated_similarity),
        "half_life": float(settings.recency_half_life_days),
        **{
            name: float(getattr(settings, name))
            for name in (
                "similarity_weight", "confidence_weight", "scope_weight", "keyword_weight",
                "recency_weight", "usage_weight", "session_priority", "project_priority",
                "user_priority",
            )
        },
    }  # fmt: skip


def _lexeme(term: str) -> str:
    """`term` as a quoted tsquery of one lexeme."""
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def _memory(fields: list[Any]) -> Memory:
    fields[_TAGS] = tuple(fields[_TAGS])
    if fields[_ATTRIBUTES] is None:
        fields[_ATTRIBUTES] = {}
    fields[_TYPE] = _TYPES[fields[_TYPE]]
    fields[_SCOPE] = _SCOPES[fields[_SCOPE]]
    fields[_STATUS] = _STATUSES[fields[_STATUS]]
    fields[_VISIBILITY] = _VISIBILITIES[fields[_VISIBILITY]]
    return _whole(*fields)


_TAGS, _TYPE, _SCOPE, _STATUS, _VISIBILITY, _ATTRIBUTES = (
    _FIELDS.index(name)
    for name in ("tags", "memory_type", "scope", "status", "visibility", "attributes")
)
_whole = maker(Memory)
_candidate = maker(Candidate)


def _matched(terms: Sequence[str]) -> Callable[[int], tuple[str, ...]]:
    """Which of `terms` a mask stands for."""
    bits = [(1 << i, term) for i, term in enumerate(terms)]

    @cache
    def of(mask: int) -> tuple[str, ...]:
        return tuple([term for bit, term in bits if mask & bit])

    return of


def _column(name: str) -> str:
    """How a field is read: ids as text, and no attributes as NULL, since parsing even an empty
    object took a third of what reading a row does."""
    if name == "attributes":
        return "nullif(memories.attributes, '{}')"
    return f"memories.{name}{'::text' if name in _UUIDS else ''}"


@lru_cache(maxsize=512)
def _text(shape: _Shape) -> tuple[bytes, tuple[str, ...]]:
    """The statement with $1, $2, … and the names of their values."""
    bits = " | ".join(
        f"CASE WHEN memories.keywords @@ %(t{i})s::tsquery THEN {1 << i}::bigint ELSE 0 END"
        for i in range(shape.terms)
    ) or "0::bigint"  # fmt: skip
    if shape.collection_id is not None:
        # A vector without length has no direction: its cosine is not a number, so it has none.
        cosine = "nullif(1 - (e.embedding <=> %(vector)s), 'NaN'::float8)"
        # The partition by its own name; the number was made by the database.
        join = (
            f"LEFT JOIN embeddings_{int(shape.collection_id)} e "
            "ON e.memory_id = memories.id AND e.content_hash = memories.content_hash"
        )
    elif shape.given:
        cosine = "e.cosine"
        join = (
            "LEFT JOIN unnest(%(ids)s::uuid[], %(cosines)s::float8[]) AS e(memory_id, cosine) "
            "ON e.memory_id = memories.id"
        )
    else:
        cosine, join = "NULL", ""
    with_vectors = shape.collection_id is not None or shape.given
    counts = ", ".join(f"count(*) FILTER (WHERE mask & {1 << i} <> 0)" for i in range(shape.terms))
    covered = " + ".join(
        f"CASE WHEN mask & {1 << i} <> 0 THEN w[{i + 1}] ELSE 0 END" for i in range(shape.terms)
    ) or "0"  # fmt: skip
    score = [
        "%(similarity_weight)s::float8 * similarity",
        "%(confidence_weight)s::float8 * confidence",
        "%(scope_weight)s::float8 * CASE scope WHEN 'session' THEN %(session_priority)s::float8 "
        "WHEN 'project' THEN %(project_priority)s::float8 ELSE %(user_priority)s::float8 END",
        "%(keyword_weight)s::float8 * coverage",
    ]
    if shape.recency:
        age = "greatest(0, extract(epoch FROM now() - created_at)::float8 / 86400)"
        score.append(
            f"%(recency_weight)s::float8 * power(0.5::float8, {age} / %(half_life)s::float8)"
        )
    if shape.usage:
        score.append(
            "%(usage_weight)s::float8 * access_count::float8 / "
            f"(access_count + {USES_AT_HALF})::float8"
        )
    # Keywords alone find what has a keyword; a vector finds everything, more or less near.
    matching = "" if with_vectors else "WHERE mask <> 0"
    picked = ["by_score <= %(each)s::int"]
    if with_vectors:
        picked.append("cosine IS NOT NULL AND by_vector <= %(each)s::int")
    if shape.terms:
        picked.append("mask <> 0 AND by_keyword <= %(each)s::int")
    best_of_type = ""
    if shape.per_type:
        picked.append("of_type = 1")
        best_of_type = (
            ", row_number() OVER "
            "(PARTITION BY memory_type ORDER BY near DESC, score DESC, id) AS of_type"
        )
    if shape.also:
        picked.append("p.id = ANY(%(also)s::uuid[])")
    columns = ", ".join(map(_column, _FIELDS))
    # OFFSET 0 keeps each step's expressions from being worked out anew in every sort.
    # Only numbers and column names made here are put into the text; every value is a parameter.
    text = f"""
WITH scope AS MATERIALIZED (
    SELECT memories.ctid AS row, memories.id, ({cosine})::float8 AS cosine, {bits} AS mask,
        memories.confidence, memories.scope, memories.memory_type, memories.created_at,
        memories.access_count
    FROM memories {join}
    WHERE {_predicate(shape)}
), stats AS MATERIALIZED (
    SELECT n, w, (SELECT coalesce(sum(x), 0) FROM unnest(w) x)
        - %(padding)s::int * ln(1 + (n + 0.5) / 0.5) AS asked
    FROM (
        SELECT n, ARRAY(SELECT ln(1 + (n - d + 0.5) / (d + 0.5))
            FROM unnest(df) WITH ORDINALITY u(d, i) ORDER BY i) AS w
        FROM (SELECT count(*)::float8 AS n, ARRAY[{counts}]::float8[] AS df FROM scope) counted
    ) weighed
), covered AS (
    SELECT scope.*, n, ({covered}) / greatest(1e-9, asked) AS coverage
    FROM scope, stats {matching} OFFSET 0
), fused AS (
    SELECT *, 1 - (1 - %(of_dense)s::float8 * greatest(0, least(1,
        (coalesce(cosine, 0) - %(unrelated)s::float8) / (1 - %(unrelated)s::float8))))
        * (1 - %(of_keyword)s::float8 * coverage) AS similarity
    FROM covered OFFSET 0
), scored AS (
    SELECT *, similarity >= %(floor)s::float8 AS near, {" + ".join(score)} AS score
    FROM fused OFFSET 0
), placed AS (
    SELECT *, row_number() OVER (ORDER BY near DESC, score DESC, id) AS by_score,
        row_number() OVER (ORDER BY cosine DESC NULLS LAST, id) AS by_vector,
        row_number() OVER (ORDER BY coverage DESC, id) AS by_keyword{best_of_type}
    FROM scored
)
SELECT {columns}, p.cosine, p.coverage, p.mask, p.by_vector, p.by_keyword,
    tsvector_to_array(memories.keywords), p.n::int
FROM placed p JOIN memories ON memories.ctid = p.row
WHERE {" OR ".join(f"({condition})" for condition in picked)}
"""  # noqa: S608
    names = tuple(dict.fromkeys(_PLACE.findall(text)))
    numbers = {name: f"${n}" for n, name in enumerate(names, 1)}
    text = _PLACE.sub(lambda place: numbers[place[1]], text)
    # One space for many: the text is sent until it is prepared.
    return " ".join(text.replace("%%", "%").split()).encode(), names


def _predicate(shape: _Shape) -> str:
    """`queries.recallable` for subjects of this shape, with placeholders where their ids go."""
    mark = {name: queries.mark(name) for name in _VALUES}
    subject = Subject(
        mark["library"],
        mark["user"],
        mark["project"] if shape.project else None,
        mark["session"] if shape.session else None,
        mark["agent"] if shape.agent else None,
    )
    who = {"self": mark["user"], "other": mark["asker"], "operator": "operator"}[shape.asker]
    actor = Actor(who, operator=shape.asker == "operator")
    condition = queries.recallable(subject, actor, share_between_agents=not shape.agent)
    return queries.placed(condition, _VALUES)
