"""What the console says when something failed, is missing, or was done.

Every failure names what was tried, the cause and the next step; never a trace, never a secret.
Colour is never alone: each badge carries its word and an icon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from memcore.errors import Conflict, MemcoreError, PermissionDenied
from memcore.models import Library, MemoryType, Scope, Status, Visibility
from memcore.services.history import Glance
from memcore.text import shorten
from pages.shared import present

STATUS = {
    Status.ACTIVE: ("green", "check_circle"),
    Status.ARCHIVED: ("gray", "inventory_2"),
    Status.SUPPRESSED: ("orange", "visibility_off"),
    Status.SUPERSEDED: ("violet", "update"),
}
SCOPE = {Scope.SESSION: "chat", Scope.PROJECT: "folder", Scope.USER: "person"}
VISIBILITY = {
    Visibility.PUBLIC: "public",
    Visibility.MEMBERS: "group",
    Visibility.OWNER_ONLY: "lock",
}
TYPE = {
    MemoryType.PREFERENCE: "favorite",
    MemoryType.FACT: "article",
    MemoryType.SKILL: "construction",
    MemoryType.HABIT: "repeat",
    MemoryType.EVENT: "event",
    MemoryType.CONTEXT: "info",
    MemoryType.CONSTRAINT: "rule",
    MemoryType.DECISION: "gavel",
    MemoryType.TASK_PROGRESS: "trending_up",
    MemoryType.REFERENCE: "link",
}

_UNDO_SHOWN = 3
_NUMBERED = re.compile(r"^(\s*\d+)\.", re.MULTILINE)


def words(value: str) -> str:
    """An enum's value as people read it: task_progress → task progress."""
    return value.replace("_", " ")


def plain(text: str) -> str:
    """`text` so that Markdown shows it as written: stored content must not format the console,
    let alone load an image from somewhere."""
    for char in "\\`*_{}[]()#+-!|<>$~:":
        text = text.replace(char, "\\" + char)
    return _NUMBERED.sub(r"\1\\.", text)


# ---- badges: Markdown, for st.markdown and captions ---------------------------------------------


def status_badge(status: Status) -> str:
    color, icon = STATUS[status]
    return f":{color}-badge[:material/{icon}: {words(status)}]"


def type_badge(memory_type: MemoryType) -> str:
    return f":blue-badge[:material/{TYPE[memory_type]}: {words(memory_type)}]"


def scope_badge(scope: Scope, scope_id: str = "") -> str:
    whose = f" {plain(scope_id)}" if scope_id else ""
    return f":gray-badge[:material/{SCOPE[scope]}: {words(scope)}{whose}]"


def visibility_badge(visibility: Visibility) -> str:
    return f":gray-badge[:material/{VISIBILITY[visibility]}: {words(visibility)}]"


def verdict_badge(passed: bool, *, yes: str = "passed", no: str = "failed") -> str:
    return (
        f":green-badge[:material/check: {yes}]" if passed else f":red-badge[:material/close: {no}]"
    )


def outcome_badge(good: bool, words: str) -> str:
    """How a draft or a recall ended, in colour, icon and word."""
    color, icon = ("green", "check") if good else ("orange", "block")
    return f":{color}-badge[:material/{icon}: {plain(words)}]"


def line(glance: Glance, badge: str, now: datetime) -> None:
    """One line of a log: how it ended, the text, who and how long ago."""
    who = " · ".join(filter(None, (glance.user_id, glance.agent, present.ago(glance.at, now))))
    st.markdown(f"{badge} {plain(shorten(glance.text, 64))}  \n:gray[:small[{plain(who)}]]")


# ---- failures -----------------------------------------------------------------------------------


def explain(what: str, error: MemcoreError) -> None:
    """Draw a failure: what was tried, the cause, what to do next."""
    body = plain(error.message)
    if error.hint:
        body += f"\n\n:material/arrow_forward: {plain(error.hint)}"
    if isinstance(error, PermissionDenied):
        st.warning(body, title=f"{what}: not allowed", icon=":material/lock:")
    else:
        st.error(body, title=f"{what} failed", icon=":material/error:")


@contextmanager
def trouble(what: str, *, stop: bool = True) -> Iterator[None]:
    """`with trouble("Recall"): …` draws a MemcoreError instead of raising it, then ends the page
    (or the fragment) unless `stop` is False. `what` is a noun: "Recall", "Reading the list"."""
    try:
        yield
    except MemcoreError as error:
        explain(what, error)
        if stop:
            st.stop()


# ---- what was done: callbacks write here, the frame draws it ------------------------------------


@contextmanager
def attempt(what: str) -> Iterator[None]:
    """For callbacks: a MemcoreError becomes a notice the frame draws above the page."""
    try:
        yield
    except MemcoreError as error:
        hint = error.hint or ("Reload and try again." if isinstance(error, Conflict) else "")
        notice = {"title": f"{what} failed", "body": error.message, "hint": hint}
        st.session_state.setdefault("frame_notices", []).append(notice)


def done(text: str, *, undo: str | None = None, of: str = "memories") -> None:
    """Say that a write happened, at the next full run; a callback inside a fragment or dialog ends
    with `st.rerun()`. `undo` is the change's id: its own Undo button is shown until it is used or
    dismissed, so a second write never takes the first one's undo away. `of` says what was changed:
    memories or libraries."""
    st.session_state.setdefault("frame_toasts", []).append(text)
    if undo:
        st.session_state.setdefault("frame_undo", []).append({"id": undo, "text": text, "of": of})


