"""The value objects of episodic memory. Pure: no I/O.

LangGraph's own words are kept: thread, checkpoint, channel, pending write. Decoded values are
JSON-like (decode.py says how objects, bytes and refused blobs look). Times are aware UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class ThreadStatus(StrEnum):
    WAITING = "waiting"
    """The newest root checkpoint has an interrupt that no finished task answered."""
    FAILED = "failed"
    """A task of the newest superstep recorded an error."""
    UNFINISHED = "unfinished"
    """Nodes are due to run: it is running now, was killed, or stopped at a breakpoint."""
    FINISHED = "finished"
    """Nothing is due."""
    PASSED = "passed"
    """Of a checkpoint, never of a thread: another one follows from it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Which database checkpoints are read from. Never holds a password."""

    where: str
    own: bool
    """True: memcore's own database; False: CHECKPOINT_DATABASE_URL."""
    read_only: bool
    ready: bool
    """False: LangGraph's tables are not there yet."""
    migration: int | None = None
    """LangGraph's own schema version."""


# ---- threads -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Thread:
    thread_id: str
    head: str | None
    """Newest root checkpoint: where the thread goes on. None: it only has subgraph checkpoints."""
    status: ThreadStatus
    nodes: tuple[str, ...]
    """Nodes that wait, failed or are due next."""
    step: int | None
    source: str
    first_activity: datetime | None
    last_activity: datetime | None
    checkpoints: int
    namespaces: int
    octets: int
    """Bytes of its blobs and writes, uncompressed."""
    metadata: Mapping[str, Any]
    """Of the newest root checkpoint."""


@dataclass(frozen=True, slots=True)
class ThreadPage:
    threads: tuple[Thread, ...]
    total: int
    """Threads that match, over all pages."""
    match: str
    """How `search` was compared: exact, prefix or contains."""
    exact: bool
    """True: a thread of exactly the searched id exists."""
    source: Source


# ---- timeline ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One checkpoint in the timeline."""

    checkpoint_id: str
    checkpoint_ns: str
    """'' is the root graph; `node:<task id>` a subgraph call, nested ones joined by |."""
    parent_checkpoint_id: str | None
    step: int | None
    source: str
    """input, loop, update or fork."""
    created_at: datetime | None
    nodes: tuple[str, ...]
    """Nodes whose writes made this checkpoint."""
    updated: tuple[str, ...]
    """Channels that changed."""
    status: ThreadStatus
    octets: int
    """Bytes first stored by this checkpoint: new blobs and the writes made on it."""
    state_octets: int
    """Bytes of the whole state it stands for."""
    lane: int = 0
    """0: the line that leads to the newest checkpoint; others branch off it."""
    children: int = 0
    parent_missing: bool = False
    """True: it names a parent that is not stored (pruned or archived)."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timeline:
    thread_id: str
    steps: tuple[Step, ...]
    """Newest first, all namespaces."""
    total: int
    truncated: bool
    """True: older checkpoints exist that are not in `steps`."""

    @property
    def forks(self) -> tuple[str, ...]:
        """Checkpoints from which more than one line goes on."""
        return tuple(s.checkpoint_id for s in self.steps if s.children > 1)

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(sorted({s.checkpoint_ns for s in self.steps}))


# ---- one checkpoint ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    args: Any
    status: str
    """done, error, pending (unanswered), or dangling: unanswered though the chat went on, which
    chat models refuse."""
    since: datetime | None = None
    """When it is first seen in the state; for what is unanswered."""
    result: str = ""
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: str
    """user, assistant, system, tool, or the stored word."""
    text: str
    id: str = ""
    name: str = ""
    kind: str = ""
    """The class it was stored as; '' for a plain mapping."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    status: str = ""
    """A tool's success or error."""
    attachments: tuple[str, ...] = ()
    """What the text does not show: images, files, reasoning."""


@dataclass(frozen=True, slots=True)
class Todo:
    content: str
    status: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question the graph asked a human."""

    id: str
    value: Any
    node: str
    task_id: str
    checkpoint_ns: str
    since: datetime | None
    """The checkpoint it was asked on; the question itself may be a little younger."""
    answered: bool = False
    """True: an answer is stored, but the run has not got past it. It died or is running."""
    actions: tuple[ToolCall, ...] = ()
    """Tool calls it asks to approve, where it has that form."""


@dataclass(frozen=True, slots=True)
class PendingWrite:
    task_id: str
    node: str
    idx: int
    channel: str
    kind: str
    octets: int
    value: Any
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    name: str
    version: str
    storage: str
    """inline, blob, delta (rebuilt from ancestors' writes), or empty."""
    kind: str
    """Serializer type of its blob."""
    octets: int
    updated: bool
    """True: it changed with this checkpoint."""
    internal: bool
    """True: LangGraph's own bookkeeping."""
    value: Any = None
    problem: str | None = None
    types: tuple[str, ...] = ()
    deltas: int = 0
    """Writes that were folded onto the last snapshot; only for delta channels."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis."""

    level: str
    """error, warning or info."""
    title: str
    detail: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint, decoded."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    step: int | None
    source: str
    created_at: datetime | None
    status: ThreadStatus
    newest: bool
    """True: its namespace has no newer one."""
    next_nodes: tuple[str, ...]
    """Nodes that were due when it was saved."""
    metadata: Mapping[str, Any]
    messages: tuple[ChatMessage, ...]
    todos: tuple[Todo, ...]
    channels: tuple[Channel, ...]
    pending_tool_calls: tuple[ToolCall, ...]
    interrupts: tuple[Interrupt, ...]
    """Waiting or answered but not passed; never those of finished tasks."""
    pending_writes: tuple[PendingWrite, ...]
    errors: tuple[str, ...]
    diagnosis: tuple[Finding, ...] = ()

    @property
    def state(self) -> dict[str, Any]:
        """The graph's own channels that hold a value, by name, without the messages."""
        return {
            c.name: c.value
            for c in self.channels
            if not c.internal and c.name != "messages" and c.storage != "empty"
        }

    @property
    def tool_states(self) -> tuple[ToolCall, ...]:
        """Every tool call of the conversation with its outcome, in order."""
        return tuple(call for m in self.messages for call in m.tool_calls)

    @property
    def octets(self) -> int:
        return sum(c.octets for c in self.channels)


# ---- comparison ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    """Channel and place in it: todos[1].status."""
    kind: str
    """added, removed or changed."""
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Difference:
    thread_id: str
    before: str
    after: str
    """Checkpoint ids."""
    messages_added: tuple[ChatMessage, ...]
    messages_removed: tuple[ChatMessage, ...]
    messages_edited: tuple[tuple[ChatMessage, ChatMessage], ...]
    changes: tuple[Change, ...]
    calls_opened: tuple[ToolCall, ...]
    calls_closed: tuple[ToolCall, ...]
    octets: int
    """State bytes after minus before."""
    truncated: bool = False
    """True: more changes than are listed."""
