"""What stands beside the map: the selection, a query, near-duplicates, groups, outliers.

Ids of what is selected live in session state (`map_selected`); every panel selects by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from memcore.models import Actor, Library, SearchResult, Status
from memcore.services.memories import Filter
from memcore.services.projection import MapView
from memcore.text import shorten
from pages.shared import acts, maps, memory, messages, present, reads, session

PAIRS_SHOWN = 8
ROWS_SHOWN = 500


def select(ids: Sequence[str], panel: str | None = "Selected") -> None:
    """Callback: these are selected, and the panel that shows them is open."""
    st.session_state["map_selected"] = list(ids)
    if panel:
        st.session_state["map_panel"] = panel


# ---- what the picture is worth ------------------------------------------------------------------


def trust(view: MapView, shown: int) -> None:
    """How far to believe it, beside what chance would give."""
    figures = view.faithfulness
    parts = [f"**{present.count(len(view.ids), 'memory')}**"]
    if shown < len(view.ids):
        parts = [f"**{shown:,} of {present.count(len(view.ids), 'memory')}**"]
    if view.clusters:
        parts.append(present.count(len(view.clusters), "group"))
    if len(view.outliers):
        parts.append(present.count(len(view.outliers), "outlier"))
    said = " · ".join(parts)
    help_ = view.explanation
    if figures is not None:
        colour, icon = {"good": ("green", "verified"), "fair": ("orange", "info"),
                        "weak": ("red", "warning")}[figures.grade]  # fmt: skip
        said += (
            f" :{colour}-badge[:material/{icon}: {figures.grade}: {figures.preservation:.0%} of "
            f"neighbours kept, chance {figures.chance:.1%}]"
        )
        help_ += (
            f" Of each memory's {figures.k} nearest by meaning, {figures.preservation:.0%} are "
            f"among its {figures.k} nearest in the picture; points scattered at random would keep "
            f"{figures.chance:.1%}. Good from 50%, fair from 25%."
        )
        if figures.trustworthiness is not None:
            help_ += f" Trustworthiness (Venna & Kaski): {figures.trustworthiness:.3f}."
        help_ += " Read nearness, not size of gaps: distances between groups mean little."
    if view.picture.state == "drawing":
        said += " :blue-badge[:material/hourglass_top: first picture, UMAP is coming]"
    if view.picture.origin == "earlier":
        said += " :orange-badge[:material/history: vectors from before the re-embedding]"
    if view.picture.origin == "trial":
        said += (
            f" :violet-badge[:material/science: trial of {messages.plain(view.picture.embedder)}]"
        )
    if view.late:
        said += f" :gray-badge[:material/add_location: {view.late:,} placed later]"
    if view.stale:
        said += f" :orange-badge[:material/update: stale for {view.stale:,}: redraw]"
    st.markdown(said, help=help_, width="stretch")


# ---- panels -------------------------------------------------------------------------------------


def selected(view: MapView, ids: list[str], library: Library, stamp: str) -> None:
    """One memory whole, or what can be done with many."""
    actor = session.actor()
    if not ids:
        st.markdown(
            ":material/ads_click: Click a point to read it. To select many, choose the lasso or "
            "the box at the chart's right edge and drag. Scroll to zoom; double-click clears the "
            "selection."
        )
        return
    if len(ids) == 1:
        _one(view, ids[0], actor, stamp)
        return
    where = {memory_id: i for i, memory_id in enumerate(view.ids)}
    counted = Counter(view.statuses[where[i]] for i in ids if i in where)
    parts = " · ".join(f"{counted[s]:,} {s}" for s in Status if counted[s])
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{len(ids):,} selected** :gray[{parts}]", width="stretch")
        st.button("", key="map_clear", type="tertiary", on_click=select, args=((),),
                  icon=":material/close:", help="Clear the selection")  # fmt: skip
    with st.container(horizontal=True, gap="xsmall"):
        for status, (verb, _, icon) in acts.VERB.items():
            st.button(verb, key=f"map_bulk_{status}", icon=f":material/{icon}:",
                      on_click=acts.set_status, args=(tuple(ids), status))  # fmt: skip
        with st.popover("Tag", icon=":material/sell:", key="map_tag"):
            tag = st.text_input("Tag", key="map_tag_text", placeholder="A word", live=True)
            left, right = st.columns(2)
            left.button("Add", key="map_tag_add", on_click=_tag, args=(tuple(ids), tag, True),
                        disabled=not tag.strip(), width="stretch")  # fmt: skip
            right.button("Remove", key="map_tag_remove", on_click=_tag, width="stretch",
                         args=(tuple(ids), tag, False), disabled=not tag.strip())  # fmt: skip
        if st.button("Export", key="map_export", icon=":material/download:"):
            acts.export_dialog(Filter(library_id=library.id, ids=tuple(ids)), library.name, True)
        if st.button("Delete", key="map_delete", icon=":material/delete:"):
            acts.delete_dialog(tuple(ids))
        if st.button("Open in Memories", key="map_open", icon=":material/library_books:"):
            st.session_state["memories_ids"] = list(ids)
            st.switch_page("memories.py")
        st.button("Look closer", key="map_closer_button", icon=":material/zoom_in:",
                  on_click=_closer, args=(tuple(ids),),
                  help="Show only these, with their text on each point")  # fmt: skip
    page = reads.page(actor, Filter(ids=tuple(ids[:ROWS_SHOWN])), "newest", ROWS_SHOWN, 0)
    zone = session.zone()
    key = f"map_table_{hash(tuple(ids))}"
    rows = tuple(m.id for m in page.memories)
    st.dataframe(
        present.memories(page.memories, zone), column_config=present.memory_columns(zone),
        column_order=("content", "type", "status", "created"), hide_index=True, height=420, key=key,
        selection_mode="single-cell", on_select=lambda: _picked(key, rows),
        alt=f"The {len(ids):,} selected memories, newest first",
    )  # fmt: skip
    if len(ids) > ROWS_SHOWN:
        st.caption(f"The newest {ROWS_SHOWN} of {len(ids):,} are listed; acts are for all.")


def _one(view: MapView, memory_id: str, actor: Actor, stamp: str) -> None:
    where = {i: p for p, i in enumerate(view.ids)}
    memory.panel(memory_id, key="map_detail")
    near = reads.map_nearest(actor, view.picture.id, memory_id, stamp)
    if memory_id in where:
        p = where[memory_id]
        kept, alone = float(view.preservation[p]), float(view.isolation[p])
        lines = []
        if not np.isnan(kept):
            lines.append(f"{kept:.0%} of its nearest are drawn near it")
        if not np.isnan(alone) and view.isolation_limit is not None:
            lines.append(f"isolation {alone:.2f}, an outlier above {view.isolation_limit:.2f}")
        if view.copies[p] > 1:
            lines.append(f"{view.copies[p]} memories with this vector")
        st.caption(" · ".join(lines))
    if near:
        st.markdown("**Nearest by meaning**", help="By the vectors themselves, not by the picture.")
        for other in near[:6]:
            if other in where:
                st.button(
                    messages.plain(shorten(view.titles[where[other]] or view.texts[where[other]],
                                           64)),
                    key=f"map_near_{other}", type="tertiary", icon=":material/arrow_outward:",
                    on_click=select, args=((other,),),
                )  # fmt: skip


def _picked(key: str, rows: tuple[str, ...]) -> None:
    if cells := st.session_state[key].selection.cells:
        select((rows[cells[-1][0]],))


def _tag(ids: tuple[str, ...], tag: str, add: bool) -> None:
    with messages.attempt("Tagging"):
        words = {"add": [tag]} if add else {"remove": [tag]}
        changed = session.service().memories.tag(ids, actor=session.actor(), **words)
        acts.report(changed, "tagged" if add else "untagged")
    reads.forget()


def _closer(ids: tuple[str, ...]) -> None:
    st.session_state["map_closer"] = list(ids)


def query(view: MapView, overlay: maps.Overlay | None, askers: list[str]) -> None:
    """Hits with score, then what just missed and why."""
    if len(askers) > 1:
        now = st.session_state.get("map_recall_as")
        st.selectbox("Recall as", askers, askers.index(now) if now in askers else 0,
                     key="map_asker", on_change=_ask_as, help="A recall reads one user's own "
                     "memories and those of their projects, never another user's.")  # fmt: skip
    if overlay is None:
        st.caption("Type a query above: it is recalled as it would be for an agent, and drawn with "
                   "what just missed.")  # fmt: skip
        return
    result = overlay.result
    if result.notice:
        st.caption(f":material/info: {messages.plain(result.notice)}")
    if overlay.landing is None:
        st.caption("The query has no place here: this picture shows other vectors, or the query "
                   "has no vector.")  # fmt: skip
    drawn = set(view.ids)
    st.markdown(f"**{present.count(len(result.hits), 'memory')} recalled**")
    for i, hit in enumerate(result.hits, 1):
        parts = " + ".join(
            f"{messages.words(t.name)} {t.contribution:.2f}"
            for t in hit.terms if abs(t.contribution) >= 0.005
        )  # fmt: skip
        _entry(hit.memory.id, f"#{i} · {hit.score:.3f}", hit.memory.content, parts,
               hit.memory.id in drawn, "hit")  # fmt: skip
    missed = result.dropped[: overlay.near_misses]
    if missed:
        st.markdown("**Just missed**")
        for one in missed:
            score = "" if one.score is None else f" · {one.score:.3f}"
            _entry(one.memory.id, messages.words(one.reason) + score, one.memory.content,
                   _named(one.detail, result), one.memory.id in drawn, "miss")  # fmt: skip


def _named(detail: str, result: SearchResult) -> str:
    """`detail` with the memories it names by id named by their text."""
    for hit in result.hits:
        detail = detail.replace(hit.memory.id, f"“{shorten(hit.memory.content, 40)}”")
    return detail


def _ask_as() -> None:
    # The select box is forgotten while another panel is shown; this is not.
    st.session_state["map_recall_as"] = st.session_state["map_asker"]


def _entry(memory_id: str, head: str, text: str, detail: str, drawn: bool, key: str) -> None:
    with st.container(gap=None):
        st.button(f"**{messages.plain(head)}** {messages.plain(shorten(text, 90))}",
                  key=f"map_{key}_{memory_id}", type="tertiary", on_click=select,
                  args=((memory_id,),))  # fmt: skip
        st.caption(messages.plain(detail) + ("" if drawn else " · not drawn here"))


def pairs(view: MapView, found: list[tuple[str, str, float]]) -> None:
    """Near-duplicates, each with what to do about it."""
    if not found:
        st.caption("No two active memories are that similar.")
        return
    where = {memory_id: i for i, memory_id in enumerate(view.ids)}
    st.caption(
        f"{present.count(len(found), 'pair')} of active memories. "
        "Superseding keeps one and records what it replaced; merging also takes over tags and the "
        "higher confidence. Nothing is deleted."
    )
    pages = -(-len(found) // PAIRS_SHOWN)
    start = (min(st.session_state.get("map_pairs_page", 1), pages) - 1) * PAIRS_SHOWN
    for a, b, similarity in found[start : start + PAIRS_SHOWN]:
        with st.container(border=True, gap="xsmall", key=f"map_pair_{a}_{b}"):
            st.caption(f"Cosine {similarity:.3f}")
            for side, one in (("A", a), ("B", b)):
                p = where[one]
                facts = f"{messages.words(view.types[p])} · {view.scopes[p]} · "
                facts += f"{messages.plain(view.users[p])} · recalled {view.uses[p]}×"
                text = messages.plain(shorten(view.texts[p], 140))
                st.markdown(f"**{side}** {text}  \n:gray[{facts}]")
            with st.container(horizontal=True, gap="xsmall"):
                for side, keep, gone in (("A", a, b), ("B", b, a)):
                    st.button(f"Keep {side}", key=f"map_keep_{keep}_{gone}", on_click=_supersede,
                              args=(keep, gone, False), icon=":material/check:",
                              help=f"The other becomes superseded by {side}")  # fmt: skip
                st.button("Merge into A", key=f"map_merge_{a}_{b}", on_click=_supersede,
                          args=(a, b, True), icon=":material/merge:")  # fmt: skip
                st.button("Show", key=f"map_show_{a}_{b}", type="tertiary", on_click=select,
                          args=((a, b), None), icon=":material/my_location:")  # fmt: skip
    if pages > 1:
        st.pagination(pages, key="map_pairs_page")


def _supersede(keep: str, gone: str, merge: bool) -> None:
    with messages.attempt("Merging" if merge else "Superseding"):
        changed = session.service().memories.supersede(
            [gone], keep, actor=session.actor(), merge=merge
        )
        acts.report(changed, "merged" if merge else "superseded")
    reads.forget()


def groups(view: MapView) -> None:
    """Groups with their names; a click selects the members."""
    if not view.clusters:
        st.caption("No groups: the memories are too few or too evenly spread to fall into any.")
        return
    rows = []
    for cluster in view.clusters:
        members = np.flatnonzero(view.cluster == cluster.number)
        active = sum(view.statuses[p] is Status.ACTIVE for p in members)
        rows.append({
            "name": cluster.name, "memories": cluster.size, "active": active / len(members),
            "confidence": float(view.confidence[members].mean()),
            "recalled": int(view.uses[members].sum()),
        })  # fmt: skip
    key = f"map_groups_{view.picture.id}_{len(view.ids)}"

    def chosen() -> None:
        if cells := st.session_state[key].selection.cells:
            number = view.clusters[cells[-1][0]].number
            select([view.ids[p] for p in np.flatnonzero(view.cluster == number)], None)

    st.dataframe(
        pd.DataFrame(rows), hide_index=True, key=key, on_select=chosen,
        selection_mode="single-cell", height=min(560, 38 * len(rows) + 40),
        column_config={
            "name": st.column_config.TextColumn("Group, by its words", width=200),
            "memories": st.column_config.NumberColumn("Memories", width="small"),
            "active": st.column_config.NumberColumn("Active", format="percent", width="small"),
            "confidence": st.column_config.NumberColumn("Confidence", format="%.2f",
                                                        width="small"),
            "recalled": st.column_config.NumberColumn("Recalled", width="small"),
        },
        alt=f"{present.count(len(rows), 'group')}, the largest is {view.clusters[0].name}",
    )  # fmt: skip
    alone = int((view.cluster < 0).sum())
    st.caption(f"{present.count(alone, 'memory')} in no group. A click on a row selects its "
               "members. Names are the words a group has and the others lack.")  # fmt: skip


def outliers(view: MapView) -> None:
    """Memories near nobody, with the limit they are judged against."""
    found = view.outliers
    if view.isolation_limit is None:
        st.caption("There are too few memories to say which are outliers.")
        return
    if not len(found):
        st.caption(f"None: no memory is more isolated than {view.isolation_limit:.2f} "
                   "(median + 3 robust standard deviations).")  # fmt: skip
        return
    st.caption(f"Isolation is 1 − the mean cosine to the five nearest; an outlier is above "
               f"{view.isolation_limit:.2f}.")  # fmt: skip
    for p in found[:40].tolist():
        st.button(
            f"**{view.isolation[p]:.2f}** {messages.plain(shorten(view.texts[p], 90))}",
            key=f"map_outlier_{view.ids[p]}", type="tertiary", on_click=select,
            args=((view.ids[p],),),
        )  # fmt: skip


def undrawn(view: MapView) -> None:
    """What the picture cannot show, and why."""
    if not view.left_out:
        return
    with st.expander(f"{present.count(len(view.left_out), 'memory')} not drawn",
                     icon=":material/visibility_off:", key="map_undrawn"):  # fmt: skip
        for row in view.left_out[:50]:
            st.markdown(f"- {messages.plain(shorten(row.text, 90))}  \n:gray[{row.reason}]")
        if len(view.left_out) > 50:
            st.caption(f"and {len(view.left_out) - 50:,} more")
