"""Memories: browse, filter, correct and export what is remembered."""

from datetime import datetime, time, timedelta

import streamlit as st

from memcore.models import MemoryType, Scope, Status
from memcore.services.memories import Filter
from pages.shared import acts, imports, memory, messages, present, reads, session

SORTS = {
    "newest": "Newest first", "oldest": "Oldest first", "updated": "Last changed",
    "recalled": "Last recalled", "used": "Most recalled", "confidence": "Most confident",
    "unsure": "Least confident", "expiring": "Expiring soon",
}  # fmt: skip
SIZE = 25
KEYS = ["memories_text", "memories_status", "memories_scope", "memories_type", "memories_tags",
        "memories_created", "memories_user", "memories_agent", "memories_project",
        "memories_session", "memories_state", "memories_ids"]  # fmt: skip

library = messages.need_library()
actor, zone, state = session.actor(), session.zone(), st.session_state
with messages.trouble("Reading the library"):
    known = reads.facets(actor, Filter(library_id=library.id))
if not any(known.statuses.values()):
    messages.no_memories()
    with st.container(horizontal=True, horizontal_alignment="center"):
        if st.button("Add a memory", key="memories_first", icon=":material/add:", type="primary"):
            acts.add_dialog(library.id)
        if st.button("Import a file", key="memories_import", icon=":material/upload:"):
            imports.import_dialog(library.id)
    st.stop()


def to_first_page() -> None:
    """Another filter is another list: page 1, nothing selected."""
    state["memories_page"] = 1
    state["memories_failed"] = []


def opened(ids: tuple[str, ...], key: str) -> None:
    """A click on a cell opens that row's memory; a tick only selects it."""
    if cells := state[key].selection.cells:
        memory.open_memory(ids[cells[-1][0]])


bound = {"bind": "query-params", "on_change": to_first_page}
with st.container(horizontal=True, vertical_alignment="bottom"):
    text = st.text_input("Text", key="memories_text", type="search", width=250,
                         placeholder="Part of the text or title", **bound)  # fmt: skip
    statuses = st.pills("Status", list(Status), selection_mode="multi", key="memories_status",
                        **bound)  # fmt: skip
    scopes = st.pills("Scope", list(Scope), selection_mode="multi", key="memories_scope",
                      **bound)  # fmt: skip
with st.expander("More filters", icon=":material/filter_list:", key="memories_more",
                 expanded=any(k in st.query_params for k in KEYS[3:])), st.grid(4):  # fmt: skip
    types = st.multiselect("Type", list(MemoryType), format_func=messages.words,
                           key="memories_type", placeholder="Any type", **bound)  # fmt: skip
    tags = st.multiselect("Tag", list(known.tags), key="memories_tags", placeholder="Any tag",
                          **bound)  # fmt: skip
    created = st.date_input(f"Created ({present.zone_label(zone)})", value=[],
                            key="memories_created", **bound)  # fmt: skip
    flags = st.multiselect("State", ["expired", "never recalled"], key="memories_state",
                           placeholder="Any state", **bound)  # fmt: skip
    user = st.selectbox("User", list(known.users), None, key="memories_user",
                        placeholder="Anyone", **bound)  # fmt: skip
    names = {name: agent for agent, (name, _) in known.agents.items()}
    agent = st.selectbox("Agent", list(names), None, key="memories_agent",
                         placeholder="Any agent", **bound)  # fmt: skip
    project = st.selectbox("Project", list(known.projects), None, key="memories_project",
                           placeholder="Any project", **bound)  # fmt: skip
    talk = st.selectbox("Session", list(known.sessions), None, key="memories_session",
                        placeholder="Any session", **bound)  # fmt: skip

days = [datetime.combine(day, time(), zone) for day in created]
filter = Filter(
    library_id=library.id,
    types=tuple(types), statuses=tuple(statuses), scopes=tuple(scopes), tags=tuple(tags),
    user_id=user, project_id=project, agent_id=names.get(agent or ""), session_id=talk,
    text=text.strip(),
    since=days[0] if days else None,
    until=days[-1] + timedelta(days=1) if days else None,
    expired="expired" in flags, never_recalled="never recalled" in flags,
    ids=tuple(state.get("memories_ids", ())),
)  # fmt: skip
filtered = any(state.get(key) for key in KEYS)
if filter.ids:
    with st.container(horizontal=True, vertical_alignment="center"):
        said = present.count(len(filter.ids), "memory")
        st.markdown(f":blue-badge[:material/scatter_plot: {said} selected on the map]")
        st.button("Show all", key="memories_from_map", type="tertiary", icon=":material/close:",
                  on_click=lambda: state.pop("memories_ids", None))  # fmt: skip

bar = st.container(horizontal=True, vertical_alignment="center")
found = bar.container(width="stretch")
with bar:
    sort = st.selectbox("Sort", list(SORTS), format_func=SORTS.get, key="memories_sort", width=170,
                        label_visibility="collapsed", **bound)  # fmt: skip
    if st.button("Add", key="memories_add", icon=":material/add:"):
        acts.add_dialog(library.id)
    more = st.menu_button("More", ["Import…", "Export…", "Clean up…"], key="memories_menu",
                          icon=":material/more_vert:")  # fmt: skip

with messages.trouble("Reading the list"):
    counts = reads.facets(actor, filter)
    # The pager is drawn below the table, so a page in a fresh URL is read from there.
    asked = str(state.get("memories_page") or st.query_params.get("memories_page", 1))
    number = max(1, int(asked)) if asked.isdecimal() else 1
    page = reads.page(actor, filter, sort, SIZE, (number - 1) * SIZE)
    pages = max(1, -(-page.total // SIZE))
    if number > pages:
        # The page became empty: go to the last one that is not.
        number = pages
        page = reads.page(actor, filter, sort, SIZE, (number - 1) * SIZE)
    state["memories_page"] = number
said = statuses or [s for s in Status if counts.statuses[s]]
parts = [f"{counts.statuses[s]:,} {s}" for s in said]
found.markdown(f"**{present.count(page.total, 'memory')}** :gray[{' · '.join(parts)}]")
if more == "Export…":
    acts.export_dialog(filter, library.name, filtered)
elif more == "Import…":
    imports.import_dialog(library.id)
elif more == "Clean up…":
    acts.clean_up_dialog(library.id)

if not page.total:
    messages.nothing_here(clear=KEYS)
    st.stop()

shown = memory.opened()
left, right = st.columns([3, 2]) if shown else (st.container(), None)
ids = tuple(m.id for m in page.memories)
key = f"memories_table_{hash(ids)}_{state.get('memories_nonce', 0)}"
failed = [i for i, m in enumerate(ids) if m in state.get("memories_failed", [])]
with left:
    selected = st.container()
    event = st.dataframe(
        present.memories(page.memories, zone),
        column_config=present.memory_columns(zone),
        column_order=("content", "type") if shown else None,
        hide_index=True, key=key, selection_mode=["multi-row", "single-cell"],
        selection_default={"selection": {"rows": failed}} if failed else None,
        on_select=lambda: opened(ids, key), row_height=38, height="content", placeholder="–",
        alt=f"{present.count(page.total, 'memory')}, {SORTS[sort].lower()}",
    )  # fmt: skip
    st.pagination(pages, key="memories_page", bind="query-params")
ticked = [ids[row] for row in event.selection.rows]
with selected:
    acts.bulk_bar(ticked, filter, page.total)
if right:
    with right:
        memory.panel(shown, key="memories_detail")
