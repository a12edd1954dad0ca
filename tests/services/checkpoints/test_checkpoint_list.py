"""The list of threads: searching, filters, order, pages, and that it reads no blob."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memcore.core import Core, open_core
from memcore.errors import ConfigError, InvalidInput, NotFound, PermissionDenied
from memcore.models import Actor
from memcore.services.checkpoints import Policy, ThreadStatus

Talk = Callable[..., None]
Chain = Callable[..., Any]


def configured(thread_id: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, **more}}


def test_threads_are_listed_newest_first_with_their_size_and_steps(
    watched: Core, talker: Talk, operator_: Actor
) -> None:
    talker("first", 1)
    talker("second", 3, user_id="ann")
    page = watched.checkpoints.threads(actor=operator_)
    assert [t.thread_id for t in page.threads] == ["second", "first"]
    assert page.total == 2
    second = page.threads[0]
    assert second.checkpoints == 9
    assert second.namespaces == 1
    assert second.status is ThreadStatus.FINISHED
    assert second.metadata["user_id"] == "ann"
    assert second.octets == watched.checkpoints.usage("second", actor=operator_).blob_octets + (
        watched.checkpoints.usage("second", actor=operator_).write_octets
    )
    assert second.first_activity
    assert second.last_activity
    assert second.first_activity < second.last_activity


def test_an_exact_thread_id_is_told_from_one_that_only_begins_alike(
    watched: Core, talker: Talk, operator_: Actor
) -> None:
    for thread in ("s-1", "s-10", "S-100", "other_s-1", "s%1"):
        talker(thread)
    ask = watched.checkpoints.threads

    def found(search: str, match: str) -> list[str]:
        return sorted(t.thread_id for t in ask(search, actor=operator_, match=match).threads)

    assert found("s-1", "exact") == ["s-1"]
    assert found("s-1", "prefix") == ["s-1", "s-10"]
    assert found("s-1", "contains") == ["S-100", "other_s-1", "s-1", "s-10"]
    assert found("s%", "prefix") == ["s%1"]
    page = ask("s-1", actor=operator_, match="prefix")
    assert (page.match, page.exact) == ("prefix", True)
    assert ask("s-", actor=operator_, match="prefix").exact is False


def test_threads_are_found_by_their_metadata(watched: Core, talker: Talk, operator_: Actor) -> None:
    talker("t1", user_id="ann", plan="pro")
    talker("t2", user_id="bob")
    page = watched.checkpoints.threads(actor=operator_, metadata={"user_id": "ann"})
    assert [t.thread_id for t in page.threads] == ["t1"]
    assert not watched.checkpoints.threads(actor=operator_, metadata={"user_id": "a"}).threads


@pytest.mark.parametrize("wanted", [7, "7", 7.0])
def test_a_number_in_the_metadata_is_found_by_either_form(
    wanted: Any, watched: Core, talker: Talk, operator_: Actor
) -> None:
    talker("as-number", shop=7, big=True)
    talker("as-text", shop="7", big="true")
    talker("other", shop=70, big="no")
    ask = watched.checkpoints.threads
    found = {t.thread_id for t in ask(actor=operator_, metadata={"shop": wanted}).threads}
    assert found == {"as-number", "as-text"}
    for switch in (True, "true", "True"):
        both = ask(actor=operator_, metadata={"shop": "7", "big": switch}).threads
        assert {t.thread_id for t in both} == {"as-number", "as-text"}
    assert not ask(actor=operator_, metadata={"shop": "07"}).threads


def test_no_text_a_person_may_paste_breaks_the_search(
    watched: Core, talker: Talk, operator_: Actor
) -> None:
    talker('张三\'s thread "7"', note="it's 100 % \\ fine")
    ask = watched.checkpoints.threads
    assert ask("三's THREAD \"", actor=operator_).total == 1
    assert ask(actor=operator_, metadata={"note": "it's 100 % \\ fine"}).total == 1
    for text in ("\0", "a\0b", "\ud800", "%", "_", "\\", "'; DROP TABLE x --", "1e999", "NaN",
                 "[" * 5000, "{}", "null", "9" * 5000):  # fmt: skip
        assert ask(text, actor=operator_, match="exact").total == 0
        assert ask(actor=operator_, metadata={"note": text, text: text}).total == 0
    with pytest.raises(InvalidInput, match="finite"):
        ask(actor=operator_, metadata={"note": float("nan")})


def test_pages_and_totals_agree(watched: Core, talker: Talk, operator_: Actor) -> None:
    for i in range(5):
        talker(f"t{i}")
    pages = [watched.checkpoints.threads(actor=operator_, limit=2, offset=o) for o in (0, 2, 4, 6)]
    assert [[t.thread_id for t in p.threads] for p in pages] == [
        ["t4", "t3"], ["t2", "t1"], ["t0"], []
    ]  # fmt: skip
    assert {p.total for p in pages} == {5}


def test_threads_sort_by_size_and_count(watched: Core, talker: Talk, operator_: Actor) -> None:
    talker("long", 4)
    talker("large", 1, size=50_000)
    by_size = watched.checkpoints.threads(actor=operator_, order="size")
    by_count = watched.checkpoints.threads(actor=operator_, order="checkpoints")
    oldest = watched.checkpoints.threads(actor=operator_, order="oldest")
    assert by_size.threads[0].thread_id == "large"
    assert by_count.threads[0].thread_id == oldest.threads[0].thread_id == "long"


def test_the_list_says_which_database_it_reads_and_not_the_password(
    database_url: str, threads_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    operator_: Actor,
) -> None:  # fmt: skip
    monkeypatch.setenv(
        "CHECKPOINT_DATABASE_URL", threads_url.replace("postgres@", "postgres:s3cret@")
    )
    with open_core(url=database_url, home=tmp_path) as core:
        source = core.checkpoints.source(actor=operator_)
    assert "threads" in source.where
    assert "s3cret" not in source.where
    assert (source.own, source.read_only) == (False, True)


def test_without_an_address_of_its_own_memcores_database_is_read(
    fresh_database_url: str, tmp_path: Path, operator_: Actor
) -> None:
    with open_core(url=fresh_database_url, home=tmp_path) as core:
        page = core.checkpoints.threads(actor=operator_)
        assert (page.source.own, page.source.read_only, page.source.ready) == (True, False, False)
        assert page.threads == ()
        with pytest.raises(NotFound, match="no LangGraph checkpoint tables"):
            core.checkpoints.timeline("t", actor=operator_)
        core.checkpoints.saver()
        assert core.checkpoints.source(actor=operator_).ready


def test_only_an_operator_looks_at_threads(watched: Core) -> None:
    someone = Actor("ann")
    with pytest.raises(PermissionDenied):
        watched.checkpoints.threads(actor=someone)
    with pytest.raises(PermissionDenied):
        watched.checkpoints.checkpoint("t", actor=someone)
    with pytest.raises(PermissionDenied):
        watched.checkpoints.archived(actor=someone)


@pytest.mark.parametrize(
    "bad", [{"match": "like"}, {"order": "x"}, {"limit": 0}, {"limit": 9999}, {"offset": -1},
            {"status": "finished"}]
)  # fmt: skip
def test_a_bad_argument_is_refused_by_name(
    watched: Core, operator_: Actor, bad: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        watched.checkpoints.threads(actor=operator_, **bad)


def test_a_malformed_switch_is_refused(
    core: Core, operator_: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHECKPOINT_READ_ONLY", "perhaps")
    with pytest.raises(ConfigError, match="CHECKPOINT_READ_ONLY"):
        core.checkpoints.source(actor=operator_)


def test_threads_are_bounded_by_their_last_activity(
    watched: Core, talker: Talk, aged: Callable[[str, float], None], operator_: Actor
) -> None:
    for thread, days in (("new", 0.0), ("week", 6.0), ("old", 40.0)):
        talker(thread)
        aged(thread, days)
    now = datetime.now(UTC)

    def found(**bounds: datetime) -> list[str]:
        page = watched.checkpoints.threads(actor=operator_, **bounds)
        assert page.total == len(page.threads)
        return [t.thread_id for t in page.threads]

    assert found(since=now - timedelta(days=7)) == ["new", "week"]
    assert found(until=now - timedelta(days=7)) == ["old"]
    assert found(since=now - timedelta(days=7), until=now - timedelta(days=1)) == ["week"]
    with pytest.raises(InvalidInput, match="time zone"):
        found(since=now.replace(tzinfo=None))


def test_listing_and_the_timeline_read_no_blob(
    watched: Core, talker: Talk, raw: psycopg.Connection[Any], operator_: Actor
) -> None:
    """However large the states are: the server's own counters see no access to where large values
    are kept."""
    for n in range(3):
        talker(f"t{n}", 2, size=200_000)
    raw.execute("UPDATE checkpoint_blobs SET blob = blob || decode(md5(random()::text), 'hex')")

    def touched() -> int:
        raw.execute("SELECT pg_stat_force_next_flush()")
        row = raw.execute(
            "SELECT coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0)"
            " FROM pg_statio_user_tables WHERE relname = 'checkpoint_blobs'"
        ).fetchone()
        assert row is not None
        return int(row[0])

    store = watched.checkpoints._open()
    for look, reads in (
        (lambda: watched.checkpoints.threads(actor=operator_), False),
        (lambda: watched.checkpoints.threads(actor=operator_, order="size"), False),
        (lambda: watched.checkpoints.threads(actor=operator_, status="waiting"), False),
        (lambda: watched.checkpoints.timeline("t1", actor=operator_), False),
        (lambda: watched.checkpoints.usage(actor=operator_), False),
        (lambda: watched.checkpoints.usage("t1", actor=operator_), False),
        (lambda: watched.checkpoints.plan_prune(Policy(keep_last=1), actor=operator_), False),
        (lambda: watched.checkpoints.checkpoint("t1", actor=operator_), True),
    ):
        store.close()  # a server process reports what it read when it ends
        time.sleep(0.1)
        before = touched()
        look()
        store.close()
        deadline = time.monotonic() + (5 if reads else 0.3)
        while touched() == before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (touched() > before) is reads
