# ruff: noqa: E501, SIM102
"""Secrets that are told: a label, a link and a value ("my password is …", "验证码：…", "pw=…").

Pure: no I/O. Labels are found first (labels.py); what stands near each is read within a bounded
distance, so cost is linear in the text. Whether a value counts depends on the label's kind: a PIN
is digits, a token is machine-made, a password is a mix, or after a plain statement a word that is
not talk about passwords.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from memcore.rules.sensitive import labels, spoken
from memcore.rules.sensitive.candidates import RUN, SPOKEN, Label, Span, judged, value_at
from memcore.rules.sensitive.folding import lower
from memcore.rules.sensitive.values import (
    TALK_ZH,
    classes,
    ordinary,
    password_shaped,
    token_shaped,
)

# A digit, a symbol or a change of case: what every secret but a plain word has.
_MIXED = re.compile(
    r"(?=[0-9@#$%^&*!~+][!-~]{2}|[!-~][0-9@#$%^&*!~+][!-~]|[!-~]{2}[0-9@#$%^&*!~+]|[a-z][A-Z]|\d \d \d)"
)
# A link and a word: "password is sunshine"; for words said aloud also in Chinese: "口令：芝麻开门".
_WORDED = re.compile(
    r"[^\n.;!?。；]{0,40}?(?:[:=>|→]|(?<![a-z])(?:is|was|are|be|to|as|es|est|ist|lautet|este|e|jest|reads|called|with)(?![a-z])"
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
          |this(?:\ one)?|my\ (?:birthday|birth\ date|date\ of\ birth|phone\ number)|below|here|is|was|to|the\ usual|probably|the\ same|same|like\ this
          |[我他她自己妈爸老婆公儿子女的]{0,4}(?:生日|手机号码?|电话号码?|学号|工号)|了|的|是|过|作|为|上|成|一下|一个|这个|这串|那个|老样子|还是|我|你|他|她|统一|已|都|就|新|好|吧|写的|记得)(?![a-z])
        |\s*[:=,→]|\s*->){0,5}\s*""",
    re.VERBOSE,
)
_ADJACENT = re.compile(
    r"""(?:数字?|[码号值])?(?:\s?[(【\[][^\n()【】\[\]]{1,12}[)】\]])?["'`*\])>]{0,3}\s{0,2}[:=,，(]{0,2}>?[*]{0,2}\s{0,2}"""
)
# "the wifi password? B: …", "> 密码\n> …", "答：…": an answer on the next line or by another speaker.
_ANSWERED = re.compile(
    r"(?:[^\n?？。；;.!]{0,36}[?？]\s*(?:[\w.]{1,12}\s?[:：]\s*|[->*]\s+)?(?:it'?s |it is |that'?s |就?是)?|\s*\n\s*(?:[\w.]{1,12}\s?[:：]\s*|[->*]\s+))"
)
_CHOSE = re.compile(
    r"(?:(?<![a-z])(?:picked|chose|went with|made it|(?:changed|set|switched|updated|reset) it to|(?:it'?s|is) now|now it'?s|the new one is)"
    r"|改成了?|换成了?|现在[是用]|新的是) ?"
)
_BY_MEANS = re.compile(r"(?<![a-z])(?:with|using|uses?|enter)(?: (?:the|a|my|this))? $")
_SIX = re.compile(r"\s?[:=]?\s?\d{3}[ -]\d{3}(?!\d)")
_SIX_LINKED = re.compile(r"\s?(?:is|:|=)\s?\d{6}(?!\d)")
_CODE_FOR = re.compile(
    r" (?:for|to|of|on|at) (?:[a-z'-]{1,14} ){1,4}#?(?P<v>\d{4,8}#?)(?![\w.:/%-]*\d)"
)
# "448120 is your code", "hunter2 is my password", "用 Abc123 当密码".
_TOLD_BEFORE = re.compile(
    r"""(?:\s+(?:is|was|are|as|works\ as)\ (?:[a-z']{1,12}\ ){0,4}
          |\s*[,，]?\s*(?:这|那)?(?:就|才|还)?(?:是|为|当做?|做|作为?)\s*[^\s,，。;；!?]{0,8}
          |\s*\(\s*[^\s()]{0,6})$""",
    re.VERBOSE,
)
_LOG_IN_WITH = re.compile(
    r"authenticator(?: app)? (?:shows|says|displays|reads|gives) (?P<w>\d{3} ?\d{3})(?!\d)|(?:use|enter|type|input) (?:(?:the|this|your|code|pin|otp|passcode) ){0,3}(?P<v>\d{4,8}) (?:to|for|as) (?:log|sign|verif|confirm|complet|authori|continu)"
)


