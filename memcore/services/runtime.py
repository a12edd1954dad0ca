"""What every service works with, handed down by `open_core`: the database, the settings from the
environment, and which embedder and vector store serve a library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Engine

from memcore.database.jobs import Jobs, Report
from memcore.database.reading import Reader
from memcore.embeddings import Embedder
from memcore.models import ConfiguredStore, Library
from memcore.reranking import QueryRewriter, Reranker
from memcore.settings import LibrarySettings, Resolved, resolve
from memcore.vectors import VectorStore


class Stores(Protocol):
    """What libraries ask of the configured vector stores (services/stores.py)."""

    def get(self, store_id: str) -> ConfiguredStore: ...

    def name_of(self, store_id: str) -> str: ...

    def level(self, library: Library, report: Report) -> str: ...


@dataclass(frozen=True)
class Runtime:
    home: Path
    engine: Engine
    reader: Reader
    """The hot read path of the same database."""
    jobs: Jobs
    environment: Mapping[str, Any]
    embedder_for: Callable[[Library], Embedder]
    """Opened once per process and library."""
    embedder_named: Callable[[str], Embedder]
    """For work in the background: its calls may take longer."""
    store_for: Callable[[Library], VectorStore]
    """The library's current collection; opened once per process."""
    stores: Stores
    rewriter_for: Callable[[LibrarySettings], QueryRewriter | None]
    """None: the library has nothing that could rewrite. Raises ConfigError, NotFound, for a chat
    model that cannot be opened."""
    reranker_for: Callable[[LibrarySettings], Reranker | None]
    _resolved: dict[str, tuple[Library, Resolved]] = field(default_factory=dict)

    def settings_of(self, library: Library) -> Resolved:
        """Effective settings. An embedder that cannot be opened has no calibration to offer, so
        the defaults hold and the console still shows the library."""
        from memcore.embeddings import calibrated_for

        # The library service hands out one object for as long as nothing changed.
        known = self._resolved.get(library.id)
        if known is not None and known[0] is library:
            return known[1]
        resolved = resolve(
            library.overrides,
            environment=self.environment,
            calibrated=calibrated_for(library.embedder),
        )
        self._resolved[library.id] = (library, resolved)
        return resolved
