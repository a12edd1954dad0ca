"""Libraries and agents: configuration and container of memories, and who uses them. One class, one
module for each thing that is done with them."""

from __future__ import annotations

import threading

from memcore.database.jobs import Job
from memcore.models import Agent, Library
from memcore.services.libraries.agents import Agents
from memcore.services.libraries.embedding import Pair, Reembedding
from memcore.services.libraries.figures import Card, Contents, LibraryFigures, Statistics
from memcore.services.libraries.health import Health, HealthChecks
from memcore.services.libraries.presets import PRESETS, Preset
from memcore.services.libraries.sweeping import Sweeping, Swept
from memcore.services.runtime import Runtime

__all__ = [
    "PRESETS", "Card", "Contents", "Health", "Job", "LibraryService", "Pair", "Preset",
    "Statistics", "Swept",
]  # fmt: skip


class LibraryService(Agents, LibraryFigures, Reembedding, HealthChecks, Sweeping):
    """Safe to share between threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._cache: dict[str, tuple[float, Library]] = {}
        self._agents: dict[str, tuple[float, Agent]] = {}
        self._lock = threading.Lock()
