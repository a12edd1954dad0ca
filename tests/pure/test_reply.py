# ruff: noqa: E501
"""Replies as models, gateways and truncation make them."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.extraction import Extraction, Known, Outcome
from memcore.extraction.reply import read_reply
from memcore.models import MemoryType, Scope

ITEM = {"content": "周末常去爬山", "type": "habit", "confidence": 0.9}
ONE = json.dumps({"memories": [ITEM]}, ensure_ascii=False)
DRAFT = '{"memories":[{"content":"这是草稿","type":"fact","confidence":1}]}'


def kept(extraction: Extraction) -> list[str]:
    return [p.draft.content for p in extraction.proposals]


def held(extraction: Extraction) -> dict[str, list[str]]:
    return {p.draft.content: [f.kind for f in p.flags] for p in extraction.held}


def reply_of(*items: Any) -> str:
    return json.dumps({"memories": list(items)}, ensure_ascii=False)


@pytest.mark.parametrize(
    "reply",
    [
        ONE,
        f"\ufeff  {ONE}\n",
        f"```json\n{ONE}\n```",
        f"``` Json \r\n{ONE}\r\n```  \r\n",
        f"~~~\n{ONE}\n~~~",
        f"```{ONE}```",
        f"```json\n{ONE}",
        f"Here you are:\n```\n{ONE}\n```\nAnything else?",
        f"找到一条：{ONE} 完毕。",
        f"Fill in {{type, content}} or [{{type}}] as told. {ONE}",
        f"见 [1] 和 [] 的说明。{ONE}",
        f'格式是 {{"memories":[{{"content":"string","type":"string"}}]}}，结果：{ONE}',
        f"<think>想一想 {DRAFT}</think>{ONE}",
        f"<THINKING>\n{DRAFT}\n</THINKING>\n\n```json\n{ONE}\n```",
        f"<think>a <think>b</think> {DRAFT}</think>{ONE}",
        f"{DRAFT} 不对，重来。</think>\n{ONE}",
        f'<reasoning effort="low">{DRAFT}</reasoning>{ONE}<think>好了</think>',
        f"◁think▷{DRAFT}◁/think▷{ONE}",
        f"[THINK]{DRAFT}[/THINK]{ONE}",
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>{ONE}<|return|>",
        json.dumps(ONE),
        json.dumps({"memories": json.dumps([ITEM])}),
        json.dumps([ITEM]),
        json.dumps(ITEM),
        json.dumps({"result": {"data": [ITEM]}}),
        json.dumps({"status": "done", "items": [ITEM]}),
        json.dumps({"0": ITEM}),
        json.dumps([[ITEM]]),
        json.dumps({"habits": ["周末常去爬山"]}, ensure_ascii=False),
        json.dumps({"习惯": [{"内容": "周末常去爬山"}]}, ensure_ascii=False),
        json.dumps({"memories": [{"周末常去爬山": "habit"}]}, ensure_ascii=False),
        json.dumps({"memories": [{"memory": "周末常去爬山", "memory_type": "Habit"}]}),
        f'<tool_call>{{"name": "save", "arguments": {ONE}}}</tool_call>',
        '{"memories":[{"content":"周末常去爬山","type":"habit","confidence":0.9,},]}',
        "{'memories': [{'content': '周末常去爬山', 'type': 'habit', 'tags': None, 'ok': True}]}",
        "{memories: [{content: '周末常去爬山', type: habit}]}",
        "{“memories”：[{“content”：“周末常去爬山”，“type”：“习惯”}]}",
        "｛\"memories\"：［｛\"content\"：\"周末常去爬山\"，\"type\"：\"habit\"｝］｝",
        '{"memories": [ // one\n {"content": "周末常去爬山", /* so */ "type": "habit"}]}',
        '{"memories":[{"content":"周末常去爬山" "type":"habit"}]}',
        '{"memories":[{"content":"周末常去爬山","type":"habit"}, ...]}',
        '{"memories":[{"content":"周末常去爬山","type":"habit"}}',
    ],
)  # fmt: skip
def test_one_habit_is_read_whatever_it_is_wrapped_in(reply: str) -> None:
    read = read_reply(reply)
    assert kept(read) == ["周末常去爬山"]
    assert read.proposals[0].draft.memory_type is MemoryType.HABIT
    assert read.outcome in (Outcome.OK, Outcome.DEGRADED)
    assert not read.truncated


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ('{"memories":[{"content":"函数写成 f({x}) 或 [a, b,] 都行","confidence":0.8,}]}', "函数写成 f({x}) 或 [a, b,] 都行"),
        ('{"memories":[{"content":"他说"慢一点"再走","type":"fact"}]}', '他说"慢一点"再走'),
        ('{"memories":[{"content":"文档在 https://a.example//b","type":"reference",}]}', "文档在 https://a.example//b"),
        ('{"memories":[{"content":"第一行\n\t第二行",}]}', "第一行\n\t第二行"),
        ('{"memories":[{"content":"放在 C:\\Users\\lin 下",}]}', "放在 C:\\Users\\lin 下"),
        ('{"memories":[{"content":"示例用 ```sql 围栏"}]}', "示例用 ```sql 围栏"),
        ('```json\n{"memories":[{"content":"讨论过 <think> 标签"}]}\n```', "讨论过 <think> 标签"),
        ('说明：{"memories":[{"content":"结束标签是 </think> 这样写"}]}', "结束标签是 </think> 这样写"),
        ('{"memories":[{"content":"\\ud83d\\ude00 和 \\u4f60",}]}', "😀 和 你"),
    ],
)  # fmt: skip
def test_what_stands_inside_a_string_is_left_as_it_is(reply: str, said: str) -> None:
    assert kept(read_reply(reply)) == [said]


@pytest.mark.parametrize(
    ("reply", "outcome", "word"),
    [
        ("", Outcome.UNPARSABLE, "empty"),
        (" \n\t", Outcome.UNPARSABLE, "empty"),
        (None, Outcome.UNPARSABLE, "empty"),
        ("{}", Outcome.UNPARSABLE, "empty object"),
        ("null", Outcome.UNPARSABLE, "null"),
        ("[1, 2]", Outcome.UNPARSABLE, "list of 2"),
        ('"just words"', Outcome.UNPARSABLE, "string"),
        ('{"status": "ok"}', Outcome.UNPARSABLE, "status"),
        ('{"error": {"message": "quota"}}', Outcome.UNPARSABLE, "quota"),
        ('{"type": "object", "properties": {"memories": {}}}', Outcome.UNPARSABLE, "properties"),
        ("plain words", Outcome.UNPARSABLE, "no JSON"),
        ("<item>住在杭州</item>", Outcome.UNPARSABLE, "XML"),
        ("- 住在杭州\n- 养猫", Outcome.UNPARSABLE, "list in prose"),
        (f"<think>我该输出 {ONE}", Outcome.UNPARSABLE, "reasoning only"),
        ("<thought>hm</thought>", Outcome.UNPARSABLE, "reasoning only"),
        ("很抱歉，我不能处理这段对话。", Outcome.REFUSED, "refused"),
        ("I cannot help with that.", Outcome.REFUSED, "refused"),
        ("There is not enough information here.", Outcome.REFUSED, "refused"),
        ("[" * 20_000, Outcome.UNPARSABLE, "cannot be read"),
        ('{"a":' * 20_000, Outcome.UNPARSABLE, "cannot be read"),
    ],
)
def test_a_failure_is_named_and_is_no_empty_result(
    reply: str | None, outcome: Outcome, word: str
) -> None:
    read = read_reply(reply)
    assert (read.outcome, read.failed) == (outcome, True)
    assert word in read.detail
    assert read.extracted == 0


@pytest.mark.parametrize(
    "reply", ["[]", '{"memories":[]}', "```json\n[]\n```", '{"memories":null}', "无", "None.", '["无"]', '{"memories":["none"]}',
              f"<think>{DRAFT}</think>[]"],
)  # fmt: skip
def test_nothing_worth_keeping_is_no_failure(reply: str) -> None:
    read = read_reply(reply)
    assert (read.outcome, read.failed, read.extracted) == (Outcome.NOTHING, False, 0)


def test_nothing_is_said_to_be_missed_when_somebody_asked_to_remember() -> None:
    talk = [{"id": "a7", "role": "user", "content": "记住，周五我不在。"}]
    read = read_reply("[]", conversation=talk)
    assert read.missed == ("a7",)
    assert "asked to remember" in read.detail


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "FinishReason.length"])
def test_running_out_of_tokens_names_the_limit(reason: str) -> None:
    read = read_reply(None, message={"content": None}, finish_reason=reason, max_tokens=512)
    assert (read.outcome, read.truncated) == (Outcome.TRUNCATED, True)
    assert "512" in read.detail


def test_a_cut_reply_gives_its_complete_items_and_never_half_of_one() -> None:
    text = reply_of({"content": "预算 5000 元", "type": "constraint"}, {"content": "工期 90 天"})
    read = read_reply(text[: text.index("90") + 1], finish_reason="length")
    assert kept(read) == ["预算 5000 元"]
    assert (read.outcome, read.truncated) == (Outcome.TRUNCATED, True)
    assert [s.reason for s in read.skipped] == ["cut_off"]


def test_a_model_that_finished_and_forgot_a_bracket_is_not_cut() -> None:
    text = ONE[:-2]
    assert read_reply(text, finish_reason="stop").outcome is Outcome.DEGRADED
    assert read_reply(text, finish_reason="length").outcome is Outcome.TRUNCATED
    assert read_reply(text).outcome is Outcome.TRUNCATED


def test_an_object_that_is_cut_does_not_lend_its_inner_texts() -> None:
    assert kept(read_reply('{"memories":[{"evidence":{"text":"原话在此"},"content":"只有一')) == []


ITEMS = st.lists(
    st.fixed_dictionaries(
        {"content": st.text(min_size=1, max_size=30), "type": st.sampled_from(["fact", "偏好"])},
        optional={"confidence": st.floats(0, 1), "tags": st.lists(st.text(max_size=5), max_size=2)},
    ),
    min_size=1,
    max_size=4,
)


@given(ITEMS, st.integers(0, 400), st.booleans(), st.sampled_from(["length", "stop", None]))
def test_no_cut_of_a_reply_yields_a_statement_the_whole_does_not_have(
    items: list[dict[str, Any]], at: int, pretty: bool, reason: str | None
) -> None:
    text = json.dumps({"memories": items}, ensure_ascii=pretty, indent=1 if pretty else None)
    whole = {p.draft.content for p in _all(read_reply(text))}
    # Collapsing looks at all items, so a shorter reply may keep what a longer one folded in.
    whole |= {
        c
        for i in items
        for c in kept(read_reply(reply_of(i))) + list(held(read_reply(reply_of(i))))
    }
    part = read_reply(text[:at], finish_reason=reason)
    assert {p.draft.content for p in _all(part)} <= whole


def _all(read: Extraction) -> tuple[Any, ...]:
    return (*read.proposals, *read.held)


JUNK = st.text(
    alphabet=st.sampled_from(list("{}[]\"':,\\/ \n“”`<>think-memoriesct0.9e用户，：")), max_size=80
)


@given(st.one_of(st.text(), JUNK, JUNK.map(lambda j: ONE[:30] + j + ONE[30:])))
def test_any_text_is_read_and_every_item_accounted_for(text: str) -> None:
    read = read_reply(text)
    assert read.extracted == sum((read.kept, len(read.held), len(read.skipped), read.collapsed))
    for proposal in _all(read):
        assert 0 <= proposal.draft.confidence <= 1
        assert proposal.draft.content.strip()
    assert not (read.outcome is Outcome.NOTHING and read.kept)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
                    lambda s: st.lists(s, max_size=3) | st.dictionaries(
                        st.sampled_from(["memories", "content", "type", "confidence", "tags", "id",
                                         "action", "title", "scope", "evidence", "x"]), s, max_size=4)))  # fmt: skip
def test_any_json_is_read(value: Any) -> None:
    read = read_reply(json.dumps(value))
    assert all(not math.isnan(p.draft.confidence) for p in _all(read))
    read_reply(value if isinstance(value, dict) else None, message={"content": None, "tool_calls": [
        {"function": {"name": "save", "arguments": value}}]})  # fmt: skip


@pytest.mark.parametrize(
    "piece", ["{", "[", '{"', "[[", "<think>", "```\n", "“", "\\", "{'a':", '{"content":"x",', "/*"]
)
def test_hostile_repetition_is_read_in_bounded_time(piece: str) -> None:
    started = time.perf_counter()
    read_reply(piece * (20_000 // len(piece)))
    assert time.perf_counter() - started < 3


# ---- message forms ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        {"content": ONE},
        {"content": [{"type": "text", "text": ONE[:20]}, {"type": "text", "text": ONE[20:]}]},
        {"content": [{"type": "thinking", "thinking": DRAFT}, {"type": "text", "text": ONE}]},
        {"content": None, "tool_calls": [{"id": "1", "function": {"name": "s", "arguments": ONE}}]},
        {"content": None, "tool_calls": [{"function": {"name": "s", "arguments": json.loads(ONE)}}]},
        {"content": "", "tool_calls": [{"name": "s", "args": json.loads(ONE), "id": "1"}]},
        {"content": "", "tool_calls": [{"function": {"name": "s", "arguments": f"```json\n{ONE}\n```"}}]},
        {"content": None, "function_call": {"name": "s", "arguments": ONE}},
        {"content": [{"type": "tool_use", "id": "1", "name": "s", "input": json.loads(ONE)}]},
        {"content": None, "parsed": json.loads(ONE)},
        {"content": ONE, "reasoning_content": DRAFT},
        {"choices": [{"finish_reason": "stop", "message": {"content": ONE}}]},
    ],
)  # fmt: skip
def test_every_form_of_message_gives_the_same_item(message: dict[str, Any]) -> None:
    assert kept(read_reply(None, message=message)) == ["周末常去爬山"]
    assert kept(read_reply(message)) == ["周末常去爬山"]


def test_one_broken_call_does_not_sink_the_others() -> None:
    calls = [
        {"function": {"name": "s", "arguments": '{"memories":[{"content":"半'}},
        {"function": {"name": "s", "arguments": ONE}},
    ]
    read = read_reply(
        None, message={"content": "", "tool_calls": calls}, finish_reason="tool_calls"
    )
    assert kept(read) == ["周末常去爬山"]
    assert (read.outcome, [s.reason for s in read.skipped]) == (Outcome.DEGRADED, ["broken_call"])


@pytest.mark.parametrize(
    ("message", "reason", "outcome"),
    [
        ({"content": None, "refusal": "No."}, "stop", Outcome.REFUSED),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "stop", Outcome.REFUSED),
        ({"content": None}, "content_filter", Outcome.REFUSED),
        ({"content": "", "reasoning_content": ONE}, "stop", Outcome.UNPARSABLE),
        ({"content": []}, "stop", Outcome.UNPARSABLE),
        ({}, None, Outcome.UNPARSABLE),
        ({"content": None, "tool_calls": [{"function": {"name": "s", "arguments": ""}}]}, "tool_calls", Outcome.UNPARSABLE),
        ({"content": None, "tool_calls": [{"function": {"name": "s", "arguments": '{"memories":[{"conte'}}]}, "length", Outcome.TRUNCATED),
    ],
)  # fmt: skip
def test_a_message_without_payload_says_why(
    message: dict[str, Any], reason: str | None, outcome: Outcome
) -> None:
    assert read_reply(None, message=message, finish_reason=reason).outcome is outcome


# ---- fields -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (0.85, 0.85), ("0.85", 0.85), ("0,85", 0.85), ("85%", 0.85), ("85％", 0.85), (85, 0.85),
        ("~0.85", 0.85), ("0.85 (high)", 0.85), ("17/20", 0.85), ({"value": 0.85}, 0.85),
        ("high", 0.9), ("高", 0.9), ("Medium", 0.6), ("low", 0.3), (None, 0.8), ("", 0.8),
        (0, 0.0), (1, 1.0), (1.2, 1.0), (-0.3, 0.0), ("100%", 1.0), ("0%", 0.0),
    ],
)  # fmt: skip
def test_confidence_is_read_by_one_rule(given: Any, read: float) -> None:
    (proposal,) = read_reply(reply_of({**ITEM, "confidence": given})).proposals
    assert proposal.draft.confidence == pytest.approx(read)


@pytest.mark.parametrize("given", [math.nan, math.inf, True, "quite", [], 300, 10**400, "9/0"])
def test_a_confidence_that_cannot_be_read_waits_for_a_person(given: Any) -> None:
    read = read_reply(
        reply_of({**ITEM, "confidence": given}, {"content": "会拉小提琴", "type": "skill"})
    )
    if given == []:  # an empty list is no value at all
        return
    assert kept(read) == ["会拉小提琴"]
    assert held(read) == {"周末常去爬山": ["confidence_unreadable"]}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("HABIT", "habit"), (" Preference ", "preference"), ("task-progress", "task_progress"),
        ("taskProgress", "task_progress"), ("任务进度", "task_progress"), ("决定", "decision"),
        ("偏好类", "preference"), ("⭐ 技能", "skill"), ("【习惯】", "habit"), ("用户偏好", "preference"), ("MemoryType.SKILL", "skill"),
        ("preferences", "preference"), ("fact | event", "fact"), (["event", "fact"], "event"),
        ("约束", "constraint"), ("资料", "reference"), (None, "fact"), ("no such", "fact"), (7, "fact"),
    ],
)  # fmt: skip
def test_type_names_become_one_spelling(given: Any, read: str) -> None:
    (proposal,) = read_reply(reply_of({**ITEM, "type": given})).proposals
    assert proposal.draft.memory_type == read
    assert bool(proposal.notes) == (given in (None, "no such", 7, "fact | event"))


@pytest.mark.parametrize(
    ("given", "read"),
    [("Project", "project"), ("会话", "session"), ("user-level", "user"), (None, "user"), ("moon", "user")],
)  # fmt: skip
def test_scopes_are_read_and_unknown_ones_are_the_users(given: Any, read: str) -> None:
    (proposal,) = read_reply(reply_of({**ITEM, "scope": given})).proposals
    assert proposal.draft.scope == Scope(read)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["山", "山", " #周末 "], ("山", "周末")), ("山、周末，户外", ("山", "周末", "户外")),
        (None, ()), ({"山": 1}, ("山",)), ([["a"], 3, None], ("3",)),
    ],
)  # fmt: skip
def test_tags_become_a_short_list(given: Any, read: tuple[str, ...]) -> None:
    (proposal,) = read_reply(reply_of({**ITEM, "tags": given})).proposals
    assert proposal.draft.tags == read


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no_content"), ("  ", "no_content"), ("…", "placeholder"), (12, "content_is_no_text"),
        ({"a": 1}, "no_content"), ("N/A", "placeholder"), ("<content>", "placeholder"), ("Memory 1", "placeholder"), ("记忆2", "placeholder"),
        ("抱歉，我没有找到可以记住的信息", "refusal_text"),
    ],
)  # fmt: skip
def test_an_item_without_usable_content_is_skipped_with_its_reason(
    content: Any, reason: str
) -> None:
    read = read_reply(reply_of({**ITEM, "content": content}, ITEM))
    assert kept(read) == ["周末常去爬山"]
    assert [s.reason for s in read.skipped] == [reason]
    assert read.counts == {"extracted": 2, "kept": 1, "held": 0, "skipped": 1, "collapsed": 0}


def test_payloads_one_after_the_other_are_read_together_and_a_remark_ends_them() -> None:
    other = '{"memories":[{"content":"会游泳","type":"skill"}]}'
    assert kept(read_reply(f"{ONE}\n{other}")) == ["周末常去爬山", "会游泳"]
    assert kept(read_reply(f"结果：{ONE} 另一种写法是 {other}")) == ["周末常去爬山"]


def test_repeated_keys_lose_nothing() -> None:
    assert kept(
        read_reply('{"memories":[{"content":"会游泳"}],"memories":[{"content":"会滑雪"}]}')
    ) == ["会游泳", "会滑雪"]
    assert kept(read_reply('{"content":"会游泳","type":"skill","content":"会滑雪"}')) == [
        "会游泳",
        "会滑雪",
    ]


def test_more_than_the_limit_keeps_the_most_certain_in_order() -> None:
    items = [
        {"content": f"第{n}件事情完全不同{'甲乙丙丁'[n]}", "confidence": c}
        for n, c in enumerate((0.9, 0.5, 0.8, 0.95))
    ]
    read = read_reply(reply_of(*items), limit=2)
    assert [p.draft.confidence for p in read.proposals] == [0.9, 0.95]
    assert [s.reason for s in read.skipped] == ["over_limit"] * 2


# ---- repeats within a reply ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "left"),
    [
        ("九月换新系统", "九月换新系统。", ["九月换新系统"]),
        ("用户计划春节回老家", "用户计划春节回老家，坐高铁走", ["用户计划春节回老家，坐高铁走"]),
        ("Uses Rust for the backend services", "Uses Rust for the backend services since 2024", ["Uses Rust for the backend services since 2024"]),
        ("每月预算 3000 元", "每月预算 5000 元", ["每月预算 3000 元", "每月预算 5000 元"]),
        ("用户喜欢吃葱", "用户不喜欢吃葱", ["用户喜欢吃葱", "用户不喜欢吃葱"]),
        ("User likes tea", "The user likes tea.", ["User likes tea"]),
        ("用户喜欢猫", "用户的妻子喜欢猫", ["用户喜欢猫", "用户的妻子喜欢猫"]),
    ],
)  # fmt: skip
def test_repeats_collapse_and_news_does_not(a: str, b: str, left: list[str]) -> None:
    read = read_reply(
        reply_of({"content": a, "confidence": 0.9}, {"content": b, "confidence": 0.8})
    )
    assert kept(read) == left
    assert read.collapsed == 2 - len(left)


def test_of_equal_statements_the_most_certain_stays() -> None:
    read = read_reply(
        reply_of({**ITEM, "confidence": 0.7}, {**ITEM, "type": "event", "confidence": 0.95})
    )
    assert [(p.draft.memory_type, p.draft.confidence) for p in read.proposals] == [("event", 0.95)]


# ---- ids ----------------------------------------------------------------------------------------


def test_an_update_reaches_only_the_memory_it_was_shown() -> None:
    known = [Known("3", "用户在销售部")]
    talk = [{"role": "user", "content": "我调到财务部了"}]
    item = {"action": "update", "content": "用户在财务部", "type": "fact"}
    (right,) = read_reply(reply_of({**item, "id": 3}), conversation=talk, known=known).proposals
    (wrong,) = read_reply(reply_of({**item, "id": "8"}), conversation=talk, known=known).proposals
    assert (right.action, right.target_id) == ("update", "3")
    assert (wrong.action, wrong.target_id) == ("add", None)
    assert "unknown id '8'" in wrong.notes[0]


def test_a_deletion_waits_for_a_person_and_needs_a_known_id() -> None:
    known = [Known("3", "用户在销售部")]
    read = read_reply(
        reply_of(
            {"action": "delete", "id": "3"}, {"action": "delete", "id": "9", "content": "别的"}
        ),
        known=known,
    )
    assert held(read) == {"用户在销售部": ["deletion"]}
    assert [s.reason for s in read.skipped] == ["unknown_id"]


def test_no_change_is_no_memory() -> None:
    read = read_reply(reply_of({**ITEM, "event": "NONE"}))
    assert [s.reason for s in read.skipped] == ["no_change"]
