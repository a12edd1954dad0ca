"""What people do to memories, on whichever page they meet them: callbacks that write, and the
dialogs that ask first. Each write says what it did, offers its own undo, and names what it could
not do; whoever calls gets back through session state, never through a row's position.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time

import streamlit as st

from memcore import demo
from memcore.demo import threads
from memcore.models import Memory, MemoryType, Scope, Status, Subject, Visibility
from memcore.services.memories import Changed, Filter
from memcore.services.transfer import file_name
from memcore.text import shorten
from pages.shared import messages, present, reads, session

VERB = {
    Status.ACTIVE: ("Reactivate", "reactivated", "check_circle"),
    Status.ARCHIVED: ("Archive", "archived", "inventory_2"),
    Status.SUPPRESSED: ("Suppress", "suppressed", "visibility_off"),
}
"""A status a person may set → what the button says, what the report says, its icon."""

TYPED_FROM = 10
"""From this many memories on, deleting asks for the number to be typed."""


def report(changed: Changed, said: str) -> None:
    """Say what an act on many did and did not do. The ones it did not do stay selected."""
    failed = dict(changed.refused)
    st.session_state["memories_failed"] = list(failed)
    st.session_state["memories_nonce"] = st.session_state.get("memories_nonce", 0) + 1
    if changed.done:
        text = f"{present.count(len(changed.done), 'memory')} {said}."
        messages.done(text, undo=changed.batch_id)
    if failed:
        title = f"{len(changed.done)} {said}, {len(failed)} not"
        lines = [f"{_name(memory_id)}: {why}" for memory_id, why in list(failed.items())[:20]]
        if len(failed) > 20:
            lines.append(f"and {len(failed) - 20} more")
        messages.warn(title, lines)


def _name(memory_id: str) -> str:
    """A memory as its actor would know it: some of its text, or its id where it is gone."""
    page = session.service().memories.browse(
        Filter(ids=(memory_id,)), actor=session.actor(), limit=1
    )
    return f"“{shorten(page.memories[0].content, 60)}”" if page.memories else memory_id[:8]


def chosen(ids: Sequence[str], everything: Filter | None) -> list[str]:
    """The ids an act is for: those ticked, or all that match."""
    if everything is None:
        return list(ids)
    return session.service().memories.ids(everything, actor=session.actor())


# ---- callbacks ----------------------------------------------------------------------------------


def set_status(ids: Sequence[str], status: Status, everything: Filter | None = None) -> None:
    with messages.attempt(VERB[status][0]):
        changed = session.service().memories.change_status(
            chosen(ids, everything), status, actor=session.actor()
        )
        report(changed, VERB[status][1])
    reads.forget()


def _delete(ids: Sequence[str], everything: Filter | None) -> None:
    with messages.attempt("Deleting"):
        changed = session.service().memories.delete(chosen(ids, everything), actor=session.actor())
        report(changed, "deleted")
        if st.query_params.get("memory") in changed.done:
            del st.query_params["memory"]
        st.session_state["acts_close"] = True
    reads.forget()


def _save(memory_id: str, version: int) -> None:
    value = st.session_state
    day = value["edit_expires"]
    expires = datetime.combine(day, time(23, 59), session.zone()) if day else None
    with messages.attempt("Saving"):
        service = session.service()
        service.memories.edit(
            memory_id,
            actor=session.actor(),
            version=version,
            title=value["edit_title"],
            content=value["edit_content"],
            memory_type=value["edit_type"],
            tags=value["edit_tags"],
            confidence=value["edit_confidence"],
            visibility=value["edit_visibility"],
            shared=value["edit_shared"],
            expires_at=expires,
        )
        (change, *_) = service.history.of_memory(memory_id, actor=session.actor())
        messages.done("Changes saved.", undo=change.batch_id)
        value["acts_close"] = True
    reads.forget()


def _add(library_id: str) -> None:
    value = st.session_state
    with messages.attempt("Adding"):
        subject = Subject(
            library_id,
            value["add_user"],
            value.get("add_project") or None,
            value.get("add_session") or None,
        )
        added = session.service().memories.add_explicit_memory(
            value["add_content"],
            subject=subject,
            actor=session.actor(),
            memory_type=value["add_type"],
            scope=value["add_scope"],
            confidence=value["add_confidence"],
            visibility=value["add_visibility"],
        )
        if added.memory is not None:
            messages.done(f"Stored: {shorten(added.memory.content, 60)}")
            st.query_params["memory"] = added.memory.id
            value["acts_close"] = True
        else:
            blocked = next(c for c in added.verdict.checks if c.name == added.verdict.blocked_by)
            value["add_blocked"] = f"{blocked.name}: {blocked.note}"
    reads.forget()


# ---- dialogs ------------------------------------------------------------------------------------


def _close_when_done() -> None:
    messages.failures()
    if st.session_state.pop("acts_close", False):
        st.rerun()


@st.dialog("Delete memories", icon=":material/delete:", width="medium")
def delete_dialog(ids: Sequence[str], everything: Filter | None = None) -> None:
    """Asks first: how many, which, and what goes with them."""
    _close_when_done()
    wanted = chosen(ids, everything)
    number = len(wanted)
    samples = session.service().memories.browse(
        Filter(ids=tuple(wanted[:5])), actor=session.actor(), limit=5
    )
    st.markdown(
        f"**{present.count(number, 'memory')}** will be deleted, with its vector, its links and "
        "its place in profiles and the map. Undo brings it back until history is purged."
        if number == 1
        else f"**{present.count(number, 'memory')}** will be deleted, with their vectors, their "
        "links and their place in profiles and the map. Undo brings them back until history is "
        "purged."
    )
    for memory in samples.memories:
        st.markdown(f"- {messages.plain(shorten(memory.content, 120))}")
    if number > len(samples.memories):
        st.caption(f"and {number - len(samples.memories):,} more")
    ready = number > 0
    if number >= TYPED_FROM:
        typed = st.text_input(f"Type {number} to confirm", key="delete_typed", live=True)
        ready = typed.strip().replace(",", "") == str(number)
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep them" if number > 1 else "Keep it", key="delete_cancel"):
            st.rerun()
        pressed = st.button(
            f"Delete {present.count(number, 'memory')}",
            key="delete_confirm",
            type="primary",
            icon=":material/delete:",
            disabled=not ready,
            on_click=_delete,
            args=(tuple(wanted), None),
        )
    if pressed:
        st.rerun()


@st.dialog("Edit memory", icon=":material/edit:", width="large")
def edit_dialog(memory: Memory) -> None:
    """All that can be edited. What was typed stays in the form when saving is refused."""
    _close_when_done()
    st.text_area("Text", memory.content, key="edit_content", height=160)
    left, right = st.columns(2)
    left.text_input("Title", memory.title, key="edit_title")
    right.selectbox(
        "Type", list(MemoryType), list(MemoryType).index(memory.memory_type),
        format_func=messages.words, key="edit_type",
    )  # fmt: skip
    left.multiselect(
        "Tags", sorted(memory.tags), sorted(memory.tags), accept_new_options=True, key="edit_tags"
    )
    right.selectbox(
        "Visible to", list(Visibility), list(Visibility).index(memory.visibility),
        format_func=messages.words, key="edit_visibility",
        help="Matters for project memories. Owner only: nobody else, not even admins.",
    )  # fmt: skip
    left.slider("Confidence", 0.0, 1.0, memory.confidence, 0.01, key="edit_confidence")
    expires = memory.expires_at
    right.date_input(
        f"Expires at the end of ({present.zone_label(session.zone())})",
        expires.astimezone(session.zone()).date() if expires else None,
        key="edit_expires",
        help="Empty: never. Past it, the memory is no longer recalled.",
    )
    left.toggle("Shared with the library's other agents", memory.shared, key="edit_shared")
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Cancel", key="edit_cancel"):
            st.rerun()
        pressed = st.button(
            "Save", key="edit_save", type="primary", icon=":material/save:",
            on_click=_save, args=(memory.id, memory.version),
        )  # fmt: skip
    if pressed and st.session_state.pop("acts_close", False):
        st.rerun()


@st.dialog("Add a memory", icon=":material/add:", width="medium")
def add_dialog(library_id: str) -> None:
    """Written by hand: judged by the gate like any draft, but exempt from its rate."""
    _close_when_done()
    actor = session.actor()
    # A user writes their own memories; the operator anybody's.
    users = reads.users() if actor.operator else [actor.user_id]
    projects = reads.projects() if actor.operator else list(actor.roles)
    st.text_area("Text", key="add_content", height=120, placeholder="One statement worth keeping")
    left, right = st.columns(2)
    left.selectbox("Type", list(MemoryType), 1, format_func=messages.words, key="add_type")
    scope = right.selectbox(
        "Scope", [Scope.USER, Scope.PROJECT, Scope.SESSION], format_func=messages.words,
        key="add_scope",
    )  # fmt: skip
    left.selectbox(
        "User", users, 0 if users else None, accept_new_options=actor.operator, key="add_user"
    )
    if scope == Scope.PROJECT:
        right.selectbox("Project", projects, None, accept_new_options=True, key="add_project")
    elif scope == Scope.SESSION:
        right.text_input("Session id", key="add_session")
    left.slider("Confidence", 0.0, 1.0, 0.8, 0.05, key="add_confidence")
    right.selectbox(
        "Visible to", list(Visibility), 1, format_func=messages.words, key="add_visibility"
    )
    if blocked := st.session_state.pop("add_blocked", None):
        st.warning(
            messages.plain(blocked), title="The gate did not let it in", icon=":material/block:"
        )
    with st.container(horizontal=True, horizontal_alignment="right"):
        pressed = st.button(
            "Store", key="add_store", type="primary", icon=":material/add:",
            on_click=_add, args=(library_id,),
        )  # fmt: skip
    if pressed and st.session_state.pop("acts_close", False):
        st.rerun()


def _remove_demo() -> None:
    with messages.attempt("Removing the demo"):
        gone = demo.remove(session.service())
        threads.remove(session.service())
        messages.done(f"The demo and its {present.count(gone, 'memory')} are gone.")
    reads.forget()


@st.dialog("Remove the demo", icon=":material/delete:")
def remove_demo_dialog() -> None:
    """Asks first. There is no undo but loading it again, so it says that."""
    st.markdown(
        "Both demo libraries go, with their memories, agents, conversations, threads and logs, and "
        "whatever was added to them since. Other libraries stay as they are. The demo can be "
        "loaded again."
    )
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="demo_keep"):
            st.rerun()
        pressed = st.button("Remove the demo", key="demo_remove", type="primary",
                            icon=":material/delete:", on_click=_remove_demo)  # fmt: skip
    if pressed:
        st.rerun()


@st.dialog("Export memories", icon=":material/download:")
def export_dialog(filter: Filter, library: str, filtered: bool) -> None:
    """The filtered set as a file, all its pages; says which, how many and how large."""
    form = st.segmented_control(
        "Format", ["jsonl", "csv"], default="jsonl", required=True, key="export_form",
        format_func={"jsonl": "JSON Lines", "csv": "CSV"}.get,
    )  # fmt: skip
    with messages.trouble("Exporting"):
        data, rows = reads.export(session.actor(), filter, form)
    name = file_name(library, form, session.now().astimezone(session.zone()))
    which = "Only what the filters show" if filtered else "The whole library"
    st.markdown(f"**{present.count(rows, 'memory')}**, {present.size(len(data))}. {which}, as far "
                "as you may see it.")  # fmt: skip
    st.download_button(
        f"Download {name}", data, name, key="export_download", on_click="ignore",
        icon=":material/download:", type="primary", width="stretch",
    )  # fmt: skip


@st.dialog("Clean up", icon=":material/cleaning_services:", width="medium")
def clean_up_dialog(library_id: str) -> None:
    """Archive noise by rule, after a look at what the rule finds."""
    _close_when_done()
    st.markdown("Active memories that meet **all** of these are archived, not deleted.")
    left, right = st.columns(2)
    shorter = left.number_input("Shorter than (characters)", 0, 2000, 8, key="clean_shorter")
    below = right.number_input("Confidence below", 0.0, 1.0, 0.75, 0.05, key="clean_below")
    unused = left.toggle("Never recalled", key="clean_unused")
    expired = right.toggle("Expired", key="clean_expired")
    rule = Filter(
        library_id=library_id,
        statuses=(Status.ACTIVE,),
        shorter_than=shorter or None,
        confidence_below=below or None,
        never_recalled=unused,
        expired=expired,
    )
    if not (shorter or below or unused or expired):
        st.caption("Set at least one condition.")
        return
    page = reads.page(session.actor(), rule, "oldest", 8, 0)
    if not page.total:
        st.caption("No active memory meets this rule.")
        return
    st.markdown(f"**{present.count(page.total, 'memory')}** found.")
    for memory in page.memories:
        st.markdown(
            f"- {messages.plain(shorten(memory.content, 110))} "
            f":gray[{len(memory.content)} characters, confidence {memory.confidence:.2f}]"
        )
    if page.total > len(page.memories):
        st.caption(f"and {page.total - len(page.memories):,} more")
    with st.container(horizontal=True, horizontal_alignment="right"):
        pressed = st.button(
            f"Archive {present.count(page.total, 'memory')}",
            key="clean_archive",
            type="primary",
            icon=":material/inventory_2:",
            on_click=set_status,
            args=((), Status.ARCHIVED, rule),
        )
    if pressed:
        st.rerun()


def bulk_bar(ticked: Sequence[str], filter: Filter, total: int) -> None:
    """What can be done with the ticked rows, or with everything that matches."""
    # The same height with and without a selection, so that the table below does not jump away
    # from under the next tick.
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", height=44, border=False
    ):
        if not ticked:
            st.caption("Click a row to read it; tick rows to change several at once.")
            return
        # Left-aligned: the table's own toolbar lies over the right end of this row.
        count = st.container(width="content")
        everything = filter if st.session_state.get("memories_whole") else None
        for status, (verb, _, icon) in VERB.items():
            st.button(
                verb, key=f"memories_bulk_{status}", icon=f":material/{icon}:",
                on_click=set_status, args=(tuple(ticked), status, everything),
            )  # fmt: skip
        if st.button("Delete", key="memories_bulk_delete", icon=":material/delete:"):
            delete_dialog(tuple(ticked), everything)
        if total > len(ticked):
            st.toggle(f"All {total:,}", key="memories_whole", help="Everything that matches, not "
                      "only what is ticked here")  # fmt: skip
        else:
            everything = None
        count.markdown(f"**{total if everything else len(ticked):,} selected**")
