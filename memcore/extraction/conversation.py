"""Conversations in the forms they come in → our messages. Pure: no I/O.

Reads our own JSONL (`{"role", "content", …}` a line), OpenAI messages (parts, tool calls), LoCoMo,
MemoryBank, ShareGPT and a plain transcript (`用户：…`). Pictures and files are left out, their
base64 too. A memory block that an agent put into somebody's message is told apart from what was
said, so that memory cannot feed on itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memcore.errors import InvalidInput
from memcore.models import Message, ToolCall
from memcore.text import clean

ROLES: Mapping[str, str] = {
    **dict.fromkeys(("user", "human", "customer", "member", "person", "用户", "我"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "bot", "model", "agent", "gpt", "chatgpt", "助手", "智能体", "机器人"),
        "assistant",
    ),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "工具"), "tool"),
    **dict.fromkeys(
        ("system", "developer", "instruction", "memory", "context", "retrieval", "系统"), "system"
    ),
}
RECALL_TOOLS = frozenset({"memory_search", "memory_add", "search_memories", "recall"})
"""Tools whose results are memory already."""

_DATA_URL = re.compile(r"data:[\w.+/-]{1,80};base64,[A-Za-z0-9+/=_-]*")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{240,}={0,2}")
_NAMES = (
    r"(?:relevant_|user_|long_term_)?(?:memor(?:y|ies)|recall|context|profile)(?:[-_][\w-]{1,70})?"
)
_BLOCK = re.compile(rf"<({_NAMES})(?:\s[^>]*)?>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_HEADED = re.compile(
    r"^[ \t#*【\[]*(?:相关|已知|长期|历史|用户)?(?:记忆|画像)(?:如下)?[ \t*】\]]*[:：]?[ \t]*\n"
    r"(?:[ \t]*(?:[-*•]|\d+[.)、])[^\n]*(?:\n|\Z))+"
    r"|^[ \t#*\[]*(?:relevant|known|user|long[- ]term|recalled|saved) (?:memories|memory|profile)"
    r"[ \t*\]]*:?[ \t]*\n(?:[ \t]*(?:[-*•]|\d+[.)])[^\n]*(?:\n|\Z))+",
    re.MULTILINE | re.IGNORECASE,
)
_SPOKEN = re.compile(
    r"^\s*(user|human|assistant|ai|bot|system|tool|用户|我|助手|智能体|系统|工具)\s*[:：]\s*",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation of a file."""

    name: str
    messages: tuple[Message, ...]


def split_injected(text: str) -> tuple[str, str]:
    """What was said in `text`, and what was put there from memory."""
    injected: list[str] = []

    def take(found: re.Match[str]) -> str:
        injected.append(found.group())
        return ""

    said = _HEADED.sub(take, _BLOCK.sub(take, text))
    return said.strip(), "\n".join(injected)


def content_text(content: Any) -> str:
    """The text of a message's content: a string, parts, or nothing. Pictures leave no trace."""
    if content is None:
        return ""
    if isinstance(content, str):
        return _BASE64.sub("", _DATA_URL.sub("", content))
    if isinstance(content, Mapping):
        kind = str(content.get("type", "text"))
        if kind not in ("text", "input_text", "output_text"):
            return ""
        text = content.get("text", content.get("content"))
        # One API nests it: {"type": "text", "text": {"value": "…"}}.
        return content_text(text.get("value") if isinstance(text, Mapping) else text)
    if isinstance(content, Sequence) and not isinstance(content, bytes):
        return "".join(content_text(part) for part in content)
    return ""


def read_messages(values: Iterable[Any], *, prefix: str = "m") -> tuple[Message, ...]:
    """Messages from dicts or Message objects; ids are made from `prefix` and place where there
    are none. What is no message is left out."""
    out: list[Message] = []
    for place, value in enumerate(values, 1):
        if isinstance(value, Message):
            out.append(value)
        elif isinstance(value, Mapping) and (made := _message(value, f"{prefix}{place}")):
            out.append(made)
    return tuple(out)


def _message(value: Mapping[str, Any], fallback: str) -> Message | None:
    said = next(
        (value[k] for k in ("content", "text", "value", "message", "body") if value.get(k)), None
    )
    if isinstance(said, Mapping) and "content" in said and "type" not in said:
        value, said = {**value, **said}, said["content"]
    role = str(value.get("role") or value.get("from") or value.get("sender") or "").strip()
    speaker = str(value.get("name") or value.get("speaker") or "")
    known = ROLES.get(role.casefold())
    if not (known or role or speaker):
        return None
    calls = tuple(_calls(value.get("tool_calls"))) + tuple(_calls(_used_tools(said)))
    text = clean(content_text(said))
    if not text and not calls:
        return None
    return Message(
        id=str(value.get("id") or value.get("message_id") or value.get("dia_id") or fallback),
        role=known or "user",
        content=text,
        created_at=_moment(value.get("created_at") or value.get("timestamp") or value.get("time")),
        name=speaker or ("" if known else role),
        tool_calls=calls,
        tool_call_id=str(value["tool_call_id"]) if value.get("tool_call_id") else None,
    )


