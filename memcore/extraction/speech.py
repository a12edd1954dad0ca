# ruff: noqa: E501
"""What sentences tell about themselves, in Chinese and English: who they are about, whether they
deny, which numbers they name, which script they are in. Pure: no I/O. Word lists, no model: each
function errs towards saying nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_FRAME = re.compile(
    r"^(?:该|此)?(?:用户|使用者|客户|对方)(?:的|们)?|用户|喜欢|偏好|偏爱|喜爱|习惯|希望|倾向于?|要求|正在|目前"
    r"|\b(?:the )?users?(?:['’]s)?\b|\b(?:prefers?|likes?|loves?|enjoys?|wants?|needs?|has|have|is|are)\b",
    re.IGNORECASE,
)
_KIN = (
    "室友|同事|同学|老板|领导|上司|经理|朋友|闺蜜|哥们|妈妈?|母亲|老妈|爸爸?|父亲|老爸|爸妈|父母|老公|丈夫|先生|老婆"
    "|妻子|太太|媳妇|男朋友|女朋友|男友|女友|对象|儿子|女儿|孩子|宝宝|哥哥?|弟弟?|姐姐?|妹妹?|爷爷|奶奶|外公|外婆"
    "|姥姥|姥爷|叔叔|阿姨|舅舅|姑姑|表哥|表姐|堂弟|娃|闺女|老伴|姑娘|宝贝|邻居|房东|客户|老师|导师|师兄|师姐|下属|队友|搭档|亲戚"
)
KIN_EN = (
    "roommate|flatmate|housemate|colleague|coworker|co-worker|classmate|boss|manager|friend|mom|mum"
    "|mother|dad|father|parents?|husband|wife|spouse|partner|boyfriend|girlfriend|son|daughter|kids?"
    "|child|children|toddler|baby|brother|sister|sibling|grandma|grandmother|grandpa|grandfather|uncle|aunt|cousin"
    "|neighbou?r|landlord|teacher|teammate|client|customer"
)
_SUBJECT_ZH = re.compile(
    rf"^(?:但是?|不过|而且?|因为|所以|其实|另外|还有|对了|那个|然后)?"
    rf"(?:(?:我们?|咱们?|我家|我的|我们的)的?)?(?:[大小二三]?(?:{_KIN})|他们?|她们?)(?![和跟与])"
)
_NAMED_ZH = re.compile(
    r"^(?:[小老阿][\u4e00-\u9fff]|[\u4e00-\u9fff](?:总|工|哥|姐|老师|经理))(?=[会在是要喜负说想用住有每很])"
)
# A full name is told from a common word by a verb that only people do.
_FULL_NAME_ZH = re.compile(
    r"^[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶余潘杜戴夏钟汪任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙段雷钱汤尹黎易常武乔贺赖龚文]"
    r"[\u4e00-\u9fff]{1,2}(?=负责|不?喜欢|讨厌|说|住在|养了|擅长|爱吃|不吃|不喝|对[^，。]{1,8}过敏|会[弹唱写修开做拉])"
)
_SUBJECT_EN = re.compile(
    rf"^(?:but |and |so |also |because |well |actually )*(?:(?:my|our|the|a) )?(?:\w+ )?(?:{KIN_EN})\b"
    r"(?! and i\b)(?:['’]s \w+)?|^(?:but |and |so |also )*(?:he|she|they)\b",
    re.IGNORECASE,
)
_NAMED_EN = re.compile(
    r"^([A-Z][a-z]{2,})(?= (?:is|was|has|will|can|can['’]t|does|doesn['’]t|likes|prefers|wants|said|\w+s)\b|['’]s (?:allergic|an?|the|from|going|learning|in|moving)\b)"
)
_NOT_NAMES = frozenset(
    """The This That These Those There What When Where Who Why How Our Your His Her Its Their And But
    Also Because Please Remember Today Tomorrow Yesterday Monday Tuesday Wednesday Thursday Friday
    Saturday Sunday Everything Nothing Something Each Every One Some Any All Note Now Then Here
    It""".split()
)
_SOMEBODY = re.compile(rf"{_KIN}|他|她|\b(?:{KIN_EN}|he|she|they|his|her|their)\b", re.IGNORECASE)
_NOT = re.compile(
    r"不(?!仅|但|管|论|过|错|少|同|断|久|如|只)|没(?!准)|别(?!的|人|墅|名)|未(?!来)|无法|勿|禁止|拒绝|讨厌"
    r"|\b(?:not|no|never|cannot|without|dislikes?|hates?|avoids?|refuses?|nor)\b|n['’]t\b",
    re.IGNORECASE,
)
_YES = re.compile(
    r"^\W*(?:好的?|可以|行|没问题|同意|就这么|就这样|就用|就按|确认|对的?|是的?|嗯+|成|妥|赞成|定了"
    r"|yes|yeah|yep|sure|ok(?:ay)?|agreed|sounds good|let['’]?s (?:do|go)|perfect|confirmed|go ahead"
    r"|deal|right|correct)(?![\u4e00-\u9fff]{6})",
    re.IGNORECASE,
)
_CONCEPTS = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        r"简洁|简短|精简|简明|短|废话|啰嗦|罗嗦|冗长|长篇大论|太长|一句话|concise|brief|short|terse|verbose|wordy"
        r"|rambl|to the point|long-winded|fluff",
        r"详细|细节|展开|深入|透彻|具体|detail|in[- ]depth|thorough|elaborat|step by step",
        r"深色|暗色|夜间|黑色主题|暗黑|亮瞎|刺眼|dark|night mode|bright",
        r"素食|吃素|不吃肉|荤|vegetarian|vegan|\bmeat",
        r"早起|早睡|清晨|早鸟|early (?:bird|riser)|morning person|get up early",
        r"熬夜|晚睡|夜猫|通宵|night owl|stay(?:s|ing)? up",
        r"远程|在家办公|居家|remote|work(?:s|ing)? from home|\bwfh\b",
        r"过敏|不能碰|起疹|allerg|break out in",
        r"直接|直说|绕弯|客套|开门见山|direct|blunt|straight|sugar-?coat",
        r"表格|列表|分点|条目|要点|table|bullet|list",
        r"异步|发消息|别打电话|不要打电话|留言|async|call me|phone call|text me|message me",
        r"安静|吵|噪音|quiet|nois[ey]|silen",
    )
)
_ZH_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0, "壹": 1}
_ZH_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
_ZH_NUMBER = re.compile("[零〇一二两三四五六七八九十百千万亿]+")
EN_NUMBERS = {
    word: number
    for number, words in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
        fifteen sixteen seventeen eighteen nineteen twenty""".split()
    )
    for word in (words,)
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
     "hundred": 100, "thousand": 1000, "half": 50, "dozen": 12, "couple": 2, "twice": 2,
     "first": 1, "second": 2, "third": 3}  # fmt: skip
