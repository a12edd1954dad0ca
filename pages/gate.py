"""Gate: why was this stored, or not, and what would other thresholds have done?"""

import streamlit as st

from memcore.models import Draft, MemoryType, Scope, Subject
from memcore.rules import gate
from memcore.services.history import DecisionFilter
from memcore.services.memories import Filter
from pages.shared import memory, messages, present, reads, session, verdicts

SIZE = 20
REPLAYED = [50, 200, 1000]

library = messages.need_library()
actor, state = session.actor(), st.session_state
with messages.trouble("Reading the library"):
    saved = reads.settings(actor, library.id).gate
    known = reads.facets(actor, Filter(library_id=library.id))
users = (list(known.users) or ["operator"]) if actor.operator else [actor.user_id]
if memory.opened():
    body, beside = st.columns([3, 2])
    with beside:
        memory.panel(memory.opened(), key="gate_detail")
else:
    body = st.container()
state["gate_shown"] = memory.opened()


def to_first_page() -> None:
    state["gate_page"] = 1


def chosen(ids: tuple[int, ...], key: str) -> None:
    """A click on a row opens that decision."""
    rows = state[key].selection.rows
    state["gate_open"] = ids[rows[0]] if rows else None


def try_a_text() -> tuple[Draft, Subject] | None:
    with st.form("gate_form"):
        # Not in the URL: what is tried here may hold a secret.
        text = st.text_area("Text", key="gate_text", height=100,
                            placeholder="What somebody, or an agent, wants remembered")  # fmt: skip
        fields = st.columns(5)
        user = fields[0].selectbox("User", users, key="gate_user", accept_new_options=True)
        kind = fields[1].selectbox("Type", list(MemoryType), 1, format_func=messages.words,
                                   key="gate_type")  # fmt: skip
        scope = fields[2].selectbox("Scope", list(Scope), 2, format_func=messages.words,
                                    key="gate_scope")  # fmt: skip
        place = fields[3].text_input("Project or session id", key="gate_place",
                                     help="Where the scope is project or session.")  # fmt: skip
        confidence = fields[4].number_input("Confidence", 0.0, 1.0, 0.8, 0.05,
                                            key="gate_confidence")  # fmt: skip
        st.form_submit_button(
            "Judge", key="gate_judge", type="primary", icon=":material/filter_alt:",
            on_click=reads.judged.clear,
        )  # fmt: skip
    if not text.strip():
        return None
    project = place or None if scope == Scope.PROJECT else None
    talk = place or None if scope == Scope.SESSION else None
    draft = Draft(text, memory_type=MemoryType(kind), scope=Scope(scope), confidence=confidence)
    return draft, Subject(library.id, user or "operator", project, talk)


@st.fragment
def tuned() -> None:
    if memory.opened() != state["gate_shown"]:
        st.rerun()  # a chip in here opened a memory, which stands beside
    thresholds, right = st.columns([1, 3], gap="large")
    with thresholds:
        st.markdown("**What if**")
        tried = verdicts.sliders(library, saved)
    with right:
        trial, again, log = st.tabs(["Try a text", "Replay", "History"], key="gate_tabs")
    with trial:
        asked = try_a_text()
        if asked is None:
            st.caption("All five checks are shown, with what is stored nearby. Nothing is stored.")
        else:
            with messages.trouble("Judging the text", stop=False):
                facts, before = reads.judged(actor, asked[1], asked[0])
                now = gate.judge(asked[0], facts, tried)
                verdicts.verdict(facts, now, before, key="gate_try")
    with again:
        number = st.segmented_control("Latest decisions", REPLAYED, default=200, required=True,
                                      key="gate_replayed")  # fmt: skip
        with messages.trouble("Reading the log", stop=False):
            decisions = reads.decisions(actor, DecisionFilter(library_id=library.id), number, 0)
            if decisions.decisions:
                verdicts.replay(decisions.decisions, tried)
            else:
                st.info("Nothing was judged yet.", icon=":material/inbox:")
    with log, messages.trouble("Reading the log", stop=False):
        history(tried)


def history(tried: gate.GateSettings) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.text_input("Text", key="gate_words", type="search", width=220,
                              on_change=to_first_page)  # fmt: skip
        outcomes = st.multiselect("Outcome", list(verdicts.OUTCOME), key="gate_outcomes",
                                  bind="query-params", placeholder="Any", width=220,
                                  on_change=to_first_page)  # fmt: skip
        blocked = st.multiselect("Blocked by", list(gate.CHECKS), key="gate_blocked",
                                 bind="query-params", placeholder="Any check", width=220,
                                 on_change=to_first_page)  # fmt: skip
        who = st.selectbox("User", users, None, key="gate_who", placeholder="Anyone", width=160,
                           on_change=to_first_page)  # fmt: skip
        waiting = st.toggle("Waiting for a person", key="gate_waiting", bind="query-params",
                            on_change=to_first_page)  # fmt: skip
    filter = DecisionFilter(
        library_id=library.id, outcomes=tuple(outcomes), blocked_by=tuple(blocked), user_id=who,
        text=words.strip(), waiting=waiting,
    )  # fmt: skip
    page = reads.decisions(actor, filter, SIZE, (state.get("gate_page", 1) - 1) * SIZE)
    said = " · ".join(f"{n:,} {o}" for o, n in page.outcomes.items())
    st.markdown(f"**{present.count(page.total, 'decision')}** :gray[{said}]")
    if not page.total:
        st.info("No decision matches.", icon=":material/filter_alt_off:")
        return
    ids = tuple(d.id for d in page.decisions)
    key = f"gate_log_{hash(ids)}"
    st.dataframe(
        verdicts.log_table(page.decisions), column_config=verdicts.log_columns(), hide_index=True,
        key=key, selection_mode="single-row", on_select=lambda: chosen(ids, key), height="content",
        placeholder="–", alt=f"{present.count(page.total, 'decision')} of the gate, newest first",
    )  # fmt: skip
    st.pagination(max(1, -(-page.total // SIZE)), key="gate_page")
    opened = next((d for d in page.decisions if d.id == state.get("gate_open")), None)
    if opened is not None:
        verdicts.decision(opened, tried)


with body:
    tuned()
