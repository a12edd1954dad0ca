"""Every cached read of the console, and `forget`.

`st.cache_data` is one cache for the whole server, so each read takes the actor as a hashed
argument; a read without one could hand one person's rows to another's browser. Results are value
objects. Entries live a few seconds only: agents write beside the console, and a list must not stay
stale. `ttl` and `max_entries` bound memory. A write through the console calls `forget()`.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import streamlit as st

from memcore.explanations import LoggedRecall, WhyNot
from memcore.extraction.runs import Run
from memcore.models import (
    Actor,
    Agent,
    ConfiguredStore,
    Conversation,
    Draft,
    Endpoint,
    Facts,
    Library,
    Memory,
    Message,
    Scope,
    SearchResult,
    Subject,
    Verdict,
)
from memcore.rules.aggregation import Profile
from memcore.services.conversations import Context
from memcore.services.history import (
    Change,
    DecisionFilter,
    DecisionPage,
    Figures,
    Glance,
    Links,
    Origin,
)
from memcore.services.libraries import Card, Contents, Health, Pair, Statistics
from memcore.services.memories import Facets, Filter, Mode, Page
from memcore.services.profiles import Kind
from memcore.services.projection import Comparison, Job, Known, Landing, MapView
from memcore.services.stores import StoreStatus
from memcore.services.transfer import Form
from memcore.settings import LibrarySettings
from pages.shared import session

SHORT = 3
"""Seconds a list or count may be old."""
LONG = 600
"""Seconds a recall or projection is kept, so that sliders re-rank without I/O."""


def forget() -> None:
    """Drop every cached read. Call after each write."""
    st.cache_data.clear()
    map_view.clear()
    map_comparison.clear()


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def libraries(actor: Actor) -> list[Library]:
    """All libraries, in the order they were made."""
    return session.service().libraries.all()


@st.cache_data(ttl=SHORT, max_entries=200, show_spinner=False)
def actor(user_id: str) -> Actor:
    """The user with roles from the database. Takes no actor: it makes one."""
    return session.service().people.actor(user_id)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def users() -> list[str]:
    """Ids of all known users, for "Act as". Only the frame of an operator's console calls this."""
    return session.service().people.users()


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def profile_subjects(actor: Actor, library_id: str) -> list[tuple[Kind, str, int]]:
    """Users and projects with active memories the actor may see, and how many."""
    return session.service().profiles.subjects(library_id=library_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def profile(actor: Actor, library_id: str, kind: Kind, subject_id: str) -> Profile:
    """One profile as the actor may see it."""
    profiles = session.service().profiles
    return profiles.get(kind, subject_id, library_id=library_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def projects() -> list[str]:
    """Ids of all projects, for forms. Ids are not secret; what is in them is."""
    return session.service().people.projects()


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def agents(actor: Actor, library_id: str | None = None) -> list[Agent]:
    """Agents bound to the library, or all, by name."""
    return session.service().libraries.agents(library_id)


# ---- memories -----------------------------------------------------------------------------------


@st.cache_data(ttl=SHORT, max_entries=200, show_spinner=False)
def page(actor: Actor, filter: Filter, sort: str, limit: int, offset: int) -> Page:
    """One page of memories and the total."""
    return session.service().memories.browse(
        filter, actor=actor, sort=sort, limit=limit, offset=offset
    )


@st.cache_data(ttl=SHORT, max_entries=100, show_spinner=False)
def facets(actor: Actor, filter: Filter) -> Facets:
    """What there is to filter by, with counts."""
    return session.service().memories.facets(filter, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=200, show_spinner=False)
def memory(actor: Actor, memory_id: str) -> Memory:
    return session.service().memories.get(memory_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=200, show_spinner=False)
def changes(actor: Actor, memory_id: str) -> list[Change]:
    """The memory's history, newest first."""
    return session.service().history.of_memory(memory_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=200, show_spinner=False)
def links(actor: Actor, memory_id: str) -> Links:
    """What it replaced and what replaced it."""
    return session.service().history.links(memory_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=200, show_spinner=False)
def origin(actor: Actor, memory_id: str) -> Origin | None:
    """The conversation it came from, where the actor may read it."""
    return session.service().history.origin(memory_id, actor=actor)


@st.cache_data(ttl=60, max_entries=3, show_spinner="Writing the file…")
def export(actor: Actor, filter: Filter, form: Form) -> tuple[bytes, int]:
    """The file's bytes and its number of memories."""
    lines = list(session.service().transfer.export(filter, actor=actor, form=form))
    return "".join(lines).encode("utf-8"), len(lines) - (form == "csv")


# ---- overview -----------------------------------------------------------------------------------


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def figures(actor: Actor, library_id: str, zone: str, now: datetime) -> Figures:
    """Counts of a library. `zone`: name of the viewer's; `now`: to the minute, so that it is
    counted at most once a minute and after each write."""
    return session.service().history.figures(library_id, actor=actor, zone=ZoneInfo(zone), now=now)


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def latest_decisions(actor: Actor, library_id: str, limit: int = 8) -> list[Glance]:
    return session.service().history.latest_decisions(library_id, actor=actor, limit=limit)


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def latest_recalls(actor: Actor, library_id: str, limit: int = 8) -> list[Glance]:
    return session.service().history.latest_recalls(library_id, actor=actor, limit=limit)


# ---- libraries and what they stand on -----------------------------------------------------------


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def cards(actor: Actor, search: str) -> list[Card]:
    """One for each library whose name contains `search`."""
    return session.service().libraries.cards(search=search)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def statistics(actor: Actor, library_id: str) -> Statistics:
    return session.service().libraries.statistics(library_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def contents(actor: Actor, library_id: str) -> Contents:
    """What goes with the library when it is deleted."""
    return session.service().libraries.contents(library_id)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def health(actor: Actor, library_id: str) -> Health:
    return session.service().libraries.health(library_id)


@st.cache_data(ttl=LONG, max_entries=20, show_spinner=False)
def pairs(actor: Actor, library_id: str, collection_id: int, around: float) -> list[Pair]:
    """Pairs of memories around a threshold. Contents: the operator's only."""
    return session.service().libraries.pairs(library_id, around=around) if actor.operator else []


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def endpoints(actor: Actor) -> list[Endpoint]:
    """Shared endpoints and the actor's own, keys masked."""
    return session.service().endpoints.all(actor=actor)


@st.cache_data(ttl=SHORT, max_entries=5, show_spinner=False)
def stores(actor: Actor) -> list[ConfiguredStore]:
    """Vector stores beside the main database's, secrets masked."""
    return session.service().stores.all()


@st.cache_data(ttl=30, max_entries=20, show_spinner="Asking the store…")
def store_status(actor: Actor, store_id: str) -> StoreStatus:
    return session.service().stores.test(store_id)


# ---- the map ------------------------------------------------------------------------------------


@st.cache_data(ttl=1, max_entries=50, show_spinner=False)
def map_state(actor: Actor, library_id: str) -> tuple[list[Known], Job | None, str]:
    """The library's pictures, its newest drawing, and a stamp that changes with its memories."""
    service = session.service().projection
    return service.pictures(library_id), service.job(library_id), service.stamp(library_id)


@st.cache_resource(ttl=LONG, max_entries=6, show_spinner=False)
def map_view(actor: Actor, library_id: str, picture_id: str, stamp: str) -> MapView:
    """The picture as the actor may see it, until a memory of the library changes. Not copied for
    each reader, because a hundred thousand points are many: never change it."""
    service = session.service().projection
    service.catch_up(picture_id, library_id)
    return service.view(library_id, actor=actor, picture_id=picture_id)


@st.cache_data(ttl=LONG, max_entries=20, show_spinner=False)
def map_pairs(actor: Actor, picture_id: str, stamp: str) -> list[tuple[str, str, float]]:
    """Near-duplicate pairs the actor sees both of, most similar first."""
    return session.service().projection.pairs(picture_id, actor=actor)


@st.cache_data(ttl=LONG, max_entries=50, show_spinner=False)
def map_nearest(actor: Actor, picture_id: str, memory_id: str, stamp: str) -> list[str]:
    """The memories truly nearest to one, nearest first."""
    return session.service().projection.nearest(picture_id, memory_id, actor=actor)


@st.cache_resource(ttl=LONG, max_entries=4, show_spinner=False)
def map_comparison(
    actor: Actor, library_id: str, left_id: str, right_id: str, stamp: str
) -> Comparison:
    """Two pictures of the library, the second laid over the first."""
    left = map_view(actor, library_id, left_id, stamp)
    right = map_view(actor, library_id, right_id, stamp)
    return session.service().projection.compare(left, right, actor=actor)


@st.cache_data(ttl=LONG, max_entries=50, show_spinner=False)
def map_query(
    actor: Actor, library_id: str, picture_id: str, query: str, user_id: str,
    project_id: str | None, stamp: str,
) -> tuple[Landing | None, SearchResult]:  # fmt: skip
    """Where a query lands, and what a recall for that user makes of it."""
    service = session.service()
    landing = service.projection.locate(library_id, query, actor=actor, picture_id=picture_id)
    subject = Subject(library_id, user_id, project_id)
    return landing, service.memories.recall(query, subject=subject, actor=actor)


@st.cache_data(ttl=LONG, max_entries=20, show_spinner=False)
def map_ids(actor: Actor, filter: Filter, stamp: str) -> list[str]:
    """Ids of the memories a filter leaves."""
    return session.service().memories.ids(filter, actor=actor, limit=1_000_000)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def duplicate_threshold(actor: Actor, library_id: str) -> float:
    """From which cosine on the library's gate compares drafts as possible duplicates."""
    settings = session.service().libraries.settings(library_id).settings
    return settings.gate.duplicate_threshold


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def project_of(actor: Actor, library_id: str, user_id: str) -> str | None:
    """The project a user last wrote a memory for in the library, as the actor may see them."""
    filter = Filter(library_id=library_id, user_id=user_id, scopes=(Scope.PROJECT,))
    latest = session.service().memories.browse(filter, actor=actor, limit=1)
    return latest.memories[0].project_id if latest.memories else None


# ---- search -------------------------------------------------------------------------------------


@st.cache_data(ttl=LONG, max_entries=50, show_spinner=False)
def recall(actor: Actor, subject: Subject, query: str, mode: Mode | None) -> SearchResult:
    """What a search finds; counts nothing as use. Kept for long, so that sliders rank again
    without I/O; searching again clears it."""
    return session.service().memories.recall(query, subject=subject, actor=actor, mode=mode)


@st.cache_data(ttl=SHORT, max_entries=100, show_spinner=False)
def why_not(
    actor: Actor, subject: Subject, query: str, mode: Mode | None, memory_id: str
) -> WhyNot:
    return session.service().memories.why_not(
        memory_id, query, subject=subject, actor=actor, mode=mode
    )


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def judgements(actor: Actor, library_id: str, query: str) -> dict[str, bool]:
    """Memory id → said to be right or wrong for this query."""
    return session.service().recalls.judgements(library_id, query, actor=actor)


@st.cache_data(ttl=60, max_entries=20, show_spinner=False)
def logged_recalls(actor: Actor, library_id: str, limit: int) -> tuple[LoggedRecall, ...]:
    """The agents' latest recalls with their facts, for replay."""
    return session.service().recalls.latest(library_id, actor=actor, limit=limit)


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def settings(actor: Actor, library_id: str) -> LibrarySettings:
    """Effective settings of a library."""
    return session.service().libraries.settings(library_id).settings


# ---- conversations ------------------------------------------------------------------------------


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def conversations(actor: Actor, library_id: str, user_id: str | None = None) -> list[Conversation]:
    """The latest conversations, of one user or of all the actor may read."""
    return session.service().conversations.conversations(
        actor=actor, library_id=library_id, user_id=user_id, limit=30
    )


@st.cache_data(ttl=SHORT, max_entries=100, show_spinner=False)
def messages(actor: Actor, session_id: str) -> tuple[Message, ...]:
    """A conversation's messages, oldest first."""
    return session.service().conversations.messages(session_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=100, show_spinner=False)
def run(actor: Actor, run_id: str) -> Run:
    """One extraction."""
    return session.service().conversations.run(run_id, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def runs(actor: Actor, library_id: str, limit: int = 50) -> list[Run]:
    """The latest extractions of a library."""
    return session.service().conversations.runs(actor=actor, library_id=library_id, limit=limit)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def chat_models(actor: Actor, library_id: str) -> dict[str, str]:
    """What can extract: setting value → its name for people. The first is the library's own."""
    service = session.service()
    own = service.libraries.settings(library_id).settings.extraction_model
    found = {"": "Offline rules"}
    for endpoint in service.endpoints.all(actor=actor):
        if endpoint.kind == "chat":
            found[f"endpoint:{endpoint.id}"] = f"{endpoint.name}: {endpoint.model}"
    if own and own not in found:
        found[own] = own
    return {own: found.pop(own), **found}


# ---- gate ---------------------------------------------------------------------------------------


@st.cache_data(ttl=LONG, max_entries=50, show_spinner=False)
def judged(actor: Actor, subject: Subject, draft: Draft) -> tuple[Facts, Verdict]:
    """What the gate says to a draft, with its facts, so that sliders judge again without I/O."""
    return session.service().memories.validate_memory(draft, subject=subject, actor=actor)


@st.cache_data(ttl=SHORT, max_entries=50, show_spinner=False)
def decisions(actor: Actor, filter: DecisionFilter, limit: int, offset: int) -> DecisionPage:
    """One page of the gate's log."""
    return session.service().history.decisions(filter, actor=actor, limit=limit, offset=offset)


@st.cache_data(ttl=SHORT, max_entries=20, show_spinner=False)
def context(actor: Actor, subject: Subject, message: str) -> Context:
    """The prompt for a message, looked at without a trace."""
    return session.service().conversations.build_context(
        message, subject=subject, actor=actor, preview=True
    )
