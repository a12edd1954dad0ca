"""One library, opened: its settings, statistics, embedder and vector store, and health."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from memcore.models import Library
from memcore.services.libraries import Card, Health, Job
from memcore.text import shorten
from pages.shared import library_acts, library_settings, messages, present, reads, session


def open_library(library_id: str) -> None:
    """Callback: show this library. Its id stands in the URL."""
    st.query_params["library"] = library_id


def close() -> None:
    st.query_params.pop("library", None)


def draw(library_id: str) -> None:
    actor = session.actor()
    with messages.trouble("Opening the library"):
        card = next((c for c in reads.cards(actor, "") if c.library.id == library_id), None)
    st.button("All libraries", key="libraries_back", icon=":material/arrow_back:", type="tertiary",
              on_click=close)  # fmt: skip
    if card is None:
        st.warning("There is no such library any more.", icon=":material/database_off:")
        return
    library = card.library
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(messages.plain(library.name), anchor=False, width="content")
        if not card.resolved.settings.enabled:
            st.badge("disabled", icon=":material/pause_circle:", color="orange")
        st.space("stretch")
        session.link("search", "Search it", icon=":material/manage_search:",
                     frame_library=library.name)  # fmt: skip
        if actor.operator:
            enabled = card.resolved.settings.enabled
            library_acts.menu(library, enabled=enabled, key="libraries_menu")
    if library.description:
        st.caption(messages.plain(library.description))
    names = {
        "Settings": "tune", "Statistics": "bar_chart", "Embedder and store": "model_training",
        "Health": "monitor_heart",
    }  # fmt: skip
    tabs = st.tabs(
        [f":material/{icon}: {name}" for name, icon in names.items()],
        key="libraries_open_tabs",
        on_change="rerun",
    )
    parts = (_settings, _statistics, _embedder, _health)
    for tab, part in zip(tabs, parts, strict=True):
        if tab.open:
            with tab, messages.trouble("Reading the library", stop=False):
                part(card)


def _settings(card: Card) -> None:
    library_settings.draw(card.library, card.resolved, may_change=session.actor().operator)


def _statistics(card: Card) -> None:
    zone, found = session.zone(), reads.statistics(session.actor(), card.library.id)
    if not found.total:
        messages.no_memories()
        return
    with st.grid(4):
        st.metric("Memories", f"{found.total:,}", border=True)
        share = "–" if found.hit_share is None else f"{found.hit_share:.0%}"
        st.metric("Recalls with a hit", share, border=True,
                  help=f"{found.recalls_with_hits:,} of {found.recalls:,} logged")  # fmt: skip
        st.metric("Expire within 7 days", f"{found.expiring:,}", border=True)
        st.metric("Past expiry", f"{found.expired:,}", border=True,
                  help="Not recalled any more; the next sweep archives them.")  # fmt: skip
    st.caption(f"From {present.when(found.oldest, zone)} to {present.when(found.newest, zone)}")
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown("**Active by type**")
        st.plotly_chart(_types(found.types), key="libraries_types", config=present.PLOTLY,
                        alt="Active memories by type, most frequent first")  # fmt: skip
    with right.container(border=True, height="stretch"):
        st.markdown("**Most used by agents**")
        for memory in found.most_used:
            st.markdown(
                f":blue-badge[{memory.access_count:,} times] "
                f"{messages.plain(shorten(memory.content, 90))}"
            )
        if not found.most_used:
            st.caption("No agent has recalled anything yet.")


def _types(types: Any) -> go.Figure:
    order = sorted(types.items(), key=lambda item: item[1])
    fig = present.figure(height=260, legend=False)
    fig.add_bar(
        x=[n for _, n in order], y=[messages.words(t) for t, _ in order], orientation="h",
        text=[f"{n:,}" for _, n in order], textposition="outside", cliponaxis=False,
        hovertemplate="%{y}: %{x}<extra></extra>",
    )  # fmt: skip
    fig.update_xaxes(visible=False)
    fig.update_yaxes(showgrid=False, ticksuffix="  ")
    return fig


# ---- embedder and store -------------------------------------------------------------------------


def _change_embedder(library_id: str, embedder: str | None = None) -> None:
    with messages.attempt("Changing the embedder"):
        session.service().libraries.change_embedder(
            library_id, embedder or st.session_state["libraries_embedder"], actor=session.actor()
        )
    reads.forget()


def _move(library: Library) -> None:
    with messages.attempt("Moving the vectors"):
        session.service().stores.move(
            library, st.session_state["libraries_store"], actor=session.actor()
        )
        session.service().libraries.forget()
    reads.forget()


def _embedder(card: Card) -> None:
    library, operator = card.library, session.actor().operator
    names, stores = library_acts.embedders(), library_acts.stores()
    names.setdefault(library.embedder, library.embedder)
    stores.setdefault(library.vector_store, card.store)
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown("**Embedding model**")
        st.markdown(f"{messages.plain(names[library.embedder])}  \n"
                    f":gray[{library.dimensions:,} dimensions]")  # fmt: skip
        options = list(names)
        chosen = st.selectbox("Change to", options, options.index(library.embedder),
                              format_func=lambda e: names[e], key="libraries_embedder",
                              disabled=not operator)  # fmt: skip
        again = chosen == library.embedder
        st.caption(
            f"{present.count(card.memories, 'memory')} will be embedded in the background. Until "
            "then the library is searched by its present vectors; then it switches once."
        )
        st.button("Embed all anew" if again else "Change and re-embed", key="libraries_reembed",
                  icon=":material/sync:", disabled=not operator or card.reembedding,
                  on_click=_change_embedder, args=(library.id,))  # fmt: skip
    with right.container(border=True, height="stretch"):
        st.markdown("**Vector store**")
        st.markdown(messages.plain(stores[library.vector_store]))
        options = list(stores)
        target = st.selectbox("Move to", options, options.index(library.vector_store),
                              format_func=lambda s: stores[s], key="libraries_store",
                              disabled=not operator)  # fmt: skip
        st.caption(
            "The database keeps every vector; another store is an index of them that can be "
            "rebuilt at any time. Set up stores on the Admin page."
        )
        st.button("Move", key="libraries_move", icon=":material/drive_file_move:",
                  disabled=not operator or target == library.vector_store, on_click=_move,
                  args=(library,))  # fmt: skip
    progress(library.id)
    _thresholds(card)


@st.fragment(run_every=1.5)
def progress(library_id: str) -> None:
    """The newest job of the library, while it runs and after it."""
    with messages.trouble("Reading the job", stop=False):
        job = session.service().libraries.job(library_id)
        if job is None:
            return
        if job.running:
            done = job.done / job.total if job.total else 0.0
            numbers = f" {job.done:,} of {job.total:,}" if job.total else ""
            st.progress(min(done, 1.0), f"{job.note}{numbers}")
            st.session_state["libraries_job"] = job.id
        elif job.state == "failed":
            st.error(messages.plain(job.note), title="The last job failed",
                     icon=":material/error:")  # fmt: skip
            _go_on(job)
        elif job.state == "lost":
            st.warning(
                f"It stopped after {job.done:,} of {job.total:,} because its process ended. "
                "The library is searched by its former vectors. Started again, it goes on where "
                "it stopped.", title="The last job was interrupted", icon=":material/error:",
            )  # fmt: skip
            _go_on(job)
        else:
            if st.session_state.pop("libraries_job", None) == job.id:
                reads.forget()
                st.rerun()
            st.caption(f":material/check_circle: {messages.plain(job.note)} "
                       f"{present.ago(job.created_at, session.now())}")  # fmt: skip


def _go_on(job: Job) -> None:
    """Offer to take up a re-embedding that stopped."""
    if job.kind == "reembed" and job.library_id and session.actor().operator:
        embedder = str(job.input["embedder"])
        name = library_acts.embedders().get(embedder, embedder)
        st.button(f"Go on embedding with {name}", key="libraries_go_on",
                  icon=":material/play_arrow:", on_click=_change_embedder,
                  args=(job.library_id, embedder))  # fmt: skip


def _thresholds(card: Card) -> None:
    """After a change of model thresholds mean something else: what they do here, on real pairs."""
    if not session.actor().operator:
        return
    library, gate = card.library, card.resolved.settings.gate
    with st.container(border=True):
        st.markdown("**What the duplicate threshold does here**")
        source = card.resolved.sources["duplicate_threshold"]
        st.caption(
            f"It is {gate.duplicate_threshold:g} ({source}). Cosines mean something else for each "
            "embedding model, so look at the pairs around it after a change of model."
        )
        if source == "library":
            st.warning(
                "This threshold was set by hand and is not adjusted when the model changes.",
                icon=":material/straighten:",
            )
        around = st.slider(
            "Threshold", 0.5, 1.0, float(gate.duplicate_threshold), 0.005, format="%.3f",
            key="libraries_around",
        )  # fmt: skip
        pairs = reads.pairs(session.actor(), library.id, library.collection_id, around)
        if pairs:
            st.dataframe(present.pairs(pairs, around), column_config=present.PAIR_COLUMNS,
                         hide_index=True, key="libraries_pairs",
                         alt="Pairs of memories around the threshold")  # fmt: skip
        else:
            st.caption("There are no two memories of one scope to compare yet.")


# ---- health -------------------------------------------------------------------------------------


def _repair(library_id: str) -> None:
    with messages.attempt("Repairing"):
        session.service().libraries.reindex(library_id, actor=session.actor())
    reads.forget()


def _health(card: Card) -> None:
    found: Health = reads.health(session.actor(), card.library.id)
    if found.trouble:
        st.error(messages.plain(found.trouble), title="Not everything can be used",
                 icon=":material/error:")  # fmt: skip
    elif found.well:
        st.success("Every memory has its vector, and there is none too many.",
                   icon=":material/check_circle:")  # fmt: skip
    else:
        st.warning("Rows and vectors do not agree; repairing makes what is missing.",
                   icon=":material/build:")  # fmt: skip
    with st.grid(4):
        for label, value, said in (
            ("Memories", found.memories, "Rows of every status"),
            ("Vectors", found.vectors, "In the database, of the current embedder"),
            ("Missing", found.missing, "Memories without a vector: found by keywords only"),
            ("Stale", found.stale, "Vectors made from an older text"),
            ("Wrong length", found.mismatched, "Vectors of another length than the library's"),
            ("Left over", found.left_over, "Vectors of a collection nobody reads any more"),
        ):
            st.metric(label, f"{value:,}", border=True, help=said)
        if found.elsewhere is not None:
            st.metric(f"In {card.store}", f"{found.elsewhere:,}", border=True,
                      help="Vectors in the library's other store")  # fmt: skip
            st.metric("Orphans there", f"{found.orphans:,}", border=True,
                      help="Without a row: ignored by searches")  # fmt: skip
            st.metric("Absent there", f"{found.absent:,}", border=True)
    if session.actor().operator:
        st.button("Repair", key="libraries_repair", icon=":material/build:",
                  type="secondary" if found.well else "primary", on_click=_repair,
                  args=(card.library.id,))  # fmt: skip
    progress(card.library.id)
