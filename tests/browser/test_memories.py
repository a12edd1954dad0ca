"""What only a browser shows of the Memories page: clicks on rows, ticks, dialogs, the URL."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from memcore.demo import story
from tests.console import Console, Tab

ROW, HEAD = 38, 35
"""Heights of the table's rows and of its heading, in pixels."""


def table(tab: Tab) -> Any:
    found = tab.page.get_by_test_id("stDataFrame").locator("canvas").first
    found.wait_for()
    tab.page.wait_for_timeout(400)  # the canvas is painted after it is there
    return found.bounding_box()


def click(tab: Tab, row: int) -> None:
    """Click the text of the row, counted from 0."""
    box = table(tab)
    tab.page.mouse.click(box["x"] + 200, box["y"] + HEAD + ROW * row + ROW / 2)


def tick(tab: Tab, *rows: int) -> None:
    for row in rows:
        box = table(tab)
        tab.page.mouse.click(box["x"] + 16, box["y"] + HEAD + ROW * row + ROW / 2)
        tab.page.get_by_text(f"{rows.index(row) + 1} selected").wait_for()


def found(tab: Tab) -> str:
    """How many memories the list says there are."""
    return str(tab.page.locator("strong").filter(has_text="memor").first.inner_text())


def detail(tab: Tab) -> Any:
    return expect(tab.widget("memories_detail_panel"))


def test_a_click_on_a_row_of_a_filtered_list_opens_that_row(console: Console, tab: Tab) -> None:
    tab.open(console.url("memories", memories_text="React Native", memories_sort="Oldest first"))
    click(tab, 0)
    detail(tab).to_contain_text(re.compile("Tomas has shipped two apps|We build the phone app"))
    first = tab.page.evaluate("new URLSearchParams(location.search).get('memory')")
    click(tab, 1)
    tab.page.wait_for_function(
        "first => new URLSearchParams(location.search).get('memory') !== first", arg=first
    )
    tab.settle()
    second = tab.page.evaluate("new URLSearchParams(location.search).get('memory')")
    listed = [story.identity("memory", k["key"]) for k in story.lines("memories.jsonl")
              if "React Native" in k["content"]]  # fmt: skip
    assert {first, second} <= set(listed)
    tab.page.reload()
    tab.settle()
    # A link to one memory can be shared.
    expect(tab.widget("memories_detail_panel")).to_have_count(1)


def test_a_selection_does_not_outlive_the_list_it_was_made_in(console: Console, tab: Tab) -> None:
    tab.open(console.url("memories"))
    tick(tab, 0, 1, 2)
    search = tab.page.get_by_label("Text")
    search.fill("yellow slips")
    search.press("Enter")
    tab.page.get_by_text("Click a row to read it").wait_for()
    tab.settle()
    assert tab.exceptions() == []


def test_what_was_deleted_comes_back_with_its_own_undo_and_the_filters_stay(
    console: Console, tab: Tab
) -> None:
    tab.open(console.url("memories", memories_type="skill", memories_sort="Oldest first"))
    before = found(tab)
    tick(tab, 0, 1)
    tab.widget("memories_bulk_delete").get_by_role("button").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 memories")
    dialog.get_by_role("button", name="Delete 2 memories").click()
    tab.page.get_by_text("2 memories deleted.").first.wait_for()
    tab.settle()
    assert "memories_type=skill" in tab.page.evaluate("location.href")
    expect(tab.page.locator("strong").filter(has_text="memor").first).not_to_have_text(before)
    tab.page.get_by_role("button", name="Undo").click()
    tab.page.locator("strong").filter(has_text=before).wait_for()
    assert tab.exceptions() == []


def test_many_ask_for_the_number_before_they_are_deleted(console: Console, tab: Tab) -> None:
    tab.open(console.url("memories", memories_status="superseded"))
    tick(tab, 0)
    tab.page.get_by_text("All ", exact=False).filter(has_text="All").first.wait_for()
    tab.widget("memories_whole").locator("label").click()
    tab.page.get_by_text("9 selected").wait_for()
    tab.widget("memories_bulk_delete").get_by_role("button").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_text("9 memories").first.wait_for()
    expect(dialog.get_by_role("button", name="Delete 9 memories")).to_be_enabled()
    dialog.get_by_role("button", name="Keep them").click()
    dialog.wait_for(state="hidden")


def test_the_export_has_a_name_a_count_and_a_size_and_is_the_filtered_set(
    console: Console, tab: Tab
) -> None:
    tab.open(console.url("memories", memories_scope="session"))
    tab.widget("memories_menu").get_by_role("button").click()
    tab.page.get_by_text("Export…").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_text("22 memories").wait_for()
    expect(dialog).to_contain_text("kB")
    with tab.page.expect_download() as download:
        dialog.get_by_role("button", name="Download memcore_Lantern-team_").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert download.value.suggested_filename.startswith("memcore_Lantern-team_")
    assert len(lines) == 22


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_on_the_page_is_cut_off_beside_an_open_memory(
    console: Console, new_tab: Any, dark: bool
) -> None:
    tab = new_tab(dark=dark)
    tab.open(console.url("memories", memory=story.identity("memory", "k-stack-old")))
    panel = tab.widget("memories_detail_panel")
    expect(panel).to_contain_text("Replaced by")
    right = panel.bounding_box()
    for button in panel.get_by_role("button").all():
        box = button.bounding_box()
        if box:
            assert box["x"] + box["width"] <= right["x"] + right["width"] + 1
