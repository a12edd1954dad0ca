"""What only a browser shows of the map: points drawn, hover, lasso, click, both themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console import Console, Tab

POINTS = ".js-plotly-plot .scatterlayer .point"


def opened(console: Console, tab: Tab, **query: str) -> Any:
    """The chart, once UMAP has drawn it."""
    tab.open(console.url("map", frame_library="Lantern team", **query))
    tab.page.get_by_text("of neighbours kept").first.wait_for(timeout=120_000)
    tab.page.locator(POINTS).first.wait_for(timeout=60_000)
    tab.settle()
    return tab.page.locator(".js-plotly-plot").first.bounding_box()


def lasso(tab: Tab, box: Any, *corners: tuple[float, float]) -> None:
    """Drag around the corners, given as shares of the chart's width and height."""
    tab.page.locator("[data-title='Lasso Select']").first.click()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    tab.page.mouse.move(*at[0])
    tab.page.mouse.down()
    for x, y in [*at[1:], at[0]]:
        tab.page.mouse.move(x, y, steps=6)
    tab.page.mouse.up()


ALL = ((0.02, 0.02), (0.9, 0.02), (0.9, 0.8), (0.02, 0.8))


def test_a_lasso_selects_what_it_encloses_and_a_status_change_hits_exactly_that(
    console: Console, tab: Tab
) -> None:
    box = opened(console, tab, map_status="superseded")
    lasso(tab, box, *ALL)
    chosen = tab.page.locator("strong").filter(has_text="selected")
    chosen.wait_for()
    count = int(re.findall(r"\d+", chosen.inner_text())[0])
    assert count > 0
    expect(chosen.locator("xpath=..")).to_contain_text(f"{count} superseded")
    tab.page.get_by_role("button", name="Reactivate").click()
    tab.page.get_by_text("reactivated").first.wait_for()


def test_a_click_on_a_point_reads_that_memory(console: Console, tab: Tab) -> None:
    opened(console, tab)
    point = tab.page.locator(POINTS).nth(3).bounding_box()
    tab.page.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    hover = tab.page.locator(".js-plotly-plot .hoverlayer .hovertext").first
    hover.wait_for()
    expect(hover).to_contain_text("confidence")
    tab.page.mouse.click(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    tab.widget("map_detail_panel").wait_for()
    expect(tab.page.get_by_text("Nearest by meaning")).to_have_count(1)


@pytest.mark.parametrize("dark", [False, True])
def test_it_draws_in_both_themes_without_a_complaint(
    console: Console, new_tab: Callable[..., Tab], dark: bool
) -> None:
    tab = new_tab(dark=dark)
    opened(console, tab, map_colour="Group", map_query="why not on Friday afternoon")
    assert tab.exceptions() == []
    tab.page.get_by_text("Just missed", exact=True).wait_for()
    legend = tab.page.locator(".js-plotly-plot .legendtext")
    expect(legend.filter(has_text="the query").first).to_be_visible()
