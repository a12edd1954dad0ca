# ruff: noqa: E501
"""The words that announce a secret, and the words around them that say it is only talk.

Pure: no I/O. Plain word lists, one kind a line; a blank in an English word also matches `_`, `-` or
nothing ("api key": api_key, apikey, API-Key). Matching is on folded lower-case text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from memcore.rules.sensitive.folding import fold_keyword

_WORDS: dict[str, str] = {
    "password": """password, passwords, passwd, passwort, pass word, pasword, passwrd, passowrd, passwrod,
        pssword, passord, mima, psk, preshared key, pre shared key, 🔑, 🔐, p@ss, pa55, p4ss, p4ssword, p@ssword, p@ssw0rd, passw0rd,
        pa$$word, pa55word, pass, pwd, pswd, psw, pw, passw, login password, unlock pattern, mdp,
        credential, credentials, creds, cred, user/pass, username/password, contraseña, contrasena, clave,
        mot de passe, kennwort, senha, palavra passe, пароль, パスワード, 비밀번호, 암호, 패스워드, hasło,
        wachtwoord, lösenord, adgangskode, salasana, şifre, mật khẩu, kata sandi, parola d'ordine,
        密码, 口令, 密语, 密匙, 密令, 通行码, 登录码, 账密, 密保答案, 暗号, 接头暗语, 解压码, 提取码,
        分享码, 访问码""",
    "passphrase": """passphrase, pass phrase, pass-phrase, secret word, secret phrase, safe word,
        safeword, code word""",
    "pin": """pin, pin code, pin number, pin no, pin 码, passcode, pass code, unlock code, lock pattern, lock pattern code, pattern code, keypad, padlock, key safe, keysafe, combo,
        combination, 暗証番号, 取款密码, 交易密码, 支付密码, 刷卡密码, 银行卡密码, 卡密码, 提现密码,
        锁屏密码, 解锁密码, 开机密码, 手机密码, 门锁密码, 门禁密码, 开门密码, 保险柜密码, 保险箱密码,
        行李箱密码, 柜子密码, 电子锁密码, 查询密码, 网银密码, 银行密码, 门禁码, 开门码, 解锁码, 开锁码, 投屏码, 配对码, 连接码, 开箱码, 开柜码, 入会码, 进门码, 撤防码, 密码锁, 门禁, puk, puk code, puk码""",
    "cvv": """cvv, cvv2, cvc, cvc2, csc, cvn, card verification code, card verification value,
        card security code, security code, card code, digits on the back, numbers on the back,
        digits on back, number on the back, 安全码, 背面三位, 背面3位, 背面的三位, 后三位, 卡背三位,
        背后三位, 校验三位, 背面后三位, 背面末三位""",
    "otp": """otp, totp, one time password, one time passcode, one time code, one time pin,
        verification code, verify code, verification pin, authentication code, auth code,
        authenticator code, 2fa code, 2fa, two factor code, mfa code, login code, sign in code,
        signin code, security code sent, sms code, text code, access code, activation code,
        backup code, backup codes, recovery code, recovery codes, confirmation code, entry code,
        door code, backdoor code, gate code, garage code, alarm code, garage door code, keypad code, lockbox code,
        safe code, code, codes, 验证码, 校验码, 动态码, 动态口令, 动态密码, 确认码, 授权码, 备用码,
        恢复码, 恢复代码, 备用代码, 验证代码, mtan, sms tan, push tan, 一次性密码, 短信码, 位码, 认证码, 取件码, 取货码, 兑换码""",
    "token": """token, tokens, access token, auth token, authentication token, refresh token,
        id token, bearer token, bot token, api token, personal access token, deploy token,
        session token, push token, security token, oauth token, csrf token, integration token,
        访问令牌, 令牌, 刷新令牌, 个人令牌""",
    "api_key": """api key, api keys, apikey, api secret, api secret key, access key, access keys,
        access key id, access key secret, secret access key, secret key, secret id, secret token,
        client secret, app secret, app key, appkey, consumer key, consumer secret, signing key,
        signing secret, encryption key, aes key, master key, account key, storage key, service key,
        webhook secret, shared secret, shared key, integration secret, private key, ssh key,
        license key, licence key, product key, activation key, subscription key, hmac key, jwt key,
        jwt secret, cookie secret, session secret, wallet key, root key, deploy key, recovery key,
        service account key, corp secret, corpsecret, secret, secrets, ak, sk, 密钥, 秘钥, 私钥, 凭证,
        凭据, 激活码, 注册码, 序列密钥, 许可证密钥, 鉴权码, 产品密钥, 接口密钥""",
    "session": """session id, sessionid, jsessionid, phpsessid, asp.net sessionid, connect.sid,
        session, sessid, sid, sess, auth cookie, session cookie, cookie, cookies, sessdata,
        会话id, 会话标识, 会话令牌, 会话凭证, 登录态""",
    "network": "wifi, wi-fi, wlan, 无线网, 热点",
    "key": "key, keys, wifi key, network key, wireless key",
}  # fmt: skip


def any_of(listed: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of these words in a folded lower-case text, the longest first. One branch
    per first letter keeps the scan cheap."""
    by_first: dict[str, list[str]] = defaultdict(list)
    for word in listed:
        by_first[word[0]].append(word)
    branches = []
    for first, words in by_first.items():
        tails = "|".join(
            re.escape(w[1:]).replace(r"\ ", "[ _-]?").replace(r"\-", "[ _-]?")
            for w in sorted(set(words), key=len, reverse=True)
        )
        branches.append(f"{re.escape(first)}(?:{tails})")
    return re.compile("|".join(branches))


