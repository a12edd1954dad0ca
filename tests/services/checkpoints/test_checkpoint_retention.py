"""What a policy lets go, what stays whatever it says, and that everything can come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import select, text

from memcore.core import Core, open_core
from memcore.database.tables import CheckpointArchiveRow, HistoryRow
from memcore.errors import Conflict, InvalidInput, NotFound, PermissionDenied, StoreError
from memcore.models import Actor
from memcore.services.checkpoints import Policy, pruning

Talk = Callable[..., None]
Chain = Callable[..., Any]
Aged = Callable[[str, float], None]
Counts = Callable[[str], tuple[int, ...]]


def configured(thread_id: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, **more}}


def everything(connection: psycopg.Connection[Any], thread_id: str) -> list[list[Any]]:
    """All rows of a thread, comparable."""
    return [
        sorted(connection.execute(query, (thread_id,)).fetchall(), key=repr)
        for query in (
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint::text,"
            " metadata::text FROM checkpoints WHERE thread_id = %s",
            "SELECT checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs"
            " WHERE thread_id = %s",
            "SELECT checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path"
            " FROM checkpoint_writes WHERE thread_id = %s",
        )
    ]


# ---- the rules -----------------------------------------------------------------------------------


def test_a_thread_is_idle_by_its_newest_checkpoint_and_then_goes_whole(
    watched: Core, talker: Talk, aged: Aged, counts: Counts, operator_: Actor
) -> None:
    talker("forgotten", 2)
    aged("forgotten", 8)
    talker("old but alive", 2)
    aged("old but alive", 60)
    talker("old but alive", 1)
    aged_newest = watched.checkpoints.timeline("old but alive", actor=operator_).steps
    assert (datetime.now(UTC) - aged_newest[-1].created_at).days >= 59
    plan = watched.checkpoints.plan_prune(Policy(idle_days=7), actor=operator_)
    assert [(p.thread_id, p.rule, len(p.dropped)) for p in plan.threads] == [
        ("forgotten", "idle", 6)
    ]
    assert plan.examined == 2
    before = counts("old but alive")
    report = watched.checkpoints.prune(plan, actor=operator_)
    assert (report.threads, report.checkpoints) == (1, 6)
    assert counts("forgotten") == (0, 0, 0)
    assert counts("old but alive") == before


def test_the_other_rule_trims_a_living_thread(
    watched: Core, talker: Talk, aged: Aged, prune: Any, operator_: Actor
) -> None:
    talker("t", 2)
    aged("t", 60)
    talker("t", 1)
    report = prune(max_age_days=30)
    assert report.checkpoints == 6
    assert len(watched.checkpoints.timeline("t", actor=operator_).steps) == 3


def test_keeping_the_last_frees_nearly_all_and_the_thread_goes_on(
    watched: Core, talker: Talk, prune: Any, operator_: Actor, counts: Counts
) -> None:
    talker("t", 12, size=500)
    before = watched.checkpoints.usage("t", actor=operator_)
    state = watched.checkpoints.checkpoint("t", actor=operator_)
    planned = watched.checkpoints.plan_prune(Policy(keep_last=1), actor=operator_)
    report = prune(keep_last=1)
    after = watched.checkpoints.usage("t", actor=operator_)
    assert counts("t")[0] == 1
    assert before.total - after.total == pytest.approx(planned.octets, abs=200)
    assert report.octets > 0.8 * before.total
    assert report.archived_octets < report.octets / 10
    assert after.orphan_octets == 0
    assert watched.checkpoints.checkpoint("t", actor=operator_).messages == state.messages
    talker("t", 1)
    assert len(watched.checkpoints.checkpoint("t", actor=operator_).messages) == 26


def test_a_dry_run_changes_nothing(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor
) -> None:
    talker("t", 3)
    before = everything(raw, "t")
    plan = watched.checkpoints.plan_prune(Policy(keep_last=1), actor=operator_)
    assert plan.checkpoints == 8
    assert everything(raw, "t") == before


def test_what_waits_for_a_human_stays_even_in_an_idle_thread(
    watched: Core, chain: Chain, aged: Aged, operator_: Actor, prune: Any
) -> None:
    from langgraph.types import Command, interrupt

    agent = chain(("ask", lambda s: {"note": interrupt("May I?")}))
    agent.invoke({"messages": []}, configured("t"))
    aged("t", 100)
    plan = watched.checkpoints.plan_prune(Policy(idle_days=30), actor=operator_)
    (kept,) = plan.threads
    assert (kept.rule, [k.reason for k in kept.kept]) == ("keep", ["waiting"])
    assert prune(idle_days=30, keep_last=1).checkpoints == 1
    assert agent.invoke(Command(resume="yes"), configured("t"))["note"] == "yes"


def test_a_question_on_an_abandoned_branch_stays_too(
    watched: Core, chain: Chain, operator_: Actor, prune: Any
) -> None:
    from langgraph.types import interrupt

    agent = chain(
        ("plan", lambda s: {"note": "planned"}), ("ask", lambda s: {"note": interrupt("May I?")})
    )
    agent.invoke({"messages": []}, configured("t"))
    waiting = watched.checkpoints.timeline("t", actor=operator_).steps[0]
    before = waiting.parent_checkpoint_id
    agent.update_state(configured("t", checkpoint_id=before), {"note": "other"}, as_node="ask")
    report = prune(keep_last=1)
    left = {s.checkpoint_id for s in watched.checkpoints.timeline("t", actor=operator_).steps}
    assert waiting.checkpoint_id in left
    assert [k.reason for k in report.plan.threads[0].kept] == ["waiting"]


def test_ancestors_a_delta_channel_is_rebuilt_from_stay(
    watched: Core, operator_: Actor, prune: Any
) -> None:
    from typing import Annotated, TypedDict

    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph import START, StateGraph

    def joined(state: list[Any], writes: list[list[Any]]) -> list[Any]:
        return [*state, *(x for w in writes for x in w)]

    log = Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=5)]
    graph = StateGraph(TypedDict("Long", {"log": log}))
    graph.add_node("act", lambda s: {"log": [len(s["log"])]})
    graph.add_edge(START, "act")
    agent = graph.compile(checkpointer=watched.checkpoints.saver())
    for i in range(8):
        agent.invoke({"log": [f"in {i}"]}, configured("t"))
    truth = agent.get_state(configured("t")).values["log"]
    plan = watched.checkpoints.plan_prune(Policy(keep_last=1), actor=operator_)
    assert {k.reason for k in plan.threads[0].kept} == {"delta_ancestor"}
    assert plan.checkpoints > 5
    prune(keep_last=1)
    assert agent.get_state(configured("t")).values["log"] == truth
    agent.invoke({"log": ["more"]}, configured("t"))
    assert agent.get_state(configured("t")).values["log"][:-2] == truth


def test_a_subgraph_call_goes_with_the_step_it_ran_under(
    watched: Core, operator_: Actor, state_type: type, prune: Any
) -> None:
    from langgraph.graph import START, StateGraph

    inner = StateGraph(state_type)
    inner.add_node("deep", lambda s: {"note": "x"})
    inner.add_edge(START, "deep")
    outer = StateGraph(state_type)
    outer.add_node("research", inner.compile())
    outer.add_edge(START, "research")
    agent = outer.compile(checkpointer=watched.checkpoints.saver())
    for _ in range(3):
        agent.invoke({"messages": []}, configured("t"))
    assert len(watched.checkpoints.timeline("t", actor=operator_).namespaces) == 4
    prune(keep_last=1)
    assert watched.checkpoints.timeline("t", actor=operator_).namespaces == ("",)
    assert watched.checkpoints.usage("t", actor=operator_).orphan_octets == 0


@pytest.mark.parametrize(
    "rules", [{}, {"keep_last": 0}, {"idle_days": 0}, {"idle_days": float("nan")},
              {"max_age_days": -1}]
)  # fmt: skip
def test_a_policy_that_cannot_be_meant_is_refused(
    watched: Core, operator_: Actor, rules: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        watched.checkpoints.plan_prune(Policy(**rules), actor=operator_)


# ---- archive and restore -------------------------------------------------------------------------


def test_what_was_pruned_comes_back_byte_for_byte(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor, prune: Any
) -> None:
    talker("t", 4)
    talker("bystander", 2)
    before, untouched = everything(raw, "t"), everything(raw, "bystander")
    prune(keep_last=2, thread_ids=("t",))
    assert everything(raw, "t") != before
    (entry,) = watched.checkpoints.archived("t", actor=operator_)
    assert (entry.checkpoints, entry.reason, entry.by) == (10, "trim", "operator")
    report = watched.checkpoints.restore(entry.id, actor=operator_)
    assert (report.checkpoints, report.already_there) == (10, 0)
    assert everything(raw, "t") == before
    assert everything(raw, "bystander") == untouched
    (entry,) = watched.checkpoints.archived("t", actor=operator_)
    assert entry.restored_at is not None
    with pytest.raises(Conflict, match="restored already"):
        watched.checkpoints.restore(entry.id, actor=operator_)


@pytest.mark.parametrize("first", ["oldest", "newest"])
def test_two_prunings_come_back_byte_for_byte_in_any_order(
    first: str, watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor,
    prune: Any,
) -> None:  # fmt: skip
    talker("t", 4)
    before = everything(raw, "t")
    prune(keep_last=5, thread_ids=("t",))
    prune(keep_last=2, thread_ids=("t",))
    entries = list(watched.checkpoints.archived("t", actor=operator_))
    assert len(entries) == 2
    for entry in reversed(entries) if first == "oldest" else entries:
        watched.checkpoints.restore(entry.id, actor=operator_)
    assert everything(raw, "t") == before


def test_what_a_dry_run_says_is_freed_is_what_the_run_frees(
    watched: Core, talker: Talk, operator_: Actor
) -> None:
    talker("t", 4)
    trim, whole = Policy(keep_last=3), Policy(idle_days=1e-9)
    stored = watched.checkpoints.usage("t", actor=operator_).total
    for policy, left in ((trim, True), (whole, False)):
        plan = watched.checkpoints.plan_prune(policy, actor=operator_)
        report = watched.checkpoints.prune(plan, actor=operator_)
        assert report.octets == plan.octets > 0
        stored -= plan.octets
        if left:
            assert watched.checkpoints.usage("t", actor=operator_).total == stored
    assert stored == 0


def test_an_idle_thread_comes_back_whole_and_can_be_resumed(
    watched: Core, chain: Chain, aged: Aged, raw: psycopg.Connection[Any], prune: Any,
    operator_: Actor,
) -> None:  # fmt: skip
    agent = chain(("a", lambda s: {"note": "a"}), ("b", lambda s: {"note": "b"}),
                  interrupt_before=["b"])  # fmt: skip
    agent.invoke({"messages": []}, configured("t"))
    aged("t", 40)
    before = everything(raw, "t")
    prune(idle_days=30)
    assert everything(raw, "t") == [[], [], []]
    with pytest.raises(NotFound, match="archived"):
        watched.checkpoints.timeline("t", actor=operator_)
    (entry,) = watched.checkpoints.archived(actor=operator_)
    watched.checkpoints.restore(entry.id, actor=operator_)
    assert everything(raw, "t") == before
    assert watched.checkpoints.resume(agent, "t")["note"] == "b"


def test_a_large_thread_is_archived_in_parts_and_comes_back_whole(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor, prune: Any,
    monkeypatch: pytest.MonkeyPatch, aged: Aged,
) -> None:  # fmt: skip
    monkeypatch.setattr(pruning, "PART_OCTETS", 20_000)
    talker("t", 8, size=1000)
    aged("t", 9)
    before = everything(raw, "t")
    prune(idle_days=7)
    with watched.runtime.engine.connect() as connection:
        parts = connection.scalars(select(CheckpointArchiveRow.part)).all()
    assert len(parts) > 3
    (entry,) = watched.checkpoints.archived("t", actor=operator_)
    watched.checkpoints.restore(entry.id, actor=operator_)
    assert everything(raw, "t") == before


def test_a_thread_that_changed_since_the_dry_run_is_skipped(
    watched: Core, talker: Talk, aged: Aged, operator_: Actor, counts: Counts
) -> None:
    talker("t", 1)
    aged("t", 10)
    plan = watched.checkpoints.plan_prune(Policy(idle_days=7), actor=operator_)
    talker("t", 1)
    before = counts("t")
    report = watched.checkpoints.prune(plan, actor=operator_)
    assert report.threads == 0
    assert report.skipped[0][0] == "t"
    assert "active" in report.skipped[0][1]
    assert counts("t") == before
    assert watched.checkpoints.archived(actor=operator_) == ()


def test_damaged_archive_bytes_are_refused(
    watched: Core, talker: Talk, operator_: Actor, prune: Any
) -> None:
    talker("t", 3)
    prune(keep_last=1)
    with watched.runtime.engine.begin() as connection:
        connection.execute(text("UPDATE checkpoint_archive SET payload = set_byte(payload, 40, 1)"))
    (entry,) = watched.checkpoints.archived(actor=operator_)
    with pytest.raises(StoreError, match="checksum"):
        watched.checkpoints.restore(entry.id, actor=operator_)


def test_an_unknown_archive_entry_is_not_found(watched: Core, operator_: Actor) -> None:
    for key in ("nonsense", "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(NotFound):
            watched.checkpoints.restore(key, actor=operator_)


def test_pruning_and_restoring_are_in_the_history(
    watched: Core, talker: Talk, operator_: Actor, prune: Any
) -> None:
    talker("t", 3)
    prune(keep_last=1)
    watched.checkpoints.restore(watched.checkpoints.archived(actor=operator_)[0].id,
                                actor=operator_)  # fmt: skip
    with watched.runtime.engine.connect() as connection:
        rows = connection.execute(
            select(HistoryRow.actor, HistoryRow.action, HistoryRow.subject_id, HistoryRow.after)
            .where(HistoryRow.kind == "thread")
            .order_by(HistoryRow.id)
        ).all()
    assert [tuple(r)[:3] for r in rows] == [
        ("operator", "prune", "t"),
        ("operator", "restore", "t"),
    ]
    assert rows[0].after["checkpoints"] == 8


def test_nothing_is_pruned_on_a_database_marked_read_only(
    watched: Core, talker: Talk, database_url: str, tmp_path: Path, operator_: Actor,
    monkeypatch: pytest.MonkeyPatch, counts: Counts,
) -> None:  # fmt: skip
    talker("t", 3)
    plan = watched.checkpoints.plan_prune(Policy(keep_last=1), actor=operator_)
    before = counts("t")
    monkeypatch.delenv("CHECKPOINT_READ_ONLY")
    with open_core(url=database_url, home=tmp_path) as core:
        for forbidden in (
            lambda: core.checkpoints.prune(plan, actor=operator_),
            lambda: core.checkpoints.restore("x", actor=operator_),
            lambda: core.checkpoints.delete_thread("t", actor=operator_),
            lambda: core.checkpoints.saver(),
        ):
            with pytest.raises(PermissionDenied, match="read-only"):
                forbidden()
        assert core.checkpoints.plan_prune(Policy(keep_last=1), actor=operator_).checkpoints == 8
    assert counts("t") == before


def test_reading_connections_cannot_write(watched: Core, operator_: Actor) -> None:
    watched.checkpoints.source(actor=operator_)
    store = watched.checkpoints._open()
    with pytest.raises(Exception, match="does not accept writes"), store.reading() as connection:
        connection.execute("DELETE FROM checkpoints")


def test_forgetting_a_thread_cleans_every_table_and_no_other_thread(
    watched: Core, talker: Talk, operator_: Actor, counts: Counts, prune: Any
) -> None:
    talker("t1", 3)
    talker("t2", 3)
    watched.checkpoints.snapshot("t1", actor=operator_)
    prune(keep_last=2, thread_ids=("t1",))
    other, mine = counts("t2"), counts("t1")
    done = watched.checkpoints.delete_thread("t1", actor=operator_)
    assert (done.checkpoints, done.blobs, done.writes) == mine
    assert (done.archived, done.snapshots) == (1, 1)
    assert counts("t1") == (0, 0, 0)
    assert counts("t2") == other
    assert watched.checkpoints.archived("t1", actor=operator_) == ()
    assert watched.checkpoints.snapshots("t1", actor=operator_) == ()


def test_a_process_killed_while_pruning_loses_nothing(
    watched: Core, talker: Talk, aged: Aged, raw: psycopg.Connection[Any], operator_: Actor,
    database_url: str, tmp_path: Path, prune: Any,
) -> None:  # fmt: skip
    """Killed between the archive's commit and the delete: both are there, and the next run sorts
    it out."""
    talker("t", 3)
    aged("t", 9)
    before = everything(raw, "t")
    script = """
import os, signal, sys
from memcore.core import open_core
from memcore.models import Actor
from memcore.services.checkpoints import Policy, pruning
pruning._delete = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
me = Actor("operator", operator=True)
with open_core(url=sys.argv[1], home=sys.argv[2]) as core:
    core.checkpoints.prune(core.checkpoints.plan_prune(Policy(idle_days=7), actor=me), actor=me)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, database_url, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    assert everything(raw, "t") == before
    with watched.runtime.engine.connect() as connection:
        assert connection.scalars(select(CheckpointArchiveRow.state)).all() == ["moving"]
    assert prune(idle_days=7).threads == 1
    (entry,) = watched.checkpoints.archived(actor=operator_)
    watched.checkpoints.restore(entry.id, actor=operator_)
    assert everything(raw, "t") == before
