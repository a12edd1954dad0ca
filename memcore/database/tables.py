"""The schema, as typed SQLAlchemy models. `migrations/` builds it; a test compares the two.

Rows are the truth. Vectors live in `embeddings`, list-partitioned by collection: one partition
per embedder and library with a CHECK on its dimensions, so that libraries of different models
never meet and a scoped search is an exact scan of the few rows of one scope.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    DDL,
    REAL,
    BigInteger,
    CheckConstraint,
    Computed,
    Enum,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Text,
    UniqueConstraint,
    Uuid,
    event,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, TSVECTOR
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import UserDefinedType

from memcore import models


class RawVector(UserDefinedType[Any]):
    """A pgvector column of no fixed dimension. Binds numpy float32 arrays as the driver's binary
    format: SQLAlchemy's own pgvector type binds text, which costs three times the CPU."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "vector"


_COLUMN_TYPES: dict[Any, Any] = {
    str: Text,
    datetime: TIMESTAMP(timezone=True),
    dict[str, Any]: JSONB,
    list[Any]: JSONB,
    list[str]: ARRAY(Text),
    float: Float(53),
}
for _kind in (models.MemoryType, models.Scope, models.Status, models.Visibility, models.Role):
    _COLUMN_TYPES[_kind] = Enum(
        _kind,
        native_enum=False,
        create_constraint=True,
        length=20,
        values_callable=lambda kind: [member.value for member in kind],
        name=_kind.__name__.lower(),
    )


class Row(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = _COLUMN_TYPES


def _id() -> Mapped[str]:
    return mapped_column(
        Uuid(as_uuid=False), primary_key=True, server_default=text("gen_random_uuid()")
    )


def _now() -> Mapped[datetime]:
    return mapped_column(server_default=func.now())


def _ref(target: str, *, ondelete: str = "CASCADE", **kw: Any) -> Any:
    return mapped_column(ForeignKey(target, ondelete=ondelete), **kw)


class UserRow(Row):
    __tablename__ = "users"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(server_default="")
    created_at: Mapped[datetime] = _now()


class ProjectRow(Row):
    __tablename__ = "projects"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(server_default="")
    created_at: Mapped[datetime] = _now()


class ProjectMemberRow(Row):
    __tablename__ = "project_members"
    user_id: Mapped[str] = _ref("users.id", primary_key=True)
    project_id: Mapped[str] = _ref("projects.id", primary_key=True)
    role: Mapped[models.Role]


class EndpointRow(Row):
    """A model endpoint. `api_key` is encrypted; it never leaves the endpoints service in clear."""

    __tablename__ = "endpoints"
    id: Mapped[str] = _id()
    name: Mapped[str]
    kind: Mapped[str]
    owner_user_id: Mapped[str | None] = _ref("users.id")
    base_url: Mapped[str]
    model: Mapped[str]
    dimensions: Mapped[int | None]
    api_key: Mapped[bytes | None]
    options: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime] = _now()
    __table_args__ = (
        UniqueConstraint("owner_user_id", "name", postgresql_nulls_not_distinct=True),
    )


class VectorStoreRow(Row):
    """A configured vector store other than the default. `secret` is encrypted."""

    __tablename__ = "vector_stores"
    id: Mapped[str] = _id()
    name: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    config: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    secret: Mapped[bytes | None]
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime] = _now()


class LibraryRow(Row):
    __tablename__ = "libraries"
    id: Mapped[str] = _id()
    name: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str] = mapped_column(server_default="")
    embedder: Mapped[str]
    dimensions: Mapped[int]
    collection_id: Mapped[int | None] = mapped_column(BigInteger)
    """No foreign key: the two tables point at each other, and collections carry theirs."""
    vector_store: Mapped[str] = mapped_column(server_default="pgvector")
    overrides: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    deleted_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime] = _now()


class CollectionRow(Row):
    """The vectors one embedder made of one library. `state`: building, current, retired."""

    __tablename__ = "collections"
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    library_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="CASCADE"), index=True
    )
    name: Mapped[str] = mapped_column(server_default="memory")
    embedder: Mapped[str]
    dimensions: Mapped[int]
    state: Mapped[str] = mapped_column(server_default="current")
    created_at: Mapped[datetime] = _now()


class AgentRow(Row):
    __tablename__ = "agents"
    id: Mapped[str] = _id()
    name: Mapped[str] = mapped_column(unique=True)
    library_id: Mapped[str | None] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="SET NULL"), index=True
    )
    memory_enabled: Mapped[bool] = mapped_column(server_default=text("false"))
    extraction_enabled: Mapped[bool] = mapped_column(server_default=text("true"))
    short_term_memory_size: Mapped[int] = mapped_column(server_default=text("20"))
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime] = _now()