def warn(title: str, lines: list[str]) -> None:
    """Say that a write was done in part: one line for each that was not, with its reason."""
    notice = {"title": title, "body": "", "hint": "", "lines": lines}
    st.session_state.setdefault("frame_notices", []).append(notice)


def _undo(change_id: str, of: str) -> None:
    from pages.shared import reads, session

    kept = [u for u in st.session_state.get("frame_undo", []) if u["id"] != change_id]
    with attempt("Undo"):
        if of == "libraries":
            session.service().libraries.undo(change_id, actor=session.actor())
            st.session_state["frame_undo"] = kept
            st.session_state.setdefault("frame_toasts", []).append("Undone.")
            reads.forget()
            return
        report = session.service().memories.undo(change_id, actor=session.actor())
        st.session_state["frame_undo"] = kept
        if report.refused:
            warn(
                f"Undone for {len(report.done)}, not for {len(report.refused)}",
                [f"{memory_id}: {why}" for memory_id, why in report.refused.items()],
            )
        else:
            st.session_state.setdefault("frame_toasts", []).append("Undone.")
    reads.forget()


def _dismiss(change_id: str) -> None:
    kept = [u for u in st.session_state.get("frame_undo", []) if u["id"] != change_id]
    st.session_state["frame_undo"] = kept


def failures() -> None:
    """Draw, once, what callbacks could not do. The frame does; a dialog does at its top."""
    for notice in st.session_state.pop("frame_notices", []):
        lines = [f"- {plain(line)}" for line in notice.get("lines", [])]
        body = "\n".join(lines) if lines else plain(notice["body"])
        if notice["hint"]:
            body += f"\n\n:material/arrow_forward: {plain(notice['hint'])}"
        draw = st.warning if lines else st.error
        draw(body, title=plain(notice["title"]), icon=":material/error:")


def notices() -> None:
    """Draw what callbacks left: failures once, undo offers until used. The frame calls this."""
    failures()
    for text in st.session_state.pop("frame_toasts", []):
        st.toast(plain(text), icon=":material/check:")
    for offer in st.session_state.get("frame_undo", [])[-_UNDO_SHOWN:]:
        with st.container(
            horizontal=True, vertical_alignment="center", gap="small", key=f"frame_{offer['id']}"
        ):
            st.markdown(f":green[:material/check_circle:] {plain(offer['text'])}", width="content")
            st.button(
                "Undo",
                key=f"frame_undo_{offer['id']}",
                icon=":material/undo:",
                on_click=_undo,
                args=(offer["id"], offer.get("of", "memories")),
            )
            st.button(
                "Dismiss",
                key=f"frame_dismiss_{offer['id']}",
                type="tertiary",
                on_click=_dismiss,
                args=(offer["id"],),
            )


# ---- the three empty states ---------------------------------------------------------------------


def empty(icon: str, title: str, text: str) -> DeltaGenerator:
    """The frame of an empty state; draw what to do next inside of it."""
    box = st.container(border=True, horizontal_alignment="center", gap="small")
    with box:
        st.space("small")
        st.markdown(f"# :gray[:material/{icon}:]", text_alignment="center")
        st.subheader(title, anchor=False, text_alignment="center")
        st.markdown(text, text_alignment="center", width=560)
    return box


def _load_demo() -> None:
    from pages.shared import reads, session

    with attempt("Loading the demo data"):
        from memcore import demo
        from memcore.demo import threads

        core = session.service()
        with st.spinner("Loading the demo data…"):
            loaded = demo.load(core)
            written = threads.load(core) if threads.fits(core) else 0
        st.session_state["frame_library"] = loaded.library_id
        done(f"{loaded.memories} memories and {written} LangGraph threads loaded.")
    reads.forget()


def no_library() -> None:
    """Empty state 1: nothing exists yet. Offers the demo data and the form."""
    with empty(
        "database",
        "No library yet",
        "A library holds memories and says how they are judged, embedded and recalled. "
        "Look around with a finished example first, or create your own.",
    ):
        with st.container(
            horizontal=True, horizontal_alignment="center", vertical_alignment="center"
        ):
            st.button("Load demo data", key="frame_load_demo", type="primary",
                      icon=":material/auto_awesome:", on_click=_load_demo)  # fmt: skip
            st.page_link("libraries.py", label="Create a library", icon=":material/add:")
        st.caption("About 300 memories of a small product team, half of them in Chinese. "
                   "It can be removed again on the Libraries page.",
                   text_alignment="center")  # fmt: skip
        st.space("small")


def no_memories() -> None:
    """Empty state 2: the library is there, but holds nothing the actor may see."""
    with empty(
        "inbox",
        "No memories here yet",
        "Nothing is stored in this library, or nothing that you may see. Add a first memory, "
        "extract some from a conversation, or import a file.",
    ):
        st.space("small")


def nothing_here(what: str = "memory", *, clear: list[str] | None = None) -> None:
    """Empty state 3: filters are set and nothing matches. `clear` are the widget keys to reset."""

    def reset() -> None:
        for key in clear or ():
            st.session_state.pop(key, None)

    with empty(
        "filter_alt_off",
        f"No {what} matches these filters",
        "Everything is still there: widen a filter, or clear them all.",
    ):
        if clear:
            st.button("Clear filters", key="frame_clear_filters", icon=":material/filter_alt_off:",
                      on_click=reset)  # fmt: skip
        st.space("small")


def need_library() -> Library:
    """The chosen library. Without one, draws the "no library yet" state and ends the page."""
    from pages.shared import session

    with trouble("Reading the libraries"):
        library = session.library()
    if library is None:
        no_library()
        st.stop()
    return library
