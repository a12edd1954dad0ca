"""Whether a thread waits, failed or has more to do, told from write keys and versions alone."""

from __future__ import annotations

from memcore.services.checkpoints.tasks import (
    NULL_TASK,
    WriteKey,
    next_nodes,
    node_of,
    read_tasks,
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


def test_a_task_path_names_its_node() -> None:
    assert node_of("~__pregel_pull, plan") == "plan"
    assert node_of("~__pregel_push, 0000000001", "abcdef123", {1: "worker"}) == "worker"
    assert node_of("~__pregel_push, 0000000001", "abcdef123") == "task abcdef12"
    assert node_of("", "abcdef123") == "task abcdef12"