class ConversationRow(Row):
    """A session. `summary` covers the messages up to and including `summary_upto` (their seq)."""

    __tablename__ = "conversations"
    id: Mapped[str] = mapped_column(primary_key=True)
    library_id: Mapped[str | None] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="SET NULL"), index=True
    )
    agent_id: Mapped[str | None] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("agents.id", ondelete="SET NULL"), index=True
    )
    user_id: Mapped[str] = _ref("users.id", index=True)
    project_id: Mapped[str | None] = _ref("projects.id", ondelete="SET NULL")
    title: Mapped[str] = mapped_column(server_default="")
    summary: Mapped[str] = mapped_column(server_default="")
    summary_upto: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    extracted_upto: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime] = _now()


class MessageRow(Row):
    __tablename__ = "messages"
    id: Mapped[str] = _id()
    conversation_id: Mapped[str] = _ref("conversations.id")
    seq: Mapped[int] = mapped_column(BigInteger)
    role: Mapped[str]
    content: Mapped[str]
    name: Mapped[str | None]
    tool_calls: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    tool_call_id: Mapped[str | None]
    tokens: Mapped[int] = mapped_column(server_default=text("0"))
    injected: Mapped[bool] = mapped_column(server_default=text("false"))
    """True: memcore put it there; extraction never sees it."""
    attributes: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    created_at: Mapped[datetime] = _now()
    __table_args__ = (UniqueConstraint("conversation_id", "seq"),)


class MemoryRow(Row):
    __tablename__ = "memories"
    id: Mapped[str] = _id()
    library_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="CASCADE")
    )
    agent_id: Mapped[str | None] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("agents.id", ondelete="SET NULL"), index=True
    )
    user_id: Mapped[str] = _ref("users.id", index=True)
    project_id: Mapped[str | None] = _ref("projects.id", index=True)
    conversation_id: Mapped[str | None] = mapped_column(index=True)
    """The session. No foreign key: an agent's session may live in a framework of its own."""
    scope: Mapped[models.Scope]
    scope_id: Mapped[str]
    memory_type: Mapped[models.MemoryType]
    title: Mapped[str] = mapped_column(server_default="")
    content: Mapped[str]
    tags: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))
    category: Mapped[str] = mapped_column(server_default="")
    source: Mapped[str] = mapped_column(server_default="explicit")
    source_id: Mapped[str | None]
    source_message_id: Mapped[str | None] = mapped_column(index=True)
    confidence: Mapped[float] = mapped_column(server_default=text("0.8"))
    relevance: Mapped[float] = mapped_column(server_default=text("0.8"))
    visibility: Mapped[models.Visibility] = mapped_column(server_default="members")
    private_to: Mapped[str | None] = mapped_column(
        Computed("CASE WHEN visibility = 'owner_only' THEN user_id END", persisted=True)
    )
    shared: Mapped[bool] = mapped_column(server_default=text("false"))
    status: Mapped[models.Status] = mapped_column(server_default="active")
    superseded_by: Mapped[str | None] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("memories.id", ondelete="SET NULL"), index=True
    )
    created_by: Mapped[str]
    access_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    last_used_at: Mapped[datetime | None]
    content_hash: Mapped[str]
    vector_id: Mapped[str | None]
    keywords: Mapped[Any] = mapped_column(TSVECTOR, server_default="")
    """Terms for the lexical channel (rules/lexical.py), each once."""
    version: Mapped[int] = mapped_column(server_default=text("1"))
    attributes: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = _now()
    updated_at: Mapped[datetime] = _now()

    __table_args__ = (
        CheckConstraint("confidence >= 0 AND confidence <= 1", name="confidence_range"),
        CheckConstraint("relevance >= 0 AND relevance <= 1", name="relevance_range"),
        CheckConstraint("superseded_by <> id", name="not_by_itself"),
        # Exact duplicates: one living row per statement, scope, agent and, where it is private,
        # owner. Settles the race between two writers.
        Index(
            "uq_memories_living_content",
            "library_id",
            "scope",
            "scope_id",
            "content_hash",
            "agent_id",
            "private_to",
            unique=True,
            postgresql_nulls_not_distinct=True,
            postgresql_where=text("status = 'active'"),
        ),
        Index("ix_memories_scope", "library_id", "scope", "scope_id", "status"),
        Index("ix_memories_newest", "library_id", text("created_at DESC"), "id"),
        Index(
            "ix_memories_expiring", "expires_at", postgresql_where=text("expires_at IS NOT NULL")
        ),
    )


