"""Named starting points for a library's settings. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    says: str
    overrides: Mapping[str, Any]
    """What it sets by hand; everything else stays at its default."""


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "basic": Preset(
            "Basic", "The defaults, calibrated for the embedder.", MappingProxyType({})
        ),
        "high_precision": Preset(
            "High precision",
            "Fewer, surer memories: stricter gate, a similarity floor, fewer hits.",
            MappingProxyType(
                {
                    "min_confidence": 0.85,
                    "similarity_threshold": 0.65,
                    "max_recall": 5,
                    "similarity_weight": 0.7,
                    "confidence_weight": 0.2,
                    "scope_weight": 0.1,
                }
            ),
        ),
    }
)