def _labels(text: str, low: str) -> Iterator[Label]:
    """Labels that stand as words: not inside a longer word, unless as part of a camelCase name."""
    at = 0
    while m := labels.LABEL.search(low, at):
        start, end, word = m.start(), m.end(), m.group()
        at = start + 1  # where this one is none, another may begin inside it: "rootPassword"
        if word[0].isascii() and word[0].isalpha() and start:
            before = text[start - 1]
            hump = text[start].isupper() and before.islower()
            # PGPASSWORD=: a name in capitals, to which something is assigned.
            shouted = text[start:end].isupper() and before.isupper() and text[end : end + 1] == "="
            if before.isascii() and before.isalnum() and not (hump or shouted):
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
        at = end
        yield Label(word, labels.kind_of(word), start, end)


def spans(text: str) -> Iterator[Span]:
    """Every told secret in a folded text."""
    low = lower(text)
    done = 0
    hot: list[int] | None = None  # where something could be a secret, found once for all labels
    for label in _labels(text, low):
        if label.start < done:
            continue  # inside a value that was found
        if hot is None:
            hot = sorted(
                [m.start() for m in _MIXED.finditer(text)]
                + [m.start() for m in spoken.SAID.finditer(low)]
            )
        # Most labels stand in talk: look closer only where something could be a secret.
        following = bisect_left(hot, label.end)
        mixed = following < len(hot) and hot[following] < label.end + _FAR + 40
        told_before = following > 0 and hot[following - 1] >= label.start - 48
        worded = label.kind in ("password", "passphrase", "pin") and (
            (_SPOKEN_LINK if label.word in SPOKEN else _WORDED).match(low, label.end) is not None
            or _BY_MEANS.search(low, max(0, label.start - 16), label.start) is not None
        )
        found = None
        if mixed and label.kind == "password" and (span := _chosen(text, low, label)):
            done = span[2]
            yield span
            continue
        if (mixed or worded) and not _only_talk(text, low, label):
            found = _following(text, low, label, mixed)
        if (
            found is None
            and told_before
            and (near := _TOLD_BEFORE.search(low, max(0, label.start - 24), label.start))
        ):
            found = None if _only_talk(text, low, label) else _preceding(text, label, near.start())
        if found:
            done = found[2]
            yield found
    if any(word in low for word in ("use ", "enter ", "type ", "input ", "authenticator ")):
        for m in _LOG_IN_WITH.finditer(low):
            yield "otp", *m.span("v" if m["v"] else "w")


def _chosen(text: str, low: str, label: Label) -> Span | None:
    """The password in "my password expired, so I picked Papaya#20"."""
    m = _CHOSE.search(low, label.end, label.end + _FAR)
    if m is None or "\n" in low[label.end : m.start()]:
        return None
    start, end, _ = value_at(text, m.end())
    if password_shaped(text[start:end]) and classes(text[start:end]) >= 3:
        return "password", start, end
    return None


def _only_talk(text: str, low: str, label: Label) -> bool:
    before = low[max(0, label.start - 40) : label.start]
    if any(c in before for c in "${<%") and re.search(r"(?:\$\{?|\{\{ ?|<|%)[\w.-]*$", before):
        # The name of a variable or an element, unless something is assigned to it.
        return not re.match(
            r"\s?=\s?[\"'](?![$<{])|>[^<>\n]{4,64}</", low[label.end : label.end + 80]
        )
    if (
        "://" in before
        and re.search(r"://\S*$", before)
        and re.match(r"\S*@", low[label.end : label.end + 60])
    ):
        return True  # part of an address with credentials, which has a rule of its own
    compound = labels.COMPOUND.match(low, label.end)
    if compound and not label.word.isascii() and compound.group().isascii():
        compound = None  # "密码 Test_77": English after a Chinese label is the value
    if compound and not re.match(
        r"[^\n]{0,3}(?:[:=]|to\b)", low[compound.end() : compound.end() + 6]
    ):
        return True
    if label.kind == "pin" and label.word.startswith("pin"):
        return bool(labels.PIN_TRAP.search(before))
    if label.kind == "otp" and label.word in ("code", "codes"):
        brand = labels.CODE_BRAND.search(text, max(0, label.start - 24), label.start)
        # "code: 558-201", "Acme code 558 201" at the start of a line.
        line = before.rpartition("\n")[2]
        alone = (line.count(" ") < 2 and _SIX.match(low, label.end)) or (
            not line.strip() and _SIX_LINKED.match(low, label.end)
        )
        told = brand or alone or labels.CODE_OWNER.search(before)
        return bool(labels.CODE_TRAP.search(before)) or not told
    if label.kind == "key" and label.word in ("key", "keys"):
        return bool(labels.KEY_TRAP.search(before))
    return False


