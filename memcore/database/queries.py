"""The SQL that more than one service needs; above all the one visibility-and-status predicate.

`visible` says what an actor may see, `recallable` what a recall for a subject may return. Search,
list, counts, profile, map, export, edit, bulk and import all go through them, inside SQL and
before any limit. Membership is looked up in the same statement, so a role that was taken away a
moment ago no longer opens anything.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, false, func, or_, select, text, true
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import OperationalError

from memcore.database.tables import (
    CollectionRow,
    MemoryRow,
    ProjectMemberRow,
    ProjectRow,
    UserRow,
)
from memcore.errors import EmbedderChanged
from memcore.models import Actor, Memory, Role, Scope, Status, Subject, Visibility
from memcore.rules import lexical

# TOAST moves a row's vector out of line past about 8 kB; up to here it can stay in the row, which
# makes exact scans 2.7 times faster.
_PLAIN_STORAGE_LIMIT = 1900


MEMORY_COLUMNS = tuple(
    column
    for column in MemoryRow.__table__.columns
    if column.name not in ("keywords", "private_to")
)


def visible(actor: Actor) -> ColumnElement[bool]:
    """Memories `actor` may see: their own; a project's public ones; a project's members' ones
    where they are a member. An operator sees all."""
    if actor.operator:
        return true()
    if not actor.user_id:
        return false()
    mine = select(ProjectMemberRow.project_id).where(ProjectMemberRow.user_id == actor.user_id)
    return or_(
        MemoryRow.user_id == actor.user_id,
        and_(
            MemoryRow.scope == Scope.PROJECT,
            or_(
                MemoryRow.visibility == Visibility.PUBLIC,
                and_(
                    MemoryRow.visibility == Visibility.MEMBERS,
                    MemoryRow.project_id.in_(mine),
                ),
            ),
        ),
    )


def is_uuid(value: str) -> bool:
    """Whether `value` may stand where a memory's, library's or agent's id does."""
    try:
        uuid.UUID(value)
    except ValueError:
        return False
    return True


def may_see(connection: Connection, actor: Actor, memory_id: str) -> bool:
    """Whether there is such a memory and `actor` may see it."""
    if not is_uuid(memory_id):
        return False
    found = select(MemoryRow.id).where(MemoryRow.id == memory_id, visible(actor))
    return connection.scalar(found) is not None


def in_scope(subject: Subject) -> ColumnElement[bool]:
    """Memories of the subject's session, project and user scopes, whatever their status."""
    scopes = [
        and_(
            MemoryRow.scope == Scope.USER,
            MemoryRow.scope_id == subject.user_id,
        )
    ]
    if subject.project_id:
        scopes.append(
            and_(MemoryRow.scope == Scope.PROJECT, MemoryRow.scope_id == subject.project_id)
        )
    if subject.session_id:
        scopes.append(
            and_(
                MemoryRow.scope == Scope.SESSION,
                MemoryRow.scope_id == subject.session_id,
                MemoryRow.user_id == subject.user_id,
            )
        )
    return and_(MemoryRow.library_id == subject.library_id, or_(*scopes))


def scopes_of(subject: Subject) -> tuple[tuple[Scope, str], ...]:
    """The scopes a recall for `subject` reads, as a vector store filters by them."""
    named = (
        (Scope.USER, subject.user_id),
        (Scope.PROJECT, subject.project_id),
        (Scope.SESSION, subject.session_id),
    )
    return tuple((scope, id) for scope, id in named if id)


def of_agent(subject: Subject, *, share_between_agents: bool) -> ColumnElement[bool]:
    """Memories the subject's agent may use: its own, those a person added, those marked shared;
    all where the library shares or no agent asks."""
    if subject.agent_id is None or share_between_agents:
        return true()
    return or_(
        MemoryRow.agent_id == subject.agent_id, MemoryRow.agent_id.is_(None), MemoryRow.shared
    )


def unexpired() -> ColumnElement[bool]:
    return or_(MemoryRow.expires_at.is_(None), MemoryRow.expires_at > func.now())


