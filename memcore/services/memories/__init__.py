"""The memory service: add, recall, browse, change. One class, one module per capability."""

from __future__ import annotations

from memcore.services.libraries import LibraryService
from memcore.services.memories.adding import Adding
from memcore.services.memories.browsing import Browsing, Filter, Page
from memcore.services.memories.changing import Changed, Changing
from memcore.services.memories.recalling import Recalling
from memcore.services.runtime import Runtime

__all__ = ["Changed", "Filter", "MemoryService", "Page"]


class MemoryService(Adding, Recalling, Browsing, Changing):
    """Everything that is done to memories. Safe to share between threads."""

    def __init__(self, runtime: Runtime, libraries: LibraryService) -> None:
        self._runtime = runtime
        self._libraries = libraries
