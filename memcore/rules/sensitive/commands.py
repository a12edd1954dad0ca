# ruff: noqa: E501, SIM102
"""Secrets in the syntax of headers, command lines and user/password pairs.

Pure: no I/O. Each pattern needs its literal first and reads a bounded distance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memcore.rules.sensitive.folding import lower
from memcore.rules.sensitive.values import classes, ordinary, password_shaped, token_shaped

Span = tuple[str, int, int]

_HEADER = re.compile(
    r"(?P<name>authorization|proxy-authorization|x-[\w-]{1,30}|(?:set-)?cookie|api-?key)\s*[:=]\s*[\"']?"
    r"(?P<scheme>(?:basic|bearer|token|digest|apikey|hmac|jwt|oauth|negotiate|ntlm|key)\s+)?(?P<v>[^\s\"',\u0080-\uffff]{6,})",
    re.IGNORECASE | re.ASCII,
)
_BEARER = re.compile(
    r"\b(?:bearer|basic)\s+(?:token\s+)?[\"'`]?(?P<v>[\w.~+/=-]{12,})", re.IGNORECASE | re.ASCII
)
# Command → the option that carries a password, and what stands between.
_COMMANDS = tuple(
    (literal, re.compile(pattern, re.ASCII))
    for literal, pattern in (
        ("curl", r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user|--proxy-user)[ =]?[\"']?[^\s:\"']{1,64}:(?P<v>[^\s\"']{3,128})"),
        ("http", r"\bhttps?\b[^\n]{0,120}?\s(?:-a|--auth)[ =][\"']?[^\s:\"']{1,64}:(?P<v>[^\s\"']{3,128})"),
        ("mysql", r"\bmysql\w{0,8}\b[^\n]{0,120}?\s-p(?P<v>[^\s\"'-][^\s\"']{3,64})"),
        ("mariadb", r"\bmariadb\b[^\n]{0,120}?\s-p(?P<v>[^\s\"'-][^\s\"']{3,64})"),
        ("sshpass", r"\bsshpass\s+-p\s?[\"']?(?P<v>[^\s\"']{4,64})"),
        ("redis-cli", r"\bredis-cli\b[^\n]{0,120}?\s-a\s?[\"']?(?P<v>[^\s\"']{4,64})"),
        ("login", r"\b(?:docker|podman|helm|az|oc)\s+login\b[^\n]{0,160}?\s-p[ =][\"']?(?P<v>[^\s\"']{4,128})"),
        ("--", r"(?:^|\s)--(?:password|passwd|pass|token|api-?key|secret|auth-token|access-token)[ =][\"']?(?P<v>[^\s\"']{6,200})"),
        ("BY ", r"\bIDENTIFIED (?:WITH \w{1,40} )?BY ['\"](?P<v>[^\s\"']{4,64})['\"]"),
        ("sudo", r"\becho\s+[\"']?(?P<v>[^\s\"'|]{4,64})[\"']?\s*\|\s*sudo\b"),
        ("rabbitmqctl", r"\brabbitmqctl\s+(?:add_user|change_password)\s+\S{1,64}\s+[\"']?(?P<v>[^\s\"']{4,64})"),
        ("openssl", r"\bopenssl\b[^\n]{0,160}?\s(?:-k\s|-pass(?:in|out)?\s+pass:|-K\s)[\"']?(?P<v>[^\s\"']{4,128})"),
        ("requirepass", r"\brequirepass\s+[\"']?(?P<v>[^\s\"']{4,128})"),
        ("masterauth", r"\bmasterauth\s+[\"']?(?P<v>[^\s\"']{4,128})"),
        ("zip", r"\b(?:zip|7z|unzip|unrar|rar)\b[^\n]{0,80}?\s-[pP]\s?(?P<v>[^\s\"'-][^\s\"']{3,64})"),
        ("auth", r"\bauth\s?=\s?[(\[]\s?[\"'][^\"'\n]{1,64}[\"']\s?,\s?[\"'](?P<v>[^\"'\n]{4,64})[\"']"),
        ("SSWS", r"\bSSWS\s+(?P<v>00[\w-]{30,60})"),
        ("%", r"\s-U\s?[\"']?[^\s%\"']{1,40}%(?P<v>[^\s\"']{4,64})"),
        ("ldap", r"\bldap\w{3,12}\b[^\n]{0,160}?\s-w\s[\"']?(?P<v>[^\s\"']{4,64})"),
        ("/user:", r"/user:\S{1,64}\s(?P<v>[^\s\"']{4,64})"),
    )
)  # fmt: skip

_PAIR = re.compile(
    r"(?<![\w/.@-])(?<![\w/.]:)(?P<u>[A-Za-z0-9][\w.@+-]{1,40})(?P<sep>\s?[/|:]\s?|\s-{1,2}\s|\s(?:and|with|&)\s|\s?[和与及,，、]\s?)(?=(?P<v>[^\s,，。;；/|、'\"]{5,40}))",
    re.ASCII,
)
_CONTEXT = re.compile(
    r"log[ -]?(?:ge?d )?(?:me )?(?:in|on|into)|sign[ -]?in|get in(?:to)?|credential|creds?\b|logins?\b|account|password|username|\bssh\b|\bvpn\b|wi-?fi|\bssid\b|\bnas\b"
    r"|router|\bftp\b|\bsmtp\b|admin panel|\busing\b|登录|登陆|账号|账户|用户名|密码|口令|路由器|无线|堡垒机|后台",
    re.ASCII,
)


# "u: ann p: Wr3n_song".
_SHORT_PAIR = re.compile(
    r"(?<![a-z])(?:u|usr|user|id|acct|login)\s?[:=]\s?[^\s,;|]{2,64}[\s,;|/]{1,3}(?:p|pw|pwd|pass)\s?[:=]\s?(?P<v>[^\s,;|]{4,64})",
    re.IGNORECASE,
)
# The shared secret of an authenticator, as groups of base32.
_TOTP = re.compile(
    r"(?:2fa|totp|otp|authenticator|two-factor|验证器|两步验证|双重验证|双因素)[^\n.。]{0,24}?(?:secret|key|seed|密钥|秘钥|种子)(?:\s?(?:is|:|=|是|为))?\s{0,2}"
    r"(?P<v>[a-z2-7]{4}(?:[ -]?[a-z2-7]{4}){2,15}|(?-i:[A-Z2-7]{8,64}))(?![a-z0-9])",
    re.IGNORECASE,
)


_SHORT_WORDS = ("p:", "p=", "p =", "p :", "pw", "pass")
_TOTP_WORDS = ("2fa", "otp", "authenticator", "two-factor", "验证器", "两步", "双重", "双因素")


def _base32(value: str) -> bool:
    """Random letters, not words in a row."""
    letters = re.sub(r"[ -]", "", value).lower()
    vowels = sum(c in "aeiou" for c in letters)
    return any(c.isdigit() for c in letters) or vowels * 4 < len(letters)


def _looks_told(value: str, separator: str) -> bool:
    """A password in a pair. After "and" or a comma it must be unmistakable."""
    if not password_shaped(value) or re.fullmatch(r"\d+(?:[.:]\d+)*", value):
        return False
    if re.search(r"[(){}\[\]]", value) or (len(value) < 6 and not re.search(r"[/|:]", separator)):
        return False
    need = 2 if separator.strip() in ("/", "|", ":") else 3
    return classes(value) >= need and any(c.isdigit() for c in value)


def spans(text: str) -> Iterator[Span]:
    """Every secret of these forms in a folded text."""
    low = lower(text)
    if any(word in low for word in ("authorization", "cookie", "x-", "api-key", "apikey")):
        for m in _HEADER.finditer(text):
            name, value = m["name"].lower(), m["v"].rstrip(".,;)")
            start = m.start("v")
            if "authorization" in name:
                if m["scheme"] and len(value) >= 8 and not ordinary(value):
                    yield "token", start, start + len(value)
            elif "cookie" in name:
                if token_shaped(value.partition("=")[2], least=12):
                    yield "session", start, start + len(value)
            elif re.search(r"key|token|auth|secret|sign|session|csrf", name):
                if token_shaped(value, least=12):
                    yield "token", start, start + len(value)
    if "bearer" in low or "basic" in low:
        for m in _BEARER.finditer(text):
            if token_shaped(m["v"], least=12):
                yield "token", m.start("v"), m.end("v")
    for literal, pattern in _COMMANDS:
        if literal in text:
            for m in pattern.finditer(text):
                if not ordinary(m["v"]):
                    yield "password", m.start("v"), m.end("v")
    if any(word in low for word in _SHORT_WORDS):
        for m in _SHORT_PAIR.finditer(text):
            if password_shaped(m["v"]):
                yield "password", m.start("v"), m.end("v")
    if any(word in low for word in _TOTP_WORDS):
        for m in _TOTP.finditer(text):
            if _base32(m["v"]):
                yield "otp", m.start("v"), m.end("v")
    if _CONTEXT.search(low):
        for m in _PAIR.finditer(text):
            value = m["v"].strip("`").rstrip(".,;:)\"'")
            near = low[max(0, m.start() - 40) : m.end() + 30]
            if _looks_told(value, m["sep"]) and _CONTEXT.search(near):
                yield "password", m.start("v"), m.start("v") + len(value)