def recallable(
    subject: Subject, actor: Actor, *, share_between_agents: bool
) -> ColumnElement[bool]:
    """What a recall for `subject`, asked by `actor`, may return: active, not expired, in one of
    the subject's scopes, of its agent, and visible both to the actor and to the subject's user."""
    conditions = [
        in_scope(subject),
        MemoryRow.status == Status.ACTIVE,
        unexpired(),
        of_agent(subject, share_between_agents=share_between_agents),
        visible(Actor(subject.user_id)),
    ]
    if actor.user_id != subject.user_id:
        conditions.append(visible(actor))
    return and_(*conditions)


def living_in_scope(
    library_id: str, scope: Scope, place: str, subject: Subject, *, share: bool
) -> ColumnElement[bool]:
    """What a draft of `subject` is compared with: active memories of the scope that its user may
    see and its agent may use. Someone else's private memory is never among them."""
    return and_(
        MemoryRow.library_id == library_id,
        MemoryRow.scope == scope,
        MemoryRow.scope_id == place,
        MemoryRow.status == Status.ACTIVE,
        or_(MemoryRow.visibility != Visibility.OWNER_ONLY, MemoryRow.user_id == subject.user_id),
        of_agent(subject, share_between_agents=share),
    )


def mark(name: str) -> str:
    """Stands for a value while `placed` compiles a predicate; no id looks like it."""
    return f"\u27e8{name}\u27e9"


def placed(condition: ColumnElement[bool], names: Iterable[str]) -> str:
    """A predicate made with marks as SQL text for the driver, with %(name)s where they stood.
    Building a statement anew costs more than running it; this is done once per shape."""
    compiled = condition.compile(
        dialect=postgresql.psycopg.dialect(),  # type: ignore[no-untyped-call]
        compile_kwargs={"literal_binds": True},
    )
    text = str(compiled).replace("%", "%%")
    for name in names:
        text = text.replace(f"'{mark(name)}'", f"%({name})s")
    return text


def count_recallable(
    connection: Connection,
    subject: Subject,
    actor: Actor,
    ids: Sequence[str],
    *,
    share_between_agents: bool,
) -> int:
    """How many of the memories `ids` a recall for `subject`, asked by `actor`, may return."""
    return (
        connection.scalar(
            select(func.count()).where(
                recallable(subject, actor, share_between_agents=share_between_agents),
                MemoryRow.id.in_(ids),
            )
        )
        or 0
    )


def keywords(title: str, content: str) -> dict[str, Any]:
    """The value of `MemoryRow.keywords` for a memory of these texts."""
    return {"keywords": func.array_to_tsvector(keyword_terms(title, content))}


def keyword_terms(title: str, content: str) -> list[str]:
    """The terms a memory of these texts is found by."""
    return list(lexical.index_terms(f"{title}\n{content}" if title else content))


def memory_from(row: Row[Any] | Mapping[str, Any]) -> Memory:
    """A selected `MEMORY_COLUMNS` row as the value object."""
    values = dict(row._mapping if isinstance(row, Row) else row)
    values["tags"] = tuple(values["tags"])
    return Memory(**values)


def roles_of(connection: Connection, user_id: str) -> dict[str, Role]:
    """Project id → role of the user."""
    rows = connection.execute(
        select(ProjectMemberRow.project_id, ProjectMemberRow.role).where(
            ProjectMemberRow.user_id == user_id
        )
    )
    return {row.project_id: row.role for row in rows}


def introduce(connection: Connection, user_id: str, project_id: str | None) -> None:
    """Make sure the user exists, and the project, which its first user owns. Joins nobody to a
    project that exists already."""
    connection.execute(insert(UserRow).values(id=user_id).on_conflict_do_nothing())
    if project_id is None:
        return
    created = connection.execute(
        insert(ProjectRow).values(id=project_id).on_conflict_do_nothing().returning(ProjectRow.id)
    ).first()
    if created is not None:
        connection.execute(
            insert(ProjectMemberRow).values(user_id=user_id, project_id=project_id, role=Role.OWNER)
        )


