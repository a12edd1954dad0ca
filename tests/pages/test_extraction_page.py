"""The Extraction page: paste, extract, look, tick, accept; the log and its comparison."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from memcore.core import Core
from memcore.models import Actor, Library, Subject
from tests.pages.conftest import Open, words

OPERATOR = Actor("op", operator=True)
TALK = "用户：记住：我对荞麦过敏。我家有三只猫。\n助手：好的，我也喜欢猫。\n用户：猫粮怎么选？"


@pytest.fixture
def page(core: Core, library: Library, open_page: Open) -> AppTest:
    core.people.introduce("ines")
    return open_page(core, "extraction")


def extract(at: AppTest, text: str) -> AppTest:
    at.text_area(key="extraction_text").set_value(text).run()
    at.button(key="extraction_run").click().run()
    assert not at.exception
    return at


def stored(core: Core) -> list[str]:
    return sorted(m.content for m in core.memories.browse(actor=OPERATOR).memories)


def test_proposals_are_shown_with_evidence_and_verdict_and_stored_when_ticked(
    core: Core, page: AppTest
) -> None:
    at = extract(page, TALK)
    assert stored(core) == []
    text = words(at).replace("\\", "")
    assert "the gate would store it" in text
    assert "zh.remember + zh.allergy" in text
    assert "confidence 0.95 / 0.70" in text
    ticks = {c.label.replace("\\", ""): c for c in at.checkbox}
    assert set(ticks) == {"用户对荞麦过敏", "用户家有三只猫"}
    assert at.button(key="extraction_accept").disabled
    ticks["用户对荞麦过敏"].check().run()
    at.button(key="extraction_accept").click().run()
    assert not at.exception
    assert stored(core) == ["用户对荞麦过敏"]
    assert [c.label for c in at.checkbox] == ["用户家有三只猫"]


def test_all_that_the_gate_would_store_can_be_ticked_at_once(core: Core, page: AppTest) -> None:
    at = extract(page, TALK)
    at.button(key="extraction_tick_all").click().run()
    at.button(key="extraction_accept").click().run()
    assert len(stored(core)) == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"role": "user", "content": "我对荞麦过敏"}\n{"role": "assistant", "content": "好"}',
        json.dumps([{"role": "user", "content": [{"type": "text", "text": "我对荞麦过敏"}]}]),
        json.dumps({"conversation": {"session_1": [{"speaker": "Lin", "text": "我对荞麦过敏"}]}}),
    ],
)
def test_every_form_can_be_pasted(page: AppTest, text: str) -> None:
    at = extract(page, text)
    assert [c.label.endswith("对荞麦过敏") for c in at.checkbox] == [True]


def test_what_is_no_conversation_says_which_forms_there_are(page: AppTest) -> None:
    page.text_area(key="extraction_text").set_value("just words").run()
    assert not page.exception
    assert page.button(key="extraction_run").disabled
    assert any("No conversation was found" in str(e.value) for e in page.error)


def test_an_unanswered_request_to_remember_can_be_saved_by_hand(page: AppTest) -> None:
    at = extract(page, "用户：记住了吗？")
    assert "Asked to remember" in words(at)
    (button,) = [b for b in at.button if (b.key or "").startswith("extraction_hand_")]
    button.click().run()
    assert not at.exception
    assert at.text_area(key="add_content").value == "记住了吗？"


def test_a_run_is_repeated_and_set_beside_the_first(core: Core, page: AppTest) -> None:
    at = extract(page, TALK)
    at.button(key="extraction_again").click().run()
    assert not at.exception
    assert len(core.conversations.runs(actor=OPERATOR)) == 2
    assert "2 in both, 0 in one" in words(at)


def test_failed_and_empty_runs_are_told_apart_in_the_log(core: Core, page: AppTest) -> None:
    extract(page, "用户：今天天气不错")
    at = page
    assert "nothing" in words(at)
    log = at.dataframe[-1].value
    assert list(log["Outcome"]) == ["nothing"]


def test_a_stored_conversation_can_be_extracted(
    core: Core, library: Library, open_page: Open
) -> None:
    who = Subject(library.id, "ines", session_id="s1")
    core.conversations.start(who, title="猫")
    core.conversations.append("s1", [{"role": "user", "content": "我家有三只猫"}], actor=OPERATOR)
    at = open_page(core, "extraction", state={"extraction_source": "Stored"})
    at.button(key="extraction_run").click().run()
    assert not at.exception
    assert [c.label for c in at.checkbox] == ["用户家有三只猫"]


def test_other_peoples_runs_and_conversations_stay_theirs(
    core: Core, library: Library, open_page: Open
) -> None:
    core.people.introduce("tom")
    who = Subject(library.id, "ines", session_id="s1")
    core.conversations.start(who, title="private talk")
    core.conversations.append("s1", [{"role": "user", "content": "我家有三只猫"}], actor=OPERATOR)
    core.conversations.extract("s1", actor=OPERATOR, now=True)
    at = open_page(core, "extraction", state={"frame_actor": "tom", "extraction_source": "Stored"})
    assert not at.exception
    text = words(at)
    assert "private talk" not in text
    assert "三只猫" not in text
