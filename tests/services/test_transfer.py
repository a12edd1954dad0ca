"""Files in and out: nothing claimed by a file is believed, nothing readable is lost."""

import json
from datetime import UTC, datetime

import pytest

from memcore import Actor, Draft, Subject
from memcore.errors import InvalidInput, NotFound, PermissionDenied
from memcore.rules import files
from memcore.services.memories import Filter

OPERATOR = Actor("operator", operator=True)


def jsonl(*records):
    return "\n".join(json.dumps(r, ensure_ascii=False) for r in records).encode()


def contents(core, **wanted):
    return [m.content for m in core.memories.browse(Filter(**wanted), actor=OPERATOR).memories]


def test_bad_records_are_reported_by_line_and_the_rest_is_stored(core, who):
    data = jsonl({"content": "Lives in Suzhou", "type": "fact"}, {"content": "x", "type": "?"},
                 {"text": "Learns French now", "type": "skill"}) + b"\n{broken\n"  # fmt: skip
    done = core.transfer.import_file(data, subject=who)
    assert (done.stored, [r.line for r in done.refused]) == (2, [2, 4])
    assert "valid JSON" in done.refused[1].reason


def test_duplicates_inside_a_file_name_the_line_they_repeat(core, who):
    done = core.transfer.import_file(
        jsonl(
            *({"content": c} for c in ("Likes green tea", "Likes green tea ", "likes green tea"))
        ),
        subject=who,
    )
    assert done.stored == 1
    assert [(r.line, "line 1" in r.reason) for r in done.refused] == [(2, True), (3, True)]


def test_the_gate_judges_what_is_imported_and_no_secret_comes_in(core, who):
    done = core.transfer.import_file(
        jsonl({"content": "密码：Rqx-SAMPLE-481"}, {"content": "嗯"}, {"content": "偏好用表格"}),
        subject=who,
    )
    assert contents(core) == ["偏好用表格"]
    assert "SAMPLE" not in repr(done)


def test_a_file_says_neither_whose_it_is_nor_which_record_it_overwrites(core, library, who):
    mine = core.memories.add_explicit_memory("A record of the first user", subject=who).memory
    record = {"id": mine.id, "content": "Another text altogether", "user_id": "u1",
              "created_by": "u1", "role": "owner", "vector": [0.1] * 64}  # fmt: skip
    other = Subject(library.id, "u2")
    done = core.transfer.import_file(jsonl(record), subject=other)
    assert done.stored == 1
    assert core.memories.get(mine.id, actor=OPERATOR) == mine
    (theirs,) = core.memories.browse(actor=Actor("u2")).memories
    assert (theirs.user_id, theirs.created_by, theirs.source_id) == ("u2", "u2", mine.id)
    assert len(done.notes) == 2


def test_times_are_kept_and_the_import_is_noted_beside_them(core, who):
    done = core.transfer.import_file(
        jsonl({"content": "Moved house in spring", "created_at": "2024-05-01T08:00:00+08:00"},
              {"content": "Moved office in autumn", "created_at": "2024-10-01T08:00:00"},
              {"content": "Moved on at some point", "created_at": "one day"}),
        subject=who,
    )  # fmt: skip
    stored = core.memories.browse(actor=OPERATOR, sort="oldest").memories
    assert [m.created_at for m in stored] == [
        datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 10, 1, 8, tzinfo=UTC),
    ]  # fmt: skip
    assert all("imported_at" in m.attributes for m in stored)
    assert [r.line for r in done.refused] == [3]
    assert any("UTC" in note for note in done.notes)


def test_a_column_of_percentages_is_read_as_one(core, who):
    rows = [{"content": f"Statement of sort {w}", "confidence": c}
            for w, c in (("alpha", 90), ("beta", 75), ("gamma", 100), ("delta", 1))]  # fmt: skip
    done = core.transfer.import_file(jsonl(*rows), subject=who)
    stored = core.memories.browse(actor=OPERATOR, sort="confidence").memories
    assert [m.confidence for m in stored] == [1.0, 0.9, 0.75]
    assert "percent" in done.notes[0]
    assert [r.line for r in done.refused] == [4]