_NUMBER = re.compile(r"\d+(?:[,，]\d{3})*(?:\.\d+)?")
_SCRIPTS = (
    ("Japanese", re.compile("[\u3040-\u30ff]")),
    ("Korean", re.compile("[\uac00-\ud7af]")),
    ("Chinese", re.compile("[\u3400-\u9fff]")),
    ("Cyrillic", re.compile("[\u0400-\u04ff]")),
    ("Arabic", re.compile("[\u0600-\u06ff]")),
    ("Hebrew", re.compile("[\u0590-\u05ff]")),
    ("Greek", re.compile("[\u0370-\u03ff]")),
    ("Thai", re.compile("[\u0e00-\u0e7f]")),
    ("Devanagari", re.compile("[\u0900-\u097f]")),
)
_LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]{2,}")


def strip_frame(content: str) -> str:
    """`content` without the words every memory has: the user, likes, prefers, has."""
    return _FRAME.sub(" ", content).strip()


def leading_subject(clause: str) -> str:
    """Whom other than the speaker `clause` is about, judged by how it begins; empty: nobody."""
    clause = clause.strip()
    found = _SUBJECT_ZH.match(clause) or _NAMED_ZH.match(clause) or _FULL_NAME_ZH.match(clause)
    if found:
        return re.sub(
            r"^(?:但是?|不过|而且?|因为|所以|其实|另外|还有|对了|那个|然后)?(?:我们?|咱们?|我家)?的?",
            "",
            found.group(),
        )
    if found := _SUBJECT_EN.match(clause):
        return found.group().split()[-1]
    if (found := _NAMED_EN.match(clause)) and found[1] not in _NOT_NAMES:
        return found[1]
    return ""


