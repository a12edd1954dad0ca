# ruff: noqa: E501
"""Numbers that prove themselves: payment cards, Chinese resident ids, IBANs, and the like.

Pure: no I/O. A check digit decides, together with the issuer's ranges; a label is asked for only
where a number carries no proof. Sources: ISO/IEC 7812 (cards), GB 11643 with ISO 7064 MOD 11-2
(resident ids), ISO 13616 (IBAN).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memcore.rules.sensitive.folding import lower

Span = tuple[str, int, int]

_DIGITS = re.compile(r"(?<![\w.])\d(?:[ \-._]?\d){11,22}(?![\w])")
_CARD_LABEL = re.compile(
    r"(?i:card|visa|mastercard|amex|unionpay|debit|credit|pan\b)|卡号|银行卡|信用卡|储蓄卡|银联|借记卡|卡"
)
_NUMBER_LABEL = re.compile(
    r"(?i:order|track|invoice|ticket|timestamp|serial|imei|isbn|sku|batch|trace|transaction|parcel"
    r"|shipment|reference|ref|bill|commit|build|phone|tel|epoch|snowflake|tweet|message|request"
    r"|user|item|product|part|account id|uid|gtin|ean|upc|barcode|issn|doi|id)\b[^\n]{0,12}$"
    r"|(?:单号|运单|订单|流水|编号|批次|时间戳|序列号|条码|条形码|工单|票号|快递|群号|电话|手机|消息)[^\n]{0,8}$"
)


def luhn(digits: str) -> bool:
    """ISO/IEC 7812-1 annex B."""
    total = 0
    for i, c in enumerate(reversed(digits)):
        d = ord(c) - 48
        if i % 2:
            d = d * 2 - 9 if d > 4 else d * 2
        total += d
    return total % 10 == 0


def _network(d: str) -> bool:
    """True when first digits and length are those of a payment network."""
    n, two, three, four = len(d), int(d[:2]), int(d[:3]), int(d[:4])
    return (
        (d[0] == "4" and n in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and n == 16)
        or (two in (34, 37) and n == 15)
        or (two == 62 and 16 <= n <= 19)
        or ((four == 6011 or 644 <= three <= 649 or two == 65) and 16 <= n <= 19)
        or (3528 <= four <= 3589 and 16 <= n <= 19)
        or ((300 <= three <= 305 or two in (36, 38, 39)) and n == 14)
        or (2200 <= four <= 2204 and n == 16)
        or (two in (60, 81, 82) and n == 16)
    )


def cards(text: str) -> Iterator[Span]:
    for m in _DIGITS.finditer(text):
        digits = re.sub(r"\D", "", m.group())
        groups = re.split(r"\D", m.group())
        # A separator parts groups, not a decimal: 2.718281828459045 is no card.
        if not 12 <= len(digits) <= 19 or (len(groups) > 1 and min(map(len, groups[:-1])) < 3):
            continue
        before = text[max(0, m.start() - 24) : m.start()]
        around = before + " " + text[m.end() : m.end() + 10]
        labelled = bool(_CARD_LABEL.search(around))
        if _NUMBER_LABEL.search(before) and not labelled:
            continue
        if len(set(digits)) == 1:
            continue
        if (_network(digits) and luhn(digits)) or (
            # Some banks' cards carry no check digit; a long number called a card is one.
            labelled and len(digits) >= 16 and _network(digits)
        ):
            yield "card", m.start(), m.end()


_RESIDENT = re.compile(r"(?<![\w])\d(?:[ \-]?\d){16}[ \-]?[\dXx](?![\w])")
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def resident_id(number: str) -> bool:
    """GB 11643: a possible birth date and ISO 7064 MOD 11-2."""
    if not re.fullmatch(r"[1-9]\d{16}[\dX]", number):
        return False
    year, month, day = int(number[6:10]), int(number[10:12]), int(number[12:14])
    if not (1900 <= year <= 2100 and 1 <= month <= 12 and 1 <= day <= 31):
        return False
    rest = sum(int(c) * w for c, w in zip(number, _WEIGHTS, strict=False)) % 11
    return "10X98765432"[rest] == number[17]


def resident_ids(text: str) -> Iterator[Span]:
    for m in _RESIDENT.finditer(text):
        if resident_id(re.sub(r"[ \-]", "", m.group()).upper()):
            yield "national_id", m.start(), m.end()


_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ \-]?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22,
    "BR": 29, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20,
    "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18,
    "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IS": 26, "IT": 27, "JO": 30,
    "KW": 30, "KZ": 20, "LB": 28, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MD": 24,
    "ME": 22, "MK": 19, "MT": 31, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PT": 25, "QA": 29,
    "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TN": 24, "TR": 26,
    "UA": 29, "VG": 24, "XK": 20,
}  # fmt: skip


def iban(number: str) -> bool:
    """ISO 13616: the country's length and MOD 97-10."""
    if _IBAN_LENGTHS.get(number[:2]) != len(number):
        return False
    return int("".join(str(int(c, 36)) for c in number[4:] + number[:4])) % 97 == 1


def ibans(text: str) -> Iterator[Span]:
    for m in _IBAN.finditer(text):
        # A word in capitals may follow: try the country's length first.
        compact = re.sub(r"[ \-]", "", m.group())
        want = _IBAN_LENGTHS.get(compact[:2], 0)
        if want and len(compact) >= want and iban(compact[:want]):
            end, seen = m.start(), 0
            while seen < want:
                seen += text[end] not in " -"
                end += 1
            yield "iban", m.start(), end