class EmbeddingRow(Row):
    """One vector. Partitions are made by `queries.create_collection`."""

    __tablename__ = "embeddings"
    collection_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    memory_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("memories.id", ondelete="CASCADE"), primary_key=True
    )
    content_hash: Mapped[str]
    """Of the text it was made from; another hash on the row means the vector is stale."""
    embedding: Mapped[Any] = mapped_column(RawVector)
    __table_args__ = (
        Index("ix_embeddings_memory_id", "memory_id"),
        {"postgresql_partition_by": "LIST (collection_id)"},
    )


class VectorChangeRow(Row):
    """A memory whose place in another store than pgvector may be out of date. Triggers write
    these in the transaction of the change itself, so that none is ever missed; `vectors/mirror.py`
    carries them over."""

    __tablename__ = "vector_changes"
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    collection_id: Mapped[int] = mapped_column(BigInteger)
    memory_id: Mapped[str] = mapped_column(Uuid(as_uuid=False))
    transaction_id: Mapped[int] = mapped_column(
        BigInteger, server_default=text("(pg_current_xact_id()::text::bigint)")
    )
    at: Mapped[datetime] = _now()
    __table_args__ = (Index("ix_vector_changes_collection", "collection_id", "id"),)


for _statement in (
    """
    CREATE FUNCTION note_vector_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_TABLE_NAME = 'memories' THEN
            INSERT INTO vector_changes (collection_id, memory_id)
            SELECT collection_id, OLD.id FROM libraries
            WHERE id = OLD.library_id AND vector_store <> 'pgvector';
        ELSIF TG_OP = 'DELETE' THEN
            INSERT INTO vector_changes (collection_id, memory_id)
            SELECT collection_id, OLD.memory_id FROM libraries
            WHERE collection_id = OLD.collection_id AND vector_store <> 'pgvector';
        ELSE
            INSERT INTO vector_changes (collection_id, memory_id)
            SELECT collection_id, NEW.memory_id FROM libraries
            WHERE collection_id = NEW.collection_id AND vector_store <> 'pgvector';
        END IF;
        RETURN NULL;
    END $$
    """,
    "CREATE TRIGGER note_vector_change AFTER INSERT OR UPDATE OR DELETE ON embeddings "
    "FOR EACH ROW EXECUTE FUNCTION note_vector_change()",
    "CREATE TRIGGER note_vector_move AFTER UPDATE ON memories FOR EACH ROW "
    "WHEN ((OLD.status, OLD.scope, OLD.scope_id) IS DISTINCT FROM "
    "(NEW.status, NEW.scope, NEW.scope_id)) EXECUTE FUNCTION note_vector_change()",
    "CREATE TRIGGER note_vector_end AFTER DELETE ON memories "
    "FOR EACH ROW EXECUTE FUNCTION note_vector_change()",
):
    event.listen(
        Row.metadata,
        "after_create",
        DDL(_statement),  # type: ignore[no-untyped-call]
    )
event.listen(
    Row.metadata,
    "after_drop",
    DDL("DROP FUNCTION IF EXISTS note_vector_change"),  # type: ignore[no-untyped-call]
)


class DecisionRow(Row):
    """One verdict of the gate with the facts and settings it was reached on, secrets masked."""

    __tablename__ = "decisions"
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    at: Mapped[datetime] = _now()
    library_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="CASCADE")
    )
    agent_id: Mapped[str | None] = mapped_column(Uuid(as_uuid=False))
    user_id: Mapped[str] = mapped_column(index=True)
    project_id: Mapped[str | None]
    conversation_id: Mapped[str | None]
    run_id: Mapped[str | None] = mapped_column(Uuid(as_uuid=False))
    source: Mapped[str]
    draft: Mapped[dict[str, Any]]
    facts: Mapped[dict[str, Any]]
    settings: Mapped[dict[str, Any]]
    checks: Mapped[list[Any]]
    accepted: Mapped[bool]
    outcome: Mapped[str]
    blocked_by: Mapped[str | None]
    memory_id: Mapped[str | None] = mapped_column(Uuid(as_uuid=False), index=True)
    matched_id: Mapped[str | None] = mapped_column(Uuid(as_uuid=False))
    __table_args__ = (Index("ix_decisions_latest", "library_id", text("id DESC")),)


