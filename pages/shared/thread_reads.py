"""The cached reads of the checkpoints page. The rules of `reads` hold: the actor is hashed, results
are value objects, and `reads.forget()` drops them all after a write.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import streamlit as st

from memcore.models import Actor, Memory
from memcore.services.checkpoints.ledger import Archived, Policy, PrunePlan, Snapshot, Usage
from memcore.services.checkpoints.values import (
    Checkpoint,
    Difference,
    Source,
    ThreadPage,
    Timeline,
)
from pages.shared import session
from pages.shared.reads import SHORT


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def checkpoint_source(actor: Actor) -> Source:
    """Which checkpoint database is read."""
    return session.service().checkpoints.source(actor=actor)


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def threads(
    actor: Actor,
    search: str,
    match: str,
    metadata: dict[str, Any],
    status: str | None,
    since: datetime | None,
    until: datetime | None,
    order: str,
    limit: int,
    offset: int,
) -> ThreadPage:
    """One page of LangGraph threads."""
    return session.service().checkpoints.threads(
        search, actor=actor, match=match, metadata=metadata, status=status, since=since,
        until=until, order=order,
        limit=limit, offset=offset,
    )  # fmt: skip


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def timeline(actor: Actor, thread_id: str) -> Timeline:
    """A thread's checkpoints, newest first."""
    return session.service().checkpoints.timeline(thread_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def checkpoint(actor: Actor, thread_id: str, checkpoint_id: str, ns: str) -> Checkpoint:
    return session.service().checkpoints.checkpoint(
        thread_id, checkpoint_id, actor=actor, checkpoint_ns=ns
    )


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def checkpoint_diff(actor: Actor, thread_id: str, before: str, after: str, ns: str) -> Difference:
    return session.service().checkpoints.diff(
        thread_id, before, after, actor=actor, checkpoint_ns=ns
    )


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def memories_of(
    actor: Actor, thread_id: str, message_ids: tuple[str, ...]
) -> dict[str, tuple[Memory, ...]]:
    """Memories extracted from these messages of a thread, by message id."""
    return session.service().checkpoints.memories_of(thread_id, message_ids, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner="Adding up…")
def thread_usage(actor: Actor, thread_id: str | None = None) -> Usage:
    """Bytes of one thread, or of the whole checkpoint database."""
    return session.service().checkpoints.usage(thread_id, actor=actor)


@st.cache_data(ttl=60, max_entries=20, show_spinner="Looking through the threads…")
def prune_plan(actor: Actor, policy: Policy, now: datetime) -> PrunePlan:
    """The dry run of a retention policy at `now`."""
    return session.service().checkpoints.plan_prune(policy, actor=actor, now=now)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def archived(actor: Actor, thread_id: str | None = None) -> tuple[Archived, ...]:
    """Archived checkpoints, newest first."""
    return session.service().checkpoints.archived(thread_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def snapshots(actor: Actor, thread_id: str) -> tuple[Snapshot, ...]:
    return session.service().checkpoints.snapshots(thread_id, actor=actor)
