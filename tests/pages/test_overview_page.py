"""The Overview: every number is counted, and is the number of the page behind it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import pytest

from memcore.core import Core
from memcore.models import Actor, Library, Status, Subject
from tests.pages.conftest import Open, words


def cards(at: Any) -> dict[str, str]:
    return {m.label: m.value for m in at.metric}


def links(at: Any) -> dict[str, list[dict[str, list[str]]]]:
    """Page → the query of each link to it."""
    found: dict[str, list[dict[str, list[str]]]] = {}
    for link in at.get("page_link"):
        query = parse_qs(link.proto.query_string)
        found.setdefault(link.proto.page, []).append(query)
    return found


def test_cards_say_what_the_list_says_and_lead_there(
    core: Core, library: Library, open_page: Open
) -> None:
    from memcore.models import Actor

    operator = Actor("operator", operator=True)
    ids = []
    for n in range(7):
        text = f"Statement {n} about the {'abcdefg'[n] * 4} house, {n * 37} metres"
        added = core.memories.add_explicit_memory(text, subject=Subject(library.id, "u1"))
        assert added.memory, added.verdict
        ids.append(added.memory.id)
    core.memories.change_status(ids[:2], Status.ARCHIVED, actor=operator)
    core.memories.change_status(ids[2:3], Status.SUPPRESSED, actor=operator)
    at = open_page(core, "overview")
    expected = {"active": "4", "archived": "2", "suppressed": "1", "superseded": "0"}
    assert {k: v for k, v in cards(at).items() if k in expected} == expected
    targets = [q["memories_status"] for q in links(at)["memories"] if "memories_status" in q]
    for status, count in expected.items():
        assert [status] in targets
        behind = open_page(core, "memories", memories_status=status)
        text = words(behind)
        assert (f"**{count} memor" in text) or (count == "0" and "No memory matches" in text)


def test_a_link_keeps_the_library_and_the_actor(demo_core: Core, open_page: Open) -> None:
    at = open_page(demo_core, "overview", frame_library="Reading club 读书会", frame_actor="haoran")
    for query in links(at)["memories"]:
        assert query["frame_library"] == ["Reading club 读书会"]
        assert query["frame_actor"] == ["haoran"]


def test_recall_times_are_measured_and_left_out_where_there_are_none(
    core: Core, library: Library, demo_core: Core, open_page: Open
) -> None:
    at = open_page(demo_core, "overview")
    assert float(cards(at)["Median time"].removesuffix(" ms")) > 0
    core.memories.add_explicit_memory("Grows quinces", subject=Subject(library.id, "u1"))
    bare = open_page(core, "overview")
    assert "Median time" not in cards(bare)
    assert "No agent has recalled anything yet" in words(bare)


def test_each_user_sees_their_own_counts(demo_core: Core, open_page: Open) -> None:
    counts = {
        user: cards(open_page(demo_core, "overview", frame_actor=user))["active"]
        for user in ("mira", "anouk")
    }
    everything = cards(open_page(demo_core, "overview"))["active"]
    assert int(counts["anouk"]) < int(everything)
    assert counts["mira"] != counts["anouk"]


def test_the_demo_is_offered_where_there_is_nothing_and_loads_from_there(
    core: Core, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memcore import demo

    load = demo.load
    monkeypatch.setattr(demo, "load", lambda core, **kw: load(core, embedder="hash:64", **kw))
    at = open_page(core, "overview")
    assert "No library yet" in words(at)
    at.button(key="frame_load_demo").click().run()
    assert not at.exception
    assert at.selectbox(key="frame_library").value
    assert int(cards(at)["active"]) > 150
    seen = core.checkpoints.threads("demo-", actor=Actor("operator", operator=True), match="prefix")
    assert seen.total == 8  # as `memcore demo load` writes