def _compiled() -> tuple[re.Pattern[str], dict[str, str]]:
    kinds: dict[str, str] = {}
    words: list[str] = []
    for kind, listed in _WORDS.items():
        for word in (w.strip() for w in listed.replace("\n", " ").split(",")):
            folded = fold_keyword(word).lower()
            key = re.sub(r"[ _-]", "", folded)
            if key not in kinds:
                kinds[key] = kind
            words.append(folded)
    return any_of(words), kinds


LABEL, _KIND_OF = _compiled()
NEIGHBOURS = frozenset(
    word[i : i + 2] for word in _KIND_OF for i in range(len(word) - 1) if word[i : i + 2] > "\u2fff"
)
"""Characters that stand side by side in a Chinese label."""


def kind_of(label: str) -> str:
    """Kind of a matched label."""
    return _KIND_OF[re.sub(r"[ _-]", "", label)]


# Directly after a label: a compound that talks about it ("password policy", "密码长度").
COMPOUND = re.compile(
    r"(?:'?s\b)?[ _-]{0,2}(?:"
    + "|".join(
        """polic(?:y|ies) resets?(?![a-z]) fields? managers? rules? strength lengths? hash(?:es|ing|ed)? hints? histor
        expir requirement generator inputs? box(?:es)? forms? pages? prompts? protect validation rotation reuse
        storage screens? dialogs? columns? spray attacks? leaks? breach complexit limits? counts? usage budget
        types? scheme formats? buckets? lifetime ttl endpoints? servers? services? auth(?![a-z]) flows? params? headers?
        vaults? stores? naming consumption windows? per(?![a-z]) streams? prices? costs? rates? sizes? economy holders?
        sales? rings? embeddings? less(?![a-z]) free(?![a-z]) based(?![a-z]) gen(?![a-z]) dumps? crack audits? entry(?![a-z]) reviews? smells? base(?![a-z])
        owners? coverage quality style freeze paths? splitting signing editor blocks? changes?(?![a-z]) authentication
        grants? verif(?:y|ication)(?![a-z])(?!.?code) stuffing bonds? results? person takeaways? layout board words?(?![a-z])
        boundar cards? scanners? freshness recovery(?![a-z]) names?(?![a-z]) files?(?![a-z]) fatigue sync(?:ing)? autofill tests?(?![a-z])
        scanning jobs? points?(?![a-z]) exchange introspection revocation introspect""".split()
    )
    + r")"
    + r"|(?:(?:的)?(?:"
    + "|".join(
        """规则 策略 强度 长度 字段 输入 框 页 管理 哈希 加密 找回 错误 功能 学 本 器 校验 位数 复杂度 格式 要求 提示 保护
        机制 登录(?!是|用) 重置(?![为成]) 修改(?![为成]) 类型 有效期 过期 数量 消耗 用量 桶 认证 鉴权 签发 刷新 轮换 体系 服务 存储 政策
        泄露 分析 红包 重要性 用途 作用 意义 概念 原理 区别 箱(?!密) 锁 太 不 错 忘 丢 收不到 发送 接口 识别""".split()
    )
    + "))",
)
# Directly before a label: another thing of the same name.
_BEFORE_PIN = "gpio header connector board chip jumper bowling safety drawing push pull map postal zip arduino lapel hair rolling tie led signal 引脚 针脚"
_BEFORE_CODE = """error status http exit return zip postal area country dial dialing airport currency promo discount
    coupon qr bar source sort colour color product item style tax swift language locale response machine byte op sku
    stock dress building reason event course class subject hs nace icd cpt diagnosis invite referral gift tracking
    booking reservation order morse dead legacy shipping flight region industry cost zone team unit room lot batch store supplier dealer customer station vendor branch
    project employee category plant account asset serial part model"""
