"""How many tokens a text costs, estimated without a tokenizer. Pure: no I/O.

The one estimator of the project: windows, summaries and prompt budgets all count with it. The
weights are fitted to o200k, the vocabulary of OpenAI's models since GPT-4o; docs/extraction.md has
the errors. The older cl100k cuts Chinese finer (about 1.2 tokens a character instead of 0.8), so
there a Chinese text costs half as much again; English and code cost the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

_IDEOGRAPHS = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_LATIN = "A-Za-z\u00c0-\u024f"
_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
_WORD = re.compile("[A-Z]?[a-z\u00c0-\u024f]+|[A-Z]+")
"""A Latin word; `camelCase` and `HTTPServer` are several."""
_OTHER_WORD = re.compile(rf"[^\W\d_{_LATIN}{_IDEOGRAPHS}]+")
_DIGITS = re.compile(r"\d{1,3}")
_MARKS = re.compile(r"[!-/:-@\[-`{-~]+")
_WIDE_MARK = re.compile("[\u2010-\u203a\u3000-\u303f\uff00-\uffef]|[\U0001f000-\U0001ffff]")
_BREAK = re.compile(r"\n+ *| {2,}")
_SPACED_DIGIT = re.compile(r"(?<= )\d")
_GLUED = re.compile(r"[!-/:-@\[-`{-~](?=[A-Za-z])")

PER_MESSAGE = 4
"""What a chat format adds around each message: role and separators."""


def estimate_tokens(text: str) -> int:
    """Estimated tokens of `text`; 0 only for the empty text. Never falls when text is appended to
    at a word's end."""
    if not text:
        return 0
    words = _WORD.findall(text)
    marks = _MARKS.findall(text)
    glued = len(_GLUED.findall(text))
    total = (
        0.82 * len(_IDEOGRAPH.findall(text))
        # A common word is one token with the space before it; a long one falls apart.
        + len(words)
        + 0.3 * sum(math.ceil(max(0, len(w) - 8) / 4) for w in words)
        + sum(math.ceil(len(w) / 4) for w in _OTHER_WORD.findall(text))
        # Three digits are one token, the space before them another.
        + 1.1 * len(_DIGITS.findall(text))
        + len(_SPACED_DIGIT.findall(text))
        + 0.65 * len(_WIDE_MARK.findall(text))
        # A mark often merges with the word after it (`.name`), marks in a row with each other.
        + 0.95 * (len(marks) - glued)
        + 0.3 * glued
        + 0.2 * sum(len(m) - 1 for m in marks)
        + 1.2 * len(_BREAK.findall(text))
    )
    # Rounded up, so that parts never add up to less than the whole.
    return max(1, math.ceil(total - 1e-9))


def estimate_messages(contents: Iterable[str]) -> int:
    """Estimated tokens of chat messages with these contents."""
    return sum(estimate_tokens(c) + PER_MESSAGE for c in contents)
