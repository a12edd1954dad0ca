"""The one text cleaner and the one normalisation, used before anything is judged, hashed,
embedded or stored. Pure: no I/O. Lengths are code points, so a Chinese character counts one.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

# Direction overrides and isolates can make a text read otherwise than it is stored; zero-width
# characters hide content from a reader. ZWJ/ZWNJ (200c, 200d) stay: emoji and Persian need them.
_INVISIBLE = re.compile(
    "[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
_EDGE = "\u200b\u200c\u200d\u2060\ufeff"
_END = "。．.!！;；,，、 "


def clean(text: str) -> str:
    """`text` as it may be stored: NFC, no NUL, control, invisible or direction-override
    characters, lone surrogates shown as U+FFFD, outer white space trimmed. Inner line breaks and
    tabs stay."""
    text = _SURROGATE.sub("\ufffd", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _INVISIBLE.sub("", _CONTROL.sub("", text))
    text = unicodedata.normalize("NFC", text).strip()
    # A joiner at an edge joins nothing; left in, it would pad the length.
    return text.strip(_EDGE).strip()


def clean_tree(value: object) -> object:
    """`value` (JSON-like) with every string in it cleaned, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(k)): clean_tree(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_tree(v) for v in value]
    return value


def normalise(text: str) -> str:
    """The form two texts share when they are the same statement: NFKC, case folded, white space
    collapsed (and dropped beside a CJK character), final punctuation dropped."""
    text = unicodedata.normalize("NFKC", clean(text)).casefold()
    text = _SPACE.sub(" ", text.strip())
    text = re.sub(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])", "", text)
    return text.rstrip(_END) or text


def content_hash(text: str) -> str:
    """SHA-256 (hex) of the normalised text; equal for exact duplicates."""
    return hashlib.sha256(normalise(text).encode()).hexdigest()


def shorten(text: str, limit: int = 80) -> str:
    """`text` on one line, at most `limit` characters, an ellipsis where it was cut."""
    text = _SPACE.sub(" ", text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
