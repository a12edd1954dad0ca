from __future__ import annotations

import json

import pytest

from memcore import Subject
from memcore.cli import main


@pytest.fixture
def url(database_url, monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MEMCORE_HOME", str(tmp_path))


def said(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_gate_says_all_checks_and_what_is_nearest_and_stores_nothing(core, library, url, capsys):
    who = Subject(library.id, "u1")
    first = core.memories.add_explicit_memory("Waters the ferns on Mondays", subject=who).memory
    text = "Waters the ferns on Mondays."
    assert main(["gate", text, "--library", "team", "--user", "u1", "--json"]) == 1
    (told,) = said(capsys)
    assert (told["accepted"], told["blocked_by"]) == (False, "duplicate")
    assert [c["name"] for c in told["checks"]] == [
        "confidence", "sensitive", "length", "duplicate", "rate",
    ]  # fmt: skip
    assert told["nearest"][0]["memory_id"] == first.id
    assert told["nearest"][0]["similarity"] == pytest.approx(1)
    assert main(["gate", "Waters the cactus in June", "--json"]) == 0
    with core.runtime.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM decisions").scalar() == 1


def test_gate_reads_a_file_and_answers_every_line_also_a_bad_one(core, url, capsys, tmp_path):
    file = tmp_path / "drafts.jsonl"
    lines = [
        {"text": "Plays the viola"}, {"text": "viola", "confidence": 0.2}, {"no": "text"},
        {"text": "my pin is 4417"},
    ]  # fmt: skip
    file.write_text("\n".join([*map(json.dumps, lines), "", "not json"]), "utf-8")
    assert main(["gate", "--file", str(file), "--json"]) == 0
    told = said(capsys)
    assert [t.get("blocked_by", "error") for t in told] == [
        None, "confidence", "error", "sensitive", "error", "error",
    ]  # fmt: skip
    assert "4417" not in json.dumps(told)


def test_gate_takes_its_limits_from_the_environment(core, url, capsys, monkeypatch):
    monkeypatch.setenv("MEMORY_MIN_CONFIDENCE", "0.95")
    monkeypatch.setenv("MEMORY_MIN_LENGTH", " ")
    assert main(["gate", "Plays the viola", "--json"]) == 1
    (told,) = said(capsys)
    assert told["checks"][0]["limit"] == 0.95
    assert told["checks"][2]["limit"] == "5–2000"
    monkeypatch.setenv("MEMORY_MIN_CONFIDENCE", "1.5")
    assert main(["gate", "Plays the viola", "--json"]) == 1
    assert "MEMORY_MIN_CONFIDENCE" in said(capsys)[0]["message"]


def test_gate_asks_for_a_text_or_a_file(core, url):
    with pytest.raises(SystemExit) as stopped:
        main(["gate"])
    assert stopped.value.code == 2
