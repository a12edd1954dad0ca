"""Many drafts at once through the same gate: what `add` does for one, without a round trip per row.

Embedding goes in batches before the transaction. Inside it: the living memories of each scope are
read once, similarities are matrix products, and drafts are judged in order, so that a later one
meets the earlier ones of its batch; then rows, vectors and decisions are written in bulk.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, func, insert, select, update

from memcore.database import bulk, queries, records
from memcore.database.rate import rate_of
from memcore.database.tables import DecisionRow, EmbeddingRow, MemoryRow
from memcore.embeddings import Vectors
from memcore.errors import InvalidInput, MemcoreError
from memcore.models import (
    Actor,
    Draft,
    Facts,
    Finding,
    Library,
    Memory,
    Neighbour,
    Scope,
    Status,
    Subject,
    Verdict,
)
from memcore.plain import plain
from memcore.rules import duplicates, gate
from memcore.services.libraries import LibraryService
from memcore.services.memories.adding import expiry_of, scope_id_of
from memcore.services.memories.gathering import (
    NEIGHBOURS,
    lock_scope,
    may_replace,
)
from memcore.services.memories.images import IMPORT, record
from memcore.services.memories.screening import screened
from memcore.services.runtime import Runtime
from memcore.settings import LibrarySettings
from memcore.text import content_hash
from memcore.vectors import checked

_EMBED_AT_ONCE = 256
_BLOCK = 512
"""Drafts whose similarities are held at once."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one of many drafts."""

    verdict: Verdict | None
    """None: it could not be judged; `refused` says why."""
    memory: Memory | None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A draft that can be judged."""

    number: int
    draft: Draft
    """Screened: without secrets."""
    place: str
    found: tuple[Finding, ...]


class Importing:
    """Part of MemoryService: many drafts at once."""

    _runtime: Runtime
    _libraries: LibraryService
    _open: Callable[[Subject], tuple[Library, LibrarySettings]]
    _may_create: Callable[[Connection, Actor, Draft, Subject], None]

    def add_many(
        self,
        drafts: Sequence[Draft],
        *,
        subject: Subject,
        actor: Actor | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
        batch_id: str | None = None,
    ) -> list[Judged]:
        """Judge and store `drafts` in order, as `add` would one by one; all in one transaction, so
        trouble stores nothing. A draft that cannot be used is refused alone, with its reason.
        `progress` is told how many are embedded. `batch_id`: keep it in history as one act of that
        id, which `undo` takes back. Raises LibraryDisabled, AgentMemoryOff,
        PermissionDenied, EndpointError, DatabaseError."""
        library, settings = self._open(subject)
        actor = actor or Actor(subject.user_id)
        out: list[Judged] = [Judged(None, None)] * len(drafts)
        ready: list[_Ready] = []
        for number, draft in enumerate(drafts):
            try:
                screen = screened(draft)
                draft = screen.draft
                place = scope_id_of(draft, subject)
                if not draft.content:
                    raise InvalidInput("There is no text.")
            except MemcoreError as error:
                out[number] = Judged(None, None, str(error))
                continue
            ready.append(_Ready(number, draft, place, screen.found))
        vectors = self._embedded_many(
            library, [r.draft.content[: settings.gate.max_length] for r in ready], progress
        )
        with self._runtime.engine.begin() as connection:
            for scope in dict.fromkeys(r.draft.scope for r in ready):
                self._may_create(connection, actor, Draft("", scope=scope), subject)
            places = sorted({(r.draft.scope, r.place) for r in ready})
            for scope, place in places:
                lock_scope(connection, library.id, scope, place)
            rate = rate_of(connection, subject, settings.gate.max_extractions)
            batch = _Batch(library, settings, subject, actor, batch_id)
            floor = gate.near_floor(settings.gate.duplicate_threshold)
            for here in places:
                mine = [i for i, r in enumerate(ready) if (r.draft.scope, r.place) == here]
                pool = _Pool(connection, library, settings, subject, actor, *here, vectors[mine])
                texts = [ready[i].draft.content for i in mine]
                for at, neighbours in enumerate(pool.neighbours(texts)):
                    item = ready[mine[at]]
                    facts = Facts(
                        text=item.draft.content,
                        confidence=item.draft.confidence,
                        neighbours=duplicates.annotate(item.draft.content, neighbours, floor),
                        extractions_in_window=rate.used,
                        rate_exempt=item.draft.source != "extraction",
                        sensitive=item.found,
                        next_slot=rate.next_slot,
                    )
                    verdict = gate.judge(item.draft, facts, settings.gate)
                    memory = batch.take(item, facts, verdict, vectors[mine[at]])
                    if memory is not None:
                        pool.admit(at, memory, batch.superseded.get(memory.id))
                    out[item.number] = Judged(verdict, memory)
            batch.write(connection)
        return out

    def _embedded_many(
        self, library: Library, texts: Sequence[str], progress: Callable[[int, int], None]
    ) -> Vectors:
        embedder = self._runtime.embedder_for(library)
        parts = [np.zeros((0, library.dimensions), dtype=np.float32)]
        for start in range(0, len(texts), _EMBED_AT_ONCE):
            some = texts[start : start + _EMBED_AT_ONCE]
            parts.append(checked(embedder.embed_documents(some), library.dimensions))
            progress(start + len(some), len(texts))
        return np.concatenate(parts)


class _Pool:
    """The living memories of one scope, then the batch's own drafts as they are accepted."""

    def __init__(
        self,
        connection: Connection,
        library: Library,
        settings: LibrarySettings,
        subject: Subject,
        actor: Actor,
        scope: Scope,
        place: str,
        drafts: Vectors,
    ) -> None:
        m = MemoryRow
        share = settings.share_between_agents
        rows = connection.execute(
            select(
                m.id,
                m.content,
                m.content_hash,
                m.memory_type,
                m.user_id,
                m.created_by,
                EmbeddingRow.embedding,
            )
            .outerjoin(
                EmbeddingRow,
                and_(
                    EmbeddingRow.collection_id == library.collection_id,
                    EmbeddingRow.memory_id == m.id,
                ),
            )
            .where(queries.living_in_scope(library.id, scope, place, subject, share=share))
            .order_by(m.id)
        ).all()
        self._stored = len(rows)
        matrix = np.zeros((len(rows) + len(drafts), library.dimensions), dtype=np.float32)
        for n, row in enumerate(rows):
            if row.embedding is not None:
                matrix[n] = row.embedding.to_numpy()
        matrix[len(rows) :] = drafts
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        self._unit = matrix / np.where(norms > 0, norms, 1)
        may = may_replace(queries.roles_of(connection, actor.user_id), scope, subject, actor)
        self._known = [(r.id, r.content, r.memory_type, may(r.user_id, r.created_by)) for r in rows]
        self._known += [("", "", "", True)] * len(drafts)
        self._place_of = {r.id: n for n, r in enumerate(rows)}
        self._by_hash = {r.content_hash: n for n, r in enumerate(rows)}
        self._alive = np.zeros(len(matrix), dtype=bool)
        self._alive[: len(rows)] = True

    def neighbours(self, texts: Sequence[str]) -> Iterator[tuple[Neighbour, ...]]:
        """For each draft in turn, what is near it at that moment: exact matches, then nearest."""
        for start in range(0, len(texts), _BLOCK):
            own = self._unit[self._stored + start : self._stored + start + _BLOCK]
            similar = own @ self._unit.T
            for n, row in enumerate(similar):
                row = np.where(self._alive, row, -2.0)
                few = min(NEIGHBOURS, len(row))
                near = [int(i) for i in np.argpartition(-row, few - 1)[:few] if row[i] > -2]
                best = sorted(near, key=lambda i: -row[i])
                exact = self._by_hash.get(content_hash(texts[start + n]))
                if exact is not None and self._alive[exact]:
                    best = [exact, *(i for i in best if i != exact)][:NEIGHBOURS]
                yield tuple(self._neighbour(i, float(row[i]), i == exact) for i in best)

    def _neighbour(self, at: int, similarity: float, exact: bool) -> Neighbour:
        identity, content, memory_type, replaceable = self._known[at]
        return Neighbour(
            memory_id=identity,
            content=content,
            similarity=min(1.0, max(0.0, similarity)),
            exact=exact,
            memory_type=memory_type,
            replaceable=replaceable,
        )

    def admit(self, at: int, memory: Memory, replaced: str | None) -> None:
        """Draft `at` became `memory`, in place of `replaced`."""
        if replaced is not None:
            self._alive[self._place_of[replaced]] = False
        here = self._stored + at
        self._known[here] = (memory.id, memory.content, memory.memory_type, True)
        self._place_of[memory.id] = here
        self._by_hash[memory.content_hash] = here
        self._alive[here] = True


