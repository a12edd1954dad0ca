"""From a decoded value to the items in it, whatever they are wrapped in. Pure: no I/O.

Knows: a list; one object; an envelope under any of the usual keys or, failing those, the one that
holds items; lists by type (`{"preferences": [...]}`); sentences instead of objects; the sentence as
a key; objects by number; a tool call written as text; JSON inside a JSON string. What has none of
these shapes is None, which is not the same as an empty list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memcore.extraction import fields
from memcore.extraction.lenient import Guessed, Incomplete, strict
from memcore.models import MemoryType
from memcore.text import shorten

ENVELOPES = (
    "memories", "memory", "facts", "items", "results", "result", "records", "entries", "data",
    "output", "extracted", "extractions", "extracted_memories", "proposals", "observations",
    "statements", "list", "response", "answer", "记忆", "记忆列表", "记忆条目", "结果", "列表",
)  # fmt: skip
SENTENCE_ENVELOPES = frozenset(ENVELOPES[:3]) | {"extracted_memories", "observations", "statements",
                                                 "记忆", "记忆列表", "记忆条目"}  # fmt: skip
NO_MEMORIES = frozenset({"none", "null", "n/a", "nothing", "empty", "无", "没有", "空", "[]"})
"""What stands for an empty list in place of one."""
DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that may be a memory."""

    value: Any
    hint: MemoryType | None = None
    """The type its list was named after."""
    guessed: bool = False
    cut: bool = False
    """The text ends or breaks inside it."""


def items_in(value: Any, *, whole: bool = True, depth: int = 0) -> list[Item] | None:
    """The items in `value`; None when it has no shape we know. `whole`: `value` is all there was,
    so plain sentences count; in a value found among prose they do not."""
    if depth > DEEPEST:
        return None
    if isinstance(value, str):
        return _in_string(value, depth) if whole else None
    if isinstance(value, list):
        return _in_list(value, whole, depth)
    if isinstance(value, Incomplete):
        return _in_cut(value, whole, depth)
    if isinstance(value, Mapping):
        return _in_object(value, whole, depth)
    return None


def keys_seen(value: Any) -> str:
    """What an unexpected value looked like, for the message about it."""
    if isinstance(value, Mapping) and _is_error(value):
        error = value["error"]
        said = error.get("message", error) if isinstance(error, Mapping) else error
        return f"an error: {shorten(str(said), 120)}"
    if isinstance(value, Mapping):
        keys = ", ".join(str(k)[:30] for k in list(value)[:8])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)} without usable objects or sentences"
    if value is None:
        return "null"
    return f"a bare {'string' if isinstance(value, str) else type(value).__name__}"


def _in_string(value: str, depth: int) -> list[Item] | None:
    text = value.strip()
    if not text.startswith(("{", "[", '"')):
        return None
    try:
        return items_in(strict(text), depth=depth + 1)
    except (ValueError, RecursionError):
        return None


def _in_list(value: list[Any], whole: bool, depth: int) -> list[Item] | None:
    if all(isinstance(v, str) and v.strip().casefold() in NO_MEMORIES for v in value):
        return []
    out: list[Item] = []
    known = False
    for element in value:
        if isinstance(element, str):
            known = known or (whole and bool(element.strip()))
            out.append(Item(element))
        elif isinstance(element, (list, Mapping)):
            inner = items_in(element, whole=whole, depth=depth + 1)
            known = known or inner is not None
            if inner is None and isinstance(element, Incomplete):
                out.append(Item(dict(element), cut=True))
            elif inner is None or (not inner and isinstance(element, list)):
                out.append(Item(element))
            else:
                out += inner
        else:
            out.append(Item(element))
    return out if known else None


def _in_cut(value: Incomplete, whole: bool, depth: int) -> list[Item] | None:
    """An object that is not closed is no item, but complete items in its lists are."""
    if fields.pick(value, fields.CONTENT_KEYS) is not None and not any(
        isinstance(v, (list, Mapping)) and v for v in value.values()
    ):
        return [Item(dict(value), cut=True)]
    out: list[Item] = []
    shaped = False
    for key, inner in value.items():
        # The outermost object may call its list anything; deeper, an unknown list belongs to an
        # item, and goes with it.
        if str(key).casefold() in ENVELOPES or (not depth and isinstance(inner, list)):
            items = items_in(inner, whole=whole, depth=depth + 1)
            shaped = shaped or items is not None or str(key).casefold() in ENVELOPES
            out += items or []
    if shaped:
        return out
    return None


