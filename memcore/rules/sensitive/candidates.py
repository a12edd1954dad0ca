# ruff: noqa: E501, SIM102
"""Is what stands beside a label its secret?

Pure: no I/O. `value_at` reads what stands at a place; `judged` says what kind of secret it is after
this label, if any. A PIN is digits, a token is machine-made, a password is a mix of characters, or,
where the sentence plainly states it, a word that is not talk about passwords.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memcore.rules.sensitive import labels, spoken
from memcore.rules.sensitive.values import (
    TALK_ZH,
    UUID,
    classes,
    ordinary,
    password_shaped,
    placeholder,
    talk,
    token_shaped,
)

Span = tuple[str, int, int]

_OPEN = re.compile(r"""["'`\[(<{*]{0,2}""")
_CLOSER = {'"': '"', "'": "'", "`": "`", "[": "]", "(": ")", "<": ">", "{": "}"}
RUN = re.compile(r"[!-~]+")
# JSON, query strings and calls go on after a value.
_CUT = re.compile(
    r"""["'`<>]|[,;&](?=[A-Za-z_]{2,20}=)|,(?=["'{\[\d\s])|;(?=[A-Za-z ]|$)|\)[.,;]|/(?=\s|$)"""
)
_HANZI_PHRASE = re.compile(r"[\u4e00-\u9fff]{3,14}(?=\s*(?:$|[,.;!?，。；、！？\n\"')]))")
_WORD_PHRASE = re.compile(r"(?:[a-z]{3,12}[ -]){1,11}[a-z]{3,12}(?=[\s.,!]*(?:$|\n|[.,!]))")
_VERB_PASS = re.compile(
    r"(?<![a-z])(?:to|can|will|must|should|could|would|please|we|you|they|i|and|then|not|let) $"
)
_WORD_AND_NUMBER = re.compile(r"[A-Z][a-z]{3,14} \d{2,6}")
_FUNCTION_WORDS = frozenset(
    "the are must with you and for should that this can not but from has was were will a an is".split()
)
# Luggage and bicycles have three digits.
_THREE = re.compile(
    r"(?:suitcase|luggage|briefcase|bike|bicycle|padlock|箱|车锁|密码锁)[^\n.。]{0,24}$"
)
_THREE_DIGITS = re.compile(r"(?P<v>\d(?:-?\d){2})(?![\w.:/%-]*\d)")
# "#2580", "star 4471".
_KEYPAD = r"(?:[#*]|star |asterisk |hash |pound |[井星]号键?\s?)?"
_CODES = {
    "cvv": re.compile(r"#?(?P<v>\d{3,4}|\d(?: \d){2,3})(?![\w.:/%-]*\d)"),
    "pin": re.compile(_KEYPAD + r"(?P<v>\d{4,8}[#*]?|\d{1,2}(?:-\d{1,2}){2,8})(?![\w.:/%-]*\d)"),
    "otp": re.compile(
        _KEYPAD
        + r"(?P<v>[A-Z]-\d{6}|\d{3}[ -]\d{3}|\d{4}[ -]\d{4}|\d{4,8}[#*]?|\d{1,4}#\d{2,6}|\d{1,2}-\d{1,2}-\d{3,6})(?![\w.:/%-]*\d)"
    ),
}
SPOKEN = frozenset(("口令", "暗号", "密语", "密令", "接头暗语"))
_WEAK = frozenset("token tokens secret secrets ak sk key keys 凭证 凭据 令牌".split())


@dataclass(frozen=True, slots=True)
class Label:
    """A word that announces a secret of `kind`, at [start, end) of the folded text."""

    word: str
    kind: str
    start: int
    end: int


def value_at(text: str, at: int) -> tuple[int, int, bool]:
    """The value at `at`: (start, end, quoted). A quoted value may hold spaces."""
    opened = _OPEN.match(text, at)
    quote = opened.group()[-1:] if opened else ""
    start = opened.end() if opened else at
    if quote in _CLOSER and not (quote == "{" and ":" in text[start : start + 40]):
        end = text.find(_CLOSER[quote], start, start + 160)
        if end > start and "\n" not in text[start:end]:
            return start, end, True
    m = RUN.match(text, start, start + 200)
    if m is None:
        return start, start, False
    run = m.group()
    cut = _CUT.search(run)
    if cut and cut.start() > 0:
        run = run[: cut.start()]
    run = run.rstrip(".,;:?)]}>\"'`*") or run
    if run.endswith("!") and not re.search(r"[0-9@#$%^&*]|[a-z][A-Z]", run):
        run = run.rstrip("!")
    return start, start + len(run), False


