"""The checkpoints page on demo threads, without any, and on databases away or read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from streamlit.testing.v1 import AppTest

from memcore.core import Core, open_core
from memcore.demo import threads
from memcore.models import Actor
from memcore.services.checkpoints import Policy
from tests.pages.conftest import Open, words

ME = Actor("operator", operator=True)


@pytest.fixture(scope="module")
def played(server: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with the demo threads. Tests that change it work on a copy."""
    admin = create_engine(server("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE played TEMPLATE memcore"))
    with open_core(url=server("played"), home=tmp_path_factory.mktemp("home")) as core:
        threads.load(core)
    yield server("played")
    with admin.connect() as connection:
        connection.execute(text("DROP DATABASE played WITH (FORCE)"))
    admin.dispose()


@pytest.fixture
def console(played: str, tmp_path: Path) -> Iterator[Core]:
    """A core on the demo threads; do not change them."""
    with open_core(url=played, home=tmp_path) as core:
        yield core


@pytest.fixture
def empty(fresh_database_url: str, tmp_path: Path) -> Iterator[Core]:
    with open_core(url=fresh_database_url, home=tmp_path) as core:
        yield core


def said(at: AppTest) -> str:
    titles = [str(getattr(e.proto, "title", "")) for e in (*at.error, *at.warning, *at.info)]
    code = [str(e.value) for e in at.code]
    return "\n".join([words(at), *titles, *code]).replace("\\", "")


def test_without_any_thread_the_page_says_how_to_get_some_and_loads_the_demo(
    open_page: Open, empty: Core
) -> None:
    at = open_page(empty, "checkpoints")
    assert not at.exception
    assert "No thread yet" in said(at)
    assert "core.checkpoints.saver()" in said(at)
    at.button(key="checkpoints_demo").click().run()
    assert not at.exception
    assert empty.checkpoints.threads(actor=ME).total == 8
    assert "8 threads" in said(at)


def test_the_list_filters_by_id_metadata_and_status(open_page: Open, console: Core) -> None:
    at = open_page(console, "checkpoints")
    assert not at.exception
    frame = at.dataframe[0].value
    assert frame["thread"].iloc[0] == "demo-morning"
    at.pills(key="checkpoints_status").set_value("waiting").run()
    assert list(at.dataframe[0].value["thread"]) == ["demo-holds"]
    at.pills(key="checkpoints_status").set_value("unfinished").run()
    assert list(at.dataframe[0].value["thread"]) == ["demo-morning"]
    at.pills(key="checkpoints_status").set_value(None)
    at.text_input(key="checkpoints_metadata").set_value("user_id=chenyu").run()
    assert list(at.dataframe[0].value["thread"]) == ["demo-scanner"]
    at.text_input(key="checkpoints_metadata").set_value("")
    at.selectbox(key="checkpoints_match").set_value("prefix")
    at.text_input(key="checkpoints_search").set_value("demo-p").run()
    assert list(at.dataframe[0].value["thread"]) == ["demo-pwa"]
    assert "begins with demo" in said(at)
    assert "none has exactly this id" in said(at)
    at.text_input(key="checkpoints_search").set_value("nothing like it").run()
    assert "No thread matches" in said(at)
    at.button(key="frame_clear_filters").click().run()
    assert len(at.dataframe[0].value) == 8


@pytest.mark.parametrize(
    ("thread", "expected"),
    [
        ("demo-holds", "Waiting for a human at ask"),
        ("demo-morning", "Answered, but the run has not got past ask"),
        ("demo-scanner", "did not answer within 30 s"),
        ("demo-pwa", "never answered"),
    ],
)
def test_a_stuck_thread_says_what_is_wrong_first(
    open_page: Open, console: Core, thread: str, expected: str
) -> None:
    at = open_page(console, "checkpoints", thread=thread)
    assert not at.exception
    titles = [str(getattr(e.proto, "title", "")) for e in (*at.error, *at.warning, *at.info)]
    written = said(at) + "\n".join(titles)
    assert expected in written.replace("\\", "")


@pytest.mark.parametrize("tab", ["Chat", "State", "Pending", "Changes", "Growth"])
def test_every_tab_of_a_thread_is_drawn(open_page: Open, console: Core, tab: str) -> None:
    for thread in ("demo-holds", "demo-dryrun"):
        at = open_page(console, "checkpoints", thread=thread, thread_tab=tab)
        assert not at.exception
        assert not at.error


