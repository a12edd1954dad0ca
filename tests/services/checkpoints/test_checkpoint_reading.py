"""Timelines and checkpoints written by real LangGraph agents, read without LangGraph."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ormsgpack
import psycopg
import pytest

from memcore.core import Core
from memcore.errors import NotFound
from memcore.models import Actor, Library, Subject
from memcore.services.checkpoints import ThreadStatus
from memcore.services.checkpoints.timeline import namespace_label

Talk = Callable[..., None]
Chain = Callable[..., Any]


def configured(thread_id: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, **more}}


def test_objects_and_mappings_both_render_in_one_conversation(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    from langchain_core.messages import HumanMessage

    agent = chain(("noop", lambda s: {"note": "ok"}))
    agent.invoke(
        {"messages": [HumanMessage("as object"), {"role": "user", "content": "as mapping"}]},
        configured("t"),
    )
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert [(m.role, m.text) for m in found.messages] == [
        ("user", "as object"),
        ("user", "as mapping"),
    ]


def test_nul_in_the_state_is_saved_and_shown_by_a_visible_sign(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    agent = chain(("noop", lambda s: {"messages": ["in\0side"]}))
    agent.invoke({"messages": [], "note": "abc\0def"}, configured("t"))
    assert agent.get_state(configured("t")).values["note"] == "abc\0def"
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert found.state["note"] == "abc␀def"
    assert found.messages[0].text == "in␀side"
    snapshot = watched.checkpoints.snapshot("t", actor=operator_)
    assert snapshot.agent_state["note"] == "abc␀def"


def test_numbers_that_are_not_finite_are_saved_too(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    agent = chain(("noop", lambda s: {"note": float("inf")}))
    agent.invoke({"messages": [], "note": "x"}, configured("t"))
    assert agent.get_state(configured("t")).values["note"] == float("inf")
    assert watched.checkpoints.checkpoint("t", actor=operator_).state["note"] == "inf"


def test_a_planted_blob_runs_nothing_and_is_named(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor, tmp_path: Path
) -> None:
    talker("t")
    marker = tmp_path / "ran"
    body = ormsgpack.packb(["os", "system", f"touch {marker}"])
    for kind, blob in (
        ("msgpack", ormsgpack.packb(ormsgpack.Ext(0, body))),
        ("pickle", b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR."),
        ("msgpack", ormsgpack.packb(ormsgpack.Ext(77, b"whatever"))),
        ("json", json.dumps({"lc": 2, "type": "constructor", "id": ["os", "system"],
                             "args": [f"touch {marker}"]}).encode()),
    ):  # fmt: skip
        raw.execute(
            "UPDATE checkpoint_blobs SET type = %s, blob = %s WHERE channel = 'messages'",
            (kind, blob),
        )
        found = watched.checkpoints.checkpoint("t", actor=operator_)
        channel = next(c for c in found.channels if c.name == "messages")
        assert channel.octets == len(blob)
        assert channel.types == ("os.system",) or channel.problem
        if kind == "pickle":
            assert any("pickle is refused" in f.detail.lower() for f in found.diagnosis)
        elif channel.types:
            assert any("os.system" in f.detail for f in found.diagnosis)
    assert not marker.exists()


def test_a_blob_too_large_to_decode_is_described_and_not_fetched(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor
) -> None:
    talker("t")
    raw.execute(
        "UPDATE checkpoint_blobs SET blob = decode(repeat('00', 17 * 1024 * 1024), 'hex')"
        " WHERE channel = 'messages'"
    )
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    channel = next(c for c in found.channels if c.name == "messages")
    assert channel.problem == "larger than 16 MB"
    assert channel.value["bytes"] == 17 * 1024 * 1024


def test_classes_of_the_agents_own_are_shown_by_name(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    from dataclasses import make_dataclass

    order = make_dataclass("Order", [("number", int)])
    order.__module__ = "shop.orders"
    agent = chain(("noop", lambda s: {"note": order(7)}))
    agent.invoke({"messages": []}, configured("t"))
    found = watched.checkpoints.checkpoint("t", actor=operator_)
    assert found.state["note"] == {"__type__": "shop.orders.Order", "value": {"number": 7}}
    assert any("shop.orders.Order" in f.detail for f in found.diagnosis)


def test_delta_channels_are_named_and_rebuilt(watched: Core, operator_: Actor) -> None:
    from typing import Annotated, TypedDict

    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph import START, StateGraph

    def joined(state: list[Any], writes: list[list[Any]]) -> list[Any]:
        return [*state, *(x for w in writes for x in w)]

    often = Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=4)]
    seldom = Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=100)]
    graph = StateGraph(TypedDict("Long", {"messages": often, "log": seldom}))
    graph.add_node(
        "speak",
        lambda s: {
            "messages": [{"role": "assistant", "content": f"n{len(s['messages'])}",
                          "id": f"n{len(s['messages'])}"}],
            "log": [len(s["messages"])],
        },
    )  # fmt: skip
    graph.add_edge(START, "speak")
    agent = graph.compile(checkpointer=watched.checkpoints.saver())
    for i in range(7):
        user = {"role": "user", "content": f"u{i}", "id": f"u{i}"}
        agent.invoke({"messages": [user], "log": []}, configured("t"))
        found = watched.checkpoints.checkpoint("t", actor=operator_)
        channel = next(c for c in found.channels if c.name == "messages")
        assert channel.storage == "delta"
        truth = agent.get_state(configured("t")).values
        assert [m.text for m in found.messages] == [m.content for m in truth["messages"]]
    assert any("delta channel" in f.title for f in found.diagnosis)
    log = next(c for c in found.channels if c.name == "log")
    assert [x for w in log.value["writes since"] for x in w] == truth["log"]


def test_an_unknown_checkpoint_is_not_found(watched: Core, talker: Talk, operator_: Actor) -> None:
    talker("t")
    with pytest.raises(NotFound, match="no checkpoint"):
        watched.checkpoints.checkpoint("nobody", actor=operator_)
    with pytest.raises(NotFound, match="nothing-like-it"):
        watched.checkpoints.checkpoint("t", "nothing-like-it", actor=operator_)


# ---- timeline and comparison ---------------------------------------------------------------------


def test_the_timeline_shows_nodes_forks_and_what_each_step_cost(
    watched: Core, chain: Chain, operator_: Actor
) -> None:
    agent = chain(
        ("plan", lambda s: {"todos": [{"content": "x", "status": "pending"}]}),
        ("act", lambda s: {"messages": [{"role": "assistant", "content": "done"}]}),
    )
    agent.invoke({"messages": [{"role": "user", "content": "go"}]}, configured("t"))
    line = watched.checkpoints.timeline("t", actor=operator_)
    assert [s.source for s in line.steps] == ["loop", "loop", "loop", "input"]
    assert [s.nodes for s in line.steps] == [("act",), ("plan",), ("__start__",), ()]
    assert line.steps[0].status is ThreadStatus.FINISHED
    assert line.steps[1].status is ThreadStatus.PASSED
    assert line.forks == ()
    planned = line.steps[1]
    agent.update_state(
        configured("t", checkpoint_id=planned.checkpoint_id), {"note": "another way"}
    )
    line = watched.checkpoints.timeline("t", actor=operator_)
    assert line.forks == (planned.checkpoint_id,)
    assert [s.lane for s in line.steps] == [0, 1, 0, 0, 0]
    spent = sum(s.octets for s in line.steps)
    assert spent == watched.checkpoints.usage("t", actor=operator_).total


def test_subgraph_calls_have_namespaces_with_names(
    watched: Core, operator_: Actor, state_type: type
) -> None:
    from langgraph.graph import START, StateGraph
    from langgraph.types import interrupt

    inner = StateGraph(state_type)
    inner.add_node("deep", lambda s: {"note": interrupt("deep question")})
    inner.add_edge(START, "deep")
    outer = StateGraph(state_type)
    outer.add_node("research", inner.compile())
    outer.add_edge(START, "research")
    agent = outer.compile(checkpointer=watched.checkpoints.saver())
    agent.invoke({"messages": []}, configured("t"))
    line = watched.checkpoints.timeline("t", actor=operator_)
    labels = [namespace_label(ns) for ns in line.namespaces]
    assert labels == ["root graph", "research"]
    root = watched.checkpoints.checkpoint("t", actor=operator_)
    assert [i.value for i in root.interrupts] == ["deep question"]
    inside = watched.checkpoints.checkpoint("t", actor=operator_, checkpoint_ns=line.namespaces[1])
    assert [i.node for i in inside.interrupts] == ["deep"]


def test_two_checkpoints_are_compared(watched: Core, chain: Chain, operator_: Actor) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    call = {"id": "c1", "name": "pay", "args": {}}
    agent = chain(
        ("think", lambda s: {"messages": [AIMessage("", tool_calls=[call], id="m")],
                             "todos": [{"content": "pay", "status": "pending"}]}),
        ("pay", lambda s: {"messages": [ToolMessage("paid", tool_call_id="c1", id="r")],
                           "todos": [{"content": "pay", "status": "done"}]}),
    )  # fmt: skip
    agent.invoke({"messages": [HumanMessage("pay", id="h")]}, configured("t"))
    line = watched.checkpoints.timeline("t", actor=operator_)
    change = watched.checkpoints.diff("t", line.steps[1].checkpoint_id, actor=operator_)
    assert [m.text for m in change.messages_added] == ["paid"]
    assert [(c.path, c.before, c.after) for c in change.changes] == [
        ("todos[0].status", "pending", "done")
    ]
    assert [(c.name, c.status) for c in change.calls_closed] == [("pay", "done")]
    assert change.octets > 0


def test_a_message_leads_to_the_memories_extracted_from_it(watched: Core, operator_: Actor) -> None:
    library: Library = watched.libraries.create("team", embedder="hash:64")
    who = Subject(library.id, user_id="ann", session_id="t")
    added = watched.memories.add_explicit_memory(
        "Ann prefers window seats", subject=who, source_message_id="h1"
    )
    assert added.memory is not None
    found = watched.checkpoints.memories_of("t", ["h1", "h2"], actor=operator_)
    assert [m.content for m in found["h1"]] == ["Ann prefers window seats"]
    assert "h2" not in found
