"""The write path: text → facts → verdict → one transaction of decision, row and vector.

Embedding happens before the transaction. Inside it: an advisory lock on the scope, the facts that
other writers could change (neighbours, rate), the verdict, the writes, one commit. What the gate
rejects leaves a decision and nothing else; a secret is masked before it reaches the embedder.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, and_, func, insert, or_, select, text, update
from sqlalchemy.exc import IntegrityError

from memcore.database import queries, records
from memcore.database.tables import (
    DecisionRow,
    EmbeddingRow,
    ExtractionRunRow,
    HistoryRow,
    MemoryRow,
)
from memcore.embeddings import Vectors
from memcore.errors import (
    EndpointError,
    InvalidInput,
    InvalidVector,
    LibraryDisabled,
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
    Neighbour,
    Scope,
    Status,
    Subject,
    Verdict,
    Visibility,
)
from memcore.rules import duplicates, gate, permissions, sensitive
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime
from memcore.settings import LibrarySettings
from memcore.text import clean, clean_tree, content_hash

NEIGHBOURS = 5
_RATE_WINDOW = timedelta(hours=24)


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
    ) -> Added:
        """Judge `draft` and store it where accepted; the decision is stored either way. Raises
        InvalidInput (no session for a session memory, and the like), PermissionDenied,
        LibraryDisabled, NotFound, DatabaseError."""
        library, settings = self._open(subject)
        actor = actor or Actor(subject.user_id)
        draft = cleaned(draft)
        place = scope_id_of(draft, subject)
        found = sensitive.find(draft.content)
        masked = sensitive.mask(draft.content, found) if found else draft.content
        vector, failure = self._embedded(library, masked[: settings.gate.max_length])
        for attempt in (1, 2, 3):
            try:
                with self._runtime.engine.begin() as connection:
                    self._may_create(connection, actor, draft, subject)
                    lock_scope(connection, library.id, draft.scope, place)
                    facts = self._facts(
                        connection, library, settings, draft, subject, place, vector, found, failure
                    )
                    verdict = gate.judge(draft, facts, settings.gate)
                    return self._write(
                        connection, library, settings, draft, subject, actor, facts, verdict,
                        masked, vector, run_id,
                    )  # fmt: skip
            except IntegrityError:
                # Another writer's row became visible between check and insert; judge again.
                if attempt == 3:
                    raise
        raise AssertionError("unreachable")

    def validate_memory(
        self, draft: Draft, *, subject: Subject, actor: Actor | None = None
    ) -> tuple[Facts, Verdict]:
        """What the gate would say, with the facts it would say it on. Stores nothing."""
        library, settings = self._open(subject)
        actor = actor or Actor(subject.user_id)
        draft = cleaned(draft)
        place = scope_id_of(draft, subject)
        found = sensitive.find(draft.content)
        masked = sensitive.mask(draft.content, found) if found else draft.content
        vector, failure = self._embedded(library, masked[: settings.gate.max_length])
        with self._runtime.engine.connect() as connection:
            facts = self._facts(
                connection, library, settings, draft, subject, place, vector, found, failure
            )
        return facts, gate.judge(draft, facts, settings.gate)

    propose = validate_memory

    def check_duplicate(
        self, content: str, *, subject: Subject, scope: Scope = Scope.USER
    ) -> tuple[Neighbour, ...] | None:
        """Living memories of that scope nearest to `content`, nearest first; None where similarity
        cannot be had now."""
        facts, _ = self.validate_memory(Draft(content, scope=scope), subject=subject)
        return facts.neighbours

    def check_rate_limit(self, *, subject: Subject) -> tuple[int, int, datetime | None]:
        """Extraction runs of the session in the last 24 h, how many are left, and when the next
        slot opens (None while one is free)."""
        _, settings = self._open(subject)
        with self._runtime.engine.connect() as connection:
            used, next_slot = rate_of(connection, subject, settings.gate.max_extractions)
        return used, max(0, settings.gate.max_extractions - used), next_slot

    # ---- parts

    def _open(self, subject: Subject) -> tuple[Library, LibrarySettings]:
        library = self._libraries.get(subject.library_id)
        settings = self._runtime.settings_of(library).settings
        if not settings.enabled:
            raise LibraryDisabled(
                f"The library {library.name!r} is switched off: nothing is recalled or written.",
                hint="Switch it on on the Libraries page.",
            )
        return library, settings

    def _embedded(self, library: Library, content: str) -> tuple[Vectors | None, str]:
        """The vector, or None and why there is none: trouble that must not pass as 'no
        duplicate'."""
        if not content:
            return None, "there is no text to compare"
        try:
            return self._runtime.embedder_for(library).embed_documents([content])[0], ""
        except (EndpointError, InvalidVector) as error:
            return None, str(error)

    def _may_create(
        self, connection: Connection, actor: Actor, draft: Draft, subject: Subject
    ) -> None:
        queries.introduce(connection, subject.user_id, subject.project_id)
        roles = queries.roles_of(connection, actor.user_id)
        decision = permissions.may_create(
            replace(actor, roles=roles),
            scope=draft.scope,
            user_id=subject.user_id,
            project_id=subject.project_id,
        )
        if not decision.allowed:
            raise PermissionDenied(decision.reason)

    def _facts(
        self,
        connection: Connection,
        library: Library,
        settings: LibrarySettings,
        draft: Draft,
        subject: Subject,
        place: str,
        vector: Vectors | None,
        found: tuple[Any, ...],
        failure: str,
    ) -> Facts:
        used, next_slot = rate_of(connection, subject, settings.gate.max_extractions)
        neighbours = neighbours_of(
            connection, library, draft, subject, place, vector,
            share=settings.share_between_agents,
        )  # fmt: skip
        exact = any(n.exact for n in neighbours)
        return Facts(
            text=sensitive.mask(draft.content, found) if found else draft.content,
            confidence=draft.confidence,
            # An exact match is known without a vector; its absence is not.
            neighbours=(
                duplicates.annotate(draft.content, neighbours)
                if vector is not None or exact
                else None
            ),
            extractions_in_window=used,
            rate_exempt=draft.source != "extraction",
            sensitive=found,
            next_slot=next_slot,
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
        masked: str,
        vector: Vectors | None,
        run_id: str | None,
    ) -> Added:
        memory = None
        if verdict.accepted:
            memory = self._insert(
                connection, library, settings, draft, subject, actor, verdict, masked, vector
            )
        decision_id = connection.execute(
            insert(DecisionRow)
            .values(
                library_id=library.id,
                agent_id=subject.agent_id,
                user_id=subject.user_id,
                project_id=subject.project_id,
                conversation_id=subject.session_id,
                run_id=run_id,
                source=draft.source,
                draft=records.of_draft(draft, masked),
                facts=records.of_facts(facts),
                settings=asdict(settings.gate),
                checks=[asdict(check) for check in verdict.checks],
                accepted=verdict.accepted,
                outcome=verdict.outcome,
                blocked_by=verdict.blocked_by,
                memory_id=memory.id if memory else None,
                matched_id=verdict.matched_id,
            )
            .returning(DecisionRow.id)
        ).scalar_one()
        return Added(verdict, memory, decision_id, facts)

    def _insert(
        self,
        connection: Connection,
        library: Library,
        settings: LibrarySettings,
        draft: Draft,
        subject: Subject,
        actor: Actor,
        verdict: Verdict,
        masked: str,
        vector: Vectors | None,
    ) -> Memory:
        digest = content_hash(masked)
        supersedes = verdict.matched_id if verdict.outcome in ("update", "conflict") else None
        if supersedes:
            # Before the insert: the new row may share the old one's place in the unique index.
            connection.execute(
                update(MemoryRow)
                .where(MemoryRow.id == supersedes)
                .values(status=Status.SUPERSEDED, updated_at=func.now())
            )
        values: dict[str, Any] = {
            "library_id": library.id,
            "agent_id": subject.agent_id,
            "user_id": subject.user_id,
            "project_id": subject.project_id,
            "conversation_id": subject.session_id,
            "scope": draft.scope,
            "scope_id": scope_id_of(draft, subject),
            "memory_type": draft.memory_type,
            "title": draft.title,
            "content": masked,
            "tags": list(draft.tags),
            "category": draft.category,
            "source": draft.source,
            "source_id": draft.source_id,
            "source_message_id": draft.source_message_id,
            "confidence": draft.confidence,
            "visibility": draft.visibility,
            "shared": draft.shared,
            "created_by": actor.user_id,
            "content_hash": digest,
            **queries.keywords(draft.title, masked),
            "attributes": dict(draft.attributes),
            "expires_at": expiry_of(draft, settings),
        }
        if draft.created_at is not None:
            values["created_at"] = draft.created_at
        row = connection.execute(
            insert(MemoryRow).values(values).returning(*queries.MEMORY_COLUMNS)
        ).one()
        memory = queries.memory_from(row)
        if vector is not None:
            memory = put_vector(connection, library, memory, vector)
        if supersedes:
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
        return memory


