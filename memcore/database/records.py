"""A decision's value objects as its row keeps them in JSON, and read back. Pure: no I/O.

Rows of older versions may lack a field or have one that is gone: what is missing takes its default,
what is unknown is left out, so a log stays readable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from memcore.models import Check, Draft, Facts, Finding, MemoryType, Neighbour, Scope, Visibility
from memcore.plain import plain
from memcore.settings import GateSettings


def of_facts(facts: Facts) -> dict[str, Any]:
    """`facts` as a decision row keeps them: neighbours without their texts, which the log reads
    anew, so that what is deleted or erased since is in no log."""
    kept: dict[str, Any] = plain(facts)
    for neighbour in kept["neighbours"] or ():
        neighbour["content"] = ""
    return kept


def _known(cls: type, kept: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(cls)}
    return {k: v for k, v in kept.items() if k in names}


def _moment(value: Any) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def draft_from(kept: Mapping[str, Any]) -> Draft:
    """A decision's `draft`."""
    values = _known(Draft, kept)
    for name, kind in (("memory_type", MemoryType), ("scope", Scope), ("visibility", Visibility)):
        if name in values:
            values[name] = kind(values[name])
    for name in ("expires_at", "created_at"):
        values[name] = _moment(values.get(name))
    values["tags"] = tuple(values.get("tags") or ())
    return Draft(**values)


def facts_from(kept: Mapping[str, Any]) -> Facts:
    """A decision's `facts`."""
    values = _known(Facts, kept)
    neighbours = kept.get("neighbours")
    values["neighbours"] = None if neighbours is None else tuple(_neighbour(n) for n in neighbours)
    values["sensitive"] = tuple(Finding(**_known(Finding, f)) for f in kept.get("sensitive") or ())
    values["next_slot"] = _moment(kept.get("next_slot"))
    return Facts(**values)


def _neighbour(kept: Mapping[str, Any]) -> Neighbour:
    values = _known(Neighbour, kept)
    if "memory_type" in values:
        values["memory_type"] = MemoryType(values["memory_type"])
    if values.get("similarity") is None:
        # JSON has no NaN: what was not a number is kept as null, and is still unknown.
        values["similarity"] = float("nan")
    return Neighbour(**values)


def checks_from(kept: Any) -> tuple[Check, ...]:
    """A decision's `checks`."""
    return tuple(Check(**_known(Check, c)) for c in kept or ())


def gate_settings_from(kept: Mapping[str, Any]) -> GateSettings:
    """The settings a decision was reached under."""
    return GateSettings(**_known(GateSettings, kept))
