# ruff: noqa: E501, SIM102
"""Secrets that are told: a label, a link and a value ("my password is …", "验证码：…", "pw=…").

Pure: no I/O. Labels are found first (labels.py); what stands near each is read within a bounded
distance, so cost is linear in the text. Whether a value counts depends on the label's kind: a PIN
is digits, a token is machine-made, a password is a mix, or after a plain statement a word that is
not talk about passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memcore.rules.sensitive import labels
from memcore.rules.sensitive.folding import lower
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

# A digit, a symbol or a change of case: what every secret but a plain word has.
_MIXED = re.compile(r"[0-9@#$%^&*!~+]|[a-z][A-Z]|[零〇一二三四五六七八九幺]{4}")
# A link and a word: "password is sunshine"; for words said aloud also in Chinese: "口令：芝麻开门".
_WORDED = re.compile(
    r"[^\n.;!?。；]{0,40}?(?:[:=>|→]|(?<![a-z])(?:is|was|are|to|as|es|est|ist|lautet|este|e|jest|reads|called|with)(?![a-z])"
    r"|[はが는은이가是为叫成用]|'s) ?[^\n]{0,12}?[a-z]{3}"
)
_SPOKEN_LINK = re.compile(r"[^\n。；]{0,8}?[:=是为叫成用]")
_NEAR, _FAR = 24, 64
"""How far, in code points, a value may stand from its label without and with a link."""

_STOP = re.compile(r"[\n;!?。；！？]|\.(?=\s|$)")
_LINK = re.compile(
    r"""\s*(?::=|=>|->|==?|:|\||→)\s*
      | (?<=[a-z0-9)'"])\s+(?:is|was|are|were|be|being|equals?|to|as|remains?|stays?|reads?|goes|becomes?|became|with
           |es|est|ist|lautet|heisst|este|e|jest|adalah|la)(?![a-z])\s*
      | '?s\s+(?=\S) | \s*(?:は|が|는|은|이|가)\s* | \s+-\s+
      | \s*(?:是|为|叫做?|设[置定]?[成为]?|改[成为]?|换[成为]?|更[改换新][为成]|用的?是?|填|写|记|定[为成]?|变[成为]
           |修改[为成]|重置[为成]|调整[为成]|输入?|报|发|给|按|选|沿用|有|就)""",
    re.VERBOSE,
)
_FILL = re.compile(
    r"""(?:\s*(?:still|now|just|actually|simply|currently|literally|basically|set\ to|set\ as|set|changed\ to|changed
          |reset\ to|updated\ to|switched\ to|been|going\ to\ be|called|kept|again|also|always|only|as\ follows|following
          |this(?:\ one)?|below|here|is|was|to|the\ usual|probably|the\ same|same|like\ this
          |了|的|是|过|作|为|上|成|一下|一个|这个|这串|那个|老样子|还是|我|你|他|她|统一|已|都|就|新|好|吧|写的|记得)(?![a-z])
        |\s*[:=,→]|\s*->){0,5}\s*""",
    re.VERBOSE,
)
_ADJACENT = re.compile(r"""[码号值]?["'`\])]{0,2}\s{0,2}[:=,，(]{0,2}\s{0,2}""")
_OPEN = re.compile(r"""["'`\[(<{*]{0,2}""")
_CLOSER = {'"': '"', "'": "'", "`": "`", "[": "]", "(": ")", "<": ">", "{": "}"}
_RUN = re.compile(r"[!-~]+")
# JSON, query strings and calls go on after a value.
_CUT = re.compile(
    r"""["'`<>]|[,;&](?=[A-Za-z_]{2,20}=)|,(?=["'{\[\d\s])|;(?=[A-Za-z ]|$)|\)[.,;]|/(?=\s|$)"""
)
_HANZI_DIGITS = re.compile(r"[零〇一二三四五六七八九幺]{4,12}(?![\u4e00-\u9fff])")
_HANZI_PHRASE = re.compile(r"[\u4e00-\u9fff]{3,14}(?=\s*(?:$|[,.;!?，。；、！？\n\"')]))")
_WORD_PHRASE = re.compile(r"(?:[a-z]{3,12}[ -]){2,11}[a-z]{3,12}(?=[\s.,!]*(?:$|\n|[.,!]))")
_FUNCTION_WORDS = frozenset(
    "the are must with you and for should that this can not but from has was were will a an is".split()
)
_CODES = {
    "cvv": re.compile(r"#?(?P<v>\d{3,4})(?![\w.:/%-]*\d)"),
    "pin": re.compile(r"#?(?P<v>\d{4,8}#?|\d{1,2}(?:-\d{1,2}){2,3})(?![\w.:/%-]*\d)"),
    "otp": re.compile(
        r"#?(?P<v>[A-Z]-\d{6}|\d{3}[ -]\d{3}|\d{4}[ -]\d{4}|\d{4,8}#?|\d{1,2}-\d{1,2}-\d{3,6})(?![\w.:/%-]*\d)"
    ),
}
_CODE_FOR = re.compile(
    r" (?:for|to|of|on|at) (?:[a-z'-]{1,14} ){1,4}#?(?P<v>\d{4,8}#?)(?![\w.:/%-]*\d)"
)
_SPOKEN = frozenset(("口令", "暗号", "密语", "密令", "接头暗语"))
_WEAK = frozenset("token tokens secret secrets ak sk key keys 凭证 凭据 令牌".split())
# "448120 is your code", "hunter2 is my password", "用 Abc123 当密码".
_TOLD_BEFORE = re.compile(
    r"""(?:\s+(?:is|was|are|as|works\ as)\ (?:[a-z']{1,12}\ ){0,4}
          |\s*[,，]?\s*(?:这|那)?(?:就|才|还)?(?:是|为|当做?|做|作为?)\s*[^\s,，。;；!?]{0,8}
          |\s*\(\s*)$""",
    re.VERBOSE,
)
_LOG_IN_WITH = re.compile(
    r"(?:use|enter|type|input) (?P<v>\d{4,8}) (?:to|for|as) (?:log|sign|verif|confirm|complet|authori|continu)"
)


