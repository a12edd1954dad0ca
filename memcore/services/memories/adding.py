"""The write path: text → facts → verdict → one transaction of decision, row and vector.

Embedding happens before the transaction. Inside it: an advisory lock on the scope, the facts that
other writers could change (neighbours, rate), the verdict, the writes, one commit. What the gate
rejects leaves a decision and nothing else; a secret is masked before it reaches the embedder.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.errors import UniqueViolation
from sqlalchemy import Connection, func, insert, update
from sqlalchemy.exc import IntegrityError

from memcore.database import queries, records, writing
from memcore.database.rate import rate_of
from memcore.database.tables import HistoryRow, MemoryRow
from memcore.embeddings import Vectors
from memcore.errors import (
    EmbedderChanged,
    EndpointError,
    InvalidInput,
    InvalidVector,
    PermissionDenied,
)
from memcore.models import (
    Actor,
    Added,
    Draft,
    Facts,
    Library,
    Memory,
    MemoryType,
    Role,
    Scope,
    Status,
    Subject,
    Verdict,
)
from memcore.plain import plain
from memcore.rules import duplicates, gate, permissions
from memcore.services.libraries import LibraryService
from memcore.services.memories.gathering import neighbours_of
from memcore.services.memories.screening import Screened, screened
from memcore.services.runtime import Runtime
from memcore.settings import LibrarySettings
from memcore.text import content_hash


class Adding:
    """Part of MemoryService: what may become a memory."""

    _runtime: Runtime
    _libraries: LibraryService

    def add_explicit_memory(
        self,
        content: str,
        *,
        subject: Subject,
        actor: Actor | None = None,
        memory_type: MemoryType | str = MemoryType.FACT,
        scope: Scope | str = Scope.USER,
        confidence: float = 0.8,
        **fields: Any,
    ) -> Added:
        """Store what a person wrote by hand, if the gate lets it in. `fields` are Draft's others.
        The rate check is shown but does not block. Raises what `add` raises."""
        draft = Draft(
            content,
            memory_type=MemoryType(memory_type),
            scope=Scope(scope),
            confidence=confidence,
            **fields,
        )
        return self.add(draft, subject=subject, actor=actor)

    def add(
        self,
        draft: Draft,
        *,
        subject: Subject,
        actor: Actor | None = None,
        run_id: str | None = None,
        approved: bool = False,
        updates: str | None = None,
    ) -> Added:
        """Judge `draft` and store it where accepted; the decision is stored either way. `run_id`:
        the extraction it comes from, which does not count against itself. `approved`: a person
        looked at it, so rate and instruction-like wording do not hold it. `updates`: the memory it
        replaces, where a recall for the subject may return that one. Raises
        InvalidInput (no session for a session memory, and the like), PermissionDenied,
        LibraryDisabled, AgentMemoryOff, NotFound, DatabaseError."""
        library, settings = self._open(subject)
        actor = actor or Actor(subject.user_id)
        screen = screened(draft)
        draft = screen.draft
        place = scope_id_of(draft, subject)
        (made,) = self._embedded(library, [draft.content[: settings.gate.max_length]])
        for attempt in (1, 2, 3):
            try:
                with self._runtime.engine.begin() as connection:
                    roles = writing.enter(connection, subject, actor.user_id, draft.scope, place)
                    _may(replace(actor, roles=roles), draft, subject)
                    facts = self._facts(
                        connection, library, settings, screen, subject, actor, place, made,
                        run_id, approved, roles=roles,
                    )  # fmt: skip
                    verdict = gate.judge(draft, facts, settings.gate)
                    if updates and verdict.outcome == "stored" and queries.count_recallable(
                        connection, subject, actor, [updates],
                        share_between_agents=settings.share_between_agents,
                    ):  # fmt: skip
                        verdict = replace(verdict, outcome="update", matched_id=updates)
                    return self._write(
                        connection, library, settings, draft, subject, actor, facts, verdict,
                        None if isinstance(made, str) else made, run_id,
                    )  # fmt: skip
            except (IntegrityError, UniqueViolation):
                # Another writer's row became visible between check and insert; judge again.
                if attempt == 3:
                    raise
            except EmbedderChanged:
                if attempt == 3:
                    raise
                self._libraries.forget()
                library, settings = self._open(subject)
                (made,) = self._embedded(library, [draft.content[: settings.gate.max_length]])
        raise AssertionError("unreachable")

    # ---- parts

    def _open(self, subject: Subject) -> tuple[Library, LibrarySettings]:
        return self._libraries.opened(subject)

    def _embedded(self, library: Library, texts: Sequence[str]) -> list[Vectors | str]:
        """A vector per text, or why there is none: then 'no duplicate' is not known."""
        full = [t for t in texts if t]
        try:
            made = iter(self._runtime.embedder_for(library).embed_documents(full)) if full else None
        except (EndpointError, InvalidVector) as error:
            return [error.message if t else "there is no text" for t in texts]
        return [next(made) if made is not None and t else "there is no text" for t in texts]

    def _may_create(
        self, connection: Connection, actor: Actor, draft: Draft, subject: Subject
    ) -> None:
        queries.introduce(connection, subject.user_id, subject.project_id)
        roles = queries.roles_of(connection, actor.user_id)
        _may(replace(actor, roles=roles), draft, subject)

    def _facts(
        self,
        connection: Connection,
        library: Library,
        settings: LibrarySettings,
        screen: Screened,
        subject: Subject,
        actor: Actor,
        place: str,
        made: Vectors | str | None,
        run_id: str | None = None,
        approved: bool = False,
        alone: bool = False,
        roles: Mapping[str, Role] | None = None,
    ) -> Facts:
        """`made`: the vector, or why there is none. `roles`: the actor's, where an add asks; then
        only neighbours near enough to matter are compared."""
        draft = screen.draft
        vector = None if isinstance(made, str) else made
        rate = rate_of(connection, subject, settings.gate.max_extractions, without=run_id)
        neighbours = neighbours_of(
            connection, library, draft, subject, actor, place, vector,
            share=settings.share_between_agents, roles=roles,
        )  # fmt: skip
        floor = None if roles is None else gate.near_floor(settings.gate.duplicate_threshold)
        exact = any(n.exact for n in neighbours)
        return Facts(
            text=draft.content,
            confidence=draft.confidence,
            # An exact match is known without a vector; its absence is not.
            neighbours=(
                duplicates.annotate(draft.content, neighbours, floor)
                if vector is not None or exact or alone
                else None
            ),
            extractions_in_window=rate.used,
            rate_exempt=approved or draft.source != "extraction",
            sensitive=screen.secrets if approved else screen.found,
            next_slot=rate.next_slot,
            trouble=made if isinstance(made, str) else "",
        )

    def _write(
        self,
        connection: Connection,
        library: Library,
        settings: LibrarySettings,
        draft: Draft,
        subject: Subject,
        actor: Actor,
        facts: Facts,
        verdict: Verdict,
        vector: Vectors | None,
        run_id: str | None,
    ) -> Added:
        memory = None
        supersedes = None
        if verdict.accepted:
            memory = _memory_of(draft, library, settings, subject, actor, vector is not None)
            if verdict.outcome in ("update", "conflict"):
                supersedes = verdict.matched_id
        if supersedes:
            # Before the insert: the new row may share the old one's place in the unique index.
            connection.execute(
                update(MemoryRow)
                .where(MemoryRow.id == supersedes)
                .values(status=Status.SUPERSEDED, updated_at=func.now())
            )
        decision_id, memory = writing.store(
            connection,
            library,
            memory,
            queries.keyword_terms(draft.title, draft.content),
            vector,
            {
                "library_id": library.id,
                "agent_id": subject.agent_id,
                "user_id": subject.user_id,
                "project_id": subject.project_id,
                "conversation_id": subject.session_id,
                "run_id": run_id,
                "source": draft.source,
                "draft": plain(draft),
                "facts": records.of_facts(facts),
                "settings": plain(settings.gate),
                "checks": plain(verdict.checks),
                "accepted": verdict.accepted,
                "outcome": verdict.outcome,
                "blocked_by": verdict.blocked_by,
                "matched_id": verdict.matched_id,
            },
            created_at=draft.created_at,
        )
        if supersedes and memory is not None:
            connection.execute(
                update(MemoryRow).where(MemoryRow.id == supersedes).values(superseded_by=memory.id)
            )
            connection.execute(
                insert(HistoryRow).values(
                    actor=actor.user_id,
                    action="supersede",
                    subject_id=supersedes,
                    library_id=library.id,
                    batch_id=func.gen_random_uuid(),
                    before={"status": Status.ACTIVE, "superseded_by": None},
                    after={"status": Status.SUPERSEDED, "superseded_by": memory.id},
                )
            )
        return Added(verdict, memory, decision_id, facts)


def _may(actor: Actor, draft: Draft, subject: Subject) -> None:
    """Raises PermissionDenied unless `actor`, with their roles, may create `draft` there."""
    decision = permissions.may_create(
        actor, scope=draft.scope, user_id=subject.user_id, project_id=subject.project_id
    )
    if not decision.allowed:
        raise PermissionDenied(decision.reason)


def _memory_of(
    draft: Draft,
    library: Library,
    settings: LibrarySettings,
    subject: Subject,
    actor: Actor,
    has_vector: bool,
) -> Memory:
    """The memory `draft` becomes; the database sets its times."""
    identity = str(uuid.uuid4())
    now = datetime.now(UTC)
    return Memory(
        id=identity,
        vector_id=identity if has_vector else None,
        content=draft.content,
        title=draft.title,
        tags=tuple(draft.tags),
        memory_type=draft.memory_type,
        scope=draft.scope,
        scope_id=scope_id_of(draft, subject),
        confidence=draft.confidence,
        relevance=0.8,
        visibility=draft.visibility,
        status=Status.ACTIVE,
        library_id=library.id,
        user_id=subject.user_id,
        created_by=actor.user_id,
        source=draft.source,
        source_id=draft.source_id,
        source_message_id=draft.source_message_id,
        content_hash=content_hash(draft.content),
        created_at=draft.created_at or now,
        updated_at=now,
        agent_id=subject.agent_id,
        shared=draft.shared,
        project_id=subject.project_id,
        conversation_id=subject.session_id,
        category=draft.category,
        expires_at=expiry_of(draft, settings),
        attributes=dict(draft.attributes),
    )


def scope_id_of(draft: Draft, subject: Subject) -> str:
    """Whose scope the draft goes into. Raises InvalidInput where the subject does not say."""
    found = {
        Scope.USER: subject.user_id,
        Scope.PROJECT: subject.project_id,
        Scope.SESSION: subject.session_id,
    }[draft.scope]
    if not found:
        raise InvalidInput(
            f"A {draft.scope} memory needs a {draft.scope} id, and none was given.",
            hint=f"Name the {draft.scope}, or use another scope.",
        )
    return found


def expiry_of(draft: Draft, settings: LibrarySettings) -> datetime | None:
    """When the memory of `draft` expires: as it says, else by the library's expiration_days."""
    if draft.expires_at is not None or not settings.expiration_days:
        return draft.expires_at
    return (draft.created_at or datetime.now(UTC)) + timedelta(days=settings.expiration_days)


def put_vector(connection: Connection, library: Library, memory: Memory, vector: Vectors) -> Memory:
    """Store `vector` for `memory` in its library's collection, in the caller's transaction. Raises
    EmbedderChanged where the library was given another embedder since it was read."""
    queries.store_vector(
        connection, library.id, library.collection_id, memory.id, memory.content_hash, vector
    )
    return replace(memory, vector_id=memory.id)
