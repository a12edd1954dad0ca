"""The value objects everything is said in. Pure: no I/O.

All are frozen: facts are gathered once, then judged any number of times. Times are aware UTC
datetimes; ids are strings (UUIDs, except user, project and session ids, which are the caller's).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from memcore.settings import RankingSettings

T = TypeVar("T")


def maker(kind: type[T]) -> Callable[..., T]:
    """A constructor for the frozen, slotted dataclass `kind` that takes every field in order and
    is ten times as fast as its own, which sets each field through a function call: a recall makes
    hundreds. The object is filled while it is of a class with the same layout that is not frozen.
    """
    twin = make_dataclass(kind.__name__, [(f.name, Any) for f in fields(kind)], slots=True)  # type: ignore[arg-type]

    def make(*values: Any) -> T:
        made = twin(*values)
        made.__class__ = kind
        return made  # type: ignore[no-any-return]

    return make


class MemoryType(StrEnum):
    PREFERENCE = "preference"
    FACT = "fact"
    SKILL = "skill"
    HABIT = "habit"
    EVENT = "event"
    CONTEXT = "context"
    CONSTRAINT = "constraint"
    DECISION = "decision"
    TASK_PROGRESS = "task_progress"
    REFERENCE = "reference"


class Scope(StrEnum):
    SESSION = "session"
    PROJECT = "project"
    USER = "user"


class Status(StrEnum):
    ACTIVE = "active"
    ARCHIVED = "archived"
    SUPPRESSED = "suppressed"
    SUPERSEDED = "superseded"


class Visibility(StrEnum):
    PUBLIC = "public"
    MEMBERS = "members"
    OWNER_ONLY = "owner_only"


class Role(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"


class Action(StrEnum):
    READ = "read"
    CREATE = "create"
    EDIT = "edit"
    DELETE = "delete"
    CHANGE_STATUS = "change_status"
    CHANGE_VISIBILITY = "change_visibility"


# What a person may do. Superseding is the system's alone: it records by which memory.
TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    Status.ACTIVE: frozenset({Status.ARCHIVED, Status.SUPPRESSED}),
    Status.ARCHIVED: frozenset({Status.ACTIVE}),
    Status.SUPPRESSED: frozenset({Status.ACTIVE}),
    Status.SUPERSEDED: frozenset({Status.ACTIVE}),
}


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks. `roles` maps project id → role, read from the database, never from a request.
    An `operator` runs the installation and sees every memory; a console without accounts is one.
    """

    user_id: str
    roles: Mapping[str, Role] = field(default_factory=dict)
    operator: bool = False

    def __hash__(self) -> int:
        return hash((self.user_id, tuple(sorted(self.roles.items())), self.operator))


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose memory it is: the scopes one recall reads, or the one place a draft goes.

    `agent_id` None means no agent asks (a person in the console): agents are then not told apart.
    """

    library_id: str
    user_id: str
    project_id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement that wants to become a memory; it has no id yet."""

    content: str
    memory_type: MemoryType = MemoryType.FACT
    scope: Scope = Scope.USER
    confidence: float = 0.8
    """[0, 1]; 0.8 where the source gives none."""
    title: str = ""
    tags: tuple[str, ...] = ()
    category: str = ""
    visibility: Visibility = Visibility.MEMBERS
    shared: bool = False
    """True: every agent of the library recalls it."""
    source: str = "explicit"
    """explicit, extraction, import, tool, demo."""
    source_id: str | None = None
    source_message_id: str | None = None
    """The message it came from; one message never yields the same memory twice."""
    expires_at: datetime | None = None
    """None: the library's expiration_days decides; 0 days means never."""
    created_at: datetime | None = None
    """None: now. Imports keep the original moment."""
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored statement."""

    id: str
    content: str
    title: str
    tags: tuple[str, ...]
    memory_type: MemoryType
    scope: Scope
    scope_id: str
    confidence: float
    relevance: float
    """The similarity of its last recall, [0, 1]; 0.8 until recalled. Not a query's similarity."""
    visibility: Visibility
    status: Status
    library_id: str
    user_id: str
    created_by: str
    source: str
    content_hash: str
    created_at: datetime
    updated_at: datetime
    agent_id: str | None = None
    """None: added by a person; every agent recalls it."""
    shared: bool = False
    project_id: str | None = None
    conversation_id: str | None = None
    source_id: str | None = None
    source_message_id: str | None = None
    superseded_by: str | None = None
    category: str = ""
    access_count: int = 0
    last_used_at: datetime | None = None
    expires_at: datetime | None = None
    vector_id: str | None = None
    """None: it has no vector yet; `reindex` makes one."""
    version: int = 1
    """Counts edits; an edit that names an older version is refused."""
    attributes: Mapping[str, Any] = field(default_factory=dict)