def cleaned(draft: Draft) -> Draft:
    """`draft` with every text in it cleaned. Raises InvalidInput for a confidence that is not a
    number from 0 to 1."""
    confidence = draft.confidence
    try:
        confidence = float(confidence)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"Confidence is {confidence!r}, but takes a number from 0 to 1."
        ) from None
    if not 0 <= confidence <= 1:
        raise InvalidInput(f"Confidence is {confidence}, outside its range from 0 to 1.")
    attributes = clean_tree(dict(draft.attributes))
    assert isinstance(attributes, dict)
    return replace(
        draft,
        content=clean(draft.content),
        confidence=confidence,
        title=clean(draft.title),
        tags=tuple(dict.fromkeys(t for t in map(clean, draft.tags) if t)),
        category=clean(draft.category),
        attributes=attributes,
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


def lock_scope(connection: Connection, library_id: str, scope: Scope, scope_id: str) -> None:
    """Let one writer at a time into a scope until the transaction ends; other scopes go on."""
    digest = hashlib.blake2b(f"{library_id}/{scope}/{scope_id}".encode(), digest_size=8).digest()
    key = int.from_bytes(digest, "big", signed=True)
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})


def neighbours_of(
    connection: Connection,
    library: Library,
    draft: Draft,
    subject: Subject,
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
    columns = (m.id, m.content, m.memory_type, same.label("exact"))
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
        )
        for row in rows
        if row.exact or row.distance is not None
    )


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


