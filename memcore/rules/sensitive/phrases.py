# ruff: noqa: E501, SIM102
"""Secrets that are told: a label, a link and a value ("my password is …", "验证码：…", "pw=…").

Pure: no I/O. Labels are found first; what follows each is read within a bounded distance, so cost
is linear in the text. Whether a value counts depends on the label's kind (a PIN is digits, a token
is machine-made, a password is a mix or, after a plain statement, a word that is not talk).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memcore.rules.sensitive.folding import fold_keyword
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


def _words(*words: str) -> str:
    return "|".join(re.escape(fold_keyword(w)).replace(r"\ ", r"[ _-]?") for w in words)


_FOREIGN = _words(
    "contraseña", "mot de passe", "kennwort", "passwort", "senha", "пароль", "パスワード", "暗証番号",
    "비밀번호", "암호", "hasło", "wachtwoord", "lösenord", "şifre", "mật khẩu", "parola d'ordine",
)  # fmt: skip

# kind → its labels. Order matters: the first that matches at a place wins.
_LABELS: tuple[tuple[str, str], ...] = (
    ("cvv", r"\b(?:cvv2?|cvc2?|csc|cvn|card (?:verification|security) (?:code|value|number)|security code|card code)\b|安全码|(?:卡)?背面?(?:的)?(?:后)?[三3]位(?:数字?)?|后三位|校验三位"),
    ("otp", r"\b(?:otp|totp|one[- ]?time (?:pass(?:code|word)|code|pin|password)|(?:sms |text |e?-?mail )?(?:verification|verify|authentication|authenticator|2fa|two[- ]factor|mfa|login|log-in|sign-in|signin|security|sms|access|pass|unlock|activation|backup|recovery|confirmation|entry|door|gate|alarm|garage|lockbox|safe|keypad|lock|voicemail) ?codes?|passcode|code)\b"
            r"|(?:短信|动态|手机|登录|邮箱|图形|支付|一次性|谷歌)?(?:验证|校验|动态|确认|授权|激活|备用|恢复|提取|登录|门禁|开门|解锁|取件|取货|兑换|邀请|短信|认证)码|动态(?:口令|密码)"),
    ("pin", r"\bpin(?:[ -]?(?:code|number|no\.?|#))?\b|\bpin码|(?:取款|交易|支付|刷卡|银行卡|提现|锁屏|解锁|开机|手机|sim卡|电话卡|门锁|保险[柜箱]|行李箱|储物柜|密码箱|取件)(?:的)?密码"),
    ("passphrase", r"\bpass[ -]?phrases?\b|\bsecret (?:word|phrase)\b|\bsafe ?word\b|暗号|接头暗语"),
    ("password", r"\bp[a@4]s{2}[ _-]?w[o0]r[dt]s?\b|(?<![A-Za-z])(?:[A-Za-z0-9]{0,20}[_-])?(?:p[a@4]s{2}w[o0]?r?d|passwd|pwd|pswd|psw|passw|pass)\b|(?<=[a-z])Pass(?:word|wd)?\b|\bpw\b|\bpasscodes?\b|\bunlock pattern\b|\b(?:login|sign[- ]?in|account|admin|root|vpn|wifi|wi-fi|ssh|server|router|nas|db|database|email|mail)?[ _-]?(?:creds?|credentials?)\b|\bclave\b|\bmdp\b"
                 r"|密码|口令|密语|密匙|密令|通行码|登录码|密保答案|账密|" + _FOREIGN),
    ("token", r"(?:[A-Za-z0-9]{1,24}[_ -]?){0,3}?(?:api[ _-]?(?:key|token|secret)s?|access[ _-]?(?:key|token)(?:[ _-]?(?:id|secret))?|secret[ _-]?(?:access[ _-]?)?(?:key|token|id)|auth(?:entication|orization)?[ _-]?(?:token|key|code)|refresh[ _-]?token|id[ _-]?token|bearer(?:[ _-]?token)?|client[ _-]?secret|app[ _-]?(?:secret|key)|(?:consumer|signing|encryption|master|private|webhook|shared|account|storage|service|deploy|license|licence|product|activation|security|bot|personal access|session|hmac|jwt|cookie|root|subscription|wallet|ssh|recovery)[ _-]?(?:key|secret|token)s?|token|secret|credential)s?\b"
              r"|(?:api|access|app|secret|接口|访问|私有|公司|开发者?|调用|签名|加密|服务|主|平台|产品|授权|激活|商户)?[ _-]?(?:密钥|秘钥|私钥|令牌|凭证|凭据|授权码|激活码|注册码|序列码|许可证?密钥|鉴权码)|\bak\b|\bsk\b"),
    ("session", r"\b(?:j?session[ _-]?id|jsessionid|phpsessid|asp\.net_sessionid|connect\.sid|sessionid|session|sid|sess|csrf[ _-]?token|xsrf-token|auth[ _-]?cookie|cookie)s?\b|会话(?:id|标识|令牌|凭证)|登录态|小饼干"),
    ("key", r"\bkeys?\b"),
)  # fmt: skip
_LABEL = re.compile(
    "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _LABELS), re.IGNORECASE | re.ASCII
)

_LINK_EN = r"""(?:
    \s*(?::=|=>|->|==?|:|\||~)\s*
  | \s+(?:is|was|are|were|be|being|equals?|to|as|now|remains?|stays?|reads?|goes|becomes?|became|with|will\ be|should\ be|would\ be|must\ be|used\ to\ be|has\ been|es|est|ist|lautet|è|é|e|este|to)\b\s*
  | 's\s+ | \s*(?:は|が|는|은|이|가)\s* | \s*-\s+
)"""
_FILL_EN = r"""(?:(?:still|now|just|actually|simply|currently|literally|basically|set\ to|set\ as|set|changed\ to|changed|reset\ to|updated\ to|switched\ to|been|going\ to\ be|called|kept|again|also|always|only|as\ follows|following|this(?:\ one)?|below|here|is|was|to|the\ usual|probably|:|=|,|->|-)\s*){0,5}"""
_LINK_ZH = r"""(?:[\s"'(]*(?:已经?|就|都|还|一直|现在|目前|暂时?|刚刚?|我|你|他|她|先|统一|全部?|默认|初始|应该|大概|好像|仍然?|改|又|被|给|帮|您|今天|昨天|今后|以后|最新|新)){0,6}\s*
    (?:是|为|叫做?|乃|系|:|=|→|->|=>|设[置定]?[成为]?|改[成为]|换[成为]?|更[改换新][为成]|用的?|填|写|记|定[为成]|变[成为]|修改[为成]|重置[为成]|调整[为成]|输入?|报|念|发|给|收到|按|选|一律|沿用)
    (?:了|的|是|过|作|为|上|:|=|一下|这个|这串|那个|我的|：|老样子|还是)*[\s"'(:,]{0,3}(?:是|为|:)?"""
_AFTER = re.compile(
    rf"""(?P<gap>[^\n.;:=!?。；！？]{{0,48}}?)(?P<link>{_LINK_ZH}|{_LINK_EN}){_FILL_EN}\s*(?P<quote>["'`\[(<{{*_]{{0,2}})(?P<value>)""",
    re.VERBOSE | re.IGNORECASE,
)
_RUN = re.compile(r"[!-~]+")
_NEAR = re.compile(r"[ \t\"'`(:,]{0,3}(?P<value>)")

# A compound that talks about the label: "password policy", "密码长度".
_COMPOUND_EN = re.compile(
    r"[\s'_-]*(?:s\b)?[\s_-]*(?:polic(?:y|ies)|resets?|fields?|managers?|rules?|strength|lengths?|hash(?:es|ing|ed)?|hints?|histor|expir"
    r"|requirement|generator|input|box(?:es)?|form|page|prompt|protect|validation|rotation|reuse|storage|screen|dialog|column|spray|attack|leak|breach"
    r"|complexit|limit|count|usage|budget|type|scheme|format|bucket|lifetime|ttl|endpoint|service|server|auth|flow|param|header|vault|store|naming"
    r"|consumption|window|per\b|stream|price|cost|rate|size|economy|holder|sale|ring|embedding|id\b(?!\s*[:=])|less\b|free\b|based\b|gen\b|dump|crack|audit|entry\b|review|smell|base\b|owner|coverage|quality|style|freeze|path|splitting|signing|editor|block|change)",
    re.IGNORECASE,
)
_COMPOUND_ZH = re.compile(
    r"(?:规则|策略|强度|长度|字段|框|页|管理|哈希|加密|找回|错误|功能|学|本|器|过期|校验|位数|复杂度|格式|要求|提示|保护|安全|机制|登录|重置(?![为成])|修改(?![为成])|输入框|类型|有效期|数量|消耗|用量|桶|认证|鉴权|签发|刷新|轮换|体系|服务|存储|政策|泄露|分析|红包|的?(?:重要性|用途|作用|意义|概念|原理|区别))"
)
_PIN_TRAP = re.compile(
    r"(?i:gpio|header|connector|board|chip|jumper|bowling|safety|drawing|pull|map|postal|zip|引脚|针脚|arduino|lapel|hair|on|tie)[\s#-]*$"
)
_CODE_OWNER = re.compile(
    r"(?i:(?:your|my|the|login|sms|text(?:ed)?|sent|door|gate|alarm|entry|his|her|our|their|google|whatsapp|telegram|apple|bank|use|enter|garage|safe|house|apartment|building)\s(?:\w{1,12}\s)?)$"
)
_CODE_TRAP = re.compile(
    r"(?i:(?:error|status|http|exit|return|zip|postal|area|country|dial(?:ing)?|airport|currency|promo|discount|coupon|qr|bar|source|sort|color|colour|product|item|style|tax|swift|language|locale|response|machine|byte|op|sku|stock|dress|building|reason|event|course|class|subject|hs|nace|icd|cpt|diagnosis|invite|referral|gift|tracking|booking|reservation|order)\s)$"
)
_KEY_OWNER = re.compile(
    r"(?i:(?:my|the|our|api|openai|anthropic|claude|gemini|aws|azure|google|maps|openrouter|deepseek|qwen|kimi|moonshot|zhipu|glm|groq|mistral|cohere|tavily|serp|github|stripe|license|deploy|智谱|通义|百度|阿里|腾讯|火山|豆包|讯飞|高德|地图|模型|接口|平台|我|的|账户|账号|访问|服务|测试|生产)[\s的\w]{0,8})$"
)
_UNIT = re.compile(
    r"\s*[-~至到]?\s*\d*\s*(?:位|个|次|天|字|种|项|分钟?|秒|年|月|小时|元|块|人|条|%|％|\+|chars?\b|characters?\b|digits?\b|letters?\b|symbols?\b|bytes?\b|bits?\b|words?\b|days?\b|hours?\b|minutes?\b|mins?\b|seconds?\b|secs?\b|months?\b|weeks?\b|years?\b|times?\b|attempts?\b|or\s+more|or\s+longer|k\b|tokens?\b|prompt\b|rounds?\b|per\b)",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"""["'`”)\]]*(?:\s*$|\s*[,.;!?，。；、！？\n)）]|\s+(?:-|and|but|so|please|don'?t|for|on|if|when|just|because|thanks|fyi|btw|remember|keep|です|だ|입니다|in case)\b|\s*(?:です|だよ|입니다|请|记|别|不要|吧|哦|啊|呢|的|了|谢谢|帮|麻烦))""",
    re.IGNORECASE,
)
_CLOSERS = {'"': '"', "'": "'", "`": "`", "[": "]", "(": ")", "<": ">", "{": "}"}
_POSSESSED = re.compile(
    r"(?i:\b(?:my|our|his|her|their|your|the|mi|mon|mein|minha|mio|il mio|moj|mijn|'s)\b[^.,;:!?\n]{0,30}$)"
)


def _value_at(text: str, at: int, quote: str) -> tuple[int, int, bool]:
    """The value that begins at `at`: (start, end, quoted). A quoted value may hold spaces."""
    closer = _CLOSERS.get(quote[-1:], "")
    if closer:
        end = text.find(closer, at, at + 160)
        if end > at and "\n" not in text[at:end]:
            return at, end, True
    m = _RUN.match(text, at)
    if m is None:
        return at, at, False
    end = m.end()
    run = text[at : min(end, at + 200)]
    # JSON, query strings and calls go on after the value; a password may hold these in its middle.
    cut = re.search(r"""["'`<>]|[,;&](?=[A-Za-z_]{2,20}=)|,(?=["'{\[\d\s])|;(?=[A-Za-z ])""", run)
    if cut:
        run = run[: cut.start()]
    run = run.rstrip(".,;:?)]}>\"'`*") if len(run) > 1 else run
    if run.endswith("!") and not re.search(r"[0-9@#$%^&*]|[a-z][A-Z]", run):
        run = run.rstrip("!")
    return at, at + len(run), False


def _password(text: str, start: int, end: int, quoted: bool, told: bool, loose: bool) -> bool:
    """`told`: a link stands between label and value. `loose`: a single word is enough."""
    value = text[start:end]
    if not value or placeholder(value):
        return False
    if quoted and " " in value:
        words = value.split()
        return told and 2 <= len(words) <= 12 and not any(talk(w) for w in words[:1]) and not (
            ordinary(value) or set(value.lower().split()) & {"is", "are", "must", "the", "be"}
        )  # fmt: skip
    if re.fullmatch(r"\d{4,14}", value):
        return (not _UNIT.match(text, end) and not re.fullmatch(r"(?:19|20)\d\d", value)) or (
            told and loose and len(value) >= 4 and not _UNIT.match(text, end)
        )  # fmt: skip
    if password_shaped(value):
        return (
            (told or classes(value) >= 2)
            and not _UNIT.match(text, end)
            and len(value) >= (4 if told else 6)
        )
    if not told or not loose or ordinary(value) or talk(value):
        return False
    if re.fullmatch(r"[A-Za-z]{4,32}", value) or re.fullmatch(
        r"[A-Za-z]+(?:-[A-Za-z]+){1,5}", value
    ):
        return bool(_CLAUSE_END.match(text, end)) and not any(talk(w) for w in value.split("-"))
    return False


def _token(text: str, start: int, end: int, told: bool, weak: bool) -> bool:
    value = text[start:end]
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


def _chinese_phrase(text: str, at: int, kind: str) -> tuple[int, int] | None:
    """A password in Chinese words: "口令：芝麻开门". Only for words said on purpose."""
    m = re.compile(r"[\u4e00-\u9fff]{3,14}(?=\s*(?:$|[,.;!?，。；、！？\n\"'」』)]))").match(
        text, at
    )
    if (
        m
        and not TALK_ZH.search(m.group()[:3])
        and not re.search(r"[吗呢吧么]$|需要|必须|不能|可以|用户", m.group())
    ):
        return m.span()
    return None


def _judge(text: str, kind: str, label: re.Match[str]) -> Iterator[Span]:
    after, before = label.end(), text[max(0, label.start() - 40) : label.start()]
    word = label.group().lower()
    if re.search(r"(?:\$\{?|\{\{ ?|<|%)[\w.-]*$", before):
        return  # the name of a variable, not a label
    if _COMPOUND_EN.match(text, after) or _COMPOUND_ZH.match(text, after):
        if not re.match(
            r"(?i:[\s_-]*(?:id|reset|entry|change)\s*(?:to|[:=])|登录(?:是|用|:)|[^\n]{0,8}(?:为|是|:|=)\s*[!-~]{6})",
            text[after:],
        ):
            return
    if kind == "pin" and _PIN_TRAP.search(before) and word.startswith("pin"):
        return
    if kind == "otp" and word in ("code", "codes"):
        if _CODE_TRAP.search(before) or not _CODE_OWNER.search(before):
            return
    if kind == "key" and not _KEY_OWNER.search(before):
        return
    tried: list[tuple[int, int, bool, bool]] = []
    near = _NEAR.match(text, after)
    if near:
        opener = text[near.end() - 1 : near.end()]
        told = ":" in text[after : near.end()]
        tried.append((*_value_at(text, near.end(), opener if opener in _CLOSERS else ""), told))
    link = _AFTER.match(text, after)
    if link:
        tried.append((*_value_at(text, link.end(), link["quote"]), True))
    for start, end, quoted, told in tried:
        value = text[start:end]
        explicit = told and re.search(r"[:=]\s*[\"'`]?$", text[after:start]) is not None
        if kind in ("password", "passphrase"):
            loose = (
                explicit
                or bool(_POSSESSED.search(before))
                or word[-1:] > "\u2fff"
                or not word.isascii()
                or kind == "passphrase"
            )
            if re.search(r"(?i:cred)|账密", word):
                pair = re.match(r"[^\s:/|,]{2,40}\s?[/:|,]\s?(?P<v>[^\s,;]{4,40})", text[start:])
                if (
                    told
                    and pair
                    and (password_shaped(pair["v"]) or re.fullmatch(r"[A-Za-z]{4,}", pair["v"]))
                    and not ordinary(pair["v"])
                ):
                    yield "password", start + pair.start("v"), start + pair.end("v")
                    return
                loose = False
            if _password(text, start, end, quoted, told, loose):
                yield "password", start, end
                return
            if (
                told
                and not value
                and (phrase := _chinese_phrase(text, start, kind))
                and word in ("口令", "暗号", "密语", "密令", "接头暗语")
            ):
                yield "password", *phrase
                return
            if told and kind == "passphrase":
                m = re.compile(
                    r"(?:[a-z]{3,12}[ -]){2,11}[a-z]{3,12}(?=[\s.,!]*(?:$|\n|[.,!]))"
                ).match(text, start)
                if m and not any(
                    w in {"the", "are", "must", "with", "you", "and", "for", "should"} or talk(w)
                    for w in m.group().split()
                ):
                    yield "password", m.start(), m.end()
                    return
        elif kind in ("pin", "cvv", "otp"):
            want = {
                "cvv": r"\d{3,4}",
                "pin": r"\d{4,8}",
                "otp": r"\d{3}[ -]\d{3}|\d{4,8}|[A-Z]-\d{6}",
            }[kind]
            m = re.compile(rf"(?:[\"'`#]?)(?P<v>{want})(?![\w.:/%-]*\d)").match(text, start)
            if (
                m
                and not _UNIT.match(text, m.end())
                and not re.match(r"[A-Za-z]", text[m.end() : m.end() + 1])
            ) and not (
                word.startswith("pin")
                and not told
                and not re.search(r"(?i:atm|my|card|sim|卡)[^.]{0,12}$", before)
            ):
                yield kind, m.start("v"), m.end("v")
                return
            if (
                kind in ("pin", "otp")
                and (kind == "pin" or explicit or told)
                and len(value) >= (4 if kind == "pin" else 6)
            ):
                if (
                    password_shaped(value)
                    and not word.startswith("pin")
                    and (told or not word.isascii())
                ):
                    yield ("password" if kind == "pin" else "otp"), start, end
                    return
                if (
                    told
                    and not word.isascii()
                    and re.fullmatch(r"[A-Za-z0-9]{4,12}", value)
                    and any(c.isdigit() for c in value)
                ):
                    yield "otp", start, end
                    return
        elif kind in ("token", "key"):
            weak = kind == "key" or word in (
                "token",
                "tokens",
                "secret",
                "secrets",
                "credential",
                "credentials",
                "ak",
                "sk",
            )
            if _token(text, start, end, told, weak and not explicit):
                if kind == "key" and not told:
                    continue
                yield ("token" if "token" in word or "令牌" in word else "api_key"), start, end
                return
            if explicit and "secret" in word and _password(text, start, end, quoted, told, False):
                yield "password", start, end
                return
        elif kind == "session":
            m = re.compile(r"(?:[\w.-]{1,40}=)?(?P<v>[\w%.~+/=:-]{12,})").match(text, start)
            if m and told and token_shaped(m["v"], least=12):
                yield "session", m.start("v"), m.end("v")
                return


_HEADERS = re.compile(
    r"(?i:(?P<name>authorization|proxy-authorization|x-[\w-]{1,30}|(?:set-)?cookie|api-?key)\s*[:=]\s*[\"']?"
    r"(?P<scheme>(?:basic|bearer|token|digest|apikey|aws4-hmac-sha256|hmac|jwt|oauth|negotiate|ntlm|key)\s+)?(?P<v>[^\s\"',]{6,}))"
)
_BEARER = re.compile(r"(?i:\b(?:bearer|basic)\s+(?:token\s+)?[\"'`]?)(?P<v>[\w.~+/=-]{12,})")
_COMMAND = re.compile(
    r"(?:(?:^|\s)(?:curl|wget|http|https|httpie)\b[^\n]{0,200}?\s(?:-u|--user|-a|--auth)[ =]?[\"']?[^\s:\"']{1,64}:(?P<curl>[^\s\"']{3,128}))"
    r"|(?:\b(?:mysql|mysqldump|mariadb|mysqladmin)\b[^\n]{0,120}?\s-p(?P<mysql>[^\s\"']{4,64}))"
    r"|(?:\bsshpass\s+-p\s?[\"']?(?P<ssh>[^\s\"']{4,64}))"
    r"|(?:\bredis-cli\b[^\n]{0,120}?\s-a\s?[\"']?(?P<redis>[^\s\"']{4,64}))"
    r"|(?:\b(?:docker|podman|helm|az|oc)\s+login\b[^\n]{0,160}?\s(?:-p|--password)[ =][\"']?(?P<docker>[^\s\"']{4,128}))"
    r"|(?:\s--?(?:password|passwd|pass|token|api-?key|secret|auth-token|access-token)[ =][\"']?(?P<flag>[^\s\"']{6,200}))"
)  # fmt: skip
# "root / toor123!", "用 admin / Abc123 登录", "hunter2 is my password", "Abc123 是我的密码".
_PAIR = re.compile(
    r"(?<![\w/.:-])(?P<u>[A-Za-z][\w.@+-]{1,40})\s?[/|:]\s?(?P<v>[^\s,，。;；/|、]{5,40})"
)
_PAIR_CONTEXT = re.compile(
    r"(?i:log[ -]?(?:in|on|into)|sign[ -]?in|credential|creds\b|account|password|username|\bssh\b|\bvpn\b|wi-?fi|\bssid\b|\bnas\b|router|\bftp\b|\bsmtp\b|\bdb\b|admin panel|use\b)|登录|登陆|账号|账户|用户名|密码|口令|路由器|无线|堡垒机|后台"
)
_REVERSED = re.compile(
    r"[\"'`]?(?P<v>[!-~]{4,40}?)[\"'`]?\s*(?:(?:is|was|as|=|works as|are)\s(?:\w{1,12}'?s?\s){0,5}?(?:pass ?(?:word|code|phrase)|pin|pwd|otp|verification code|one[- ]time code|login code|security code|api key|token|secret)\b"
    r"|[)(,，\s]{0,2}(?:\s?(?:就|才|这个?|还)?(?:是|为|当作?|做|作为?|作)\s?[^\s,，。;；!?]{0,10}?(?:的)?|[(（]\s?)(?:密码|口令|验证码|校验码|动态码|取款密码|支付密码|PIN))",
    re.IGNORECASE,
)
_USERINFO = re.compile(
    r"(?:用户名?|账号|帐号|账户|user(?:name)?|login|account|uid|user id)\s?(?:是|为|:|=|is)?\s?[\"']?(?P<u>[\w.@+-]{2,40})[\"']?\s?(?:[,，;；/|、和及与&]|and|with|\s)\s?(?:(?:密|pw|pass)\s?(?:是|为|:|=|is)?\s?)[\"']?(?P<v>[^\s,，。;；]{4,40})",
    re.IGNORECASE,
)


def spans(text: str) -> Iterator[Span]:
    """Every told secret in a folded text."""
    for label in _LABEL.finditer(text):
        yield from _judge(text, str(label.lastgroup), label)
    for m in _HEADERS.finditer(text):
        name, value = m["name"].lower(), m["v"].rstrip(".,;)")
        if "authorization" in name and m["scheme"] and not ordinary(value) and len(value) >= 8:
            yield "token", m.start("v"), m.start("v") + len(value)
        elif token_shaped(value.partition("=")[2] if "cookie" in name else value, least=12):
            if not name.startswith("x-") or re.search(
                r"key|token|auth|secret|sign|session|csrf", name
            ):
                yield (
                    ("session" if "cookie" in name else "token"),
                    m.start("v"),
                    m.start("v") + len(value),
                )
    for m in _BEARER.finditer(text):
        if token_shaped(m["v"], least=12):
            yield "token", m.start("v"), m.end("v")
    for m in _COMMAND.finditer(text):
        for group, value in m.groupdict().items():
            if value and not ordinary(value):
                yield "password", m.start(group), m.end(group)
    if _PAIR_CONTEXT.search(text):
        for m in _PAIR.finditer(text):
            value = m["v"].rstrip(".,;:)\"'")
            near = text[max(0, m.start() - 40) : m.end() + 40]
            if (
                password_shaped(value)
                and classes(value) >= 2
                and _PAIR_CONTEXT.search(near)
                and not re.fullmatch(r"\d+(?:[.:]\d+)*", value)
            ):
                yield "password", m.start("v"), m.start("v") + len(value)
        for m in _USERINFO.finditer(text):
            if password_shaped(m["v"]):
                yield "password", m.start("v"), m.end("v")
    for m in _REVERSED.finditer(text):
        value = m["v"]
        tail = m.group().lower()
        if re.fullmatch(r"\d{4,8}", value) and not re.search(r"api key|token|secret$", tail):
            yield (
                "otp" if re.search(r"code|otp|验证|校验|动态", tail) else "password",
                m.start("v"),
                m.end("v"),
            )
        elif password_shaped(value) and len(value) >= 6:
            yield "password", m.start("v"), m.end("v")