class _Batch:
    """What is to be written, collected while drafts are judged."""

    def __init__(
        self,
        library: Library,
        settings: LibrarySettings,
        subject: Subject,
        actor: Actor,
        batch_id: str | None,
    ) -> None:
        self._library = library
        self._settings = settings
        self._recorded = plain(settings.gate)
        self._subject = subject
        self._actor = actor
        self._batch_id = batch_id
        self._now = datetime.now(UTC)
        self._memories: dict[str, Memory] = {}
        self._vectors: list[Vectors] = []
        self._decisions: list[dict[str, object]] = []
        self.superseded: dict[str, str] = {}
        """New memory's id → the older one it replaces."""

    def take(self, item: _Ready, facts: Facts, verdict: Verdict, vector: Vectors) -> Memory | None:
        """Note the decision and, where accepted, the memory."""
        memory = self._memory(item) if verdict.accepted else None
        if memory is not None:
            self._memories[memory.id] = memory
            self._vectors.append(vector)
            if verdict.outcome in ("update", "conflict") and verdict.matched_id:
                self.superseded[memory.id] = verdict.matched_id
        subject = self._subject
        self._decisions.append(
            {
                "library_id": self._library.id,
                "agent_id": subject.agent_id,
                "user_id": subject.user_id,
                "project_id": subject.project_id,
                "conversation_id": subject.session_id,
                "source": item.draft.source,
                "draft": plain(item.draft),
                "facts": records.of_facts(facts),
                "settings": self._recorded,
                "checks": [plain(check) for check in verdict.checks],
                "accepted": verdict.accepted,
                "outcome": verdict.outcome,
                "blocked_by": verdict.blocked_by,
                "memory_id": memory.id if memory else None,
                "matched_id": verdict.matched_id,
            }
        )
        return memory

    def _memory(self, item: _Ready) -> Memory:
        identity = str(uuid.uuid4())
        draft, subject = item.draft, self._subject
        return Memory(
            id=identity,
            vector_id=identity,
            content=item.draft.content,
            title=draft.title,
            tags=draft.tags,
            memory_type=draft.memory_type,
            scope=draft.scope,
            scope_id=item.place,
            confidence=draft.confidence,
            relevance=0.8,
            visibility=draft.visibility,
            status=Status.ACTIVE,
            library_id=self._library.id,
            user_id=subject.user_id,
            created_by=self._actor.user_id,
            source=draft.source,
            source_id=draft.source_id,
            source_message_id=draft.source_message_id,
            content_hash=content_hash(item.draft.content),
            created_at=draft.created_at or self._now,
            updated_at=self._now,
            agent_id=subject.agent_id,
            shared=draft.shared,
            project_id=subject.project_id,
            conversation_id=subject.session_id,
            category=draft.category,
            expires_at=expiry_of(draft, self._settings),
            attributes=draft.attributes,
        )

    def write(self, connection: Connection) -> None:
        """Everything collected, in bulk, within the caller's transaction."""
        for new, old in self.superseded.items():
            if old in self._memories:
                self._memories[old] = replace(
                    self._memories[old], status=Status.SUPERSEDED, superseded_by=new
                )
        stored = {old: new for new, old in self.superseded.items() if old not in self._memories}
        if stored:
            # Before the insert: the new row may share the old one's place in the unique index.
            connection.execute(
                update(MemoryRow)
                .where(MemoryRow.id.in_(list(stored)))
                .values(status=Status.SUPERSEDED, updated_at=func.now())
            )
        memories = list(self._memories.values())
        bulk.insert_memories(connection, memories)
        if memories and self._library.collection_id is not None:
            queries.hold_collection(connection, self._library.id, self._library.collection_id)
            bulk.copy_vectors(
                connection, self._library.collection_id, memories, np.array(self._vectors)
            )
        if stored:
            bulk.supersede(connection, stored)
            self._note(
                connection, "supersede",
                [
                    (old, self._library.id, {"status": Status.ACTIVE, "superseded_by": None},
                     {"status": Status.SUPERSEDED, "superseded_by": new})
                    for old, new in stored.items()
                ],
            )  # fmt: skip
        if self._batch_id is not None:
            self._note(
                connection, IMPORT,
                [
                    (m.id, self._library.id, {}, {"status": m.status, "version": m.version})
                    for m in memories
                ],
            )  # fmt: skip
        if self._decisions:
            connection.execute(insert(DecisionRow), self._decisions)

    def _note(
        self, connection: Connection, action: str, lines: Sequence[tuple[str, str, Any, Any]]
    ) -> None:
        batch = self._batch_id or str(uuid.uuid4())
        record(connection, lines, actor=self._actor, action=action, batch=batch)
