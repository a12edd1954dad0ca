# ruff: noqa: E501
"""Replies in the forms endpoints and models send them: whole responses of several services, several
fences, corrections, escaped and tabular JSON, and enormous ones."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from memcore.extraction import Extraction, Outcome
from memcore.extraction.reply import read_reply

ITEM = {"content": "值班表贴在茶水间", "type": "reference", "confidence": 0.9}
OTHER = {"content": "每逢双周洗车", "type": "habit", "confidence": 0.8}
ONE = json.dumps({"memories": [ITEM]}, ensure_ascii=False)


def kept(extraction: Extraction) -> list[str]:
    return [p.draft.content for p in extraction.proposals]


def listed(*items: dict[str, Any]) -> str:
    return json.dumps(items, ensure_ascii=False)


@pytest.mark.parametrize(
    "response",
    [
        {"candidates": [{"content": {"parts": [{"text": ONE}], "role": "model"}, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": [{"text": "hm {", "thought": True}, {"text": ONE}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "save", "args": json.loads(ONE)}}]}}]},
        {"output": [{"type": "reasoning", "summary": []}, {"type": "message", "content": [{"type": "output_text", "text": ONE}]}], "status": "completed"},
        {"output": [{"type": "function_call", "name": "save", "arguments": ONE}]},
        {"output": {"message": {"role": "assistant", "content": [{"text": ONE}]}}, "stopReason": "end_turn"},
        {"output": {"message": {"content": [{"toolUse": {"name": "save", "input": json.loads(ONE)}}]}}},
        {"message": {"role": "assistant", "content": ONE}, "done_reason": "stop"},
        {"choices": [{"text": ONE, "finish_reason": "stop"}]},
        {"content": json.loads(ONE)},
    ],
)  # fmt: skip
def test_whole_responses_of_several_services_give_the_same_item(response: dict[str, Any]) -> None:
    assert kept(read_reply(None, message=response)) == [ITEM["content"]]


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ({"candidates": [{"finishReason": "SAFETY"}]}, Outcome.REFUSED),
        ({"candidates": [{"content": {"parts": [{"text": ONE[:-9]}]}, "finishReason": "MAX_TOKENS"}]}, Outcome.TRUNCATED),
        ({"output": [{"type": "message", "content": [{"type": "output_text", "text": ONE[:-9]}]}], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, Outcome.TRUNCATED),
        ({"message": {"content": ONE[:-9]}, "done_reason": "length"}, Outcome.TRUNCATED),
        ({"choices": []}, Outcome.UNPARSABLE),
        ({"content": 7}, Outcome.UNPARSABLE),
        ({"error": {"message": "overloaded"}}, Outcome.UNPARSABLE),
    ],
)  # fmt: skip
def test_why_a_service_stopped_decides_the_outcome(
    response: dict[str, Any], outcome: Outcome
) -> None:
    read = read_reply(None, message=response)
    assert (read.outcome, kept(read)) == (outcome, [])


def test_several_fences_add_up_unless_one_corrects_another() -> None:
    two = f"```json\n{listed(ITEM)}\n```\n另有：\n```json\n{listed(OTHER)}\n```"
    assert kept(read_reply(two)) == [ITEM["content"], OTHER["content"]]
    assert kept(read_reply(two.replace("另有", "更正"))) == [OTHER["content"]]
    bare = f"{listed(ITEM)}\nSorry, the corrected version:\n{listed(OTHER)}"
    assert kept(read_reply(bare)) == [OTHER["content"]]


@pytest.mark.parametrize("dots", ["...", "…", "<...>", "___"])
def test_an_example_filled_with_dots_is_no_payload(dots: str) -> None:
    example = f'```json\n[{{"content": "{dots}", "type": "{dots}"}}]\n```'
    assert kept(read_reply(f"格式：\n{example}\n结果：\n```json\n{listed(ITEM)}\n```")) == [
        ITEM["content"]
    ]


def test_json_escaped_for_a_string_it_is_not_in_is_read() -> None:
    read = read_reply(ONE.replace('"', '\\"'))
    assert (kept(read), read.outcome) == ([ITEM["content"]], Outcome.DEGRADED)


def test_a_table_by_columns_becomes_rows() -> None:
    columns = {"content": ["爱喝岩茶", "会剪纸"], "type": ["preference", "skill"], "scope": "user"}
    read = read_reply(json.dumps(columns))
    assert [(p.draft.content, str(p.draft.memory_type)) for p in read.proposals] == [
        ("爱喝岩茶", "preference"),
        ("会剪纸", "skill"),
    ]


@pytest.mark.parametrize("sign", ["=", " => "])
def test_other_signs_between_key_and_value_are_read(sign: str) -> None:
    text = f'{{"memories"{sign}[{{"content"{sign}"爱喝岩茶","type"{sign}"preference"}}]}}'
    assert kept(read_reply(text)) == ["爱喝岩茶"]


def test_invisible_characters_in_keys_do_not_hide_an_item() -> None:
    text = '{"\u200bmemories":[{"\u2060content":"爱喝岩茶","ty\u200bpe":"preference"}]}'
    (proposal,) = read_reply(text).proposals
    assert (proposal.draft.content, str(proposal.draft.memory_type)) == ("爱喝岩茶", "preference")


@pytest.mark.parametrize(
    "text",
    [
        '{"memories":[{"content":"' + "长" * 10_000_000,
        "{" * 10_000_000,
        "<think>" * 1_500_000,
        "```json\n[" * 1_000_000,
        json.dumps([{"content": f"第{n}条，很长很长" * 9} for n in range(60_000)]),
    ],
    ids=["open string", "brackets", "tags", "fences", "valid"],
)
def test_enormous_replies_fail_at_once_and_say_so(text: str) -> None:
    started = time.perf_counter()
    read = read_reply(text)
    assert time.perf_counter() - started < 1
    assert read.failed
    assert "too many to read" in read.detail


@pytest.mark.parametrize("piece", ["<think></think>", "<think>", "</think>", "```json\n[", "{'"])
def test_a_reply_of_nothing_but_marks_is_read_in_linear_time(piece: str) -> None:
    def spent(characters: int) -> float:
        text = (piece * characters)[:characters]
        started = time.perf_counter()
        assert read_reply(text).failed
        return time.perf_counter() - started

    small, large = (min(spent(n) for _ in range(2)) for n in (40_000, 160_000))
    # Four times the text: sixteen times the work would be quadratic.
    assert large < 10 * small + 0.5