def judged(
    text: str, low: str, label: Label, at: int, told: bool, *, first: bool = True
) -> Span | None:
    """The secret that stands at `at`, if what stands there can be one after this label. `told`: a
    link stands between the two. A plain word counts behind the first link only."""
    start, end, quoted = value_at(text, at)
    value = text[start:end]
    if not told and value[:1] in ("_", "-", "/"):
        return None  # the rest of a name
    before = low[max(0, label.start - 40) : label.start]
    explicit = told and re.search(r"[:=]\s*[\"'`(]?$", text[label.end : start]) is not None
    kind = label.kind
    if kind == "key":
        kind = "password" if labels.NETWORK.search(before + low[label.start : start]) else "api_key"
        if kind == "api_key" and not labels.KEY_OWNER.search(
            before
        ):  # whose, is not said: only what is plainly made
            made = token_shaped(value, least=20) and not UUID.fullmatch(value) and "/" not in value
            return (kind, start, end) if made else None
    if kind == "network":
        # "wifi：kafei2031": nothing else is told of a network so shortly, but its name and band.
        told = told and at - label.end <= 4 and len(value) >= 6
        if told and password_shaped(value) and not re.search(r"(?i)[245](?:\.4)?g(?:hz)?$", value):
            return "password", start, end
        return None
    if kind in ("password", "passphrase", "pin", "otp", "cvv") and (
        told or not label.word.isascii()
    ):
        if said := spoken.dictated(low, start):
            return ("password" if kind == "passphrase" else kind), *said
    if kind in _CODES:
        return _code(text, label, kind, start, end, told)
    if kind in ("password", "passphrase"):
        own_word = explicit or kind == "passphrase" or not label.word.isascii()
        named = value[:1].isupper() and value[1:].islower()  # mid-sentence, so no common word
        if label.word == "pass" and not explicit and _VERB_PASS.search(before):
            return None
        loose = first and (own_word or named or bool(labels.OWNED.search(before)))
        if (
            label.word in ("credentials", "credential", "creds", "cred", "账密")
            or "/" in label.word
        ):
            return _pair(text, start, told)
        if told and loose and named and (m := _WORD_AND_NUMBER.match(text, start)):
            if not talk(value) and labels.CLAUSE_END.match(text, m.end()):
                return "password", m.start(), m.end()
        if _password(text, start, end, quoted, told, loose):
            return "password", start, end
        hanzi = value[:1] > "\u2fff" and not TALK_ZH.search(value[:3])
        if told and quoted and hanzi and 3 <= len(value) <= 20 and not _hanzi_talk(value):
            return "password", start, end
        if told and not value:
            m = _HANZI_PHRASE.match(text, start)
            near = start - label.end <= 2
            if m and near and label.word in SPOKEN and not _hanzi_talk(m.group()):
                return "password", m.start(), m.end()
        if told and kind == "passphrase" and (m := _WORD_PHRASE.match(text, start)):
            words = re.split("[ -]", m.group())
            ordinary_words = sum(map(talk, words))
            if not _FUNCTION_WORDS & set(words) and ordinary_words <= (len(words) - 1) // 3:
                return "password", m.start(), m.end()
        return None
    if kind == "session":
        m = re.compile(r"(?:[\w.-]{1,40}=)?(?P<v>[\w%.~+/=:-]{12,})").match(text, start)
        if m and (told or label.word not in ("cookie", "cookies", "session")):
            v = m["v"]
            if token_shaped(v, least=12):
                return "session", m.start("v"), m.end("v")
        return None
    weak = label.word in _WEAK and not explicit
    if _token(value, told, weak):
        owned = "private" in label.word or "wallet" in label.word or label.word == "私钥"
        return ("private_key" if owned else kind), start, end
    if explicit and _password(text, start, end, quoted, told, False) and len(value) >= 6:
        return ("password" if kind == "api_key" else kind), start, end
    return None


