# ruff: noqa: E501
"""A confidence as a model or a file writes it → a number in [0, 1]. Pure: no I/O.

| written | read as |
|---|---|
| nothing | 0.8 |
| a number in [0, 1] | itself (`0.85`, `"0,85"`, `.85`, `零点八五`) |
| below 0; above 1 and below 2 | 0; 1 |
| 2 to 100, or with a percent sign, word or 分 | a percentage (`85 %`, `85 percent`, `eighty-five percent`, `百分之八十五`, `85分`) |
| tenths | `九成`, `八成半`, `九成五` |
| a fraction | `9/10`, `4 out of 5`, `four in five`, `三分之二`, `two thirds` |
| stars | `★★★★☆` |
| a range | its lower end (`0.7-0.9`, `八到九成`) |
| words | certain 0.95, high 0.9, medium 0.6, low 0.3; very, 非常 and the like take high to 0.95 and low to 0.1; medium-high 0.75, medium-low 0.45 |
| a number beside words | the number (`high (0.9)`, `约 85%`) |
| NaN, infinity, above 100, several numbers, anything else | unreadable |
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from memcore.extraction.speech import EN_NUMBERS, zh_number
from memcore.text import shorten

DEFAULT = 0.8
WORDS: Mapping[str, float] = {"certain": 0.95, "high": 0.9, "medium": 0.6, "low": 0.3}
VERY: Mapping[str, float] = {"certain": 0.95, "high": 0.95, "medium": 0.6, "low": 0.1}

_COUNTS = tuple(w for w in EN_NUMBERS if w not in
                ("half", "dozen", "couple", "twice", "first", "second", "third"))  # fmt: skip
_AROUND = re.compile(
    r"置信度|可信度|可信|置信|确信|信心|把握|可能性|性|概率|程度|水平|几乎|基本上?|差不多|比较?|较为?|偏|挺|相对|大约|大概|左右|以上|有|度|的|为|是"
    r"|\b(?:confidence|confident|certainty|probability|likelihood|level|chances?|score|the|a|an?|it|is|i|am|i'm|of|almost|nearly|quite|pretty|fairly|relatively|rather|somewhat)\b|[\W_]",
)
"""What may stand around a word without changing it."""
_BASES = (
    ("low", r"不(?:太)?(?:确定|肯定|高)|没(?:有)?(?:把握|信心)?$|\b(?:not (?:very |so |too |really )?(?:sure|certain|likely|high|confident|strong)|un(?:certain|sure|likely)|doubtful|low|weak|poor|slim|none)\b|低|弱|小"),
    ("certain", r"肯定|确定|一定|绝对|毫无疑问|\b(?:certain(?:ly)?|definite(?:ly)?|absolute(?:ly)?|sure|undoubted(?:ly)?|100)\b"),
    ("medium-high", r"中高|中偏高|中上|\b(?:medium|moderate(?:ly)?|mid)[- ](?:to[- ])?high\b|\bfair(?:ly)? high\b"),
    ("medium-low", r"中低|中偏低|中下|\b(?:medium|moderate(?:ly)?|mid)[- ](?:to[- ])?low\b"),
    ("high", r"高|强|大|\b(?:high(?:ly)?|strong(?:ly)?|likely|probabl[ey]|good|confident)\b"),
    ("medium", r"中等?|一般|适中|还行|可能|\b(?:medium|moderate(?:ly)?|mid|average|fair(?:ly)?|possibl[ey]|maybe|so-so|neutral)\b"),
)  # fmt: skip
_BETWEEN = {"medium-high": 0.75, "medium-low": 0.45}
_STRONG = re.compile(
    r"非常|极其?|十分|特别|很|超级?|最|\b(?:very|extremely|really|highly|super|most)\b"
)
_NUMBER = r"(?:\d+(?:[.,]\d+)?|[.,]\d+)(?:e[+-]?\d+)?"
_ZH = r"[零〇一二两三四五六七八九十百]+(?:点[零〇一二两三四五六七八九]+)?"
_EN = rf"(?:{'|'.join(_COUNTS)})(?:[ -](?:one|two|three|four|five|six|seven|eight|nine))?"
_FRACTIONS = {"half": 0.5, "third": 1 / 3, "quarter": 0.25, "fourth": 0.25, "fifth": 0.2,
              "tenth": 0.1}  # fmt: skip
_SPAN = re.compile(
    r"(?<=[\d%成分十一二两三四五六七八九]) ?(?:-|–|—|~|到|至|to) ?(?=[\d.零一二两三四五六七八九十])"
)


def read_confidence(value: Any) -> tuple[float | None, str]:
    """(confidence in [0, 1], what was assumed). None: something was given that cannot be read. The
    rule is the module's table."""
    if isinstance(value, Mapping):
        keys = ("value", "confidence", "score", "置信度")
        value = next((value[k] for k in keys if value.get(k) is not None), None)
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if value is None or (isinstance(value, str) and not value.strip()):
        return DEFAULT, f"no confidence given: {DEFAULT}"
    if isinstance(value, bool):
        return None, f"confidence {value!r} is no number"
    if isinstance(value, (int, float)):
        return _scaled(float(value) if abs(value) < 1e300 else math.inf, percent=False)
    if not isinstance(value, str):
        return None, f"confidence {shorten(str(value), 40)!r} is no number"
    shown = shorten(value.strip(), 40)
    if len(value) > 80:
        return None, f"confidence {shown!r} is no number"
    text = unicodedata.normalize("NFKC", value).strip().casefold().strip("\"'。! ").rstrip(".")
    parts = _SPAN.split(text)
    if len(parts) == 2:
        # "八到九成", "80-90%": the unit stands behind the second.
        unit = re.search(r"(?:%|percent|成|分)$", parts[1])
        low = parts[0] + (unit.group() if unit and not parts[0].endswith(unit.group()) else "")
        read, note = _one(low, shown)
        if read is None:
            return None, note
        return read, f"confidence {shown!r} read as {read:g}, the lower end"
    return _one(text, shown)


