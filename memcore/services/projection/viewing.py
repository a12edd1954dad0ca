"""Reading a picture as an actor may see it. Every count, name and pair is of visible memories."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from memcore.database import pictures
from memcore.errors import NotFound
from memcore.models import Actor, MemoryType, Scope, Status
from memcore.projection import Faithfulness, Floats, Indexes
from memcore.rules.naming import distinguishing
from memcore.services.runtime import Runtime

SMALLEST_SHOWN_CLUSTER = 3
"""A group of which fewer are visible is not shown as one: its size would tell of the others."""

_METHODS = {
    "nothing": "There is nothing to draw.",
    "one_spot": "All memories have the same vector, so there is one spot.",
    "line": "There are two distinct vectors: a picture can only show their distance.",
    "pca": "Drawn with PCA: there are too few distinct vectors for UMAP.",
    "umap": "Drawn with UMAP by cosine.",
}
_REASONS = {
    "missing": "It has no vector yet.",
    "zero": "Its vector has no length, so its direction means nothing.",
    "not_finite": "Its vector has a value that is not a finite number.",
    "other_dimensions": "Its vector has another number of dimensions.",
}


@dataclass(frozen=True, slots=True)
class Known:
    """A picture that exists, without its points."""

    id: str
    library_id: str
    embedder: str
    settings: Mapping[str, Any]
    state: str
    """drawing (PCA until UMAP is ready), done."""
    origin: str
    """current (the vectors in use now), earlier (from before a re-embedding), trial."""
    method: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Cluster:
    number: int
    name: str
    """Its distinguishing words, such as 短信 · 书店 · 提醒; "group N" where there are none."""
    size: int
    """Visible members."""
    x: float
    y: float
    """Where its name belongs: the median member."""


@dataclass(frozen=True, slots=True)
class Undrawn:
    """A memory that the picture cannot show."""

    id: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class MapView:
    """A picture as one actor may see it. Lists and arrays run over `ids`."""

    picture: Known
    explanation: str
    ids: list[str]
    x: Floats
    y: Floats
    spot: Indexes
    copies: Indexes
    """Visible memories on the same spot, itself counted."""
    cluster: Indexes
    """Number in `clusters`; −1 in none."""
    isolation: Floats
    """1 − mean cosine to its nearest five; NaN where unknown."""
    preservation: Floats
    """Share of its nearest neighbours that are drawn near it; NaN where unknown."""
    placed: npt.NDArray[np.bool_]
    """Put among the fitted points, which did not move."""
    titles: list[str]
    texts: list[str]
    """The first 200 characters of each memory."""
    types: list[MemoryType]
    statuses: list[Status]
    scopes: list[Scope]
    scope_ids: list[str]
    users: list[str]
    created: list[datetime]
    confidence: Floats
    uses: Indexes
    clusters: tuple[Cluster, ...]
    isolation_limit: float | None
    """Above it a memory is an outlier; None where there are too few to tell."""
    faithfulness: Faithfulness | None
    pair_floor: float
    left_out: tuple[Undrawn, ...]
    stale: int
    """Visible memories drawn where an earlier text of theirs belongs, or not drawn yet."""
    late: int
    """Visible memories that came after the picture and were placed in it."""

    @property
    def outliers(self) -> Indexes:
        """Positions of outliers, loneliest first."""
        if self.isolation_limit is None:
            return np.empty(0, np.int32)
        found = np.flatnonzero(self.isolation > self.isolation_limit)
        return found[np.argsort(-self.isolation[found], kind="stable")].astype(np.int32)


class Viewing:
    """Part of ProjectionService: reading pictures."""

    _runtime: Runtime

    def pictures(self, library_id: str) -> list[Known]:
        """The library's pictures: those of the vectors in use first, then newest first."""
        with self._runtime.engine.connect() as connection:
            known = [_known(row) for row in pictures.pictures(connection, library_id)]
        return sorted(known, key=lambda p: (p.state != "done", p.origin != "current"))

    def view(self, library_id: str, *, actor: Actor, picture_id: str | None = None) -> MapView:
        """The picture, or the newest of the library's current vectors; one that is still being
        drawn only where no other is there. Raises NotFound where nothing is drawn yet."""
        with self._runtime.engine.connect() as connection:
            rows = pictures.pictures(connection, library_id)
            by_id = {row.id: row for row in rows}
            chosen = picture_id or next(
                (p.id for p in sorted(
                    map(_known, rows), key=lambda p: (p.state != "done", p.origin != "current")
                )), None,
            )  # fmt: skip
            if chosen not in by_id:
                raise NotFound("There is no such picture.", hint="Draw the map first.")
            row = by_id[chosen]
            points = pictures.points(connection, row.id, actor)
            unplaced = pictures.unplaced(connection, row.id, library_id, actor)
        return _view(row, points, unplaced, actor)

    def stamp(self, library_id: str) -> str:
        """A text that stays while no memory of the library is added, changed or deleted."""
        with self._runtime.engine.connect() as connection:
            return pictures.stamp(connection, library_id)

    def pairs(self, picture_id: str, *, actor: Actor) -> list[tuple[str, str, float]]:
        """Near-duplicate pairs of which the actor sees both, most similar first: ids and cosine."""
        with self._runtime.engine.connect() as connection:
            return pictures.pairs(connection, picture_id, actor, 20_000)

    def nearest(self, picture_id: str, memory_id: str, *, actor: Actor) -> list[str]:
        """Ids of the memories truly nearest to one, by cosine of their vectors and not by the
        picture, nearest first, of what the actor may see."""
        with self._runtime.engine.connect() as connection:
            found = pictures.neighbours(connection, picture_id, actor, [memory_id])
        return found.get(memory_id, [])


