# ruff: noqa: E501, SIM102
"""Secrets that say what they are: provider tokens, JWTs, private keys, addresses with credentials.

Pure: no I/O. Each rule has a literal that must occur before its pattern runs, so that an ordinary
text costs a few substring searches. Every pattern is linear: no nested repetition, bounded runs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from memcore.rules.sensitive.values import placeholder, token_shaped

Span = tuple[str, int, int]

# (kind, literals of which one must occur, pattern). The whole match, or its group "v", is secret.
_RULES: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (kind, tuple(literals.split()), re.compile(pattern, re.ASCII))
    for kind, literals, pattern in (
        # Clouds
        ("api_key", "AKIA ASIA ABIA ACCA A3T", r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("api_key", "AIza", r"AIza[\w-]{30,45}"),
        ("token", "ya29.", r"ya29\.[\w-]{20,}"),
        ("api_key", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
        ("api_key", "AccountKey SharedAccessKey", r"(?:AccountKey|SharedAccessKey)\s?=\s?(?P<v>[A-Za-z0-9+/]{20,}={0,2})"),
        ("api_key", "8Q~ 7Q~", r"(?<![\w~.-])[\w~.-]{3}[78]Q~[\w~.-]{31,34}"),
        ("api_key", "LTAI", r"(?<![A-Za-z0-9])LTAI[A-Za-z0-9]{12,26}"),
        ("api_key", "AKID", r"(?<![A-Za-z0-9])AKID[A-Za-z0-9]{13,40}"),
        ("api_key", "ALTAK", r"(?:bce-v3/)?ALTAK-?[A-Za-z0-9]{10,}(?:/[0-9a-f]{20,})?"),
        ("api_key", "AKLT", r"(?<![A-Za-z0-9])AKLT[A-Za-z0-9_=-]{20,}"),
        ("token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{32,}"),
        # Code hosts and registries
        ("token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})"),
        ("token", "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- gloas- glagent-", r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas|agent)-[\w.-]{16,}"),
        ("token", "npm_ pypi- rubygems_ dckr_pat_ dckr_oat_", r"(?<![A-Za-z0-9])(?:npm_[A-Za-z0-9]{20,}|pypi-[\w-]{40,}|rubygems_[0-9a-f]{32,}|dckr_[po]at_[\w-]{20,})"),
        ("token", "ATATT ATBB ATCTT", r"(?<![A-Za-z0-9])AT(?:ATT3x|CTT3x|BB)[\w=.-]{20,}"),
        # Models and AI services
        ("api_key", "sk- SK-", r"(?i:(?<![A-Za-z0-9])sk-(?P<body>[\w-]{16,}))"),
        ("api_key", "hf_ gsk_ r8_ xai- pplx- nvapi- tvly- jina_ pcsk_ lsv2_ sk-lf- e2b_ fw_ csk- ark- fc- rpa_ api_org_ AQ. voyage pa-",
         r"(?<![A-Za-z0-9])(?:(?:hf|gsk|r8|jina|pcsk|e2b|fw|rpa|api_org)_[\w-]{18,}|lsv2_(?:pt|sk)_\w{20,}|(?:xai|pplx|nvapi|tvly|csk|fc|pa)-[\w-]{20,})"),
        # Payment, messages, mail
        ("api_key", "_live_ _test_", r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
        ("api_key", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
        ("api_key", "sq0 EAAA access_token$", r"sq0[a-z]{3}-[\w-]{20,}|(?<![A-Za-z0-9])EAAA[\w-]{50,}|access_token\$\w+\$[0-9a-z]{16}\$[0-9a-f]{32}"),
        ("token", "xox xapp-", r"(?i:(?<![A-Za-z0-9])xox[a-z]-[\w-]{10,}|xapp-\d-[\w-]{10,})"),
        ("api_key", "SG.", r"(?<![A-Za-z0-9])SG\.[\w-]{16,}\.[\w-]{16,}"),
        ("api_key", "key- -us", r"(?<![A-Za-z0-9])(?:key-[0-9a-f]{32}|[0-9a-f]{32}-us\d{1,2})(?![A-Za-z0-9])"),
        ("token", "EAA", r"(?<![A-Za-z0-9])EAA[A-Z][A-Za-z0-9]{60,}"),
        ("api_key", "re_", r"(?<![A-Za-z0-9])re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
        ("api_key", "NRAL", r"(?<![A-Za-z0-9])[0-9a-f]{36}NRAL(?![A-Za-z0-9])"),
        ("token", "pat", r"(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
        ("api_key", "oy2", r"(?<![A-Za-z0-9])oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
        ("private_key", "MII MIG MC4", r"(?<![A-Za-z0-9+/])(?:MII[A-Za-z0-9+/]{2}[A-Za-z]IBA[AD][A-Za-z0-9+/]{20,}|MIGHAgEAMBMG[A-Za-z0-9+/]{20,}|MC4CAQAwBQYDK2Vw[A-Za-z0-9+/]{16,})={0,2}"),
        ("token", "vercel_blob_ CFPAT- CLOJARS_ sqp_ squ_ tfp_ rdme_ pnu_ JDC_ dt0c01. FLWSECK",
         r"(?<![A-Za-z0-9])(?:vercel_blob_rw_\w{30,}|CFPAT-[\w-]{40,}|CLOJARS_\w{50,}|sq[pu]_[0-9a-f]{40}|tfp_[\w-]{40,}|rdme_\w{60,}|pnu_\w{36}|JDC_[A-Z0-9]{28}|dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{60,}|FLWSECK(?:_TEST)?-[0-9a-z]{12,}-X)"),
        ("api_key", ":fx", r"(?<![A-Za-z0-9])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}:fx(?![A-Za-z0-9])"),
        ("api_key", "sk_ secret_ rzp_ AQE EZAK EZTK", r"(?<![A-Za-z0-9])(?:sk_[0-9a-f]{40,}|secret_[A-Za-z0-9]{40,}|rzp_(?:live|test)_\w{14,}|AQE[a-z][A-Za-z0-9+/]{40,}|EZ[AT]K[0-9a-f]{32,}\w*)"),
        ("api_key", "SK", r"(?<![A-Za-z0-9])SK[0-9a-f]{32}(?![A-Za-z0-9])"),
        ("token", ":AA", r"(?<![\d])\d{8,10}:AA[\w-]{30,}"),
        ("token", ".", r"(?<![\w.-])[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{25,45}(?![\w.-])"),
        # Platforms
        ("token", "shpat_ shpss_ shpca_ shppa_", r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{20,}"),
        ("token", "glsa_ glc_", r"(?<![A-Za-z0-9])gl(?:sa|c)_[\w=+/-]{30,}"),
        ("token", "hvs. hvb. hvr. atlasv1.", r"(?<![A-Za-z0-9])hv[sbr]\.[\w-]{20,}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{30,}"),
        ("token", "lin_api_ lin_oauth_ ntn_ figd_ PMAK- NRAK- sntrys_ sntryu_ sbp_ sb_secret_ pscale_ nfp_ tskey- CCIPAT_ ops_eyJ dp.pt. bkua_ FlyV1 pul- dapi pat- sl. phx_ rnd_ vercel_ vcp_ napi_ xkeysib- r_ cfut_ AGE-SECRET",
         r"(?<![A-Za-z0-9])(?:lin_(?:api|oauth)_\w{20,}|ntn_\w{20,}|figd_[\w-]{20,}|(?:PMAK|NRAK)-[\w-]{20,}|sntry[su]_[\w=+/-]{20,}|sbp_\w{20,}|sb_secret_\w{16,}|pscale_\w+_[\w-]{20,}|nfp_\w{20,}|tskey-[\w-]{16,}|CCIPAT_\w{16,}|ops_eyJ[\w-]{20,}|dp\.(?:pt|st|ct|sa)\.[\w-]{20,}|bkua_[0-9a-f]{20,}|FlyV1\s\w{16,}|pul-[0-9a-f]{30,}|dapi[0-9a-f]{32}|pat-[a-z]{2}\d-[0-9a-f-]{30,}|sl\.[\w-]{60,}|phx_\w{20,}|rnd_\w{20,}|napi_\w{20,}|xkeysib-[0-9a-f]{30,}|AGE-SECRET-KEY-1[0-9A-Z]{50,})"),
        # Anything that follows the same custom: vendor_kind_random
        ("token", "_live_ _test_ _prod_ _pat_ _sk_ _key_ _secret_ _token_ -live- -prod-",
         r"(?i:(?<![A-Za-z0-9])(?!pk_)[a-z]{2,12}[_-](?:live|test|prod|pat|sk|key|secret|token|api)[_-](?P<body>[A-Za-z0-9]{16,}))"),
        # JSON Web Tokens
        ("jwt", "eyJ", r"(?<![A-Za-z0-9])eyJ[\w-]{8,}\.(?:eyJ[\w-]{4,}|[\w-]{0,2000}\.[\w-]{4,})(?:\.[\w-]*){0,3}"),
        # Wallet keys
        ("private_key", "xprv yprv zprv tprv nsec1", r"(?<![A-Za-z0-9])(?:[xyzt]prv[1-9A-HJ-NP-Za-km-z]{50,}|nsec1[02-9ac-hj-np-z]{50,})"),
        # Webhooks, whose address is the credential
        ("webhook", "hooks.slack.com", r"https?://hooks\.slack\.com/(?:services|workflows|triggers)/(?P<v>[\w/+-]{8,})"),
        ("webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/(?P<v>\d{10,}/[\w-]{16,})"),
        ("webhook", "webhook.office.com outlook.office.com", r"(?:webhook\.office\.com|outlook\.office\.com)/webhook(?:b2)?/(?P<v>[\w@/-]{16,})"),
        ("webhook", "/robot/send /webhook/send", r"/(?:robot|webhook)/send\?(?:access_token|key)=(?P<v>[\w-]{8,})"),
        ("webhook", "/open-apis/bot", r"/open-apis/bot/(?:v\d/)?hook/(?P<v>[\w-]{8,})"),
        ("webhook", "hooks.zapier.com maker.ifttt.com webhook.site", r"(?:hooks\.zapier\.com/hooks/catch|maker\.ifttt\.com/(?:use|trigger)|webhook\.site)/(?P<v>[\w/-]{8,})"),
        ("webhook", "api.telegram.org/bot", r"api\.telegram\.org/bot(?P<v>\d{6,12}:[\w-]{20,})"),
        ("webhook", "://hook", r"https?://hooks?\.[\w.-]{3,60}/(?:[\w-]{1,24}/){0,3}(?P<token>[\w-]{16,})"),
        ("webhook", "webhook hooks", r"(?i:https?://[^\s/]{3,80}/(?:[\w.-]{1,40}/){0,5}?(?:incoming-?)?(?:web)?hooks?/(?:[\w.-]{1,24}/){0,3}?(?P<token>[\w-]{16,}))"),
    )
)  # fmt: skip

_PEM = re.compile(
    r"-{1,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{1,5}|PuTTY-User-Key-File-\d"
)
_PEM_END = re.compile(
    r"-{2,5} ?END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{2,5}|Private-MAC: [0-9a-f]+"
)

_URI = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://"
    r"(?P<user>[^\s/:@\"'<>]{0,100}):(?P<pw>[^\s\"'<>]{1,200}?)@(?=[A-Za-z0-9\[\u4e00-\u9fff_{$<.-])"
)
_ORACLE = re.compile(r"(?i:jdbc:oracle:\w{2,5}:)[\w$#]{1,40}/(?P<pw>[^\s/@]{3,80})@")
_URI_TOKEN = re.compile(r"://(?P<v>[\w.~%+-]{16,200})@[\w.-]+", re.ASCII)
_QUERY = re.compile(
    r"(?i:[?&#;](?P<name>x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature|x-oss-signature|ossaccesskeyid|q-signature|signature|sig|sign"
    r"|access_?token|refresh_?token|id_?token|auth_?token|session_?(?:token|id)?|token|api_?key|apikey|app_?secret|secret|client_secret"
    r"|auth|auth_key|password|passwd|pwd|jwt|key|code|ticket|otp|magic|invite|hmac|st|sv_?token|appid(?==[0-9a-f]{32})))=(?P<v>[^\s&#\"'<>，。；、）)]{4,})"
)
_WEAK_QUERY = frozenset(("key", "code", "ticket", "auth", "sign", "sig", "st", "session", "invite"))
_ONE_TIME = re.compile(
    r"(?i:/(?:secrets?|one-?time(?:-secret)?|ots|onetime|burn|reset(?:-?password)?|password-?reset|pwreset|recover(?:y)?|magic(?:-?link)?|passwordless"
    r"|verify(?:-?email)?|activate|activation|confirm(?:ation)?|invite|invitations?|join|signin|sign-in|login|sso|auth|unlock|otp|token|claim|set-password|share-secret|private|callback)"
    r"(?:/[a-z]{1,12}){0,2}/(?P<v>[\w~%+=.-]{6,}))",
    re.ASCII,
)
_ONETIME_HOST = re.compile(
    r"(?i:(?:onetimesecret\.com|ots\.\w+|privnote\.com|pwpush\.com|password\.link|yopass\.\w+|send\.\w+|1ty\.me|eu\.onetimesecret\.com|bitwarden\.com/#/send|vault\.bitwarden\.com/#/send|share\.1password\.com)"
    r"(?:/[a-z#]{1,10}){0,3}/?[/#](?P<v>[\w#~%+=/-]{6,}))",
    re.ASCII,
)
_WIF = re.compile(r"(?<![A-Za-z0-9])[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![A-Za-z0-9])")
_B58 = {c: i for i, c in enumerate("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")}


def _wif(key: str) -> bool:
    """Base58Check: the last four bytes are the double SHA-256 of the rest."""
    n = 0
    for c in key:
        n = n * 58 + _B58[c]
    raw = n.to_bytes((n.bit_length() + 7) // 8, "big")
    digest = hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()
    return digest[:4] == raw[-4:]


def _random(body: str) -> bool:
    return not placeholder(body) and (
        token_shaped(body, least=10)
        or any(len(p) >= 16 and token_shaped(p) for p in body.split("-"))
    )


def private_keys(text: str) -> Iterator[Span]:
    """PEM and PuTTY private keys; without an end mark, the key runs to the end of the text."""
    at = 0
    while m := _PEM.search(text, at):
        end = _PEM_END.search(text, m.end())
        at = end.end() if end else len(text)
        body = text[m.end() : end.start() if end else at][:400]
        # A key, also one that was cut short; a sentence about the header goes on in prose.
        if re.match(
            r"\s*$|(?:\s*\n|\\n|\s)\s*(?:[A-Za-z-]+: |[A-Za-z0-9+/=]{16,}|(?:M[CGHI]|b3Bl)[A-Za-z0-9+/=]{4,})|(?:\s*\n|\\n)",
            body,
        ) or (len(re.sub(r"[^A-Za-z0-9+/=]", "", body)) >= 32 and end is not None):
            yield "private_key", m.start(), at


def _addresses(text: str) -> Iterator[Span]:
    for m in _URI.finditer(text):
        # "user:password@", "$USER:$PASS@" and the like only show the form.
        if not placeholder(m["pw"]) or m["pw"].lower() in ("changeme", "secret", "test"):
            yield "connection_string", m.start("pw"), m.end("pw")
    for m in _ORACLE.finditer(text):
        yield "connection_string", m.start("pw"), m.end("pw")
    for m in _URI_TOKEN.finditer(text):
        if token_shaped(m["v"], least=16):
            yield "connection_string", m.start("v"), m.end("v")
    for m in _QUERY.finditer(text):
        value, weak = m["v"], m["name"].lower() in _WEAK_QUERY
        strong = m["name"].lower().startswith(("pass", "pwd"))
        if placeholder(value):
            continue
        if (strong and len(value) >= 6) or token_shaped(value, least=16 if weak else 8):
            yield "secret_link", m.start("v"), m.end("v")
    for pattern in (_ONE_TIME, _ONETIME_HOST):
        for m in pattern.finditer(text):
            start = text.rfind("://", max(0, m.start() - 200), m.start())
            if (start >= 0 or pattern is _ONETIME_HOST) and " " not in text[start : m.start()]:
                if token_shaped(m["v"], least=8) and not placeholder(m["v"]):
                    yield "secret_link", m.start("v"), m.end("v")


def spans(text: str) -> Iterator[Span]:
    """Every secret of these kinds in a folded text; private keys apart, which may be long."""
    for kind, literals, pattern in _RULES:
        for literal in literals:
            if literal in text:
                break
        else:
            continue
        for m in pattern.finditer(text):
            groups = m.groupdict()
            if "body" in groups and not _random(groups["body"]):
                continue
            if "token" in groups and not token_shaped(groups["token"], least=16):
                continue
            start, end = m.span("v") if "v" in groups else m.span()
            value = text[start:end]
            if kind == "webhook":
                # Examples of webhooks are written out; only a gap shows that it is none.
                if not re.search(r"[<>{}*…]|\.{3}", value):
                    yield kind, start, end
            elif not placeholder(value):
                yield kind, start, end
    if "://" in text or "jdbc:" in text:
        yield from _addresses(text)
    for m in _WIF.finditer(text):
        if _wif(m.group()):
            yield "private_key", m.start(), m.end()
