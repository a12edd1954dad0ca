# ruff: noqa: E501
"""Does a word that follows "password is" look like a password, or is it talk about passwords?

Pure: no I/O. Three answers a caller combines: is it a placeholder, is it ordinary talk (a known
algorithm, a path, a quantity, a variable), and is it shaped as secrets are (mixed characters).
"""

from __future__ import annotations

import re

_PLACEHOLDER = re.compile(
    r"""<[^<>]*>? | \[[^\[\]]*\]? | \([^()]*\)? | \{\{?[^{}]*\}{0,2}  # <password> [key] {{token}}
      | \$\{.*\}? | \$\(.*\)? | \$[A-Za-z]+(?:_[A-Za-z]+)* | %[\w]+%        # ${VAR} $VAR %VAR%
      | (?-i:.*EXAMPLE(?:KEY)?)                               # AKIAIOSFODNN7EXAMPLE
      | [*xX•●·.#_?+\-…]{3,}                                # ********, xxxx, ....
      | .*(?:\*{3}|•{3}|●{3}|x{5}|X{5}|\.{3}|…).*
      | (?:your|my|the|some|an?|insert|enter|put|add|change|replace|example|sample|dummy|fake|test
         |placeholder|redacted|masked|hidden|removed|censored|secret|todo|tbd|foo|bar|abc|xyz|none
         |null|nil|undefined|empty|true|false|n/?a)
        (?:[-_ ]?(?:me|here|it|this|your|my|in|own|api|app|auth|access|client|db|secret|password
         |passwd|pass|pwd|key|token|value|text|string|username|user|id|name|goes|foo|bar|example
         |placeholder))*
      | (?:db_?|user_?|new_?|old_?|admin_?|root_?)?(?:passw(?:or)?d|pass|pwd|pw|user(?:name)?|login)
      | (?:api|secret|access|auth|client|private|session)?[-_ ]?(?:key|token|secret|value|string)
    """,
    re.VERBOSE | re.IGNORECASE,
)

_TECH = re.compile(
    r"""(?:hmac|sha|md|aes|des|rsa|dsa|hs|rs|es|ps|ecdsa|ed|curve|utf|tls|ssl|oauth|openid|base
          |pbkdf|argon|ipv|http|chacha|blake|crc|mfa|web|win|windows|office|iso|rfc
          |nist|pkcs|fips|cve|iphone|ios|android|level|stage|step|phase|version|rev|ver|day|week
          |ec|log)
         [-_/ .]?\d{1,4}(?:[-_./:]?\w{1,8}){0,3}?
      | (?:java|python|node|postgres|postgresql|mysql|redis|oracle|log4j|neo)[-_/ .]?\d{1,2}(?:[.-][a-z\d]{1,8}){0,3}
      | [vpqkshxr]\d{1,3}(?:\.\d+)*
      | 1password\d? | lastpass | keepass(?:xc|2)? | bitwarden | dashlane | vault | keychain
      | auth0 | b2[bc] | e2e\w* | k8s | i18n | l10n | a11y | 2fa | mfa | sso | ldap | u2f | fido2?
      | p2p | 802\.\d\w* | wpa[23]?(?:[-_/]\w+)* | argon2(?:id|i|d)?
    """,
    re.VERBOSE | re.IGNORECASE,
)

_QUANTITY = re.compile(
    r"""[<>≥≤~=]{0,2}\d+(?:[.,]\d+)*(?:\s?[-~–至到]\s?\d+)?[+x%]?
        (?:\s?-?(?:characters?|chars?|digits?|letters?|symbols?|bytes?|bits?|words?|numbers?|days?|hours?|hrs?|h
          |minutes?|mins?|min|seconds?|secs?|ms|months?|weeks?|years?|times?|attempts?|tries|retries
          |st|nd|rd|th|k|kb|mb|gb|m|s|d|x|step|factor|fold|way|or|and|more|位|个|个?字符|个?数字|字节|位数|次|天|小时|分钟|秒|年|月|周|日|元|块|人|条
          |[gmk]?hz|g|rounds?|iterations?|users?|accounts?|tokens?|requests?|keys?)[a-z]{0,8})?
      | v?\d+(?:\.\d+){1,4}(?:[-+]\w+)*                      # versions, decimals
      | \d{4}[-/.年]\d{1,2}(?:[-/.月]\d{1,2}日?)?(?:T[\d:.+Z-]+)? # dates
      | \d{1,2}:\d{2}(?::\d{2})?(?:am|pm)?                    # times
    """,
    re.VERBOSE | re.IGNORECASE,
)

