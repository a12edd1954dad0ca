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
from memcore.rules.sensitive.labels import any_of

Span = tuple[str, int, int]

_DIGITS = re.compile(r"(?<![\w.])\d(?:[ \-._]?\d){11,22}(?![\w])", re.ASCII)
_CARD_LABEL = re.compile(
    r"(?i:card|visa|mastercard|maestro|amex|unionpay|debit|credit|pan\b)|卡号|银行卡|信用卡|储蓄卡|银联|借记卡|卡",
    re.ASCII,
)
_NUMBER_LABEL = re.compile(
    r"(?i:order|track|invoice|ticket|timestamp|serial|imei|isbn|sku|batch|trace|transaction|parcel"
    r"|shipment|reference|ref|bill|commit|build|phone|tel|epoch|snowflake|tweet|message|request"
    r"|user|item|product|part|account id|uid|gtin|ean|upc|barcode|issn|doi|id)\b[^\n]{0,12}$"
    r"|(?:单号|运单|订单|流水|编号|批次|时间戳|序列号|条码|条形码|工单|票号|快递|群号|电话|手机|消息)[^\n]{0,8}$",
    re.ASCII,
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
        or (four in (5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763) and 16 <= n <= 19)
    )


def cards(text: str) -> Iterator[Span]:
    for m in _DIGITS.finditer(text):
        before = text[max(0, m.start() - 24) : m.start()]
        around = before + " " + text[m.end() : m.end() + 10]
        labelled = bool(_CARD_LABEL.search(around))
        if _NUMBER_LABEL.search(before) and not labelled:
            continue
        for number in _whole_and_head(m.group()):
            digits = re.sub(r"\D", "", number)
            # Some banks' cards carry no check digit; a long number called a card is one.
            unproven = labelled and len(digits) >= 16
            if _network(digits) and len(set(digits)) > 1 and (luhn(digits) or unproven):
                yield "card", m.start(), m.start() + len(number)
                break


def _whole_and_head(run: str) -> Iterator[str]:
    """A run of digit groups that may be a card, and its first groups without what follows, which
    may be the expiry: "4111111111111111 03"."""
    groups = re.split(r"\D", run)
    for count in range(len(groups), 0, -1):
        head = groups[:count]
        # A separator parts groups, not a decimal: 2.718281828459045 is no card.
        shaped = count == 1 or min(map(len, head[:-1])) >= 3
        whole = count in (1, len(groups)) or set(map(len, head)) == {4}
        if shaped and whole and 12 <= sum(map(len, head)) <= 19:
            yield run[: sum(map(len, head)) + count - 1]


_RESIDENT = re.compile(r"(?<![\w])\d(?:[ \-]?\d){16}[ \-]?[\dXx](?![\w])", re.ASCII)
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


_SSN = re.compile(
    r"(?<![\w-])(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])", re.ASCII
)
_SSN_LABEL = re.compile(
    r"(?i:\bssn\b|social|\bss#|taxpayer|\bitin\b)|社会安全|社保|社会保障", re.ASCII
)


def social_security(text: str) -> Iterator[Span]:
    for m in _SSN.finditer(text):
        near = text[max(0, m.start() - 40) : m.end() + 30]
        if _SSN_LABEL.search(near) or (
            m.group(1) == "-" and not _NUMBER_LABEL.search(text[max(0, m.start() - 24) : m.start()])
        ):
            yield "national_id", m.start(), m.end()


# Ids that carry no proof, or a weak one: only after their name.
_ID_LABEL = any_of(
    w.strip()
    for w in """ssn, ss#, social security, itin, ein, tax id, taxpayer id, tax identification, aadhaar, pan, national id,
    national identity, national insurance, nino, nin, ni number, drivers license, drivers licence, driver's license,
    driver's licence, driver license, driver licence, driving license, driving licence, cpf, dni, nie, codice fiscale, nric,
    hkid, identity card, id card, resident id, resident identity, medicare, sin, social insurance, my number, green card,
    alien number, alien registration, uscis, pesel, bsn, tfn, tax file, nhs number, voter id, emirates id, iqama, mykad,
    personnummer, curp, jmbg, oib, ahv, steuer-id, steueridentifikationsnummer, sozialversicherungsnummer,
    身份证, 身分证, 一代证, 二代证, 永居证, 永久居留证, 永久居留身份证, 居留证, 士兵证, 警官证, 证件, 驾驶证, 驾照, 社保, 社会保障,
    社会保险, 军官证, 通行证, 台胞证, 回乡证, 居住证, 医保, 居民证, 学籍""".replace(
        "\n", " "
    ).split(",")
)
_ID_VALUE = re.compile(
    r"""\.?(?:\ (?:id(?:entification)?|number|card|no\.?|\#)){0,3}(?:[卡件])?(?:的)?(?:号码?|编号|字号|统一编号|号)?
        [^\n\w。；;!?]{0,4}(?:\s?(?:is|was|no\.?|number|:|\#|是|为|就是|号|=)\s?){0,3}[\s'":]{0,3}
        (?:[\u4e00-\u9fff]字第)?(?P<value>[a-z]{0,6}[-\ ]?\d[\da-z]*(?:[-\ .]?\d[\da-z()]*){0,5})
    """,
    re.VERBOSE | re.ASCII,
)
_PAN = re.compile(r"[a-z]{5}\d{4}[a-z]")
_PASSPORT = re.compile(
    r"""(?:passports?|护照)(?P<gap>(?:[^\n.;。；!?]{0,24}?|\s?no\.\s?))
        (?<![a-z0-9])(?P<value>[a-z]{1,3}\d{6,9}|\d{8,9}|(?=(?:[a-z]*\d){5})[a-z][a-z\d]{8})(?![a-z0-9])
    """,
    re.VERBOSE,
)


