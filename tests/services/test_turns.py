"""A turn from message to memory; the demonstration across sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from memcore.core import Core
from memcore.errors import ConfigError, EndpointRefused
from memcore.extraction.summarise import LLMSummariser
from memcore.models import Actor, Library, Message, Subject
from memcore.services.conversations import ChatReplier, ScriptedReplier
from memcore.services.conversations.working import current
from tests.loopback import KEY, Loopback

ME = Actor("u1")


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with Loopback() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("MEMCORE_ALLOWED_ENDPOINTS", running.host)
        yield running


@pytest.fixture
def here(core: Core, who: Subject, library: Library) -> Subject:
    core.libraries.set(library.id, {"extraction_interval": 2})
    agent = core.libraries.create_agent("desk", library_id=library.id)
    return replace(who, agent_id=agent.id)


def test_what_is_said_in_one_session_is_recalled_in_the_next(core: Core, here: Subject) -> None:
    script = ScriptedReplier()
    first = core.conversations.turn("记住：我对荞麦过敏", subject=here, replier=script)
    assert (first.run, first.turns_left) == (None, 1)
    assert first.reply.content == "好的，我在听。"
    second = core.conversations.turn("我下个月要去敦煌", subject=here, replier=script)
    assert second.run is not None
    assert second.run.counts["added"] == 2
    assert second.turns_left == 2
    later = core.conversations.turn(
        "荞麦面我能吃吗？", subject=replace(here, session_id="s2"), replier=script
    )
    assert "用户对荞麦过敏" in later.reply.content
    assert later.context.recall is not None
    assert "用户对荞麦过敏" in later.context.block.text
    assert [m.content for m in later.context.messages if m.role != "system"] == ["荞麦面我能吃吗？"]


def test_the_agents_own_recall_is_not_extracted_again(core: Core, here: Subject) -> None:
    script = ScriptedReplier()
    core.memories.add_explicit_memory("用户对荞麦过敏", subject=here)
    for text in ("荞麦面我能吃吗？", "荞麦茶呢，能喝吗？"):
        turn = core.conversations.turn(text, subject=here, replier=script)
    assert turn.run is not None
    assert (turn.run.outcome, turn.run.items) == ("nothing", ())


def test_working_memory_lasts_one_call(core: Core, here: Subject) -> None:
    turn = core.conversations.turn("你好", subject=here, replier=ScriptedReplier())
    assert [(t.what, t.done) for t in turn.working.todo] == [
        ("Recall", True), ("Answer", True), ("Remember", True),
    ]  # fmt: skip
    assert [t.name for t in turn.working.tools] == ["memory_search", "extract"]
    assert turn.working.thoughts
    assert current() is None


def test_a_chat_model_answers_with_the_memories_in_its_prompt(
    core: Core, here: Subject, loopback: Loopback
) -> None:
    core.libraries.set(here.library_id, {"extraction_model": "loop-chat"})
    core.memories.add_explicit_memory("用户对荞麦过敏", subject=here)
    loopback.say("<think>hm</think>最好别吃荞麦面。")
    replier = core.conversations.replier(here.library_id)
    assert isinstance(replier, ChatReplier)
    turn = core.conversations.turn("荞麦面我能吃吗？", subject=here, replier=replier)
    assert turn.reply.content == "最好别吃荞麦面。"
    sent = loopback.asked("/v1/chat/completions")[0].body["messages"]
    assert [m["role"] for m in sent] == ["system", "user"]
    assert "用户对荞麦过敏" in sent[0]["content"]


def test_a_model_that_fails_keeps_nothing_of_the_turn(
    core: Core, here: Subject, loopback: Loopback
) -> None:
    core.libraries.set(here.library_id, {"extraction_model": "absent"})
    replier = core.conversations.replier(here.library_id)
    with pytest.raises(EndpointRefused):
        core.conversations.turn("你好", subject=here, replier=replier)
    assert core.conversations.messages("s1", actor=ME) == ()


def test_the_librarys_model_extracts_and_sums_up(
    core: Core, here: Subject, loopback: Loopback
) -> None:
    core.libraries.set(here.library_id, {"extraction_model": "loop-chat"})
    extractor = core.conversations.extractor(here.library_id)
    assert extractor.name == "llm:loop-chat"
    assert core.conversations.extractor(here.library_id, model="").name == "rules"
    core.conversations.start(here)
    core.conversations.append(
        "s1", [{"role": "user", "content": f"第 {n} 句"} for n in range(22)], actor=ME
    )
    loopback.say("用户数了二十二句。")
    assert core.conversations.short_term("s1", actor=ME).summary == "用户数了二十二句。"
    core.conversations.append("s1", [{"role": "user", "content": "又一句，预算 9 元"}], actor=ME)
    loopback.say("半句没有写完", finish_reason="length")
    later = core.conversations.short_term("s1", actor=ME).summary
    assert later.startswith("用户数了二十二句。\nuser: 第 2 句")


def test_a_summary_keeps_its_budget_in_whole_sentences(core: Core, loopback: Loopback) -> None:
    from memcore.core import chat_client

    loopback.say("一二三四五六七八九十。甲乙丙丁戊己庚辛壬癸。")
    client = chat_client()
    made = LLMSummariser(client, "loop-chat").extend("", [Message("a", "user", "x")], 15)
    client.close()
    assert made == "一二三四五六七八九十。"


def test_a_custom_prompt_is_checked_when_it_is_set(core: Core, library: Library) -> None:
    with pytest.raises(ConfigError, match="ask for JSON"):
        core.libraries.set(library.id, {"extraction_prompt": "Write down what matters."})
    good = "Return a JSON array of objects with type, title, content and tags."
    assert core.libraries.set(library.id, {"extraction_prompt": good}).overrides