def _following(text: str, low: str, label: Label, mixed: bool) -> Span | None:
    """The secret after `label`: right beside it, behind a link, or near and unmistakable."""
    near = _ADJACENT.match(low, label.end)
    at = near.end() if near else label.end
    told = any(c in ":=(>" for c in text[label.end : at])
    told = told or bool(_BY_MEANS.search(low, max(0, label.start - 16), label.start))
    if found := judged(text, low, label, at, told):
        return found
    stop = _STOP.search(low, label.end, label.end + _FAR)
    limit = stop.start() + 1 if stop else min(len(low), label.end + _FAR)
    tries = past = 0
    for link in _LINK.finditer(low, label.end, limit):
        if link.start() < past:
            continue  # inside a value that was looked at: "required|min:8"
        fill = _FILL.match(low, link.end())
        at = fill.end() if fill else link.end()
        if found := judged(text, low, label, at, True, first=not tries):
            return found
        past = run.end() if (run := RUN.match(low, at)) else at
        tries += 1
        if tries == 4 or not (mixed or label.kind == "passphrase"):
            break
    if not mixed:
        return None
    if label.kind in ("password", "pin", "otp") and (asked := _ANSWERED.match(low, label.end)):
        start, end, _ = value_at(text, asked.end())
        value = text[start:end]
        if password_shaped(value) and len(value) >= 5 and not labels.UNIT.match(text, end):
            return "password", start, end
        if label.kind == "pin" and re.fullmatch(r"\d{4,8}[#*]?", value):
            return "pin", start, end
    if label.kind in ("otp", "pin") and label.word not in ("code", "codes", "pin"):
        m = _CODE_FOR.match(low, label.end)
        if m and not labels.UNIT.match(text, m.end()):
            return label.kind, m.start("v"), m.end("v")
    return _unmistakable(text, low, label, limit)


def _unmistakable(text: str, low: str, label: Label, limit: int) -> Span | None:
    """A value near a password's label that nothing links to it, but that is nothing else:
    "password changed again, this time Tr0ub4dor&3", "密码我用的老的 Moon*77"."""
    if label.kind not in ("password", "pin") or label.word in ("pin", "combo", "combination"):
        return None
    chinese = not label.word.isascii()
    for m in re.compile(r"(?![\"'`(])[!-~]{5,40}").finditer(
        text, label.end, min(limit, label.end + _NEAR * 2)
    ):
        gap = low[label.end : m.start()]
        value = m.group().rstrip(".,;:?)\"'")
        named = not gap and value[0] in "_-/"  # the rest of a name
        if (
            named
            or "," in value
            or "(" in value
            or ordinary(value)
            or labels.UNIT.match(text, m.end())
        ):
            return None
        if chinese and (len(gap) > _NEAR or TALK_ZH.search(gap)):
            return None
        need = 2 if chinese else 3
        if not chinese and len(value) < 6:
            continue
        if password_shaped(value) and classes(value) >= need and any(c.isdigit() for c in value):
            return "password", m.start(), m.start() + len(value)
    return None


def _preceding(text: str, label: Label, end: int) -> Span | None:
    """The secret that ends at `end`, before a link to `label`."""
    start = max(0, end - 44)
    end = start + len(text[start:end].rstrip("\"'`"))
    space = max(text.rfind(c, start, end) for c in " \n,，。：:;(\"'")
    digits = re.compile(r"(?<!\d)\d{3}[ -]\d{3}$").search(text, start, end)
    start = digits.start() if digits else max(start, space + 1)
    value = text[start:end]
    # Chinese is written without blanks: the value is the run of ASCII at the end.
    run = re.search(r"[!-~]+(?: [!-~]+)?$" if digits else r"[!-~]+$", value)
    if run is None or not 4 <= len(run.group()) <= 40:
        return None
    value, start = run.group(), start + run.start()
    if "=" in value:
        return None  # an assignment: PASSWORD=$(pass show db)
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
