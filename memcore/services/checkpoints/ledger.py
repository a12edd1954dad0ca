"""The value objects of accounting, retention and keeping. Pure: no I/O. Sizes are bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memcore.services.checkpoints.values import Source


@dataclass(frozen=True, slots=True)
class Share:
    """Bytes of one thread, channel or namespace."""

    name: str
    octets: int
    versions: int
    """Stored versions, writes or checkpoints it counts."""
    live_octets: int = 0
    """Of these, what the newest checkpoint still refers to."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One point of the growth chart: after this checkpoint."""

    checkpoint_id: str
    step: int | None
    created_at: datetime | None
    added_octets: int
    stored_octets: int
    """Everything stored up to here."""
    state_octets: int
    """The state at this checkpoint alone."""


@dataclass(frozen=True, slots=True)
class Freed:
    """What one thread would lose by keeping only its newest checkpoints."""

    keep_last: int
    """Checkpoints of each namespace that stay, beside what must stay anyway."""
    checkpoints: int
    octets: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes, uncompressed unless said otherwise."""

    scope: str
    """A thread id, or '' for the whole database."""
    checkpoints: int
    threads: int
    blob_octets: int
    write_octets: int
    row_octets: int
    """The checkpoint rows themselves."""
    live_octets: int
    """Blobs that the newest checkpoints refer to."""
    orphan_octets: int
    """Blobs and writes that no stored checkpoint refers to."""
    disk_octets: int
    """What the tables (for a thread: its values) take on disk, compressed."""
    channels: tuple[Share, ...]
    by_thread: tuple[Share, ...] = ()
    growth: tuple[Growth, ...] = ()
    freed: tuple[Freed, ...] = ()
    """Of a thread: what pruning would free, for a few numbers to keep."""

    @property
    def total(self) -> int:
        return self.blob_octets + self.write_octets + self.row_octets


@dataclass(frozen=True, slots=True)
class Policy:
    """What may go. A rule that is None does not apply; without any rule nothing goes."""

    idle_days: float | None = None
    """Threads whose newest checkpoint is older go whole into the archive."""
    keep_last: int | None = None
    """In every other thread, this many newest checkpoints of each namespace stay."""
    max_age_days: float | None = None
    """In every other thread, checkpoints older than this go."""
    thread_ids: tuple[str, ...] | None = None
    """None: every thread."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint (or a whole thread) that a rule would drop, and why it stays."""

    checkpoint_ns: str
    checkpoint_id: str
    reason: str
    """latest, waiting, delta_ancestor, pending_sends, running."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ThreadPlan:
    thread_id: str
    rule: str
    """idle: the thread goes whole; trim: only some of its checkpoints; keep: nothing goes."""
    newest: datetime | None
    oldest: datetime | None
    checkpoints: int
    dropped: tuple[tuple[str, str], ...]
    """(namespace, checkpoint id) of what goes."""
    kept: tuple[Kept, ...]
    """What the rules alone would drop, but must stay."""
    writes: int
    blobs: int
    octets: int
    """Bytes that go: blobs, writes and rows."""


@dataclass(frozen=True, slots=True)
class PrunePlan:
    policy: Policy
    at: datetime
    threads: tuple[ThreadPlan, ...]
    """Only threads something goes from, or something is held back in."""
    examined: int
    source: Source

    @property
    def checkpoints(self) -> int:
        return sum(len(t.dropped) for t in self.threads)

    @property
    def octets(self) -> int:
        return sum(t.octets for t in self.threads)


@dataclass(frozen=True, slots=True)
class PruneReport:
    plan: PrunePlan
    batch_id: str
    threads: int
    checkpoints: int
    blobs: int
    writes: int
    octets: int
    """Bytes removed from the checkpoint tables."""
    archived_octets: int
    """Bytes the archive took for them, compressed."""
    skipped: tuple[tuple[str, str], ...]
    """(thread id, why): changed since the dry run, or failed."""


@dataclass(frozen=True, slots=True)
class Archived:
    """One entry of `checkpoint_archive`: what left one thread in one run."""

    id: str
    batch_id: str
    thread_id: str
    source: str
    at: datetime
    by: str
    reason: str
    """idle or trim, as in the plan."""
    checkpoints: int
    blobs: int
    writes: int
    octets: int
    stored_octets: int
    restored_at: datetime | None


@dataclass(frozen=True, slots=True)
class RestoreReport:
    thread_id: str
    checkpoints: int
    blobs: int
    writes: int
    already_there: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """What forgetting a thread removed, by table."""

    thread_id: str
    checkpoints: int
    blobs: int
    writes: int
    archived: int
    snapshots: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one session's agent knew at a moment, kept apart from the checkpoints themselves."""

    id: str
    thread_id: str
    checkpoint_id: str
    checkpoint_ns: str
    label: str
    taken_at: datetime
    taken_by: str
    state_at: datetime | None
    messages: tuple[Mapping[str, Any], ...]
    agent_state: Mapping[str, Any]
    tool_states: tuple[Mapping[str, Any], ...]
    pending_tool_calls: tuple[Mapping[str, Any], ...]
