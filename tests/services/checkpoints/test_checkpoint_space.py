"""What threads take, what pruning would free, and snapshots that outlive it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from memcore.core import Core
from memcore.errors import NotFound
from memcore.models import Actor

Talk = Callable[..., None]
Chain = Callable[..., Any]
Aged = Callable[[str, float], None]
Counts = Callable[[str], tuple[int, ...]]


def test_rewriting_messages_whole_shows_as_growth(
    watched: Core, talker: Talk, operator_: Actor
) -> None:
    talker("t", 10, size=500)
    usage = watched.checkpoints.usage("t", actor=operator_)
    messages = next(c for c in usage.channels if c.name == "messages")
    assert messages.versions == 20
    assert messages.octets > 8 * messages.live_octets
    last = usage.growth[-1]
    assert last.stored_octets == usage.total
    assert last.state_octets == usage.live_octets
    assert [g.stored_octets for g in usage.growth] == sorted(g.stored_octets for g in usage.growth)
    whole = watched.checkpoints.usage(actor=operator_)
    assert whole.blob_octets == usage.blob_octets
    assert whole.by_thread[0].name == "t"
    assert whole.by_thread[0].live_octets == usage.live_octets


def test_what_pruning_would_free_is_what_it_frees(
    watched: Core, talker: Talk, operator_: Actor, prune: Any
) -> None:
    talker("short", 1)
    talker("t", 8, size=500)
    assert [f.keep_last for f in watched.checkpoints.usage("short", actor=operator_).freed] == [1]
    before = watched.checkpoints.usage("t", actor=operator_)
    assert [f.keep_last for f in before.freed] == [1, 5, 20]  # of 24
    sizes = [f.octets for f in before.freed]
    assert sizes == sorted(sizes, reverse=True)
    prune(keep_last=5, thread_ids=("t",))
    after = watched.checkpoints.usage("t", actor=operator_)
    assert before.total - after.total == before.freed[1].octets
    assert before.checkpoints - after.checkpoints == before.freed[1].checkpoints


def test_rows_left_behind_by_deleting_from_one_table_are_counted(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor
) -> None:
    talker("t", 2)
    assert watched.checkpoints.usage(actor=operator_).orphan_octets == 0
    raw.execute("DELETE FROM checkpoints")
    whole = watched.checkpoints.usage(actor=operator_)
    assert whole.orphan_octets == whole.blob_octets + whole.write_octets > 0
    assert watched.checkpoints.usage("t", actor=operator_).orphan_octets == whole.orphan_octets


def test_an_unknown_thread_has_no_usage(watched: Core, operator_: Actor) -> None:
    with pytest.raises(NotFound):
        watched.checkpoints.usage("nobody", actor=operator_)


# ---- snapshots -----------------------------------------------------------------------------------


def test_a_snapshot_outlives_the_checkpoint_it_was_taken_from(
    watched: Core, chain: Chain, operator_: Actor, prune: Any
) -> None:
    from langchain_core.messages import AIMessage

    call = {"id": "c1", "name": "pay", "args": {"amount": 5}}
    agent = chain(
        ("think", lambda s: {"messages": [AIMessage("", tool_calls=[call])],
                             "todos": [{"content": "pay", "status": "pending"}]}),
        ("end", lambda s: {"note": "x"}),
    )  # fmt: skip
    agent.invoke({"messages": []}, {"configurable": {"thread_id": "t"}})
    step = watched.checkpoints.timeline("t", actor=operator_).steps[1]
    taken = watched.checkpoints.snapshot(
        "t", step.checkpoint_id, actor=operator_, label="before paying"
    )
    prune(keep_last=1)
    kept = watched.checkpoints.snapshot_of(taken.id, actor=operator_)
    assert kept == taken == watched.checkpoints.snapshots("t", actor=operator_)[0]
    assert kept.label == "before paying"
    assert kept.messages[0]["role"] == "assistant"
    assert kept.agent_state["todos"] == [{"content": "pay", "status": "pending"}]
    assert kept.tool_states[0]["status"] == "pending"
    assert kept.pending_tool_calls[0]["args"] == {"amount": 5}
    assert kept.state_at == step.created_at
    with pytest.raises(NotFound):
        watched.checkpoints.checkpoint("t", step.checkpoint_id, actor=operator_)
