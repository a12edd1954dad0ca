"""The Playground page: the demonstration across sessions, and what each turn shows."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from memcore.core import Core
from memcore.models import Actor, Library, Subject
from tests.pages.conftest import Open, words

OPERATOR = Actor("op", operator=True)


def said(at: AppTest) -> list[str]:
    return [str(m.markdown[0].value).replace("\\", "") for m in at.chat_message]


def begin(core: Core, library: Library, open_page: Open) -> AppTest:
    core.libraries.create_agent("desk", library_id=library.id)
    core.people.introduce("ines")
    at = open_page(core, "playground")
    assert not at.exception
    return at


def test_what_is_told_in_one_session_is_answered_in_the_next(
    core: Core, library: Library, open_page: Open
) -> None:
    at = begin(core, library, open_page)
    at.chat_input(key="playground_say").set_value("记住：我对荞麦过敏").run()
    assert said(at) == ["记住：我对荞麦过敏", "好的，我在听。"]
    at.button(key="playground_next").click().run()
    assert not at.exception
    assert said(at) == []
    stored = core.memories.browse(actor=OPERATOR).memories
    assert [m.content for m in stored] == ["用户对荞麦过敏"]
    at.chat_input(key="playground_say").set_value("荞麦面我能吃吗？").run()
    assert "用户对荞麦过敏" in said(at)[1]
    text = words(at)
    assert "1 memory recalled" in text
    assert "1 went into the prompt" in text
    assert "用户对荞麦过敏" in "".join(str(c.value) for c in at.code)


def test_extract_now_shows_each_verdict_beside_its_limit(
    core: Core, library: Library, open_page: Open
) -> None:
    at = begin(core, library, open_page)
    at.chat_input(key="playground_say").set_value("记住：我对荞麦过敏。可能下周二去拔牙").run()
    at.button(key="playground_extract").click().run()
    assert not at.exception
    text = words(at).replace("\\", "")
    assert "confidence 0.95 / 0.70" in text
    assert "rejected by the gate" in text
    assert "confidence 0.60 / 0.70" in text
    assert "zh.remember" in text


def test_an_earlier_session_can_be_gone_back_to(
    core: Core, library: Library, open_page: Open
) -> None:
    at = begin(core, library, open_page)
    at.chat_input(key="playground_say").set_value("你好呀").run()
    at.button(key="playground_next").click().run()
    (talk,) = core.conversations.conversations(actor=OPERATOR)
    at.button(key=f"playground_to_{talk.id}").click().run()
    assert said(at)[0] == "你好呀"


def test_a_suggestion_starts_the_talk(core: Core, library: Library, open_page: Open) -> None:
    at = begin(core, library, open_page)
    at.button_group(key="playground_suggest").set_value("Tell it something").run()
    assert not at.exception
    assert len(said(at)) == 2


def test_a_user_talks_only_as_themselves(core: Core, library: Library, open_page: Open) -> None:
    core.people.introduce("ines")
    core.people.introduce("tom")
    core.conversations.start(Subject(library.id, "tom", session_id="t1"), title="private")
    at = open_page(core, "playground", state={"frame_actor": "ines"})
    assert at.selectbox(key="playground_user").options == ["ines"]
    assert "private" not in words(at)


def test_a_model_that_cannot_be_reached_is_explained(
    core: Core, library: Library, open_page: Open
) -> None:
    core.libraries.set(library.id, {"extraction_model": "endpoint:gone"})
    at = begin(core, library, open_page)
    at.chat_input(key="playground_say").set_value("你好").run()
    assert not at.exception
    assert any("Answering" in str(e.proto.title or e.value) for e in at.error)


def test_a_prompt_can_be_looked_at_without_counting_as_use(
    core: Core, library: Library, open_page: Open
) -> None:
    at = begin(core, library, open_page)
    who = Subject(library.id, "ines")
    stored = core.memories.add_explicit_memory("用户对荞麦过敏", subject=who).memory
    assert stored is not None
    at.text_input(key="playground_preview").set_value("荞麦面").run()
    assert not at.exception
    assert "用户对荞麦过敏" in "".join(str(c.value) for c in at.code)
    assert "Nothing is summed up" in words(at)
    assert core.memories.get(stored.id, actor=OPERATOR).access_count == 0
