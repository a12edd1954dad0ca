"""Whether a thread waits, failed or has more to do, told from write keys and versions alone."""

from __future__ import annotations

from typing import Any

import pytest

from memcore.services.checkpoints.tasks import (
    NULL_TASK,
    WriteKey,
    named,
    next_nodes,
    node_of,
    read_tasks,
    ready,
    status_of,
)
from memcore.services.checkpoints.values import ThreadStatus


def status(*writes: tuple[str, str], due: tuple[str, ...] = ("ask",)) -> ThreadStatus:
    keys = [WriteKey(task, i, channel, "~__pregel_pull, ask") for i, (task, channel) in
            enumerate(writes)]  # fmt: skip
    return status_of(read_tasks(keys), due)


def test_an_interrupt_waits_until_its_task_records_output() -> None:
    assert status(("t", "__interrupt__")) is ThreadStatus.WAITING
    assert status(("t", "__interrupt__"), ("t", "messages"), due=()) is ThreadStatus.FINISHED
    assert status(("t", "__interrupt__"), ("t", "__no_writes__"), due=()) is ThreadStatus.FINISHED


def test_a_second_question_of_the_same_task_waits_though_the_first_was_answered() -> None:
    writes = (
        (NULL_TASK, "__resume__"),
        ("t", "__resume__"),
        ("t", "__interrupt__"),
    )
    assert status(*writes) is ThreadStatus.WAITING


def test_an_answer_that_no_task_used_leaves_the_thread_unfinished() -> None:
    assert status((NULL_TASK, "__resume__"), ("t", "__interrupt__")) is ThreadStatus.UNFINISHED


def test_one_answered_of_two_parallel_tasks_still_waits_for_the_other() -> None:
    writes = (("a", "__interrupt__"), ("a", "out"), ("b", "__interrupt__"))
    assert status(*writes) is ThreadStatus.WAITING


def test_an_error_is_a_failure() -> None:
    assert status(("t", "__error__")) is ThreadStatus.FAILED
    assert status(("t", "out"), ("t", "__error__")) is ThreadStatus.FAILED


def test_due_nodes_mean_unfinished_and_none_means_finished() -> None:
    assert status() is ThreadStatus.UNFINISHED
    assert status(due=()) is ThreadStatus.FINISHED


def test_a_node_is_due_while_its_trigger_holds_a_version_it_has_not_seen() -> None:
    versions = {"branch:to:ask": "02", "branch:to:plan": "02", "messages": "02"}
    seen = {"plan": {"branch:to:plan": "01"}, "__input__": {"messages": "01"}}
    assert next_nodes(versions, seen, ["branch:to:ask"]) == ("ask",)
    # Emptied channels get a new version too, but hold nothing.
    assert next_nodes(versions, seen, []) == ()
    assert next_nodes(versions, {"ask": {"branch:to:ask": "02"}}, ["branch:to:ask"]) == ()
    assert next_nodes({"topic": 5}, {"worker": {"topic": 4}}, ["topic"]) == ("worker",)


@pytest.mark.parametrize(
    ("channel", "stored", "expected"),
    [
        ("join:read+check:write", ["check", "read"], True),
        ("join:read+check:write", ["check"], False),
        ("join:read+check:write", [], False),
        ("join:a+b+c:write", ["b+c", "a"], True),  # a node may have a plus in its name
        ("join:read:write", [["read"], True], True),  # of a deferred node
        ("join:read:write", [["read"], False], False),
        ("branch:to:write", [None, False], False),
        ("branch:to:write", [None, True], True),
        ("branch:to:write", None, True),
        ("join:read:write", {"__opaque__": "broken msgpack", "bytes": 3, "hex": "c1"}, False),
    ],
)
def test_a_join_is_ready_once_all_of_its_sources_are_done(
    channel: str, stored: Any, expected: bool
) -> None:
    if channel.startswith("join") and isinstance(stored, list):
        named = {"__type__": "builtins.set"}
        inner = {**named, "value": stored[0] if stored and stored[-1] in (True, False) else stored}
        stored = [inner, stored[1]] if stored and stored[-1] in (True, False) else inner
    assert ready(channel, stored) is expected


def test_a_ready_join_makes_its_node_due_and_tasks_name_what_starts_a_functional_graph() -> None:
    versions = {"join:a+b:c": "03", "__start__": "01"}
    assert next_nodes(versions, {"c": {"join:a+b:c": "02"}}, ["join:a+b:c"]) == ("c",)
    assert next_nodes(versions, {}, ["join:a+b:c"]) == ("c",)
    assert next_nodes(versions, {"c": {"join:a+b:c": "03"}}, ["join:a+b:c"]) == ()
    assert next_nodes(versions, {}, ["__start__"]) == ("__start__",)
    tasks = read_tasks([WriteKey("t", 0, "__interrupt__", "~__pregel_pull, flow")])
    assert next_nodes(versions, {}, ["__start__"], tasks) == ("flow",)


def test_tasks_without_a_name_are_counted() -> None:
    assert named(["plan", "sent task", "plan", "sent task"]) == ("plan", "2 sent tasks")
    assert named(["sent task"]) == ("sent task",)


def test_a_task_path_names_its_node() -> None:
    assert node_of("~__pregel_pull, plan") == "plan"
    assert node_of("~__pregel_push, 0000000001", "abcdef123", {1: "worker"}) == "worker"
    assert node_of("~__pregel_push, 0000000001, 0000000000", "abc", {1: "worker"}) == "worker"
    assert node_of("~__pregel_push, 0000000001", "abcdef123") == "sent task"
    called = "~__pregel_push, ~__pregel_pull, flow, 0000000003, 0000000001"
    assert node_of(called, "abcdef123") == "flow"
    assert node_of("", "abcdef123") == "task abcdef12"
