"""Messages, windows, summaries, context: what an agent still has before its eyes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from memcore.core import Core
from memcore.errors import InvalidInput, NotFound
from memcore.models import Actor, Agent, Library, Message, Scope, Subject, ToolCall

ME = Actor("u1")


@pytest.fixture
def agent(core: Core, library: Library) -> Agent:
    return core.libraries.create_agent("desk", library_id=library.id, short_term_memory_size=4)


@pytest.fixture
def here(who: Subject, agent: Agent) -> Subject:
    return replace(who, agent_id=agent.id)


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": t} for t in texts]


def contents(messages: tuple[Message, ...]) -> list[str]:
    return [m.content for m in messages]


def test_messages_come_back_in_order_with_their_tool_calls(core: Core, here: Subject) -> None:
    core.conversations.start(here)
    call = {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    stored = core.conversations.append(
        "s1",
        [
            *said("几点了"),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "12:05"},
        ],
        actor=ME,
    )
    read = core.conversations.messages("s1", actor=ME)
    assert read == stored
    assert [m.role for m in read] == ["user", "assistant", "tool"]
    assert read[1].tool_calls == (ToolCall("c1", "clock", "{}"),)
    assert read[2].tool_call_id == "c1"


def test_a_message_that_is_there_already_changes_nothing(core: Core, here: Subject) -> None:
    core.conversations.start(here)
    message = {"id": "D1:3", "role": "user", "content": "I moved to Ghent"}
    first = core.conversations.append("s1", [message], actor=ME)
    again = core.conversations.append("s1", [message, *said("hello")], actor=ME)
    assert first[0] == again[0]
    assert contents(core.conversations.messages("s1", actor=ME)) == ["I moved to Ghent", "hello"]


def test_writers_at_the_same_time_lose_no_message(core: Core, here: Subject) -> None:
    core.conversations.start(here)
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(lambda n: core.conversations.append("s1", said(f"m{n}"), actor=ME), range(24))
        )
    assert len(core.conversations.messages("s1", actor=ME)) == 24


def test_a_conversation_is_its_users_alone(core: Core, here: Subject) -> None:
    core.conversations.start(here)
    stranger = Actor("u2")
    for attempt in (
        lambda: core.conversations.messages("s1", actor=stranger),
        lambda: core.conversations.append("s1", said("x"), actor=stranger),
        lambda: core.conversations.short_term("s1", actor=stranger),
        lambda: core.conversations.start(replace(here, user_id="u2")),
        lambda: core.conversations.delete_conversation("s1", actor=stranger),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert core.conversations.conversations(actor=stranger) == []
    assert [c.id for c in core.conversations.conversations(actor=ME)] == ["s1"]


def test_a_conversation_needs_a_session(core: Core, here: Subject) -> None:
    with pytest.raises(InvalidInput):
        core.conversations.start(replace(here, session_id=None))


def test_what_leaves_the_window_is_summarised_once(core: Core, here: Subject) -> None:
    core.conversations.start(here)
    core.conversations.append(
        "s1", said("我们决定周五上线。", "预算 3 万。", "三", "四", "五", "六"), actor=ME
    )
    first = core.conversations.short_term("s1", actor=ME)
    assert contents(first.window.kept) == ["三", "四", "五", "六"]
    assert first.summary == "user: 我们决定周五上线。\nuser: 预算 3 万。"
    assert first.summarised == 2
    assert first.tokens == first.window.tokens + first.summary_tokens
    assert core.conversations.short_term("s1", actor=ME) == first
    core.conversations.append("s1", said("七"), actor=ME)
    later = core.conversations.short_term("s1", actor=ME)
    assert later.summary.startswith(first.summary)
    assert later.summarised == 3


def test_the_context_is_the_exact_messages_and_a_preview_leaves_no_trace(
    core: Core, here: Subject
) -> None:
    core.conversations.start(here)
    core.conversations.append("s1", said("一", "二", "三", "四", "我们决定周五上线"), actor=ME)
    stored = core.memories.add_explicit_memory("用户喝燕麦奶", subject=here).memory
    assert stored is not None
    seen = core.conversations.build_context(
        "早餐喝什么？燕麦奶？", subject=here, system="Be brief.", preview=True
    )
    system, *talk = seen.messages
    assert system.content.startswith("Be brief.\n\n")
    assert "用户喝燕麦奶" in system.content
    assert json.dumps({"said": "user: 一"}, ensure_ascii=False) in system.content
    assert [m.content for m in talk] == [
        "二",
        "三",
        "四",
        "我们决定周五上线",
        "早餐喝什么？燕麦奶？",
    ]
    assert seen.summarised
    assert seen.block.included == (stored.id,)
    assert seen.tokens >= sum(len(m.content) for m in talk)
    assert core.memories.get(stored.id, actor=ME).access_count == 0
    core.conversations.build_context("燕麦奶", subject=here)
    assert core.memories.get(stored.id, actor=ME).access_count == 1


def test_the_budget_is_kept_and_what_did_not_fit_is_named(core: Core, here: Subject) -> None:
    core.libraries.set(here.library_id, {"context_token_budget": 130})
    texts = ["仓库钥匙在值班室", "货架下层放重物", "零件入库要贴标签", "叉车周二保养",
             "盘点在每月最后一天", "北门下午六点关"]  # fmt: skip
    for said_once in texts:
        assert core.memories.add_explicit_memory(said_once, subject=here).memory
    seen = core.conversations.build_context("货架 零件 钥匙", subject=here, preview=True)
    assert 0 < seen.block.tokens <= 130
    assert seen.block.left_out
    assert {x.reason for x in seen.block.left_out} == {"over_budget"}
    assert len(seen.block.included) + len(seen.block.left_out) >= 6


def test_handwritten_profile_lines_come_first_and_nothing_twice(core: Core, here: Subject) -> None:
    core.profiles.write("user", "u1", {"role": "护士长"}, library_id=here.library_id, actor=ME)
    stored = core.memories.add_explicit_memory("用户每周三值夜班", subject=here).memory
    assert stored
    seen = core.conversations.build_context("值夜班", subject=here, preview=True)
    assert seen.block.included == ("profile:user:role", stored.id)


def test_an_agent_without_memory_gets_a_prompt_without_memories(core: Core, here: Subject) -> None:
    core.memories.add_explicit_memory("用户喝燕麦奶", subject=here)
    forgetful = core.libraries.create_agent("forgetful")
    seen = core.conversations.build_context(
        "燕麦奶", subject=replace(here, agent_id=forgetful.id, session_id=None)
    )
    assert seen.block.text == ""
    assert "switched off" in seen.notice
    core.libraries.set(here.library_id, {"enabled": False})
    seen = core.conversations.build_context("燕麦奶", subject=here)
    assert seen.block.text == ""
    assert "switched off" in seen.notice


def test_memories_formatted_for_a_prompt_keep_order_and_budget(core: Core, here: Subject) -> None:
    memories = [
        core.memories.add_explicit_memory(t, subject=here, scope=Scope.USER).memory
        for t in ("喜欢爬雪山", "讨厌早起开会", "会修老式收音机")
    ]
    made = core.memories.format_memories_for_prompt([m for m in memories if m])
    rows = [json.loads(r) for r in made.text.splitlines() if r.startswith("{")]
    assert [r["text"] for r in rows] == ["喜欢爬雪山", "讨厌早起开会", "会修老式收音机"]
    assert core.memories.format_memories_for_prompt([], token_budget=10).text == ""


def test_a_deleted_conversation_leaves_its_memories(core: Core, here: Subject) -> None:
    core.conversations.start(here)
    core.conversations.append("s1", said("x"), actor=ME)
    stored = core.memories.add_explicit_memory("用户喝燕麦奶", subject=here).memory
    assert stored
    core.conversations.delete_conversation("s1", actor=ME)
    assert core.conversations.conversations(actor=ME) == []
    assert core.memories.get(stored.id, actor=ME).content == "用户喝燕麦奶"
