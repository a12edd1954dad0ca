"""The command line of libraries: one JSON document, exit 1 where something is refused or wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from memcore.cli import main

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(
    database_url: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:  # fmt: skip
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MEMCORE_HOME", str(tmp_path))

    def call(*arguments: str) -> tuple[int, Any]:
        code = main([*arguments, "--json"])
        out = capsys.readouterr().out.strip()
        return code, json.loads(out) if out else None

    return call


def test_a_library_is_made_set_and_listed(run: Run) -> None:
    code, made = run("libraries", "--create", "shelf", "--embedder", "hash:32", "--set",
                     "max_recall=3")  # fmt: skip
    assert code == 0
    assert made["settings"]["max_recall"] == {"value": 3, "source": "library"}
    code, shown = run("libraries", "shelf", "--set", "max_recall=", "--set", "min_length=0")
    assert shown["overrides"] == {"min_length": 0}
    assert shown["settings"]["max_recall"] == {"value": 8, "source": "default"}
    code, listed = run("libraries")
    assert [(x["name"], x["memories"], x["agents"]) for x in listed] == [("shelf", 0, [])]


def test_a_value_out_of_range_exits_with_one_and_says_the_range(run: Run) -> None:
    run("libraries", "--create", "shelf", "--embedder", "hash:32")
    code, refused = run("libraries", "shelf", "--set", "max_recall=101")
    assert code == 1
    assert "from 1 to 100" in refused["message"]


def test_reindex_repairs_and_changes_the_embedder(run: Run, database_url: str) -> None:
    run("libraries", "--create", "shelf", "--embedder", "hash:32")
    run("add", "Prefers oolong tea in the morning", "--library", "shelf", "--user", "u1")
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM embeddings"))
    engine.dispose()
    code, checked = run("reindex", "--library", "shelf", "--check")
    assert (code, checked["health"]["missing"]) == (1, 1)
    code, done = run("reindex", "--library", "shelf")
    assert (code, done["note"], done["well"]) == (0, "Embedded 1 memories.", True)
    code, done = run("reindex", "--library", "shelf", "--embedder", "hash:64")
    assert (code, done["state"]) == (0, "done")
    assert run("libraries", "shelf")[1]["dimensions"] == 64


def test_sweep_and_secret_key_answer(run: Run) -> None:
    assert run("sweep")[1]["archived"] == 0
    assert len(run("secret-key")[1]["key"]) == 44


def test_an_agent_is_made_bound_and_switched_off_and_its_commands_then_say_so(run: Run) -> None:
    run("libraries", "--create", "shelf", "--embedder", "hash:32")
    code, made = run("agents", "--create", "desk", "--library", "shelf", "--window", "6")
    assert (code, made["memory_enabled"], made["short_term_memory_size"]) == (0, True, 6)
    who = ("--library", "shelf", "--user", "u1", "--agent", "desk")
    assert run("search", "tea", *who)[0] == 0
    code, off = run("agents", "desk", "--memory", "off")
    assert (code, off["memory_enabled"], off["short_term_memory_size"]) == (0, False, 6)
    for command in (("search", "tea"), ("add", "Prefers oolong tea in the morning")):
        code, refused = run(*command, *who)
        assert (code, refused["error"]) == (1, "AgentMemoryOff")
        assert "'desk' is switched off" in refused["message"]
        assert refused["hint"]
    assert run("search", "tea", *who[:4])[0] == 0
    code, unbound = run("agents", "desk", "--library", "", "--rename", "hall")
    assert (unbound["library_id"], unbound["name"]) == (None, "hall")
    code, bound = run("agents", "hall", "--library", "shelf")
    assert bound["memory_enabled"]
    code, listed = run("agents")
    assert [a["name"] for a in listed] == ["hall"]
    assert run("agents", "--memory", "on")[0] == 1


def test_an_import_names_what_takes_it_back(run: Run, tmp_path: Any) -> None:
    run("libraries", "--create", "shelf", "--embedder", "hash:32")
    file = tmp_path / "notes.jsonl"
    file.write_text('{"content": "Grows quinces behind the house"}\n')
    code, done = run("import", str(file), "--library", "shelf", "--user", "u1")
    assert (code, done["stored"]) == (0, 1)
    assert len(run("memories")[1]["memories"]) == 1
    code, undone = run("undo", done["batch_id"])
    assert (code, len(undone["done"]), undone["refused"]) == (0, 1, {})
    assert run("memories")[1]["memories"] == []
    assert run("undo", done["batch_id"])[0] == 1
