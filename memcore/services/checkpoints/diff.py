"""What changed between two checkpoints. Pure: no I/O.

Messages are matched by id (without ids: by role, text and calls), lists of things with ids by
their ids, other lists by their longest common run; mappings by key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from memcore.services.checkpoints.values import (
    Change,
    ChatMessage,
    Checkpoint,
    Difference,
    ToolCall,
)

MOST_CHANGES = 1000
_LONGEST_ALIGNED = 400


def diff(before: Checkpoint, after: Checkpoint) -> Difference:
    """What `after` adds to, removes from and changes in `before`. They may be of different
    threads. LangGraph's bookkeeping channels are left out."""
    added, removed, edited = _messages(before.messages, after.messages)
    changes: list[Change] = []
    truncated = False
    old, new = before.state, after.state
    for change in compare(old, new):
        if len(changes) == MOST_CHANGES:
            truncated = True
            break
        changes.append(change)
    was, now = _open(before), _open(after)
    return Difference(
        after.thread_id,
        before.checkpoint_id,
        after.checkpoint_id,
        added,
        removed,
        edited,
        tuple(changes),
        tuple(c for key, c in now.items() if key not in was),
        tuple(_closed(c, after) for key, c in was.items() if key not in now),
        after.octets - before.octets,
        truncated,
    )


def _open(checkpoint: Checkpoint) -> dict[str, ToolCall]:
    return {c.id or f"{c.name}:{_key(c.args)}": c for c in checkpoint.pending_tool_calls}


def _closed(call: ToolCall, after: Checkpoint) -> ToolCall:
    """The call as `after` knows it, with its outcome."""
    return next((c for c in after.tool_states if call.id and c.id == call.id), call)


def compare(before: Any, after: Any, path: str = "") -> Iterator[Change]:
    """Differences between two JSON-like values, depth first."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(k for k in after if k not in before)]:
            place = f"{path}.{key}" if path else str(key)
            if key not in after:
                yield Change(place, "removed", before[key], None)
            elif key not in before:
                yield Change(place, "added", None, after[key])
            else:
                yield from compare(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(before, after, path)
    elif type(before) is not type(after) or before != after:
        yield Change(path, "changed", before, after)


def _lists(before: list[Any], after: list[Any], path: str) -> Iterator[Change]:
    old_ids, new_ids = _ids(before), _ids(after)
    if old_ids and new_ids:
        for key, (i, item) in old_ids.items():
            if key in new_ids:
                j, now = new_ids[key]
                yield from compare(item, now, f"{path}[{j}]")
            else:
                yield Change(f"{path}[{i}]", "removed", item, None)
        for key, (j, item) in new_ids.items():
            if key not in old_ids:
                yield Change(f"{path}[{j}]", "added", None, item)
        return
    for tag, i1, i2, j1, j2 in _opcodes(before, after):
        paired = min(i2 - i1, j2 - j1) if tag == "replace" else 0
        for n in range(paired):
            yield from compare(before[i1 + n], after[j1 + n], f"{path}[{j1 + n}]")
        for i in range(i1 + paired, i2):
            yield Change(f"{path}[{i}]", "removed", before[i], None)
        for j in range(j1 + paired, j2):
            yield Change(f"{path}[{j}]", "added", None, after[j])


def _opcodes(before: list[Any], after: list[Any]) -> list[tuple[str, int, int, int, int]]:
    """Edit steps without the equal runs. Long lists are compared from both ends only, for
    alignment takes quadratic time."""
    old, new = [_key(x) for x in before], [_key(x) for x in after]
    if max(len(old), len(new)) <= _LONGEST_ALIGNED:
        codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [c for c in codes if c[0] != "equal"]
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    middle = ("replace", start, len(old) - end, start, len(new) - end)
    return [middle] if middle[1] < middle[2] or middle[3] < middle[4] else []


def _ids(items: Sequence[Any]) -> dict[str, tuple[int, Any]] | None:
    """Items by id, where each has one of its own."""
    out: dict[str, tuple[int, Any]] = {}
    for i, item in enumerate(items):
        body = item.get("value") if isinstance(item, Mapping) and "__type__" in item else item
        key = body.get("id") if isinstance(body, Mapping) else None
        if key is None or isinstance(key, (Mapping, list)) or str(key) in out:
            return None
        out[str(key)] = (i, item)
    return out or None


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _messages(
    before: Iterable[ChatMessage], after: Iterable[ChatMessage]
) -> tuple[
    tuple[ChatMessage, ...],
    tuple[ChatMessage, ...],
    tuple[tuple[ChatMessage, ChatMessage], ...],
]:
    old, new = _named(before), _named(after)
    return (
        tuple(m for key, m in new.items() if key not in old),
        tuple(m for key, m in old.items() if key not in new),
        tuple(
            (old[key], m) for key, m in new.items() if key in old and _said(old[key]) != _said(m)
        ),
    )


def _named(chat: Iterable[ChatMessage]) -> dict[tuple[str, int], ChatMessage]:
    """Messages by id, else by what they say; equal ones are counted apart."""
    out: dict[tuple[str, int], ChatMessage] = {}
    for message in chat:
        key = message.id or _key(_said(message))
        count = 0
        while (key, count) in out:
            count += 1
        out[(key, count)] = message
    return out


def _said(message: ChatMessage) -> tuple[Any, ...]:
    """What a message says. Outcomes of its calls are another message's."""
    calls = [(c.id, c.name, _key(c.args)) for c in message.tool_calls]
    return (message.role, message.text, message.attachments, str(calls), message.status)