# Shapes nothing else has: Italy's codice fiscale, Mexico's CURP, a Hong Kong id with check digit.
_SHAPED = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]|[A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z0-9]\d|[A-Z]{1,2}\d{6}\([0-9A]\))(?![A-Za-z0-9])"
)


def _named(label: re.Pattern[str], low: str) -> Iterator[tuple[str, int]]:
    """Each label that stands as a word of its own, and where it ends."""
    for m in label.finditer(low):
        word, end = m.group(), m.end()
        if word[0].isascii():
            before, after = low[m.start() - 1 : m.start()], low[end : end + 1]
            if (before.isascii() and before.isalnum()) or (after.isascii() and after.isalpha()):
                continue
        yield word, end


def labelled_ids(low: str) -> Iterator[Span]:
    for word, end in _named(_ID_LABEL, low):
        m = _ID_VALUE.match(low, end)
        if m is None or (word == "sin" and low[end] == "="):
            continue
        value = m["value"].strip()
        if word == "pan" and not _PAN.fullmatch(value):
            continue
        digits = sum(c.isdigit() for c in value)
        follows = low[m.end("value") : m.end("value") + 3].strip()
        letters = sum(c.isalpha() for c in value)
        enough = digits >= 6 or (digits >= 4 and letters >= 4 and digits + letters >= 9)
        if enough and len(value) <= 24 and not re.match(r"[位个字年]", follows):
            yield "national_id", m.start("value"), m.start("value") + len(value)
    if "passport" not in low and "护照" not in low:
        return
    for m in _PASSPORT.finditer(low):
        if not re.search(
            r"(?i)expir|issued|renew|valid|photo|office|有效|到期|办理|过期", m["gap"]
        ):
            yield "passport", m.start("value"), m.end("value")


_BANK_LABEL = any_of(
    w.strip()
    for w in """bank, checking, savings, routing, wire, aba, sort code, iban, swift, deposit, account number, account no,
    account #, acct number, acct no, acct, a/c, 银行账号, 银行帐号, 银行账户, 银行帐户, 银行账, 账号, 帐号, 账户, 帐户, 银行卡号, 银行卡,
    卡号""".replace("\n", " ").split(",")
)
_BANK_VALUE = re.compile(
    r"""\.?(?:[^\n.;]{0,30}?(?:account|acct|a/c|number|no\.?|\#))?\s?(?:is|was|number|no\.?|:|\#|是|为|=){0,2}[\s:\#'"]{0,3}
        (?P<value>\d(?:[ \-]?\d){7,21})(?!\w)
    """,
    re.VERBOSE | re.ASCII,
)
# Cards that pay for nothing: of members, of doors, of a canteen.
_OTHER_CARDS = "员通园禁交书身物分机工房生油诊疗品"


def bank_accounts(low: str) -> Iterator[Span]:
    for word, end in _named(_BANK_LABEL, low):
        if word == "卡号" and low[end - 3 : end - 2] in _OTHER_CARDS and end > 2:
            continue
        m = _BANK_VALUE.match(low, end)
        if m and not re.match(r"[位个字元]", low[m.end("value") : m.end("value") + 3].strip()):
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
    for m in _SHAPED.finditer(text):
        yield "national_id", m.start(), m.end()
    low = lower(text)
    yield from labelled_ids(low)
    if _EIGHT_DIGITS.search(text):
        yield from bank_accounts(low)


_SOME_DIGITS = re.compile(r"\d[\w \-.]{2,}\d", re.ASCII)
_MANY_DIGITS = re.compile(r"\d(?:[ \-._]?\d){11}")
_EIGHT_DIGITS = re.compile(r"\d(?:[ \-]?\d){7}")
