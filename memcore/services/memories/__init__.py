"""The memory service: add, recall, browse, change. One class, one module per capability."""

from __future__ import annotations

from memcore.rules.injection import format_memories_for_prompt
from memcore.services.libraries import LibraryService
from memcore.services.memories.adding import Adding
from memcore.services.memories.approving import Approving
from memcore.services.memories.browsing import SORTS, Browsing, Facets, Filter, Page
from memcore.services.memories.explaining import Explaining
from memcore.services.memories.images import Changed
from memcore.services.memories.importing import Importing, Judged
from memcore.services.memories.judging import Judging
from memcore.services.memories.merging import Merging
from memcore.services.memories.recalling import Mode
from memcore.services.memories.tagging import Tagging
from memcore.services.memories.undoing import Undoing
from memcore.services.profiles import ProfileService
from memcore.services.runtime import Runtime

__all__ = ["SORTS", "Changed", "Facets", "Filter", "Judged", "MemoryService", "Mode", "Page"]


class MemoryService(
    Adding, Judging, Approving, Importing, Browsing, Explaining, Merging, Tagging, Undoing
):
    """Everything that is done to memories. Safe to share between threads."""

    def __init__(
        self, runtime: Runtime, libraries: LibraryService, profiles: ProfileService
    ) -> None:
        self._runtime = runtime
        self._libraries = libraries
        self.get_profile_for_agent = profiles.for_agent
        self.format_memories_for_prompt = format_memories_for_prompt
