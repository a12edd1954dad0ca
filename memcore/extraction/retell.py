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


_NO_SUBJECT = re.compile(
    r"^(?:(?:以前|之前|目前|现在|平时|一般|通常|最近|每[天周月年晚]|一直|从来|也|还(?!有|是)|就|只|刚|已经|都)*"
    r"(?:在(?!线)|做|干(?!部)|跑(?!道)|种(?!类|子)|住(?!房|宅|址|户)|用(?!户|例|途|量)|想(?!法)|打算|学(?!籍|校|生|期|院|历|位|费|员)|会(?!议|员|话|计|场)|没(?!关系|人)|有(?!人|些|的|时|点)"
    r"|去(?!年)|来(?!源|自)|能(?!力|源|耗)|当(?!时|然|前|地)|教(?!室|材|师|程|育|学)|开(?!发|会|始|关|源|头)|卖(?!家|点)|养(?!老)|带(?!宽)|写(?!字)|读(?!者)|喝|吃|戴|穿|属|试|备战|正在|接着|继续|不(?:会|能|吃|喝|爱|喜欢|想|住|用(?!户)|太|怎么|碰))"
    r"|从来|就我|一[天周月年][一二两三四五六七八九十\d]|(?:腰|膝盖?|血压|血糖|眼睛|胃|颈椎|肩|腿|听力|视力)(?:不|有|偏|高|低|花|疼|做|以前|受|老))"
)
_NO_SUBJECT_EN = re.compile(
    r"(?:trying|working|studying|living|based|aiming|saving|looking|training|learning|expecting|travell?ing|moved|born|raised|grew|been|got|never (?:had|been|owned|tried|learned|learnt|used|\w+ed)"
    r"|can['’]?t|cannot|couldn['’]t|allergic|married|divorced|widowed|retired|vegan|vegetarian|left-handed|stuck with|there['’]?(?:ll)? (?:are|is|be) \w+ of us)\b",
    re.IGNORECASE,
)


def with_subject(clause: str) -> str:
    """`clause` with the speaker put before it, where they were dropped: "做安卓的，七年了",
    "trying to save for a van"."""
    if _NO_SUBJECT.match(clause):
        return f"我{clause}"
    if _NO_SUBJECT_EN.match(clause):
        return f"Me: {clause[:1].lower()}{clause[1:]}"
    return clause


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
    out = re.sub(r"(?<!of )\bus\b", "the team", out)
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