def _in_object(value: Mapping[str, Any], whole: bool, depth: int) -> list[Item] | None:
    guessed = isinstance(value, Guessed)
    if not value or _is_error(value) or {"properties", "$schema"} & value.keys():
        return None
    content = fields.pick(value, fields.CONTENT_KEYS)
    if rows := _columns(value, content):
        return rows
    if isinstance(content, str):
        decoded = _in_string(content, depth + 1)
        return decoded if decoded else [Item(value, guessed=guessed)]
    if (called := _call(value)) is not None:
        return items_in(called, depth=depth + 1)
    grouped = _by_type(value, depth)
    if grouped is not None:
        return grouped
    for key in ENVELOPES:
        found = next((k for k in value if str(k).strip().casefold() == key), None)
        if found is None:
            continue
        sentences = key in SENTENCE_ENVELOPES
        if (items := _in_envelope(value[found], depth, sentences)) is not None:
            return items
    if content is not None or _about_item(value):
        return [Item(value, guessed=guessed)]
    if keyed := _by_sentence(value):
        return keyed
    out: list[Item] = []
    for inner in value.values():
        if isinstance(inner, (list, Mapping)) and inner:
            out += items_in(inner, whole=False, depth=depth + 1) or []
    return out or None


def _is_error(value: Mapping[str, Any]) -> bool:
    return bool(value.get("error")) and not any(isinstance(v, list) for v in value.values())


def _in_envelope(inner: Any, depth: int, sentences: bool = True) -> list[Item] | None:
    """What an envelope holds. Nothing, said in any way, is an empty list. `sentences`: a string in
    it is a memory rather than a word about the work."""
    if inner is None or inner in ("", {}):
        return []
    if isinstance(inner, str):
        if inner.strip().casefold().strip("。.") in NO_MEMORIES:
            return []
        decoded = _in_string(inner, depth + 1)
        return [Item(inner)] if decoded is None and sentences else decoded
    return items_in(inner, depth=depth + 1)


def _call(value: Mapping[str, Any]) -> Any:
    """The arguments of a tool call that was written out as text."""
    inner = value.get("function") if isinstance(value.get("function"), Mapping) else value
    assert isinstance(inner, Mapping)
    if not isinstance(inner.get("name", inner.get("tool")), str):
        return None
    for key in ("arguments", "parameters", "args", "input", "action_input"):
        if isinstance(inner.get(key), (Mapping, str, list)):
            return inner[key]
    return None


def _by_type(value: Mapping[str, Any], depth: int) -> list[Item] | None:
    """`{"preferences": ["…"], "skills": [{…}]}`; also `{"preference": "…"}`."""
    types = {k: fields.as_type(k) for k in value}
    if not all(types.values()) or (len(value) == 1 and next(iter(value)) in ENVELOPES):
        return None
    out: list[Item] = []
    for key, inner in value.items():
        if isinstance(inner, str) and inner.strip():
            found: list[Item] | None = [Item(inner)]
        else:
            found = _in_envelope(inner, depth)
        out += [Item(i.value, i.hint or types[key], i.guessed, i.cut) for i in found or ()]
    return out


def _columns(value: Mapping[str, Any], content: Any) -> list[Item]:
    """`{"content": ["…", "…"], "type": ["fact", "habit"]}`: a table by columns."""
    if not (isinstance(content, list) and len(content) > 1):
        return []
    whole = {k: v for k, v in value.items() if isinstance(v, list) and len(v) == len(content)}
    if len(whole) < 2 or not all(isinstance(c, str) for c in content):
        return []
    shared = {k: v for k, v in value.items() if k not in whole}
    return [Item({**shared, **{k: v[n] for k, v in whole.items()}}) for n in range(len(content))]


def _about_item(value: Mapping[str, Any]) -> bool:
    """Does it have an item's other fields, though no content?"""
    groups = (
        fields.TYPE_KEYS, fields.CONFIDENCE_KEYS, fields.TAG_KEYS, fields.TITLE_KEYS,
        fields.ACTION_KEYS, fields.TARGET_KEYS,
    )  # fmt: skip
    scalar = {k: v for k, v in value.items() if not isinstance(v, Mapping)}
    return sum(fields.pick(scalar, keys) is not None for keys in groups) >= 2


def _by_sentence(value: Mapping[str, Any]) -> list[Item]:
    """`{"the sentence": "type"}`, and `{"the sentence": {"type": …}}`."""
    out = []
    for key, inner in value.items():
        sentence = any("\u3040" <= c <= "\u9fff" for c in key) or len(key.split()) > 2
        if not sentence or key.strip().casefold() in ENVELOPES:
            return []
        if isinstance(inner, Mapping) and (not inner or _any_field(inner)):
            out.append(Item({**inner, "content": key}))
        elif inner is None or isinstance(inner, (bool, int, float)) or fields.as_type(inner):
            given = {} if isinstance(inner, bool) or inner is None else (
                {"type": inner} if isinstance(inner, str) else {"confidence": inner}
            )  # fmt: skip
            out.append(Item({**given, "content": key}))
        else:
            return []
    return out


def _any_field(value: Mapping[str, Any]) -> bool:
    return any(
        fields.pick(value, keys) is not None
        for keys in (fields.TYPE_KEYS, fields.CONFIDENCE_KEYS, fields.TAG_KEYS)
    )