_CODE = re.compile(
    r"""[A-Za-z_]+\d{0,2}(?:\.[A-Za-z_]+\d{0,2})+(?:[\[(].*)?   # config.password, os.environ[...]
      | [a-z_]+(?:\|[a-z_]+(?::[\w,]*)?)+                      # required|min:8, string | null
      | (?:min|max|between|len|length|size|digits)(?:_?len(?:gth)?)?[:=]\d[\w|:,]*
      | [A-Za-z_]\w*[\[(].*                                   # get_password(), Optional[str]
      | (?-i:[A-Z]+(?:_[A-Z0-9]+)+)                           # DB_PASSWORD
      | (?-i:[a-z]+(?:_[a-z]+)+)                              # snake_case name
      | [A-Za-z]\w*=(?:true|false|none|null|\d+)[`'"]*            # keyword=True
      | [A-Za-z][\w.\[\]-]*(?:[<>=!~]=|[<>])\d[\w.,<>=!~*]*       # package>=1.2
      | //[\w.:-]+(?:/\S*)?
      | (?:~|\.{0,2})/[\w.\-/@{}]*                            # a path
      | [A-Za-z]:\\.*
      | [\w\-]+(?:/[\w.\-]+)*\.(?:ya?ml|json|toml|env|ini|conf|cfg|py|js|ts|tsx|jsx|go|rs|java|rb|sh|sql
          |md|txt|csv|log|xml|html?|css|php|pdf|docx?|xlsx?|png|jpe?g|gif|svg|webp|webm|mp[34]|mov|zip|tar|gz|whl|jar|exe|kdbx?|pem|crt|key|properties)(?:[:#]\S*)?
      | [\w.+-]+@[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)+          # an e-mail address
      | (?:https?|ftp|file|s3|gs|ssh|git)://\S*
      | (?:vault|op|env|ssm|arn|secretsmanager|keyring|kms|sops|ref|secrets?|vars?|process|self|this|config|settings)[:.]\S*
      | !\w+ | @\w+ | &\w+ | --\w[\w-]*                       # yaml tags, decorators, options
      | (?:str|string|text|int|integer|number|bool|bytes|object|any|optional|varchar|char)\b.*
    """,
    re.VERBOSE | re.IGNORECASE,
)

UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)

# Words that come after "the password is …" in talk and are not passwords.
TALK_EN = frozenset(
    """a about above accepted accessible active actually again alice all already also alphanumeric always an and another any
    arbitrary as ascii asked at automatic autofilled available back bad bare bcrypt be because been being below better both broken bob
    but by called case-insensitive case-sensitive changeable clear cleartext common complex complicated compromised confidential
    configurable configurable. copied correct critical crucial customizable dead default definitely deprecated different difficult disabled done dynamic
    easy either empty enabled encoded encrypted ends enforced enough entered env essential even ever every everywhere exact exactly
    expired expires external fake false fetched fine first five fixed for forbidden forgotten found four free fresh from generated
    given going gone good great handled hard hardcoded has hash hashed held her here hers hexadecimal hidden his hers however
    i ideally if illegal immutable important impossible in inactive inaccessible incomplete incorrect independent insecure inside
    insufficient internal into invalid irrelevant irreversible is it its itself just kept key known last later leaked least left less like limited
    local locked long longer longest lost lowercase managed mandatory masked maximum maybe meant mine minimum
    missing mixed monthly more most much must my necessary needed never new next no nobody none not nothing now null nullable number numeric
    obfuscated obligatory obscured obsolete obvious of off often okay ok old on once one only open optional or our out outdated over own
    per permanent personal plain plaintext please pointless possible predictable present preset printed private probably problematic prompted
    protected provided public quite random rather readable ready really recommended redacted redundant refreshed rejected
    required reset restricted retrieved reusable reused right rotated safe salted same saved secret secure sensitive sent
    separate set shared short shorter should shown simple simply six so some something somewhere soon special specified stale
    still stored strict string strong stronger sufficient superfluous supplied supposed sure symmetric synced temporary ten
    text that the their them then there these they this those three to today together tomorrow too transmitted trivial true two
    typed unavailable unchanged unclear undefined unguessable unique universal unknown unlimited unnecessary unneeded unread
    unreadable unsafe unset unsupported unused unusual unverified up updated uppercase urgent useful useless user
    username using usual usually valid validated vault verified very visible vital vulnerable wanted was
    weak weaker weekly well what when where which who whose why will with within without wrong yes yet you your yours
    yesterday years months days hours minutes characters digits letters symbols min max at least most lowercase uppercase
    hint manager policy reset field prompt rotation length expiry history rule rules hashing storage strength protected
    login signup sign-in sign-up authentication authorization bearer basic json yaml html header cookie query body param parameter
    jwt saml oauth ldap kerberos sso opaque signed unsigned short-lived long-lived one-time time-based per-user
    plain-text write-only read-only server-side client-side base64 utf-8 hex alphanumerical""".split()
)
TALK_ZH = re.compile(
    r"""[的了]?(?:至少|最少|最多|最长|必[填须需]|需要?|应[该当]?|什么|啥|多少|哪|谁|怎|如何|几|由|用于|用来|用户|在|存|保[存管]|储|放|加密|明文|密文|过期|错|对的|正确
        |无效|有效|空|随机|自动|系统|一样|相同|不|没|未|被|已|否|可[以选]|会|要|能|通过|使用|采用|经过|基于|单向|哈希|散列|长度|包含|含有|大小写|字[母符]|数字|区分
        |为了|因为|如果|建议|禁止|允许|默认值?是?空|否则|重要|敏感|安全|简单|复杂|太|很|非常|比较|同一|唯一|动态|临时|一次性|可选|另|其|每|第|根据|按|从|让|把|给|是否
        |[一二三四五六七八九十两\d]+\s?(?:位|个|次|天|字|种|项|分|秒|年|月|小时)|我[的们]?|你|他|她|它|这|那|自己|大家|老板|同事|管理员|公司|生日|名字|手机号|身份证|初始|原来|以前|登录|登陆|输入|修改|重置|找回|机制
        |功能|方式|策略|规则|强度|字段|校验|明[天日]|今[天日]|昨[天日]|目前|现在|暂|尚|仍|还|都|就|也|只|仅|永|长期|定期|经常|频繁|关键|核心|本|该|正|好)""",
    re.VERBOSE,
)


