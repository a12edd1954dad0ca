"""Map: memories by meaning; where a query lands, what is said twice, what stands alone."""

import numpy as np
import streamlit as st

from memcore.services.memories import Filter
from pages.shared import map_controls, map_panels, maps, messages, reads, session
from pages.shared.map_canvas import Canvas, near_duplicates

PANELS = ["Selected", "Query", "Duplicates", "Groups", "Outliers"]

library = messages.need_library()
actor, state = session.actor(), st.session_state
with messages.trouble("Reading the map"):
    known, job, stamp = reads.map_state(actor, library.id)
    facets = reads.facets(actor, Filter(library_id=library.id))
if not any(facets.statuses.values()):
    messages.no_memories()
    st.stop()
if not known and job is None:
    map_controls.draw(library.id)  # the first visit draws it; PCA is there within seconds
    known, job, stamp = reads.map_state(actor, library.id)
running = job is not None and job.running
map_controls.drawing(actor, library, known, running)
if not known:
    st.stop()

by_id = {p.id: p for p in known}
chosen = map_controls.controls(library, by_id, facets, running)
with messages.trouble("Reading the picture"):
    # The same picture changes when UMAP replaces PCA, and when a memory does.
    stamp = f"{stamp} {by_id[chosen.picture_id].state}"
    view = reads.map_view(actor, library.id, chosen.picture_id, stamp)
shown = np.arange(len(view.ids))
if chosen.filtered or state.get("map_closer"):
    kept = set(state.get("map_closer") or view.ids)
    if chosen.filtered:
        kept &= set(reads.map_ids(actor, chosen.filter, stamp))
    shown = np.array([i for i, memory_id in enumerate(view.ids) if memory_id in kept], dtype=int)
selected = [i for i in state.get("map_selected", []) if i in set(view.ids)]

with st.container(horizontal=True, vertical_alignment="center", key="map_head"):
    map_panels.trust(view, len(shown))
    if state.get("map_closer"):
        st.button("Show all", key="map_all", icon=":material/zoom_out_map:", type="tertiary",
                  on_click=lambda: state.pop("map_closer", None))  # fmt: skip
    panel = st.pills("Panel", PANELS, default="Query" if chosen.query else "Selected",
                     key="map_panel", label_visibility="collapsed", required=True,
                     width="content")  # fmt: skip
if not len(shown):
    messages.nothing_here(clear=[*map_controls.FILTERS, "map_closer"])
    st.stop()

overlay = None
askers = list(facets.users) if actor.operator else [actor.user_id]
if chosen.query and askers:
    asker = state.get("map_recall_as") if state.get("map_recall_as") in askers else askers[0]
    with messages.trouble("Recalling for the query", stop=False):
        project = reads.project_of(actor, library.id, asker)
        overlay = maps.Overlay(*reads.map_query(
            actor, library.id, chosen.picture_id, chosen.query, asker, project, stamp
        ))  # fmt: skip

compared = chosen.other_id is not None
wide, side = (st.container(), st.container()) if compared else st.columns([3, 2])
pairs = []
if panel == "Duplicates":
    with side:
        limit = reads.duplicate_threshold(actor, library.id)
        pairs = near_duplicates(view, shown.tolist(), stamp, limit)
with wide:
    canvas = Canvas(view, shown, chosen.colour, chosen.named, selected, pairs, overlay, stamp)
    key = f"map_chart_{chosen.picture_id}_{abs(hash((stamp, len(shown)))) % 10**8}"
    if chosen.other_id is not None:
        titles = tuple(map_controls.said(by_id[i]) for i in (chosen.picture_id, chosen.other_id))
        canvas.side_by_side(key, library.id, chosen.other_id, titles)
    else:
        canvas.chart(key, height=660)
    if len(shown) > maps.ANY_HOVER:
        st.caption(f"With more than {maps.ANY_HOVER:,} points none carries its text: drag around "
                   "some, then look closer.")  # fmt: skip
    map_panels.undrawn(view)
with side:
    if panel == "Selected":
        map_panels.selected(view, selected, library, stamp)
    elif panel == "Query":
        map_panels.query(view, overlay, askers)
    elif panel == "Duplicates":
        map_panels.pairs(view, pairs)
    elif panel == "Groups":
        map_panels.groups(view)
    else:
        map_panels.outliers(view)
