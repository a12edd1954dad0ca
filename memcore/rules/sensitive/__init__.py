"""Secrets in a text: passwords, keys, cards, ids and the like, in English and Chinese.

Pure: no I/O. Rules state kinds, not cases: a secret either proves itself (a provider's prefix, a
check digit, a private key's frame, credentials inside an address) or is told ("my password is …").
Names, e-mails, phone numbers and talk about secrets are not secrets. Rules run over a folded view
(folding.py); spans are offsets into the text handed in. A finding never carries the secret.
docs/gate.md has the kinds and the measured precision and recall.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import ModuleType

from memcore.models import Finding
from memcore.rules.sensitive import commands, labels, numbers, phrases, providers, seeds, spoken
from memcore.rules.sensitive.folding import Folded, close_up, fold, lower

KINDS = {
    "password": "password",
    "otp": "one-time code",
    "security_answer": "security answer",
    "pin": "PIN",
    "cvv": "card security code",
    "api_key": "API key",
    "token": "access token",
    "jwt": "JSON web token",
    "session": "session cookie",
    "private_key": "private key",
    "connection_string": "password in an address",
    "webhook": "webhook address",
    "secret_link": "link that grants access",
    "card": "payment card number",
    "bank_account": "bank account number",
    "iban": "IBAN",
    "national_id": "national id number",
    "passport": "passport number",
    "seed_phrase": "wallet recovery phrase",
}
"""Kind → its name for people."""

WINDOW = 65_536
"""Most code points any pattern sees at once."""
_OVERLAP = 4_096
# What a masked span looks like; `values.placeholder` knows it, so masking twice changes nothing.
_BULLETS = "••••••••"


# No secrets, though they look like some: what was masked before, public keys, files, digests.
_SKIPPED = re.compile(
    rf"\[[^\[\]\n]{{2,40}} {_BULLETS}\]"
    r"|(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[\w@.-]{2,40} AAAA[A-Za-z0-9+/=]+"
    r"|data:[\w.+-]{1,40}/[\w.+-]{1,60};base64,[A-Za-z0-9+/=]+"
    r"|(?i:sha)(?:1|256|384|512)[-:][A-Za-z0-9+/]{27,88}={0,2}"
)


def find(text: str) -> tuple[Finding, ...]:
    """Every sensitive span of `text`, in order, not overlapping. Longer texts are read in
    overlapping windows, so nothing beyond a cap is missed."""
    spans = [(k, a, b) for k, a, b in _whole(text)]
    step = WINDOW - _OVERLAP
    for base in range(0, max(len(text) - _OVERLAP, 1), step):
        spans += [(k, a + base, b + base) for k, a, b in _window(text[base : base + WINDOW])]
    return tuple(
        Finding(kind, start, end, f"[{KINDS[kind]} {_BULLETS}]")
        for kind, start, end in _merge(spans)
    )


def mask(text: str, findings: Iterable[Finding]) -> str:
    """`text` with each found span replaced by its kind; the length of the secret is not told."""
    out, at = [], 0
    for f in sorted(findings, key=lambda f: f.start):
        out += [text[at : f.start], f.masked]
        at = f.end
    return "".join(out) + text[at:]


def redact(text: str) -> tuple[str, tuple[Finding, ...]]:
    """`text` masked, with the findings' offsets moved to where their masks stand."""
    found = find(text)
    moved, shift = [], 0
    for f in found:
        start = f.start + shift
        moved.append(replace(f, start=start, end=start + len(f.masked)))
        shift += len(f.masked) - (f.end - f.start)
    return (mask(text, found) if found else text), tuple(moved)


def outside(words: Iterable[str], text: str, masked: str) -> tuple[str, ...]:
    """Those of `words` (tags, say) that are no piece of a secret in `text`, which is `masked`."""
    if text == masked:
        return tuple(words)
    said, left = text.casefold(), masked.casefold()
    return tuple(w for w in words if w.casefold() not in said or w.casefold() in left)


def _whole(text: str) -> Sequence[tuple[str, int, int]]:
    folded = fold(text) if "BEGIN" in text or "PuTTY" in text else Folded("", None)
    return [(k, *folded.span(a, b)) for k, a, b in providers.private_keys(folded.text)]


# What any secret has besides a label: a digit, a long run, an address, an option, spaced letters,
# twelve words, or a word for an answer. A short text without either is not looked at further.
_HINT = re.compile(
    r"\d|[!-~]{12}|://|\s-\w|[!-~](?: [!-~]){3}|[A-Za-z](?:[-._*|/][A-Za-z]){3}"
    r"|(?i:answer|memorable|maiden|security)|答"
)
_SHORT = 400


def _plain(folded: str) -> bool:
    """True for a short text that cannot hold a secret; most titles and tags."""
    return (
        len(folded) <= _SHORT
        and folded.count(" ") < 11
        and not _HINT.search(folded)
        and not labels.LABEL.search(lower(folded))
    )


def _window(text: str) -> list[tuple[str, int, int]]:
    folded = fold(_SKIPPED.sub(lambda m: "…" * len(m.group()), text))
    closed = close_up(folded, labels.NEIGHBOURS)
    if closed is None and _plain(folded.text):
        return []
    passes: list[tuple[Folded, tuple[ModuleType, ...]]]
    passes = [(folded, (providers, numbers, phrases, spoken, commands, seeds))]
    if closed is not None:
        passes.append((closed, (providers, numbers, phrases)))
    return [
        (kind, *view.span(start, end))
        for view, modules in passes
        for rules in modules
        for kind, start, end in rules.spans(view.text)
        if end > start
    ]


def _merge(spans: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Overlapping spans become one, named after the longest."""
    merged: list[tuple[str, int, int]] = []
    longest = 0
    for kind, start, end in sorted(spans, key=lambda s: (s[1], -s[2])):
        if merged and start < merged[-1][2]:
            last_kind, last_start, last_end = merged[-1]
            if end - start > longest:
                last_kind, longest = kind, end - start
            merged[-1] = (last_kind, last_start, max(last_end, end))
        else:
            merged.append((kind, start, end))
            longest = end - start
    return merged