# ---- conversations ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCall:
    """An assistant's request to a tool; its result is a later message with the same `id`."""

    id: str
    name: str
    arguments: str = "{}"
    """JSON as the model wrote it, unparsed."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    id: str
    role: str
    """user, assistant, tool or system."""
    content: str
    created_at: datetime | None = None
    name: str = ""
    """Who spoke, where a conversation has several people."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """Of a tool's result: the call it answers."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session of one user."""

    id: str
    """The session id."""
    user_id: str
    library_id: str | None
    agent_id: str | None
    project_id: str | None
    title: str
    summary: str
    """Of the messages up to `summary_upto`, which have left the window."""
    summary_upto: int
    """Place of the last message in the summary, counted from 1; 0: none is."""
    extracted_upto: int
    """Place of the last message an extraction has read."""
    created_at: datetime
    updated_at: datetime


# ---- the gate ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A living memory near a draft, within the same library and scope."""

    memory_id: str
    content: str
    similarity: float
    """Cosine, clamped to [0, 1]."""
    exact: bool = False
    """True: the normalised content hashes are equal."""
    memory_type: MemoryType = MemoryType.FACT
    relation: str = ""
    """What the guards say about the pair, thresholds apart: same, covered, reworded, extended,
    update, conflict, distinct (rules/duplicates.py). Blank: not compared."""
    reason: str = ""
    """One sentence for `relation`."""
    replaceable: bool = True
    """False: who adds the draft may not change this memory, so it is not superseded."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a draft is judged on, gathered once. Pure judging needs nothing else."""

    text: str
    """Cleaned. In a stored decision: masked where sensitive."""
    confidence: float
    neighbours: tuple[Neighbour, ...] | None
    """Nearest first, compared by `duplicates.annotate`. None: the similarity query failed, so
    nothing is known. An exact match found in spite of that is given alone."""
    extractions_in_window: int
    """Extraction runs of the session in the last 24 h, this one not counted."""
    rate_exempt: bool
    """True for what a person writes by hand."""
    sensitive: tuple[Finding, ...]
    next_slot: datetime | None = None
    """When the oldest run leaves the window; None while a slot is free."""
    trouble: str = ""
    """Why the similarity is not known, where it is not."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sensitive span: code-point offsets into the text it was found in, or, where that was
    masked, into the masked one. Never the secret itself."""

    kind: str
    """See `rules.sensitive.KINDS`; instruction is text that reads like an order to the agent."""
    start: int
    end: int
    masked: str
    """What stands in the secret's place."""
    where: str = "content"
    """Field it was found in: content, title, tags, category, attributes."""


@dataclass(frozen=True, slots=True)
class Check:
    """One rule's outcome. `observed` stands beside the `limit` it was judged against."""

    name: str
    passed: bool
    observed: float | int | str | None
    limit: float | int | str | None
    note: str


@dataclass(frozen=True, slots=True)
class Verdict:
    checks: tuple[Check, ...]
    """Always all five, in the order confidence, sensitive, length, duplicate, rate."""
    accepted: bool
    blocked_by: str | None
    """Name of the first check that failed."""
    outcome: str
    """stored, rejected, duplicate, update, conflict, review, unchecked. An accepted update or
    conflict supersedes `matched_id`. review: a person should look; `accepted` says whether it is
    in use meanwhile (a near-duplicate is, instruction-like text is not). unchecked: held, because
    the duplicate check could not run."""
    matched_id: str | None = None
    """The memory it duplicates, supersedes or nearly repeats."""