CSV = '内容,类型,置信度,标签\n喜欢在清晨跑步,习惯,0.9,运动;早起\n\n"多行\n内容，带换行",事实,0.8,\n'
SEMICOLONS = CSV.replace(",", ";").replace("运动;早起", "运动|早起")


@pytest.mark.parametrize(
    "data",
    [CSV.encode("utf-8-sig"), CSV.encode(), CSV.encode("gb18030"), CSV.encode("utf-16"),
     SEMICOLONS.replace("标签\n", "标签\r\n").encode()],
    ids=["bom", "utf-8", "gb18030", "utf-16", "semicolons"],
)  # fmt: skip
def test_spreadsheets_are_read_in_their_usual_encodings(core, who, data):
    done = core.transfer.import_file(data, "export.csv", subject=who)
    assert (done.stored, done.refused) == (2, ())
    running = core.memories.browse(Filter(text="清晨"), actor=OPERATOR).memories[0]
    assert (running.memory_type, running.confidence) == ("habit", 0.9)
    assert set(running.tags) == {"运动", "早起"}


def test_a_file_that_ends_early_is_refused_whole(core, who):
    data = json.dumps([{"content": "Whole"}, {"content": "Cut off here"}]).encode()[:-9]
    with pytest.raises(InvalidInput, match="cut off"):
        core.transfer.import_file(data, subject=who)
    assert contents(core) == []


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"", "empty"), (b" \n ", "empty"), (b"\xff\xfe\x00", "utf-16"),
     (b"x" * (files.LARGEST + 1), "64 MiB")],
)  # fmt: skip
def test_an_unusable_file_is_refused_with_the_reason(core, who, data, said):
    with pytest.raises(InvalidInput, match=said):
        core.transfer.import_file(data, subject=who)


def test_a_dry_run_reports_and_stores_nothing(core, who):
    done = core.transfer.import_file(
        jsonl({"content": "Would be stored"}, {"note": "no text"}), subject=who, dry_run=True
    )
    assert (done.stored, done.records, [r.line for r in done.refused]) == (1, 2, [2])
    assert contents(core) == []


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_can_be_imported_elsewhere(core, library, who, form):
    for text in (
        "=1+2 is a formula to a spreadsheet",
        "Prefers trains, not planes",
        "爱吃 辣椒\n和花椒",
    ):
        core.memories.add_explicit_memory(text, subject=who, tags=("a", "b"))
    suppressed = core.memories.add_explicit_memory("To be forgotten soon", subject=who).memory
    core.memories.change_status(suppressed.id, "suppressed", actor=OPERATOR)
    data = "".join(core.transfer.export(Filter(), actor=OPERATOR, form=form)).encode()
    other = core.libraries.create("elsewhere", embedder="hash:32")
    done = core.transfer.import_file(data, f"x.{form}", subject=Subject(other.id, "u1"))
    assert sorted(contents(core, library_id=other.id)) == sorted(
        set(contents(core, library_id=library.id)) - {"To be forgotten soon"}
    )
    assert "suppressed" in done.refused[0].reason


# ---- one act, taken back


def test_an_import_is_taken_back_in_one_act_and_what_it_replaced_comes_back(core, library, who):
    kept = core.memories.add(Draft("Sails on the lake every summer"), subject=who).memory
    old = core.memories.add(Draft("The team meets at 9 on Mondays"), subject=who).memory
    done = core.transfer.import_file(
        jsonl({"content": "Collects stamps from Iceland"}, {"note": "no text"},
              {"content": "The team meets at 10 on Mondays"},
              {"content": "The team meets at 11 on Mondays"}),
        subject=who, actor=OPERATOR,
    )  # fmt: skip
    assert done.stored == 3
    assert core.memories.get(old.id, actor=OPERATOR).status == "superseded"
    with pytest.raises(PermissionDenied):
        core.memories.undo(done.batch_id, actor=Actor("u1"))
    changed = core.memories.undo(done.batch_id, actor=OPERATOR)
    assert changed.refused == {}
    assert len(changed.done) == 4
    there = core.memories.browse(actor=OPERATOR, sort="oldest").memories
    assert [m.id for m in there] == [kept.id, old.id]
    assert {m.status for m in there} == {"active"}
    assert there[1].superseded_by is None
    assert core.libraries.health(library.id).well
    with pytest.raises(NotFound):
        core.memories.undo(done.batch_id, actor=OPERATOR)
    again = core.transfer.import_file(
        jsonl({"content": "Collects stamps from Iceland"}), subject=who, actor=OPERATOR
    )
    assert again.stored == 1


