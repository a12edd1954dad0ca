"""Memories → profile. Pure: no I/O; the same memories in any order give the same profile.

A profile is computed when it is read, from memories that are active and visible at that moment, so
a suppressed, edited, deleted or expired memory leaves it at once and an empty answer of a model can
never wipe it. What people wrote by hand is kept apart, field by field, and never overwritten.

Statements of one type that say the same are shown once, with all the memories behind them; where a
newer one updates or contradicts an older one (rules/duplicates), the newer is shown and the older
named as replaced.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memcore.errors import InvalidInput
from memcore.models import Memory, MemoryType, Scope
from memcore.rules import duplicates, lexical
from memcore.text import clean_tree

ORDER = tuple(
    MemoryType(name)
    for name in (
        "constraint preference habit skill fact decision task_progress event context reference"
    ).split()
)
"""Types as a profile lists them: what must be minded first, what may be looked up last."""

_RIVALS = 8
"""A statement is compared with this many earlier ones of its type that share most terms."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One line of a profile."""

    content: str
    memory_type: MemoryType
    memory_id: str
    confidence: float
    scope: Scope
    updated_at: datetime
    also: tuple[str, ...] = ()
    """Other memories that say the same."""
    replaced: tuple[str, ...] = ()
    """Older memories this one updates or contradicts."""


@dataclass(frozen=True, slots=True)
class Profile:
    kind: str
    """user or project."""
    subject_id: str
    library_id: str
    statements: tuple[Statement, ...]
    """By type in ORDER, then confidence, then newest."""
    counts: Mapping[MemoryType, int]
    """Memories behind it, by type."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What people wrote by hand. None and [] are values; a missing key is not."""
    version: int = 0
    """Of `fields`; 0 where nobody wrote any."""
    edited_by: str | None = None
    edited_at: datetime | None = None


def aggregate(memories: Iterable[Memory]) -> tuple[tuple[Statement, ...], Counter[MemoryType]]:
    """Statements and the count of memories by type. Callers pass what is active and visible."""
    pool = sorted(memories, key=lambda m: (m.created_at, m.id))
    counts = Counter(m.memory_type for m in pool)
    kept: dict[str, Statement] = {}
    posting: dict[tuple[MemoryType, str], list[str]] = {}
    for memory in pool:
        terms = set(lexical.index_terms(memory.content))
        new = Statement(
            memory.content,
            memory.memory_type,
            memory.id,
            memory.confidence,
            memory.scope,
            memory.updated_at,
        )
        for rival_id in _rivals(posting, memory.memory_type, terms, kept):
            old = kept[rival_id]
            relation = duplicates.compare(old.content, memory.content).relation
            if relation in ("same", "covered"):
                new = replace(
                    old,
                    confidence=max(old.confidence, memory.confidence),
                    also=(*old.also, memory.id),
                )
                break
            if relation in ("update", "conflict", "extended"):
                del kept[rival_id]
                gone = (*old.replaced, old.memory_id, *old.also)
                new = replace(new, replaced=(*new.replaced, *gone))
        kept[new.memory_id] = new
        for term in terms:
            posting.setdefault((memory.memory_type, term), []).append(new.memory_id)
    ordered = sorted(kept.values(), key=lambda s: s.memory_id)
    ordered.sort(key=lambda s: (ORDER.index(s.memory_type), -s.confidence, -_seconds(s)))
    return tuple(ordered), counts


def patched(
    fields: Mapping[str, Any], patch: Mapping[str, Any], removed: Iterable[str] = ()
) -> dict[str, Any]:
    """`fields` with `patch` laid over it, top-level key by key, and `removed` keys taken out; what
    neither names stays. A language is stored as its BCP 47 tag. Raises InvalidInput."""
    out = dict(fields)
    for key in removed:
        out.pop(key, None)
    cleaned = clean_tree(dict(patch))
    assert isinstance(cleaned, dict)
    for key, value in cleaned.items():
        if not key:
            raise InvalidInput("A field needs a name.")
        out[key] = language_tag(value) if key in ("language", "locale") else value
    return out


def field_text(value: Any) -> str:
    """A field's value as one line a person edits: text as it is, anything else as JSON; text that
    would read as JSON keeps its quotes. `field_value` is the inverse."""
    if isinstance(value, str) and field_value(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def field_value(text: str) -> Any:
    """What a person wrote as a field's value: JSON where it is JSON, else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


_LANGUAGES = {
    "中文": "zh", "汉语": "zh", "简体中文": "zh-Hans", "繁体中文": "zh-Hant", "繁體中文": "zh-Hant",
    "英文": "en", "英语": "en", "日语": "ja", "日文": "ja", "韩语": "ko", "法语": "fr",
    "德语": "de", "西班牙语": "es", "chinese": "zh", "english": "en", "japanese": "ja",
    "korean": "ko", "french": "fr", "german": "de", "spanish": "es", "deutsch": "de",
    "français": "fr",
    "español": "es", "日本語": "ja", "한국어": "ko",
}  # fmt: skip
_TAG = re.compile(r"([a-z]{2,3})(?:[-_]([a-z]{4}))?(?:[-_]([a-z]{2}|\d{3}))?\Z", re.I)


def language_tag(value: Any) -> str | None:
    """A language as its BCP 47 tag: "zh_cn" → "zh-CN", "中文" → "zh". Blank and None stay None.
    Raises InvalidInput for what is no language."""
    word = str(value or "").strip().strip("\"'“”「」").strip()
    if not word:
        return None
    if known := _LANGUAGES.get(word.casefold()):
        return known
    match = _TAG.match(word)
    if match is None:
        raise InvalidInput(
            f"{word[:40]!r} is no language.", hint="Write a tag such as zh-CN or en, or its name."
        )
    language, script, region = match.groups()
    parts = (language.lower(), script and script.title(), region and region.upper())
    return "-".join(p for p in parts if p)


def _rivals(
    posting: Mapping[tuple[MemoryType, str], list[str]],
    memory_type: MemoryType,
    terms: set[str],
    kept: Mapping[str, Statement],
) -> list[str]:
    shared: Counter[str] = Counter()
    for term in terms:
        shared.update(i for i in posting.get((memory_type, term), ()) if i in kept)
    return [i for i, _ in sorted(shared.items(), key=lambda s: (-s[1], s[0]))[:_RIVALS]]


def _seconds(statement: Statement) -> float:
    return statement.updated_at.timestamp()
