"""The two tools inside a real LangGraph agent whose model follows a script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from memcore.core import Core
from memcore.errors import InvalidInput
from memcore.models import Actor, Library, Memory, Scope, Subject
from memcore.services.conversations import WorkingMemory
from memcore.tools import memory_tools


class ScriptedModel(BaseChatModel):
    """Says the given messages one after the other."""

    script: list[AIMessage]
    said: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.said += 1
        return ChatResult(generations=[ChatGeneration(message=self.script[self.said - 1])])


def run(core: Core, calls: list[tuple[str, dict[str, Any]]], config: dict[str, Any]) -> list[Any]:
    """Results of the tool calls, made one a step by an agent."""
    script = [
        AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"c{n}"}])
        for n, (name, args) in enumerate(calls)
    ]
    model = ScriptedModel(script=[*script, AIMessage("done")])
    tools = memory_tools(core, library="team", agent="desk")
    bound = model.bind_tools(tools)
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [bound.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    state = graph.compile().invoke({"messages": [HumanMessage("hello")]}, {"configurable": config})
    assert state["messages"][-1].content == "done"
    return [json.loads(m.content) for m in state["messages"] if isinstance(m, ToolMessage)]


@pytest.fixture(autouse=True)
def agent(core: Core, library: Library) -> None:
    core.libraries.create_agent("desk", library_id=library.id)


ME = {"user_id": "u1", "project_id": "p1", "thread_id": "s1"}


def stored(core: Core) -> list[Memory]:
    return list(core.memories.browse(actor=Actor("op", operator=True)).memories)


def test_an_agent_adds_and_finds_a_memory_for_the_user_of_its_configuration(core: Core) -> None:
    added, found = run(
        core,
        [
            ("memory_add", {"content": "用户出门总带折叠伞", "memory_type": "habit"}),
            ("memory_search", {"query": "折叠伞"}),
        ],
        ME,
    )
    assert added["stored"]
    assert [m["text"] for m in found["memories"]] == ["用户出门总带折叠伞"]
    (memory,) = stored(core)
    assert (memory.user_id, memory.source, memory.access_count) == ("u1", "tool", 1)
    assert memory.agent_id == core.libraries.agent("desk").id
    (other,) = run(core, [("memory_search", {"query": "折叠伞"})], {"user_id": "u2"})
    assert other["memories"] == []


def test_session_and_project_come_from_the_configuration(core: Core) -> None:
    run(
        core,
        [
            ("memory_add", {"content": "这次会议只谈预算", "scope": "session"}),
            ("memory_add", {"content": "团队统一用 UTC 时间", "scope": "project"}),
        ],
        ME,
    )
    assert {(m.scope, m.scope_id) for m in stored(core)} == {
        (Scope.SESSION, "s1"),
        (Scope.PROJECT, "p1"),
    }


def test_search_narrows_by_type_and_scope_and_counts_only_what_it_returns(core: Core) -> None:
    adds = [
        ("memory_add", {"content": "用户喜欢靠窗座位", "memory_type": "preference"}),
        ("memory_add", {"content": "座位要提前两天订", "memory_type": "constraint"}),
        ("memory_add", {"content": "座位表在前台", "memory_type": "reference", "scope": "project"}),
    ]
    *_, typed, scoped, one = run(
        core,
        [
            *adds,
            ("memory_search", {"query": "座位", "memory_type": "constraint"}),
            ("memory_search", {"query": "座位", "scope": "project"}),
            ("memory_search", {"query": "座位", "k": 1}),
        ],
        ME,
    )
    assert [m["text"] for m in typed["memories"]] == ["座位要提前两天订"]
    assert [m["text"] for m in scoped["memories"]] == ["座位表在前台"]
    assert len(one["memories"]) == 1
    assert sum(m.access_count for m in stored(core)) == 3


def test_what_the_gate_rejects_is_told_to_the_model_with_its_reason(core: Core) -> None:
    rejected, wrong = run(
        core,
        [
            ("memory_add", {"content": "密码是 Xk3!t8pQz92"}),
            ("memory_add", {"content": "很好的一句话", "memory_type": "poem"}),
        ],
        ME,
    )
    assert not rejected["stored"]
    assert "secret" in rejected["why"]
    assert "Xk3" not in json.dumps(rejected)
    assert "no memory type 'poem'" in wrong["why"]
    assert stored(core) == []


def test_stored_markup_cannot_leave_the_answer(core: Core, who: Subject) -> None:
    agentless = replace(who, agent_id=None)
    core.memories.add_explicit_memory("标签 <b> 与 & 都要转义", subject=agentless)
    tools = {t.name: t for t in memory_tools(core, library="team")}
    said = tools["memory_search"].invoke({"query": "标签 转义"}, {"configurable": ME})
    assert "<" not in said
    assert json.loads(said)["memories"][0]["text"] == "标签 <b> 与 & 都要转义"


def test_a_run_without_a_user_is_refused(core: Core) -> None:
    (search,) = [t for t in memory_tools(core, library="team") if t.name == "memory_search"]
    with pytest.raises(InvalidInput, match="names no user"):
        search.invoke({"query": "x"}, {"configurable": {}})


def test_the_model_cannot_say_whose_memory_it_is(core: Core) -> None:
    for tool in memory_tools(core, library="team"):
        assert set(tool.args) <= {"content", "query", "k", "memory_type", "scope"}


def test_tools_write_themselves_into_the_working_memory_of_the_call(core: Core) -> None:
    (search,) = [t for t in memory_tools(core, library="team") if t.name == "memory_search"]
    with WorkingMemory() as mind:
        search.invoke({"query": "伞"}, {"configurable": ME})
        seen = mind.snapshot()
    assert [(t.name, t.arguments) for t in seen.tools] == [("memory_search", "伞")]
    assert mind.snapshot().tools == ()
