"""Two pictures of one library side by side: two embedders, or before and after re-embedding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memcore.database import pictures
from memcore.models import Actor
from memcore.projection import Floats
from memcore.projection.arrangement import aligned
from memcore.services.projection.viewing import MapView
from memcore.services.runtime import Runtime


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What two pictures say of the memories both show. Arrays run over `ids`."""

    ids: list[str]
    agreement: Floats
    """Share of a memory's nearest neighbours, by the vectors, that both embedders name; of the
    fewer of the two lists. NaN where either names none."""
    right: Floats
    """(n, 2): the second picture shifted, turned and scaled as a whole to lie over the first."""

    @property
    def mean(self) -> float | None:
        """Mean agreement; None where nothing can be compared."""
        known = self.agreement[~np.isnan(self.agreement)]
        return float(known.mean()) if len(known) else None


class Comparing:
    """Part of ProjectionService: comparing pictures."""

    _runtime: Runtime

    def compare(self, left: MapView, right: MapView, *, actor: Actor) -> Comparison:
        """The memories both views show, with how far their neighbourhoods agree."""
        with self._runtime.engine.connect() as connection:
            near_left = pictures.neighbours(connection, left.picture.id, actor)
            near_right = pictures.neighbours(connection, right.picture.id, actor)
        at_left = {memory_id: i for i, memory_id in enumerate(left.ids)}
        at_right = {memory_id: i for i, memory_id in enumerate(right.ids)}
        ids = [i for i in left.ids if i in at_right]
        shared = (
            np.array([at_right[i] for i in ids], dtype=np.int32),
            np.array([at_left[i] for i in ids], dtype=np.int32),
        )
        over = aligned(
            np.column_stack([right.x, right.y]), np.column_stack([left.x, left.y]), shared
        )
        agreement = np.full(len(ids), np.nan, dtype=np.float32)
        for row, memory_id in enumerate(ids):
            one, other = near_left.get(memory_id, []), near_right.get(memory_id, [])
            k = min(len(one), len(other))
            if k:
                agreement[row] = len(set(one[:k]) & set(other[:k])) / k
        return Comparison(ids, agreement, over[shared[0]] if len(ids) else over[:0])
