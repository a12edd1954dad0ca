"""JSON as models write it, read without inventing anything. Pure: no I/O.

Accepts what has only one reading: trailing and missing commas, comments, single or typographic
quotes, Python's literals, bare keys, raw line breaks in strings, invalid escapes, full-width
brackets, colons and commas, a closing bracket of the wrong kind at the very end. It never
closes a string, object or list that the text does not close: those come back as `Incomplete`, so
that half a sentence cannot become a value. Quotes inside a string that were not
escaped are kept where they come in pairs; other ones make the object `Guessed`.

Repeated keys are kept: lists are joined, and an object that starts over becomes several.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

DEEPEST = 40
_SPACE = re.compile(r"(?:[\s\u200b-\u200f\u2060\ufeff]+|//[^\n]*|/\*.*?\*/|#[^\n]*)*", re.DOTALL)
_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff]")
_WORD = re.compile(r"[A-Za-z_+\-.0-9][\w+\-.]*%?")
_BARE_KEY = re.compile(r"[\w\-]+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")
_UNICODE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_NEXT_KEY = re.compile(r"\s*[\"'“][^\"'“”\n]{1,40}[\"'”]\s*[:：]")
_CONSTANTS = {
    "true": True, "True": True, "false": False, "False": False, "null": None, "None": None,
    "undefined": None, "NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf"),
}  # fmt: skip
_FULL_WIDTH = str.maketrans("｛｝［］", "{}[]")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CLOSERS = {'"': '"', "'": "'", "“": '”"', "‘": "’'", "”": '”"', "`": "`"}


class Incomplete(dict[str, Any]):
    """An object the text does not close: its complete keys only. Never an item."""


class Guessed(dict[str, Any]):
    """An object in which a quote that was not escaped had to be guessed at."""


class Several(list[Any]):
    """Objects that were written as one, with the same keys over again."""


@dataclass(frozen=True, slots=True)
class Read:
    value: Any
    end: int
    """Offset just past the value."""
    cut: bool = False
    """The text ended inside the value."""
    broken: bool = False
    """The value stops making sense at `end`."""


def strict(text: str) -> Any:
    """`text` by the standard, repeated keys kept. Raises ValueError (RecursionError too deep)."""
    return json.loads(text, object_pairs_hook=merge)


def strict_at(text: str, start: int) -> tuple[Any, int]:
    """The standard value at `start` and the offset past it; raises like `strict`."""
    value, end = _DECODER.raw_decode(text, start)
    return value, end


def lenient_at(text: str, start: int) -> Read:
    """The value at `start` as far as it can be read. Never raises."""
    if "｛" in text and "{" not in text:
        text = text.translate(_FULL_WIDTH)
    reader = _Reader(text, start)
    value = reader.value(0)
    return Read(value, reader.at, reader.stopped() == "cut", reader.stopped() == "broken")


def merge(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Several:
    """An object from its pairs; see the module for repeated keys."""
    out: dict[str, Any] = {}
    several: list[dict[str, Any]] = []
    first = pairs[0][0] if pairs else None
    for key, value in pairs:
        key = _INVISIBLE.sub("", key)
        if key in out and isinstance(out[key], list) and isinstance(value, list):
            out[key] = out[key] + value
        elif key in out and key == first:
            several.append(out)
            out = {key: value}
        else:
            out[key] = value
    return Several([*several, out]) if several else out


_DECODER = json.JSONDecoder(object_pairs_hook=merge)


class _Reader:
    """One pass, no backtracking. Once `stopped`, every level returns what it has."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self._why: str = ""
        self.guessed = False

    def value(self, depth: int) -> Any:
        char = self.peek()
        if depth > DEEPEST:
            return self.stop("broken")
        if char == "{":
            return self.object(depth)
        if char == "[":
            return self.list(depth)
        if char in _CLOSERS:
            return self.string(key=False)
        return self.word()

    def object(self, depth: int) -> Any:
        self.at += 1
        pairs: list[tuple[str, Any]] = []
        outer, self.guessed = self.guessed, False
        while True:
            char = self.peek()
            if self.stopped():
                break
            if char == "}":
                self.at += 1
                break
            if char in ",，":
                self.at += 1
                continue
            if char == "]" and self.wrong_end():
                break
            key = self.string(key=True) if char in _CLOSERS else self.bare_key()
            if self.stopped():
                break
            if self.peek() not in ":：=":
                self.stop("broken")
                break
            self.at += 2 if self.text.startswith("=>", self.at) else 1
            value = self.value(depth + 1)
            # A value that was stopped is no value; a list in it still has its complete elements.
            if not self.stopped() or isinstance(value, (list, Incomplete)):
                pairs.append((key, value))
            if self.stopped():
                break
        made = merge(pairs)
        guessed, self.guessed = self.guessed, outer
        if self.stopped():
            return Incomplete(made) if isinstance(made, dict) else made
        return Guessed(made) if guessed and isinstance(made, dict) else made

    def list(self, depth: int) -> list[Any]:
        self.at += 1
        out: list[Any] = []
        while True:
            char = self.peek()
            if self.stopped():
                return out
            if char == "]":
                self.at += 1
                return out
            if char in ",，":
                self.at += 1
                continue
            if self.text.startswith(("...", "…"), self.at):
                self.at += 3 if char == "." else 1
                continue
            if char == "}" and self.wrong_end():
                return out
            value = self.value(depth + 1)
            if not self.stopped() or isinstance(value, (list, Incomplete)):
                out.append(value)
            if self.stopped() == "broken":
                # Where the rest makes no sense, a guess before it was a bad one.
                out = [Incomplete(v) if isinstance(v, Guessed) else v for v in out]

    def wrong_end(self) -> bool:
        """True when only closing brackets are left: one of the wrong kind then means the same. The
        bracket is not consumed: the level above meets it next."""
        rest = re.sub(r"[\s`]", "", self.text[self.at : self.at + 200])
        if rest and not rest.strip("]}"):
            return True
        self.stop("broken")
        return True

    def string(self, *, key: bool) -> str:
        text, opener = self.text, self.text[self.at]
        closers = _CLOSERS[opener]
        at = self.at + 1
        out: list[str] = []
        nested = inner = 0
        while True:
            if at >= len(text):
                self.at = at
                self.stop("cut")
                return ""
            char = text[at]
            if char == "\\":
                piece, at = self.escape(at)
                out.append(piece)
                continue
            if char in closers and not nested:
                if self.closes(at + 1, key):
                    self.at = at + 1
                    said = "".join(out)
                    # Quotes in pairs around words are plain; anything else may have ended early.
                    self.guessed |= bool(inner % 2 or (inner and set("{}[]") & set(said)))
                    return said
                inner += 1
            elif opener == "“" and char == "“":
                nested += 1
            elif opener == "“" and char == "”":
                nested -= 1
            out.append(char)
            at += 1

    def escape(self, at: int) -> tuple[str, int]:
        """The character an escape at `at` stands for, and the offset past it."""
        text = self.text
        if run := _UNICODE.match(text, at):
            return json.loads(f'"{run.group()}"'), run.end()
        char = text[at + 1 : at + 2]
        if char in _SIMPLE:
            return _SIMPLE[char], at + 2
        if char and char in "\"'\\/“”\n":
            return char, at + 2
        return "\\", at + 1

    def closes(self, after: int, key: bool) -> bool:
        """Is the quote before `after` the end of the string, judged by what comes next?"""
        gap = _SPACE.match(self.text, after)
        at = gap.end() if gap else after
        char = self.text[at : at + 1]
        if key:
            return char in ":：="
        if char in "}]" or not char:
            return True
        if char in ",，":
            gap = _SPACE.match(self.text, at + 1)
            at = gap.end() if gap else at + 1
            rest = self.text[at : at + 1]
            return not rest or rest in "\"'“‘{[}]" or bool(_WORD.match(self.text, at))
        return bool(_NEXT_KEY.match(self.text, after))

    def bare_key(self) -> str:
        if word := _BARE_KEY.match(self.text, self.at):
            self.at = word.end()
            return word.group()
        self.stop("broken" if self.at < len(self.text) else "cut")
        return ""

    def word(self) -> Any:
        word = _WORD.match(self.text, self.at)
        if not word:
            return self.stop("broken" if self.at < len(self.text) else "cut")
        self.at = word.end()
        if self.at >= len(self.text):
            return self.stop("cut")
        said = word.group()
        if said in _CONSTANTS:
            return _CONSTANTS[said]
        # A number beyond a float's digits is no score and no date: it stays text.
        return float(said) if _NUMBER.match(said) and len(said) < 40 else said

    def peek(self) -> str:
        gap = _SPACE.match(self.text, self.at)
        self.at = gap.end() if gap else self.at
        if self.at >= len(self.text):
            self.stop("cut")
            return "\0"
        return self.text[self.at]

    def stopped(self) -> str:
        """cut, broken, or empty while all is well."""
        return self._why

    def stop(self, why: str) -> None:
        self._why = self._why or why
