"""What only a browser shows of the Checkpoints page: cold links, clicks, dialogs, both themes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from memcore.core import open_core
from memcore.demo import threads
from memcore.models import Actor
from memcore.services.checkpoints.values import Timeline
from tests.console import Console, Tab, running

ME = Actor("operator", operator=True)
ROW, HEAD = 38, 35
"""Heights of the table's rows and of its heading, in pixels."""


@pytest.fixture(scope="module")
def checkpoint_console(
    database_from: Callable[[str], Any], demo_template: str, tmp_path_factory: Any
) -> Iterator[tuple[Console, Callable[[str], Timeline]]]:
    """A console on the demo world, and the timelines of its threads."""
    home = tmp_path_factory.mktemp("console")
    with (
        database_from(demo_template) as url,
        open_core(url=url, home=home / "core") as core,
        running(home, database_url=url) as console,
    ):
        threads.load(core)
        yield console, lambda thread: core.checkpoints.timeline(thread, actor=ME)


@pytest.fixture
def console(checkpoint_console: tuple[Console, Callable[[str], Timeline]]) -> Console:
    return checkpoint_console[0]


@pytest.fixture
def timeline(
    checkpoint_console: tuple[Console, Callable[[str], Timeline]],
) -> Callable[[str], Timeline]:
    return checkpoint_console[1]


def parameter(tab: Tab, name: str) -> str | None:
    return tab.page.evaluate("name => new URLSearchParams(location.search).get(name)", name)


def click_row(tab: Tab, row: int) -> None:
    """Click the thread's id in the row, counted from 0."""
    canvas = tab.page.get_by_test_id("stDataFrame").locator("canvas").first
    canvas.wait_for()
    tab.page.wait_for_timeout(400)  # the canvas is painted after it is there
    box = canvas.bounding_box()
    tab.page.mouse.click(box["x"] + 200, box["y"] + HEAD + ROW * row + ROW / 2)


def body(tab: Tab) -> Any:
    return tab.page.get_by_test_id("stMain")


# ---- the list ------------------------------------------------------------------------------------


def test_the_list_is_filtered_by_id_and_metadata_and_the_address_keeps_the_filter(
    console: Console, tab: Tab
) -> None:
    tab.open(console.url("checkpoints"))
    expect(body(tab)).to_contain_text("8 threads")
    metadata = tab.widget("checkpoints_metadata").locator("input")
    metadata.fill("user_id=haoran")
    metadata.press("Enter")
    expect(body(tab)).to_contain_text("3 threads")
    search = tab.widget("checkpoints_search").locator("input")
    search.fill("demo-hold")
    search.press("Enter")
    expect(body(tab)).to_contain_text("1 thread whose id contains demo-hold")
    assert parameter(tab, "checkpoints_metadata") == "user_id=haoran"
    tab.page.reload()
    tab.settle()
    expect(body(tab)).to_contain_text("none has exactly this id")
    click_row(tab, 0)
    expect(body(tab)).to_contain_text("Waiting for a human at ask")
    assert parameter(tab, "thread") == "demo-holds"
    tab.page.go_back()
    tab.settle()


def test_a_row_of_a_filtered_list_opens_that_row_and_the_way_back_keeps_the_filter(
    console: Console, tab: Tab
) -> None:
    tab.open(console.url("checkpoints", checkpoints_metadata="user_id=haoran"))
    click_row(tab, 1)
    tab.page.get_by_role("heading", name="demo-firstmeet").wait_for()
    tab.widget("checkpoints_back").get_by_role("button").click()
    expect(body(tab)).to_contain_text("3 threads")
    assert parameter(tab, "thread") is None
    assert tab.exceptions() == []


# ---- one thread ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_a_cold_link_to_a_thread_that_waits_says_what_it_asks_first(
    console: Console, new_tab: Any, dark: bool
) -> None:
    tab = new_tab(dark=dark)
    tab.open(console.url("checkpoints", thread="demo-holds"))
    page = body(tab)
    expect(page).to_contain_text(re.compile("Waiting for a human at ask for 1[12] days"))
    expect(page.get_by_text("waits for a human").first).to_be_visible()
    expect(page).to_contain_text("skip_closing_days")
    expect(page).to_contain_text("core.checkpoints.resume(graph, 'demo-holds', answer)")
    badge = page.get_by_text("waiting").first
    expect(badge).to_be_visible()  # a word, not only a colour
    assert tab.page.evaluate("document.body.scrollWidth <= innerWidth")


def test_a_cold_link_to_a_checkpoint_shows_that_one(
    console: Console, tab: Tab, timeline: Callable[[str], Timeline]
) -> None:
    step = timeline("demo-kickoff").steps[4]
    link = console.url("checkpoints", thread="demo-kickoff", checkpoint=step.checkpoint_id)
    tab.open(link)
    expect(tab.page.get_by_text(f"Step {step.step}", exact=True)).to_be_visible()
    tab.widget("thread_newer").get_by_role("button").click()
    newer = timeline("demo-kickoff").steps[3]
    expect(tab.page.get_by_text(f"Step {newer.step}", exact=True)).to_be_visible()
    assert parameter(tab, "checkpoint") == newer.checkpoint_id