def placeholder(value: str) -> bool:
    """True for a stand-in: <password>, ${VAR}, ****, YOUR_API_KEY, changeme."""
    core = value.strip("\"'`")
    return not core or bool(_PLACEHOLDER.fullmatch(core)) or len(set(core)) == 1


def ordinary(value: str) -> bool:
    """True for what is not a secret whatever stands before it: an algorithm, a quantity, a path,
    a variable, an address, a type."""
    if re.fullmatch(r"[A-Za-z]+(?:\.[A-Z][a-z]+)+\d+", value):
        return False  # Copper.Kettle9
    return bool(
        placeholder(value)
        or _TECH.fullmatch(value)
        or _QUANTITY.fullmatch(value)
        or _CODE.fullmatch(value)
    )


def talk(word: str) -> bool:
    """True for an English word that describes a password rather than being one."""
    word = word.lower().strip(".,;:!?\"'")
    return (
        len(word) < 4
        or word in TALK_EN
        or (word.endswith(("ed", "ing", "able", "ible", "ly", "tion", "ment", "sensitive", "based"))
            and len(word) > 4)
        or (word.startswith(("un", "non", "auto", "pre", "multi", "pass")) and len(word) > 6)
    )  # fmt: skip


def classes(value: str) -> int:
    """How many of: lower case, upper case, digit, other printable, appear in `value`."""
    return (
        any(c.islower() for c in value)
        + any(c.isupper() for c in value)
        + any(c.isdigit() for c in value)
        + any(not c.isalnum() and c.isascii() for c in value)
    )


def password_shaped(value: str) -> bool:
    """True for a mix nobody writes as prose: digits with letters, or symbols inside a word."""
    if re.fullmatch(r"@[\w.-]+(?:[:/]\S*)?", value):
        return False  # the host after a password in an address
    if len(value) < 4 or ordinary(value) or re.fullmatch(r"[A-Za-z_-]+=+([\"'].*)?", value):
        return False
    letters = any(c.isalpha() for c in value)
    digits = any(c.isdigit() for c in value)
    symbols = any(not c.isalnum() for c in value.strip(".,;:!?\"'()-"))
    hyphenated = re.fullmatch(r"[A-Za-z]+(?:[-'/&+][A-Za-z]+)+", value)
    if hyphenated:
        return False
    inner_symbol = bool(re.search(r"[A-Za-z0-9][!@#$%^&*+=~|?_][A-Za-z0-9]", value))
    return (letters and digits) or (symbols and digits and len(value) >= 5) or (
        letters and (inner_symbol or bool(re.search(r"[!@#$%^&*+=~]", value[1:])))
    )  # fmt: skip


def token_shaped(value: str, *, least: int = 12) -> bool:
    """True for what a machine made: long enough, letters and digits mixed, not words joined."""
    core = value.strip("\"'`.,;:()")
    if len(core) < least or (ordinary(core) and not UUID.fullmatch(core)):
        return False
    letters = sum(c.isalpha() for c in core)
    digits = sum(c.isdigit() for c in core)
    if not letters and not (digits and re.search(r"[-_.]", core)):
        return False
    if digits >= 2 and letters >= 2:
        # user_profile_2024, release-2024-01-02: words and a number are a name, not a secret.
        parts = [p for p in re.split(r"[-_.:/]", core) if p]
        wordlike = all(p.isdigit() or re.fullmatch(r"[A-Za-z]{1,14}\d{0,2}", p) for p in parts)
        return not (len(parts) > 1 and wordlike)
    # Letters, with a digit at most: mixed case in the middle of a long run.
    return (
        len(core) >= (max(least, 16) if digits else max(least, 20))
        and not re.search(r"[-_./]", core)
        and len(re.findall(r"[a-z][A-Z]", core)) >= (3 if digits else 4)
    )