@dataclass(frozen=True, slots=True)
class _Label:
    word: str
    kind: str
    start: int
    end: int


def _labels(text: str, low: str) -> Iterator[_Label]:
    """Labels that stand as words: not inside a longer word, unless as part of a camelCase name."""
    for m in labels.LABEL.finditer(low):
        start, end, word = m.start(), m.end(), m.group()
        if word[0].isascii() and word[0].isalpha() and start:
            before = text[start - 1]
            hump = text[start].isupper() and before.islower()
            if before.isascii() and before.isalnum() and not hump:
                continue
        if word[-1].isascii() and word[-1].isalnum() and end < len(text):
            after = text[end]
            if (after == "s" and not text[end + 1 : end + 2].isalpha()) or (
                after.isdigit() and not text[end + 1 : end + 2].isalnum()
            ):
                end += 1
            elif after.isascii() and after.isalnum() and not (
                after.isupper() and text[end - 1].islower()
            ):  # fmt: skip
                continue
        yield _Label(word, labels.kind_of(word), start, end)


def spans(text: str) -> Iterator[Span]:
    """Every told secret in a folded text."""
    low = lower(text)
    done = 0
    for label in _labels(text, low):
        if label.start < done:
            continue  # inside a value that was found
        # Most labels stand in talk: look closer only where something could be a secret.
        mixed = _MIXED.search(text, label.end, label.end + _FAR + 40) is not None
        worded = label.kind in ("password", "passphrase", "pin") and (
            (_SPOKEN_LINK if label.word in _SPOKEN else _WORDED).match(low, label.end) is not None
        )
        found = None
        if (mixed or worded) and not _only_talk(low, label):
            found = _following(text, low, label, mixed)
        if found is None and (
            near := _TOLD_BEFORE.search(low, max(0, label.start - 24), label.start)
        ):
            found = None if _only_talk(low, label) else _preceding(text, label, near.start())
        if found:
            done = found[2]
            yield found
    if "use " in low or "enter " in low or "type " in low or "input " in low:
        for m in _LOG_IN_WITH.finditer(low):
            yield "otp", m.start("v"), m.end("v")


