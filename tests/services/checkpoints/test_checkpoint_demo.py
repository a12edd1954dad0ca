"""The demo threads are real ones, and each shows what it is there to show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memcore import demo
from memcore.core import Core
from memcore.demo import threads
from memcore.models import Actor
from memcore.services.checkpoints import Policy, ThreadStatus


def test_demo_threads_show_every_state_at_the_days_of_the_story(
    watched: Core, operator_: Actor
) -> None:
    assert threads.load(watched) == 8
    assert threads.load(watched) == 0
    look = watched.checkpoints
    listed = {t.thread_id: t for t in look.threads(actor=operator_).threads}
    assert listed["demo-holds"].status is ThreadStatus.WAITING
    assert listed["demo-scanner"].status is ThreadStatus.FAILED
    assert listed["demo-kickoff"].status is ThreadStatus.FINISHED
    assert listed["demo-kickoff"].last_activity < datetime.now(UTC) - timedelta(days=18)
    assert listed["demo-holds"].metadata["user_id"] == "haoran"

    waiting = look.checkpoint("demo-holds", actor=operator_)
    assert [a.name for a in waiting.interrupts[0].actions] == ["update_hold_rule", "notify_shops"]
    assert waiting.interrupts[0].actions[0].id == waiting.pending_tool_calls[0].id
    killed = look.checkpoint("demo-morning", actor=operator_)
    assert [i.answered for i in killed.interrupts] == [True]
    assert look.checkpoint("demo-pwa", actor=operator_).pending_tool_calls[0].status == "dangling"
    line = look.timeline("demo-dryrun", actor=operator_)
    assert len(line.forks) == 1
    assert len(line.namespaces) == 2
    usage = look.usage("demo-metrics", actor=operator_)
    assert usage.blob_octets > 20 * usage.live_octets
    idle = look.plan_prune(Policy(idle_days=7, keep_last=5), actor=operator_)
    rules = {p.thread_id: p.rule for p in idle.threads}
    assert rules["demo-kickoff"] == "idle"
    assert rules["demo-holds"] != "idle"
    assert threads.fits(watched) is False  # somebody else's database is not written to unasked
    assert threads.remove(watched) == 8
    assert threads.remove(watched) == look.threads(actor=operator_).total == 0


def test_a_demo_message_leads_to_the_memories_it_was_the_source_of(
    watched: Core, operator_: Actor
) -> None:
    demo.load(watched, embedder="hash:64")
    threads.load(watched)
    found = watched.checkpoints.checkpoint("demo-kickoff", actor=operator_)
    memories = watched.checkpoints.memories_of(
        "demo-kickoff", [m.id for m in found.messages], actor=operator_
    )
    assert any(key for key in memories)
    assert all(m.conversation_id == "demo-kickoff" for ms in memories.values() for m in ms)