def test_steps_are_walked_and_the_address_names_the_checkpoint(
    open_page: Open, console: Core
) -> None:
    at = open_page(console, "checkpoints", thread="demo-kickoff")
    newest = console.checkpoints.timeline("demo-kickoff", actor=ME).steps
    assert at.button(key="thread_newer").disabled
    at.button(key="thread_older").click().run()
    assert not at.exception
    assert at.query_params["checkpoint"] == newest[1].checkpoint_id
    at.button(key="thread_newer").click().run()
    assert at.query_params["checkpoint"] == newest[0].checkpoint_id
    at.button(key="checkpoints_back").click().run()
    assert "thread" not in at.query_params
    assert len(at.dataframe[0].value) == 8


def test_a_checkpoint_that_is_gone_is_said_and_the_newest_shown(
    open_page: Open, console: Core
) -> None:
    at = open_page(
        console,
        "checkpoints",
        thread="demo-kickoff",
        checkpoint="1f000000-0000-6000-8000-000000000000",
    )
    assert not at.exception
    assert "not stored any more" in said(at)
    at = open_page(console, "checkpoints", thread="nobody")
    assert not at.exception
    assert "There is no thread" in said(at)


def test_the_dry_run_shows_what_goes_and_changes_nothing(open_page: Open, console: Core) -> None:
    at = open_page(console, "checkpoints", checkpoints_view="Space")
    assert not at.exception
    figures = {m.label: m.value for m in at.metric}
    assert figures["Threads touched"] == "1"
    assert figures["Checkpoints that go"] == "20"
    assert console.checkpoints.threads(actor=ME).total == 8
    at = open_page(console, "checkpoints", checkpoints_view="Archive")
    assert not at.exception
    assert "Nothing archived yet" in said(at)


def test_the_archive_lists_what_went(open_page: Open, empty: Core) -> None:
    threads.load(empty)
    plan = empty.checkpoints.plan_prune(Policy(idle_days=14), actor=ME)
    empty.checkpoints.prune(plan, actor=ME)
    at = open_page(empty, "checkpoints", checkpoints_view="Archive")
    assert not at.exception
    assert list(at.dataframe[0].value["thread"]) == ["demo-kickoff"]


def test_a_read_only_database_offers_no_write(
    console: Core, open_page: Open, monkeypatch: pytest.MonkeyPatch, played: str
) -> None:
    console.checkpoints.close()
    monkeypatch.setenv("CHECKPOINT_DATABASE_URL", played)
    at = open_page(console, "checkpoints", checkpoints_view="Space")
    assert not at.exception
    assert "read-only" in said(at)
    assert at.button(key="space_prune").disabled


def test_a_checkpoint_database_that_is_away_is_named(
    console: Core, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHECKPOINT_DATABASE_URL", "postgresql://me:s3cret@127.0.0.1:1/threads")
    at = open_page(console, "checkpoints")
    assert not at.exception
    assert "127.0.0.1:1/threads" in said(at)
    assert "s3cret" not in said(at)


def test_a_user_who_is_no_operator_sees_no_thread(
    console: Core, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pages.shared import session

    monkeypatch.setattr(session, "actor", lambda: Actor("ann"))
    addresses: tuple[dict[str, str], ...] = ({}, {"thread": "demo-holds"},
                                             {"checkpoints_view": "Space"})  # fmt: skip
    for params in addresses:
        at = open_page(console, "checkpoints", **params)
        assert not at.exception
        written = said(at)
        assert "Only an operator" in written
        assert "拾页书店" not in written


def test_a_tree_of_megabytes_is_cut_with_its_size_said_and_long_numbers_stay_exact() -> None:
    from pages.shared import thread_tables

    value = {"text": "字" * 3_000_000, "ids": list(range(10_000)), "order": 1234567890123456789}
    shown = thread_tables.tree(value)
    assert shown["text"].endswith("… (3,000,000 characters)")
    assert shown["ids"][-1] == "… 9,700 more"
    assert shown["order"] == "1234567890123456789"
    wide = {str(n): {str(m): [m] * 50 for m in range(50)} for n in range(400)}
    assert len(str(thread_tables.tree(wide))) < 200_000
    assert thread_tables.tree({"a": [1, True, None, 2.5]}) == {"a": [1, True, None, 2.5]}
