"""Checkpoints: threads of LangGraph agents, step by step."""

from datetime import timedelta
from importlib.util import find_spec

import streamlit as st

from memcore.services.checkpoints.index import STATUSES, metadata_value
from pages.shared import (
    messages,
    present,
    reads,
    session,
    thread,
    thread_reads,
    thread_space,
    thread_tables,
)

SIZE = 25
ORDERS = {"activity": "Newest activity", "oldest": "Oldest activity", "size": "Largest",
          "checkpoints": "Most checkpoints"}  # fmt: skip
MATCHES = {"contains": "contains", "prefix": "begins with", "exact": "is exactly"}
ACTIVE = {"Any time": None, "Last hour": -1, "Last day": -24, "Last week": -168,
          "Not for a day": 24, "Not for a week": 168}  # fmt: skip
"""Hours: negative ones bound the last activity from below, others from above."""
KEYS = ["checkpoints_search", "checkpoints_metadata", "checkpoints_status", "checkpoints_active"]
actor, zone, state = session.actor(), session.zone(), st.session_state

with messages.trouble("Opening the checkpoint database"):
    source = thread_reads.checkpoint_source(actor)


def load_demo() -> None:
    with messages.attempt("Loading the demo threads"):
        from memcore.demo import threads

        count = threads.load(session.service())
        messages.done(f"{present.count(count, 'demo thread')} written by a scripted agent.")
    reads.forget()


def nothing_yet() -> None:
    """Neither tables nor threads: how to get some."""
    with messages.empty(
        "history", "No thread yet",
        "Every agent that runs with the saver memcore offers leaves its threads here, step by "
        "step. Or point CHECKPOINT_DATABASE_URL at a database that LangGraph writes to already.",
    ):  # fmt: skip
        st.code("graph = builder.compile(checkpointer=core.checkpoints.saver())", "python",
                width=560)  # fmt: skip
        if source.read_only:
            st.caption("This database is marked read-only: no demo threads can be written.",
                       text_alignment="center")  # fmt: skip
        elif find_spec("langgraph") is None:
            st.caption("Demo threads need LangGraph: pip install 'memcore[langgraph]'",
                       text_alignment="center")  # fmt: skip
        else:
            st.button("Load demo threads", key="checkpoints_demo", type="primary",
                      icon=":material/auto_awesome:", on_click=load_demo)  # fmt: skip
        st.space("small")


with st.container(horizontal=True, vertical_alignment="center"):
    if st.query_params.get("thread"):
        st.button("All threads", key="checkpoints_back", icon=":material/arrow_back:",
                  on_click=thread.close)  # fmt: skip
    lock = ":gray-badge[:material/lock: read-only]" if source.read_only else ""
    st.markdown(f":material/database: Reads {thread_tables.place(source)} {lock}", width="stretch")
    if source.ready and not st.query_params.get("thread"):
        view = st.segmented_control(
            "View", ["Threads", "Space", "Archive"], default="Threads", required=True,
            key="checkpoints_view", bind="query-params", label_visibility="collapsed",
        )  # fmt: skip

if not source.ready:
    nothing_yet()
    st.stop()
if chosen := st.query_params.get("thread"):
    thread.panel(chosen, source)
    st.stop()
if view == "Space":
    thread_space.whole(source)
    st.stop()
if view == "Archive":
    thread_space.archive(source)
    st.stop()


def to_first_page() -> None:
    state["checkpoints_page"] = 1


def parsed(text: str) -> dict[str, object]:
    """user_id=ann plan="pro" → the metadata to look for."""
    out: dict[str, object] = {}
    for word in text.split():
        key, found, value = word.partition("=")
        if found and key:
            out[key] = metadata_value(value)
    return out


bound = {"bind": "query-params", "on_change": to_first_page}
with st.container(horizontal=True, vertical_alignment="bottom"):
    match = st.selectbox("Thread id", list(MATCHES), format_func=MATCHES.get, width=130,
                         key="checkpoints_match", **bound)  # fmt: skip
    search = st.text_input("Searched id", key="checkpoints_search", type="search", width=170,
                           placeholder="All or part of it", label_visibility="collapsed",
                           **bound)  # fmt: skip
    metadata = st.text_input("Metadata", key="checkpoints_metadata", width=160,
                             placeholder="user_id=ann", **bound)  # fmt: skip
    active = st.selectbox("Active", list(ACTIVE), key="checkpoints_active", width=130,
                          **bound)  # fmt: skip
    status = st.pills("Status", STATUSES, format_func=str, key="checkpoints_status",
                      **bound)  # fmt: skip

with messages.trouble("Reading the threads"):
    order = state.get("checkpoints_sort", "activity")
    number = state.get("checkpoints_page", 1)
    bounds = (None, None)
    if hours := ACTIVE[active]:
        edge = session.now().replace(second=0, microsecond=0) - timedelta(hours=abs(hours))
        bounds = (edge, None) if hours < 0 else (None, edge)
    page = thread_reads.threads(actor, search.strip(), match, parsed(metadata), status, *bounds,
                                order, SIZE, (number - 1) * SIZE)  # fmt: skip
if not page.total:
    if any(state.get(k) for k in KEYS):
        messages.nothing_here("thread", clear=KEYS)
    else:
        nothing_yet()
    st.stop()

how = ""
if search.strip():
    how = f" whose id {MATCHES[match]} {search.strip()}"
    if match != "exact":
        how += "; one has exactly this id" if page.exact else "; none has exactly this id"
with st.container(horizontal=True, vertical_alignment="center"):
    st.markdown(f"**{present.count(page.total, 'thread')}**:gray[{messages.plain(how)}]",
                width="stretch")  # fmt: skip
    st.selectbox("Sort", list(ORDERS), format_func=ORDERS.get, width=170, key="checkpoints_sort",
                 label_visibility="collapsed", **bound)  # fmt: skip
ids = tuple(t.thread_id for t in page.threads)
key = f"checkpoints_table_{hash(ids)}"


def opened() -> None:
    """A click on a cell or a tick opens that row's thread."""
    chosen = state[key].selection
    rows = [*chosen.rows, *(cell[0] for cell in chosen.cells)]
    if rows:
        thread.open_thread(ids[rows[-1]])


st.dataframe(
    thread_tables.threads(page.threads, zone, session.now()), key=key, hide_index=True,
    column_config=thread_tables.thread_columns(zone), on_select=opened, height="content",
    selection_mode=["single-row", "single-cell"], row_height=38,
    alt=f"{present.count(page.total, 'thread')}, {ORDERS[order].lower()} first",
)  # fmt: skip
st.pagination(max(1, -(-page.total // SIZE)), key="checkpoints_page", bind="query-params")
