"""A small embedder whose vectors can be worked out by hand; for tests and for trying things.

Each term of the keyword tokeniser (rules/lexical.py) is hashed to one dimension and a sign; a
text's vector is the normalised sum. Texts that share words are near; nothing is understood.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from memcore.embeddings import Calibration, Vectors
from memcore.errors import ConfigError
from memcore.rules import lexical

_CALIBRATION = Calibration(
    duplicate_threshold=0.85, similarity_threshold=0.65, dense_weight=0.5, lexical=True
)


class HashEmbedder:
    """`hash:N`, N dimensions."""

    calibration = _CALIBRATION

    def __init__(self, dimensions: int) -> None:
        if not 2 <= dimensions <= 4096:
            raise ConfigError(f"hash:{dimensions} is outside its range from 2 to 4096.")
        self.dimensions = dimensions
        self.name = f"hash:{dimensions}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for term in lexical.index_terms(text) or (text or "∅",):
                digest = hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).digest()
                place = int.from_bytes(digest, "big")
                out[row, (place >> 1) % self.dimensions] += 1.0 if place & 1 else -1.0
            if not out[row].any():
                out[row, 0] = 1.0  # opposite terms met in one dimension
            out[row] /= np.linalg.norm(out[row])
        return out

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_documents([text])[0]
        return vector
