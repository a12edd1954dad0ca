# ruff: noqa: E501
"""Is a new statement a duplicate of an existing one, an update of it, its contradiction, or
something else? Pure: no I/O.

Similarity alone cannot tell "due on the 8th" from "due on the 9th". `compare` reads the two texts
(canonical.py) and names their relation with a sentence; it knows no thresholds, so a stored
comparison is judged again under any settings (`gate.judge`). Its guards, in order:

1. the same reading: another script, numeral, date format or spacing → same
   about another person's ("the wife's birthday") → distinct
2. one denies what the other says → conflict, when both are about the same thing
3. the same words in other roles ("A reports to B") → distinct
4. a changed number, date, unit or version → update, when the rest agrees; else distinct
5. "switched from A to B", "改为", "now" naming the old value or attribute → update
6. opposites ("dark" / "light", "允许" / "禁止") → conflict
7. one changed name or term: after "is", "lives in", "负责人是" → update; else distinct
8. nothing new → covered; the old and more → extended; otherwise reworded, and similarity decides

Where a guard is unsure whether two statements are about the same thing, it says distinct: both
are kept, and nothing is lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memcore.models import Neighbour
from memcore.rules import subjects
from memcore.rules.canonical import Reading, read
from memcore.rules.opposites import opposite
from memcore.text import normalise, shorten


@dataclass(frozen=True, slots=True)
class Comparison:
    relation: str
    """same: the same statement in another writing. covered: the new one adds nothing. reworded: no
    guard objects, similarity decides. extended: says the old and more. update: the same thing with
    a changed value. conflict: the same thing denied. distinct: about something else, whatever the
    similarity."""
    reason: str


SAME_TOPIC = 0.6
"""Share of words two statements must have in common to be about the same thing (Dice)."""
SAME_SUBJECT = 0.4
"""The same where the new one says that something changed."""


def compare(existing: str, new: str) -> Comparison:
    """The relation of `new` to `existing`, with a sentence that says why."""
    if normalise(existing) == normalise(new):
        return Comparison("same", "it is the same statement.")
    old, now = read(existing), read(new)
    if old.key == now.key:
        return Comparison("same", "it is the same statement in another writing.")
    for guard in (_owners, _denied, _roles, _values, _changed, _opposites, _terms):
        if (found := guard(old, now)) is not None:
            return found
    return _words(old, now)


def annotate(
    text: str, neighbours: Iterable[Neighbour], floor: float | None = None
) -> tuple[Neighbour, ...]:
    """`neighbours` (nearest first) with `relation` and `reason` of each to `text`. With a `floor`,
    what is less similar stays uncompared but for the two nearest: no threshold asks about it, and
    the same statement in another writing is the nearest there is."""
    out = []
    for place, n in enumerate(neighbours):
        if floor is not None and place >= 2 and n.similarity < floor - 1e-6:
            out.append(n)
            continue
        found = compare(n.content, text)
        out.append(replace(n, relation=found.relation, reason=found.reason))
    return tuple(out)


# ---- guards: each says what it found, or None ------------------------------------------------


def _owners(old: Reading, now: Reading) -> Comparison | None:
    a, b = subjects.owner(old), subjects.owner(now)
    if a == b:
        return None
    who = now.cased(b) if b else f"not {old.cased(a)}"
    return Comparison("distinct", f"about somebody else: {who}.")


def _denied(old: Reading, now: Reading) -> Comparison | None:
    if old.negative == now.negative:
        return None
    # "likes coffee" → "likes coffee, no sugar": the denial is of what was added.
    if (added := _clause_added(old, now)) is not None:
        return Comparison("extended", f"it says the same and adds “{added}”.")
    if _clause_added(now, old) is not None:
        return Comparison("covered", "it adds nothing to it.")
    # A date that says since when does not change the subject; a stop is often dated.
    if _shared(old.plain, now.plain) >= SAME_TOPIC or _subset(old.plain, now.plain):
        if _CHANGE.search(now.text) and _new_names(old, now):
            return Comparison("update", "it says that this has changed.")
        what = "the new one denies it" if now.negative else "the existing one denies it"
        return Comparison("conflict", f"both say the same, but {what}.")
    if _CHANGE.search(now.text) and _shared(old.plain, now.plain) >= SAME_SUBJECT:
        return None
    return Comparison("distinct", "one of them is a denial, and of something else.")


_CLAUSE = re.compile(
    r"[,，;；。、]|\.(?=\s)|但是?|不过|只是|除了"
    r"|(?<![a-z])(?:but|without|except|although|though|with no|as long as)(?![a-z])"
)


def _clause_added(old: Reading, now: Reading) -> str | None:
    """What `now` adds in a clause of its own after all that `old` says; None where it does not."""
    for m in _CLAUSE.finditer(now.text):
        start = read(now.text[: m.start()])
        if start.words and (start.key == old.key or _same_words(start, old)):
            return shorten(now.cased(now.text[m.start() :].strip(" ,，;；。、.")), 40)
    return None


def _same_words(a: Reading, b: Reading) -> bool:
    return a.negative == b.negative and a.plain == b.plain and a.values == b.values


_SYMMETRIC = frozenset("和 与 跟 及 或 同 and or & plus vs".split())


def _roles(old: Reading, now: Reading) -> Comparison | None:
    a, b = old.words, now.words
    if a == b or Counter(_spelled(old)) != Counter(_spelled(now)):
        return None
    a, b = tuple(_spelled(old)), tuple(_spelled(now))
    start = 0
    while start < len(a) and a[start] == b[start]:
        start += 1
    end = 0
    while end < len(a) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    core_a, core_b = a[start : len(a) - end], b[start : len(b) - end]
    n = len(core_a)
    for i in range(1, n):
        for j in range(i, n):
            # core = A M B here and B M A there.
            left, middle, right = core_a[:i], core_a[i:j], core_a[j:]
            if right and core_b == right + middle + left:
                if all(w in _SYMMETRIC for w in middle) and not _relation(now, start, end):
                    return Comparison("covered", "the same words, in another order.")
                return Comparison("distinct", "the same words, but who does what is swapped.")
    return None


# A word without content of its own that still says who does what to whom.
_RELATION = re.compile(r"[是把被向给对比]|(?<![a-z])(?:is|are|was|to|of|by|from)(?![a-z])")


def _relation(r: Reading, start: int, end: int) -> bool:
    """True when such a word stands between the words from `start` to `end` from the last."""
    first = _unstopped_offset(r, start)
    last = _unstopped_offset(r, len(r.words) - 1 - end)
    return _RELATION.search(r.unstopped, first, last) is not None


def _values(old: Reading, now: Reading) -> Comparison | None:
    gone = Counter(old.values) - Counter(now.values)
    come = Counter(now.values) - Counter(old.values)
    _drop_vaguer(gone, come)
    if not gone and not come:
        return None
    shared = _shared(old.plain, now.plain)
    if not come:
        return None  # the new one leaves a value out: its words decide
    change = _CHANGE.search(now.text) is not None
    if sum(gone.values()) + sum(come.values()) > 4:
        return Comparison("distinct", "most of its numbers and dates are others.")
    if not gone:
        if change:
            return None  # "got married last month": what changed is said in words
        if (added := _clause_added(old, now)) is not None:
            return Comparison("extended", f"it says the same and adds “{added}”.")
        if shared >= 0.8 and not Counter(old.plain) - Counter(now.plain):
            return Comparison("extended", f"it says the same and adds {_named(now, come)}.")
        return Comparison("distinct", f"it adds {_named(now, come)}.")
    said = f"{_named(old, gone)} became {_named(now, come)}"
    kinds = {kind for kind, _ in gone} | {kind for kind, _ in come}
    if "date" in kinds and "number" in kinds:
        return Comparison("distinct", f"another occasion: {said}.")
    if subjects.numbered(old, now, change):
        return Comparison("distinct", f"about another item: {said}.")
    if not change and subjects.other_subject(old, now):
        return Comparison("distinct", f"about something else, and {said}.")
    if shared >= SAME_TOPIC or (change and shared >= SAME_SUBJECT) or not (old.plain or now.plain):
        if (terms := _terms(old, now)) is not None and terms.relation == "distinct" and not change:
            return terms
        return Comparison("update", f"{said}.")
    return Comparison("distinct", f"{said}, and the rest differs too.")


_CHANGE = re.compile(
    r"改(?!善|进|革|天|日)|换(?!句)|变[成为更]|调[到至整为]|转[到为向]|迁移?[到至]|搬|升级?到|降级?[到至]|更新[为到]|替换|取代|代替|而是"
    r"|不再|如今|现在|现任|目前|最新|从.{1,24}?[到至]"
    r"|(?<![a-z])(?:now|no longer|any ?more|instead|switch(?:ed|es)?|chang(?:ed?|es)|mov(?:ed?|es)|replac(?:ed?|es)|migrat(?:ed?|es)"
    r"|upgrad(?:ed?|es)|downgrad(?:ed?|es)|renam(?:ed?|es)|updat(?:ed?|es)|postponed|rescheduled|delayed|as of|from now on|since then|used to|became|converted|transferred|promoted|relocat(?:ed?|es)|got married|got divorced|resigned|retired|graduated)(?![a-z])"
    r"|结婚了|离婚了|离职|辞职|跳槽|退休了"
)
_CHANGE_WORDS = re.compile(
    r"(?:改|换|变|调|转|迁|搬|升级?|降级?|更新|替换)[到至成为整]*|不再|如今|现在|现任|目前|最新"
    r"|(?<![a-z])(?:now|no longer|any ?more|instead|switched|changed|moved|replaced|migrated|upgraded|renamed|updated)(?![a-z])"
)
_FROM_TO = (
    re.compile(
        r"从(.{1,24}?)(?:切换|更换|跳槽|调动|转岗|搬家|迁移|升级|降级|改|换|变|调|转|迁|搬|升|降|跳)?[到至成为]+(.{1,24})"
    ),
    re.compile(r"(?:由|把|将)(.{1,24}?)(?:改|换|变|调|转|迁|搬|升|降)[到至成为]+(.{1,24})"),
    re.compile(r"(?<![a-z])from (.{1,40}?) to (.{1,40})"),
    re.compile(r"(?<![a-z])(.{1,40}?) (?:instead of|rather than|replac\w+) (.{1,40})"),
    re.compile(r"(.{1,24})(?:代替|取代|替换|替代)了?(.{1,24})"),
)
_BECAME = re.compile(
    r"(.{1,40}?)(?:现在|已经?|都|全)*(?:[换改变升调][成为用到]|切换[成为到]|更换[成为]|升级[到为]|调整[到为]|替换[成为])了?"
    r"|(.{1,40}?) (?:(?:was|is|has been|have been|got|were|are) )?(?:changed|switched|moved|renamed|updated|raised|lowered|increased|reduced|upgraded|migrated) to(?![a-z])"
)
# A change of one of these and a statement of it are about the same attribute.
_ATTRIBUTES = tuple(
    re.compile(p)
    for p in (
        r"住|定居|搬|迁居|现居|居住|(?<![a-z])(?:liv(?:es?|ed|ing)|resid\w+|mov(?:ed?|es|ing)|relocat\w+|based in)",
        r"任职|就职|上班|工作于|在.{1,12}工作|跳槽|入职|离职|换工作|供职|(?<![a-z])(?:works? (?:at|for)|employed|joined|new job|employer|left)",
        r"负责|接手|交接|主管|牵头|(?<![a-z])(?:owner|in charge|lead(?:s|er)?|responsible|took over|takes over)",
        r"部署|托管|迁移|运行[在于]|(?<![a-z])(?:hosted|deployed|runs on|migrated)",
        r"单身|结婚|已婚|离婚|(?<![a-z])(?:married|single|divorced|engaged)",
    )
)


def _changed(old: Reading, now: Reading) -> Comparison | None:
    """The new statement says that something changed: is it what the old one says?"""
    if not _CHANGE.search(now.text):
        return None
    if _CHANGE.search(old.text):
        if not set(old.plain[:2]) & set(now.plain[:2]):
            return Comparison("distinct", "both tell of a change, but of something else.")
        return None
    for pattern in _FROM_TO:
        m = pattern.search(now.text)
        if m is None:
            continue
        for part in (m[1], m[2]):
            term = tuple(w for w in read(part.strip()).words)
            rest = Counter(now.plain) - Counter(term)
            known = bool(term) and _contains(old.words, term[-4:])
            # The value that was is named; what has it must be the same thing.
            about = Counter(old.plain) - Counter(term)
            same = any(a.search(old.text) and a.search(now.text) for a in _ATTRIBUTES)
            if known and (
                not about
                or same
                or old.words[0] == next(iter(now.words), "") not in term
                or sum((about & rest).values()) >= 0.4 * sum(about.values())
            ):
                return Comparison("update", "it says what the existing one has changed to.")
    # "the car was changed to": what has changed is named, and the old one says what it was.
    became = _BECAME.match(now.text)
    subject = read(became[1] or became[2]).plain if became else ()
    if subject and old.plain[: len(subject)] == subject and len(old.plain) > len(subject):
        return Comparison("update", "it says that this has changed.")
    # "改到", "moved to" say that it changed, not what.
    bare = read(_CHANGE_WORDS.sub(" ", now.text)).plain
    shared = _shared(old.plain, bare)
    for attribute in _ATTRIBUTES:
        if (
            attribute.search(old.text)
            and attribute.search(now.text)
            and subjects.one_subject(old, now)
        ):
            return Comparison("update", "it says that this has changed.")
    head = bare[: max(2, len(bare) // 3)]
    if head and _contains(old.plain[: len(head) + 2], head[:2]) and shared >= SAME_SUBJECT:
        return Comparison("update", "it says that this has changed.")
    return None


def _opposites(old: Reading, now: Reading) -> Comparison | None:
    # The cheap question first: most neighbours are about something else.
    if _shared(old.plain, now.plain) < SAME_SUBJECT:
        return None
    pair = opposite(old.text, now.text)
    if pair is None or (old.negative and now.negative):
        return None  # two denials: "讨厌", "不喜欢" say the same
    if subjects.heads_apart(old, now, pair):
        return Comparison("distinct", f"about something else; “{pair[0]}”, “{pair[1]}”.")
    return Comparison("conflict", f"“{pair[0]}” became “{pair[1]}”.")


# What stands before a value that a thing has only one of.
_ONE = re.compile(
    r"(?:是|为|叫做?|姓|住在?|居住在|定居在?|位于|就职于|任职于|供职于|安排在|定在|定于|排在|截止到?|截至|设[为成]|监听|默认|归|属于|来自|出生于|毕业于|部署在|托管在|存放?在|放在|现任|担任|汇报给|隶属于?|改为|换成|搬到)\s*[\u3400-\u9fff]{0,2}$"
    r"|(?<![a-z])(?:(?:liv(?:es?|ing)|based|located|resides?|works?|working|stationed|hosted|deployed|stored|born|runs?|running|scheduled|due)\s(?:in|at|for|on|by|as)"
    r"|(?:is|are|was)\s(?:called|named|now)|named|called|equals?|set\sto|is|are|was|becomes?|reports\sto|moved\sto|switched\sto|belongs\sto|assigned\sto|owned\sby|led\sby|managed\sby|favou?rite\s\w+\sis)\s(?:the\s|an?\s)?$|[:=]\s*$"
)
_MANY = re.compile(
    r"喜欢|爱|会|懂|学|吃|喝|擅长|过敏|养|去过|看过|玩|买|同事|朋友|爱好|兴趣|成员|之一|客户|宠物|孩子|兄弟|姐妹|同学|包括|有|支持|使用|用过|会用|在用|了解|熟悉|关注|参加"
    r"|(?<![a-z])(?:likes?|loves?|enjoys?|knows?|speaks?|has|have|owns?|visited|plays?|eats?|drinks?|allergic|uses?|colleagues?|friends?|hobb(?:y|ies)|members?|customers?|one of|pets?|child(?:ren)?|includ\w+|supports?)(?![a-z])"
)


def _activity(r: Reading, at: int) -> bool:
    start, end = r.spans[at]
    return r.flat[start:end].endswith("ing") and len(r.words[at]) > 2


_NUMERALS = re.compile("[零〇一二三四五六七八九十百千万两]+")


def _terms(old: Reading, now: Reading) -> Comparison | None:
    """A changed name or technical term: C is not C++, Alice is not Bob."""
    slot = _slot(old, now)
    gone = [w for w in old.plain if w in old.named and w not in now.words]
    come = [w for w in now.plain if w in now.named and w not in old.words]
    if slot is not None:
        at, was, became = slot
        prefix = now.unstopped[: _unstopped_offset(now, at)]
        said = f"“{_spell(old, at, len(was))}” became “{_spell(now, at, len(became))}”"
        if at == 0:
            return Comparison("distinct", f"about something else: {said}.")
        if _activity(old, at) and _activity(now, at):
            return None  # "is cutting", "is slicing": what somebody does is no attribute
        if _NUMERALS.fullmatch("".join(was)) and _NUMERALS.fullmatch("".join(became)):
            return Comparison("update", f"{said}.")
        if _ONE.search(prefix) and not _MANY.search(prefix[-16:]):
            return Comparison("update", f"{said}.")
        if (gone and come) or _MANY.search(prefix) or _MANY.search(now.unstopped[len(prefix) :]):
            return Comparison("distinct", f"{said}; both can hold.")
        return None
    if gone and come:
        return Comparison(
            "distinct",
            f"it names {_all(now, come)}, the existing one {_all(old, gone)}.",
        )
    return None


def _all(r: Reading, words: Sequence[str]) -> str:
    return ", ".join(r.cased(word) for word in words[:3])


def _new_names(old: Reading, now: Reading) -> bool:
    return any(w in now.named and w not in old.words for w in now.plain)


def _words(old: Reading, now: Reading) -> Comparison:
    come = Counter(now.words) - Counter(old.words)
    gone = Counter(old.words) - Counter(now.words)
    values = [w for w in come if w.startswith("=") and now.value(w) not in old.values]
    if not any(not w.startswith("=") for w in come) and not values:
        return Comparison("covered", "it adds nothing to it.")
    if not any(not w.startswith("=") for w in gone) and _begins(now.plain, old.plain):
        added = _spell(now, len(old.words), len(now.words))
        return Comparison("extended", f"it says the same and adds “{added}”.")
    return Comparison("reworded", "the wording differs, but no number, name or denial does.")


# ---- parts -----------------------------------------------------------------------------------


def _shared(a: Sequence[str], b: Sequence[str]) -> float:
    """Dice coefficient of two word multisets; 1 where both are empty."""
    if not a and not b:
        return 1.0
    return 2 * sum((Counter(a) & Counter(b)).values()) / (len(a) + len(b))


def _subset(a: Sequence[str], b: Sequence[str]) -> bool:
    """All of the shorter stands in the longer, and it is not next to nothing."""
    small, large = sorted((a, b), key=len)
    return len(small) >= 2 and not Counter(small) - Counter(large)


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    n = len(part)
    return any(tuple(words[i : i + n]) == tuple(part) for i in range(len(words) - n + 1))


def _begins(words: Sequence[str], start: Sequence[str]) -> bool:
    return tuple(words[: len(start)]) == tuple(start)


def _spelled(r: Reading) -> list[str]:
    return ["=" + r.value(w)[1] if w.startswith("=") else w for w in r.words]


def _spell(r: Reading, at: int, count: int) -> str:
    """Words `at` to `at + count` as they were written, in lower case."""
    spans = r.spans[at : at + count]
    text = r.flat[spans[0][0] : spans[-1][1]] if spans else ""
    text = re.sub("\ue000(\\d+)\ue001", lambda m: r.raws[int(m[1])], text)
    return shorten(r.cased(text.strip()), 40)


def _named(r: Reading, values: Counter[tuple[str, str]]) -> str:
    return ", ".join(f"“{r.written(value)}”" for value in values)


def _drop_vaguer(gone: Counter[tuple[str, str]], come: Counter[tuple[str, str]]) -> None:
    """A date without a year agrees with the same one that has it."""
    for kind, was in list(gone):
        for other, now in list(come):
            if kind == other == "date" and (kind, was) in gone and _agree(was, now):
                gone[kind, was] -= 1
                come[other, now] -= 1
                gone += Counter()
                come += Counter()


def _agree(a: str, b: str) -> bool:
    x, y = a.split("-"), b.split("-")
    known = [(p, q) for p, q in zip(x, y, strict=True) if p and q]
    return bool(known) and all(p == q for p, q in known)


def _slot(old: Reading, now: Reading) -> tuple[int, list[str], list[str]] | None:
    """Where exactly one stretch of words was replaced by another: (position, was, became)."""
    a, b = old.words, now.words
    if not a or not b or a == b:
        return None
    spelled_a, spelled_b = _spelled(old), _spelled(now)
    start = 0
    while start < min(len(a), len(b)) and spelled_a[start] == spelled_b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and spelled_a[-1 - end] == spelled_b[-1 - end]:
        end += 1
    was, became = list(a[start : len(a) - end]), list(b[start : len(b) - end])
    if not was or not became or start + end == 0:
        return None
    if any(w.startswith("=") for w in was + became):
        return None
    # A stretch longer than what it stands in is another statement.
    return (start, was, became) if max(len(was), len(became)) <= max(4, start + end) else None


def _unstopped_offset(r: Reading, at: int) -> int:
    """Where the word at index `at` stands in `unstopped`, which keeps the words that `flat` lost.
    Both are walked together: `flat` is `unstopped` with words blanked."""
    word = r.words[at]
    raw = word if not word.startswith("=") else f"\ue000{word[1:]}\ue001"
    seen = sum(1 for w in r.words[:at] if w == word)
    position = -1
    for _ in range(seen + 1):
        found = r.unstopped.find(raw, position + 1)
        if found < 0:
            break
        position = found
    return max(position, 0)
