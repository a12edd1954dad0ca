"""`memcore map`: a library's picture, or one of vectors in a file."""

import json

import numpy as np
import pytest

from memcore import cli
from memcore.models import Draft


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows)


def test_vectors_of_a_file_are_drawn_and_bad_rows_listed(tmp_path, capsys):
    file = tmp_path / "vectors.jsonl"
    file.write_text(lines(
        {"id": "a", "vector": [1, 0]}, {"id": "b", "vector": [0, 0]},
        {"id": "c", "vector": [float("nan"), 1]}, {"id": "d", "vector": None},
        {"id": "e", "vector": [1, 0]}, [0.5, 0.5],
    ))  # fmt: skip
    assert cli.main(["map", "--file", str(file), "--json"]) == 0
    drawn = json.loads(capsys.readouterr().out)
    assert {p["id"]: p["copies"] for p in drawn["points"]} == {"6": 1, "a": 2, "e": 2}
    assert {r["id"]: r["reason"] for r in drawn["left_out"]} == {
        "b": "zero", "c": "not_finite", "d": "missing",
    }  # fmt: skip
    assert drawn["method"] == "line"


def test_mixed_lengths_are_drawn_one_group_at_a_time(tmp_path, capsys):
    file = tmp_path / "vectors.jsonl"
    file.write_text(lines(*[[1, i, 0] for i in range(4)], [1, 2], [2, 1]))
    assert cli.main(["map", "--file", str(file), "--json", "--dimensions", "2"]) == 0
    drawn = json.loads(capsys.readouterr().out)
    assert len(drawn["points"]) == 2
    assert drawn["groups"] == [{"dimensions": 3, "rows": 4}, {"dimensions": 2, "rows": 2}]


@pytest.mark.parametrize("text", ['{"vector": "x"}', "not json", '"a word"', '{"vector": [[1]]}x'])
def test_a_line_that_is_no_vector_is_named(tmp_path, capsys, text):
    file = tmp_path / "vectors.jsonl"
    file.write_text("[1, 2]\n" + text)
    assert cli.main(["map", "--file", str(file)]) == 1
    assert "Line 2" in capsys.readouterr().err


def test_a_library_is_drawn_and_described(core, library, who, monkeypatch, capsys):
    for word in ("oolong", "green", "black"):
        core.memories.add(Draft(f"{word} tea"), subject=who)
    from contextlib import nullcontext

    from memcore.cli import mapping

    monkeypatch.setattr(mapping, "opened", lambda: nullcontext(core))
    said = ["map", "--library", "team", "--query", "green tea", "--json"]
    assert cli.main(said) == 0
    drawn = json.loads(capsys.readouterr().out)
    assert len(drawn["points"]) == 3
    assert np.isfinite([drawn["landing"]["x"], drawn["landing"]["y"]]).all()
    assert cli.main(["map", "--library", "team"]) == 0
    assert "too few for UMAP" in capsys.readouterr().out
    assert cli.main([*said, "--user", "nobody"]) == 0
    hidden = json.loads(capsys.readouterr().out)
    assert hidden["points"] == []
    assert hidden["landing"] is None
