"""One memory, whole: text, fields, history, links both ways, source conversation, and what may be
done with it. Any page that shows memories can draw it beside its list.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from memcore.models import TRANSITIONS, Memory, Status
from memcore.services.history import Change
from memcore.text import shorten
from pages.shared import acts, messages, present, reads, session

_ACTION = {
    "add": ("add_circle", "stored"),
    "status": ("swap_horiz", "status changed"),
    "edit": ("edit", "edited"),
    "delete": ("delete", "deleted"),
    "supersede": ("update", "replaced by a newer memory"),
    "undo": ("undo", "undone"),
    "expire": ("hourglass_bottom", "expired"),
}

# The link to the newer memory stands above; a hash and a version say nothing to people.
_SAID_ELSEWHERE = {"superseded_by", "content_hash", "version", "vector_id", "had_replaced"}


def open_memory(memory_id: str) -> None:
    """Callback: show this memory. Its id stands in the URL."""
    st.query_params["memory"] = memory_id


def close() -> None:
    st.query_params.pop("memory", None)


def opened() -> str | None:
    """Id of the memory the URL names."""
    return st.query_params.get("memory")


def panel(memory_id: str, *, key: str) -> None:
    """Draw it in a card. `key` sets two panels on one page apart."""
    actor, zone = session.actor(), session.zone()
    with st.container(border=True, key=f"{key}_panel"):
        head = st.container(horizontal=True, wrap=False, gap="small")
        with messages.trouble("Opening the memory"):
            memory = reads.memory(actor, memory_id)
            links = reads.links(actor, memory_id)
        head.markdown(" ".join(badges(memory)), width="stretch")
        head.button(
            "", icon=":material/close:", key=f"{key}_close", type="tertiary", on_click=close,
            help="Close",
        )  # fmt: skip
        if memory.title:
            st.markdown(f"**{messages.plain(memory.title)}**")
        st.markdown(messages.plain(memory.content).replace("\n", "  \n"))
        if memory.tags:
            st.caption(" ".join(f":gray-badge[{messages.plain(t)}]" for t in memory.tags))
        if links.replaced_by:
            _link("Replaced by", links.replaced_by, key)
        for older in links.replaces:
            _link("Replaces", older, key)
        _actions(memory, key)
        fields, history, origin = st.tabs(["Fields", "History", "Conversation"], key=f"{key}_tabs")
        with fields:
            st.table(_fields(memory, zone), border="horizontal", alt="Fields of this memory")
        with history, messages.trouble("Reading the history", stop=False):
            for change in reads.changes(actor, memory_id):
                _change(change, zone, key)
        with origin, messages.trouble("Reading the conversation", stop=False):
            _origin(memory)


def badges(memory: Memory) -> list[str]:
    """Status, type, scope, visibility, and whether it is past its expiry."""
    out = [
        messages.status_badge(memory.status),
        messages.type_badge(memory.memory_type),
        messages.scope_badge(memory.scope, memory.scope_id),
        messages.visibility_badge(memory.visibility),
    ]
    if memory.expires_at and memory.expires_at <= session.now():
        out.append(":orange-badge[:material/hourglass_bottom: expired]")
    return out


def _actions(memory: Memory, key: str) -> None:
    with st.container(horizontal=True, gap="xsmall"):
        for status in sorted(TRANSITIONS[memory.status]):
            verb, _, icon = acts.VERB[status]
            st.button(
                verb, key=f"{key}_{status}", icon=f":material/{icon}:",
                on_click=acts.set_status, args=((memory.id,), status),
            )  # fmt: skip
        if st.button("", key=f"{key}_edit", icon=":material/edit:", help="Edit"):
            acts.edit_dialog(memory)
        if st.button("", key=f"{key}_delete", icon=":material/delete:", help="Delete"):
            acts.delete_dialog((memory.id,))
    if memory.status is Status.ACTIVE:
        st.caption(
            "Archived: not recalled unless asked for. Suppressed: takes part in no recall at all."
        )


def _link(said: str, other: Memory, key: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":gray[{said}]", width="content")
        st.button(
            messages.plain(shorten(other.content, 70)), key=f"{key}_to_{other.id}",
            type="tertiary", icon=":material/arrow_outward:", on_click=open_memory,
            args=(other.id,),
        )  # fmt: skip


def _fields(memory: Memory, zone: Any) -> dict[str, str]:
    """Every field under its name; empty ones left out."""
    agents = {a.id: a.name for a in reads.agents(session.actor())}
    used = memory.last_used_at
    values: dict[str, Any] = {
        "Confidence": f"{memory.confidence:.2f}",
        "Recalled by agents": f"{memory.access_count} times, last {present.when(used, zone)}"
        if used
        else "never",
        "Relevance of the last recall": f"{memory.relevance:.2f}" if memory.access_count else "–",
        "Expires": present.when(memory.expires_at, zone),
        "User": memory.user_id,
        "Project": memory.project_id,
        "Session": memory.conversation_id,
        "Agent": agents.get(memory.agent_id or "", memory.agent_id) or "none: written by a person",
        "Shared between agents": "yes" if memory.shared else "no",
        "Category": memory.category,
        "Source": " ".join(filter(None, (memory.source, memory.source_id))),
        "Created": f"{present.when(memory.created_at, zone)} by {memory.created_by}",
        "Updated": f"{present.when(memory.updated_at, zone)}, version {memory.version}",
        "Vector": "there" if memory.vector_id else "missing: rebuild it with reindex",
        "Id": memory.id,
    }
    values |= {f"Attribute {k}": v for k, v in memory.attributes.items()}
    return {k: messages.plain(str(v)) for k, v in values.items() if v not in (None, "")}


def _change(change: Change, zone: Any, key: str) -> None:
    icon, said = _ACTION.get(change.action, ("circle", change.action))
    who = f"{present.when(change.at, zone)} by {messages.plain(change.actor)}"
    struck = " :gray-badge[undone]" if change.undone else ""
    st.markdown(f":material/{icon}: **{said}**{struck}  \n:gray[{who}]")
    for name, (before, after) in change.fields.items():
        if name in _SAID_ELSEWHERE:
            continue
        old, new = (shorten(_said(value), 160) for value in (before, after))
        st.caption(
            f"{messages.words(name)}: {messages.plain(old)} "
            f":material/arrow_forward: {messages.plain(new)}"
        )


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)


def _origin(memory: Memory) -> None:
    if memory.conversation_id is None:
        st.caption("It was not taken from a conversation.")
        return
    origin = reads.origin(session.actor(), memory.id)
    if origin is None:
        st.caption("The conversation is not stored here, or it is another user's.")
        return
    st.caption(messages.plain(origin.title or origin.conversation_id))
    for turn in origin.turns:
        with st.chat_message("user" if turn.role == "user" else "assistant"):
            marked = " :violet-badge[:material/arrow_back: the source]" if turn.source else ""
            st.markdown(messages.plain(turn.content) + marked)
