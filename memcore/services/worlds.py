"""Putting in a finished world: people, projects, libraries, agents, conversations, memories and the
gate's decisions, with the ids and times they have, in one transaction. The demo is one; it can be
put in any number of times and taken out again.

This skips the gate and is for the operator's own data only; what people and agents say goes through
`MemoryService.add`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, Table, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from memcore.database import bulk, queries, recall_log, records
from memcore.database.tables import (
    AgentRow,
    ConversationRow,
    DecisionRow,
    HistoryRow,
    LibraryRow,
    MemoryRow,
    MessageRow,
    ProjectMemberRow,
    ProjectRow,
    RecallRow,
    UserRow,
)
from memcore.embeddings import Vectors
from memcore.errors import Conflict
from memcore.models import Draft, Facts, Memory, Role, SearchResult, Subject, Verdict
from memcore.plain import plain
from memcore.services.runtime import Runtime
from memcore.settings import GateSettings


@dataclass(frozen=True, slots=True)
class WorldLibrary:
    id: str
    name: str
    description: str
    overrides: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WorldAgent:
    id: str
    name: str
    library_id: str
    short_term_memory_size: int


@dataclass(frozen=True, slots=True)
class WorldMessage:
    id: str
    role: str
    content: str
    at: datetime


@dataclass(frozen=True, slots=True)
class WorldConversation:
    id: str
    library_id: str
    agent_id: str
    user_id: str
    project_id: str
    title: str
    messages: tuple[WorldMessage, ...]


@dataclass(frozen=True, slots=True)
class WorldDecision:
    """What the gate decided on a draft at that moment; secrets in `draft` and `facts` masked."""

    at: datetime
    library_id: str
    agent_id: str
    user_id: str
    project_id: str | None
    conversation_id: str | None
    draft: Draft
    facts: Facts
    settings: GateSettings
    verdict: Verdict
    memory_id: str | None


@dataclass(frozen=True, slots=True)
class WorldChange:
    """One line of a memory's history."""

    at: datetime
    actor: str
    action: str
    memory_id: str
    library_id: str
    batch_id: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class World:
    users: Mapping[str, str]
    """Id → name."""
    projects: Mapping[str, tuple[str, Mapping[str, Role]]]
    """Id → name, members."""
    libraries: tuple[WorldLibrary, ...]
    agents: tuple[WorldAgent, ...]
    conversations: tuple[WorldConversation, ...]
    memories: tuple[Memory, ...]
    decisions: tuple[WorldDecision, ...]
    changes: tuple[WorldChange, ...]


