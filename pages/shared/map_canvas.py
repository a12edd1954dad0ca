"""The map itself: points with what lies over them, and what a lasso, a box or a click selects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from memcore.models import Status
from memcore.services.projection import MapView
from pages.shared import map_panels, maps, messages, present, reads, session

Pair = tuple[str, str, float]
_NAMES = 14
_LINES = 2000


@dataclass(frozen=True)
class Canvas:
    """All that a chart needs, twice where two pictures are compared."""

    view: MapView
    shown: np.ndarray
    """Positions of what the filter leaves."""
    colour: str
    named: bool
    selected: list[str]
    pairs: list[Pair]
    overlay: maps.Overlay | None
    stamp: str

    def chart(
        self,
        key: str,
        *,
        height: int,
        places: np.ndarray | None = None,
        agreement: np.ndarray | None = None,
    ) -> None:
        """Draw it. `places` (n, 2): the second picture of a comparison; NaN where it lacks one."""
        view, dark = self.view, session.dark()
        xy = places if places is not None else np.column_stack([view.x, view.y])
        at = self.shown[~np.isnan(xy[self.shown, 0])]
        where = {memory_id: i for i, memory_id in enumerate(view.ids)}
        traces = maps.points(view, self.colour, at, zone=session.zone(), now=session.now(),
                             agreement=agreement, places=places)  # fmt: skip
        if self.pairs:
            ends = [(where[a], where[b]) for a, b, _ in self.pairs[:_LINES]]
            traces.append(maps.lines(xy, ends, colour=maps.ACCENT, width=2,
                                     name=f"near-duplicates · {len(self.pairs):,}"))  # fmt: skip
        if self.named and view.clusters:
            traces.append(maps.names(view, most=_NAMES, dark=dark, places=places))
        if self.overlay and places is None:
            traces += maps.query(view, self.overlay, dark=dark)
        if self.selected and len(self.selected) <= maps.RINGED:
            if len(self.selected) == 1:
                near = reads.map_nearest(session.actor(), view.picture.id, self.selected[0],
                                         self.stamp)  # fmt: skip
                ends = [(where[self.selected[0]], where[i]) for i in near[:8] if i in where]
                traces.append(maps.lines(xy, ends, colour=maps.OTHER, name="nearest by meaning"))
            traces.append(maps.rings(xy, [where[i] for i in self.selected], dark=dark))
        st.plotly_chart(
            maps.figure(traces, height=height, dark=dark), key=key, config=maps.config(),
            on_select=lambda: self._took(key),
            alt=f"Map of {present.count(len(at), 'memory')} in "
                f"{present.count(len(view.clusters), 'group')}",
        )  # fmt: skip

    def _took(self, key: str) -> None:
        """Remember the ids of what was selected, not the positions."""
        points = st.session_state[key].selection.points
        at = {int(p["customdata"]) for p in points if p.get("customdata") is not None}
        map_panels.select([self.view.ids[i] for i in sorted(at)])

    def side_by_side(
        self, key: str, library_id: str, other_id: str, titles: tuple[str, str]
    ) -> None:
        """This picture and another of the same memories, selections shown in both."""
        view = self.view
        with messages.trouble("Comparing the pictures"):
            compared = reads.map_comparison(session.actor(), library_id, view.picture.id, other_id,
                                            self.stamp)  # fmt: skip
        where = {memory_id: i for i, memory_id in enumerate(view.ids)}
        both = np.array([where[i] for i in compared.ids], dtype=int)
        agreement = np.full(len(view.ids), np.nan)
        agreement[both] = compared.agreement
        places = np.full((len(view.ids), 2), np.nan)
        places[both] = compared.right
        mean = "An unknown share" if compared.mean is None else f"**{compared.mean:.0%}**"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{mean} of each memory's nearest neighbours are the same in both. Select "
                        "in one, and see it in the other.", width="stretch")  # fmt: skip
            tinted = st.toggle("Colour by agreement", True, key="map_agreement")
        for column, title, at, i in zip(st.columns(2), titles, (None, places), "ab", strict=True):
            with column:
                st.caption(messages.plain(title))
                self.chart(f"{key}_{i}", height=520, places=at,
                           agreement=agreement if tinted else None)  # fmt: skip


def near_duplicates(view: MapView, shown: Sequence[int], stamp: str, limit: float) -> list[Pair]:
    """Draws the slider; pairs of active, shown memories from its value on. `limit`: the gate's."""
    floor = min(view.pair_floor, 0.999)
    threshold = st.slider(
        "Similar from", floor, 1.0, min(max(limit, floor), 1.0), 0.001, format="%.3f",
        key="map_threshold", help=f"The gate compares drafts from {limit:.3f} on. Pairs below "
        f"{floor:.3f} are not kept.",
    )  # fmt: skip
    active = {
        view.ids[p] for p in shown if view.statuses[p] is Status.ACTIVE
    }  # fmt: skip
    found = reads.map_pairs(session.actor(), view.picture.id, stamp)
    return [(a, b, s) for a, b, s in found if s >= threshold and a in active and b in active]