_BEFORE_KEY = """primary foreign public partition sort cache redis s3 object map dict json hot shortcut arrow
    idempotency composite unique index i18n translation row hash lookup answer publishable return escape tab shift
    control function the_ low high musical piano car house door object sorted search routing grouping join natural
    surrogate candidate super business dictionary config session public_ 缓存 主 对象 分区 幂等 去重 路由 排序 字典"""
PIN_TRAP = re.compile(r"(?:" + "|".join(_BEFORE_PIN.split()) + r")[ #_-]{0,2}$")
CODE_TRAP = re.compile(r"(?<![a-z])(?:" + "|".join(_BEFORE_CODE.split()) + r")[ _-]$")
KEY_TRAP = re.compile(r"(?<![a-z])(?:" + "|".join(_BEFORE_KEY.split()) + r")[ _.-]{0,2}$")
CODE_OWNER = re.compile(
    r"(?<![a-z])(?:your|my|the|this|login|sms|text|texted|sent|sends|received|got|his|her|our|their|google"
    r"|whatsapp|telegram|apple|bank|use|enter|house|apartment|wechat|paypal|amazon|steam|discord|[a-z]+'s|phone|tablet|laptop|building|gate|door|locker|garage|alarm|safe) (?:[a-z]{1,12} )?$"
)
# A name in mid-sentence or with a hump: "DigiD code".
CODE_BRAND = re.compile(r"(?:[A-Z][a-z]+[A-Z][A-Za-z]*|[a-z,] [A-Z][a-z]+) $")
KEY_OWNER = re.compile(
    r"(?:my|the|our|api|openai|anthropic|claude|gemini|aws|azure|google|maps|openrouter|deepseek|qwen|kimi"
    r"|moonshot|zhipu|glm|groq|mistral|cohere|tavily|serp|github|stripe|license|deploy|wifi|wi-fi|network"
    r"|wireless|ssid|uses|use|guest"
    r"|智谱|通义|千问|百度|阿里|腾讯|火山|豆包|讯飞|高德|地图|模型|接口|平台|我|账户|账号|访问|服务|测试|生产|秘密|这个|那个)"
    r"[ 的a-z0-9]{0,8}$"
)
NETWORK = re.compile(r"wi-?fi|network|wireless|ssid|hotspot|router|无线|热点|路由")

# After a number: then it is an amount, not a code.
UNIT = re.compile(
    r"\s*[-~至到]?\s*\d*\s*(?:位|个|次|天|字|种|项|分钟?|秒|年|月|小时|元|块|人|条|%|\+"
    r"|(?:chars?|characters?|digits?|letters?|symbols?|bytes?|bits?|words?|days?|hours?|minutes?|mins?|seconds?|secs?|months?"
    r"|weeks?|years?|times?|attempts?|or\s+more|or\s+longer|k|tokens?|prompt|rounds?|per|rows?|users?|requests?)\b)",
    re.IGNORECASE,
)
# What may follow a one-word password: the clause is over.
CLAUSE_END = re.compile(
    r"""["'`)\]]*(?:\s*$|\s*[,.;!?，。；、！？\n)）]
      |\s+(?:-|and|but|so|please|pls|don'?t|for|on|if|when|just|because|thanks|fyi|btw|remember|keep|in\s+case|ok|okay|right)\b
      |\s*(?:です|だよ|だ|입니다|이에요|请|记|别|不要|吧|哦|啊|呢|的|了|谢谢|帮|麻烦|勿))""",
    re.IGNORECASE | re.VERBOSE,
)
OWNED = re.compile(
    r"(?<![a-z])(?:my|our|his|her|their|your|the|mi|mon|ma|mein|meine|minha|mio|il mio|mijn|[a-z]+'s)\b[^.,;:!?\n]{0,30}$"
)