def _known(row: Any) -> Known:
    origin = "trial" if row.collection_id is None else "current" if row.current else "earlier"
    return Known(
        row.id, row.library_id, row.embedder, row.settings, row.state, origin, row.method,
        row.created_at,
    )  # fmt: skip


def _view(row: Any, points: list[tuple[Any, ...]], unplaced: int, actor: Actor) -> MapView:
    drawn = [p for p in points if not p[9]]
    left_out = tuple(
        Undrawn(p[0], p[11] or p[12], _REASONS.get(p[9], p[9])) for p in points if p[9]
    )
    columns: list[list[Any]] = [list(c) for c in zip(*drawn, strict=True)] if drawn else [
        [] for _ in range(22)
    ]  # fmt: skip
    (ids, _, x, y, spot, cluster, alone, kept, placed, _, edited, titles, texts, types, statuses,
     scopes, scope_ids, users, created, confidence, uses, _) = columns  # fmt: skip
    xs, ys = np.array(x, dtype=np.float32), np.array(y, dtype=np.float32)
    spots = np.array(spot, dtype=np.int32)
    _, inverse, counts = np.unique(spots, return_inverse=True, return_counts=True)
    copies = (counts[inverse] if len(spots) else spots).astype(np.int32)
    label, clusters = _clusters(np.array(cluster, dtype=np.int32), xs, ys, titles, texts)
    figures = row.figures
    faith = figures.get("faithfulness")
    explanation = row.explanation
    if not actor.operator or not explanation:
        # The sentence of the fit counts vectors, also of memories this actor may not see.
        explanation = _METHODS.get(row.method, "The first picture, drawn with PCA.")
    return MapView(
        picture=_known(row), explanation=explanation, ids=ids, x=xs, y=ys, spot=spots,
        copies=copies, cluster=label, isolation=np.array(alone, dtype=np.float32),
        preservation=np.array(kept, dtype=np.float32), placed=np.array(placed, dtype=bool),
        titles=titles, texts=texts, types=types, statuses=statuses, scopes=scopes,
        scope_ids=scope_ids, users=users, created=created,
        confidence=np.array(confidence, dtype=np.float32), uses=np.array(uses, dtype=np.int32),
        clusters=clusters, isolation_limit=figures.get("isolation_limit"),
        faithfulness=Faithfulness(**faith) if faith else None,
        pair_floor=float(figures.get("pair_floor", 1.0)), left_out=left_out,
        stale=unplaced + sum(edited),
        late=sum(p and math.isnan(k) for p, k in zip(placed, kept, strict=True)),
    )  # fmt: skip


def _clusters(
    label: Indexes, x: Floats, y: Floats, titles: list[str], texts: list[str]
) -> tuple[Indexes, tuple[Cluster, ...]]:
    """Groups of visible members renumbered by size, with names of their visible texts alone."""
    numbers, counts = np.unique(label[label >= 0], return_counts=True)
    order = np.lexsort((numbers, -counts))
    renumbered = np.full(len(label), -1, dtype=np.int32)
    shown = [i for i in order if counts[i] >= SMALLEST_SHOWN_CLUSTER]
    for new, i in enumerate(shown):
        renumbered[label == numbers[i]] = new
    names = distinguishing(
        [f"{title}\n{text}" for title, text in zip(titles, texts, strict=True)],
        renumbered.tolist(),
    )
    clusters = []
    for new in range(len(shown)):
        members = np.flatnonzero(renumbered == new)
        words = names.get(new, ())
        clusters.append(Cluster(
            new, " · ".join(words) or f"group {new + 1}", len(members),
            float(np.median(x[members])), float(np.median(y[members])),
        ))  # fmt: skip
    return renumbered, tuple(clusters)
