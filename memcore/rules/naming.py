"""What a group of texts is about: the words that set it apart from the rest. Pure: no I/O.

A word counts by the share of the group's texts that have it, times how many times likelier it is
there than anywhere (class-based TF-IDF over documents, Grootendorst 2022, with shares instead of
counts so that one long text names nothing). Latin words are compared by stem and shown as they are
written; Chinese has no spaces, so runs of two to four characters compete and the longest that
loses nothing wins: 接口文档, not 接口, 口文, 文档.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

from memcore.rules import lexical

_LONGEST_GRAM = 4
_PER_GROUP = 200
_TOGETHER = 3000


def distinguishing(
    texts: Sequence[str], groups: Sequence[int], *, words: int = 3
) -> dict[int, tuple[str, ...]]:
    """Group → up to `words` words, the most telling first. `groups`: one number per text, −1 for
    in none. At most 200 texts of a group and 3,000 of all are read, evenly spaced."""
    members: dict[int, list[int]] = defaultdict(list)
    for i, group in enumerate(groups):
        members[group].append(i)
    read: dict[int, set[str]] = {}
    surface: dict[str, Counter[str]] = defaultdict(Counter)

    def terms(i: int) -> set[str]:
        if i not in read:
            read[i] = _terms(texts[i], surface)
        return read[i]

    background = _spaced(list(range(len(texts))), _TOGETHER)
    overall = Counter(t for i in background for t in terms(i))
    named = {}
    for group, rows in members.items():
        if group < 0:
            continue
        rows = _spaced(rows, _PER_GROUP)
        counted = Counter(t for i in rows for t in terms(i))
        named[group] = _chosen(counted, len(rows), overall, len(background), surface, words)
    return named


def _chosen(
    counted: Counter[str], size: int, overall: Counter[str], total: int,
    surface: dict[str, Counter[str]], words: int,
) -> tuple[str, ...]:  # fmt: skip
    least = 2 if size > 2 else 1
    scored = []
    for term, count in counted.items():
        if count < least:
            continue
        here = count / size
        everywhere = max(overall[term], count * total / max(total, size), 1) / max(total, 1)
        lift = math.log(1 + here / everywhere)
        scored.append((here * lift * (1 + 0.15 * (len(term) - 2 if _cjk(term) else 0)), term))
    scored.sort(key=lambda s: (-s[0], s[1]))
    picked: list[str] = []
    for _, term in scored[:60]:
        if any(_overlap(term, other, counted) for other in picked):
            # A longer form that nearly always stands where the shorter does says more.
            longer = [
                i for i, other in enumerate(picked)
                if other in term and counted[term] >= 0.75 * counted[other]
            ]  # fmt: skip
            if longer:
                picked[longer[0]] = term
            continue
        if len(picked) < words:
            picked.append(term)
    return tuple(
        dict.fromkeys(surface[t].most_common(1)[0][0] if surface[t] else t for t in picked)
    )


def _overlap(one: str, other: str, counted: Counter[str]) -> bool:
    """True: the two say much the same, as 会议室 and 议室 do."""
    if not (_cjk(one) and _cjk(other)):
        return one == other
    pairs = {one[i : i + 2] for i in range(len(one) - 1)}
    others = {other[i : i + 2] for i in range(len(other) - 1)}
    if pairs & others:
        return True
    # 议室 and 室的: they share the character where one ends and the other begins.
    return one[-1] == other[0] or one[0] == other[-1]


def _terms(text: str, surface: dict[str, Counter[str]]) -> set[str]:
    """The terms of a text, each once; counts how each Latin one is written."""
    out: set[str] = set()
    for run in lexical.runs(unicodedata.normalize("NFKC", text)):
        if not _cjk(run):
            stems = lexical.index_terms(run)
            if stems and not run.isdigit() and len(run) > 1:
                out.add(stems[0])
                surface[stems[0]][run] += 1
            continue
        for size in range(2, _LONGEST_GRAM + 1):
            for start in range(len(run) - size + 1):
                gram = run[start : start + size]
                if not lexical.GRAMMAR.intersection(gram):
                    out.add(gram)
    return out


def _cjk(term: str) -> bool:
    return lexical.is_cjk(term)


def _spaced(rows: list[int], most: int) -> list[int]:
    return rows if len(rows) <= most else [rows[i * len(rows) // most] for i in range(most)]