def test_a_click_on_the_timeline_opens_that_checkpoint_also_in_a_subgraph(
    console: Console, tab: Tab, timeline: Callable[[str], Timeline]
) -> None:
    tab.open(console.url("checkpoints", thread="demo-dryrun"))
    chart = tab.widget("thread_graph")
    chart.locator(".point").first.wait_for()
    expect(chart).to_contain_text("branch 1")
    expect(chart).to_contain_text("survey")
    tab.page.wait_for_timeout(500)
    # The squares are the ends of lines: of the main line, the branch and the subgraph call.
    inner = next(s for s in timeline("demo-dryrun").steps if s.checkpoint_ns)
    places = [p.bounding_box() for p in chart.locator(".trace:has(.point) .point").all()]
    lowest = max(p["y"] for p in places)
    right = max((p for p in places if p["y"] > lowest - 3), key=lambda p: p["x"])
    tab.page.mouse.click(right["x"] + right["width"] / 2, right["y"] + right["height"] / 2)
    tab.page.wait_for_function("new URLSearchParams(location.search).get('checkpoint')")
    tab.settle()
    assert parameter(tab, "checkpoint") == inner.checkpoint_id
    assert parameter(tab, "ns") == inner.checkpoint_ns
    expect(body(tab)).to_contain_text("look_up in survey")
    tab.page.reload()
    tab.settle()
    expect(body(tab)).to_contain_text("look_up in survey")


def test_two_checkpoints_are_compared(
    console: Console, tab: Tab, timeline: Callable[[str], Timeline]
) -> None:
    tab.open(console.url("checkpoints", thread="demo-metrics", thread_tab="Changes"))
    base = tab.widget("thread_compare").locator("input").first
    expect(base).to_have_value(re.compile("its parent"))
    first = timeline("demo-metrics").steps[-1]
    base.fill(f"step {first.step} ")
    tab.page.get_by_role("option", name=f"step {first.step} ").first.click()
    tab.settle()
    expect(body(tab).get_by_text("added").first).to_be_visible()
    expect(body(tab)).to_contain_text("Week 16.")
    assert tab.exceptions() == []


def test_a_message_leads_to_the_memory_it_was_the_source_of(console: Console, tab: Tab) -> None:
    tab.open(console.url("checkpoints", thread="demo-holds", thread_tab="Chat"))
    link = tab.page.get_by_role("link", name="老顾客保留多久由米拉决定")
    link.click()
    tab.page.get_by_role("heading", name="Memories").wait_for()
    tab.settle()
    expect(tab.widget("memories_detail_panel")).to_contain_text("老顾客保留多久由米拉决定")


def test_growth_stands_beside_what_pruning_would_free(console: Console, tab: Tab) -> None:
    tab.open(console.url("checkpoints", thread="demo-metrics", thread_tab="Growth"))
    grown, freed = tab.widget("thread_growth"), tab.widget("thread_freed")
    freed.locator(".point").first.wait_for()
    assert abs(grown.bounding_box()["y"] - freed.bounding_box()["y"]) < 2
    for name in ("newest 1", "newest 5", "newest 20"):
        expect(freed).to_contain_text(name)
    expect(freed).to_contain_text("kB")


# ---- retention -----------------------------------------------------------------------------------


def test_a_dry_run_is_carried_out_after_consent_and_what_went_comes_back(
    console: Console, tab: Tab, timeline: Callable[[str], Timeline]
) -> None:
    before = timeline("demo-kickoff")
    tab.open(console.url("checkpoints", checkpoints_view="Space"))
    expect(tab.page.get_by_text("Checkpoints that go")).to_be_visible()
    tab.widget("space_prune").get_by_role("button").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("20 checkpoints of 1 thread")
    dialog.get_by_role("button", name="Keep them").click()
    dialog.wait_for(state="hidden")
    assert timeline("demo-kickoff") == before

    tab.widget("space_prune").get_by_role("button").click()
    dialog.get_by_role("button", name="Archive 20 checkpoints").click()
    tab.page.get_by_text("20 checkpoints archived").first.wait_for()
    tab.page.get_by_text("Nothing goes under this policy.").wait_for()
    tab.open(console.url("checkpoints", thread="demo-kickoff"))
    expect(body(tab)).to_contain_text("look among the archived ones")

    tab.open(console.url("checkpoints", checkpoints_view="Archive"))
    canvas = tab.page.get_by_test_id("stDataFrame").locator("canvas").first
    canvas.wait_for()
    tab.page.wait_for_timeout(400)
    box = canvas.bounding_box()
    tab.page.mouse.click(box["x"] + 16, box["y"] + HEAD + HEAD / 2)
    expect(body(tab)).to_contain_text("demo-kickoff: 20 checkpoints")
    tab.widget("archive_restore").get_by_role("button").click()
    tab.page.get_by_text("20 checkpoints are back").first.wait_for()
    assert timeline("demo-kickoff") == before
    tab.settle()
    assert tab.exceptions() == []


def test_a_thread_is_only_forgotten_once_its_id_is_typed(
    console: Console, tab: Tab, timeline: Callable[[str], Timeline]
) -> None:
    tab.open(console.url("checkpoints", thread="demo-firstmeet"))
    tab.widget("thread_menu").get_by_role("button").click()
    tab.page.get_by_text("Forget this thread…").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Forget", exact=True)).to_be_disabled()
    dialog.get_by_label("Type the thread's id").fill("demo-firstmee")
    expect(dialog.get_by_role("button", name="Forget", exact=True)).to_be_disabled()
    dialog.get_by_role("button", name="Keep it").click()
    dialog.wait_for(state="hidden")
    assert timeline("demo-firstmeet").steps
