"""Secrets in a text: where, of which kind, masked. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memcore.models import Finding

_RULES = (
    (
        "password",
        re.compile(r"(?:password|passwd|pwd|密码)\s*(?:is|是|为|[:=：])\s*(\S{6,})", re.I),
    ),
    ("api_key", re.compile(r"\b(sk-[A-Za-z0-9_-]{16,})")),
)


def find(text: str) -> tuple[Finding, ...]:
    """Sensitive spans of `text`, in order."""
    found = [
        Finding(kind, m.start(1), m.end(1), "•" * 8)
        for kind, rule in _RULES
        for m in rule.finditer(text)
    ]
    return tuple(sorted(found, key=lambda f: f.start))


def mask(text: str, findings: Sequence[Finding]) -> str:
    """`text` with every finding replaced by its mask."""
    for finding in sorted(findings, key=lambda f: -f.start):
        text = text[: finding.start] + finding.masked + text[finding.end :]
    return text
