"""What only a browser shows of the frame: cold deep links, both themes, offline, the ends."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from memcore.database.embedded import Cluster
from tests.console import ROOT, Console, Tab, running

PAGES = sorted(
    "" if p.stem == "overview" else p.stem  # the first page is the bare address
    for p in (ROOT / "pages").glob("*.py")
    if not p.stem.startswith("_")
)


def luminance(tab: Tab) -> float:
    """Of the page's background, 0 black to 255 white."""
    color = tab.page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    return sum(int(n) for n in re.findall(r"\d+", color)[:3]) / 3


@pytest.mark.parametrize("page", PAGES)
def test_a_cold_deep_link_opens_the_page_in_its_frame(
    console: Console, tab: Tab, page: str
) -> None:
    tab.open(console.url(page))
    assert tab.exceptions() == []
    links = tab.page.locator("[data-testid=stSidebarNavLink]")
    expect(links).to_have_count(len(PAGES))
    title = tab.page.locator("h1").first.inner_text()
    current = [link for link in links.all() if link.get_attribute("aria-current") == "page"]
    assert [link.inner_text().strip().splitlines()[-1] for link in current] == [
        title.strip().splitlines()[-1]
    ]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_follows_the_dark_theme(
    console: Console, new_tab: Callable[..., Tab], page: str
) -> None:
    tab = new_tab(dark=True, width=1920)
    tab.open(console.url(page))
    assert tab.exceptions() == []
    assert luminance(tab) < 60
    # Nothing wider than the window: what is cut off on the right is never seen.
    wide = tab.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0


def test_the_light_theme_is_light(console: Console, tab: Tab) -> None:
    tab.open(console.url())
    assert luminance(tab) > 220


def test_going_back_returns_to_the_page_before(console: Console, tab: Tab) -> None:
    tab.open(console.url("libraries"))
    tab.page.get_by_test_id("stSidebarNavLink").filter(has_text="Memories").click()
    tab.page.get_by_role("heading", level=1, name="Memories").wait_for()
    tab.page.go_back()
    tab.page.get_by_role("heading", level=1, name="Libraries").wait_for()
    tab.settle()
    assert tab.exceptions() == []


def test_no_other_site_may_frame_the_console(console: Console) -> None:
    with urllib.request.urlopen(console.url()) as reply:
        assert "frame-ancestors 'self'" in reply.headers["content-security-policy"]
        assert reply.headers["x-frame-options"] == "SAMEORIGIN"
        assert reply.headers["x-content-type-options"] == "nosniff"


# ---- an empty database, and none --------------------------------------------------------------


@pytest.fixture(scope="module")
def empty(
    database_from: Callable[[str], AbstractContextManager[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Console]:
    with (
        database_from("memcore") as url,
        running(tmp_path_factory.mktemp("empty"), database_url=url) as console,
    ):
        yield console


def walk(tab: Tab) -> Iterator[str]:
    """Click through every page; yields its title when it is drawn."""
    links = tab.page.get_by_test_id("stSidebarNavLink")
    for i in range(links.count()):
        links.nth(i).click()
        title = links.nth(i).inner_text().strip().splitlines()[-1]
        tab.page.get_by_role("heading", level=1, name=title).wait_for()
        tab.settle()
        assert tab.exceptions() == [], title
        yield title


def test_every_page_opens_on_an_empty_database(empty: Console, tab: Tab) -> None:
    tab.open(empty.url())
    for title in walk(tab):
        expect(tab.page.get_by_test_id("stMain"), title).to_contain_text(re.compile(".{60}", re.S))


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        url = f"postgresql://u:hunter2@127.0.0.1:{s.getsockname()[1]}/x"
        with running(tmp_path_factory.mktemp("cut-off"), database_url=url) as console:
            yield console
            assert "hunter2" not in console.log.read_text()


def test_every_page_opens_without_a_database_and_explains(cut_off: Console, tab: Tab) -> None:
    tab.open(cut_off.url())
    for title in walk(tab):
        said = expect(tab.page.get_by_test_id("stMain"), title)
        said.to_contain_text("cannot be reached")
        said.to_contain_text("DATABASE_URL")
        assert "hunter2" not in tab.page.content()


# ---- the ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        (sys.executable, "-m", "memcore", "serve", "--headless", "--port"),
        (sys.executable, "-m", "streamlit", "run", "app.py", "--server.port"),
    ],
    ids=["memcore serve", "streamlit run"],
)
def test_the_embedded_database_starts_with_the_first_page_and_ends_with_the_console(
    tab: Tab, tmp_path: Path, command: tuple[str, ...]
) -> None:
    with running(tmp_path / "home", command=command) as console:
        tab.open(console.url())
        tab.page.get_by_text("Load demo data").first.wait_for()
        assert Cluster.at(tmp_path / "home").status().state == "running"
    assert Cluster.at(tmp_path / "home").status().state == "stopped"


@pytest.mark.slow
def test_the_installed_wheel_opens_the_same_console_from_another_folder(
    database_from: Callable[[str], AbstractContextManager[str]],
    demo_template: str,
    new_tab: Callable[..., Tab],
    console: Console,
    tmp_path: Path,
) -> None:
    """The wheel in an environment of its own; what it depends on is borrowed from ours."""
    environment = tmp_path / "environment"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    quiet = {"check": True, "capture_output": True, "text": True}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT], **quiet
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], **quiet)
    python = environment / "bin" / "python"
    site = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], **quiet
        ).stdout.strip()
    )
    (wheel,) = tmp_path.glob("memcore-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", site, wheel], **quiet)
    (site / "borrowed.pth").write_text(subprocess.run(
        [sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], **quiet
    ).stdout)  # fmt: skip
    where = [python, "-c", "import memcore; print(memcore.__file__)"]
    assert str(site) in subprocess.run(where, cwd=elsewhere, **quiet).stdout

    command = (str(python), "-m", "memcore", "serve", "--headless", "--port")
    with (
        database_from(demo_template) as url,
        running(tmp_path / "home", database_url=url, command=command, cwd=elsewhere) as installed,
    ):
        shown = []
        for one in (console, installed):
            tab = new_tab(dark=True)
            tab.open(one.url("libraries"))
            assert tab.exceptions() == []
            assert luminance(tab) < 60  # the theme's file came along
            shown.append(tab.page.get_by_test_id("stSidebarNav").inner_text())
        assert shown[0] == shown[1]
