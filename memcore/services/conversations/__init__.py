"""The conversation service: messages, short-term memory, context, extraction, turns."""

from __future__ import annotations

from memcore.services.conversations.context import Context
from memcore.services.conversations.messages import ShortTerm
from memcore.services.conversations.minds import Minds
from memcore.services.conversations.replies import ChatReplier, Replier, ScriptedReplier
from memcore.services.conversations.turns import Turn, Turning
from memcore.services.conversations.working import Working, WorkingMemory
from memcore.services.libraries import LibraryService
from memcore.services.memories import MemoryService
from memcore.services.runtime import Runtime

__all__ = [
    "ChatReplier", "Context", "ConversationService", "Minds", "Replier", "ScriptedReplier",
    "ShortTerm", "Turn", "Working", "WorkingMemory",
]  # fmt: skip


class ConversationService(Turning):
    """Everything between what is said and what is remembered. Safe to share between threads."""

    def __init__(
        self,
        runtime: Runtime,
        libraries: LibraryService,
        memories: MemoryService,
        minds: Minds,
    ) -> None:
        self._runtime = runtime
        self._libraries = libraries
        self._memories = memories
        self._minds = minds
