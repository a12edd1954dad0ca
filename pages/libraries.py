"""Libraries: what there is, what each holds, and how it is set."""

import streamlit as st

from memcore import demo
from memcore.services.libraries import Card
from pages.shared import acts, library_acts, library_panel, messages, present, reads, session

actor, now = session.actor(), session.now()
chosen = st.query_params.get("library")
if chosen:
    library_panel.draw(chosen)
    st.stop()

with messages.trouble("Reading the libraries"):
    everything = reads.cards(actor, "")
    agents = reads.agents(actor)
if not everything:
    messages.no_library()
    if actor.operator:
        library_acts.create_button()
    st.stop()


def badges(card: Card) -> list[str]:
    """What stands out: off, without an agent, being embedded anew."""
    out = []
    if not card.resolved.settings.enabled:
        out.append(":orange-badge[:material/pause_circle: disabled]")
    if not card.agents:
        out.append(":gray-badge[:material/link_off: unbound]")
    if card.reembedding:
        out.append(":blue-badge[:material/sync: re-embedding]")
    if card.half_built:
        out.append(":orange-badge[:material/sync_problem: re-embedding stopped]")
    return out or [":green-badge[:material/check_circle: enabled]"]


def draw(card: Card) -> None:
    library, ranking = card.library, card.resolved.settings.ranking
    key = f"libraries_{library.id}"
    with st.container(border=True, height="stretch", gap="small", key=key):
        st.markdown(f"**{messages.plain(library.name)}**  \n{' '.join(badges(card))}")
        if library.description:
            st.caption(messages.plain(library.description))
        left, middle, right = st.columns(3)
        left.metric("Memories", f"{card.memories:,}", help=f"{card.active:,} of them active")
        rate = "–" if card.pass_rate is None else f"{card.pass_rate:.0%}"
        middle.metric("Gate pass rate", rate,
                      help=f"{card.passed:,} of {card.judged:,} drafts, last 30 days")  # fmt: skip
        floor = ranking.similarity_threshold
        right.metric("Max recall", f"{ranking.max_recall}")
        st.markdown(
            f":small[:material/model_training: {messages.plain(library.embedder)}, "
            f"{library.dimensions:,} dimensions  \n"
            f":material/database: {messages.plain(card.store)} · "
            f"similarity threshold {'off' if floor is None else format(floor, '.2f')}  \n"
            f":material/smart_toy: {messages.plain(', '.join(card.agents)) or 'no agent'}  \n"
            f":material/schedule: last activity {present.ago(card.last_activity, now)}]"
        )
        st.space("stretch")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button("Open", key=f"{key}_open", icon=":material/tune:",
                      on_click=library_panel.open_library, args=(library.id,))  # fmt: skip
            session.link("search", "Search", icon=":material/manage_search:",
                         frame_library=library.name)  # fmt: skip
            if actor.operator:
                enabled = card.resolved.settings.enabled
                library_acts.menu(library, enabled=enabled, key=f"{key}_menu")


tab_libraries, tab_agents = st.tabs(
    [":material/database: Libraries", ":material/smart_toy: Agents"], key="libraries_tabs"
)
with tab_libraries:
    with st.container(horizontal=True, vertical_alignment="center"):
        search = st.text_input(
            "Search", key="libraries_search", placeholder="Search by name", live=True,
            label_visibility="collapsed", icon=":material/search:", width=280,
            bind="query-params",
        )  # fmt: skip
        found = [c for c in everything if search.strip().casefold() in c.library.name.casefold()]
        total = present.count(len(everything), "library")
        st.caption(f"{len(found)} of {total}" if search.strip() else total)
        st.space("stretch")
        if actor.operator:
            library_acts.create_button()
    if not found:
        messages.nothing_here("library", clear=["libraries_search"])
    with st.grid(3, min_column_width=340):
        for card in found:
            draw(card)
    demo_there = any(card.library.id == demo.LIBRARY for card in everything)
    if demo_there and actor.operator and st.button(
        "Remove the demo", key="libraries_remove_demo", type="tertiary", icon=":material/delete:"
    ):  # fmt: skip
        acts.remove_demo_dialog()
    if not actor.operator:
        st.caption(":material/lock: Settings are changed by an operator.")

with tab_agents:
    names = {card.library.id: card.library.name for card in everything}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{present.count(len(agents), 'agent')}. An agent remembers in the one library "
                   "it is bound to; one library serves many agents.")  # fmt: skip
        st.space("stretch")
        if actor.operator:
            library_acts.create_agent_button(names)
    if agents:
        picked = st.dataframe(
            present.agents(agents, names), key="libraries_agents", hide_index=True,
            column_config=present.AGENT_COLUMNS, selection_mode="single-row", on_select="rerun",
            alt=f"{len(agents)} agents with their library and window",
        )  # fmt: skip
        rows = picked["selection"]["rows"]
        if rows and actor.operator:
            library_acts.agent_actions(agents[rows[0]], names)
        elif actor.operator:
            st.caption("Select a row to change an agent.")
    else:
        st.caption("No agent yet.")
