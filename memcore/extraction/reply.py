"""A model's reply → an extraction. Pure: no I/O. Replies are hostile: nothing here raises.

Layers, each tried only when the one before did not give the right shape:

1. finish reason and refusal: a filtered, refused or empty reply is not an empty result;
2. strict JSON; arguments of tool calls are read first, where there are any;
3. reasoning removed (tags outside JSON strings; a channel format's last channel), strict JSON;
4. a code fence's body;
5. the first place in the text where a value of the right shape starts;
6. at each such place, JSON as models write it (`lenient`), which never closes what is open.

A reply that was cut off gives its complete items and the outcome `truncated`; half an item never
becomes one. Each item is then read field by field (`fields`), held against the conversation
(`grounding`) and against the other items. A bad item never sinks the rest.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memcore.errors import InvalidInput
from memcore.extraction import Extraction, Known, Outcome, Skipped, fields
from memcore.extraction.conversation import read_messages, read_transcripts
from memcore.extraction.envelope import opened
from memcore.extraction.items import read_items
from memcore.extraction.lenient import Incomplete, Several, lenient_at, strict, strict_at
from memcore.extraction.shape import Item, items_in, keys_seen
from memcore.models import Message
from memcore.text import shorten

LONGEST_REPLY = 400_000
MOST_STARTS = 100
MOST_FENCES = 400
MOST_EFFORT = 6
"""How many times over a text is read leniently before it is given up."""

CUT_OFF = frozenset({"length", "max_tokens", "model_length", "max_output_tokens", "incomplete"})
FINISHED = frozenset({"stop", "end_turn", "eos", "tool_calls", "function_call", "completed"})
FILTERED = frozenset({"content_filter", "safety", "refusal", "blocklist", "prohibited_content"})

_TAGS = r"think|thinking|thoughts?|reasoning|reason|reflection|scratchpad|analysis|inner_monologue"
_OPEN = rf"<\s*(?:\w+:)?(?:{_TAGS})\b[^<>]{{0,200}}>|◁think▷|\[THINK\]"
_CLOSE = rf"<\s*/\s*(?:\w+:)?(?:{_TAGS})\s*>|◁/think▷|\[/THINK\]"
_TAG = re.compile(f"(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.IGNORECASE)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>(.*?)"
    r"(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)
_FENCE = re.compile(
    r"(?:```+|~~~+)[^\n`]*\r?\n(.*?)(?:\n[ \t]*(?:```+|~~~+)|```+[ \t\r]*\Z)", re.DOTALL
)
_CORRECTED = re.compile(
    r"更正|修正|修订|改为|纠正|最终|\b(?:correct(?:ed|ion)|revised|final|instead|fixed|sorry)\b",
    re.IGNORECASE,
)
"""Between two payloads: the second takes the place of the first."""
_ESCAPED = re.compile(r'\s*[\[{]+\s*\\"')
"""JSON that was escaped for a string it is not in."""
_NOTHING = frozenset(
    ("none", "n/a", "nothing", "nothing to remember", "no memories", "empty", "无", "没有",
     "空", "暂无", "无记忆", "没有记忆", "[]")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Payload:
    """What one text held."""

    items: list[Item] | None
    """None: no payload of a known shape."""
    read_by: str
    cut: bool = False
    broken: bool = False
    cause: str = ""


def read_reply(
    reply: str | Mapping[str, Any] | None = None,
    *,
    message: Mapping[str, Any] | None = None,
    finish_reason: str | None = None,
    conversation: str | Sequence[Message | Mapping[str, Any]] = (),
    known: Sequence[Known] = (),
    limit: int | None = None,
    max_tokens: int | None = None,
    turns: Mapping[int, str] | None = None,
    new: frozenset[str] | None = None,
) -> Extraction:
    """What a reply proposes.

    `reply`: its text, or the message or whole response as the API sent it (then the same as
    `message`). `conversation`: what it was made from; without it nothing can be held
    against what was said. `known`: memories that were shown, by the id that was shown. `limit`:
    most proposals kept. `max_tokens`: named where the reply ran out of them. `turns`: number shown
    for a message → its id; else messages count from 1. `new`: ids of the messages that are a
    source, None for all; what an earlier one says was its own run's to find.
    """
    if isinstance(reply, Mapping):
        message, reply = reply, None
    messages = _spoken(conversation)
    sent = opened(reply, message, finish_reason)
    raw, texts, calls, reason = sent.text, sent.asides, sent.arguments, sent.reason
    cut = reason in CUT_OFF
    payloads = [_from_call(call) for call in calls]
    if raw.strip() and not any(p.items for p in payloads):
        payloads.append(read_text(raw))
    found = [p for p in payloads if p.items is not None]
    ended = reason in FINISHED and all(not i.cut for p in found for i in p.items or ())
    # A model that says it has finished, and left no item open, only forgot a closing bracket.
    cut = cut or (any(p.cut for p in found) and not ended)
    if not found:
        outcome, detail = _failure(raw, texts, payloads, reason, message, max_tokens)
        made = Extraction(
            outcome, detail, truncated=outcome is Outcome.TRUNCATED, raw=_raw(raw, calls)
        )
        return made if outcome is not Outcome.NOTHING else read_items(
            made, [], messages, known, limit, turns, new
        )  # fmt: skip
    lost = tuple(
        Skipped("broken_call", p.cause, "")
        for p in payloads
        if p.items is None and p.read_by == "tool"
    )
    first = next((p for p in found if p.items), found[0])
    made = Extraction(
        Outcome.OK, skipped=lost, truncated=cut, raw=_raw(raw, calls), read_by=first.read_by
    )
    items = [item for p in found for item in p.items or ()]
    made = read_items(made, items, messages, known, limit, turns, new)
    repaired = bool(lost) or any(p.broken or p.cut or p.read_by == "repaired" for p in found)
    return _judged(made, repaired, reason in FILTERED, max_tokens)


def _spoken(conversation: str | Sequence[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    if not isinstance(conversation, str):
        return read_messages(conversation)
    try:
        return tuple(m for t in read_transcripts(conversation) for m in t.messages)
    except InvalidInput:
        return read_messages([{"role": "user", "content": conversation}])


def read_text(text: str) -> Payload:
    """The payload in the text of a reply."""
    if len(text) > LONGEST_REPLY:
        return Payload(None, "", cause=f"The reply has {len(text):,} characters, too many to read.")
    text = text.strip().lstrip("\ufeff").strip()
    if (items := items_in(_decoded(text))) is not None:
        return Payload(items, "strict")
    answer, reasoned = without_reasoning(text)
    layer = "reasoning" if reasoned else "strict"
    if reasoned and (items := items_in(_decoded(answer))) is not None:
        return Payload(items, layer)
    if not answer:
        return Payload(None, layer, cause="The reply holds reasoning only, and no answer.")
    if _decoded(answer) is not _NO_JSON:
        return Payload(None, layer, cause=f"The reply is {keys_seen(_decoded(answer))}.")
    fenced: list[Item] = []
    end = 0
    # A fence that is never closed is searched for to the end: a text of nothing else is no reply.
    for fence in _FENCE.finditer(answer) if answer.count("```") <= MOST_FENCES else ():
        if (items := items_in(_decoded(fence[1].strip()))) and not _is_example(items):
            fenced = items if _CORRECTED.search(answer, end, fence.start()) else fenced + items
            end = fence.end()
    if fenced:
        return Payload(fenced, "fence")
    if _ESCAPED.match(answer) and (inner := _decoded(f'"{answer}"')) is not _NO_JSON:
        return replace(_found(inner), read_by="repaired")
    return _found(answer)


def without_reasoning(text: str) -> tuple[str, bool]:
    """`text` without a model's thoughts, and whether there were any. A tag inside a JSON string is
    content; an opening tag that is never closed takes everything after it."""
    if "<|channel|>" in text:
        channels = _CHANNEL.findall(text)
        spoken = [body for name, body in channels if name != "analysis"]
        return (spoken[-1].strip() if spoken else ""), True
    if not _TAG.search(text):
        return text, False
    protected = list(_json_spans(text))
    starts = [start for start, _ in protected]
    out: list[str] = []
    depth, kept_from, any_tag = 0, 0, False
    seen = quotes = 0
    for tag in _TAG.finditer(text):
        at = tag.start()
        span = bisect_right(starts, at - 1) - 1
        # Quotation marks since the line began, counted once: a reply may be all tags.
        before, seen = text[seen:at], at
        line = before.rpartition("\n")[2]
        quotes = line.replace('\\"', "").count('"') + (quotes if line == before else 0)
        if not depth and span >= 0 and at < protected[span][1]:
            continue
        if tag["open"]:
            if not depth and quotes % 2:
                continue
            if not depth:
                out.append(text[kept_from:at])
            depth += 1
            any_tag = True
        elif depth:
            depth -= 1
            kept_from = tag.end()
        else:
            # The opening tag was part of the prompt: everything so far was thought.
            out, kept_from, any_tag = [], tag.end(), True
    if not any_tag:
        return text, False
    if not depth:
        out.append(text[kept_from:])
    return "".join(out).strip(), True


_NO_JSON = object()


def _decoded(text: str) -> Any:
    """`text` by the standard; `_NO_JSON`, which has no shape, when it is none."""
    try:
        return strict(text)
    except (ValueError, RecursionError):
        return _NO_JSON


def _json_spans(text: str) -> Iterator[tuple[int, int]]:
    end = 0
    for start in _starts(text):
        if start < end:
            continue
        try:
            _, end = strict_at(text, start)
        except (ValueError, RecursionError):
            continue
        yield start, end


def _starts(text: str) -> list[int]:
    return [
        found.start()
        for found, _ in zip(re.finditer(r"[{\[｛]", text), range(MOST_STARTS), strict=False)
    ]


def _found(text: str) -> Payload:
    """The first value of the right shape in a text. Objects that are items themselves are taken
    together: one a line is a list, too, and so are payloads one after the other."""
    empty: Payload | None = None
    gathered: list[Item] = []
    state = {"cut": False, "broken": False, "repaired": False}
    end = effort = 0
    whole = False
    for start in _starts(text):
        if start < end:
            continue
        corrected = bool(whole and _CORRECTED.search(text, end, start))
        if whole and not corrected and text[end:start].strip(" \t\r\n,;"):
            break  # After a whole payload only one that follows at once belongs to it.
        repaired = cut = broken = False
        try:
            value, stop = strict_at(text, start)
        except (ValueError, RecursionError):
            if effort > MOST_EFFORT * len(text):
                break
            read = lenient_at(text, start)
            effort += read.end - start
            value, stop, cut, broken, repaired = read.value, read.end, read.cut, read.broken, True
        items = items_in(value, whole=False)
        if items is None or _is_example(items):
            continue
        if not items and (cut or broken) and not isinstance(value, Incomplete):
            continue  # An opening bracket that leads nowhere is no empty list.
        single = (
            isinstance(value, (Mapping, Several)) and len(items) == 1 and items[0].value is value
        )
        if not items:
            empty = empty or Payload([], "repaired" if repaired else "found", cut, broken)
            end = stop
            continue
        gathered = items if corrected else gathered + items
        state["cut"] |= cut
        state["broken"] |= broken
        state["repaired"] |= repaired
        end, whole = stop, not single
    if gathered:
        layer = "repaired" if state["repaired"] else "found"
        return Payload(gathered, layer, state["cut"], state["broken"])
    return empty or Payload(None, "", cause=_no_json(text))


def _is_example(items: list[Item]) -> bool:
    """Does it repeat the format rather than fill it in?"""
    reasons = [fields.read_content(i.value)[1] for i in items if not i.cut]
    return bool(reasons) and all(r == "placeholder" for r in reasons)


def _no_json(text: str) -> str:
    if re.search(r"<(\w+)>[^<]*</\1>", text):
        return "The reply is XML, not JSON."
    if re.search(r"^[ \t]*(?:[-*•]|\d+[.)、])[ \t]", text, re.MULTILINE):
        return "The reply is a list in prose, not JSON."
    if re.search(r"^[ \t]*-?[ \t]*\w+:[ \t]", text, re.MULTILINE):
        return "The reply looks like YAML, not JSON."
    if re.search(r"[{\[]\s*[\"'{\[]", text):
        return "The reply holds JSON that cannot be read."
    return "The reply holds no JSON."


def _from_call(arguments: Any) -> Payload:
    if isinstance(arguments, str):
        if not arguments.strip():
            return Payload(None, "tool", cause="A tool call came without arguments.")
        payload = read_text(arguments)
        if payload.items is None or (payload.cut and not any(not i.cut for i in payload.items)):
            cause = "The arguments of a tool call cannot be read."
            return Payload(None, "tool", cut=payload.cut, cause=cause)
        layer = "repaired" if payload.read_by == "repaired" else "tool"
        return replace(payload, read_by=layer)
    items = items_in(arguments)
    if items is None:
        return Payload(None, "tool", cause=f"A tool call was given {keys_seen(arguments)}.")
    return Payload(items, "tool")


def _failure(
    raw: str,
    texts: Mapping[str, str],
    payloads: Sequence[Payload],
    reason: str,
    message: Mapping[str, Any] | None,
    max_tokens: int | None,
) -> tuple[Outcome, str]:
    """Why there is no payload."""
    if texts.get("refusal"):
        return Outcome.REFUSED, f"The model refused: {shorten(texts['refusal'], 200)}"
    if reason in FILTERED:
        return Outcome.REFUSED, f"The endpoint withheld the reply (finish_reason {reason})."
    if reason in CUT_OFF:
        return Outcome.TRUNCATED, _ran_out(reason, max_tokens)
    if any(p.cut for p in payloads):
        return Outcome.TRUNCATED, "The reply ends in the middle of its JSON."
    if not raw.strip() and not payloads:
        if texts.get("reasoning_content") or texts.get("reasoning"):
            return Outcome.UNPARSABLE, "The reply holds reasoning only, and no answer."
        return Outcome.UNPARSABLE, "The reply is empty. Trying again may help."
    if len(raw) > LONGEST_REPLY:
        return Outcome.UNPARSABLE, payloads[-1].cause
    answer, _ = without_reasoning(raw.strip())
    if answer.strip(" \t\r\n。.!！\"'`*").casefold() in _NOTHING:
        return Outcome.NOTHING, "The model found nothing worth keeping, and said so in a word."
    cause = payloads[-1].cause or "The reply holds no JSON."
    if len(answer) < 1_000 and "{" not in answer and fields.REFUSAL.search(answer):
        return Outcome.REFUSED, f"The model refused: {shorten(answer, 200)}"
    return Outcome.UNPARSABLE, cause


def _ran_out(reason: str, max_tokens: int | None) -> str:
    most = f" of {max_tokens:,}" if max_tokens else ""
    return f"The model ran out of output tokens: it met its limit{most} (finish_reason {reason})."


def _judged(made: Extraction, repaired: bool, filtered: bool, max_tokens: int | None) -> Extraction:
    """`made` with the outcome that fits what became of its items."""
    counts = made.counts
    said = ", ".join(
        f"{n} {name}" for name, n in counts.items() if n or name in ("extracted", "kept")
    )
    malformed = any(s.reason in MALFORMED for s in made.skipped)
    if made.truncated:
        detail = f"The reply was cut off; complete items were read: {said}."
        limit = f" The limit was {max_tokens:,} tokens." if max_tokens else ""
        return replace(made, outcome=Outcome.TRUNCATED, detail=detail + limit)
    if filtered:
        return replace(
            made, outcome=Outcome.DEGRADED, detail=f"The endpoint cut the reply short: {said}."
        )
    if repaired or malformed:
        how = "after repair" if repaired else "in part"
        return replace(
            made, outcome=Outcome.DEGRADED, detail=f"The reply was readable {how}: {said}."
        )
    if not made.extracted:
        detail = "The model found nothing worth keeping."
        if made.missed:
            asked = len(made.missed)
            detail += f" Yet {asked} message{'s' * (asked > 1)} asked to remember something."
        return replace(made, outcome=Outcome.NOTHING, detail=detail)
    return replace(made, outcome=Outcome.OK, detail=f"{said[0].upper()}{said[1:]}.")


MALFORMED = frozenset(
    {"no_content", "content_is_no_text", "cut_off", "broken_call", "no_item", "placeholder"}
)


def _raw(raw: str, calls: Sequence[Any]) -> str:
    """What to keep for the console: the text, or the arguments where there was none."""
    if raw.strip() or not calls:
        return raw
    return "\n".join(c if isinstance(c, str) else repr(c) for c in calls)
