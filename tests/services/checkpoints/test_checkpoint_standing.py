"""What a thread is doing: waiting, failed, due to run, finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memcore.core import Core
from memcore.models import Actor
from memcore.services.checkpoints import ThreadStatus

Talk = Callable[..., None]
Chain = Callable[..., Any]


def configured(thread_id: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, **more}}


def test_a_second_question_is_shown_right_after_the_first_was_answered(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    from langgraph.types import Command, interrupt

    def ask(state: Any) -> Any:
        return {"note": interrupt({"question": "A"}) + interrupt({"question": "B"})}

    agent = chain(("ask", ask))
    agent.invoke({"messages": []}, configured("t"))
    look = watched.checkpoints.checkpoint

    def pending() -> list[Any]:
        return [i.value for i in look("t", actor=operator_).interrupts]

    def waiting() -> list[str]:
        page = watched.checkpoints.threads(actor=operator_, status="waiting")
        return [t.thread_id for t in page.threads]

    assert pending() == [{"question": "A"}]
    assert waiting() == ["t"]
    agent.invoke(Command(resume="1"), configured("t"))
    assert pending() == [{"question": "B"}]
    assert not look("t", actor=operator_).interrupts[0].answered
    assert waiting() == ["t"]
    thread = watched.checkpoints.threads(actor=operator_).threads[0]
    assert (thread.status, thread.nodes) == (ThreadStatus.WAITING, ("ask",))
    agent.invoke(Command(resume="2"), configured("t"))
    assert pending() == []
    assert waiting() == []
    assert look("t", actor=operator_).state["note"] == "12"


def test_of_two_parallel_questions_the_unanswered_one_still_waits(
    watched: Core, operator_: Actor, state_type: type
) -> None:
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command, interrupt

    graph = StateGraph(state_type)
    for name in ("left", "right"):
        graph.add_node(name, lambda state, name=name: {"messages": [interrupt(name)]})
        graph.add_edge(START, name)
    agent = graph.compile(checkpointer=watched.checkpoints.saver())
    agent.invoke({"messages": []}, configured("t"))
    found = watched.checkpoints.checkpoint("t", actor=operator_).interrupts
    assert {i.node for i in found} == {"left", "right"}
    left = next(i for i in found if i.node == "left")
    agent.invoke(Command(resume={left.id: "ok"}), configured("t"))
    (rest,) = watched.checkpoints.checkpoint("t", actor=operator_).interrupts
    assert (rest.node, rest.value) == ("right", "right")


def test_an_error_shows_its_text_and_node(watched: Core, chain: Chain, operator_: Actor) -> None:
    def fail(state: Any) -> Any:
        raise ValueError("the card was declined")

    with pytest.raises(ValueError, match="declined"):
        chain(("pay", fail)).invoke({"messages": []}, configured("t"))
    thread = watched.checkpoints.threads(actor=operator_, status="failed").threads[0]
    assert (thread.status, thread.nodes) == (ThreadStatus.FAILED, ("pay",))
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert found.errors == ("pay: ValueError('the card was declined')",)
    assert found.diagnosis[0].level == "error"
    assert "declined" in found.diagnosis[0].detail


def test_a_breakpoint_leaves_the_thread_unfinished_with_the_node_that_is_due(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    agent = chain(
        ("plan", lambda s: {"note": "x"}),
        ("act", lambda s: {"note": "y"}),
        interrupt_before=["act"],
    )
    agent.invoke({"messages": []}, configured("t"))
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert (found.status, found.next_nodes) == (ThreadStatus.UNFINISHED, ("act",))
    assert "Due to run: act" in found.diagnosis[0].title
    assert agent.get_state(configured("t")).next == found.next_nodes


def graphs(state: type) -> dict[str, Any]:
    """Graphs whose next node is told in another way each: not yet compiled."""
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command, Send

    def made(*edges: tuple[Any, str], defer: str = "", **nodes: Any) -> Any:
        graph = StateGraph(state)
        for name, act in nodes.items():
            graph.add_node(name, act or (lambda s, n=name: {"messages": [n]}), defer=name == defer)
        for before, after in edges:
            graph.add_edge(before, after)
        return graph

    together = [(START, "a"), ("a", "a2"), (START, "b")]
    none = dict.fromkeys(("a", "a2", "b", "c"))
    sends = made((START, "plan"), ("work", "sum"), plan=None, work=None, sum=None)
    sends.add_conditional_edges("plan", lambda s: [Send("work", {"note": str(i)}) for i in "123"],
                                ["work"])  # fmt: skip
    goto = StateGraph(state)
    goto.add_node("a", lambda s: Command(goto="b"), destinations=("b",))
    goto.add_node("b", lambda s: {"messages": ["b"]})
    goto.add_edge(START, "a")
    return {
        "joined": made(*together, (["a2", "b"], "c"), **none),
        "deferred": made(*together, ("a2", "c"), ("b", "c"), defer="c", **none),
        "deferred join": made(*together, (["a2", "b"], "c"), defer="c", **none),
        "sent": sends,
        "told by a command": goto,
    }


@pytest.mark.parametrize("name", ["joined", "deferred", "deferred join", "sent",
                                  "told by a command"])  # fmt: skip
@pytest.mark.parametrize("stop", ["nowhere", "everywhere"])
def test_what_is_due_is_what_langgraph_says_at_every_checkpoint(
    name: str, stop: str, watched: Core, state_type: type, operator_: Actor
) -> None:
    before = ["a2", "b", "c", "work", "sum"] if stop == "everywhere" else []
    graph = graphs(state_type)[name]
    saver = watched.checkpoints.saver()
    known = [n for n in before if n in graph.nodes]
    agent = graph.compile(checkpointer=saver, interrupt_before=known)
    agent.invoke({"messages": []}, configured("t"))
    for _ in range(4):
        listed = watched.checkpoints.threads(actor=operator_).threads[0]
        line = {
            s.checkpoint_id: s for s in watched.checkpoints.timeline("t", actor=operator_).steps
        }
        for number, state in enumerate(agent.get_state_history(configured("t"))):
            key = state.config["configurable"]["checkpoint_id"]
            found = watched.checkpoints.checkpoint("t", key, actor=operator_)
            assert set(found.next_nodes) == set(state.next)
            assert line[key].status is found.status
            if number == 0:
                assert listed.status is found.status
                stuck = watched.checkpoints.threads(actor=operator_, status="unfinished").total
                assert stuck == (found.status is ThreadStatus.UNFINISHED)
                assert (listed.status is ThreadStatus.FINISHED) is (not state.next)
        if not agent.get_state(configured("t")).next:
            break
        agent.invoke(None, configured("t"))
    else:
        pytest.fail("it did not end")


def test_a_functional_graph_asks_once_and_its_node_is_named(
    watched: Core, operator_: Actor
) -> None:
    from langgraph.func import entrypoint, task
    from langgraph.types import interrupt

    @task
    def ask(number: int) -> Any:
        return interrupt(f"Pay {number}?")

    @entrypoint(checkpointer=watched.checkpoints.saver())
    def buy(number: int) -> Any:
        return ask(number).result()

    buy.invoke(20, configured("t"))
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert [(i.value, i.node) for i in found.interrupts] == [("Pay 20?", "buy")]
    assert found.next_nodes == ("buy",)
    (listed,) = watched.checkpoints.threads(actor=operator_).threads
    assert (listed.status, listed.nodes) == (ThreadStatus.WAITING, ("buy",))
    assert watched.checkpoints.resume(buy, "t", "yes") == "yes"


def test_a_cancelled_task_is_not_taken_for_the_cause(
    watched: Core, operator_: Actor, state_type: type, threads_url: str
) -> None:
    import asyncio

    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.graph import START, StateGraph

    async def slow(state: Any) -> Any:
        await asyncio.sleep(5)

    async def boom(state: Any) -> Any:
        raise ValueError("no such shop")

    async def run() -> None:
        async with AsyncPostgresSaver.from_conn_string(threads_url) as saver:
            graph = StateGraph(state_type)
            for node in (slow, boom):
                graph.add_node(node.__name__, node)
                graph.add_edge(START, node.__name__)
            with pytest.raises(ValueError, match="no such shop"):
                await graph.compile(checkpointer=saver).ainvoke({"messages": []}, configured("t"))

    asyncio.run(run())
    diagnosis = watched.checkpoints.checkpoint("t", actor=operator_).diagnosis
    assert [(f.level, f.title) for f in diagnosis] == [
        ("error", "A task failed"),
        ("info", "A task was cancelled because another failed"),
    ]
    assert "no such shop" in diagnosis[0].detail


def test_two_pending_tool_calls_are_listed_with_arguments_and_age(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.types import interrupt

    calls = [
        {"id": "c1", "name": "refund", "args": {"order": 7}},
        {"id": "c2", "name": "mail", "args": {"to": "ann@example.test"}},
    ]
    agent = chain(
        ("think", lambda s: {"messages": [AIMessage("", tool_calls=calls, id="m")]}),
        ("wait", lambda s: {"note": interrupt("May I?")}),
    )
    agent.invoke({"messages": [HumanMessage("refund me")]}, configured("t"))
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert [(c.name, c.args, c.status) for c in found.pending_tool_calls] == [
        ("refund", {"order": 7}, "pending"),
        ("mail", {"to": "ann@example.test"}, "pending"),
    ]
    assert all(c.since == found.created_at.replace(microsecond=c.since.microsecond)
               for c in found.pending_tool_calls if c.since and found.created_at)  # fmt: skip
    assert [m.role for m in found.messages] == ["user", "assistant"]
    assert found.messages[0].kind == "HumanMessage"