def _used_tools(content: Any) -> list[Any]:
    if not isinstance(content, list):
        return []
    return [p for p in content if isinstance(p, Mapping) and p.get("type") == "tool_use"]


def _calls(values: Any) -> Iterator[ToolCall]:
    for value in values if isinstance(values, (list, tuple)) else ():
        if not isinstance(value, Mapping):
            continue
        called = value.get("function") if isinstance(value.get("function"), Mapping) else value
        assert isinstance(called, Mapping)
        given = called.get("arguments", called.get("args", called.get("input", {})))
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        yield ToolCall(str(value.get("id") or ""), str(called.get("name") or ""), text)


def _moment(value: Any) -> datetime | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        if isinstance(value, (int, float)):
            seconds = value / 1000 if value > 1e11 else value
            return datetime.fromtimestamp(seconds, UTC)
        found = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


# ---- files -----------------------------------------------------------------------------------


def read_transcripts(text: str) -> tuple[Transcript, ...]:
    """The conversations in `text`, whatever of the known forms it has. Raises InvalidInput when it
    has none."""
    text = text.lstrip("\ufeff").strip()
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = _lines(text)
    found = tuple(t for t in _transcripts(value, "conversation") if t.messages)
    if not found and not text.startswith(("{", "[")):
        found = tuple(t for t in [Transcript("transcript", _spoken(text))] if t.messages)
    if not found:
        raise InvalidInput(
            "No conversation was found in that text.",
            hint='Give one message a line as {"role": "user", "content": "…"}, a list of OpenAI '
            "messages, or lines that begin with User: and Assistant:.",
        )
    return found


def _lines(text: str) -> list[Any]:
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            out.append(json.loads(line))
        except (ValueError, RecursionError):
            if out or line.lstrip().startswith("{"):
                raise InvalidInput(f"Line {number} is not one JSON object.") from None
            return []
    return out


def _transcripts(value: Any, name: str) -> Iterator[Transcript]:
    if isinstance(value, list):
        if any(isinstance(v, Mapping) and _is_container(v) for v in value):
            for place, inner in enumerate(value, 1):
                yield from _transcripts(inner, f"{name} {place}")
        else:
            yield Transcript(name, read_messages(value))
    elif isinstance(value, Mapping):
        name = str(value.get("sample_id") or value.get("name") or value.get("title") or name)
        if isinstance(value.get("conversation"), Mapping):
            yield from _locomo(value["conversation"], name)
        elif isinstance(value.get("history"), Mapping):
            yield from _memorybank(value["history"], name)
        else:
            for key in ("messages", "conversation", "conversations", "turns", "dialogue"):
                if isinstance(value.get(key), list):
                    yield from _transcripts(value[key], name)
                    return
            if ("role" in value or "speaker" in value) and (one := read_messages([value])):
                yield Transcript(name, one)
                return
            for key, inner in value.items():
                if isinstance(inner, Mapping) and _is_container(inner):
                    yield from _transcripts(inner, str(key))


def _is_container(value: Mapping[str, Any]) -> bool:
    keys = ("messages", "conversation", "conversations", "turns", "dialogue")
    return any(isinstance(value.get(k), (list, Mapping)) for k in keys) or isinstance(
        value.get("history"), Mapping
    )


def _locomo(value: Mapping[str, Any], name: str) -> Iterator[Transcript]:
    sessions = [k for k in value if re.fullmatch(r"session_\d+", k) and isinstance(value[k], list)]
    for key in sorted(sessions, key=lambda k: int(k.split("_")[1])):
        moment = _spoken_date(str(value.get(f"{key}_date_time") or ""))
        turns = [{**t, "created_at": moment} for t in value[key] if isinstance(t, Mapping)]
        yield Transcript(f"{name} {key}", read_messages(turns, prefix=f"{key}-"))


def _spoken_date(text: str) -> str | None:
    try:
        return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).isoformat()
    except ValueError:
        return None


def _memorybank(value: Mapping[str, Any], name: str) -> Iterator[Transcript]:
    for day, turns in value.items():
        messages: list[dict[str, Any]] = []
        for turn in turns if isinstance(turns, list) else ():
            if isinstance(turn, Mapping):
                messages.append({"role": "user", "content": turn.get("query"), "time": day})
                messages.append({"role": "assistant", "content": turn.get("response"), "time": day})
        yield Transcript(f"{name} {day}", read_messages(messages, prefix=f"{day}-"))


def _spoken(text: str) -> tuple[Message, ...]:
    pieces = _SPOKEN.split(text)
    pairs = zip(pieces[1::2], pieces[2::2], strict=True)
    return read_messages({"role": role, "content": said} for role, said in pairs)
