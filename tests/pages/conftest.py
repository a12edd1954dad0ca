"""The console as AppTest runs it: from the frame, on a database of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from memcore.core import Core
from memcore.errors import DatabaseError

FRAME = Path(__file__).parents[2] / "pages" / "_frame.py"
PAGES = sorted(p.stem for p in FRAME.parent.glob("[!_]*.py"))

Open = Callable[..., AppTest]


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """open_page(core, "memories", memories_status="active", state={…}) → the page, run."""
    from pages.shared import session

    def opened(
        core: Core | None, page: str, *, zone: str = "UTC", state: dict[str, Any] | None = None,
        run: bool = True, **params: str,
    ) -> AppTest:  # fmt: skip
        def service() -> Core:
            if core is None:
                raise DatabaseError(
                    "The database at db.example cannot be reached: connection refused.",
                    hint="Check that the server runs.",
                )
            return core

        monkeypatch.setattr(session, "service", service)
        st.cache_data.clear()
        at = AppTest.from_file(str(FRAME), default_timeout=60)
        at.context = {"timezone": zone}
        for key, value in params.items():
            at.query_params[key] = value
        at.run()
        for key, value in (state or {}).items():
            at.session_state[key] = value
        at.switch_page(f"{page}.py")
        return at.run() if run else at

    yield opened
    st.cache_data.clear()


def words(at: AppTest) -> str:
    """Everything a person can read on the page."""
    kinds = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error",
             "success", "text")  # fmt: skip
    return "\n".join(str(e.value) for kind in kinds for e in at.get(kind))
