"""A decoded `messages` channel as a chat, its tool calls and their outcomes. Pure: no I/O.

Messages are met as objects (by class name), as mappings with `role` or `type`, as LangChain's JSON
envelopes, as (role, text) pairs and as bare strings; all become `ChatMessage`. A tool call is done
or failed when a tool message carries its id; without one it is pending while it is the last thing
said, and dangling once the chat went on, because chat models refuse such a history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memcore.services.checkpoints.decode import class_name, readable, unwrap
from memcore.services.checkpoints.values import ChatMessage, Todo, ToolCall
from memcore.text import shorten

_ROLES = {
    "human": "user",
    "humanmessage": "user",
    "user": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "system": "system",
    "systemmessage": "system",
    "developer": "system",
    "tool": "tool",
    "toolmessage": "tool",
    "function": "tool",
    "functionmessage": "tool",
    "remove": "remove",
    "removemessage": "remove",
}
_SILENT_BLOCKS = ("tool_use", "tool_call", "input_json_delta", "tool_call_chunk")


def is_message(value: Any) -> bool:
    """True where `value` is clearly a chat message."""
    if class_name(value).removesuffix("Chunk").endswith("Message"):
        return True
    body = unwrap(value)
    return isinstance(body, Mapping) and (
        ("content" in body and ("role" in body or str(body.get("type", "")).lower() in _ROLES))
        or body.get("type") == "remove"
    )


def looks_like_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(is_message(item) for item in value)


def messages(value: Any) -> tuple[ChatMessage, ...]:
    """The chat in a decoded `messages` channel, tool calls with their status. A single message
    or string counts as a list of one."""
    value = unwrap(value)
    items = value if isinstance(value, list) else [] if value is None else [value]
    return _with_outcomes([_message(item) for item in items])


def _message(item: Any) -> ChatMessage:
    kind = class_name(item)
    body = unwrap(item)
    if isinstance(body, str):
        return ChatMessage(_role(kind, {}) if kind else "user", body, kind=kind)
    if isinstance(body, list) and len(body) == 2 and isinstance(body[0], str):
        text, attachments = _content(body[1])
        return ChatMessage(_ROLES.get(body[0].lower(), body[0]), text, attachments=attachments)
    if not isinstance(body, Mapping):
        return ChatMessage("unknown", _short(body), kind=kind)
    text, attachments = _content(body.get("content"))
    if not text and "content" not in body and body.get("type") != "remove":
        text = _short(body)
    return ChatMessage(
        role=_role(kind, body),
        text=text,
        id=str(body.get("id") or ""),
        name=str(body.get("name") or ""),
        kind=kind,
        tool_calls=tuple(_calls(body)),
        tool_call_id=str(body.get("tool_call_id") or ""),
        status=str(body.get("status") or ""),
        attachments=attachments,
    )


def _role(kind: str, body: Mapping[str, Any]) -> str:
    for word in (body.get("role"), kind.removesuffix("Chunk"), body.get("type")):
        if isinstance(word, str) and word.lower() in _ROLES:
            return _ROLES[word.lower()]
    return str(body.get("role") or body.get("type") or kind or "unknown")


def _content(content: Any) -> tuple[str, tuple[str, ...]]:
    """Text and, in words, what is not text."""
    content = unwrap(content)
    if content is None:
        return "", ()
    if isinstance(content, str):
        return content, ()
    if not isinstance(content, list):
        return _short(content), ()
    texts, others = [], []
    for block in content:
        block = unwrap(block)
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Mapping) and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif isinstance(block, Mapping):
            kind = str(block.get("type") or "block")
            if kind not in _SILENT_BLOCKS:
                said = block.get("thinking") or block.get("reasoning")
                others.append(f"{kind}: {shorten(said, 200)}" if isinstance(said, str) else kind)
        else:
            others.append(_short(block))
    return "\n".join(texts), tuple(others)


def _calls(body: Mapping[str, Any]) -> Iterable[ToolCall]:
    extra = body.get("additional_kwargs")
    raw = body.get("tool_calls") or (
        extra.get("tool_calls") if isinstance(extra, Mapping) else None
    )
    for call in raw if isinstance(raw, list) else ():
        call = unwrap(call)
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        inner = function if isinstance(function, Mapping) else call
        yield ToolCall(
            str(call.get("id") or ""),
            str(inner.get("name") or ""),
            _arguments(inner.get("args", inner.get("arguments"))),
            "pending",
            message_id=str(body.get("id") or ""),
        )
    invalid = body.get("invalid_tool_calls")
    for call in invalid if isinstance(invalid, list) else ():
        call = unwrap(call)
        if isinstance(call, Mapping):
            yield ToolCall(
                str(call.get("id") or ""),
                str(call.get("name") or ""),
                call.get("args"),
                "error",
                result=str(call.get("error") or "The arguments are not valid JSON."),
                message_id=str(body.get("id") or ""),
            )


def _arguments(args: Any) -> Any:
    """OpenAI's form carries the arguments as JSON text."""
    args = unwrap(args)
    if isinstance(args, str):
        try:
            return json.loads(args)
        except (ValueError, RecursionError):
            return args
    return args


