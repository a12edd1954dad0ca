"""The Memories page: what a person filters, opens, changes and takes away is what it says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from memcore.core import Core
from memcore.demo import story
from memcore.models import Actor, Draft, Library, MemoryType, Scope, Status, Subject
from memcore.services.memories import Filter
from tests.pages.conftest import Open, words

OPERATOR = Actor("operator", operator=True)


def mid(key: str) -> str:
    return story.identity("memory", key)


def table(at: AppTest) -> Any:
    return at.dataframe[0].value


def said(at: AppTest) -> str:
    """The line with the number of memories found."""
    return next(m.value for m in at.markdown if m.value.startswith("**") and "memor" in m.value)


def fill(core: Core, library: Library, number: int, **fields: Any) -> None:
    who = Subject(library.id, fields.pop("user", "u1"), fields.pop("project", None))
    start = datetime.now(UTC) - timedelta(days=1)
    for n in range(number):
        draft = Draft(
            f"Row {fields.get('tag', '')} {n} " + chr(0x4E00 + n) * 3 + f" {n * 7919}",
            tags=(fields["tag"],) if "tag" in fields else (f"tag{n}",),
            memory_type=fields.get("kind", MemoryType.FACT),
            scope=fields.get("scope", Scope.USER),
            created_at=start + timedelta(seconds=n),
        )
        assert core.memories.add(draft, subject=who).memory, n


def test_a_filter_finds_all_rows_and_pages_through_them(
    core: Core, library: Library, open_page: Open
) -> None:
    fill(core, library, 57, user="zoe")
    fill(core, library, 5, user="adam", tag="other")
    at = open_page(core, "memories", memories_user="zoe")
    assert said(at).startswith("**57 memories**")
    seen = list(table(at).index)
    for page in (2, 3):
        at.session_state["memories_page"] = page
        at.run()
        seen += list(table(at).index)
    assert len(seen) == len(set(seen)) == 57
    assert not at.exception


def test_sorting_orders_the_whole_result_not_the_page(
    core: Core, library: Library, open_page: Open
) -> None:
    fill(core, library, 57)
    at = open_page(core, "memories")
    newest = list(table(at)["created"])
    at.selectbox(key="memories_sort").select("oldest").run()
    oldest = list(table(at)["created"])
    assert newest == sorted(newest, reverse=True)
    assert oldest == sorted(oldest)
    assert oldest[0] < newest[-1]


def test_every_tag_can_be_chosen_not_only_those_on_the_page(
    core: Core, library: Library, open_page: Open
) -> None:
    fill(core, library, 120)
    at = open_page(core, "memories")
    assert set(at.multiselect(key="memories_tags").options) == {f"tag{n}" for n in range(120)}
    at.multiselect(key="memories_tags").select("tag3").run()
    assert said(at).startswith("**1 memory**")


def test_after_a_delete_filter_and_sort_stay_and_an_empty_page_gives_way_to_the_one_before(
    core: Core, library: Library, open_page: Open
) -> None:
    fill(core, library, 26, kind=MemoryType.HABIT, tag="early")
    at = open_page(core, "memories", memories_type="habit", memories_text="early",
                   memories_sort="Oldest first")  # fmt: skip
    at.session_state["memories_page"] = 2
    at.run()
    (last,) = table(at).index
    core.memories.delete(last, actor=OPERATOR)
    at.session_state["frame_undo"] = []
    import streamlit as st

    st.cache_data.clear()
    at.run()
    assert at.session_state["memories_page"] == 1
    assert len(table(at)) == 25
    assert at.multiselect(key="memories_type").value == [MemoryType.HABIT]
    assert at.text_input(key="memories_text").value == "early"
    assert at.selectbox(key="memories_sort").value == "oldest"
    assert not at.exception


def test_another_filter_starts_at_page_one_with_nothing_selected(
    core: Core, library: Library, open_page: Open
) -> None:
    fill(core, library, 30)
    at = open_page(core, "memories")
    at.session_state["memories_page"] = 2
    at.run()
    before = at.dataframe[0].proto.id
    at.text_input(key="memories_text").set_value("Row  3").run()
    assert at.session_state["memories_page"] == 1
    assert not at.exception
    assert at.dataframe == [] or at.dataframe[0].proto.id != before


def test_filters_in_the_url_are_the_filters_on_the_page(demo_core: Core, open_page: Open) -> None:
    at = open_page(demo_core, "memories", memories_status="archived", memories_scope="project")
    expected = demo_core.memories.browse(
        Filter(library_id=story.identity("library", "lantern-team"),
               statuses=(Status.ARCHIVED,), scopes=(Scope.PROJECT,)),
        actor=OPERATOR,
    )  # fmt: skip
    assert said(at).startswith(f"**{expected.total} ")
    assert set(table(at).index) == {m.id for m in expected.memories}


def test_sort_and_page_in_a_fresh_url_hold_from_the_first_look(
    core: Core, library: Library, open_page: Open
) -> None:
    fill(core, library, 57)
    at = open_page(core, "memories", memories_sort="Oldest first", memories_page="3")
    expected = core.memories.browse(
        Filter(library_id=library.id), actor=OPERATOR, sort="oldest", limit=25, offset=50
    )
    assert list(table(at).index) == [m.id for m in expected.memories]
    beyond = open_page(core, "memories", memories_page="99")
    assert len(table(beyond)) == 7
    assert not open_page(core, "memories", memories_page="one").exception


def test_a_local_day_holds_what_was_stored_on_it_in_the_viewers_zone(
    core: Core, library: Library, open_page: Open
) -> None:
    moment = datetime(2026, 11, 30, 16, 30, tzinfo=UTC)
    core.memories.add(
        Draft("Half past midnight in the east", created_at=moment), subject=Subject(library.id, "u")
    )
    day = "2026-12-01"
    east = open_page(core, "memories", zone="Asia/Shanghai", memories_created=f"{day},{day}")
    if not east.date_input(key="memories_created").value:
        east.date_input(key="memories_created").set_value([datetime(2026, 12, 1).date()] * 2).run()
    assert said(east).startswith("**1 memory**")
    assert str(table(east)["created"].iloc[0]) == "2026-12-01 00:30:00"
    west = open_page(core, "memories", zone="UTC")
    west.date_input(key="memories_created").set_value([datetime(2026, 12, 1).date()] * 2).run()
    assert "No memory matches" in words(west)


def test_the_detail_shows_the_whole_text_with_its_line_breaks(
    core: Core, library: Library, open_page: Open
) -> None:
    text = "First line\n" + "很长的内容" * 250 + "\nLast line"
    added = core.memories.add_explicit_memory(text, subject=Subject(library.id, "u1"))
    assert added.memory
    at = open_page(core, "memories", memory=added.memory.id)
    body = next(m.value for m in at.markdown if "Last line" in m.value)
    assert "很长的内容" * 250 in body
    assert "First line  \n" in body


def test_the_detail_shows_history_links_both_ways_and_the_source_turn(
    demo_core: Core, open_page: Open
) -> None:
    demo_core.memories.edit(mid("k-stack-old"), actor=Actor("mira"), title="Client")
    at = open_page(demo_core, "memories", memory=mid("k-stack-old"))
    text = words(at)
    assert "Replaced by" in text
    assert "replaced by a newer memory" in text
    assert "edited" in text
    assert "by mira" in text
    assert "the source" in text  # the turn it came from is marked
    assert "Tomas has done two of those" in text.replace("\\", "")
    link = next(b for b in at.button if b.key == f"memories_detail_to_{mid('k-stack-new')}")
    link.click().run()
    assert at.query_params["memory"] == mid("k-stack-new")
    assert "Replaces" in words(at)


def test_a_memory_one_may_not_see_is_not_opened_by_its_id(demo_core: Core, open_page: Open) -> None:
    private = mid("m-parttime")
    mine = open_page(demo_core, "memories", memory=private, frame_actor="mira")
    assert "four days a week" in words(mine)
    other = open_page(demo_core, "memories", memory=private, frame_actor="tomas")
    assert "four days a week" not in words(other)
    assert "none you may see" in words(other)


def test_what_one_user_sees_is_never_served_to_another_from_the_cache(
    demo_core: Core, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    import streamlit as st

    first = open_page(demo_core, "memories", frame_actor="mira", memories_text="four days")
    assert len(table(first)) == 1
    monkeypatch.setattr(st.cache_data, "clear", lambda: None)  # the cache stays warm
    second = open_page(demo_core, "memories", frame_actor="tomas", memories_text="four days")
    assert second.selectbox(key="frame_actor").value == "tomas"
    assert "No memory matches" in words(second)


def test_only_legal_moves_are_offered_and_one_press_makes_them_with_undo(
    demo_core: Core, open_page: Open
) -> None:
    at = open_page(demo_core, "memories", memory=mid("m-tea"))
    keys = {b.key for b in at.button if b.key}
    assert {"memories_detail_archived", "memories_detail_suppressed"} <= keys
    assert "memories_detail_active" not in keys
    at.button(key="memories_detail_archived").click().run()
    assert demo_core.memories.get(mid("m-tea"), actor=OPERATOR).status is Status.ARCHIVED
    assert "1 memory archived" in words(at)
    keys = {b.key for b in at.button if b.key}
    assert "memories_detail_active" in keys
    undo = next(b for b in at.button if (b.key or "").startswith("frame_undo_"))
    undo.click().run()
    assert demo_core.memories.get(mid("m-tea"), actor=OPERATOR).status is Status.ACTIVE


def test_two_deletes_in_a_row_keep_an_undo_each(demo_core: Core, open_page: Open) -> None:
    from pages.shared import acts

    at = open_page(demo_core, "memories", run=False)
    with _callbacks(at):
        acts._delete((mid("m-tea"),), None)
        acts._delete((mid("m-tram"),), None)
    offers = at.session_state["frame_undo"]
    assert len(offers) == 2
    at.run()
    at.button(key=f"frame_undo_{offers[0]['id']}").click().run()
    assert demo_core.memories.get(mid("m-tea"), actor=OPERATOR)
    gone = demo_core.memories.browse(Filter(ids=(mid("m-tram"),)), actor=OPERATOR)
    assert gone.total == 0
    assert [o["id"] for o in at.session_state["frame_undo"]] == [offers[1]["id"]]


def test_a_bulk_act_lists_what_it_could_not_do_and_keeps_it_selected(
    demo_core: Core, open_page: Open
) -> None:
    from pages.shared import acts

    gone = mid("k-rest")
    demo_core.memories.delete(gone, actor=OPERATOR)
    at = open_page(demo_core, "memories", run=False)
    with _callbacks(at):
        acts.set_status((mid("m-tea"), mid("m-tram"), gone, mid("k-bus")), Status.ARCHIVED)
    assert at.session_state["memories_failed"] == [gone, mid("k-bus")]
    at.run()
    text = words(at)
    assert "2 memories archived" in text
    assert "cannot become archived" in text
    assert "There is no such memory" in text


def test_archive_of_everything_that_matches_reaches_all_pages(
    core: Core, library: Library, open_page: Open
) -> None:
    from pages.shared import acts

    fill(core, library, 57, tag="noise")
    fill(core, library, 3, user="u2", tag="keep")
    at = open_page(core, "memories", run=False)
    with _callbacks(at):
        acts.set_status((), Status.ARCHIVED, Filter(library_id=library.id, tags=("noise",)))
    counts = core.memories.facets(Filter(library_id=library.id), actor=OPERATOR).statuses
    assert counts[Status.ARCHIVED] == 57
    assert counts[Status.ACTIVE] == 3


def test_deleting_names_the_memories_and_many_ask_for_the_number(
    core: Core, library: Library, open_page: Open
) -> None:
    fill(core, library, 14, tag="doomed")
    ids = core.memories.ids(Filter(library_id=library.id), actor=OPERATOR)

    def script(ids: list[str]) -> None:
        from pages.shared import acts

        acts.delete_dialog(tuple(ids))

    open_page(core, "memories")
    few = AppTest.from_function(script, args=(ids[:2],), default_timeout=30).run()
    assert "**2 memories**" in words(few)
    assert sum("Row doomed" in m.value for m in few.markdown) == 2
    assert not few.button(key="delete_confirm").disabled
    many = AppTest.from_function(script, args=(ids,), default_timeout=30).run()
    assert many.button(key="delete_confirm").disabled
    many.text_input(key="delete_typed").set_value("14").run()
    assert not many.button(key="delete_confirm").disabled
    many.button(key="delete_confirm").click().run()
    assert core.memories.browse(Filter(library_id=library.id), actor=OPERATOR).total == 0


def test_cleaning_up_previews_and_then_archives(
    core: Core, library: Library, open_page: Open
) -> None:
    who = Subject(library.id, "u1")
    for text in ("Has cat", "Had dog", "This one is long enough to stay"):
        assert core.memories.add_explicit_memory(text, subject=who, confidence=0.7).memory

    def script(library_id: str) -> None:
        from pages.shared import acts

        acts.clean_up_dialog(library_id)

    open_page(core, "memories")
    at = AppTest.from_function(script, args=(library.id,), default_timeout=30).run()
    assert "**2 memories** found" in words(at)
    assert "Has cat" in words(at)
    at.button(key="clean_archive").click().run()
    counts = core.memories.facets(Filter(library_id=library.id), actor=OPERATOR).statuses
    assert (counts[Status.ACTIVE], counts[Status.ARCHIVED]) == (1, 2)


def test_an_edit_that_is_refused_keeps_what_was_typed_and_says_why(
    demo_core: Core, open_page: Open
) -> None:
    seen = demo_core.memories.get(mid("m-tea"), actor=OPERATOR)

    def script(memory) -> None:
        from pages.shared import acts

        acts.edit_dialog(memory)

    open_page(demo_core, "memories")
    at = AppTest.from_function(script, args=(seen,), default_timeout=30).run()
    demo_core.memories.edit(seen.id, actor=OPERATOR, title="Somebody was faster")
    at.text_area(key="edit_content").set_value("Mira drinks rooibos in the evening.")
    at.button(key="edit_save").click().run()
    assert "changed by someone else" in words(at)
    assert at.text_area(key="edit_content").value == "Mira drinks rooibos in the evening."
    fresh = demo_core.memories.get(seen.id, actor=OPERATOR)
    again = AppTest.from_function(script, args=(fresh,), default_timeout=30).run()
    again.text_area(key="edit_content").set_value("Mira drinks rooibos in the evening.")
    again.button(key="edit_save").click().run()
    assert demo_core.memories.get(seen.id, actor=OPERATOR).content.startswith("Mira drinks rooibos")


def test_a_memory_added_by_hand_tells_what_the_gate_said(
    core: Core, library: Library, open_page: Open
) -> None:
    core.people.introduce("u1")

    def script(library_id: str) -> None:
        from pages.shared import acts

        acts.add_dialog(library_id)

    open_page(core, "memories")
    at = AppTest.from_function(script, args=(library.id,), default_timeout=30).run()
    at.text_area(key="add_content").set_value("Hi")
    at.button(key="add_store").click().run()
    assert "The gate did not let it in" in [w.proto.title or "" for w in at.warning] or (
        "length" in words(at)
    )
    at.text_area(key="add_content").set_value("Keeps two bees' hives on the roof.")
    at.button(key="add_store").click().run()
    assert core.memories.browse(Filter(library_id=library.id), actor=OPERATOR).total == 1


def test_the_export_is_the_filtered_set_of_all_pages_and_only_what_the_actor_may_see(
    core: Core, library: Library, open_page: Open
) -> None:
    fill(core, library, 31, project="p1", scope=Scope.PROJECT, tag="in", user="u1")
    fill(core, library, 40, user="u2", tag="out")
    filter = Filter(library_id=library.id, project_id="p1", statuses=(Status.ACTIVE,))
    lines = list(core.transfer.export(filter, actor=Actor("u1")))
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 31
    assert {r["project_id"] for r in rows} == {"p1"}
    assert list(core.transfer.export(filter, actor=Actor("stranger"))) == []
    sheet = list(core.transfer.export(filter, actor=OPERATOR, form="csv"))
    assert len(sheet) == 32
    assert sheet[0].startswith("\ufeffid,")

    def script(filter) -> None:
        from pages.shared import acts

        acts.export_dialog(filter, "team / 一", True)

    open_page(core, "memories")
    at = AppTest.from_function(script, args=(filter,), default_timeout=30).run()
    assert "**31 memories**" in words(at)
    assert "Only what the filters show" in words(at)
    name = at.get("download_button")[0].proto.label
    assert "memcore_team-一_" in name
    assert name.endswith(".jsonl")


def test_an_import_says_first_what_it_would_do_and_then_does_it(
    core: Core, library: Library, open_page: Open
) -> None:
    core.people.introduce("u1")
    file = "\n".join(
        [json.dumps({"content": "Grows quinces behind the house", "type": "fact"}),
         json.dumps({"title": "no content at all"}),
         json.dumps({"content": "喜欢在清晨跑步", "type": "habit"})]
    ).encode()  # fmt: skip

    def script(library_id: str) -> None:
        from pages.shared import imports

        imports.import_dialog(library_id)

    open_page(core, "memories")
    at = AppTest.from_function(script, args=(library.id,), default_timeout=30).run()
    at.file_uploader(key="import_file").upload("notes.jsonl", file).run()
    assert "**2 records** of notes.jsonl" in words(at).replace("\\", "")
    assert "line 2" in words(at)
    assert core.memories.browse(Filter(library_id=library.id), actor=OPERATOR).total == 0
    at.button(key="import_store").click().run()
    assert not at.exception
    assert core.memories.browse(Filter(library_id=library.id), actor=OPERATOR).total == 2
    (offer,) = at.session_state["frame_undo"]
    assert offer["text"] == "2 memories imported from notes.jsonl."
    core.memories.undo(offer["id"], actor=OPERATOR)
    assert core.memories.browse(Filter(library_id=library.id), actor=OPERATOR).total == 0


def test_a_cell_that_would_be_a_formula_is_text_in_the_spreadsheet(
    core: Core, library: Library
) -> None:
    for text in ("=HYPERLINK(1)", "+49 30 is a prefix", "@home on Fridays", "-5 degrees at night"):
        assert core.memories.add_explicit_memory(text, subject=Subject(library.id, "u1")).memory
    sheet = "".join(core.transfer.export(Filter(), actor=OPERATOR, form="csv"))
    for text in ("=HYPERLINK", "+49", "@home", "-5"):
        assert f",'{text}" in sheet
        assert f",{text}" not in sheet


def test_a_memory_that_an_agent_adds_is_there_at_the_next_look(
    core: Core, library: Library, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    from pages.shared import reads

    fill(core, library, 2)
    at = open_page(core, "memories")
    assert len(table(at)) == 2
    core.memories.add_explicit_memory(
        "Said to an agent meanwhile", subject=Subject(library.id, "u")
    )
    time.sleep(reads.SHORT + 0.2)
    at.run()
    assert len(table(at)) == 3


class _callbacks:
    """Run callbacks with the session state of `at`, as a press of their button would."""

    def __init__(self, at: AppTest) -> None:
        self.at = at

    def __enter__(self) -> None:
        import streamlit as st

        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(st, "session_state", _State(self.at.session_state))
        self._patch.setattr(st, "query_params", {})

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


class _State:
    def __init__(self, state: Any) -> None:
        self.state = state

    def __getitem__(self, key: str) -> Any:
        return self.state[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.state[key] = value

    def get(self, key: str, default: Any = None) -> Any:
        return self.state.get(key, default)

    def setdefault(self, key: str, default: Any) -> Any:
        if key not in self.state:
            self.state[key] = default
        return self.state[key]