class RecallRow(Row):
    """One logged recall with its facts, so that it can be replayed under other settings."""

    __tablename__ = "recalls"
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    at: Mapped[datetime] = _now()
    library_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="CASCADE")
    )
    agent_id: Mapped[str | None] = mapped_column(Uuid(as_uuid=False))
    user_id: Mapped[str] = mapped_column(index=True)
    project_id: Mapped[str | None]
    conversation_id: Mapped[str | None]
    query: Mapped[str]
    candidates: Mapped[list[Any]]
    settings: Mapped[dict[str, Any]]
    hits: Mapped[list[Any]]
    timings: Mapped[dict[str, Any]]
    __table_args__ = (Index("ix_recalls_latest", "library_id", text("id DESC")),)


class ExtractionRunRow(Row):
    """One extraction. The gate's rate check counts these per session."""

    __tablename__ = "extraction_runs"
    id: Mapped[str] = _id()
    at: Mapped[datetime] = _now()
    library_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="CASCADE")
    )
    agent_id: Mapped[str | None] = mapped_column(Uuid(as_uuid=False))
    user_id: Mapped[str]
    project_id: Mapped[str | None]
    conversation_id: Mapped[str | None]
    extractor: Mapped[str]
    model: Mapped[str] = mapped_column(server_default="")
    outcome: Mapped[str]
    report: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    """Counts, milliseconds, skipped items with reasons."""
    input: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    proposals: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    raw_reply: Mapped[str] = mapped_column(server_default="")
    counted: Mapped[bool] = mapped_column(server_default=text("true"))
    """False: a dry run, not counted by the rate check."""
    __table_args__ = (
        Index("ix_extraction_runs_rate", "library_id", "conversation_id", "at"),
        Index("ix_extraction_runs_latest", "library_id", text("at DESC")),
    )


class HistoryRow(Row):
    """What was done to a memory or a library, with the images undo needs. `batch_id` groups what
    one act did. Erasing a user empties the images and keeps the receipt."""

    __tablename__ = "history"
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    at: Mapped[datetime] = _now()
    actor: Mapped[str]
    action: Mapped[str]
    kind: Mapped[str] = mapped_column(server_default="memory")
    subject_id: Mapped[str] = mapped_column(index=True)
    library_id: Mapped[str | None] = mapped_column(Uuid(as_uuid=False))
    batch_id: Mapped[str] = mapped_column(Uuid(as_uuid=False), index=True)
    before: Mapped[dict[str, Any] | None]
    after: Mapped[dict[str, Any] | None]
    undone_by: Mapped[str | None] = mapped_column(Uuid(as_uuid=False))


class JobRow(Row):
    """Background work that survives its process: re-embedding, projections. `beat_at` tells a
    running job from one whose process died."""

    __tablename__ = "jobs"
    id: Mapped[str] = _id()
    kind: Mapped[str]
    library_id: Mapped[str | None] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="CASCADE"), index=True
    )
    state: Mapped[str] = mapped_column(server_default="queued")
    """queued, running, done, failed, cancelled."""
    done: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    total: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    input: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    note: Mapped[str] = mapped_column(server_default="")
    created_at: Mapped[datetime] = _now()
    beat_at: Mapped[datetime | None]


class ProjectionRow(Row):
    """One picture of a library: how it was drawn and how far to trust it. Its points are rows of
    their own, so that a memory that is deleted or erased leaves the map with the same statement."""

    __tablename__ = "projections"
    id: Mapped[str] = _id()
    library_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="CASCADE"), index=True
    )
    collection_id: Mapped[int | None] = mapped_column(BigInteger)
    """Whose vectors it shows; None: an embedder on trial, whose vectors were not kept."""
    embedder: Mapped[str]
    settings: Mapped[dict[str, Any]]
    state: Mapped[str]
    """drawing (the PCA picture, until UMAP is ready), done."""
    method: Mapped[str] = mapped_column(server_default="")
    explanation: Mapped[str] = mapped_column(server_default="")
    width: Mapped[float] = mapped_column(server_default=text("0"))
    figures: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    """Faithfulness, pair floor and total, isolation limit, seconds by stage."""
    created_at: Mapped[datetime] = _now()


