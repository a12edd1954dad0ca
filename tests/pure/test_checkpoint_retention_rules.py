"""Whatever the thread and the policy: what must stay stays, and nothing kept loses a value."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memcore.services.checkpoints.ages import bisect
from memcore.services.checkpoints.deltas import walk
from memcore.services.checkpoints.index import id_before, moment
from memcore.services.checkpoints.ledger import Policy
from memcore.services.checkpoints.retention import (
    CheckpointFacts,
    ThreadFacts,
    freed_blobs,
    plan_thread,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def id_at(at: datetime) -> str:
    return str(uuid.UUID(int=uuid.UUID(id_before(at)).int | 0x8000 << 48))


@st.composite
def threads(draw: st.DrawFn) -> ThreadFacts:
    """A root graph whose checkpoints branch, with a plain channel, a delta channel that has a
    snapshot here and there, and subgraph calls."""
    count = draw(st.integers(1, 12))
    checkpoints: list[CheckpointFacts] = []
    blobs: dict[tuple[str, str, str], int] = {}
    for i in range(count):
        at = NOW - timedelta(hours=draw(st.integers(1, 40 * 24)) if not i else 0)
        parent = draw(st.sampled_from(checkpoints)).id if checkpoints else None
        at = (moment(None, checkpoints[-1].id) or at) + timedelta(hours=1) if checkpoints else at
        version = f"{draw(st.integers(0, i)):03}"
        blobs[("", "messages", version)] = 10
        if draw(st.booleans()):
            blobs[("", "log", f"{i:03}")] = 5
        checkpoints.append(
            CheckpointFacts(
                "", id_at(at), parent, at, 4, {"messages": version, "log": f"{i:03}"}, {},
                None, frozenset({"log"}), False, 1,
            )
        )  # fmt: skip
    calls = []
    for root in draw(st.lists(st.sampled_from(checkpoints), max_size=3, unique_by=lambda c: c.id)):
        ns = f"node:{root.id}"
        at = (root.at or NOW) + timedelta(minutes=5)
        blobs[(ns, "messages", "001")] = 7
        calls.append(
            CheckpointFacts(ns, id_at(at), None, at, 4, {"messages": "001"}, {}, root.id,
                            frozenset(), False, 1)
        )  # fmt: skip
    parents = {c.parent for c in checkpoints}
    leaves = [c.id for c in checkpoints if c.id not in parents]
    waiting = draw(st.sets(st.sampled_from(leaves)))
    writes = {(c.ns, c.id): (1, 3, False) for c in checkpoints}
    return ThreadFacts("t", [*checkpoints, *calls], blobs, writes, frozenset(waiting))


policies = st.builds(
    Policy,
    idle_days=st.none() | st.floats(0.1, 50),
    keep_last=st.none() | st.integers(1, 6),
    max_age_days=st.none() | st.floats(0.1, 50),
)


@given(threads(), policies)
def test_what_must_stay_stays(facts: ThreadFacts, policy: Policy) -> None:
    plan = plan_thread(facts, policy, NOW)
    dropped = set(plan.dropped)
    roots = [c for c in facts.checkpoints if c.ns == ""]
    assert not dropped & {("", i) for i in facts.waiting}
    if plan.rule != "idle":
        assert ("", max(c.id for c in roots)) not in dropped
    else:
        assert not facts.waiting
        assert len(dropped) == len(facts.checkpoints)
    kept = [c for c in facts.checkpoints if (c.ns, c.id) not in dropped]
    freed = freed_blobs(facts, dropped)
    for c in kept:
        assert not freed & {(c.ns, ch, v) for ch, v in c.versions.items()}
    parents = {c.id: c.parent for c in roots}
    stored = {
        c.id: (("", "log", c.versions["log"]) in facts.blobs, None, c.versions["log"])
        for c in roots
    }
    for c in kept:
        if c.ns == "" and not stored[c.id][0]:
            assert not {("", i) for i in walk(parents, stored, c.id).checkpoints} & dropped
    for c in facts.checkpoints:
        if ":" in c.ns and ("", c.root) in dropped:
            assert (c.ns, c.id) in dropped


@given(threads(), policies)
def test_what_a_rule_does_not_touch_stays(facts: ThreadFacts, policy: Policy) -> None:
    plan = plan_thread(facts, policy, NOW)
    if policy.keep_last is not None and plan.rule == "trim":
        newest = sorted((c.id for c in facts.checkpoints if c.ns == ""), reverse=True)
        if policy.max_age_days is None:
            assert not {("", i) for i in newest[: policy.keep_last]} & set(plan.dropped)
    if policy == Policy():
        assert not plan.dropped


@given(threads(), policies)
def test_pruning_again_finds_nothing_more(facts: ThreadFacts, policy: Policy) -> None:
    dropped = set(plan_thread(facts, policy, NOW).dropped)
    left = [c for c in facts.checkpoints if (c.ns, c.id) not in dropped]
    if not left:
        return
    freed = freed_blobs(facts, dropped)
    after = ThreadFacts(
        "t", left, {k: v for k, v in facts.blobs.items() if k not in freed}, {}, facts.waiting
    )
    assert not plan_thread(after, policy, NOW).dropped


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)))
def test_an_id_and_its_moment_are_each_others_inverse(at: datetime) -> None:
    aware = at.replace(tzinfo=UTC)
    assert moment(None, id_at(aware)) == aware
    assert id_before(aware) <= id_at(aware) < id_before(aware + timedelta(microseconds=1))


@given(st.integers(0, 60), st.integers(0, 60))
def test_bisecting_finds_the_first_place(count: int, first: int) -> None:
    expected = first if first < count else None
    assert bisect(count, lambda place: place >= first) == expected
