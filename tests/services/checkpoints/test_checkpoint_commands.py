"""`memcore checkpoints …`: JSON for programs, tables for people, exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memcore.cli import main
from memcore.core import Core


@pytest.fixture
def memcore(
    watched: Core, database_url: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, Any]]:  # fmt: skip
    """Run a command on the test's databases; returns exit status and the printed JSON or text."""
    monkeypatch.setenv("DATABASE_URL", database_url)

    def run(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        status = main(["checkpoints", *words])
        printed = capsys.readouterr().out
        return status, json.loads(printed) if "--json" in words else printed

    return run


def test_a_thread_is_listed_shown_compared_pruned_and_restored(
    memcore: Callable[..., tuple[int, Any]], talker: Callable[..., None]
) -> None:
    talker("s-1", 3, user_id="ann", shop=7)
    talker("s-10", 1, shop="7")
    status, page = memcore("list", "s-1", "--prefix", "--json")
    assert (status, page["total"], page["match"], page["exact"]) == (0, 2, "prefix", True)
    _, page = memcore("list", "--metadata", "user_id=ann", "--json")
    assert [t["thread_id"] for t in page["threads"]] == ["s-1"]

    for shop in ("7", '"7"'):
        _, page = memcore("list", "--metadata", f"shop={shop}", "--json")
        assert [t["thread_id"] for t in page["threads"]] == ["s-10", "s-1"]

    _, line = memcore("show", "s-1", "--timeline", "--json")
    assert len(line["steps"]) == 9
    first, last = line["steps"][-2]["checkpoint_id"], line["steps"][0]["checkpoint_id"]
    _, shown = memcore("show", "s-1", "--json")
    assert shown["checkpoint_id"] == last
    assert [m["role"] for m in shown["messages"]] == ["user", "assistant"] * 3
    _, change = memcore("diff", "s-1", first, "--json")
    assert len(change["messages_added"]) == 5

    _, usage = memcore("usage", "s-1", "--json")
    status, dry = memcore("prune", "--keep-last", "1", "--json")
    assert (status, dry["applied"], dry["plan"]["checkpoints"]) == (0, False, 10)
    assert memcore("usage", "s-1", "--json")[1] == usage
    status, done = memcore("prune", "--keep-last", "1", "--thread", "s-1", "--apply", "--json")
    assert (status, done["report"]["checkpoints"]) == (0, 8)
    _, entries = memcore("archived", "--json")
    status, back = memcore("restore", entries[0]["id"], "--json")
    assert (status, back["checkpoints"]) == (0, 8)
    assert memcore("usage", "s-1", "--json")[1]["total"] == usage["total"]
    status, gone = memcore("delete", "s-1", "--yes", "--json")
    assert (status, gone["checkpoints"], gone["archived"]) == (0, 9, 1)


def test_people_get_tables(
    memcore: Callable[..., tuple[int, Any]], talker: Callable[..., None]
) -> None:
    talker("t", 2)
    assert "finished" in memcore("list")[1]
    assert "[user] turn 1" in memcore("show", "t")[1]
    assert "root graph" in memcore("show", "t", "--timeline")[1]
    assert "messages" in memcore("usage")[1]
    assert "Nothing was changed" in memcore("prune", "--keep-last", "1")[1]
    assert "Archived and removed" in memcore("prune", "--keep-last", "1", "--apply")[1]
    assert "trim" in memcore("archived")[1]


def test_trouble_is_an_exit_status_and_a_reason(
    memcore: Callable[..., tuple[int, Any]], talker: Callable[..., None]
) -> None:
    status, error = memcore("show", "nobody", "--json")
    assert (status, error["error"]) == (1, "NotFound")
    status, error = memcore("prune", "--json")
    assert (status, error["error"]) == (1, "InvalidInput")
    status, error = memcore("list", "--metadata", "nonsense", "--json")
    assert (status, error["error"]) == (1, "InvalidInput")
    with pytest.raises(SystemExit) as wrong:
        memcore("delete", "t")
    assert wrong.value.code == 2