def _code(text: str, label: Label, kind: str, start: int, end: int, told: bool) -> Span | None:
    m = _CODES[kind].match(text, start)
    if m is None and told and _THREE.search(text[max(0, label.start - 30) : label.end].lower()):
        m = _THREE_DIGITS.match(text, start)
    if m and not labels.UNIT.match(text, m.end()) and not text[m.end() : m.end() + 1].isalpha():
        bare = label.word in (
            "pin",
            "code",
            "codes",
            "combo",
            "combination",
            "passcode",
            "keypad",
            "padlock",
            "门禁",
        )
        sent = label.word in ("code", "codes") and len(m["v"]) >= 6
        shown = text[label.start : label.end] == "PIN" and len(m["v"]) == 4
        sent = sent or shown or "-" in m["v"]  # "PIN 9417", "combination 14-22-36"
        if told or sent or not (bare and label.word != "passcode") or re.search(
            r"(?i:atm|my|card|sim|door|gate|卡|的)[^.]{0,12}$", text[max(0, label.start - 20) : label.start]
        ):  # fmt: skip
            return kind, m.start("v"), m.end("v")
    value = text[start:end]
    chinese = not label.word.isascii()
    if kind == "pin" and (told or chinese) and label.word not in ("pin", "combination", "combo"):
        if password_shaped(value) or (
            told and chinese and re.fullmatch(r"[a-zA-Z]{6,}", value) and not talk(value)
        ):
            return "password", start, end
    if kind == "otp" and (told or chinese) and re.fullmatch(r"[A-Za-z0-9-]{4,20}", value):
        if any(c.isdigit() for c in value) and any(c.isalpha() for c in value):
            sure = value.upper() == value or sum(c.isdigit() for c in value) >= 3
            if (told or sure) and not ordinary(value):
                return "otp", start, end
    return None


def _pair(text: str, start: int, told: bool) -> Span | None:
    """After "credentials": user and password, apart by a slash, colon or comma."""
    m = re.compile(r"[^\s:/|,]{2,40}\s?[/:|,]\s?(?P<v>[^\s,;]{4,40})").match(text, start)
    if not (told and m) or ordinary(m["v"]):
        return None
    if password_shaped(m["v"]) or re.fullmatch(r"[A-Za-z]{4,}", m["v"]):
        return "password", m.start("v"), m.end("v")
    return None


def _password(text: str, start: int, end: int, quoted: bool, told: bool, loose: bool) -> bool:
    """`loose`: a single word is enough, because the sentence plainly states the password."""
    value = text[start:end]
    if not value or placeholder(value):
        return False
    if quoted and " " in value:
        words = value.lower().split()
        return (
            told
            and 2 <= len(words) <= 12
            and not talk(words[0])
            and not (ordinary(value) or _FUNCTION_WORDS & set(words))
        )
    if re.fullmatch(r"\d{4,14}#?", value):
        year = re.fullmatch(r"(?:19|20)\d\d", value) is not None
        return not labels.UNIT.match(text, end) and (not year or (told and loose))
    if password_shaped(value):
        enough = len(value) >= 4 if told else classes(value) >= 2 and len(value) >= 5
        if not told and len(value) == 4:  # "密码 k8x2"
            enough = text[start - 2 : start - 1] > "\u2fff" and value.isalnum()
        return enough and not labels.UNIT.match(text, end)
    if not (told and loose) or ordinary(value):
        return False
    if re.fullmatch(r"[a-z]{2,12}(?:-[a-z]{2,12}){2,8}", value):
        return sum(map(talk, value.split("-"))) * 2 <= value.count("-") + 1  # house-of-cats
    words = re.split(r"[-.]", value)
    if not all(re.fullmatch(r"[A-Za-z]{3,32}", w) for w in words) or len(value) < 4:
        return False
    return bool(labels.CLAUSE_END.match(text, end)) and not any(talk(w) for w in words)


def _token(value: str, told: bool, weak: bool) -> bool:
    if placeholder(value):
        return False
    if UUID.fullmatch(value):
        return True
    if token_shaped(value, least=16 if weak else 12):
        return True
    if (
        len(value) >= 10
        and classes(value) >= 3
        and re.fullmatch(r"[a-zA-Z]+\d+[a-zA-Z]+\w*", value)
    ):
        return True  # Min10Strong
    return (
        told
        and not weak
        and len(value) >= 8
        and password_shaped(value)
        and not re.search(r"[(\[{]", value)
    )


def _hanzi_talk(phrase: str) -> bool:
    return bool(
        TALK_ZH.search(phrase[:3])
        or re.match(r"[一这那某][部种个句本首款场次项类]", phrase)
        or re.search(r"[吗呢吧么]$|需要|必须|不能|可以|用户|获取|联系|保管", phrase)
    )
