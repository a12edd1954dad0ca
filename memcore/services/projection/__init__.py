"""The map of a library: drawn in the background, kept in the database, read as an actor may see it.

UMAP and numba load here and nowhere else, when a picture is first drawn. One class, one module per
capability.
"""

from __future__ import annotations

from memcore.database.jobs import Job
from memcore.services.libraries import LibraryService
from memcore.services.projection.comparing import Comparing, Comparison
from memcore.services.projection.drawing import KIND, Drawing
from memcore.services.projection.placing import Landing, Placing
from memcore.services.projection.viewing import Cluster, Known, MapView, Undrawn, Viewing
from memcore.services.runtime import Runtime

__all__ = [
    "KIND", "Cluster", "Comparison", "Job", "Known", "Landing", "MapView", "ProjectionService",
    "Undrawn",
]  # fmt: skip


class ProjectionService(Drawing, Viewing, Placing, Comparing):
    """Everything about the map. Safe to share between threads."""

    def __init__(self, runtime: Runtime, libraries: LibraryService) -> None:
        self._runtime = runtime
        self._libraries = libraries
