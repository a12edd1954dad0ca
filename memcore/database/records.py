"""How value objects are kept in JSON columns. Pure: no I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memcore.models import Draft, Facts
from memcore.plain import plain


def of_draft(draft: Draft, masked: str) -> dict[str, Any]:
    """`draft` as a decision row keeps it; `masked` is its content without secrets."""
    kept: dict[str, Any] = plain(replace(draft, content=masked))
    return kept


def of_facts(facts: Facts) -> dict[str, Any]:
    """`facts` as a decision row keeps them."""
    kept: dict[str, Any] = plain(facts)
    return kept