class WorldService:
    """Puts worlds in and takes them out. Operator only: no actor is asked for, and no page or
    tool hands one through."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def holds(self, library_ids: Sequence[str]) -> bool:
        """True where all of these libraries are there."""
        query = select(LibraryRow.id).where(
            LibraryRow.id.in_(list(library_ids)), LibraryRow.deleted_at.is_(None)
        )
        with self._runtime.engine.connect() as connection:
            return len(connection.execute(query).all()) == len(set(library_ids))

    def put(
        self, world: World, vectors: Mapping[str, Vectors], *, embedder: str, dimensions: int
    ) -> None:
        """Store all of it or nothing. `vectors`: memory id → (dimensions,) float32, made by the
        embedder of that name. Raises Conflict where a name is taken by something else."""
        with self._runtime.engine.begin() as connection:
            _names_free(connection, world)
            self._people(connection, world)
            collections = {
                library.id: self._library(connection, library, embedder, dimensions)
                for library in world.libraries
            }
            _many(connection, AgentRow, [
                {"id": a.id, "name": a.name, "library_id": a.library_id, "memory_enabled": True,
                 "short_term_memory_size": a.short_term_memory_size}
                for a in world.agents
            ])  # fmt: skip
            self._conversations(connection, world)
            self._memories(connection, world, vectors, collections)
            _many(connection, DecisionRow, [_decision(d) for d in world.decisions])
            _many(connection, HistoryRow, [
                {"at": c.at, "actor": c.actor, "action": c.action, "subject_id": c.memory_id,
                 "library_id": c.library_id, "batch_id": c.batch_id, "before": dict(c.before),
                 "after": dict(c.after)}
                for c in world.changes
            ])  # fmt: skip

    def remove(self, world: World) -> int:
        """Take out its libraries with all they hold, its agents and conversations, and those of
        its users and projects that nothing else refers to. Returns the number of memories gone."""
        libraries = [library.id for library in world.libraries]
        with self._runtime.engine.begin() as connection:
            gone = len(
                connection.execute(
                    select(MemoryRow.id).where(MemoryRow.library_id.in_(libraries))
                ).all()
            )
            collections = connection.execute(
                select(LibraryRow.collection_id).where(LibraryRow.id.in_(libraries))
            ).scalars()
            queries.drop_collections(connection, [c for c in collections if c is not None])
            for row, column, ids in (
                (HistoryRow, HistoryRow.library_id, libraries),
                (LibraryRow, LibraryRow.id, libraries),
                (AgentRow, AgentRow.id, [a.id for a in world.agents]),
                (ConversationRow, ConversationRow.id, [c.id for c in world.conversations]),
            ):
                connection.execute(delete(row).where(column.in_(ids)))
            used = select(MemoryRow.project_id).where(MemoryRow.project_id.is_not(None))
            connection.execute(
                delete(ProjectRow).where(
                    ProjectRow.id.in_(list(world.projects)), ProjectRow.id.not_in(used)
                )
            )
            connection.execute(
                delete(UserRow).where(
                    UserRow.id.in_(list(world.users)),
                    UserRow.id.not_in(select(MemoryRow.user_id)),
                    UserRow.id.not_in(select(ConversationRow.user_id)),
                    UserRow.id.not_in(select(ProjectMemberRow.user_id)),
                )
            )
        return gone

    def recalled(self, recalls: Sequence[tuple[Subject, SearchResult, datetime]]) -> None:
        """Keep recalls that happened at those moments, oldest first: in the log, and in the
        counters of their hits. Memories younger than a recall must not be in it."""
        with self._runtime.engine.begin() as connection:
            for subject, result, at in recalls:
                before = [h.memory for h in result.hits]
                recall_id = recall_log.used(connection, result, subject, logged=True)
                connection.execute(update(RecallRow).where(RecallRow.id == recall_id).values(at=at))
                for memory in before:
                    used = max(filter(None, (memory.last_used_at, at)))
                    connection.execute(
                        update(MemoryRow).where(MemoryRow.id == memory.id).values(last_used_at=used)
                    )

    # ---- parts

    def _people(self, connection: Connection, world: World) -> None:
        # Users and projects may be there already, from an earlier life of this world.
        for row, items in (
            (UserRow, world.users.items()),
            (ProjectRow, ((i, name) for i, (name, _) in world.projects.items())),
        ):
            values = [{"id": i, "name": name} for i, name in items]
            connection.execute(insert(row).values(values).on_conflict_do_nothing())
        members = [
            {"project_id": project, "user_id": user, "role": role}
            for project, (_, roles) in world.projects.items()
            for user, role in roles.items()
        ]
        connection.execute(insert(ProjectMemberRow).values(members).on_conflict_do_nothing())

    def _library(
        self, connection: Connection, library: WorldLibrary, embedder: str, dimensions: int
    ) -> int:
        connection.execute(
            insert(LibraryRow).values(
                id=library.id, name=library.name, description=library.description,
                embedder=embedder, dimensions=dimensions, overrides=dict(library.overrides),
                created_at=library.created_at,
            )
        )  # fmt: skip
        collection = queries.create_collection(connection, library.id, embedder, dimensions)
        connection.execute(
            update(LibraryRow).where(LibraryRow.id == library.id).values(collection_id=collection)
        )
        return collection

    def _conversations(self, connection: Connection, world: World) -> None:
        _many(connection, ConversationRow, [
            {"id": c.id, "library_id": c.library_id, "agent_id": c.agent_id, "user_id": c.user_id,
             "project_id": c.project_id, "title": c.title, "extracted_upto": len(c.messages),
             "created_at": c.messages[0].at, "updated_at": c.messages[-1].at}
            for c in world.conversations
        ])  # fmt: skip
        _many(connection, MessageRow, [
            {"id": m.id, "conversation_id": c.id, "seq": seq, "role": m.role,
             "content": m.content, "created_at": m.at}
            for c in world.conversations
            for seq, m in enumerate(c.messages, start=1)
        ])  # fmt: skip

    def _memories(
        self,
        connection: Connection,
        world: World,
        vectors: Mapping[str, Vectors],
        collections: Mapping[str, int],
    ) -> None:
        by_library: dict[str, list[Memory]] = {}
        for memory in world.memories:
            by_library.setdefault(memory.library_id, []).append(
                replace(memory, vector_id=memory.id)
            )
        bulk.insert_memories(connection, [m for group in by_library.values() for m in group])
        for library_id, group in by_library.items():
            matrix = np.array([vectors[m.id] for m in group], dtype=np.float32)
            bulk.copy_vectors(connection, collections[library_id], group, matrix)


def _many(connection: Connection, row: Any, values: list[dict[str, Any]]) -> None:
    if values:
        table: Table = row.__table__
        connection.execute(table.insert(), values)


def _decision(decision: WorldDecision) -> dict[str, Any]:
    d = decision
    return {
        "at": d.at,
        "library_id": d.library_id,
        "agent_id": d.agent_id,
        "user_id": d.user_id,
        "project_id": d.project_id,
        "conversation_id": d.conversation_id,
        "source": d.draft.source,
        "draft": plain(replace(d.draft, content=d.facts.text)),
        "facts": records.of_facts(d.facts),
        "settings": asdict(d.settings),
        "checks": [asdict(check) for check in d.verdict.checks],
        "accepted": d.verdict.accepted,
        "outcome": d.verdict.outcome,
        "blocked_by": d.verdict.blocked_by,
        "memory_id": d.memory_id,
        "matched_id": d.verdict.matched_id,
    }


def _names_free(connection: Connection, world: World) -> None:
    for row, kind, wanted in (
        (LibraryRow, "library", {x.name: x.id for x in world.libraries}),
        (AgentRow, "agent", {x.name: x.id for x in world.agents}),
    ):
        taken = connection.execute(select(row.id, row.name).where(row.name.in_(list(wanted))))
        for identity, name in taken:
            if identity != wanted[name]:
                raise Conflict(
                    f"There is a {kind} called {name!r} already, which is not the demo's.",
                    hint="Rename it, then load the demo again.",
                )