# ---- recall and ranking ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory fetched for a query, before ranking."""

    memory: Memory
    similarity: float
    """Dense cosine clamped to [0, 1]; 0 where it has no vector."""
    lexical: float = 0.0
    """Share of the query its keywords cover, absolute in [0, 1]; 0 where no keyword matched."""
    dense_rank: int | None = None
    """Place by vector in its scopes, from 1; None: it has no vector."""
    lexical_rank: int | None = None
    """Place by keyword in its scopes, from 1; None: no keyword matched."""
    matched: tuple[str, ...] = ()
    """Terms of the query it has."""
    reranked: float | None = None
    """What a reranker said, in [0, 1], instead of similarity; None: it did not read it."""
    keywords: frozenset[str] | None = None
    """Terms of its title and text (rules/lexical.py); None: worked out from them when needed."""


class ScoreTerm(NamedTuple):
    """A tuple rather than a dataclass: a recall makes hundreds."""

    name: str
    value: float
    weight: float

    @property
    def contribution(self) -> float:
        return self.value * self.weight


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    score: float
    """Always the sum of its terms' contributions."""
    terms: tuple[ScoreTerm, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    memory: Memory
    reason: str
    """below_threshold, near_duplicate, one_per_type, outranked, over_budget, other_type,
    other_scope."""
    detail: str
    score: float | None = None
    terms: tuple[ScoreTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    hits: tuple[Hit, ...]
    dropped: tuple[Dropped, ...]
    stages: Mapping[str, int] = field(default_factory=dict)
    """Stage name → how many were left after it, in order."""


# ---- libraries and agents ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Library:
    """Configuration and container, shared by agents. `overrides` holds only what was set by hand;
    `settings.resolve` gives the effective values and where each comes from."""

    id: str
    name: str
    embedder: str
    """local, local:use, hash:N for tests, or endpoint:<id>."""
    dimensions: int
    collection_id: int
    """Where its vectors are now; re-embedding builds another and switches."""
    vector_store: str
    """pgvector, or the id of a configured store."""
    overrides: Mapping[str, Any]
    description: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Agent:
    id: str
    name: str
    library_id: str | None
    memory_enabled: bool
    extraction_enabled: bool
    short_term_memory_size: int
    """Messages in the window; empty or ≤ 0 means 20."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model endpoint that speaks OpenAI's interface. The key itself is not in it."""

    id: str
    name: str
    kind: str
    """embedding or chat."""
    owner_user_id: str | None
    """None: shared by all users."""
    base_url: str
    model: str
    dimensions: int | None
    """Of an embedding model; None: learnt at the first test."""
    key: str
    """Masked; empty: none is set."""
    options: Mapping[str, Any]
    """send_dimensions (true or false; otherwise by model), timeout in seconds."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ConfiguredStore:
    """A vector store beside pgvector in the main database."""

    id: str
    name: str
    kind: str
    """memory, milvus, elasticsearch or pgvector (in another database)."""
    address: str
    """A URL or, for a Milvus file, its path; passwords are not in it."""
    secret: str
    """Token, API key or password, masked; empty: none is set."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one draft."""

    verdict: Verdict
    memory: Memory | None
    """None where the gate did not let it in."""
    decision_id: int
    facts: Facts


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One explained recall."""

    query: str
    """As searched: cleaned, and rewritten where the library says so."""
    hits: tuple[Hit, ...]
    dropped: tuple[Dropped, ...]
    stages: Mapping[str, int]
    timings: Mapping[str, float]
    """Milliseconds: embed, sql, rank, total; rewrite and rerank where they ran."""
    candidates: tuple[Candidate, ...] = ()
    """The facts, so that other settings can be tried without I/O."""
    notice: str = ""
    """Said where the result is not what was asked, such as recent memories for a blank query."""
    recall_id: int | None = None
    """Its number in the recall log; None: not logged."""
    mode: str = "hybrid"
    """hybrid, vector, keyword, or recent for a blank query."""
    terms: tuple[str, ...] = ()
    """What the keyword channel asked for."""
    documents: int = 0
    """Memories a recall for this subject may return; every one was looked at."""
    ranking: RankingSettings = field(default_factory=RankingSettings)
    """The settings it was ranked by."""
    at: datetime | None = None
    """What recency was counted from."""
