# ruff: noqa: E501
"""Secrets as they are said: digits in words, dictated letters, dials, answers, things that open.

Pure: no I/O. `dictated` reads what stands behind a label that phrases.py found; `spans` finds what
needs no such label ("the safe opens with …", "the answer to my security question is …").
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memcore.rules.sensitive import labels
from memcore.rules.sensitive.folding import lower
from memcore.rules.sensitive.values import TALK_ZH, ordinary, password_shaped, talk

Span = tuple[str, int, int]

_DIGIT = "(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)"
_HANZI_END = r"(?![\u4e00-\u9fff])"
# "four seven one one", "double seven three nine".
_SAID_DIGITS = re.compile(
    rf"(?:(?:double |triple )?{_DIGIT}[ ,-]{{1,2}}){{2,11}}(?:double |triple )?{_DIGIT}\b", re.ASCII
)
# "二零四八".
_HANZI_DIGITS = re.compile(rf"[零〇一二三四五六七八九幺]{{4,12}}{_HANZI_END}")
# "八个一", "六个 7", "8个8".
_REPEATED = re.compile(
    r"[一二两三四五六七八九十\d]{1,2}\s?个\s?[零一二三四五六七八九\d](?!\s?[\u4e00-\u9fffa-z0-9])(?:[吧了啊哦呢]|(?!\w))"
    rf"|[一二两三四五六七八九十]个[零一二三四五六七八九]{_HANZI_END}",
    re.ASCII,
)
# "capital B lower case lue then 42", "大写的 A 然后 bc": to the end of the clause.
_LETTERS = re.compile(
    r"(?:a |the |all )?(?:capital|upper-?\ ?case|lower-?\ ?case|big|small)\ (?:letter\ )?[a-z](?![a-z]|\s?[-~])[^\n.;。；]{0,100}"
    r"|(?:大写|小写)(?:的|字母)?\s?[a-z](?![a-z]|\s?[-~到至])[^\n。；]{0,60}"
)
# "左三圈 28 右两圈 64", "left 12, right 24, left 6".
_DIAL = re.compile(
    r"(?:先|再|向|往)?[左右][^\n。；]{0,8}?\d{1,2}[^\n。；]{0,8}?[左右][^\n。；]{0,8}?\d{1,2}(?:[^\n。；]{0,8}?[左右][^\n。；]{0,8}?\d{1,2}){0,2}"
    r"|(?:turn )?(?:left|right|clockwise)[^\n.;]{0,16}?\d{1,2}[^\n.;]{0,16}?\b(?:left|right|counter-?clockwise)\b[^\n.;]{0,16}?\d{1,2}(?:[^\n.;]{0,16}?\b(?:left|right|clockwise)\b[^\n.;]{0,16}?\d{1,2})?",
    re.ASCII,
)
SAID = re.compile(
    rf"\b(?:double |triple )?{_DIGIT}[ ,-]{{1,2}}(?:double |triple )?{_DIGIT}\b|[大小]写|\b(?:capital|big|(?:upp|low)er-?\ ?case)\b"
    r"|[一二两三四五六七八九十\d]\s?个\s?[零一二三四五六七八九\d]|[零〇一二三四五六七八九幺]{4}|[左右][^\n]{0,8}\d|\b(?:left|right|clockwise)\b",
    re.ASCII,
)
"""Something `dictated` could read: asked once, before the closer look."""


def dictated(low: str, at: int) -> tuple[int, int] | None:
    """What is spelled out at `at` of a folded lower-case text: (start, end) or None."""
    for pattern in (_SAID_DIGITS, _HANZI_DIGITS, _REPEATED, _LETTERS, _DIAL):
        if m := pattern.match(low, at):
            return m.start(), m.start() + len(m.group().rstrip(" ,"))
    return None


_THING = (
    r"(?:phones?|iphone|ipad|tablet|laptop|computer|pc|mac(?:book)?|safe|doors?|gates?|garage|locks?|lockers?|padlock|alarm"
    r"|suitcase|briefcase|keypad|lockbox|cabinet|shed|building|office|house|home|flat|apartment|barrier|vault)"
)
# What opens something is found from its number: what stands before it, and after.
_NUMBER = re.compile(
    r"(?<![\w.:/%#*-])(?:[#*]?\d{4,8}[#*]?|\d{1,2}(?:-\d{1,2}){2,4})(?![\w.:/%-]*\d)", re.ASCII
)
_VERB = r"(?:unlock|open|disarm|deactivate|arm|turn off)(?:s|ed|d|ing)?"
_BEFORE = re.compile(
    # "the safe opens with the code ", "unlock my phone with "
    rf"(?P<unsure>(?:\b{_THING}\b[^\n.;!?]{{0,30}}?\b{_VERB}\b(?: up| itself)?|\b{_VERB} (?:up )?(?:my|the|our|his|her|it)\b[^\n.;!?]{{0,20}}?)"
    r" (?:with|by|using|via|on|when (?:you |i )?(?:type|enter|dial|press|punch)(?: in)?)(?: typing| entering| dialling| dialing)?"
    r"(?: the| a| code| pin| number| digits| combination| combo| sequence){0,3} $)"
    # "the code for our gate is "
    rf"|(?P<sure>\b(?:code|combination|combo|number|digits) (?:for|to|of) (?:the|my|our|his|her|your) (?:[a-z]{{1,12}} )?{_THING}(?: (?:is|was|to)|:| =) $"
    # "bike lock: "
    r"|\b(?:bike|bicycle|luggage|suitcase|locker|padlock|combination)[ -]?(?:lock)? (?:is|:|=) $)"
    # "the lock on the shed is 2-8-5", "gate: 4432#"
    r"|(?P<dashed>\b(?:locks?|padlock|safe)\b[^\n.;:]{0,24} (?:is|=) $)"
    r"|(?P<keyed>\b(?:gates?|doors?|entrance|entry|lobby|garage|building|barrier|front|back)\s?(?::|=|is)\s?$)"
    # "type in " … " and the garage opens"; "输入 " … "开门"
    r"|(?P<typed>\b(?:type|enter|punch|dial|press|key|use)(?: in)? $|(?:用|输入?|按|拨)\s?(?:密?码)?\s?$)",
    re.ASCII,
)
_AFTER = re.compile(
    rf" and (?:the|my|our) {_THING} (?:opens|unlocks|lets)|,? (?:to|and)(?: the [a-z]+)? ?(?:open|unlock|disarm|get in|enter)"
    r"|\s?(?:键|号)?\s?(?:就|即|便|来)?(?:能|可以?)?(?:解锁|打开|开门|开锁|进门|撤防)"
)


def _opens(low: str) -> Iterator[Span]:
    for m in _NUMBER.finditer(low):
        start, end = m.span()
        before = _BEFORE.search(low, max(0, start - 90), start)
        if before is None:
            continue
        if (
            before["sure"]
            or (before["dashed"] and "-" in m.group())
            or (before["keyed"] and m.group()[-1] in "#*")
            or (before["unsure"] and labels.CLAUSE_END.match(low, end))
            or (before["typed"] and _AFTER.match(low, end))
        ):
            yield "pin", start, end


_SAYS = r"\s?(?:'s|is|was|are|=>?|:|->|→|是|为|填的?是?|写的?是?|设[置为成]{0,2}|选的?是?|用的?是?)+\s?(?:set to |still |just )?"
_ANSWER = (
    # The answer by its name.
    re.compile(
        rf"(?:secur(?:e|ity)|secret|recovery|challenge) (?:question )?answers?(?: (?:i set|i gave|i use|for [a-z ]{{1,24}}?))?{_SAYS}"
    ),
    re.compile(
        r"answers? (?:i (?:gave|set|use) )?(?:to|for) (?:(?:my|the|his|her|our|their|your) )?(?:bank'?s? |account |secret |security |recovery )+"
        rf"questions?(?: ?\([^)\n]{{0,60}}\)|,?[^\n.;?]{{0,60}}?\??){_SAYS}"
    ),
    # A question and then its answer.
    re.compile(
        rf"(?:security|secret|recovery|challenge) (?:questions?|q)\b[^\n]{{0,90}}?\b(?:answer(?:ed|s)?|a\b|my answer|reply)(?: with)?(?:{_SAYS}| (?=[a-z0-9]))", re.ASCII
    ),
    re.compile(
        rf"memorable (?:word|name|place|date|information)(?: (?:for|at|with) [^\n.;,:]{{1,24}}?)?(?:{_SAYS}|(?: that)? i (?:use|set|chose|picked)(?: is)? )"
    ),
    re.compile(rf"maiden name (?:for|at|with) [^\n.;:]{{1,24}}?{_SAYS}"),
    re.compile(rf"(?:密保|安全|找回|验证)(?:问题)?[^\n]{{0,30}}?(?:答案|回答|答)(?:我?[填写设选用]的?)?(?:{_SAYS}|\s?)"),
)  # fmt: skip
_ANSWER_WORDS = (
    "security q",
    "secret q",
    "recovery q",
    "answer",
    "memorable",
    "maiden",
    "question",
    "答",
)
_REPLY = re.compile(
    r"[\"'(\[]{0,2}(?P<v>[a-z0-9][\w'&-]{1,24}(?: [\w'&-]{1,20}){0,3}|[\u4e00-\u9fff]{2,10})(?=[\"')\]]{0,2}\s*(?:$|[,.;!?，。；、！？\n(|]|\s(?:and|but|so|please|for|at)\b))",
    re.ASCII,
)


def spans(text: str) -> Iterator[Span]:
    """What opens things, and answers to security questions, in a folded text."""
    low = lower(text)
    yield from _opens(low)
    if any(word in low for word in _ANSWER_WORDS):
        for pattern in _ANSWER:
            for m in pattern.finditer(low):
                if reply := _REPLY.match(low, m.end()):
                    value = reply["v"]
                    words = value.split()
                    if value[0] > "\u2fff":
                        told = not TALK_ZH.match(value)
                    else:
                        named = all(w[0].isupper() for w in text[slice(*reply.span("v"))].split())
                        told = (
                            password_shaped(value)
                            or not (ordinary(value) or talk(words[0]) or talk(words[-1]))
                            or (named and len(words) > 1)
                        )
                    if told:
                        yield "security_answer", reply.start("v"), reply.end("v")
