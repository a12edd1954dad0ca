"""A view of a text in which tricks of writing are undone, with the way back to the original.

Pure: no I/O. Full-width and styled letters, look-alike letters of other scripts, invisible
characters and letters spaced out one by one hide a secret from a pattern but not from a reader.
Patterns therefore run over a folded view; every folded character remembers the code point it came
from, so that a finding names the span in the text that is stored.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

# Letters that look like a Latin one. Only the pairs a reader would confuse.
_LOOKALIKES = str.maketrans(
    "абвгдеһіјӏкмпорԛѕтуѵԝхьАВСЕНІЈКМОРЅТУХԚԜѴсԁ"
    "αεικνορτυχγωηΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"
    "ıɑɡᴀʙᴄᴅᴇғɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "a6brgehijlkmnopqstyvwxbABCEHIJKMOPSTYXQWVcd"
    "aeikvoptuxywnABEZHIKMNOPTYX"
    "iagabcdefghijklmnoprstuvwyz",
)
# The characters of our own Chinese keywords, traditional → simplified.
_TRADITIONAL = str.maketrans(
    "碼證驗號護銀鑰詞憑帳賬記復設為這錢開鎖機門禁卡儲簽動態啟權訪問網絡線數據庫戶錄導駕駛執照"
    "現換請個稅務時轉滙匯識別單訂儲蓄專臺灣簡訊",
    "码证验号护银钥词凭账账记复设为这钱开锁机门禁卡储签动态启权访问网络线数据库户录导驾驶执照"
    "现换请个税务时转汇汇识别单订储蓄专台湾简讯",
)
_PUNCTUATION = str.maketrans(
    "“”„«»「」『』《》‘’‚´`‐‑‒–—−～∶＂＇。", '"""""""""""\'\'\'\'\'------~:"\'。'
)


@dataclass(frozen=True, slots=True)
class Folded:
    """`text` to match on; `origin[i]` is the source index of its i-th character, None: the same."""

    text: str
    origin: tuple[int, ...] | None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Source offsets of the folded span [start, end)."""
        if self.origin is None:
            return start, end
        return self.origin[start], self.origin[end - 1] + 1


@lru_cache(maxsize=65536)
def _fold(char: str) -> str:
    if char in "\n\t\r":
        return "\n" if char != "\t" else " "
    if char in "，；！？":
        return char  # Chinese clauses end here; their ASCII forms are parts of passwords
    out = []
    for c in unicodedata.normalize("NFKC", char):
        category = unicodedata.category(c)
        if category in ("Cf", "Mn", "Me", "Cc") or c in "\u115f\u1160\u3164\uffa0\u2800":
            continue
        if category == "Zs":
            out.append(" ")
            continue
        if category == "Nd":
            out.append(str(unicodedata.digit(c)))
            continue
        base = unicodedata.normalize("NFD", c)[0]
        c = base if base.isascii() else c
        out.append(c.translate(_LOOKALIKES).translate(_TRADITIONAL).translate(_PUNCTUATION))
    return "".join(out)


class _Table(dict[int, str]):
    """For `str.translate`: every character and what it folds to, learned on the way."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        folded = char if " " <= char <= "~" else _fold(char)
        if len(self) < 65536:
            self[code] = folded
        return folded


_TABLE = _Table()


def fold(text: str) -> Folded:
    """`text` with styles, look-alikes and invisible characters undone. Linear."""
    if text.isascii() and "\r" not in text and "\t" not in text:
        return Folded(text, None)
    if all(len(_fold(c)) == 1 for c in set(text)):
        return Folded(text.translate(_TABLE), None)
    chars = [c if " " <= c <= "~" else _fold(c) for c in text]
    folded = "".join(chars)
    return Folded(folded, tuple(i for i, c in enumerate(chars) for _ in c))


def lower(text: str) -> str:
    """Lower case of the same length, so that offsets hold."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def fold_keyword(word: str) -> str:
    """A keyword as it looks in a folded text (for keywords in other scripts)."""
    return fold(word).text


# Four or more single characters with a space or mark between each; spaces inside Chinese.
_SPACED = re.compile(
    r"(?<![A-Za-z0-9])[!-~](?:[ ][!-~]){3,}(?![^\s])"
    r"|(?<![A-Za-z0-9])[A-Za-z](?:[-._*|/][A-Za-z]){3,}(?![A-Za-z0-9])"
    r"|(?<=[\u3400-\u9fff])[ .。·•\-_*|/]{1,2}(?=[\u3400-\u9fff])"
)


def close_up(folded: Folded, neighbours: frozenset[str]) -> Folded | None:
    """`folded` with spaced-out words closed up ("p a s s" → "pass"); None where there are none.
    Chinese is closed up between `neighbours` only, pairs of characters that belong together."""
    source = folded.text
    drop: set[int] = set()
    for m in _SPACED.finditer(source):
        first = source[m.start()]
        if first in " .。·•-_*|/":
            if source[m.start() - 1] + source[m.end()] not in neighbours:
                continue
            drop.update(range(m.start(), m.end()))
        else:
            drop.update(range(m.start() + 1, m.end(), 2))
    if not drop:
        return None
    kept = [i for i in range(len(source)) if i not in drop]
    origin = folded.origin
    return Folded(
        "".join(source[i] for i in kept),
        tuple(kept if origin is None else (origin[i] for i in kept)),
    )
