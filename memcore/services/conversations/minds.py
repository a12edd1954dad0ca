"""Who reads, sums up and answers: what a library's settings ask for, handed down by `open_core`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memcore.extraction import Extractor
from memcore.extraction.summarise import LLMSummariser
from memcore.services.conversations.replies import Replier
from memcore.settings import LibrarySettings


@dataclass(frozen=True)
class Minds:
    """Each gives what the settings' `extraction_model` names, and an offline one without. Each
    raises ConfigError or NotFound where that model cannot be had."""

    extractor: Callable[[LibrarySettings], Extractor]
    summariser: Callable[[LibrarySettings], LLMSummariser | None]
    """None: the offline summary."""
    replier: Callable[[LibrarySettings], Replier]
