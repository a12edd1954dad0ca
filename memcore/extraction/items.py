# ruff: noqa: E501
"""Items of a reply → proposals: fields read, source looked up, doubtful ones held, repeats
collapsed, the limit kept. Pure: no I/O. Every item ends up in exactly one place of the extraction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memcore.extraction import (
    Action,
    Evidence,
    Extraction,
    Flag,
    Known,
    Proposal,
    Skipped,
    fields,
)
from memcore.extraction.confidence import read_confidence
from memcore.extraction.conversation import split_injected
from memcore.extraction.grounding import Grounding, Heard, ground, hear
from memcore.extraction.shape import Item
from memcore.extraction.speech import negations, numbers_in
from memcore.models import Draft, Message
from memcore.rules import instructions
from memcore.rules.lexical import index_terms
from memcore.text import normalise, shorten

LONGEST_CONTENT = 20_000

_ASKED = re.compile(
    r"记住|记一下|记下|别忘了?|帮我记|给我记|记得(?!.{0,6}吗)|\b(?:remember|don['’]?t forget|keep in mind"
    r"|make a note|note that|for future reference)\b",
    re.IGNORECASE,
)
_DELIBERATION = re.compile(
    r"should I\b|let me (?:think|see|check|output)|I['’]ll (?:set|use|output|go with|classify)"
    r"|\bhmm+\b|(?:^|[.(] ?)(?:wait|actually),? |\b(?:type|confidence|scope)\? |maybe (?:it['’]s |an? )?"
    r"(?:fact|event|preference|habit|skill)|我应该(?:输出|返回|归)|(?:让我|我再)(?:想|看)[想看]|等等[，,]"
    r"|是否(?:应该|要)(?:输出|归为|算作)|算(?:是|作)?(?:fact|preference|event|事实|偏好|事件)(?:吧|吗|[?？])"
    r"|(?:类型|置信度)(?:应该|可能)是",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"[\"'“](?:content|type|confidence|memories)[\"'”]\s*[:：]|</?(?:item|memory|memories|fact|tool_call)\b"
    r"|^\s*```|^\s*[{\[]\s*[\"'“]|[\"']\s*[}\]]\s*[,}\]]*\s*$|<\|\w+\|>",
    re.IGNORECASE,
)
# UTF-8 read as Latin-1 or cp1252: a lead byte's letter and what continuation bytes look like.
_GARBLED = re.compile(
    "\ufffd|(?:[\u00c2-\u00f4][\u0080-\u00bf\u2013-\u203a\u20ac\u2122\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc]{1,3}){3}"
)
_LOOP = re.compile(r"(.{2,24}?)\1{4,}|(\S)\2{14,}", re.DOTALL)


def read_items(
    made: Extraction,
    items: Sequence[Item],
    messages: Sequence[Message],
    known: Sequence[Known],
    limit: int | None,
    turns: Mapping[int, str] | None,
    new: frozenset[str] | None = None,
) -> Extraction:
    """`made` with what `items` become."""
    heard = hear(messages, [k.content for k in known])
    turns = turns or {n: m.id for n, m in enumerate(messages, 1)}
    found: list[Proposal] = []
    skipped = list(made.skipped)
    for item in items:
        read = read_item(item, heard, known, turns)
        if isinstance(read, Skipped):
            skipped.append(read)
        elif new is not None and read.evidence and read.evidence.message_id not in new:
            detail = "An earlier message says this; that message was read before."
            skipped.append(Skipped("from_context", detail, _shown(read)))
        else:
            found.append(read)
    unique, collapsed = collapse(found)
    kept = [p for p in unique if not p.flags]
    held = [p for p in unique if p.flags]
    for part in (kept, held) if limit is not None else ():
        # The order of the source stays; what goes is the least certain, the later of two equals.
        while len(part) > (limit or 0):
            out = part.pop(min(range(len(part)), key=lambda i: (part[i].draft.confidence, -i)))
            skipped.append(Skipped("over_limit", f"At most {limit} are kept.", _shown(out)))
    return replace(
        made,
        proposals=tuple(kept),
        held=tuple(held),
        skipped=tuple(skipped),
        collapsed=collapsed,
        missed=missed([m for m in messages if new is None or m.id in new], unique),
    )


def read_item(
    item: Item, heard: Heard, known: Sequence[Known], turns: Mapping[int, str]
) -> Proposal | Skipped:
    """One item as a proposal, or why it is none."""
    shown = shorten(_dumped(item.value), 200)
    if item.cut:
        return Skipped("cut_off", "The reply ends or breaks inside this item.", shown)
    value: Any = {"content": item.value} if isinstance(item.value, str) else item.value
    if not isinstance(value, Mapping):
        return Skipped("no_item", f"A {type(value).__name__} where an item should be.", shown)
    content, reason = fields.read_content(fields.pick(value, fields.CONTENT_KEYS))
    action, target, notes = _action(value, known)
    if action is Action.DELETE and not content and target:
        content = next(k.content for k in known if k.id == target)
        reason = ""
    if reason:
        seen = ", ".join(str(k)[:30] for k in list(value)[:8])
        return Skipped(reason, f"{_REASONS[reason]} Its keys: {seen}.", shown)
    if action is None:
        return Skipped("no_change", "The model says that nothing changes.", shown)
    if action is Action.DELETE and not target:
        return Skipped("unknown_id", notes[0] if notes else "It names no memory to delete.", shown)
    said, put_in = split_injected(content)
    if put_in and not said:
        return Skipped("echo", "It is a block of injected memories.", shown)
    if len(content) > LONGEST_CONTENT:
        return Skipped("too_long", f"It has {len(content):,} characters.", shown)
    memory_type, note = fields.read_type(fields.pick(value, fields.TYPE_KEYS), item.hint)
    notes += [note] if note else []
    confidence, note = read_confidence(fields.pick(value, fields.CONFIDENCE_KEYS))
    notes += [note] if note else []
    scope, note = fields.read_scope(fields.pick(value, fields.SCOPE_KEYS))
    notes += [note] if note else []
    flags = list(doubts(content, [s.text for s in heard.people]))
    if confidence is None:
        flags.append(Flag("confidence_unreadable", notes[-1] if not note else notes[-2]))
    if item.guessed:
        flags.append(Flag("quotes_guessed", "A quote inside it was not escaped."))
    if action is Action.DELETE:
        flags.append(Flag("deletion", "A person decides whether a memory is deleted."))
    grounding = Grounding(None)
    if not heard.empty and action is not Action.DELETE:
        grounding = ground(content, heard, _pointer(value, turns))
        if grounding.echo:
            return Skipped("echo", grounding.echo, shown)
    draft = Draft(
        content=content,
        memory_type=memory_type,
        scope=scope,
        confidence=confidence if confidence is not None else 0.0,
        title=fields.read_title(fields.pick(value, fields.TITLE_KEYS), content),
        tags=fields.read_tags(fields.pick(value, fields.TAG_KEYS)),
        source="extraction",
        source_message_id=grounding.evidence.message_id if grounding.evidence else None,
    )
    return Proposal(
        draft, grounding.evidence, action, target, (*flags, *grounding.flags), tuple(notes)
    )


_REASONS = {
    "no_content": "It has no content.",
    "content_is_no_text": "Its content is no text.",
    "placeholder": "Its content is a placeholder.",
    "refusal_text": "Its content is a refusal, not a memory.",
}


def _action(
    value: Mapping[str, Any], known: Sequence[Known]
) -> tuple[Action | None, str | None, list[str]]:
    """(action, memory it is about, notes). None: nothing is to change. An id that was not shown
    is never applied to another memory: an update becomes an addition."""
    word = str(fields.pick(value, fields.ACTION_KEYS) or "add").strip().casefold()
    if word in ("none", "noop", "no_change", "nochange", "keep", "unchanged", "ignore", "无变化"):
        return None, None, []
    delete = word in ("delete", "remove", "forget", "删除", "移除")
    if not delete and word not in ("update", "replace", "modify", "merge", "更新", "修改"):
        return Action.ADD, None, []
    given = str(fields.pick(value, fields.TARGET_KEYS) or "").strip().strip("[]#\"' ")
    if any(k.id == given for k in known):
        return (Action.DELETE if delete else Action.UPDATE), given, []
    what = f"unknown id {given!r}" if given else "no id"
    if delete:
        return Action.DELETE, None, [f"It asks to delete {what}."]
    return Action.ADD, None, [f"update of {what}: taken as new"]


def _pointer(value: Mapping[str, Any], turns: Mapping[int, str]) -> str | None:
    """Id of the message the item names as its source: a number, `T3`, an id, or None."""
    given = fields.pick(value, fields.EVIDENCE_KEYS)
    if isinstance(given, list) and given:
        given = given[0]
    if isinstance(given, bool) or given is None or isinstance(given, (dict, list)):
        return None
    if str(given) in turns.values():
        return str(given)
    found = re.fullmatch(
        r"\W*(?:turn|t|m|第)?\s*(\d{1,6})(?:\.0)?(?:轮|条)?\W*", str(given).casefold()
    )
    return turns.get(int(found[1])) if found else None


def doubts(content: str, said: Sequence[str] = ()) -> Iterable[Flag]:
    """What a content shows by itself to be wrong with it. `said`: what people wrote, which is
    their own."""
    if orders := instructions.find(content):
        kinds = ", ".join(dict.fromkeys(f.masked for f in orders))
        yield Flag("instruction_like", f"It reads like an order to the agent ({kinds}).")
    found = _DELIBERATION.search(content)
    if found and not any(found.group() in text for text in said):
        yield Flag("deliberation", f"The model argues with itself: {shorten(found.group(), 40)!r}.")
    if _MARKUP.search(content):
        yield Flag("markup", "It holds pieces of JSON or markup.")
    if _GARBLED.search(content):
        yield Flag("garbled", "Its characters were decoded wrongly.")
    if found := _LOOP.search(content):
        yield Flag("repetition", f"It repeats {shorten(found.group(1) or found.group(2), 24)!r}.")


def collapse(proposals: Sequence[Proposal]) -> tuple[list[Proposal], int]:
    """`proposals` with each statement once, and how many went. The same words: the most certain
    stays. One the longer version of the other: the longer stays. Numbers and denials differ: both
    stay."""
    out: list[Proposal] = []
    for proposal in proposals:
        for place, other in enumerate(out):
            better = _better(other, proposal)
            if better is not None:
                out[place] = better
                break
        else:
            out.append(proposal)
    return out, len(proposals) - len(out)


def _better(a: Proposal, b: Proposal) -> Proposal | None:
    """The one of two that says what both say; None when they say different things."""
    if a.action is not b.action or a.target_id != b.target_id:
        return None
    mine, theirs = (normalise(p.draft.content).removeprefix("the ") for p in (a, b))
    if mine == theirs:
        return b if (not b.flags, b.draft.confidence) > (not a.flags, a.draft.confidence) else a
    short, long = (a, b) if len(mine) <= len(theirs) else (b, a)
    if negations(mine) != negations(theirs):
        return None
    short_numbers = set(numbers_in(short.draft.content))
    if not short_numbers <= set(numbers_in(long.draft.content)):
        return None
    inner, outer = index_terms(short.draft.content), frozenset(index_terms(long.draft.content))
    if len(inner) < 4 or sum(t in outer for t in inner) / len(inner) < 0.9:
        return None
    # The longer one must not be a whole story that merely mentions the shorter.
    return long if len(mine) * 4 >= len(theirs) and not long.flags else None


def missed(messages: Sequence[Message], found: Sequence[Proposal]) -> tuple[str, ...]:
    """Ids of people's messages that asked to remember something of which nothing came."""
    used = {p.evidence.message_id for p in found if p.evidence}
    return tuple(
        m.id
        for m in messages
        if m.role == "user" and m.id not in used and _ASKED.search(split_injected(m.content)[0])
    )


def evidence_of(message: Message, quote: str, rule: str = "") -> Evidence:
    return Evidence(message.id, message.role, shorten(quote, 300), rule)


def _shown(proposal: Proposal) -> str:
    return shorten(proposal.draft.content, 200)


def _dumped(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)