def test_what_was_changed_after_an_import_stays_and_is_named(core, who):
    old = core.memories.add(Draft("The team meets at 9 on Mondays"), subject=who).memory
    done = core.transfer.import_file(
        jsonl({"content": "The team meets at 10 on Mondays"}, {"content": "Keeps bees on the roof"},
              {"content": "Bakes rye bread"}, {"content": "Speaks Estonian with her aunt"}),
        subject=who, actor=OPERATOR,
    )  # fmt: skip
    by_text = {m.content: m for m in core.memories.browse(actor=OPERATOR).memories}
    new = by_text["The team meets at 10 on Mondays"]
    core.memories.edit(new.id, actor=OPERATOR, content="The team meets at 10 on Tuesdays")
    core.memories.change_status(by_text["Bakes rye bread"].id, "archived", actor=OPERATOR)
    core.memories.delete(by_text["Keeps bees on the roof"].id, actor=OPERATOR)
    changed = core.memories.undo(done.batch_id, actor=OPERATOR)
    assert changed.done == (by_text["Speaks Estonian with her aunt"].id,)
    assert changed.refused == {
        new.id: "It was changed again since.",
        by_text["Bakes rye bread"].id: "It was changed again since.",
        by_text["Keeps bees on the roof"].id: "It was deleted since.",
        old.id: "What replaced it was changed again since.",
    }
    assert core.memories.get(old.id, actor=OPERATOR).status == "superseded"


def test_a_dry_run_and_an_import_that_stores_nothing_have_nothing_to_take_back(core, who):
    row = jsonl({"content": "Would be stored"})
    assert core.transfer.import_file(row, subject=who, dry_run=True).batch_id is None
    assert core.transfer.import_file(jsonl({"note": "x"}), subject=who).batch_id is None
    first = core.transfer.import_file(row, subject=who)
    assert first.batch_id is not None
    (memory,) = core.memories.browse(actor=OPERATOR).memories
    # One memory's own history offers no undo of the whole file.
    assert [c.action for c in core.history.of_memory(memory.id, actor=OPERATOR)] == ["add"]


# ---- forms of files


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", '"Rides a tandem to work"\n"Never eats cilantro"\n'),
        ("a.json", '["Rides a tandem to work", "Never eats cilantro"]'),
        ("a.json", '{"memories": ["Rides a tandem to work", "Never eats cilantro"]}'),
        ("a.csv", '"content"\n"Rides a tandem to work"\n"Never eats cilantro"\n'),
    ],
)
def test_plain_texts_are_records_too(core, who, name, data):
    done = core.transfer.import_file(data.encode(), name, subject=who)
    assert (done.stored, done.refused) == (2, ())
    assert sorted(contents(core)) == ["Never eats cilantro", "Rides a tandem to work"]


def test_a_line_of_json_may_hold_any_of_unicodes_line_ends(core, who):
    text = "Rides a tandem\u2028to work\u0085and back"
    done = core.transfer.import_file(jsonl({"content": text}), "a.jsonl", subject=who)
    assert (done.stored, done.records, done.refused) == (1, 1, ())


def test_a_repeated_line_names_the_first_though_that_was_not_stored_either(core, who):
    done = core.transfer.import_file(
        jsonl({"content": "tea"}, {"content": "tea "}, {"content": "Tea"}), subject=who
    )
    first, *others = done.refused
    assert "fewer than" in first.reason
    assert "line 1" not in first.reason
    assert all(r.reason.startswith("The same is said in line 1.") for r in others)
