"""Overview: what is stored, what the gate lets through, what agents recall."""

import streamlit as st

from memcore.models import Scope, Status
from pages.shared import messages, present, reads, session

library = messages.need_library()
actor, zone = session.actor(), session.zone()
with messages.trouble("Counting"):
    minute = session.now().replace(second=0, microsecond=0)
    figures = reads.figures(actor, library.id, str(zone), minute)
    agents = reads.agents(actor, library.id)

if library.description:
    st.markdown(messages.plain(library.description))
bound = ", ".join(messages.plain(a.name) for a in agents) or "no agent yet"
st.caption(
    f":material/model_training: {messages.plain(library.embedder)}, {library.dimensions} dimensions"
    f" · :material/database: {messages.plain(library.vector_store)}"
    f" · :material/smart_toy: {bound}"
)
total = sum(figures.statuses.values())
if not total:
    messages.no_memories()
    st.stop()

SAID = {
    Status.ACTIVE: "Recalled when they fit",
    Status.ARCHIVED: "Kept, recalled only on demand",
    Status.SUPPRESSED: "In no recall at all",
    Status.SUPERSEDED: "Replaced by a newer one",
}
with st.grid(4):
    for status in Status:
        color, icon = messages.STATUS[status]
        with st.container(border=True, height="stretch", gap="xsmall", key=f"overview_{status}"):
            st.markdown(f":{color}[:material/{icon}:] {status.capitalize()}")
            st.metric(status, f"{figures.statuses[status]:,}", label_visibility="collapsed")
            st.caption(SAID[status])
            session.link("memories", "Open", icon=":material/arrow_forward:",
                         memories_status=str(status))  # fmt: skip
if figures.expired:
    session.link(
        "memories",
        f"{present.count(figures.expired, 'active memory', 'active memories')} past expiry: no "
        "longer recalled, archived by the next sweep",
        icon=":material/hourglass_bottom:",
        memories_status="active", memories_state="expired",
    )  # fmt: skip

left, right = st.columns([3, 2])
with left.container(border=True, height="stretch"):
    st.markdown(f"**Stored per day** :gray[last {figures.window_days} days, "
                f"{present.zone_label(zone)}]")  # fmt: skip
    st.plotly_chart(
        present.per_day(figures, minute.astimezone(zone).date()), key="overview_days",
        config=present.PLOTLY, alt=f"{total} memories by the day they were stored",
    )  # fmt: skip
with right.container(border=True, height="stretch"):
    st.markdown("**Active by type**")
    st.plotly_chart(
        present.by_type(figures), key="overview_types", config=present.PLOTLY,
        alt="Active memories by type, most frequent first",
    )  # fmt: skip

gate, recall = st.columns(2)
with gate.container(border=True, height="stretch"):
    st.markdown(f"**Gate** :gray[last {figures.window_days} days]")
    if figures.judged:
        share, blocked = st.columns([2, 3])
        share.metric("Pass rate", f"{figures.accepted / figures.judged:.0%}",
                     help="Drafts stored, of all that were judged")  # fmt: skip
        share.caption(f"{figures.accepted:,} of {figures.judged:,} drafts")
        with blocked:
            st.caption("Blocked first by")
            names = sorted(figures.blocked.items(), key=lambda x: -x[1])
            st.markdown("  \n".join(f"{n:,} :red-badge[{messages.words(b)}]" for b, n in names)
                        or "nothing")  # fmt: skip
        for line in reads.latest_decisions(actor, library.id, 5):
            passed = line.outcome in ("stored", "update")
            said = line.outcome if not line.reason else f"{line.outcome}: {line.reason}"
            messages.line(line, messages.outcome_badge(passed, said), session.now())
        session.link("gate", "All decisions, and replay", icon=":material/arrow_forward:")
    else:
        st.caption("Nothing was judged yet.")
with recall.container(border=True, height="stretch"):
    st.markdown(f"**Recall** :gray[last {figures.window_days} days]")
    if figures.recalls:
        share, speed = st.columns([2, 3])
        share.metric("Found something", f"{figures.recalls_with_hits / figures.recalls:.0%}")
        share.caption(f"{figures.recalls_with_hits:,} of {figures.recalls:,} recalls")
        if figures.recall_ms is not None:
            speed.metric("Median time", f"{figures.recall_ms:.0f} ms")
        for line in reads.latest_recalls(actor, library.id, 5):
            hits = present.count(int(line.outcome), "hit")
            messages.line(line, messages.outcome_badge(int(line.outcome) > 0, hits), session.now())
        session.link("search", "Search it yourself", icon=":material/arrow_forward:")
    else:
        st.caption("No agent has recalled anything yet.")

with st.container(horizontal=True):
    st.caption("Active by scope")
    for scope in Scope:
        session.link("memories", f"{figures.scopes.get(scope, 0):,} {scope}",
                     icon=f":material/{messages.SCOPE[scope]}:",
                     memories_status="active", memories_scope=str(scope))  # fmt: skip
