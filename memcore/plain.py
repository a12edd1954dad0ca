"""Value objects as JSON: their own fields, nothing renamed. Pure: no I/O.

The one form for the command line, exports, history and logs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from memcore.models import ScoreTerm


def plain(value: Any) -> Any:
    """`value` as JSON takes it: enums as words, aware times as ISO 8601, a float that is not finite
    as None. A score term says its contribution as well."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, ScoreTerm):
        return {**plain(value._asdict()), "contribution": plain(value.contribution)}
    names = _names(type(value))
    if names is not None:
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other type."""
    if kind not in _KNOWN:
        known = dataclasses.is_dataclass(kind)
        _KNOWN[kind] = tuple(f.name for f in dataclasses.fields(kind)) if known else None
    return _KNOWN[kind]


_KNOWN: dict[type, tuple[str, ...] | None] = {}
