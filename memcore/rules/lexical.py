"""The keyword channel: what a text is indexed by, what a query asks for, how well they match.

Pure: no I/O. One tokeniser serves both sides, so that what is stored can be found:

- NFKC folds full-width forms; Latin words are lower-cased, stop words dropped, endings stripped
  by a light stemmer; identifiers (`XJ-77`, `max_recall`, `fooBar`) are kept whole beside their
  parts.
- Chinese, Japanese and Korean text has no spaces, so it is indexed by character pairs, and by
  single characters for a query of one character.

A match is the share of the query that a text covers: the idf of the terms found over the idf of
all terms asked for, found anywhere or not. It is absolute: 1 says that every word of the query is
there, and a poor best match stays poor. Counting repeats and dividing by length (BM25) was measured
no better on short statements (docs/search.md), and a set of terms is all the database has to keep.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from memcore.text import clean

LONGEST_TERM = 64
MOST_INDEX_TERMS = 4_000
MOST_QUERY_TERMS = 60
"""A match is one bit per term of a 64-bit number in SQL, so there cannot be more than 62."""

_CJK = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK += "\U00020000-\U000323af"
_RUN = re.compile(f"[{_CJK}]+|[^\\W_{_CJK}](?:[^\\W{_CJK}]|[-.@+#/'’](?=[^\\W{_CJK}]))*[+#]*")
_IS_CJK = re.compile(f"[{_CJK}]")
_PART = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

# Words that carry no topic. Negations are in it: they never help to find a statement.
_STOP = frozenset(
    """a about above after again all also am an and any are aren't as at be because been before
    being below between both but by can can't cannot could couldn't did didn't do does doesn't
    doing don't down during each few for from further had hadn't has hasn't have haven't having he
    her here hers herself him himself his how i i'd i'll i'm i've if in into is isn't it it's its
    itself just let's me more most my myself no nor not now of off on once only or other our ours
    ourselves out over own same she should shouldn't so some such than that that's the their theirs
    them themselves then there there's these they they're this those through to too under until up
    us very was wasn't we we'd we'll we're we've were weren't what what's when where which while
    who whom why will with won't would wouldn't you you'd you'll you're you've your yours yourself
    yourselves""".split()
)
# Characters that are grammar rather than topic. A pair with one of them is indexed, but asked for
# only when the query has nothing else.
GRAMMAR = frozenset(
    "的了吗呢吧啊呀嘛是我你您他她它们这那哪谁么在和与及或就都也还又很太着过把被让给对从向到之其"
)


def runs(text: str) -> list[str]:
    """The stretches of `text` (NFKC) that can be found by: Latin words as written, and Chinese,
    Japanese and Korean runs whole."""
    return _RUN.findall(text)


def is_cjk(run: str) -> bool:
    """True: the run begins with a Chinese, Japanese or Korean character."""
    return _IS_CJK.match(run) is not None


def index_terms(text: str) -> tuple[str, ...]:
    """The terms `text` is found by, each once, in order of appearance."""
    out: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", clean(text))):
        if _IS_CJK.match(run):
            out += run
            out += _pairs(run)
        else:
            out += _latin(run) if len(run) <= LONGEST_TERM else _parts(run)
    return tuple(dict.fromkeys(out))[:MOST_INDEX_TERMS]


def query_terms(text: str) -> tuple[str, ...]:
    """The terms a query asks for, each once. Empty when it has no letter, digit or ideograph."""
    topical: list[str] = []
    grammatical: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", clean(text))):
        if not _IS_CJK.match(run):
            words = _latin(run) if len(run) <= LONGEST_TERM else _parts(run)
            topical += words
            grammatical += [] if words else [_stem(run.lower())]
            continue
        for term in _pairs(run) if len(run) > 1 else [run]:
            (grammatical if GRAMMAR.intersection(term) else topical).append(term)
    return tuple(dict.fromkeys(topical or grammatical))[:MOST_QUERY_TERMS]


def idf(documents: int, containing: int) -> float:
    """Weight of a term found in `containing` of `documents` memories; always above 0."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


def weigh(terms: Iterable[str], documents: int, containing: Mapping[str, int]) -> dict[str, float]:
    """idf of each term of a query, given how many of `documents` memories contain it."""
    return {term: idf(documents, containing.get(term, 0)) for term in terms}


def coverage(found: Iterable[str], weights: Mapping[str, float]) -> float:
    """Share of a query that a text with the terms `found` covers, in [0, 1]. `weights`: idf of
    every term of the query, found or not."""
    asked = sum(weights.values())
    return min(1.0, sum(weights.get(t, 0.0) for t in found) / asked) if asked else 0.0


def is_pair(term: str) -> bool:
    """True for a term that is two characters of a run without spaces."""
    return len(term) == 2 and bool(_IS_CJK.match(term))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


@lru_cache(maxsize=8192)
def _latin(run: str) -> tuple[str, ...]:
    """`_parts`, kept for the words everybody uses."""
    return _parts(run)


def _parts(run: str) -> tuple[str, ...]:
    """Terms of one run without spaces: the whole and, when it is compound, its parts."""
    whole = run.lower().replace("’", "'")
    if whole in _STOP:
        return ()
    whole = whole.removesuffix("'s")
    parts = _PART.findall(_HUMP.sub("_", run))
    if len(parts) <= 1 or "'" in whole:
        return (_stem(whole)[:LONGEST_TERM],)
    out = [whole[:LONGEST_TERM]]
    # A single letter out of a compound (the v of v1.2) says nothing on its own.
    kept = (p.lower() for p in parts if len(p) > 1 or p.isdigit())
    out += [_stem(p)[:LONGEST_TERM] for p in kept if p not in _STOP]
    return tuple(out)


def _stem(word: str) -> str:
    """`word` without plural, -ed, -ing and -ly endings; the same form for every spelling of one
    word matters here, a real word does not."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed", "ly"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= 3 and _has_vowel(root):
            word = root
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 2 and word.endswith("y") and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    return word


def _has_vowel(letters: Iterable[str]) -> bool:
    return any(c in "aeiouy" for c in letters)
