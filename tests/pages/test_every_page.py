"""Every page opens: on the demo world, on an empty installation, without a database."""

from __future__ import annotations

import pytest

from memcore.core import Core
from tests.pages.conftest import PAGES, Open, words


@pytest.mark.parametrize("page", PAGES)
def test_it_shows_the_demo_world(page: str, demo_core: Core, open_page: Open) -> None:
    at = open_page(demo_core, page)
    assert not at.exception
    assert not at.error
    assert at.title


@pytest.mark.parametrize("page", PAGES)
def test_an_empty_installation_says_what_to_do_first(
    page: str, core: Core, open_page: Open
) -> None:
    at = open_page(core, page)
    assert not at.exception
    assert not at.error
    assert len(words(at)) > 60


@pytest.mark.parametrize("page", PAGES)
def test_without_a_database_it_names_the_cause_and_the_next_step(
    page: str, open_page: Open
) -> None:
    at = open_page(None, page)
    assert not at.exception
    text = words(at)
    assert "connection refused" in text.replace("\\", "")
    assert "Check that the server runs" in text.replace("\\", "")
    assert "Traceback" not in text
    assert at.button(key="frame_retry")
