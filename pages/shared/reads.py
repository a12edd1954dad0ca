"""Every cached read of the console, and `forget`.

`st.cache_data` is one cache for the whole server, so each read takes the actor as a hashed
argument; a read without one could hand one person's rows to another's browser. Results are value
objects. Entries live a few seconds only: agents write beside the console, and a list must not stay
stale. `ttl` and `max_entries` bound memory. A write through the console calls `forget()`.
"""

from __future__ import annotations

import streamlit as st

from memcore.models import Actor, Library
from memcore.rules.aggregation import Profile
from memcore.services.profiles import Kind
from pages.shared import session

SHORT = 3
"""Seconds a list or count may be old."""
LONG = 600
"""Seconds a recall or projection is kept, so that sliders re-rank without I/O."""


def forget() -> None:
    """Drop every cached read. Call after each write."""
    st.cache_data.clear()


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