def mentions_somebody(text: str) -> bool:
    """Does it name a relation or somebody else at all?"""
    return bool(_SOMEBODY.search(text))


def negations(text: str) -> int:
    return len(_NOT.findall(text))


def agrees(text: str) -> bool:
    """Is a short message a yes to what came before?"""
    return len(text) <= 60 and bool(_YES.match(text)) and "?" not in text and "？" not in text


def same_concept(a: str, b: str) -> bool:
    """Do both touch one of a few wishes that people word in many ways?"""
    return any(c.search(a) and c.search(b) for c in _CONCEPTS)


def script(text: str) -> str:
    """The script most of `text` is in; empty when there is too little to tell. A Chinese character
    weighs like a word, and product names do not make a Chinese sentence Latin."""
    counts = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS}
    if counts["Japanese"] and counts["Japanese"] >= counts["Chinese"] / 6:
        return "Japanese"
    latin = len(_LATIN_WORD.findall(text))
    # A character of these is about a word; of the others, a third of one.
    weights = {n: c if n in ("Chinese", "Japanese") else c / 3 for n, c in counts.items()}
    name, most = max(weights.items(), key=lambda x: x[1])
    # Two characters outweigh four names: "用 pnpm 不用 npm" is Chinese.
    if most and most * 2 >= latin:
        return name
    return "Latin" if latin >= 3 else ""


def numbers_in(text: str, *, words: bool = False) -> Iterator[str]:
    """Numbers in `text` as digits, each in a form of its own. `words`: written-out ones too."""
    text = unicodedata.normalize("NFKC", text)
    for found in _NUMBER.finditer(text):
        plain = re.sub("[,，]", "", found.group())
        plain = plain.rstrip("0").rstrip(".") if "." in plain else plain.lstrip("0") or "0"
        yield plain
        unit = text[found.end() : found.end() + 1]
        if words and unit in ("万", "亿", "千", "k", "K", "w"):
            factor = {"k": 1000, "K": 1000, "w": 10_000}.get(unit) or _ZH_UNITS[unit]
            yield (
                f"{float(plain) * factor:g}"
                if float(plain) * factor < 1e6
                else str(int(float(plain) * factor))
            )
    if not words:
        return
    for found in _ZH_NUMBER.finditer(text):
        yield str(zh_number(found.group()))
        yield from (str(_ZH_DIGITS[c]) for c in found.group() if c in _ZH_DIGITS)
        if text[found.end() : found.end() + 1] == "成":
            yield str(zh_number(found.group()) * 10)
        if "半" in text:
            yield "30"
    for word in re.findall(r"[a-z]+", text.casefold()):
        if word in EN_NUMBERS:
            yield str(EN_NUMBERS[word])


def zh_number(text: str) -> int:
    """The number that Chinese numerals write: 八十五, 三百零二, 一九八四."""
    if not any(c in _ZH_UNITS for c in text):
        return int("".join(str(_ZH_DIGITS[c]) for c in text))
    total = section = digit = 0
    for char in text:
        if char in _ZH_DIGITS:
            digit = _ZH_DIGITS[char]
        elif _ZH_UNITS[char] >= 10_000:
            total = (total + section + digit) * _ZH_UNITS[char]
            section = digit = 0
        else:
            section += (digit or 1) * _ZH_UNITS[char]
            digit = 0
    return total + section + digit
