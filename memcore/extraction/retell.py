# ruff: noqa: E501
"""First person → third: "我不吃辣" → "用户不吃辣", "I prefer tabs" → "User prefers tabs".

Pure: no I/O. Only the pronouns and the verb that follows change; everything else stays as it was
said. A speaker with a name is called by it.
"""

from __future__ import annotations

import re

_IRREGULAR = {
    "am": "is", "'m": "is", "have": "has", "'ve": "has", "do": "does", "don't": "doesn't",
    "go": "goes", "was": "was", "will": "will", "'ll": "will", "'d": "would", "can": "can",
    "can't": "can't", "cannot": "cannot", "could": "could", "would": "would", "should": "should",
    "must": "must", "might": "might", "did": "did", "didn't": "didn't", "had": "had",
    "won't": "won't", "may": "may", "grew": "grew", "got": "got", "went": "went", "lived": "lived",
}  # fmt: skip
_ADVERBS = frozenset(
    """usually always often typically normally generally never really also still just only actually
    currently mostly strongly absolutely already recently now regularly finally personally""".split()
)
_PAST = frozenset(
    "was were had did went got grew came saw made took began chose ran wrote drove found left met "
    "bought thought taught broke spoke knew kept felt held built sent spent lost won".split()
)
_VERB = re.compile(r" ([A-Za-z'’]+)")


def third_person(clause: str, name: str = "") -> str:
    """`clause` said by somebody, told about them. `name` empty: the user."""
    if re.search("[\u3400-\u9fff]", clause):
        return _chinese(clause, name or "用户")
    return _english(clause, name or "User")


def has_subject(clause: str) -> bool:
    """Does the clause say by itself who or what it is about? Decided for Chinese, which drops it
    where it is the speaker."""
    return bool(
        re.match(
            r"^(?:我|你|他|她|它|咱|用户|团队|项目|公司|系统|大家|本人|这|那|每个人|[\u4e00-\u9fffA-Za-z ]{1,10}?(?:是|在|的|用|有|叫|必须|不能|已经|定在|改))",
            clause,
        )
    )


def _chinese(clause: str, who: str) -> str:
    out = re.sub(r"(?:我们|咱们?|我方)", "团队", clause)
    out = re.sub(r"本人|俺", who, out)
    out = re.sub(r"(?<!自)我(?!国|省|市)自己", who, out)
    out = re.sub(r"(?<!自)我(?!国|省|市)", who, out)
    return re.sub(r"你们?(?=的?(?:回答|回复|解释|代码|语气))", "助手", out)


def _english(clause: str, who: str) -> str:
    out = re.sub(r"\b(?:my own|my)\b", f"{who}'s", clause, flags=re.IGNORECASE)
    out = re.sub(r"\b(?:mine)\b", f"{who}'s", out, flags=re.IGNORECASE)
    out = re.sub(r"\b(?:me|myself)\b", who, out, flags=re.IGNORECASE)
    out = re.sub(r"\b(?:our own|our)\b", "the team's", out, flags=re.IGNORECASE)
    out = re.sub(r"\bus\b", "the team", out)
    out = _conjugated(out, r"\bi\b", who, plural=False)
    out = _conjugated(out, r"\bwe\b", "the team", plural=False)
    return out[:1].upper() + out[1:]


def _conjugated(text: str, pronoun: str, who: str, *, plural: bool) -> str:
    """`text` with `pronoun` replaced and the verb after it in the third person."""
    out, at = [], 0
    for found in re.finditer(pronoun + r"(?:['’](m|re|ve|ll|d)\b)?", text, re.IGNORECASE):
        if found.start() < at:
            continue
        out += [text[at : found.start()], who]
        at = found.end()
        if short := found[1]:
            out.append(
                {"m": " is", "re": " is", "ve": " has", "ll": " will", "d": " would"}[short.lower()]
            )
            continue
        while verb := _VERB.match(text, at):
            word = verb[1].replace("’", "'")
            at = verb.end()
            if word.lower() in _ADVERBS or (word.endswith("ly") and word.lower() != "apply"):
                out.append(f" {word}")
                continue
            out.append(f" {word if plural else _third(word)}")
            break
    return "".join(out) + text[at:]


def _third(verb: str) -> str:
    low = verb.lower()
    if low in ("are", "am"):
        return "is"
    if low == "were":
        return "was"
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low in _PAST or low.endswith("ed") or not low.isalpha():
        return verb
    if low.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"
