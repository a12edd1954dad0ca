"""The frame around every page: navigation, library, actor, title, notices; then the page itself.

The script of `st.App` in app.py (why: see there). A page is listed only if its file is there.
"""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from memcore.errors import MemcoreError
from pages.shared import messages, present, reads, session


@dataclass(frozen=True)
class Entry:
    file: str
    title: str
    icon: str
    help: str
    without: str
    """What this page still does while the database is away; empty: nothing, so it is not run."""


SECTIONS: dict[str, list[Entry]] = {
    "": [
        Entry("overview", "Overview", "space_dashboard",
              "What is stored, what the gate lets through, what agents recall.", ""),
    ],
    "Look": [
        Entry("memories", "Memories", "library_books",
              "Browse, filter, correct and export what is remembered.", ""),
        Entry("search", "Search", "manage_search",
              "Why was this recalled, or not, and in this order?", ""),
        Entry("map", "Map", "scatter_plot", "Memories by meaning: clusters and outliers.", ""),
        Entry("profiles", "Profiles", "account_circle",
              "What is known of a user or a project, and where from.", ""),
    ],
    "Tune": [
        Entry("gate", "Gate", "filter_alt", "Why was this stored, or not?", ""),
        Entry("playground", "Playground", "science",
              "Talk, and watch memories being proposed, judged and recalled.", ""),
        Entry("extraction", "Extraction", "neurology",
              "What an extractor makes of a conversation, and why.", ""),
        Entry("evaluation", "Evaluation", "fact_check",
              "Recall measured on labelled questions.", ""),
    ],
    "Run": [
        Entry("libraries", "Libraries", "database",
              "Settings, embedder and vector store of each library.", ""),
        Entry("checkpoints", "Checkpoints", "history",
              "Threads of LangGraph agents, step by step.", ""),
        Entry("admin", "Admin", "settings", "Model endpoints, vector stores and upkeep.", ""),
    ],
}  # fmt: skip

FIRST = "overview"
HERE = Path(__file__).parent


def retry() -> None:
    session.close()
    reads.forget()


SHARED = HERE / "shared"
# A Material icon would be fetched from the network; this one is ours.
st.set_page_config(layout="wide", page_icon=str(SHARED / "icon.svg"), page_title="memcore")
st.logo(str(SHARED / "logo.svg"), icon_image=str(SHARED / "icon.svg"), size="large")

entries: dict[str, Entry] = {}
pages: dict[str, list[st.Page]] = {}
for section, listed in SECTIONS.items():
    for entry in listed:
        if (HERE / f"{entry.file}.py").exists():
            page = st.Page(
                f"{entry.file}.py",
                url_path=f"{entry.file}_page" if entry.file == FIRST else entry.file,
                default=entry.file == FIRST,
                title=entry.title,
                icon=f":material/{entry.icon}:",
                help=entry.help,
            )
            pages.setdefault(section, []).append(page)
            entries[entry.title] = entry

# The first page's address is the bare one. Who types its name gets there too.
first = next(iter(pages.values()))[0]
named = st.Page(lambda: None, title=first.title, url_path=FIRST, visibility="hidden")
current = st.navigation({**pages, "": [*pages[""], named]})
if current is named:
    st.switch_page(first, query_params={k: st.query_params.get_all(k) for k in st.query_params})
shown = entries[current.title]

down: MemcoreError | None = None
with st.sidebar:
    try:
        libraries = {x.id: x.name for x in reads.libraries(session.actor())}
        users = reads.users()
    except MemcoreError as error:
        down, libraries, users = error, {}, []
    if libraries:
        if st.session_state.get("frame_library") not in (None, *libraries):
            del st.session_state["frame_library"]  # it was deleted
        st.selectbox(
            "Library",
            list(libraries),
            format_func=lambda i: libraries.get(i, i),
            key="frame_library",
            bind="query-params",
        )
        if st.session_state.get("frame_actor") not in (None, session.OPERATOR, *users):
            del st.session_state["frame_actor"]
        st.selectbox(
            "Act as",
            [session.OPERATOR, *users],
            format_func=lambda u: "Operator (sees all)" if u == session.OPERATOR else u,
            key="frame_actor",
            bind="query-params",
            help="Everything on every page is then limited to what this user may see.",
        )
    st.caption(f":material/schedule: Times in {present.zone_label(session.zone())}")

st.title(current.title, icon=current.icon, anchor=False)
st.caption(shown.help)
messages.notices()

if down is not None:
    messages.explain("Opening the database", down)
    st.button("Try again", key="frame_retry", icon=":material/refresh:", on_click=retry)
    if shown.without:
        st.info(shown.without, title="What still works here", icon=":material/info:")
    else:
        st.info(
            f"{shown.title} reads everything from the database, so it has nothing to show until "
            "the database answers. The console itself is running; stored memories are not touched.",
            icon=":material/info:",
        )
        st.stop()

current.run()
