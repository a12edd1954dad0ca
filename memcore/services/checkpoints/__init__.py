"""Episodic memory: inspect, compare, account for, archive and resume LangGraph threads.

Reads any database LangGraph's PostgresSaver writes to: memcore's own, or the one at
CHECKPOINT_DATABASE_URL. Threads hold whole conversations of everybody, so only an operator may
read or change them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memcore.errors import ConfigError, PermissionDenied
from memcore.models import Actor, Memory
from memcore.services.checkpoints import (
    archive,
    diff,
    index,
    links,
    moving,
    pruning,
    reading,
    retention,
    snapshots,
    timeline,
    usage,
)
from memcore.services.checkpoints.diagnosis import diagnose
from memcore.services.checkpoints.ledger import (
    Archived,
    Deleted,
    Policy,
    PrunePlan,
    PruneReport,
    RestoreReport,
    Snapshot,
    Usage,
)
from memcore.services.checkpoints.saver import open_saver
from memcore.services.checkpoints.saver import resume as resume_thread
from memcore.services.checkpoints.store import CheckpointStore
from memcore.services.checkpoints.values import (
    Checkpoint,
    Difference,
    Source,
    ThreadPage,
    ThreadStatus,
    Timeline,
)
from memcore.services.runtime import Runtime

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres import PostgresSaver

__all__ = ["CheckpointService", "Policy", "ThreadStatus", "open_store"]


class CheckpointService:
    """Everything that is done to threads. Safe to share between threads of the process."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self._opened: CheckpointStore | None = None

    # ---- looking ---------------------------------------------------------------------------------

    def source(self, *, actor: Actor) -> Source:
        """Which database is read, and whether LangGraph's tables are there."""
        return self._store(actor).source()

    def threads(
        self,
        search: str = "",
        *,
        actor: Actor,
        match: str = "contains",
        metadata: Mapping[str, Any] | None = None,
        status: ThreadStatus | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        order: str = "activity",
        limit: int = 50,
        offset: int = 0,
    ) -> ThreadPage:
        """One page of threads, without reading any blob. `search` is part of the thread id, its
        beginning or all of it, as `match` says (contains, prefix, exact). `order`: activity,
        oldest, size, checkpoints. `status`: waiting, failed or unfinished. `since`, `until`
        (aware): bounds of the last activity."""
        return index.threads(
            self._store(actor),
            search=search,
            match=match,
            metadata=metadata,
            status=ThreadStatus(status) if status else None,
            since=since,
            until=until,
            order=order,
            limit=limit,
            offset=offset,
        )

    def timeline(self, thread_id: str, *, actor: Actor, limit: int = 1000) -> Timeline:
        """A thread's checkpoints, newest first, with forks and subgraph calls."""
        return timeline.timeline(self._store(actor), thread_id, limit=limit)

    def checkpoint(
        self,
        thread_id: str,
        checkpoint_id: str | None = None,
        *,
        actor: Actor,
        checkpoint_ns: str = "",
    ) -> Checkpoint:
        """One checkpoint, decoded without importing anything it names; the newest by default.
        Raises NotFound."""
        found = reading.checkpoint(self._store(actor), thread_id, checkpoint_id, checkpoint_ns)
        return replace(found, diagnosis=diagnose(found, now=datetime.now(UTC)))

    def diff(
        self,
        thread_id: str,
        before: str,
        after: str | None = None,
        *,
        actor: Actor,
        checkpoint_ns: str = "",
        before_thread_id: str | None = None,
    ) -> Difference:
        """What `after` (default: the newest) changed against `before`. Raises NotFound."""
        old = self.checkpoint(
            before_thread_id or thread_id, before, actor=actor, checkpoint_ns=checkpoint_ns
        )
        new = self.checkpoint(thread_id, after, actor=actor, checkpoint_ns=checkpoint_ns)
        return diff.diff(old, new)

    def memories_of(
        self, thread_id: str, message_ids: Iterable[str] = (), *, actor: Actor
    ) -> dict[str, tuple[Memory, ...]]:
        """Memories extracted from these messages, by message id; under '' the other memories of
        the session that is named like the thread."""
        self._store(actor)
        return links.memories_of(self._runtime.engine, thread_id, message_ids, actor)

    # ---- accounting and retention ----------------------------------------------------------------

    def usage(self, thread_id: str | None = None, *, actor: Actor, top: int = 50) -> Usage:
        """Bytes by channel and step of one thread, or of the whole database with its largest
        threads."""
        return usage.usage(self._store(actor), thread_id, top=top)

    def plan_prune(self, policy: Policy, *, actor: Actor, now: datetime | None = None) -> PrunePlan:
        """The dry run: what `policy` would remove, what it frees, and what must stay and why."""
        return retention.plan(self._store(actor), policy, now=now or datetime.now(UTC))

    def prune(
        self,
        plan: PrunePlan,
        *,
        actor: Actor,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> PruneReport:
        """Carry out a dry run: archive, then delete. Threads that changed since are skipped.
        Raises PermissionDenied on a read-only database."""
        return pruning.prune(self._store(actor), self._runtime.engine, plan, actor, progress)

    def archived(
        self, thread_id: str | None = None, *, actor: Actor, limit: int = 200
    ) -> tuple[Archived, ...]:
        """What was archived, newest first, restored ones included."""
        self._store(actor)
        return archive.archived(self._runtime.engine, thread_id=thread_id, limit=limit)

    def restore(self, archive_id: str, *, actor: Actor) -> RestoreReport:
        """Put back what one run took from a thread. Raises NotFound, Conflict, StoreError."""
        return archive.restore(self._store(actor), self._runtime.engine, archive_id, actor)

    def delete_thread(self, thread_id: str, *, actor: Actor) -> Deleted:
        """Forget a thread in every table, its archive and its snapshots. Cannot be undone."""
        return pruning.delete_thread(self._store(actor), self._runtime.engine, thread_id, actor)

    def move_thread(
        self, thread_id: str, end: datetime, start: datetime | None = None, *, actor: Actor
    ) -> None:
        """Let a thread's newest checkpoint be of the moment `end` (and its oldest of `start`), for
        demo data and tests."""
        moving.move_thread(self._store(actor), thread_id, end, start)

    # ---- snapshots -------------------------------------------------------------------------------

    def snapshot(
        self,
        thread_id: str,
        checkpoint_id: str | None = None,
        *,
        actor: Actor,
        checkpoint_ns: str = "",
        label: str = "",
    ) -> Snapshot:
        """Keep messages, agent state, tool states and pending tool calls of a checkpoint, whatever
        happens to it later."""
        found = self.checkpoint(thread_id, checkpoint_id, actor=actor, checkpoint_ns=checkpoint_ns)
        return snapshots.take(self._runtime.engine, found, self._store(actor).where, label, actor)

    def snapshots(self, thread_id: str, *, actor: Actor, limit: int = 100) -> tuple[Snapshot, ...]:
        self._store(actor)
        return snapshots.listed(self._runtime.engine, thread_id, limit)

    def snapshot_of(self, snapshot_id: str, *, actor: Actor) -> Snapshot:
        """One snapshot. Raises NotFound."""
        self._store(actor)
        return snapshots.one(self._runtime.engine, snapshot_id)

    # ---- agents ----------------------------------------------------------------------------------

    def saver(self, *, allow: Iterable[type | tuple[str, str]] = ()) -> PostgresSaver:
        """A `PostgresSaver` for `graph.compile(checkpointer=…)` on the configured database, its
        tables made where missing, decoding under a strict allow-list. `allow`: the classes of the
        agent's own state. Usable until the core is closed. Raises MissingExtra, PermissionDenied,
        DatabaseError."""
        return open_saver(self._open(), allow)

    resume = staticmethod(resume_thread)

    # ---- the database ----------------------------------------------------------------------------

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _store(self, actor: Actor) -> CheckpointStore:
        if not actor.operator:
            raise PermissionDenied(
                "Only an operator may look at threads.",
                hint="They hold the conversations of every user; memories are on their own pages.",
            )
        return self._open()

    def _open(self) -> CheckpointStore:
        with self._lock:
            if self._opened is None:
                self._opened = open_store(
                    self._runtime.engine.url.render_as_string(hide_password=False), os.environ
                )
            return self._opened


def open_store(own_url: str, environ: Mapping[str, str]) -> CheckpointStore:
    """The checkpoint database: CHECKPOINT_DATABASE_URL, else memcore's own. Somebody else's is
    read-only unless CHECKPOINT_READ_ONLY=off says otherwise. Raises ConfigError."""
    url = environ.get("CHECKPOINT_DATABASE_URL", "").strip()
    return CheckpointStore(
        url or own_url,
        own=not url,
        read_only=_switch(environ, "CHECKPOINT_READ_ONLY", bool(url)),
        prepare=_switch(environ, "CHECKPOINT_PREPARE", False),
        setting="CHECKPOINT_DATABASE_URL" if url else "DATABASE_URL",
    )


def _switch(environ: Mapping[str, str], name: str, default: bool) -> bool:
    word = environ.get(name, "").strip().lower()
    if not word:
        return default
    if word in ("1", "on", "true", "yes"):
        return True
    if word in ("0", "off", "false", "no"):
        return False
    raise ConfigError(f"{name} is {word[:40]!r}, but takes on or off.")
