"""What happened: changes to memories with time and actor, and the gate's and recalls' logs in
figures. One class, one module per kind of record."""

from __future__ import annotations

from memcore.services.history.activity import Activity, Figures, Glance
from memcore.services.history.changes import Change, Changes, Links, Origin, Turn
from memcore.services.history.decisions import (
    DecisionFilter,
    DecisionPage,
    Decisions,
    LoggedDecision,
)
from memcore.services.runtime import Runtime

__all__ = [
    "Change",
    "DecisionFilter",
    "DecisionPage",
    "Figures",
    "Glance",
    "HistoryService",
    "Links",
    "LoggedDecision",
    "Origin",
    "Turn",
]


class HistoryService(Changes, Activity, Decisions):
    """Everything that is read of the past. Safe to share between threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