def _with_outcomes(chat: list[ChatMessage]) -> tuple[ChatMessage, ...]:
    answers = {m.tool_call_id: m for m in chat if m.role == "tool" and m.tool_call_id}
    talk = [i for i, m in enumerate(chat) if m.role in ("user", "assistant")]
    last = talk[-1] if talk else -1
    out = []
    for i, message in enumerate(chat):
        calls = []
        for call in message.tool_calls:
            answer = answers.get(call.id)
            if answer is not None:
                status = "error" if answer.status == "error" else "done"
                call = replace(call, status=status, result=shorten(answer.text, 300))
            elif call.status == "pending" and i != last:
                call = replace(call, status="dangling")
            calls.append(call)
        out.append(replace(message, tool_calls=tuple(calls)) if calls else message)
    return tuple(out)


def unanswered(chat: Iterable[ChatMessage]) -> tuple[ToolCall, ...]:
    """Tool calls without an outcome, oldest first: pending and dangling ones."""
    return tuple(
        call for m in chat for call in m.tool_calls if call.status in ("pending", "dangling")
    )


def fold(base: Any, writes: Sequence[Any]) -> list[Any]:
    """Messages of a delta channel: `writes` applied onto `base` as LangGraph's message reducer
    does, a known id replacing, a RemoveMessage removing."""
    out: list[Any] = list(base) if isinstance(base, list) else []
    for write in writes:
        for item in write if isinstance(write, list) else [write]:
            body = unwrap(item)
            known = body.get("id") if isinstance(body, Mapping) else None
            if _message(item).role == "remove":
                out = [] if known == "__remove_all__" else [x for x in out if _id(x) != known]
                continue
            at = next((i for i, x in enumerate(out) if known and _id(x) == known), None)
            if at is None:
                out.append(item)
            else:
                out[at] = item
    return out


def _id(item: Any) -> Any:
    body = unwrap(item)
    return body.get("id") if isinstance(body, Mapping) else None


def todos(value: Any) -> tuple[Todo, ...]:
    """A todo list in a decoded channel: items with content (or title, task, description) and a
    status (or done). () where it is none."""
    value = unwrap(value)
    out = []
    for item in value if isinstance(value, list) else ():
        body = unwrap(item)
        if isinstance(body, str):
            out.append(Todo(body, "pending"))
            continue
        if not isinstance(body, Mapping):
            return ()
        words = ("content", "title", "task", "description", "text")
        text = next((body[w] for w in words if isinstance(body.get(w), str)), None)
        if text is None:
            return ()
        done = body.get("done", body.get("completed"))
        status = unwrap(body.get("status")) or ("completed" if done else "pending")
        out.append(Todo(text, str(status)))
    return tuple(out)


def approvals(value: Any, chat: Iterable[ChatMessage] = ()) -> tuple[ToolCall, ...]:
    """Tool calls an interrupt asks to approve, in the forms of LangChain's human-in-the-loop
    middleware (`action_requests`) and of Agent Inbox (`action_request`)."""
    found = []
    value = unwrap(value)
    for entry in value if isinstance(value, list) else [value]:
        entry = unwrap(entry)
        if not isinstance(entry, Mapping):
            continue
        raw = entry.get("action_requests") or entry.get("action_request")
        for action in raw if isinstance(raw, list) else [raw]:
            action = unwrap(action)
            if isinstance(action, Mapping) and (action.get("name") or action.get("action")):
                name = str(action.get("name") or action.get("action"))
                args = _arguments(action.get("args", action.get("arguments")))
                found.append(ToolCall("", name, args, "pending"))
    waiting = list(unanswered(chat))
    for i, asked in enumerate(found):
        match = next((c for c in waiting if (c.name, c.args) == (asked.name, asked.args)), None)
        if match is not None:
            waiting.remove(match)
            found[i] = replace(match, status="pending")
    return tuple(found)


def _short(value: Any) -> str:
    value = readable(value)
    return shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 2000)
