"""The console as people meet it: a server process, Debian's chromium, the demo world.

`console` is one per test file, with a database of its own that tests may change. `tab` opens pages
of it and, when the test ends, has seen no error in the browser's console and no request to another
host. Skipped, with the reason, where there is no chromium.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from tests.console import Console, Tab, running

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SANDBOX = [] if os.geteuid() else ["--no-sandbox"]
QUIET = [
    "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(
                    pytest.mark.skip(reason="no chromium; Debian: apt install chromium")
                )


@pytest.fixture(scope="module")
def console(
    database_from: Callable[[str], AbstractContextManager[str]],
    demo_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Console]:
    """A console on the demo world."""
    with (
        database_from(demo_template) as url,
        running(tmp_path_factory.mktemp("console"), database_url=url) as console,
    ):
        yield console


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)  # a busy machine is no failure
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*SANDBOX, *QUIET], timeout=60_000
        )
        yield chromium
        chromium.close()


@pytest.fixture
def new_tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    """Makes tabs: `new_tab(dark=True, width=1920)`."""
    contexts: list[Any] = []
    tabs: list[Tab] = []

    def make(*, dark: bool = False, width: int = 1280, height: int = 900) -> Tab:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            timezone_id="Asia/Shanghai",
        )
        contexts.append(context)
        tab = Tab(context.new_page())
        tab.page.set_default_timeout(30_000)

        def on_console(message: Any) -> None:
            # On a deep link Streamlit first looks for its server below the page's own path.
            looking = "/_stcore/" in message.location.get("url", "")
            if message.type == "error" and not looking:
                tab.troubles.append(f"{message.text} ({message.location.get('url')})")

        def on_request(request: Any) -> None:
            host = urlparse(request.url).hostname
            if host not in (None, "127.0.0.1", "localhost"):
                tab.troubles.append(f"asks {request.url}")

        tab.page.on("console", on_console)
        tab.page.on("pageerror", lambda error: tab.troubles.append(str(error)))
        tab.page.on("request", on_request)
        tabs.append(tab)
        return tab

    yield make
    troubles = [trouble for tab in tabs for trouble in tab.troubles]
    for context in contexts:
        context.close()
    assert not troubles, "\n".join(troubles)


@pytest.fixture
def tab(new_tab: Callable[..., Tab]) -> Tab:
    return new_tab()