class ProjectionPointRow(Row):
    """Where a memory is drawn, or why it is not (`left_out`)."""

    __tablename__ = "projection_points"
    projection_id: Mapped[str] = _ref("projections.id", primary_key=True)
    memory_id: Mapped[str] = _ref("memories.id", primary_key=True, index=True)
    content_hash: Mapped[str]
    """Of the memory when it was drawn; another hash now means the point is stale."""
    ordinal: Mapped[int]
    x: Mapped[float] = mapped_column(REAL)
    y: Mapped[float] = mapped_column(REAL)
    spot: Mapped[int]
    cluster: Mapped[int]
    isolation: Mapped[float] = mapped_column(REAL)
    preservation: Mapped[float] = mapped_column(REAL)
    neighbours: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    """Ordinals of the nearest, nearest first."""
    placed: Mapped[bool]
    """True: put among fitted points, which did not move."""
    left_out: Mapped[str] = mapped_column(server_default="")
    """missing, zero, not_finite, other_dimensions; empty where it is drawn."""


class ProjectionPairRow(Row):
    """Two memories whose vectors are near-duplicates."""

    __tablename__ = "projection_pairs"
    projection_id: Mapped[str] = _ref("projections.id", primary_key=True)
    first_id: Mapped[str] = _ref("memories.id", primary_key=True, index=True)
    second_id: Mapped[str] = _ref("memories.id", primary_key=True, index=True)
    similarity: Mapped[float] = mapped_column(REAL)


class EvaluationCaseRow(Row):
    """A judgement a person made: for this query this memory is (not) right."""

    __tablename__ = "evaluation_cases"
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    at: Mapped[datetime] = _now()
    library_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="CASCADE"), index=True
    )
    actor: Mapped[str]
    query: Mapped[str]
    subject: Mapped[dict[str, Any]]
    memory_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("memories.id", ondelete="CASCADE")
    )
    relevant: Mapped[bool]
    __table_args__ = (UniqueConstraint("library_id", "query", "memory_id"),)


class ProfileRow(Row):
    """What people wrote by hand about a user or project. `touched`: field → version that set it,
    so that two editors conflict only where they changed the same field."""

    __tablename__ = "profiles"
    library_id: Mapped[str] = mapped_column(
        Uuid(as_uuid=False), ForeignKey("libraries.id", ondelete="CASCADE"), primary_key=True
    )
    kind: Mapped[str] = mapped_column(primary_key=True)
    subject_id: Mapped[str] = mapped_column(primary_key=True)
    fields: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    touched: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    version: Mapped[int] = mapped_column(server_default=text("0"))
    edited_by: Mapped[str | None]
    updated_at: Mapped[datetime] = _now()


class SessionStateSnapshotRow(Row):
    """What a session's agent knew at a moment, kept apart from LangGraph's own tables so that it
    outlives pruning. `source` says which checkpoint database it was taken from."""

    __tablename__ = "session_state_snapshot"
    id: Mapped[str] = _id()
    source: Mapped[str]
    thread_id: Mapped[str]
    checkpoint_ns: Mapped[str] = mapped_column(server_default="")
    checkpoint_id: Mapped[str]
    label: Mapped[str] = mapped_column(server_default="")
    taken_at: Mapped[datetime] = _now()
    taken_by: Mapped[str]
    state_at: Mapped[datetime | None]
    messages: Mapped[list[Any]]
    agent_state: Mapped[dict[str, Any]]
    tool_states: Mapped[list[Any]]
    pending_tool_calls: Mapped[list[Any]]
    __table_args__ = (
        Index("ix_session_state_snapshot_thread", "thread_id", text("taken_at DESC")),
    )


class CheckpointArchiveRow(Row):
    """Checkpoints of one thread that one run moved out, compressed. `payload` is empty once they
    were restored; the row stays as a receipt."""

    __tablename__ = "checkpoint_archive"
    id: Mapped[str] = _id()
    at: Mapped[datetime] = _now()
    actor: Mapped[str]
    batch_id: Mapped[str] = mapped_column(Uuid(as_uuid=False), index=True)
    source: Mapped[str]
    thread_id: Mapped[str] = mapped_column(index=True)
    part: Mapped[int] = mapped_column(server_default=text("0"))
    reason: Mapped[str]
    state: Mapped[str] = mapped_column(server_default="moving")
    """moving: written, the originals not yet known to be gone; moved; restored."""
    checkpoint_ids: Mapped[list[str]]
    checkpoints: Mapped[int]
    blobs: Mapped[int]
    writes: Mapped[int]
    octets: Mapped[int] = mapped_column(BigInteger)
    payload: Mapped[bytes | None]
    digest: Mapped[str]
    restored_at: Mapped[datetime | None]
    __table_args__ = (UniqueConstraint("batch_id", "thread_id", "part"),)
