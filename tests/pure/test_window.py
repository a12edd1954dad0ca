from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.models import Message, ToolCall
from memcore.rules import summary, window
from memcore.rules.tokens import estimate_messages, estimate_tokens


def said(*roles: str) -> list[Message]:
    return [Message(str(i), role, f"text {i}") for i, role in enumerate(roles)]


def call(at: int, *ids: str) -> Message:
    return Message(str(at), "assistant", "", tool_calls=tuple(ToolCall(i, "look_up") for i in ids))


def result(at: int, of: str) -> Message:
    return Message(str(at), "tool", "found", tool_call_id=of)


def ids(messages: Sequence[Message]) -> list[str]:
    return [m.id for m in messages]


def test_a_window_holds_the_newest_messages() -> None:
    view = window.window(said(*["user", "assistant"] * 4), 3)
    assert ids(view.kept) == ["5", "6", "7"]
    assert ids(view.left) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("size", [0, -3])
def test_no_size_means_twenty(size: int) -> None:
    assert len(window.window(said(*["user"] * 30), size).kept) == 20


def test_a_tool_call_leaves_together_with_its_result() -> None:
    talk = [said("user")[0], call(1, "a"), result(2, "a"), *said("user", "user", "user")[1:]]
    view = window.window(talk, 3)
    assert [m.role for m in view.kept] == ["user", "user"]


def test_parallel_calls_stay_with_all_their_results() -> None:
    talk = [call(0, "a", "b"), result(1, "b"), result(2, "a"), Message("3", "assistant", "done")]
    assert ids(window.window(talk, 4).kept) == ["0", "1", "2", "3"]
    assert ids(window.window(talk, 3).kept) == ["3"]


def test_words_between_a_call_and_its_late_result_do_not_split_them() -> None:
    talk = [call(0, "a"), Message("1", "user", "still there?"), result(2, "a")]
    assert ids(window.window(talk, 1).kept) == ["0", "1", "2"]


def test_a_result_without_its_call_is_never_shown() -> None:
    talk = [result(0, "gone"), Message("1", "user", "hello")]
    view = window.window(talk, 5)
    assert ids(view.kept) == ["1"]
    assert ids(view.left) == ["0"]


def test_system_text_is_no_part_of_a_window() -> None:
    assert ids(window.window(said("system", "user"), 5).kept) == ["1"]


@st.composite
def talks(draw: st.DrawFn) -> list[Message]:
    out: list[Message] = []
    open_calls: list[str] = []
    for kind in draw(st.lists(st.sampled_from(["user", "assistant", "call", "result"]))):
        at = len(out)
        if kind == "call":
            names = [f"c{at}-{i}" for i in range(draw(st.integers(1, 3)))]
            open_calls += names
            out.append(call(at, *names))
        elif kind == "result":
            if open_calls:
                out.append(result(at, open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))))
        else:
            out.append(Message(str(at), kind, "text"))
    return out


@given(talks(), st.integers(1, 12))
def test_no_window_splits_a_call_from_a_result_and_nothing_is_lost(
    talk: list[Message], size: int
) -> None:
    view = window.window(talk, size)
    calls = {c.id for m in view.kept for c in m.tool_calls}
    results = {m.tool_call_id for m in view.kept if m.role == "tool"}
    gone = {c.id for m in view.left for c in m.tool_calls}
    assert results <= calls
    assert not gone & results
    assert sorted(ids(view.kept) + ids(view.left)) == sorted(ids(talk))
    assert len(view.kept) <= size or len(window.groups(view.kept)) == 1
    assert not talk or view.kept


def test_the_summary_takes_up_only_what_left_since_it_was_made() -> None:
    view = window.window(said(*["user"] * 6), 2)
    assert ids(window.to_summarise(view, None)) == ["0", "1", "2", "3"]
    assert ids(window.to_summarise(view, "1")) == ["2", "3"]
    assert window.to_summarise(view, "3") == ()


def test_extraction_is_due_after_enough_user_messages_and_sees_some_before() -> None:
    talk = said(*["user", "assistant"] * 6)
    early = window.batch(talk, "7", 3, context=4)
    assert not early.due
    assert early.turns == 2
    assert ids(early.context) == ["4", "5", "6", "7"]
    assert ids(early.new) == ["8", "9", "10", "11"]
    assert window.batch(talk, "5", 3).due


def test_a_message_that_is_gone_restarts_extraction_from_the_beginning() -> None:
    assert window.batch(said("user", "user"), "deleted", 1).turns == 2


def test_a_summary_is_made_of_what_was_said() -> None:
    talk = [
        Message("1", "user", "你好！我们决定周三发版。预算是 3000 元。", name="小何"),
        Message("2", "assistant", "好的，记下了。还有别的安排可以告诉我。"),
        Message("3", "tool", "secret tool output"),
    ]
    text = summary.extend("", talk)
    assert "小何: 我们决定周三发版。" in text
    assert "小何: 预算是 3000 元。" in text
    assert "assistant: 好的，记下了。" in text
    assert "secret" not in text
    assert "你好" not in text


def test_summarising_the_same_messages_again_changes_nothing() -> None:
    talk = [Message("1", "user", "We ship on Friday. The budget is 1.5 million.")]
    once = summary.extend("", talk)
    assert "1.5 million" in once
    assert summary.extend(once, talk) == once
    assert summary.extend(once, []) == once


def test_a_summary_over_budget_loses_its_least_telling_lines() -> None:
    talk = [Message("1", "user", "What a day it is. We decided to pay 300 for the desk.")]
    assert summary.extend("", talk, budget=16) == "user: We decided to pay 300 for the desk."
    assert summary.extend("", talk, budget=1) == ""


@given(st.text(), st.text())
def test_estimates_never_fall_when_text_is_added(a: str, b: str) -> None:
    assert estimate_tokens(a + "\n" + b) >= estimate_tokens(a)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", 0, 0),
        ("a", 1, 1),
        ("The quick brown fox jumps over the lazy dog.", 8, 13),
        ("我们周三下午开会，讨论新的排期。", 12, 20),
        ("2026-05-17", 5, 8),
        ("internationalization", 2, 5),
    ],
)
def test_estimates_are_of_the_right_size(text: str, low: int, high: int) -> None:
    assert low <= estimate_tokens(text) <= high


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("用户对花生过敏，喜欢简洁的回答。", 13),
        ("The user prefers short answers and dislikes long explanations.", 10),
        ("2026-05-17", 6),
        ("https://example.com/a/b?c=1&d=2", 14),
        ("사용자는 짧은 답변을 선호하고 긴 설명을 좋아하지 않습니다.", 18),
        ("d41d8cd98f00b204e9800998ecf8427e", 19),
    ],
)
def test_estimates_are_near_what_a_current_vocabulary_counts(text: str, counted: int) -> None:
    assert abs(estimate_tokens(text) - counted) <= max(2, 0.25 * counted)


def test_each_chat_message_costs_its_wrapping() -> None:
    assert estimate_messages(["", ""]) == 8
