"""Facts about a draft that only the database knows: what is near it, how often its session was
read, and the lock under which both stay true.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sqlalchemy import ColumnElement, Connection, and_, or_, select, text

from memcore.database import queries
from memcore.database.rate import advisory_lock
from memcore.database.tables import EmbeddingRow, MemoryRow
from memcore.embeddings import Vectors
from memcore.models import (
    Actor,
    Draft,
    Library,
    Neighbour,
    Role,
    Scope,
    Status,
    Subject,
    Visibility,
)
from memcore.text import content_hash

NEIGHBOURS = 8


def lock_scope(connection: Connection, library_id: str, scope: Scope, scope_id: str) -> None:
    """Let one writer at a time into a scope until the transaction ends; other scopes go on."""
    advisory_lock(connection, library_id, scope, scope_id)


def neighbours_of(
    connection: Connection,
    library: Library,
    draft: Draft,
    subject: Subject,
    actor: Actor,
    place: str,
    vector: Vectors | None,
    *,
    share: bool,
) -> tuple[Neighbour, ...]:
    """Living memories of the draft's scope that its user may see and its agent may use: exact
    matches, then nearest first. Someone else's private memory is never among them."""
    m = MemoryRow
    same = m.content_hash == content_hash(draft.content)
    here = living_in_scope(library, draft.scope, place, subject, share=share)
    columns = (m.id, m.content, m.memory_type, m.user_id, m.created_by, same.label("exact"))
    replaceable = may_replace(connection, draft.scope, subject, actor)
    if vector is None:
        rows = connection.execute(
            select(*columns, text("NULL AS distance")).where(here, same).limit(NEIGHBOURS)
        ).all()
    else:
        distance = EmbeddingRow.embedding.op("<=>")(vector).label("distance")
        rows = connection.execute(
            select(*columns, distance)
            .outerjoin(
                EmbeddingRow,
                and_(
                    EmbeddingRow.collection_id == library.collection_id,
                    EmbeddingRow.memory_id == m.id,
                ),
            )
            .where(here)
            .order_by(same.desc(), text("distance"), m.id)
            .limit(NEIGHBOURS)
        ).all()
    return tuple(
        Neighbour(
            memory_id=row.id,
            content=row.content,
            similarity=1.0 if row.distance is None else float(np.clip(1 - row.distance, 0, 1)),
            exact=row.exact,
            memory_type=row.memory_type,
            replaceable=replaceable(row.user_id, row.created_by),
        )
        for row in rows
        if row.exact or row.distance is not None
    )


def may_replace(
    connection: Connection, scope: Scope, subject: Subject, actor: Actor
) -> Callable[[str, str], bool]:
    """Whether `actor` may supersede a memory of the scope, by its user and creator: everybody their
    own, owners and admins of a project all of its."""
    if scope is not Scope.PROJECT or actor.operator:
        return lambda user_id, created_by: True
    role = queries.roles_of(connection, actor.user_id).get(subject.project_id or "")
    if role in (Role.OWNER, Role.ADMIN):
        return lambda user_id, created_by: True
    return lambda user_id, created_by: actor.user_id in (user_id, created_by)


def living_in_scope(
    library: Library, scope: Scope, place: str, subject: Subject, *, share: bool
) -> ColumnElement[bool]:
    """What a draft of `subject` is compared with: active memories of the scope that its user may
    see and its agent may use. Someone else's private memory is never among them."""
    m = MemoryRow
    return and_(
        m.library_id == library.id,
        m.scope == scope,
        m.scope_id == place,
        m.status == Status.ACTIVE,
        or_(m.visibility != Visibility.OWNER_ONLY, m.user_id == subject.user_id),
        queries.of_agent(subject, share_between_agents=share),
    )