def _only_talk(low: str, label: _Label) -> bool:
    before = low[max(0, label.start - 40) : label.start]
    if any(c in before for c in "${<%") and re.search(r"(?:\$\{?|\{\{ ?|<|%)[\w.-]*$", before):
        return True  # the name of a variable
    if (
        "://" in before
        and re.search(r"://\S*$", before)
        and re.match(r"\S*@", low[label.end : label.end + 60])
    ):
        return True  # part of an address with credentials, which has a rule of its own
    compound = labels.COMPOUND.match(low, label.end)
    if compound and not re.match(
        r"[^\n]{0,3}(?:[:=]|to\b)", low[compound.end() : compound.end() + 6]
    ):
        return True
    if label.kind == "pin" and label.word.startswith("pin"):
        return bool(labels.PIN_TRAP.search(before))
    if label.kind == "otp" and label.word in ("code", "codes"):
        return bool(labels.CODE_TRAP.search(before)) or not labels.CODE_OWNER.search(before)
    if label.kind == "key" and label.word in ("key", "keys"):
        return bool(labels.KEY_TRAP.search(before)) or not labels.KEY_OWNER.search(before)
    return False


def _following(text: str, low: str, label: _Label, mixed: bool) -> Span | None:
    """The secret after `label`: right beside it, behind a link, or near and unmistakable."""
    near = _ADJACENT.match(low, label.end)
    at = near.end() if near else label.end
    told = any(c in ":=(" for c in text[label.end : at])
    if found := _tested(text, low, label, at, told):
        return found
    stop = _STOP.search(low, label.end, label.end + _FAR)
    limit = stop.start() + 1 if stop else min(len(low), label.end + _FAR)
    for tries, link in enumerate(_LINK.finditer(low, label.end, limit)):
        fill = _FILL.match(low, link.end())
        at = fill.end() if fill else link.end()
        if found := _tested(text, low, label, at, True, first=not tries):
            return found
        if tries == 3 or not mixed:
            break
    if not mixed:
        return None
    if label.kind in ("otp", "pin") and label.word not in ("code", "codes", "pin"):
        m = _CODE_FOR.match(low, label.end)
        if m and not labels.UNIT.match(text, m.end()):
            return label.kind, m.start("v"), m.end("v")
    return _unmistakable(text, low, label, limit)


def _value(text: str, at: int) -> tuple[int, int, bool]:
    """The value at `at`: (start, end, quoted). A quoted value may hold spaces."""
    opened = _OPEN.match(text, at)
    quote = opened.group()[-1:] if opened else ""
    start = opened.end() if opened else at
    if quote in _CLOSER:
        end = text.find(_CLOSER[quote], start, start + 160)
        if end > start and "\n" not in text[start:end]:
            return start, end, True
    m = _RUN.match(text, start, start + 200)
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


def _tested(
    text: str, low: str, label: _Label, at: int, told: bool, *, first: bool = True
) -> Span | None:
    """The secret that stands at `at`, if what stands there can be one after this label. `told`: a
    link stands between the two. A plain word counts behind the first link only."""
    start, end, quoted = _value(text, at)
    value = text[start:end]
    before = low[max(0, label.start - 40) : label.start]
    explicit = told and re.search(r"[:=]\s*[\"'`(]?$", text[label.end : start]) is not None
    kind = label.kind
    if kind == "key":
        kind = "password" if labels.NETWORK.search(before + label.word) else "api_key"
    if kind == "network":
        # "wifi：kafei2031": nothing else is told of a network so shortly, but its name and band.
        told = told and at - label.end <= 4 and len(value) >= 6
        if told and password_shaped(value) and not re.search(r"(?i)[245](?:\.4)?g(?:hz)?$", value):
            return "password", start, end
        return None
    if kind in _CODES:
        return _code(text, label, kind, start, end, told)
    if kind in ("password", "passphrase"):
        own_word = explicit or kind == "passphrase" or not label.word.isascii()
        loose = first and (own_word or bool(labels.OWNED.search(before)))
        if (
            label.word in ("credentials", "credential", "creds", "cred", "账密")
            or "/" in label.word
        ):
            return _pair(text, start, told)
        if _password(text, start, end, quoted, told, loose):
            return "password", start, end
        if told and not value:
            if m := _HANZI_DIGITS.match(text, start):
                return "password", m.start(), m.end()
            m = _HANZI_PHRASE.match(text, start)
            if m and label.word in _SPOKEN and not _hanzi_talk(m.group()):
                return "password", m.start(), m.end()
        if told and kind == "passphrase" and (m := _WORD_PHRASE.match(text, start)):
            words = m.group().split()
            if not any(w in _FUNCTION_WORDS or talk(w) for w in words):
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


