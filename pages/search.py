"""Search: why was this recalled, or not, and in this order?"""

import streamlit as st

from memcore.models import Subject
from memcore.services.memories import Filter
from pages.shared import explained, memory, messages, reads, session

MODES = {"hybrid": "Both", "vector": "Vectors", "keyword": "Keywords"}
NOBODY = "None (a person)"

library = messages.need_library()
actor, state = session.actor(), st.session_state
with messages.trouble("Reading the library"):
    known = reads.facets(actor, Filter(library_id=library.id))
    agents = {a.name: a.id for a in reads.agents(actor, library.id)}
    budget = reads.settings(actor, library.id).context_token_budget
if not any(known.statuses.values()):
    messages.no_memories()
    st.stop()

users = list(known.users) if actor.operator else [actor.user_id]
offered = {
    "search_user": users,
    "search_project": list(known.projects),
    "search_agent": [NOBODY, *agents],
}
for key, options in offered.items():
    if state.get(key) not in (None, *options):
        del state[key]  # another library, or another person looks

with st.form("search_form"):
    query = st.text_input(
        "Query", key="search_query", bind="query-params", max_chars=4000, type="search",
        placeholder="What would an agent ask? Blank shows the newest memories.",
    )  # fmt: skip
    places = st.columns(5)
    user = places[0].selectbox("For the user", users, key="search_user", bind="query-params")
    project = places[1].selectbox(
        "In the project", offered["search_project"], None, key="search_project",
        bind="query-params", placeholder="None",
    )  # fmt: skip
    talk = places[2].selectbox(
        "In the session", list(known.sessions), None, key="search_session", bind="query-params",
        placeholder="None",
    )  # fmt: skip
    agent = places[3].selectbox(
        "As the agent", offered["search_agent"], key="search_agent", bind="query-params"
    )
    mode = places[4].selectbox(
        "Channels", list(MODES), format_func=MODES.get, key="search_mode", bind="query-params"
    )
    st.form_submit_button(
        "Search", key="search_go", type="primary", icon=":material/search:",
        on_click=reads.recall.clear,
    )  # fmt: skip

subject = Subject(library.id, user or "", project, talk, agents.get(agent or ""))
with messages.trouble("Recall"):
    result = reads.recall(actor, subject, query, mode)

if result.notice:
    st.info(messages.plain(result.notice), icon=":material/info:")
with st.container(horizontal=True):
    st.metric(
        "Searched", f"{result.documents:,}", border=True,
        help="Memories this user and agent may recall in these scopes.",
    )  # fmt: skip
    st.metric(
        "Candidates", len(result.candidates), border=True,
        help="Ranked: the best by score, the nearest by vector, the best by keyword.",
    )  # fmt: skip
    st.metric(f"Hits of at most {result.ranking.max_recall}", len(result.hits), border=True)
    laps = ", ".join(f"{name} {ms:.1f}" for name, ms in result.timings.items() if name != "total")
    st.metric("Took", f"{result.timings['total']:.1f} ms", border=True, help=f"Of it {laps} ms")

tabs = st.tabs(
    ["Hits", "Tune", f"Dropped ({len(result.dropped)})", "Why not?", "In the prompt",
     "Agents' recalls"],
    key="search_tabs",
)  # fmt: skip
with tabs[0]:
    if memory.opened():
        listed, beside = st.columns([3, 2])
        with beside:
            memory.panel(memory.opened(), key="search_detail")
    else:
        listed = st.container()
    with listed:
        explained.hits(result, subject, actor, wide=not memory.opened())
with tabs[1]:
    explained.tune(library, result)
with tabs[2]:
    explained.dropped(result)
with tabs[3]:
    explained.why(result, subject, actor, mode)
with tabs[4]:
    explained.prompt(result, budget)
with tabs[5]:
    explained.log(library, actor, {agent_id: name for name, agent_id in agents.items()})