def _one(text: str, shown: str) -> tuple[float | None, str]:
    if stars := re.fullmatch(r"[★⭐]*[☆✩]*", text.replace(" ", "").replace("\ufe0f", "")):
        full = len(re.findall("[★⭐]", text))
        most = max(5, len(stars.group()))
        return full / most, f"confidence {shown!r} read as {full / most:.2f}"
    share = _share(text)
    if share is not None:
        if not 0 <= share <= 1:
            return None, f"confidence {shown!r} is no fraction of 1"
        return share, f"confidence {shown!r} read as {share:.4g}"
    signed = re.findall(rf"(?<![\w.])[+-]?{_NUMBER}", text)
    if len(signed) == 1:
        percent = bool(re.search(rf"{re.escape(signed[0])} ?(?:%|percent|per cent|pct|分)", text))
        rest = text.replace(signed[0], "", 1)
        tenths = text.endswith("分") and float(signed[0].replace(",", ".")) <= 10
        # "8分" may be of ten or of a hundred.
        if tenths or re.search(r"\bnot\b|不|非|[/*^]|^\.\d", rest):
            return None, f"confidence {shown!r} is no number"
        read, note = _scaled(float(signed[0].replace(",", ".")), percent=percent)
        plain = text in (signed[0], signed[0].lstrip("+"))
        return (
            read,
            note if note or plain or read is None else f"confidence {shown!r} read as {read:g}",
        )
    if signed:
        return None, f"confidence {shown!r} holds several numbers"
    return _worded(text, shown)


def _share(text: str) -> float | None:
    """A fraction, a percentage in words or tenths in `text`; None when it has none."""
    if found := re.search(rf"({_NUMBER}) ?(?:/|out of|of|in|分之) ?({_NUMBER})(?![\w.])", text):
        bottom, top = float(found[2].replace(",", ".")), float(found[1].replace(",", "."))
        if "分之" in found.group():
            top, bottom = bottom, top
        return top / bottom if bottom > 0 else math.nan
    if found := re.search(rf"百分之 ?({_NUMBER}|{_ZH})", text):
        return _number(found[1]) / 100
    if found := re.search(rf"({_ZH})分之({_ZH})", text):
        bottom = _number(found[1])
        return _number(found[2]) / bottom if bottom else math.nan
    if found := re.search(rf"({_NUMBER}|{_ZH}) ?成 ?(半|[一二三四五六七八九])?", text):
        rest = 0.5 if found[2] == "半" else zh_number(found[2]) / 10 if found[2] else 0
        return (_number(found[1]) + rest) / 10
    if found := re.fullmatch(r"(?:a |one )?half(?: (?:sure|certain))?|一半|五五开", text):
        return 0.5
    if found := re.search(rf"\b({_EN})[ -](third|quarter|fourth|fifth|tenth)s?\b", text):
        return _english(found[1]) * _FRACTIONS[found[2]]
    if found := re.search(rf"\b({_EN}) (?:out of|in|of) (?:every )?({_EN})\b", text):
        bottom = _english(found[2])
        return _english(found[1]) / bottom if bottom else math.nan
    if found := re.search(rf"\b({_EN}) ?(?:%|percent|per cent|pct)", text):
        return _english(found[1]) / 100
    if found := re.search(rf"\b(?:zero )?point ((?:(?:{'|'.join(_COUNTS)}) ?)+)", text):
        return float("0." + "".join(str(EN_NUMBERS[w]) for w in found[1].split()))
    if found := re.fullmatch(r"([零〇一])点([零〇一二两三四五六七八九]+)", text):
        return _number(found.group())
    if re.fullmatch(r"满分|十拿九稳|八九不离十", text):
        return 1.0 if text == "满分" else 0.9
    return None


def _number(text: str) -> float:
    if text[0].isdigit() or text[0] in ".,":
        return float(text.replace(",", "."))
    whole, _, part = text.partition("点")
    return float(f"{zh_number(whole)}.{''.join(str(zh_number(c)) for c in part) or 0}")


def _english(text: str) -> float:
    return float(sum(EN_NUMBERS[w] for w in re.split("[ -]", text)))


def _worded(text: str, shown: str) -> tuple[float | None, str]:
    for base, words in _BASES:
        rest = re.sub(words, "", text)
        if rest != text and not _AROUND.sub("", _STRONG.sub("", rest)):
            strong = bool(_STRONG.search(text)) and "not " not in text and "不" not in text
            read = _BETWEEN.get(base) or (VERY if strong else WORDS)[base]
            if base == "certain" and re.search(
                r"几乎|基本|差不多|\b(?:almost|nearly|quite|pretty|fairly)\b", text
            ):
                read = WORDS["high"]
            return read, f"confidence {shown!r} read as {read}"
    return None, f"confidence {shown!r} is no number"


def _scaled(number: float, *, percent: bool) -> tuple[float | None, str]:
    if not math.isfinite(number):
        return None, f"confidence {number} is not finite"
    if percent and number <= 100:
        read = max(0.0, number / 100)
        return read, f"confidence {number:g}% read as {read:g}"
    if number < 0:
        return 0.0, f"confidence {number:g} is below 0: 0"
    if number <= 1:
        return number, ""
    if number < 2:
        return 1.0, f"confidence {number:g} is above 1: 1"
    if number <= 100 and not percent:
        return number / 100, f"confidence {number:g} read as a percentage: {number / 100:g}"
    return None, f"confidence {number:g} is out of range"
