"""Bulk acts report what they could not do, and undo brings back exactly what it says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memcore.core import Core
from memcore.demo import story
from memcore.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from memcore.models import Actor, Library, MemoryType, Scope, Status, Subject
from memcore.services.memories import Filter

OPERATOR = Actor("operator", operator=True)
LANTERN = story.identity("library", "lantern-team")


def mid(key: str) -> str:
    return story.identity("memory", key)


def total(core: Core, **filters: object) -> int:
    return core.memories.browse(Filter(**filters), actor=OPERATOR, limit=1).total  # type: ignore[arg-type]


def test_a_bulk_act_does_what_it_can_and_names_the_rest(demo_core: Core) -> None:
    chosen = demo_core.memories.ids(
        Filter(library_id=LANTERN, types=(MemoryType.HABIT,), statuses=(Status.ACTIVE,)),
        actor=OPERATOR,
    )[:8]
    gone, foreign = mid("k-rest"), mid("h-call")
    demo_core.memories.delete(gone, actor=OPERATOR)
    archived = mid("k-bus")
    editor = Actor("linxia")
    mine = demo_core.memories.ids(
        Filter(user_id="linxia", statuses=(Status.ACTIVE,), scopes=(Scope.USER,)), actor=editor
    )[:7]
    report = demo_core.memories.change_status(
        [*mine, gone, foreign, archived], Status.ARCHIVED, actor=editor
    )
    assert set(report.done) == set(mine)
    assert set(report.refused) == {gone, foreign, archived}
    assert report.refused[gone] == report.refused[foreign]  # another's memory is not revealed
    assert "editor" in report.refused[archived]
    assert chosen


def test_a_second_delete_does_not_take_the_first_ones_undo_away(demo_core: Core) -> None:
    first = demo_core.memories.delete([mid("m-tea")], actor=OPERATOR)
    second = demo_core.memories.delete([mid("m-tram"), mid("c-run")], actor=OPERATOR)
    assert demo_core.memories.undo(first.batch_id, actor=OPERATOR).done == (mid("m-tea"),)
    with pytest.raises(NotFound):
        demo_core.memories.get(mid("m-tram"), actor=OPERATOR)
    back = demo_core.memories.undo(second.batch_id, actor=OPERATOR)
    assert set(back.done) == {mid("m-tram"), mid("c-run")}
    with pytest.raises(NotFound, match="nothing left"):
        demo_core.memories.undo(first.batch_id, actor=OPERATOR)


def test_a_deleted_memory_comes_back_whole_with_vector_and_links(demo_core: Core) -> None:
    ids = [mid("k-stack-old"), mid("k-stack-new"), mid("t-android")]
    before = {i: demo_core.memories.get(i, actor=OPERATOR) for i in ids}
    act = demo_core.memories.delete(ids, actor=OPERATOR)
    report = demo_core.memories.undo(act.batch_id, actor=OPERATOR)
    assert not report.refused
    after = {i: demo_core.memories.get(i, actor=OPERATOR) for i in ids}
    assert after == before
    who = Subject(LANTERN, "tomas", "lantern", agent_id=story.identity("agent", "desk"))
    found = demo_core.memories.search_memories(before[ids[2]].content, subject=who)
    assert found.hits[0].memory.id == ids[2]


def test_deleting_a_successor_and_undoing_it_restores_the_link_of_what_it_replaced(
    demo_core: Core,
) -> None:
    act = demo_core.memories.delete(mid("k-hold-new"), actor=OPERATOR)
    assert demo_core.memories.get(mid("k-hold-old"), actor=OPERATOR).superseded_by is None
    demo_core.memories.undo(act.batch_id, actor=OPERATOR)
    assert demo_core.memories.get(mid("k-hold-old"), actor=OPERATOR).superseded_by == mid(
        "k-hold-new"
    )


def test_what_was_changed_again_since_is_not_undone(demo_core: Core) -> None:
    act = demo_core.memories.change_status([mid("m-tea")], "archived", actor=OPERATOR)
    demo_core.memories.change_status([mid("m-tea")], "active", actor=OPERATOR)
    demo_core.memories.change_status([mid("m-tea")], "suppressed", actor=OPERATOR)
    report = demo_core.memories.undo(act.batch_id, actor=OPERATOR)
    assert report.refused == {mid("m-tea"): "It was changed again since."}
    assert demo_core.memories.get(mid("m-tea"), actor=OPERATOR).status is Status.SUPPRESSED


def test_an_edit_is_undone_with_its_text_its_vector_and_its_keywords(demo_core: Core) -> None:
    before = demo_core.memories.get(mid("m-tea"), actor=OPERATOR)
    demo_core.memories.edit(
        before.id, actor=OPERATOR, content="Mira now drinks cocoa in winter.", tags=["drinks"]
    )
    (change, *_) = demo_core.history.of_memory(before.id, actor=OPERATOR)
    assert change.fields["content"] == (before.content, "Mira now drinks cocoa in winter.")
    demo_core.memories.undo(change.batch_id, actor=OPERATOR)
    after = demo_core.memories.get(before.id, actor=OPERATOR)
    assert (after.content, after.tags, after.content_hash) == (
        before.content, before.tags, before.content_hash,
    )  # fmt: skip
    who = Subject(LANTERN, "mira")
    assert demo_core.memories.search_memories(before.content, subject=who).hits[0].memory.id == (
        before.id
    )


def test_undo_is_for_whoever_did_it_and_for_operators(demo_core: Core) -> None:
    act = demo_core.memories.delete([mid("m-tea")], actor=Actor("mira"))
    with pytest.raises(PermissionDenied):
        demo_core.memories.undo(act.batch_id, actor=Actor("tomas"))
    assert demo_core.memories.undo(act.batch_id, actor=Actor("mira")).done
    with pytest.raises(NotFound):
        demo_core.memories.undo("no such batch", actor=OPERATOR)


def test_an_edit_of_a_memory_one_may_not_see_says_only_that_it_is_not_there(
    demo_core: Core,
) -> None:
    for changes in ({"content": "x"}, {"confidence": 2}, {"title": "t"}):
        with pytest.raises(NotFound):
            demo_core.memories.edit(mid("m-parttime"), actor=Actor("tomas"), **changes)
    with pytest.raises(InvalidInput):
        demo_core.memories.edit(mid("m-parttime"), actor=Actor("mira"), confidence=2)


def test_an_edit_on_an_outdated_form_is_refused_and_loses_nothing(demo_core: Core) -> None:
    seen = demo_core.memories.get(mid("m-tea"), actor=OPERATOR)
    demo_core.memories.edit(seen.id, actor=OPERATOR, version=seen.version, title="Drinks")
    with pytest.raises(Conflict):
        demo_core.memories.edit(seen.id, actor=OPERATOR, version=seen.version, title="Tea")
    assert demo_core.memories.get(seen.id, actor=OPERATOR).title == "Drinks"


def test_three_edits_in_a_row_are_all_kept(demo_core: Core) -> None:
    for key, value in (("m-tea", 0.71), ("m-tram", 0.72), ("c-run", 0.73)):
        demo_core.memories.edit(mid(key), actor=OPERATOR, confidence=value)
    assert [demo_core.memories.get(mid(k), actor=OPERATOR).confidence
            for k in ("m-tea", "m-tram", "c-run")] == [0.71, 0.72, 0.73]  # fmt: skip


def test_noise_is_archived_by_rule_in_one_act_that_can_be_undone(
    core: Core, library: Library
) -> None:
    who = Subject(library.id, "u1")
    for text, confidence in (
        ("Tea hot", 0.7), ("Dog fed", 0.74), ("Car new", 0.9),
        ("A long enough remark about nothing", 0.7),
    ):  # fmt: skip
        added = core.memories.add_explicit_memory(text, subject=who, confidence=confidence)
        assert added.memory, added.verdict
    rule = Filter(library_id=library.id, statuses=(Status.ACTIVE,), shorter_than=8,
                  confidence_below=0.75)  # fmt: skip
    preview = core.memories.browse(rule, actor=OPERATOR)
    assert sorted(m.content for m in preview.memories) == ["Dog fed", "Tea hot"]
    act = core.memories.change_status(
        core.memories.ids(rule, actor=OPERATOR), Status.ARCHIVED, actor=OPERATOR
    )
    assert total(core, statuses=(Status.ARCHIVED,)) == 2
    core.memories.undo(act.batch_id, actor=OPERATOR)
    assert total(core, statuses=(Status.ACTIVE,)) == 4


def test_facets_list_everything_that_exists_and_agree_with_the_list(demo_core: Core) -> None:
    for actor in (OPERATOR, Actor("anouk"), Actor("nobody")):
        facets = demo_core.memories.facets(
            Filter(library_id=LANTERN, text="Mira", statuses=(Status.ACTIVE,)), actor=actor
        )

        def counted(actor: Actor = actor, **filters: object) -> int:
            return demo_core.memories.browse(
                Filter(library_id=LANTERN, **filters), actor=actor, limit=1  # type: ignore[arg-type]
            ).total  # fmt: skip

        for status in Status:
            assert facets.statuses[status] == counted(text="Mira", statuses=(status,))
        for tag, count in facets.tags.items():
            assert count == counted(tags=(tag,))
        for kind, count in facets.types.items():
            assert count == counted(types=(kind,))
        for user, count in facets.users.items():
            assert count == counted(user_id=user)
        for agent, (_, count) in facets.agents.items():
            assert count == counted(agent_id=agent)
        for session, count in facets.sessions.items():
            assert count == counted(session_id=session)


def test_a_day_of_the_viewers_zone_is_a_half_open_span(core: Core, library: Library) -> None:
    from memcore.models import Draft

    east = timedelta(hours=8)
    moment = datetime(2026, 3, 4, 16, 30, tzinfo=UTC)  # half past midnight of the 5th in UTC+8
    core.memories.add(
        Draft("Said at half past midnight", created_at=moment), subject=Subject(library.id, "u1")
    )
    day = datetime(2026, 3, 5, tzinfo=UTC) - east
    assert total(core, since=day, until=day + timedelta(days=1)) == 1
    assert total(core, since=day - timedelta(days=1), until=day) == 0


def test_every_sort_orders_the_whole_result_and_pages_never_overlap(demo_core: Core) -> None:
    from memcore.services.memories import SORTS

    for sort in SORTS:
        whole = demo_core.memories.browse(Filter(), actor=OPERATOR, sort=sort, limit=500).memories
        paged = [
            m.id
            for offset in range(0, 300, 50)
            for m in demo_core.memories.browse(
                Filter(), actor=OPERATOR, sort=sort, limit=50, offset=offset
            ).memories
        ]
        assert paged == [m.id for m in whole]
    newest = demo_core.memories.browse(Filter(), actor=OPERATOR, limit=500).memories
    assert list(newest) == sorted(newest, key=lambda m: m.created_at, reverse=True)
