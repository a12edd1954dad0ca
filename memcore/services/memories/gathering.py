"""Facts about a draft that only the database knows: what is near it, how often its session was
read, and the lock under which both stay true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from memcore.database import queries, writing
from memcore.database.rate import advisory_lock
from memcore.embeddings import Vectors
from memcore.models import (
    Actor,
    Draft,
    Library,
    MemoryType,
    Neighbour,
    Role,
    Scope,
    Subject,
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
    roles: Mapping[str, Role] | None = None,
) -> tuple[Neighbour, ...]:
    """Living memories of the draft's scope that its user may see and its agent may use: exact
    matches, then nearest first. Someone else's private memory is never among them. `roles`: the
    actor's, where they are known already."""
    if roles is None and draft.scope is Scope.PROJECT:
        roles = queries.roles_of(connection, actor.user_id)
    replaceable = may_replace(roles or {}, draft.scope, subject, actor)
    rows = writing.nearest(
        connection, library, draft.scope, place, subject, share=share,
        content_hash=content_hash(draft.content), vector=vector, limit=NEIGHBOURS,
    )  # fmt: skip
    return tuple(
        Neighbour(
            memory_id=identity,
            content=content,
            # In this order NaN stays NaN: it is not known, and must not pass for 0.
            similarity=1.0 if distance is None else min(max(1 - distance, 0.0), 1.0),
            exact=exact,
            memory_type=MemoryType(kind),
            replaceable=replaceable(user_id, created_by),
        )
        for identity, content, kind, user_id, created_by, exact, distance in rows
        if exact or distance is not None
    )


def may_replace(
    roles: Mapping[str, Role], scope: Scope, subject: Subject, actor: Actor
) -> Callable[[str, str], bool]:
    """Whether `actor`, who has these `roles`, may supersede a memory of the scope, by its user and
    creator: everybody their own, owners and admins of a project all of its."""
    if scope is not Scope.PROJECT or actor.operator:
        return lambda user_id, created_by: True
    if roles.get(subject.project_id or "") in (Role.OWNER, Role.ADMIN):
        return lambda user_id, created_by: True
    return lambda user_id, created_by: actor.user_id in (user_id, created_by)