def _code(text: str, label: _Label, kind: str, start: int, end: int, told: bool) -> Span | None:
    m = _CODES[kind].match(text, start)
    if m and not labels.UNIT.match(text, m.end()) and not text[m.end() : m.end() + 1].isalpha():
        bare = label.word in ("pin", "code", "codes", "combo", "combination", "passcode")
        if told or not (bare and label.word != "passcode") or re.search(
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
            if (told or value.upper() == value) and not ordinary(value):
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
    words = re.split(r"[-.]", value)
    if not all(re.fullmatch(r"[A-Za-z]{3,32}", w) for w in words) or len(value) < 4:
        return False
    return bool(labels.CLAUSE_END.match(text, end)) and not any(talk(w) for w in words)


def _token(value: str, told: bool, weak: bool) -> bool:
    if placeholder(value):
        return False
    if UUID.fullmatch(value):
        return told and not weak
    if token_shaped(value, least=16 if weak else 12):
        return True
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
        or re.search(r"[吗呢吧么]$|需要|必须|不能|可以|用户|获取|联系|保管", phrase)
    )


def _unmistakable(text: str, low: str, label: _Label, limit: int) -> Span | None:
    """A value near a password's label that nothing links to it, but that is nothing else:
    "password changed again, this time Tr0ub4dor&3", "密码我用的老的 Moon*77"."""
    if label.kind not in ("password", "pin") or label.word in ("pin", "combo", "combination"):
        return None
    chinese = not label.word.isascii()
    for m in re.compile(r"[!-~]{5,40}").finditer(
        text, label.end, min(limit, label.end + _NEAR * 2)
    ):
        gap = low[label.end : m.start()]
        value = m.group().rstrip(".,;:?)\"'")
        if "," in value or "(" in value or ordinary(value) or labels.UNIT.match(text, m.end()):
            return None
        if chinese and (len(gap) > _NEAR or TALK_ZH.search(gap)):
            return None
        need = 2 if chinese else 3
        if password_shaped(value) and classes(value) >= need and any(c.isdigit() for c in value):
            return "password", m.start(), m.start() + len(value)
    return None


def _preceding(text: str, label: _Label, end: int) -> Span | None:
    """The secret that ends at `end`, before a link to `label`."""
    start = max(0, end - 44)
    space = max(text.rfind(c, start, end) for c in " \n,，。：:;(\"'")
    digits = re.compile(r"(?<!\d)\d{3}[ -]\d{3}$").search(text, start, end)
    start = digits.start() if digits else max(start, space + 1)
    value = text[start:end].rstrip("\"'`")
    # Chinese is written without blanks: the value is the run of ASCII at the end.
    run = re.search(r"[!-~]+(?: [!-~]+)?$" if digits else r"[!-~]+$", value)
    if run is None or not 4 <= len(run.group()) <= 40:
        return None
    value, start = run.group(), start + run.start()
    span = (start, start + len(value))
    if re.fullmatch(r"(?:[A-Z]-)?\d{4,8}|\d{3}[ -]\d{3}", value):
        year = re.fullmatch(r"(?:19|20)\d\d", value)
        if label.kind in ("otp", "pin", "password") and not year:
            return ("otp" if label.kind == "otp" else "password"), *span
    elif label.kind in ("api_key", "token"):
        if token_shaped(value, least=16):
            return label.kind, *span
    elif label.kind in ("password", "pin", "passphrase") and len(value) >= 6:
        if password_shaped(value):
            return "password", *span
    return None