def expiry_of(draft: Draft, settings: LibrarySettings) -> datetime | None:
    """When the memory of `draft` expires: as it says, else by the library's expiration_days."""
    if draft.expires_at is not None or not settings.expiration_days:
        return draft.expires_at
    return (draft.created_at or datetime.now(UTC)) + timedelta(days=settings.expiration_days)


def rate_of(connection: Connection, subject: Subject, limit: int) -> tuple[int, datetime | None]:
    """Extraction runs of the session in the last 24 hours by the database's clock, and when the
    next slot opens. At exactly 24 h a run no longer counts."""
    if subject.session_id is None:
        return 0, None
    rows = connection.execute(
        select(ExtractionRunRow.at)
        .where(
            ExtractionRunRow.library_id == subject.library_id,
            ExtractionRunRow.conversation_id == subject.session_id,
            ExtractionRunRow.counted,
            ExtractionRunRow.at > func.now() - _RATE_WINDOW,
        )
        .order_by(ExtractionRunRow.at.desc())
    ).scalars()
    at = list(rows)
    if len(at) < limit or not limit:
        return len(at), None
    return len(at), at[limit - 1] + _RATE_WINDOW


def put_vector(connection: Connection, library: Library, memory: Memory, vector: Vectors) -> Memory:
    """Store `vector` for `memory` in its library's collection, in the caller's transaction."""
    connection.execute(
        insert(EmbeddingRow).values(
            collection_id=library.collection_id,
            memory_id=memory.id,
            content_hash=memory.content_hash,
            embedding=vector,
        )
    )
    connection.execute(
        update(MemoryRow).where(MemoryRow.id == memory.id).values(vector_id=memory.id)
    )
    return replace(memory, vector_id=memory.id)
