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
