"""What the running console knows: the open core, who looks, at which library, in which time zone.

Session state holds ids and strings only; everything else is read again through `reads`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import streamlit as st

from memcore import Core, open_core
from memcore.models import Actor, Library

OPERATOR = "operator"
"""The choice in "Act as" that sees every memory."""


@st.cache_resource(show_spinner="Starting the database…", on_release=Core.close)
def _core() -> Core:
    return open_core()


def service() -> Core:
    """The open core, one for the whole server. Raises MemcoreError; a failure is not cached."""
    return _core()


def close() -> None:
    """Close pools and leave the embedded server. For the end of the process and for tests."""
    _core.clear()


def actor() -> Actor:
    """Who looks: the operator, or the user chosen in "Act as", with roles from the database."""
    from pages.shared import reads

    chosen = st.session_state.get("frame_actor") or OPERATOR
    if chosen == OPERATOR:
        return Actor(user_id=OPERATOR, operator=True)
    return reads.actor(chosen)


def library() -> Library | None:
    """The library chosen in the frame; None while there is none."""
    from pages.shared import reads

    chosen = st.session_state.get("frame_library")
    return next((x for x in reads.libraries(actor()) if x.id == chosen), None)


def zone() -> tzinfo:
    """The viewer's time zone, from the browser; UTC where it is unknown."""
    name = st.context.timezone
    try:
        return ZoneInfo(name) if name else UTC
    except (KeyError, ValueError, OSError):
        return UTC


def dark() -> bool:
    """True on the dark theme. For drawings that cannot follow the theme by themselves."""
    return bool(st.context.theme.type == "dark")


def now() -> datetime:
    return datetime.now(UTC)


def link(page: str, label: str, *, icon: str | None = None, **params: str | list[str]) -> None:
    """A link to another page (its file name without .py) that keeps library and actor. `params`
    are the target's URL-bound widget keys; values as the widget shows them."""
    kept: dict[str, str | list[str]] = {}
    for key in ("frame_library", "frame_actor"):
        if key in st.query_params:
            kept[key] = st.query_params[key]
    query: Mapping[str, str | list[str]] = {**kept, **params}
    if not (Path(__file__).parents[1] / f"{page}.py").exists():
        return  # an installation may leave pages out; the frame lists what is there
    st.page_link(f"{page}.py", label=label, icon=icon, query_params=dict(query))
