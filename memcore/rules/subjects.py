# ruff: noqa: E501
"""Are two statements about the same thing? Pure: no I/O.

A changed value is news of one thing only where the thing is the same: not another person's birthday,
another service's port, another invoice. Works on what canonical.py reads.
"""

from __future__ import annotations

import re
from collections import Counter

from memcore.rules.canonical import Reading, read

_KIN = frozenset(
    """妻子 老婆 太太 丈夫 老公 儿子 女儿 孩子 爸爸 父亲 妈妈 母亲 哥哥 弟弟 姐姐 妹妹 爷爷 奶奶 外公 外婆 同事 朋友 老板 上司 男友
    女友 邻居 室友 wife husband son daughter kid mother father mom dad brother sister grandmother grandfather colleague friend bos
    boss girlfriend boyfriend partner neighbour neighbor roommate""".split()
)


def owner(r: Reading) -> str:
    """Whose it is, where the statement begins with a relative or acquaintance: "用户妻子的生日"."""
    first = r.words[0] if r.words else ""
    for word in (first, "".join(r.words[:2])):
        if word in _KIN:
            return word
    return ""


def other_subject(old: Reading, now: Reading) -> bool:
    """Before the first value, one name was replaced by another: "Order service … 8080"."""

    def before(r: Reading) -> list[str]:
        at = next((i for i, w in enumerate(r.words) if w.startswith("=")), len(r.words))
        return list(r.words[:at])

    a, b = before(old), before(now)
    gone, come = Counter(a) - Counter(b), Counter(b) - Counter(a)
    if not gone or not come:
        return False
    return (a[0] in gone and b[0] in come) or bool(set(gone) & old.named and set(come) & now.named)


def heads_apart(old: Reading, now: Reading, pair: tuple[str, str]) -> bool:
    """More than the opposite words was replaced at the head of the statement."""
    gone = Counter(old.plain) - Counter(now.plain) - Counter(read(pair[0]).words)
    come = Counter(now.plain) - Counter(old.plain) - Counter(read(pair[1]).words)
    return bool(old.plain and now.plain) and old.plain[0] in gone and now.plain[0] in come


_ORDINAL = re.compile(
    r"(?:第|#|no\.? ?|号码|编号|工单|ticket |issue |chapter |room |phase |milestone |sprint |episode |lesson |step |level |page |order |pr |version )\ue000$"
)


_IDENTIFIER = re.compile(r"\d{3,}")
_NOUN_BEFORE = re.compile(
    r"(?<![是为有达到约共听超过用每在])[\u4e00-\u9fff]\s?$"
    r"|(?<![a-z])(?!(?:is|was|are|were|at|to|of|on|for|has|have|costs?|with|from|port|about|over|than|by|runs?|holds?|earns?|pays?) $)[a-z]{3,} $"
)


def _names_a_thing(r: Reading, i: int) -> bool:
    """The number of word `i` is that of a thing of which something is said: "Invoice 1002 was
    paid", "房间 305 灯坏了"."""
    start, end = r.spans[i]
    if i + 1 >= len(r.words) or r.words[i + 1].startswith("="):
        return False
    return i > 0 and bool(_NOUN_BEFORE.search(r.unstopped[: r.unstopped.find(r.flat[start:end])]))


def numbered(old: Reading, now: Reading, changed: bool) -> bool:
    """The changed number says which thing is meant: "第3章", "ticket 12", "三号机床…"."""
    for i, w in enumerate(now.words):
        if not w.startswith("=") or now.value(w) in old.values or now.value(w)[0] != "number":
            continue
        if i == 0 and len(now.words) >= 3:
            return True
        if (
            _IDENTIFIER.fullmatch(now.raws[int(w[1:])].strip())
            and not changed
            and _names_a_thing(now, i)
        ):
            return True
        start = now.flat[: now.spans[i][0] + 1]
        if _ORDINAL.search(start[-16:]) and not changed:
            return True
    return False


def one_subject(old: Reading, now: Reading) -> bool:
    """Both begin with the same word, or with none (then both are about the user)."""
    a = next(iter(old.words), "")
    b = next(iter(now.words), "")
    lead = re.compile(
        r"住|搬|工作|就职|跳槽|入职|liv|mov|work|join|resid|relocat|left|marri|singl|got|divorc|单身|已婚|结婚|离婚"
    )
    return a == b or bool(lead.match(a) and lead.match(b))
