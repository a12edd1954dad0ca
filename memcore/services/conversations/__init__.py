"""The conversation service: messages, short-term memory, context, extraction, turns."""

from __future__ import annotations

from collections.abc import Callable

from memcore.extraction import Extractor
from memcore.extraction.summarise import LLMSummariser
from memcore.services.conversations.context import Context
from memcore.services.conversations.messages import ShortTerm
from memcore.services.conversations.replies import ChatReplier, Replier, ScriptedReplier
from memcore.services.conversations.turns import Turn, Turning
from memcore.services.conversations.working import Working, WorkingMemory
from memcore.services.libraries import LibraryService
from memcore.services.memories import MemoryService
from memcore.services.runtime import Runtime
from memcore.settings import LibrarySettings

__all__ = [
    "ChatReplier", "Context", "ConversationService", "Replier", "ScriptedReplier", "ShortTerm",
    "Turn", "Working", "WorkingMemory",
]  # fmt: skip


class ConversationService(Turning):
    """Everything between what is said and what is remembered. Safe to share between threads.

    `extractor_for` and `summariser_for` give what a library's settings ask for; a summariser of
    None means the offline summary.
    """

    def __init__(
        self,
        runtime: Runtime,
        libraries: LibraryService,
        memories: MemoryService,
        extractor_for: Callable[[LibrarySettings], Extractor],
        summariser_for: Callable[[LibrarySettings], LLMSummariser | None],
    ) -> None:
        self._runtime = runtime
        self._libraries = libraries
        self._memories = memories
        self._extractor_for = extractor_for
        self._summariser_for = summariser_for
