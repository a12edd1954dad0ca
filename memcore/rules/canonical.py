# ruff: noqa: E501
"""What a statement says, apart from how it is written: its values, its words, whether it denies.

Pure: no I/O. Two statements are compared on this reading (duplicates.py). The same number in another
script ("十二", "１２", "twelve"), another date format or another form of Chinese reads the same; a
number with another unit does not. Letters are folded to lower case, identifiers included.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from memcore.text import clean

# ---- numerals --------------------------------------------------------------------------------

_DIGIT = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "幺": 1}
_TENS = {"十": 10, "百": 100, "千": 1000}
_NUMERAL = re.compile(
    r"[零〇一二三四五六七八九两十百千][零〇一二三四五六七八九两十百千万亿]*"
    r"(?:点[零一二三四五六七八九]+(?=[倍万亿%米元折公]))?"
)
_COUNTED = (
    "个人位名元块角毛分天日号月年周星期礼拜次遍回条台部辆架只头匹小时点刻岁层楼栋间公斤克吨斤两升米里厘寸尺度"
    "版本倍万亿家张页篇节章期轮组队级线车株门所把件套双对箱包袋瓶杯碗份项种段行列步句字%口圈趟席"
)
# Words that contain a numeral and count nothing.
_NO_NUMBER = re.compile(
    "一(?:般|直|起|定|些|样|切|致|旦|向|再|共|贯|并|边|面|方面|下|点儿?|会儿?|律|同|体|流|手|心|时|概|齐|味|系列|个)"
    "|[统唯专万单第]一(?![月天次名章节])|十分(?!钟)|千万(?!元|块|人)|万分|百般|三思|四处|五官|七夕|八卦|九寨|十足|两者|两边|双十"
)
_WORD_NUMBERS = {
    w: i
    for i, w in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
     "ninety": 90, "hundred": 100}  # fmt: skip
_ENGLISH = re.compile(
    r"(?<![a-z])(?:"
    + "|".join(w for w in _WORD_NUMBERS if w not in ("one", "zero"))
    + r")(?![a-z])"
)


def chinese_number(numeral: str) -> float | None:
    """Value of a Chinese numeral such as 十二, 三千五, 二〇三一; None where it is none."""
    whole, _, fraction = numeral.partition("点")
    if not whole or (fraction and not all(c in _DIGIT for c in fraction)):
        return None
    if all(c in _DIGIT for c in whole):
        value = float("".join(str(_DIGIT[c]) for c in whole))
    else:
        total, section, digit, last = 0, 0, 0, 1
        for c in whole:
            if c in _DIGIT:
                digit = _DIGIT[c]
            elif c in _TENS:
                section += (digit or 1) * _TENS[c]
                last, digit = _TENS[c], 0
            else:
                unit = 10_000 if c == "万" else 100_000_000
                if unit == 10_000:
                    total += (section + digit) * unit
                else:
                    total = (total + section + digit) * unit
                section, digit, last = 0, 0, unit
        # 三千五 is 3,500: a digit at the end counts the next lower unit.
        if digit and last >= 100 and "零" not in whole and "〇" not in whole:
            digit *= last // 10
        value = float(total + section + digit)
    if fraction:
        value += float("0." + "".join(str(_DIGIT[c]) for c in fraction))
    return value


def _arabic(text: str) -> str:
    """`text` with counting numerals in digits."""
    if re.search("[一二三四五六七八九两十百千]", text):
        spared = {m.start() + i for m in _NO_NUMBER.finditer(text) for i in range(len(m.group()))}
        text = re.sub(r"百分之(?=[一二三四五六七八九十\d])", "%之", text)

        def convert(m: re.Match[str]) -> str:
            numeral = m.group()
            after = text[m.end() : m.end() + 1]
            before = text[max(0, m.start() - 1) : m.start()]
            counted = after != "" and (after in _COUNTED or after == " ")
            if m.start() in spared or not (
                counted or len(numeral) > 2 or before in ("第", "周", "期", "拜", "之")
            ):
                return numeral
            value = chinese_number(numeral)
            return numeral if value is None else f"{value:g}" if value < 1e6 else f"{value:.0f}"

        text = _NUMERAL.sub(convert, text)
        text = re.sub(r"%之(\d+(?:\.\d+)?)", r"\1%", text)
    return _ENGLISH.sub(lambda m: str(_WORD_NUMBERS[m.group()]), text)


# ---- values ----------------------------------------------------------------------------------

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = {m: i for i, m in enumerate(_MONTHS, 1)} | {m[:3]: i for i, m in enumerate(_MONTHS, 1)}
_MONTH["sept"] = 9
_MONTH_WORDS = r"(?P<{0}>" + "|".join(sorted(_MONTH, key=len, reverse=True)) + r")\.?"
_DAYS = {
    d: i
    for i, d in enumerate("monday tuesday wednesday thursday friday saturday sunday".split(), 1)
}
_DAYS |= {d[:3]: i for d, i in _DAYS.items()} | {"tues": 2, "thur": 4, "thurs": 4}
_ZH_DAYS = (
    {"日": 7, "天": 7, "末": 6}
    | {str(i): i for i in range(1, 8)}
    | dict(zip("一二三四五六", range(1, 7), strict=True))
)
_UNITS = {
    "公斤": "kg", "千克": "kg", "kg": "kg", "kgs": "kg", "kilogram": "kg", "kilograms": "kg", "克": "g", "斤": "jin",
    "磅": "lb", "lb": "lb", "lbs": "lb", "pounds": "lb", "吨": "t", "公里": "km", "千米": "km", "km": "km", "kilometers": "km", "kilometres": "km",
    "里": "li", "英里": "mi", "mile": "mi", "miles": "mi", "米": "m", "meters": "m", "metres": "m", "meter": "m", "厘米": "cm", "cm": "cm", "mm": "mm", "毫米": "mm",
    "元": "cny", "块": "cny", "块钱": "cny", "rmb": "cny", "yuan": "cny", "cny": "cny", "人民币": "cny", "美元": "usd", "美金": "usd", "usd": "usd", "dollars": "usd", "dollar": "usd",
    "欧元": "eur", "eur": "eur", "euro": "eur", "euros": "eur", "英镑": "gbp", "gbp": "gbp", "日元": "jpy", "港币": "hkd", "港元": "hkd",
    "秒": "s", "秒钟": "s", "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "ms": "ms", "毫秒": "ms", "分钟": "min", "min": "min", "mins": "min", "minute": "min", "minutes": "min",
    "小时": "h", "个小时": "h", "钟头": "h", "h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "天": "d", "日": "d", "day": "d", "days": "d",
    "周": "w", "星期": "w", "个星期": "w", "礼拜": "w", "week": "w", "weeks": "w", "个月": "mo", "month": "mo", "months": "mo", "年": "y", "year": "y", "years": "y", "岁": "y",
    "%": "%", "percent": "%", "pct": "%", "度": "deg", "°c": "deg", "℃": "deg", "°f": "degf", "kb": "kb", "mb": "mb", "gb": "gb", "g": "g", "tb": "tb", "m": "m", "gbps": "gbps", "mbps": "mbps",
    "倍": "x", "x": "x", "折": "fold", "升": "l", "毫升": "ml", "ml": "ml", "l": "l", "次": "times", "times": "times", "turns": "turns", "轮": "turns",
}  # fmt: skip
_UNIT = "|".join(re.escape(u) for u in sorted(_UNITS, key=len, reverse=True))
_PART = {
    "凌晨": 0,
    "早上": 0,
    "上午": 0,
    "早晨": 0,
    "清晨": 0,
    "中午": 12,
    "下午": 12,
    "傍晚": 12,
    "晚上": 12,
    "晚": 12,
    "早": 0,
    "am": 0,
    "pm": 12,
    "a.m.": 0,
    "p.m.": 12,
}
_CURRENCY = {"$": "usd", "€": "eur", "£": "gbp", "¥": "cny"}


def _date(y: str | None, m: int | str | None, d: str | None) -> str:
    return f"{y or ''}-{int(m) if m else ''}-{int(d) if d else ''}"


def _clock(hour: str, minute: str | None, part: str | None) -> str:
    h = int(hour)
    shift = _PART.get((part or "").strip(), 0)
    if shift and h < 12:
        h += 12
    if part in ("am", "凌晨") and h == 12:
        h = 0
    m = {"半": 30, "整": 0, "一刻": 15, None: 0, "": 0}.get(minute)
    return f"{h:02d}:{int(minute or 0) if m is None else m:02d}"


def _rate(m: re.Match[str]) -> str:
    found = next(g for g in m.groups() if g)
    return found.removesuffix("s") if len(found) > 1 and m[2] else found


_RULES: tuple[tuple[str, re.Pattern[str], Any], ...] = (
    ("date", re.compile(r"(?<!\d)(\d{4})\s?[-/.年]\s?(\d{1,2})\s?[-/.月]\s?(\d{1,2})(?!\d)\s?[日号]?(?:t\d{2}:\d{2}(?::\d{2})?z?)?"),
     lambda m: _date(m[1], m[2], m[3])),
    ("date", re.compile(r"(?<!\d)(\d{1,2})\s?月\s?(\d{1,2})\s?[日号]?"), lambda m: _date(None, m[1], m[2])),
    ("date", re.compile(_MONTH_WORDS.format("m") + r"\s(\d{1,2})(?:st|nd|rd|th)?(?!\d)(?:,?\s(\d{4}))?"),
     lambda m: _date(m[3], _MONTH[m["m"]], m[2])),
    ("date", re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)?\s(?:of\s)?" + _MONTH_WORDS.format("m") + r"(?![a-z])(?:,?\s(\d{4}))?"),
     lambda m: _date(m[3], _MONTH[m["m"]], m[1])),
    ("date", re.compile(r"(?<!\d)(\d{4})\s?年\s?(\d{1,2})\s?月份?"), lambda m: _date(m[1], m[2], None)),
    ("date", re.compile(r"(?<!\d)((?:19|20)\d\d)\s?年(?!前|来|间)"), lambda m: _date(m[1], None, None)),
    ("date", re.compile(r"(?<!\d)(\d{1,2})\s?月份?(?!\d)"), lambda m: _date(None, m[1], None)),
    ("date", re.compile(r"(?<![a-z])(?:in|since|until|by|from|every|before|after)\s" + _MONTH_WORDS.format("m") + r"(?![a-z])"),
     lambda m: _date(None, _MONTH[m["m"]], None)),
    ("date", re.compile(r"(?<!\d)(\d{1,2})\s?[号](?![线楼码机门院])"), lambda m: _date(None, None, m[1])),
    ("weekday", re.compile(r"(?:周|星期|礼拜)([1-7一二三四五六日天末])"), lambda m: str(_ZH_DAYS[m[1]])),
    ("weekday", re.compile(r"(?<![a-z])(" + "|".join(sorted(_DAYS, key=len, reverse=True)) + r")s?(?![a-z])"),
     lambda m: str(_DAYS[m[1]])),
    ("time", re.compile(r"(凌晨|早上|上午|早晨|清晨|中午|下午|傍晚|晚上|晚|早)?\s?(?<!\d)(\d{1,2})\s?[:点时](?!间|候|区|代)\s?(\d{1,2}(?!\d)|半|整|一刻)?分?\s?(am|pm)?"),
     lambda m: _clock(m[2], m[3], m[1] or m[4])),
    ("time", re.compile(r"(?<!\d)(\d{1,2})(?::(\d{2}))?\s?(am|pm|a\.m\.|p\.m\.)(?![a-z])"), lambda m: _clock(m[1], m[2], m[3])),
    ("often", re.compile(r"每(?:隔)?(?:1)?(秒钟?|分钟?|天|日|周|星期|月|年|季度|小时|晚|早)|(?:(?<=[a-z])/\s?|(?<![a-z])(?:per|an?)\s)(s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?)(?![a-z])|(?<![a-z])(daily|weekly|monthly|yearly|annually|hourly|quarterly|nightly)(?![a-z])|(?<![a-z])every\s?(day|week|month|year|hour|quarter|morning|night|evening)(?![a-z])"),
     lambda m: {"日": "天", "星期": "周", "daily": "天", "day": "天", "weekly": "周", "week": "周", "monthly": "月", "month": "月", "yearly": "年",
                "annually": "年", "year": "年", "hourly": "小时", "hour": "小时", "quarterly": "季度", "quarter": "季度", "nightly": "晚", "night": "晚",
                "evening": "晚", "morning": "早", "秒钟": "秒", "分": "分钟", "s": "秒", "sec": "秒", "second": "秒", "min": "分钟", "minute": "分钟", "h": "小时",
                "hr": "小时"}.get(x := _rate(m), x)),
    ("day", re.compile(r"大后天|后天|明天|今天|昨天|前天|明日|今日|昨日|明年|今年|去年|前年|下周|本周|这周|上周|下个?月|本月|这个月|上个?月|(?<![a-z])(?:tomorrow|today|yesterday|(?:next|last|this)\s(?:week|month|year))(?![a-z])"),
     lambda m: {"明日": "明天", "今日": "今天", "昨日": "昨天", "tomorrow": "明天", "today": "今天", "yesterday": "昨天", "next week": "下周", "this week": "本周",
                "last week": "上周", "这周": "本周", "这个月": "本月", "下个月": "下月", "上个月": "上月", "next month": "下月", "last month": "上月", "this month": "本月",
                "next year": "明年", "last year": "去年", "this year": "今年"}.get(m[0], m[0])),
    ("part", re.compile(r"凌晨|早上|上午|早晨|清晨|中午|下午|傍晚|晚上|(?<![a-z])(?:in\sthe\s)?(?:morning|afternoon|evening|noon|night)s?(?![a-z])"),
     lambda m: {"早上": "上午", "早晨": "上午", "清晨": "上午", "morning": "上午", "afternoon": "下午", "evening": "晚上", "night": "晚上", "noon": "中午", "傍晚": "晚上"}.get(
         x := m[0].replace("in the ", "").removesuffix("s"), x)),
    ("version", re.compile(r"(?<![\d.])v?(\d+(?:\.\d+){2,}(?:[-+][\w.]+)?)"), lambda m: m[1]),
    # A number beside a Latin name is a version: Python 3.10 is not 3.1.
    ("version", re.compile(r"(?:(?<=[a-z]\s)|(?<=[a-z])|(?<=版本\s)|(?<=版本)|(?<=版本为\s)|(?<=版本为))v?(\d+\.\d+)(?![\d.%])(?!\s?(?:万|亿|k\b|" + _UNIT + r"))"), lambda m: m[1]),
    ("number", re.compile(r"(?:([$€£¥])\s?)?(?<![\d.a-z_])([-+]?\d+(?:\.\d+)?)\s?(万|亿|千|k(?![a-z])|million|billion)?\s?(?:(个小时|个星期|个月|" + _UNIT + r")(?![a-z]))?"),
     None),
    ("number", re.compile(r"(\d+(?:\.\d+)?)"), lambda m: f"{float(m[1]):.12g}"),
)  # fmt: skip
_SCALE = {"万": 1e4, "亿": 1e8, "千": 1e3, "k": 1e3, "million": 1e6, "billion": 1e9}


def _number(m: re.Match[str]) -> str:
    value = float(m[2]) * _SCALE.get(m[3] or "", 1)
    unit = _UNITS.get(m[4] or "", "")
    # "3 times" and "3 次" count; so does a bare number.
    unit = "" if unit in ("times", "turns") else unit
    return f"{value:.12g}{_CURRENCY.get(m[1] or '', unit) or unit}"


# ---- words -----------------------------------------------------------------------------------

_VALUE_MARK = re.compile("\ue000(\\d+)\ue001")
_TOKEN = re.compile(
    "\ue000\\d+\ue001|\\.?[a-z_][a-z0-9_]*(?:[.'/-][a-z0-9_]+)*[+#]{0,2}|[\u3400-\u9fff\u3005]|[\u3040-\u30ff]+|[가-힣]+"
)
_STOP_EN = frozenset(
    """a an the is are was were be been being am do does did has have had of to in on at for with that this these those it its
    user users i my me we our us he his she her they their them you your and also so then just very really quite now currently
    usually normally generally still already always there as by from into about will would shall should can could may might must
    please that's it's who which one""".split()
)
_STOP_ZH = re.compile(
    "用户|使用者|本人|一定|务必|我们|咱们|我|他们|她们|他|她|其|该|这个|那个|这|那|平时|平常|通常|一般|往常|目前|现在|如今|现如今|当前|现|已经|已|正在|正|仍然|仍|还是|还|一直|总是"
    "|各个|各种|各|不同|所有|每个|每位|全部|任何|的话|的|地|得|了|着|过|吧|呢|啊|呀|吗|嘛|是|很|非常|十分|特别|比较|都|也|就|才|又|在|有|会|能够|能|可以|允许|应该|应当|应|必须|需要|需|要|请|把|将|被|所|之|个|并|且|并且|而且|以及"
)
# "each other word" in which a negation character denies nothing.
_NOT_NEGATIVE = re.compile(
    "不断|不同|不过|不仅|不但|不光|不只|不单|不管|不论|无论|不愧|不错|不少|不妨|不禁|不由得|不由|不得已|不可避免|不可或缺|不约而同|不足|不久|不时|不等|对不起|差不多|了不起|不好意思|不然|要不|不如|不锈钢|不动产|不规则"
    "|不定期|不得不|不能不|不可不|不会不|无线|无锡|无限|无障碍|无人机|无花果|无糖|无缝|没关系|没事|没问题|非常|非洲|非凡|未来|未婚|别人|别的|别墅|个别|特别|区别|级别|类别|性别|辨别|识别|告别|分别|是否|能否|可否|否则"
    "|忍不住|舍不得|来不及|恨不得|巴不得|不止|不客气|不老|不倒|停车|停留|停泊|禁止符|莫名|莫斯科|不惜|不亚于|不乏|不绝|不停"
    "|(?<![a-z])(?:not only|not just|no problem|no doubt|no matter|no one but|nothing but|no\\.(?=\\s?\\d)|cannot but|not to mention|no worries)"
)
# Denials, and the word each leaves when it is taken out ("讨厌" is "not 喜欢").
_NEGATIONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(p), r)
    for p, r in (
        ("讨厌|厌恶|反感", "喜欢"), ("反对", "支持"), ("禁用|停用|弃用|废弃", "使用"), ("拒绝", "接受"),
        ("不喜欢|不爱(?!好)", "喜欢"), ("不允许|不可以|不可|不能|不准|不许|不得|禁止|严禁|不要|不应该?|不用|不必|不需要|无需|无须|不再需要", ""),
        ("不再|从不|从未|从来不|从来没有?|没有|没|未(?!来)|不|别(?=[再用在把让去碰动改直])|勿|无法|无权", ""),
        ("停止|终止|放弃|取消|戒掉|戒了|戒(?=[烟酒糖])|避免|暂停", ""),
        (r"(?<![a-z])(?:dislikes?|hates?|detests?|loathes?|can'?t stand)(?![a-z])", "like"),
        (r"(?<![a-z])(?:forbidden|prohibited|disallowed|banned|not allowed|forbids?|prohibits?|disallows?)(?![a-z])", "allowed"),
        (r"(?<![a-z])disabled?s?(?![a-z])", "enabled"), (r"(?<![a-z])unable(?![a-z])", "able"),
        (r"(?<![a-z])(?:no longer|never|not|cannot|can't|without|no|none|stops?|stopped|quits?|avoids?|avoided|refuses?|refused|ceased|gave up|gives up|abandoned|cancelled|canceled)(?![a-z])", ""),
        (r"(?<=[a-z])n't(?![a-z])", ""),
    )
)  # fmt: skip


# Ways to say the same of people and projects, and the one that is compared.
_SYNONYMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(p), r)
    for p, r in (
        ("喜爱|偏爱|爱好|偏好|热爱|钟爱|爱(?=[吃喝看听玩用读])", "喜欢"),
        ("使用(?!者)|采用|选用|在用", "用"), ("家住|居住|定居|家在", "住"), ("回答|答复|回应", "回复"),
        ("编写|撰写", "写"), ("(?<=[\u4e00-\u9fff]{2})市(?=[\u4e00-\u9fff]{2,3}区)", ""),
        (r"(?<![a-z])(?:enjoy|love|prefer|fancie?)(s?)(?![a-z])", "like"),
        (r"(?<![a-z])(?:resides?|(?:'s )?home is)(?= in(?![a-z]))", "live"),
        (r"(?<![a-z])(?:answer|respond|replies)(?![a-z])", "reply"),
        (r"(?<![a-z])utili[sz]es?(?![a-z])", "use"), (r"(?<![a-z])begins?(?![a-z])", "start"),
        (r"(?<![a-z])(?:works?|is employed) as(?![a-z])", "is"), ("职业是", "是"),
    )
)  # fmt: skip


# "一头大象…": at the start of a statement no number but an article.
_ARTICLE = re.compile(
    "^一(?:个|位|名|只|头|条|群|些|件|台|辆|张|座|棵|匹)(?=[\u4e00-\u9fff]{2})(?!小时|星期|礼拜|月|钟头)"
)


_HANZI = str.maketrans("0123456789", "零一二三四五六七八九")


@dataclass(frozen=True, slots=True)
class Reading:
    """One statement as it is compared."""

    text: str
    """Simplified Chinese, NFKC, lower case, numerals in digits."""
    words: tuple[str, ...]
    """Content words in order; a Chinese character is a word of its own. Values stand as "=N"."""
    spans: tuple[tuple[int, int], ...]
    """Where each word stands in `flat`."""
    unstopped: str
    """`text` with marks for values and without denials."""
    flat: str
    """`unstopped` without the words that carry no content, which the spans refer to."""
    values: tuple[tuple[str, str], ...]
    """(kind, canonical value): date, weekday, time, often, day, part, version, number."""
    raws: tuple[str, ...]
    """Each value as it is written in `text`."""
    original: str
    """As it was written, full-width letters apart."""
    negative: bool
    """An odd number of denials."""
    named: frozenset[str]
    """Words written as names: with a capital inside a sentence, a digit, or a sign (C++, data_dir)."""

    @property
    def key(self) -> tuple[str, bool]:
        """Equal for the same statement in other writing: script, numerals, spacing, marks."""
        marks = _VALUE_MARK.sub(lambda m: f"<{self.values[int(m[1])][1]}>", self.unstopped)
        return re.sub(r"[^\w<>+#%.-]|(?<!\d)[.](?!\w)", "", marks), self.negative

    def value(self, word: str) -> tuple[str, str]:
        """(kind, canonical value) of a word that stands for one."""
        return self.values[int(word[1:])]

    def written(self, value: tuple[str, str]) -> str:
        """A value as a reader of the statement sees it."""
        return self.cased(self.raws[self.values.index(value)].strip())

    def cased(self, words: str) -> str:
        """`words` of `text` with the capitals of the original."""
        for said in (words, words.translate(_HANZI)):
            found = re.search(re.escape(said), self.original, re.IGNORECASE) if said else None
            if found:
                return found.group()
        return words

    @property
    def plain(self) -> tuple[str, ...]:
        """The words without the values."""
        return tuple(w for w in self.words if not w.startswith("="))


@lru_cache(maxsize=1)
def _converter() -> Any:
    import opencc

    return opencc.OpenCC("t2s")


def simplified(text: str) -> str:
    """`text` in simplified Chinese."""
    if not re.search("[\u3400-\u9fff]", text):
        return text
    return str(_converter().convert(text))


def _names(text: str) -> frozenset[str]:
    """Latin words of `text` (case kept) that are written as names."""
    found = set()
    for m in re.finditer(r"[A-Za-z_.][A-Za-z0-9_]*(?:[.'/-][A-Za-z0-9_]+)*[+#]{0,2}", text):
        word = m.group()
        before = text[: m.start()].rstrip()
        opens = not before or before[-1] in ".!?。！？\n"
        capital = any(c.isupper() for c in word[1:]) or (word[0].isupper() and not opens)
        beside_chinese = bool(before) and "\u3400" <= before[-1] <= "\u9fff"
        followed = text[m.end() :].lstrip()[:1]
        beside_chinese |= "\u3400" <= followed <= "\u9fff" and word[0].isupper()
        if capital or beside_chinese or re.search(r"[0-9_+#.]", word.strip(".")):
            found.add(word.lower().removesuffix("'s"))
    return frozenset(found) | {_stem(w) for w in found}


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """`text` read for comparison. Linear."""
    raw = unicodedata.normalize("NFKC", clean(text)).replace("’", "'").replace("‘", "'")
    named = _names(raw)
    s = simplified(raw).casefold()
    s = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", s)
    s = re.sub(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", s)
    s = _ARTICLE.sub("", s)
    s = _arabic(s)
    values: list[tuple[str, str]] = []
    raws: list[str] = []

    def keep(kind: str, canonical: Callable[[re.Match[str]], str], m: re.Match[str]) -> str:
        values.append((kind, canonical(m)))
        raws.append(m.group())
        return f"\ue000{len(values) - 1}\ue001"

    flat = s
    for kind, pattern, canonical in _RULES:
        # A mark's own digits must not be read again.
        pieces = re.split("(\ue000\\d+\ue001)", flat)
        flat = "".join(
            p
            if p.startswith("\ue000")
            else pattern.sub(partial(keep, kind, canonical or _number), p)
            for p in pieces
        )
    flat = _NOT_NEGATIVE.sub(" ", flat)
    denials = 0
    for pattern, instead in _NEGATIONS:
        flat, n = pattern.subn(f" {instead} ", flat)
        denials += n
    for pattern, instead in _SYNONYMS:
        flat = pattern.sub(instead, flat)
    unstopped = flat
    flat = _STOP_ZH.sub(" ", flat)
    words, spans = [], []
    for m in _TOKEN.finditer(flat):
        word = m.group()
        if mark := _VALUE_MARK.fullmatch(word):
            word = f"={mark[1]}"
        elif word[0].isascii():
            word = word.removesuffix("'s").strip("'-/")
            if not word or (word in _STOP_EN and word not in named):
                continue
            word = _stem(word)
        words.append(word)
        spans.append(m.span())
    return Reading(
        s,
        tuple(words),
        tuple(spans),
        unstopped,
        flat,
        tuple(values),
        tuple(raws),
        raw,
        bool(denials % 2),
        named,
    )


def _stem(word: str) -> str:
    """`word` without the endings of number and tense that change no meaning here."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 5 and word.endswith("ing"):
        return word[:-3].rstrip("e")
    if len(word) > 4 and word.endswith("es") and word[-3] in "sxzh":
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1].rstrip("e") if len(word) > 5 else word[:-1]
    if len(word) > 4 and word.endswith("ed"):
        return word[:-2].rstrip("e")
    return word.rstrip("e") if len(word) > 4 else word
