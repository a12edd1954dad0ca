"""What no rule names: plain statements are kept, passing talk is not."""

from __future__ import annotations

import pytest

from memcore.extraction import plain
from memcore.extraction.rules import RulesExtractor
from memcore.models import Message


def contents(*turns: str) -> list[str]:
    talk = [Message(f"m{n}", "user", text) for n, text in enumerate(turns, 1)]
    return [p.draft.content for p in RulesExtractor().extract(talk, limit=20).proposals]


@pytest.mark.parametrize(
    ("turn", "content", "kind"),
    [
        ("卖花的，一年歇不了十天", "用户卖花的，一年歇不了十天", "fact"),
        ("颈椎不太好，低头久了晕", "用户颈椎不太好，低头久了晕", "fact"),
        ("封面图往素净里靠，别堆元素", "用户希望封面图往素净里靠，别堆元素", "preference"),
        ("灰度放到两成了，还没出问题", "灰度放到两成了，还没出问题", "task_progress"),
        ("设计稿丢在群文件「终版」里了", "设计稿丢在群文件「终版」里了", "reference"),
        ("会拉二胡，考过八级", "用户会拉二胡，考过八级", "skill"),
        ("cooking for nine on a pension", "Cooking for nine on a pension", "fact"),
        ("Skip anything with video, my line is slow",
         "User wants this: skip anything with video, User's line is slow", "preference"),
        ("no exclamation marks", "User wants this: no exclamation marks", "preference"),
        ("Port 8443 has to stay closed", "Port 8443 has to stay closed", "constraint"),
        ("trying to finish a quilt by Easter 2027",
         "User: trying to finish a quilt by Easter 2027", "event"),
    ],
)  # fmt: skip
def test_a_plain_statement_is_kept_and_typed(turn: str, content: str, kind: str) -> None:
    (proposal,) = RulesExtractor().extract([Message("m", "user", turn)]).proposals
    assert (proposal.draft.content, str(proposal.draft.memory_type)) == (content, kind)
    assert proposal.draft.confidence in (plain.CONFIDENCE, plain.WEAK)


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        ("帮我列三个周末活动", "request"),
        ("write me a haiku about rain", "request"),
        ("哈哈哈太好笑了我不行了", "reaction"),
        ("lol my cat would agree", "reaction"),
        ("我今天好累", "mood"),
        ("I'm so tired today", "mood"),
        ("我会好好考虑的", "promise"),
        ("I'll definitely give it a try", "promise"),
        ("你上次推荐我的那家店不错", "agent"),
        ("You mentioned my garden before", "agent"),
        ("隔壁店上个月关门了", "stranger"),
        ("Someone on the forum uses 3 monitors", "stranger"),
        ("这个我上次看到过", "pointing"),
        ("That reminds me of 1999", "pointing"),
        ("想和你聊聊我的工作", "pleasantry"),
    ],
)
def test_passing_talk_is_left_and_says_why(turn: str, why: str) -> None:
    assert plain.passing(turn) == why
    assert contents(turn) == []


def test_what_somebody_takes_back_is_gone() -> None:
    assert contents("我打算报个陶艺班，已经交钱了", "算了，陶艺班退了") == []
    assert contents("We ship to Oslo on 3 May. Scratch that.") == []
    assert contents("我养了一条柴犬", "开玩笑的") == []


def test_taking_back_leaves_other_statements_alone() -> None:
    assert contents("我对芒果过敏", "我打算报个陶艺班", "算了，陶艺班退了") == ["用户对芒果过敏"]


def test_a_pronoun_joins_the_statement_that_names_its_bearer() -> None:
    assert contents("我家养了一只鹦鹉，叫阿绿。", "它怕吸尘器。") == [
        "用户家养了一只鹦鹉，叫阿绿，它怕吸尘器"
    ]
    assert contents("She only eats soup on Mondays.") == []


def test_hearsay_is_left_but_not_the_word_of_who_may_decide() -> None:
    assert contents("有人说我们该换数据库") == []
    assert contents("客户要求报告必须双语") == ["客户要求报告必须双语"]
    assert contents("My dentist says no sweets for 2 weeks") != []


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01 10:22:31 user prefers dark mode",
        'Traceback (most recent call last):\n  File "my.py", line 3',
        "ERROR we must restart the node",
        "“我最爱吃辣，家住成都”这句怎么断句都行",
    ],
)
def test_logs_and_quoted_speech_are_nobodys_statements(text: str) -> None:
    assert contents(text) == []


def test_where_only_the_speaker_anchors_it_a_person_looks_first() -> None:
    (weak,) = RulesExtractor().extract([Message("m", "user", "我比较内向")]).proposals
    (firm,) = RulesExtractor().extract([Message("m", "user", "我内向了三十年")]).proposals
    assert weak.draft.confidence == plain.WEAK < 0.7 < firm.draft.confidence