def create_collection(
    connection: Connection, library_id: str, embedder: str, dimensions: int, state: str = "current"
) -> int:
    """A new collection and its partition of `embeddings`; returns its id."""
    collection_id = connection.execute(
        insert(CollectionRow)
        .values(library_id=library_id, embedder=embedder, dimensions=dimensions, state=state)
        .returning(CollectionRow.id)
    ).scalar_one()
    # DDL takes no parameters; both values are ints made here.
    name = f"embeddings_{int(collection_id)}"
    _define(
        connection,
        "LOCK TABLE embeddings IN ACCESS EXCLUSIVE MODE",
        f"CREATE TABLE {name} PARTITION OF embeddings "
        f"(CONSTRAINT ck_{name}_dimensions CHECK (vector_dims(embedding) = {int(dimensions)})) "
        f"FOR VALUES IN ({int(collection_id)})",
    )
    if dimensions <= _PLAIN_STORAGE_LIMIT:
        connection.execute(text(f"ALTER TABLE {name} ALTER COLUMN embedding SET STORAGE PLAIN"))
    return collection_id


def drop_collections(connection: Connection, ids: Sequence[int]) -> None:
    """Remove collections, their partitions and vectors."""
    for collection_id in ids:
        _define(
            connection,
            "LOCK TABLE embeddings, memories IN ACCESS EXCLUSIVE MODE",
            f"DROP TABLE IF EXISTS embeddings_{int(collection_id)}",
        )
        connection.execute(
            CollectionRow.__table__.delete().where(CollectionRow.id == collection_id)  # type: ignore[attr-defined]
        )


def _define(connection: Connection, *statements: str) -> None:
    """Run statements that need tables for themselves, within the caller's transaction. They give
    way: a lock that is not had in 0.4 s (below the server's own check for deadlocks, which would
    rather end a writer) is let go and asked for again. Raises OperationalError after a minute."""
    for attempt in range(120):
        try:
            with connection.begin_nested():
                connection.execute(text("SET LOCAL lock_timeout = '400ms'"))
                for statement in statements:
                    connection.execute(text(statement))
                connection.execute(text("SET LOCAL lock_timeout = DEFAULT"))
            return
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", "") not in ("55P03", "40P01") or attempt == 119:
                raise
            time.sleep(random.uniform(0.01, 0.2))


def queue_vectors(connection: Connection, library_id: str) -> int:
    """Note every vector of the library's collection for its other store; 0 where it has none."""
    return connection.execute(
        text(
            "INSERT INTO vector_changes (collection_id, memory_id) "
            "SELECT l.collection_id, e.memory_id FROM libraries l "
            "JOIN embeddings e ON e.collection_id = l.collection_id "
            "WHERE l.id = :id AND l.vector_store <> 'pgvector'"
        ),
        {"id": library_id},
    ).rowcount


def store_vector(
    connection: Connection,
    library_id: str,
    collection_id: int,
    memory_id: str,
    content_hash: str,
    vector: Any,
) -> None:
    """What `hold_collection` does, a vector's row and the memory's `vector_id`, in one round trip:
    it is half of what an add waits for. Raises EmbedderChanged."""
    driver = connection.connection.driver_connection
    assert driver is not None
    stored = driver.execute(
        """
        WITH held AS (SELECT collection_id FROM libraries WHERE id = %(library)s FOR SHARE),
        stored AS (
            INSERT INTO embeddings (collection_id, memory_id, content_hash, embedding)
            SELECT collection_id, %(memory)s::uuid, %(hash)s, %(vector)s FROM held
            WHERE collection_id = %(collection)s
            RETURNING memory_id
        )
        UPDATE memories SET vector_id = %(memory)s FROM stored WHERE id = stored.memory_id
        """,
        {
            "library": library_id,
            "collection": collection_id,
            "memory": memory_id,
            "hash": content_hash,
            "vector": vector,
        },
    )
    if not stored.rowcount:
        raise EmbedderChanged(hint="Try again.")


def hold_collection(connection: Connection, library_id: str, collection_id: int) -> None:
    """Until the transaction ends no other embedder takes the library over. Raises EmbedderChanged
    where one has already: a vector of the former must not land in a collection nobody reads."""
    current = connection.scalar(
        text("SELECT collection_id FROM libraries WHERE id = :id FOR SHARE"), {"id": library_id}
    )
    if current != collection_id:
        raise EmbedderChanged(hint="Try again.")
