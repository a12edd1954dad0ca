"""What the console says when something fails, and what it lets nobody do by the way."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from memcore.core import Core
from memcore.errors import EndpointRefused, PermissionDenied
from memcore.models import Library, Subject
from pages.shared import messages, present
from tests.pages.conftest import Open, words


def test_a_refused_key_is_named_as_the_cause_with_the_next_step_and_never_shown() -> None:
    def script() -> None:
        import streamlit as st

        from memcore.errors import EndpointRefused
        from pages.shared import messages

        with messages.trouble("Recall"):
            raise EndpointRefused(
                "The endpoint “team” refused the key (401).", hint="Enter the key again."
            )
        st.write("never drawn")

    at = AppTest.from_function(script).run()
    assert not at.exception
    (error,) = at.error
    assert error.proto.title == "Recall failed"
    assert "refused the key" in error.value
    assert "Enter the key again" in error.value
    assert "never drawn" not in words(at)


def test_what_is_not_allowed_is_told_apart_from_what_is_broken() -> None:
    def script(name: str) -> None:
        import memcore.errors
        from pages.shared import messages

        with messages.trouble("Deleting", stop=False):
            raise getattr(memcore.errors, name)()

    denied = AppTest.from_function(script, args=(PermissionDenied.__name__,)).run()
    assert denied.warning
    assert not denied.error
    broken = AppTest.from_function(script, args=(EndpointRefused.__name__,)).run()
    assert broken.error


def test_an_error_that_nobody_foresaw_shows_no_trace_and_no_detail(
    core: Core, library: Library, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tomllib
    from pathlib import Path

    config = tomllib.loads((Path(__file__).parents[2] / ".streamlit/config.toml").read_text())
    assert config["client"]["showErrorDetails"] == "none"


@pytest.mark.parametrize(
    "text",
    ["![x](https://evil.example/p.png)", "<script>alert(1)</script>", ":material/home:", "# big",
     "$x^2$", "[a](javascript:alert(1))", "`code` and **bold**", "1. one", "a | b", "~~gone~~",
     ":red[x]", "---", "> quote", "line\nbreak"],
)  # fmt: skip
def test_stored_text_is_shown_as_written_and_formats_nothing(text: str) -> None:
    shown = messages.plain(text)
    bare = shown.replace("\\", "")
    assert bare == text
    for char in "`*_[]()#!<>$~:|":
        for place, found in enumerate(shown):
            if found == char:
                assert shown[place - 1] == "\\"


def test_hostile_content_reaches_no_page_as_markdown(
    core: Core, library: Library, open_page: Open
) -> None:
    bad = "![pixel](https://evil.example/p.png) and <img src=x onerror=alert(1)> :red-badge[x]"
    added = core.memories.add_explicit_memory(bad, subject=Subject(library.id, "u1"))
    assert added.memory
    for page, params in (("memories", {"memory": added.memory.id}), ("overview", {})):
        at = open_page(core, page, **params)
        assert "![pixel](" not in words(at)
        assert "<img" not in words(at).replace("\\<img", "")


def test_a_deleted_library_does_not_keep_its_place_in_the_picker(
    demo_core: Core, open_page: Open
) -> None:
    from memcore import demo

    at = open_page(demo_core, "overview")
    demo.remove(demo_core)
    import streamlit as st

    st.cache_data.clear()
    at.run()
    assert not at.exception
    assert "No library yet" in words(at)


def test_times_say_their_zone_and_numbers_their_unit() -> None:
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    moment = datetime(2026, 11, 30, 16, 30, tzinfo=UTC)
    assert present.when(moment, ZoneInfo("Asia/Shanghai")) == "2026-12-01 00:30 (UTC+8)"
    assert present.when(moment, ZoneInfo("America/St_Johns")) == "2026-11-30 13:00 (UTC−3:30)"
    assert present.when(moment, UTC) == "2026-11-30 16:30 (UTC)"
    assert present.when(None, UTC) == "never"
    cases: list[tuple[Any, str]] = [
        (timedelta(seconds=5), "just now"), (timedelta(minutes=5), "5 min ago"),
        (timedelta(hours=3), "3 h ago"), (timedelta(days=1), "1 day ago"),
        (timedelta(days=12), "12 days ago"), (timedelta(hours=-1), "in the future"),
    ]  # fmt: skip
    for passed, said in cases:
        assert present.ago(moment - passed, moment) == said
    assert [present.size(n) for n in (532, 12_400, 3_100_000)] == ["532 B", "12.4 kB", "3.1 MB"]
    assert present.count(1, "memory") == "1 memory"
    assert present.count(1204, "memory") == "1,204 memories"


@pytest.mark.slow
def test_the_first_page_of_twenty_thousand_memories_is_there_at_once(
    core: Core, library: Library, open_page: Open
) -> None:
    import time

    from sqlalchemy import text

    with core.runtime.engine.begin() as connection:
        connection.execute(text("INSERT INTO users (id) VALUES ('u1')"))
        connection.execute(
            text(
                "INSERT INTO memories (library_id, user_id, scope, scope_id, memory_type, content, "
                "tags, status, created_by, content_hash, created_at) SELECT :library, 'u1', "
                "'user', 'u1', (ARRAY['fact', 'habit'])[1 + g % 2], 'Statement ' || g || ' ' || "
                "md5(g::text), ARRAY['tag' || g % 120], 'active', 'u1', md5(g::text), "
                "now() - g * interval '1 minute' FROM generate_series(1, 20000) g"
            ),
            {"library": library.id},
        )
    at = open_page(core, "memories")
    started = time.perf_counter()
    at.text_input(key="memories_text").set_value("Statement 19").run()
    at.selectbox(key="memories_sort").select("oldest").run()
    spent = time.perf_counter() - started
    assert "**1,111 memories**" in words(at)
    assert len(at.dataframe[0].value) == 25  # a page travels to the browser, not the result
    assert spent < 6  # two looks, on a machine with other work


def test_the_demo_can_be_removed_where_it_was_promised(demo_core: Core, open_page: Open) -> None:
    own = demo_core.libraries.create("own", embedder="hash:64")
    at = open_page(demo_core, "libraries")
    assert at.button(key="libraries_remove_demo")

    def script() -> None:
        from pages.shared import acts

        acts.remove_demo_dialog()

    dialog = AppTest.from_function(script, default_timeout=30).run()
    assert "Other libraries stay as they are" in words(dialog)
    dialog.button(key="demo_remove").click().run()
    assert [x.id for x in demo_core.libraries.all()] == [own.id]
