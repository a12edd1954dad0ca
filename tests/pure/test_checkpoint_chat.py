"""Every form a message is stored in becomes chat, and every tool call has a state."""

from __future__ import annotations

from typing import Any

import pytest

from memcore.services.checkpoints import chat
from memcore.services.checkpoints.values import Todo


def human(text: str, **more: Any) -> dict[str, Any]:
    return {
        "__type__": "langchain_core.messages.human.HumanMessage",
        "value": {"content": text, "type": "human", **more},
    }


def asking(*calls: tuple[str, str, dict[str, Any]], key: str = "m1") -> dict[str, Any]:
    return {
        "__type__": "langchain_core.messages.ai.AIMessage",
        "value": {
            "content": "",
            "type": "ai",
            "id": key,
            "tool_calls": [{"id": i, "name": n, "args": a} for i, n, a in calls],
        },
    }


def answer(call: str, text: str = "ok", status: str = "success") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": text, "status": status}


@pytest.mark.parametrize(
    "stored",
    [
        human("good morning"),
        {"role": "user", "content": "good morning"},
        {"type": "human", "content": "good morning"},
        {
            "__type__": "langchain.schema.messages.HumanMessage",
            "value": {"content": "good morning"},
        },
        ["user", "good morning"],
        ["human", [{"type": "text", "text": "good morning"}]],
        "good morning",
        {"role": "user", "content": ["good morning"]},
    ],
)
def test_a_message_reads_the_same_in_every_form_it_is_stored_in(stored: Any) -> None:
    (message,) = chat.messages([stored])
    assert (message.role, message.text) == ("user", "good morning")


def test_objects_and_mappings_render_side_by_side() -> None:
    talk = chat.messages([human("first"), {"role": "assistant", "content": "second"}])
    assert [(m.role, m.text) for m in talk] == [("user", "first"), ("assistant", "second")]


def test_two_unanswered_calls_are_both_pending_with_their_arguments() -> None:
    talk = chat.messages(
        [human("go"), asking(("c1", "refund", {"order": 7}), ("c2", "mail", {"to": "x"}))]
    )
    calls = chat.unanswered(talk)
    assert [(c.name, c.args, c.status) for c in calls] == [
        ("refund", {"order": 7}, "pending"),
        ("mail", {"to": "x"}, "pending"),
    ]


def test_a_call_is_done_or_failed_as_its_answer_says() -> None:
    talk = chat.messages(
        [
            asking(("c1", "refund", {}), ("c2", "mail", {}), ("c3", "log", {})),
            answer("c1", "refunded"),
            answer("c2", "mailbox full", "error"),
        ]
    )
    assert [(c.status, c.result) for m in talk for c in m.tool_calls] == [
        ("done", "refunded"),
        ("error", "mailbox full"),
        ("pending", ""),
    ]


def test_an_unanswered_call_dangles_once_the_chat_went_on() -> None:
    talk = chat.messages([asking(("c1", "refund", {})), human("hello?")])
    assert [c.status for c in chat.unanswered(talk)] == ["dangling"]


def test_calls_in_the_form_of_model_apis_are_read() -> None:
    (message,) = chat.messages(
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city": "Bern"}'},
                    }
                ],
            }
        ]
    )
    assert message.tool_calls[0].name == "weather"
    assert message.tool_calls[0].args == {"city": "Bern"}


def test_what_text_does_not_show_is_said_in_words() -> None:
    (message,) = chat.messages(
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Let me see"},
                    {"type": "text", "text": "Here"},
                    {"type": "image_url", "image_url": {"url": "https://example.test/x.png"}},
                ],
            }
        ]
    )
    assert message.text == "Here"
    assert message.attachments == ("thinking: Let me see", "image_url")


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ([{"content": "Book", "status": "in_progress"}], (Todo("Book", "in_progress"),)),
        ([{"title": "Book", "done": True}], (Todo("Book", "completed"),)),
        (["Book"], (Todo("Book", "pending"),)),
        ([1, 2], ()),
        ({"not": "a list"}, ()),
        (None, ()),
    ],
)
def test_a_todo_list_is_recognised(stored: Any, expected: tuple[Todo, ...]) -> None:
    assert chat.todos(stored) == expected


def test_an_interrupt_that_asks_for_approval_shows_the_call_it_is_about() -> None:
    talk = chat.messages([asking(("c1", "refund", {"order": 7}))])
    for value in (
        {"action_requests": [{"name": "refund", "args": {"order": 7}}], "review_configs": []},
        [{"action_request": {"action": "refund", "args": {"order": 7}}, "config": {}}],
    ):
        (call,) = chat.approvals(value, talk)
        assert (call.id, call.name, call.args) == ("c1", "refund", {"order": 7})


def test_a_question_in_words_asks_for_no_call() -> None:
    assert chat.approvals("Shall I?") == ()


def test_folding_replaces_by_id_and_removes_what_is_to_be_removed() -> None:
    base = [{"role": "user", "content": "a", "id": "1"}]
    writes = [
        [{"role": "assistant", "content": "b", "id": "2"}],
        [{"role": "user", "content": "a!", "id": "1"}],
        [{"type": "remove", "content": "", "id": "2"}],
    ]
    assert chat.fold(base, writes) == [{"role": "user", "content": "a!", "id": "1"}]
    everything = [{"type": "remove", "content": "", "id": "__remove_all__"}]
    assert chat.fold(base, [*writes, everything]) == []
