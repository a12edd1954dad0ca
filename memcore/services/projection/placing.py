"""What comes after a picture is placed in it; the picture does not move.

The fitted model of a picture is its fitted points and their vectors. The points are rows here, the
vectors are in the library's store, so nothing is pickled and nothing is kept twice: a new vector's
nearest memories are asked of the store, and it is put where they are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from memcore.database import pictures
from memcore.embeddings import Vectors
from memcore.errors import InvalidVector
from memcore.models import Actor, Library
from memcore.projection.arrangement import PLACING_NEIGHBOURS, place
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime
from memcore.text import clean
from memcore.vectors import SMALLEST_NORM, Match, VectorStore, checked

AT_ONCE = 200
"""New memories placed while a page is read; with more, redraw the picture."""
_ASKED = 60


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a text would be drawn, and by which memories that was decided."""

    x: float
    y: float
    nearest: tuple[tuple[str, float], ...]
    """(memory id, cosine), nearest first: visible to the actor, fitted points only."""


class Placing:
    """Part of ProjectionService: new points in an old picture."""

    _runtime: Runtime
    _libraries: LibraryService

    def catch_up(self, picture_id: str, library_id: str) -> int:
        """Place memories that came, changed or got a vector after the picture, up to AT_ONCE; how
        many were. Nothing for pictures of other vectors than those in use."""
        library = self._libraries.get(library_id)
        engine = self._runtime.engine
        with engine.connect() as connection:
            row = next(
                (r for r in pictures.pictures(connection, library_id) if r.id == picture_id), None
            )
            if row is None or not row.current or row.state != "done":
                return 0
            new = pictures.missing(connection, picture_id, library_id, AT_ONCE)
        if not new:
            return 0
        store = self._runtime.store_for(library)
        vectors = store.fetch([r.id for r in new])
        points = []
        for memory in new:
            vector = vectors.get(memory.id)
            if vector is None and memory.lacking:
                continue
            point = self._point(library, store, picture_id, memory.id, vector, float(row.width))
            points.append({"memory_id": memory.id, "content_hash": memory.content_hash, **point})
        with engine.begin() as connection:
            pictures.add_points(connection, picture_id, points)
        return len(points)

    def locate(
        self, library_id: str, text: str, *, actor: Actor, picture_id: str
    ) -> Landing | None:
        """Where `text`, as a query, lands in a picture of the library's current vectors. None
        where the actor sees no fitted point near it, or the picture shows other vectors. Raises
        EndpointError or InvalidVector."""
        library = self._libraries.get(library_id)
        query = clean(text)
        if not query:
            return None
        with self._runtime.engine.connect() as connection:
            row = next(
                (r for r in pictures.pictures(connection, library_id) if r.id == picture_id), None
            )
        if row is None or not row.current:
            return None
        vector = checked(
            self._runtime.embedder_for(library).embed_query(query), library.dimensions
        )[0]
        store = self._runtime.store_for(library)
        found, points = self._fitted_near(store, picture_id, vector, actor)
        if not found:
            return None
        place_at = _among(found, points, float(row.width))
        return Landing(*place_at, tuple((m.id, m.similarity) for m in found))

    # ---- parts

    def _fitted_near(
        self, store: VectorStore, picture_id: str, vector: Vectors, actor: Actor | None,
        without: str | None = None,
    ) -> tuple[list[Match], dict[str, Any]]:  # fmt: skip
        """The nearest fitted points to a vector. Most matches are fitted and visible; where few
        are (a sampled picture, an actor who sees little), more is asked for, up to everything."""
        asked = _ASKED
        while True:
            matches = [m for m in store.query(vector, asked) if m.id != without]
            with self._runtime.engine.connect() as connection:
                points = pictures.fitted(connection, picture_id, [m.id for m in matches], actor)
            kept = [m for m in matches if m.id in points][:PLACING_NEIGHBOURS]
            if len(kept) == PLACING_NEIGHBOURS or len(matches) < asked - 1 or asked >= 4000:
                return kept, points
            asked *= 8

    def _point(
        self, library: Library, store: VectorStore, picture_id: str, memory_id: str,
        vector: Vectors | None, width: float,
    ) -> dict[str, Any]:  # fmt: skip
        """A point for a memory the picture lacks, or the reason why it has none."""
        blank: dict[str, Any] = {
            "x": 0.0, "y": 0.0, "spot": None, "cluster": -1, "isolation": float("nan"),
            "preservation": float("nan"), "neighbours": [], "placed": True,
        }  # fmt: skip
        if vector is None:
            return {**blank, "left_out": "missing"}
        if len(vector) != library.dimensions:
            return {**blank, "left_out": "other_dimensions"}
        if not np.isfinite(vector).all():
            return {**blank, "left_out": "not_finite"}
        if not float(np.linalg.norm(vector)) >= SMALLEST_NORM:
            return {**blank, "left_out": "zero"}
        try:
            found, points = self._fitted_near(store, picture_id, vector, None, memory_id)
        except InvalidVector:
            return {**blank, "left_out": "not_finite"}
        if not found:
            return {**blank, "left_out": ""}
        x, y = _among(found, points, width)
        first = points[found[0].id]
        return {
            **blank, "x": x, "y": y, "left_out": "", "cluster": first.cluster,
            "spot": first.spot if found[0].similarity > 1 - 1e-6 else None,
            "isolation": 1 - float(np.mean([m.similarity for m in found[:5]])),
            "neighbours": [points[m.id].ordinal for m in found],
        }  # fmt: skip


def _among(found: list[Match], points: dict[str, Any], width: float) -> tuple[float, float]:
    """The place among fitted points, nearest first."""
    similarity = np.array([[m.similarity for m in found]], dtype=np.float32)
    places = np.array([[(points[m.id].x, points[m.id].y) for m in found]], dtype=np.float32)
    x, y = place(similarity, places, width)[0].tolist()
    return x, y
