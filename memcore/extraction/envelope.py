"""What an endpoint sends around a reply → its text, tool arguments and finish reason. Pure: no I/O.

Knows OpenAI's chat completions and responses, Anthropic's, Gemini's, Bedrock's and Ollama's
messages, and the bare message of each. What it does not know is empty, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memcore.extraction.conversation import content_text

_REASONS = ("finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason")


@dataclass(slots=True)
class Envelope:
    """A reply, taken out of what was sent."""

    text: str = ""
    """The answer."""
    asides: dict[str, str] = field(default_factory=dict)
    """Other texts by name: refusal, reasoning_content, reasoning."""
    arguments: list[Any] = field(default_factory=list)
    """Arguments of tool calls, and values the endpoint had parsed already."""
    reason: str = ""
    """Why the model stopped, in lower case, without the prefix of an enumeration."""


def opened(
    reply: str | None, message: Mapping[str, Any] | None, finish_reason: str | None
) -> Envelope:
    """What is in `message`, or else `reply` itself. `finish_reason` given goes before one found."""
    if message is None:
        return Envelope(reply if isinstance(reply, str) else "", reason=_plain(finish_reason))
    inner, found = _message(message)
    made = Envelope(reason=_plain(finish_reason or found))
    content = inner.get("content", inner.get("parts"))
    if isinstance(content, Mapping) and isinstance(content.get("parts"), list):
        content = content["parts"]
    if isinstance(content, Mapping) and not ({"type", "text"} & content.keys()):
        made.arguments.append(content)
        content = None
    parts = content if isinstance(content, list) else ()
    # Gemini's and Bedrock's parts have no type, a thought says that it is one.
    typed = [
        {"type": "text", **p} if isinstance(p, Mapping) and "text" in p and not p.get("thought")
        else p
        for p in parts
    ]  # fmt: skip
    made.text = content_text(typed if parts else content)
    if not made.text and isinstance(reply, str):
        made.text = reply
    if isinstance(inner.get("parsed"), (Mapping, list)):
        made.arguments.append(inner["parsed"])
    for part in parts:
        if isinstance(part, Mapping):
            _add_part(part, made)
    listed = inner.get("tool_calls")
    for call in [*(listed if isinstance(listed, list) else ()), inner.get("function_call")]:
        if isinstance(call, Mapping):
            _add_call(call, made)
    for name in ("refusal", "reasoning_content", "reasoning"):
        if isinstance(inner.get(name), str) and inner[name].strip():
            made.asides[name] = inner[name]
    return made


def _plain(reason: str | None) -> str:
    return str(reason or "").strip().casefold().rpartition(".")[2]


def _message(whole: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """The message of a whole response, if it is one, and why it stopped."""
    reason = next((whole[k] for k in _REASONS if whole.get(k)), None)
    for key in ("choices", "candidates"):
        if isinstance(whole.get(key), list):
            first = whole[key][0] if whole[key] else None
            return _message(first) if isinstance(first, Mapping) else ({}, reason)
    output = whole.get("output")
    if isinstance(output, list):
        parts: list[Any] = []
        for part in output:
            if isinstance(part, Mapping):
                inner = part.get("content")
                parts += inner if part.get("type") == "message" and isinstance(inner, list) else (
                    [part]
                )  # fmt: skip
        status = whole.get("status")
        details = whole.get("incomplete_details")
        if status == "incomplete":
            status = details.get("reason") if isinstance(details, Mapping) else status
        return {"content": parts}, reason or status
    for holder in (output, whole):
        if isinstance(holder, Mapping) and isinstance(holder.get("message"), Mapping):
            return holder["message"], reason
    if "content" not in whole and isinstance(whole.get("text"), str):
        return {"content": whole["text"]}, reason
    return whole, reason


def _add_part(part: Mapping[str, Any], made: Envelope) -> None:
    kind = part.get("type")
    if kind == "tool_use":
        made.arguments.append(part.get("input"))
    elif kind == "refusal":
        made.asides["refusal"] = str(part.get("refusal") or "")
    elif kind == "function_call":
        _add_call(part, made)
    for key in ("functionCall", "toolUse"):
        if isinstance(part.get(key), Mapping):
            _add_call(part[key], made)


def _add_call(call: Mapping[str, Any], made: Envelope) -> None:
    inner = call["function"] if isinstance(call.get("function"), Mapping) else call
    made.arguments.append(inner.get("arguments", inner.get("args", inner.get("input"))))
