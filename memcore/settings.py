"""Every setting of a library: default, range, environment variable, explanation, in one place.

Pure but for `from_environment`, which reads the mapping it is given. A library stores only what
was set by hand (`Library.overrides`, flat: name → value); `resolve` works out the effective
values: library → environment → calibrated for the embedder → default. Blank means default, 0
means 0; a value that is malformed, not finite or out of range is refused with name and range.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from memcore.errors import ConfigError

Source = Literal["library", "environment", "calibrated", "default"]


def _setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    env: str | None = None,
    unit: str = "",
) -> Any:
    meta = {"help": help, "low": low, "high": high, "env": env, "unit": unit}
    return field(default=default, metadata=MappingProxyType(meta))


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What a draft must meet to be stored."""

    min_confidence: float = _setting(
        0.7, "A draft below this confidence is not stored.",
        low=0, high=1, env="MEMORY_MIN_CONFIDENCE",
    )  # fmt: skip
    duplicate_threshold: float = _setting(
        0.85, "From this cosine similarity on, a draft is compared as a possible duplicate.",
        low=0, high=1, env="MEMORY_DUPLICATE_THRESHOLD",
    )  # fmt: skip
    max_extractions: int = _setting(
        3, "Extraction runs per session in any 24 hours. 0 allows none.",
        low=0, high=10_000, env="MEMORY_MAX_EXTRACTIONS", unit="runs",
    )  # fmt: skip
    min_length: int = _setting(
        5, "Shortest text that is stored.",
        low=0, high=100_000, env="MEMORY_MIN_LENGTH", unit="characters",
    )  # fmt: skip
    max_length: int = _setting(
        2000, "Longest text that is stored.",
        low=1, high=100_000, env="MEMORY_MAX_LENGTH", unit="characters",
    )  # fmt: skip
    sensitive_action: Literal["reject", "redact"] = _setting(
        "reject", "Reject a draft with a secret in it, or store it with the secret masked."
    )


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """How candidates become hits. A hit's score is the sum of value × weight over its terms."""

    similarity_weight: float = _setting(0.5, "Weight of similarity to the query.", low=0, high=10)
    confidence_weight: float = _setting(0.3, "Weight of the memory's confidence.", low=0, high=10)
    scope_weight: float = _setting(0.2, "Weight of the scope's priority.", low=0, high=10)
    keyword_weight: float = _setting(
        0.0, "Weight of keyword match as a term of its own.", low=0, high=10
    )
    recency_weight: float = _setting(0.0, "Weight of how recent it is.", low=0, high=10)
    recency_half_life_days: float = _setting(
        30.0, "After this time recency counts half.", low=0.01, high=3650, unit="days"
    )
    usage_weight: float = _setting(0.0, "Weight of how often agents used it.", low=0, high=10)
    session_priority: float = _setting(1.0, "Scope value of session memories.", low=0, high=1)
    project_priority: float = _setting(0.8, "Scope value of project memories.", low=0, high=1)
    user_priority: float = _setting(0.6, "Scope value of user memories.", low=0, high=1)
    max_recall: int = _setting(8, "Most memories a recall returns.", low=1, high=100)
    similarity_threshold: float | None = _setting(
        None, "Candidates below this similarity are dropped. Off when empty; 0.65 is a start.",
        low=0, high=1,
    )  # fmt: skip
    dedupe: Literal["near_duplicate", "one_per_type", "off"] = _setting(
        "near_duplicate", "Among hits of one type that say the same, keep the best."
    )
    dedupe_threshold: float = _setting(
        0.85, "From this text similarity on, two hits of one type say the same.", low=0, high=1
    )
    lexical: bool = _setting(True, "Fetch keyword candidates beside vector candidates.")
    fusion: Literal["weighted_sum", "rrf"] = _setting(
        "weighted_sum", "How the two channels become one similarity."
    )
    dense_weight: float = _setting(
        0.5, "Share of the vector channel in the weighted sum.", low=0, high=1
    )
    unrelated_similarity: float = _setting(
        0.0, "Cosine that unrelated texts have with this embedder; similarity counts from here.",
        low=0, high=0.95,
    )  # fmt: skip
    rrf_k: int = _setting(60, "Reciprocal rank fusion constant.", low=1, high=200)


