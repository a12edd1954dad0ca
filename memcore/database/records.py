"""How value objects are kept in JSON columns. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from memcore.models import Draft, Facts


def of_draft(draft: Draft, masked: str) -> dict[str, Any]:
    """`draft` as a decision row keeps it; `masked` is its content without secrets."""
    kept: Mapping[str, Any] = asdict(replace(draft, content=masked))
    return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in kept.items()}


def of_facts(facts: Facts) -> dict[str, Any]:
    """`facts` as a decision row keeps them."""
    kept = asdict(facts)
    kept["next_slot"] = facts.next_slot.isoformat() if facts.next_slot else None
    return kept
