# ruff: noqa: E501
"""Wallet recovery phrases: twelve or more words of a BIP-39 word list in a row.

Pure but for reading the word lists out of the `mnemonic` package once. Prose never holds twelve
list words in a row (the lists leave out "the", "is", "of"), so no label is needed; where one
stands, shorter and half-remembered phrases count too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from mnemonic import Mnemonic

Span = tuple[str, int, int]

_WORD = re.compile(r"[A-Za-z]+")
_BETWEEN = re.compile(r"[\s,;\d.)(\-|、/'\"]{1,8}")
_LABEL = re.compile(
    r"(?i:(?:seed|recovery|mnemonic|backup|secret recovery|wallet)[ -]?(?:phrase|words?|seed)|mnemonic|seed ?phrase)"
    r"|助记词|助忆词|恢复(?:词|短语)|种子(?:词|短语)|注记词"
)
_HANZI_RUN = re.compile(r"[\u4e00-\u9fff](?:[ ,、]{1,2}[\u4e00-\u9fff]){11,23}(?![\u4e00-\u9fff])")


@lru_cache(maxsize=1)
def _english() -> frozenset[str]:
    return frozenset(Mnemonic("english").wordlist)


def _row_of(words: frozenset[str], text: str, least: int) -> bool:
    """True when `least` list words stand in a row; numbers and marks between them do not count.
    One pass over the words, because almost every text fails it."""
    row = 0
    for piece in text.lower().split():
        word = piece.strip(".,;:|/-()'\"0123456789、")
        if word in words:
            row += 1
            if row >= least:
                return True
        elif "," in word or word.count(".") > 1:
            row += sum(p.strip(" .0123456789") in words for p in word.split(","))
            if row >= least:
                return True
        elif word:
            row = 0
    return False


def spans(text: str) -> Iterator[Span]:
    """Recovery phrases in a folded text."""
    label = _LABEL.search(text)
    if label:
        for m in _HANZI_RUN.finditer(text, label.end()):
            yield "seed_phrase", m.start(), m.end()
    words = _english()
    if label is None and not _row_of(words, text, 12):
        return
    run: list[re.Match[str]] = []
    hits = 0

    def done() -> Iterator[Span]:
        near = label is not None and any(
            _LABEL.search(text, max(0, run[0].start() - 80), run[0].start() + 1) for _ in (0,)
        )
        # With a label, words outside the list count as slips, up to a quarter of the phrase.
        if len(run) >= (8 if near else 12) and hits >= len(run) * (0.75 if near else 1):
            yield "seed_phrase", run[0].start(), run[-1].end()

    for m in _WORD.finditer(text):
        word = m.group().lower()
        member = word in words
        joined = bool(run) and _BETWEEN.fullmatch(text, run[-1].end(), m.start()) is not None
        if run and (not joined or (not member and label is None)):
            yield from done()
            run, hits = [], 0
        if member or (run and label is not None and 3 <= len(word) <= 8):
            run.append(m)
            hits += member
        elif run:
            yield from done()
            run, hits = [], 0
    if run:
        yield from done()