_SSN = re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])")
_SSN_LABEL = re.compile(r"(?i:\bssn\b|social|\bss#|taxpayer|\bitin\b)|社会安全|社保|社会保障")


def social_security(text: str) -> Iterator[Span]:
    for m in _SSN.finditer(text):
        near = text[max(0, m.start() - 40) : m.end() + 30]
        if _SSN_LABEL.search(near) or (
            m.group(1) == "-" and not _NUMBER_LABEL.search(text[max(0, m.start() - 24) : m.start()])
        ):
            yield "national_id", m.start(), m.end()


# Ids that carry no proof, or a weak one: only after their name.
_LABELLED = re.compile(
    r"""(?:(?:\bssn\b|social\ security(?:\ (?:number|no\.?|\#))?|\bss\#|\bitin\b|\btax(?:payer)?\ id(?:entification)?(?:\ number)?|\bein\b|aadhaar|\bpan\ (?:card|number)
          |national\ (?:id|identity|insurance)(?:\ (?:number|no\.?|card))?|\bnino?\b|\bni\ number|driver'?s?'?\ licen[cs]e(?:\ (?:number|no\.?))?|\bcpf\b|\bdni\b|\bnie\b|codice\ fiscale|\bnric\b|\bhkid\b
          |identity\ card(?:\ (?:number|no\.?))?|\bid\ card(?:\ (?:number|no\.?))?|resident\ id(?:entity)?(?:\ (?:number|card|no\.?))?|medicare(?:\ number)?|\bsin\b|social\ insurance(?:\ number)?|my\ number)
        |(?:身份证|身分证|证件号?|驾驶证|驾照|社保卡?|社会保障|军官证|港澳通行证|通行证|台胞证|回乡证|居住证|医保卡?|居民证|学籍)(?:件)?(?:的)?(?:号码?|编号|号)?)
        (?P<link>[^\n\w。；;!?]{0,4}(?:\s?(?:is|was|no\.?|number|:|\#|是|为|就是|号|:|=)\s?){0,3}[\s'":]{0,3})
        (?P<value>[a-z]{0,3}[-\ ]?\d[\da-z]*(?:[-\ .]?\d[\da-z()]*){0,5})
    """,
    re.VERBOSE,
)
_PASSPORT = re.compile(
    r"""(?:passports?|护照)(?P<gap>(?:[^\n.;。；!?]{0,24}?|\s?no\.\s?))
        (?<![a-z0-9])(?P<value>[a-z]{1,3}\d{6,9}|\d{8,9}|[a-z]\d{2}[a-z]{2}\d{4,5})(?![a-z0-9])
    """,
    re.VERBOSE,
)


def labelled_ids(text: str) -> Iterator[Span]:
    for m in _LABELLED.finditer(text):
        value = m["value"].strip()
        digits = sum(c.isdigit() for c in value)
        follows = text[m.end("value") : m.end("value") + 3].strip()
        if digits >= 6 and len(value) <= 24 and not re.match(r"[位个字年]", follows):
            yield "national_id", m.start("value"), m.start("value") + len(value)
    for m in _PASSPORT.finditer(text):
        if not re.search(
            r"(?i)expir|issued|renew|valid|photo|office|有效|到期|办理|过期", m["gap"]
        ):
            yield "passport", m.start("value"), m.end("value")


_BANK = re.compile(
    r"""(?:(?:bank|checking|savings|routing|wire|aba|sort\ code|iban|swift|deposit)[^\n.;]{0,30}?(?:account|acct|a/c|number|no\.?|\#)?
         |\b(?:account|acct|a/c)\ (?:number|no\.?|\#)
         |银行[账帐]?[号户]|[账帐]号|收款[账帐][号户]|开户行?[^\n。；]{0,12}?[账帐][号户]|对公[账帐][号户]|银行卡号?|卡号)
        \s?(?:is|was|number|no\.?|:|\#|是|为|=){0,2}[\s:#'"]{0,3}
        (?P<value>\d(?:[ \-]?\d){7,21})(?![\w])
    """,
    re.VERBOSE,
)


def bank_accounts(text: str) -> Iterator[Span]:
    for m in _BANK.finditer(text):
        follows = text[m.end("value") : m.end("value") + 3].strip()
        if not re.match(r"[位个字元]", follows):
            yield "bank_account", m.start("value"), m.end("value")


def spans(text: str) -> Iterator[Span]:
    """Every number that is one of these kinds, in a folded text."""
    if not _SOME_DIGITS.search(text):
        return
    if _MANY_DIGITS.search(text):
        yield from resident_ids(text)
        yield from cards(text)
    yield from ibans(text)
    yield from social_security(text)
    low = lower(text)
    if any(word in low for word in _ID_WORDS):
        yield from labelled_ids(low)
    if any(word in low for word in _BANK_WORDS):
        yield from bank_accounts(low)


_SOME_DIGITS = re.compile(r"\d[\d\w \-.]{3,}\d")
_MANY_DIGITS = re.compile(r"\d(?:[ \-._]?\d){11}")
_ID_WORDS = """ssn|social|ss#|itin|tax|ein|aadhaar|pan |national|nin|ni n|licen|cpf|dni|nie|codice|nric|hkid|identity
    |id card|resident|medicare|sin|insurance|my number|passport|证|驾照|社保|社会保障|医保|学籍|护照""".replace(
    "\n    ", ""
).split("|")
_BANK_WORDS = "bank|checking|savings|routing|wire|aba|sort code|iban|swift|deposit|account|acct|a/c|账|帐|银行|开户|卡号".split(
    "|"
)