@dataclass(frozen=True, slots=True)
class LibrarySettings:
    """All effective settings of one library."""

    gate: GateSettings = field(default_factory=GateSettings)
    ranking: RankingSettings = field(default_factory=RankingSettings)
    enabled: bool = _setting(True, "A disabled library is neither recalled nor written.")
    rerank: bool = _setting(
        False, "The chat model (extraction_model) judges the best candidates instead of similarity."
    )
    rerank_candidates: int = _setting(30, "How many candidates the model judges.", low=1, high=500)
    query_rewrite: bool = _setting(
        False, "The chat model (extraction_model) rewrites what was said into a query of its own."
    )
    extraction_interval: int = _setting(
        4, "Extract after this many user messages.", low=1, high=1000, unit="turns"
    )
    max_memories_per_extraction: int = _setting(
        5, "Most memories one extraction proposes.", low=1, high=100
    )
    extraction_prompt: str = _setting(
        "",
        "Own prompt; must ask for a JSON array with type, title, content, tags. Empty: built-in.",
    )
    extraction_model: str = _setting(
        "", "Chat model that extracts, rewrites and reranks. Empty: offline rules extract."
    )
    expiration_days: int = _setting(
        0, "New memories expire after this time. 0 means never.", low=0, high=365, unit="days"
    )
    share_between_agents: bool = _setting(
        False, "Every agent bound to the library recalls every agent's memories."
    )
    context_token_budget: int = _setting(
        1000, "Most tokens of memory put into a prompt.", low=0, high=100_000, unit="tokens"
    )
    recall_log: Literal["off", "sampled", "all"] = _setting(
        "all", "Which of the agents' recalls are stored for replay; sampled keeps one in ten."
    )


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting as a page or the command line shows it."""

    name: str
    group: str
    """gate, ranking or library."""
    type: Any
    default: Any
    help: str
    low: float | None
    high: float | None
    env: str | None
    unit: str
    choices: tuple[str, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class Resolved:
    settings: LibrarySettings
    sources: Mapping[str, Source]


def _specs() -> dict[str, SettingSpec]:
    out = {}
    groups = (("gate", GateSettings), ("ranking", RankingSettings), ("library", LibrarySettings))
    for group, cls in groups:
        hints = get_type_hints(cls)
        for f in fields(cls):
            if not f.metadata:
                continue
            kind = hints[f.name]
            args = get_args(kind)
            optional = type(None) in args
            choices: tuple[str, ...] = args if get_origin(kind) is Literal else ()
            if optional:
                kind = next(a for a in args if a is not type(None))
            m = f.metadata
            out[f.name] = SettingSpec(
                f.name, group, str if choices else kind, f.default, m["help"], m["low"], m["high"],
                m["env"], m["unit"], choices, optional,
            )  # fmt: skip
    return out


SPECS: Mapping[str, SettingSpec] = MappingProxyType(_specs())


def parse(name: str, value: Any, *, origin: str = "") -> Any:
    """`value` as setting `name` takes it. Raises ConfigError naming what, which value and the
    range. None stays None where the setting may be off. `origin`: the variable, for the message.
    """
    spec = SPECS.get(name)
    if spec is None:
        raise ConfigError(f"There is no setting called {name!r}.")
    said = origin or name
    if value is None:
        if spec.optional:
            return None
        raise ConfigError(f"{said} cannot be empty.")
    try:
        if spec.type is bool:
            word = str(value).strip().lower()
            parsed: Any = {"true": True, "1": True, "on": True, "yes": True,
                           "false": False, "0": False, "off": False, "no": False}[word]  # fmt: skip
        elif spec.type is int:
            if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
                raise ValueError
            parsed = int(value)
        elif spec.type is float:
            if isinstance(value, bool):
                raise ValueError
            parsed = float(value)
            if not math.isfinite(parsed):
                raise ValueError
        else:
            parsed = str(value)
    except (ValueError, TypeError, KeyError, OverflowError):
        words = {int: "a whole number", float: "a number", bool: "on or off"}
        raise ConfigError(
            f"{said} is {str(value)[:80]!r}, but takes {words.get(spec.type, 'text')}"
            f"{_range(spec)}.", hint="Correct it, or leave it blank for the default."
        ) from None  # fmt: skip
    if spec.choices and parsed not in spec.choices:
        raise ConfigError(f"{said} is {parsed!r}, but takes one of {', '.join(spec.choices)}.")
    if (spec.low is not None and parsed < spec.low) or (
        spec.high is not None and parsed > spec.high
    ):
        raise ConfigError(f"{said} is {parsed}, outside its range{_range(spec)}.")
    return parsed


def _range(spec: SettingSpec) -> str:
    return "" if spec.low is None else f" from {spec.low:g} to {spec.high:g}"


def from_environment(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Settings set by environment variables. Blank counts as not set; raises ConfigError."""
    environ = os.environ if environ is None else environ
    out = {}
    for spec in SPECS.values():
        raw = (environ.get(spec.env) or "").strip() if spec.env else ""
        if raw:
            out[spec.name] = parse(spec.name, raw, origin=spec.env or "")
    return out


def resolve(
    overrides: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, Any] | None = None,
    calibrated: Mapping[str, Any] | None = None,
) -> Resolved:
    """Effective settings and where each comes from. `environment` is `from_environment()`'s
    result; `calibrated` what the library's embedder ships. Raises ConfigError."""
    layers: tuple[tuple[Source, Mapping[str, Any]], ...] = (
        ("library", overrides or {}),
        ("environment", environment or {}),
        ("calibrated", calibrated or {}),
    )
    for name in overrides or {}:
        if name not in SPECS:
            raise ConfigError(f"There is no setting called {name!r}.")
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for name, spec in SPECS.items():
        values[name], sources[name] = spec.default, "default"
        for source, layer in layers:
            if name in layer:
                values[name], sources[name] = parse(name, layer[name]), source
                break
    by_group: dict[str, dict[str, Any]] = {"gate": {}, "ranking": {}, "library": {}}
    for name, value in values.items():
        by_group[SPECS[name].group][name] = value
    gate = GateSettings(**by_group["gate"])
    if gate.min_length > gate.max_length:
        raise ConfigError(
            f"min_length ({gate.min_length}) is above max_length ({gate.max_length}): "
            "nothing could be stored.", hint="Lower min_length or raise max_length."
        )  # fmt: skip
    ranking = RankingSettings(**by_group["ranking"])
    if (
        not ranking.similarity_weight
        + ranking.confidence_weight
        + ranking.scope_weight
        + (ranking.keyword_weight + ranking.recency_weight + ranking.usage_weight)
    ):
        raise ConfigError("All ranking weights are 0: every score would be 0.")
    settings = LibrarySettings(gate=gate, ranking=ranking, **by_group["library"])
    return Resolved(settings, MappingProxyType(sources))


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings that differ between two override mappings: name → (before, after)."""
    return {
        n: (before.get(n), after.get(n))
        for n in SPECS
        if before.get(n) != after.get(n) or (n in before) != (n in after)
    }
