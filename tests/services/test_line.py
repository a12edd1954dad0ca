"""The first line through everything, on real PostgreSQL."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from memcore import Actor, Draft, MemoryType, Role, Scope, Subject, Visibility
from memcore.errors import (
    Conflict,
    IllegalTransition,
    InvalidInput,
    LibraryDisabled,
    NotFound,
    PermissionDenied,
)
from memcore.services.memories import Filter

OPERATOR = Actor("operator", operator=True)


def rows(core, sql, **values):
    with core.runtime.engine.connect() as connection:
        return connection.execute(text(sql), values).all()


def test_an_accepted_draft_leaves_a_row_a_vector_and_a_decision(core, library, who):
    added = core.memories.add_explicit_memory("喜欢手冲咖啡，不加糖", subject=who)
    assert added.verdict.accepted
    assert [c.name for c in added.verdict.checks] == [
        "confidence", "sensitive", "length", "duplicate", "rate",
    ]  # fmt: skip
    assert rows(core, "SELECT content FROM memories") == [("喜欢手冲咖啡，不加糖",)]
    vectors = rows(core, "SELECT memory_id::text, vector_dims(embedding) FROM embeddings")
    assert vectors == [(added.memory.id, library.dimensions)]
    assert rows(core, "SELECT id, memory_id::text FROM decisions") == [
        (added.decision_id, added.memory.id)
    ]


def test_a_rejected_draft_leaves_a_decision_and_nothing_else(core, who):
    added = core.memories.add_explicit_memory("hm", subject=who)
    assert added.verdict.blocked_by == "length"
    assert added.memory is None
    assert rows(core, "SELECT count(*) FROM memories") == [(0,)]
    assert rows(core, "SELECT accepted, blocked_by FROM decisions") == [(False, "length")]


def test_the_same_text_twice_is_a_duplicate_that_names_the_first(core, who):
    first = core.memories.add_explicit_memory("Prefers VS Code", subject=who)
    again = core.memories.add_explicit_memory("prefers  ＶＳ Code.", subject=who)
    assert again.verdict.blocked_by == "duplicate"
    assert again.verdict.matched_id == first.memory.id


def test_the_same_text_is_kept_per_scope_user_and_library(core, library, who):
    other_library = core.libraries.create("second", embedder="hash:32")
    subjects = [
        (who, Scope.USER),
        (who, Scope.PROJECT),
        (who, Scope.SESSION),
        (Subject(library.id, "u2"), Scope.USER),
        (Subject(other_library.id, "u1"), Scope.USER),
    ]
    for subject, scope in subjects:
        added = core.memories.add_explicit_memory(
            "Replies in Markdown", subject=subject, scope=scope
        )
        assert added.verdict.accepted, (subject, scope, added.verdict)


def test_search_reads_all_three_scopes_and_no_other_users(core, library, who):
    for scope in Scope:
        core.memories.add_explicit_memory(
            f"The swimming club meets on Mondays, {scope} note", subject=who, scope=scope
        )
    core.memories.add_explicit_memory(
        "The swimming club of u2 is secret", subject=Subject(library.id, "u2")
    )
    found = core.memories.search_memories("swimming club", subject=who)
    everything = {c.memory.content for c in found.candidates}
    assert {h.memory.scope for h in found.hits} | {d.memory.scope for d in found.dropped} == set(
        Scope
    )
    assert not any("u2" in content for content in everything)
    for hit in found.hits:
        assert hit.score == pytest.approx(sum(t.contribution for t in hit.terms), abs=1e-9)


def test_expired_archived_and_suppressed_memories_are_not_recalled(core, who):
    past = datetime.now(UTC) - timedelta(minutes=1)
    core.memories.add_explicit_memory("The old badge opens gate A", subject=who, expires_at=past)
    for status in ("archived", "suppressed"):
        added = core.memories.add_explicit_memory(f"The {status} badge is blue", subject=who)
        core.memories.change_status(added.memory.id, status, actor=OPERATOR)
    found = core.memories.search_memories("badge", subject=who)
    assert found.candidates == ()


def test_an_agent_recalls_its_own_shared_and_hand_written_memories_only(core, library, who):
    one = core.libraries.create_agent("one", library_id=library.id)
    two = core.libraries.create_agent("two", library_id=library.id)
    as_one = dataclasses.replace(who, agent_id=one.id)
    as_two = dataclasses.replace(who, agent_id=two.id)
    core.memories.add(Draft("Agent one keeps the tea list"), subject=as_one)
    core.memories.add(Draft("Agent one shares the cake list", shared=True), subject=as_one)
    core.memories.add_explicit_memory("A person wrote the lunch list", subject=who)

    def seen(subject):
        result = core.memories.search_memories("list", subject=subject)
        return {c.memory.content.split()[-2] for c in result.candidates}

    assert seen(as_one) == {"tea", "cake", "lunch"}
    assert seen(as_two) == {"cake", "lunch"}
    core.libraries.set(library.id, {"share_between_agents": True})
    assert seen(as_two) == {"tea", "cake", "lunch"}


def test_what_an_agent_recalls_is_counted_and_what_a_person_searches_is_not(core, library, who):
    agent = core.libraries.create_agent("one", library_id=library.id)
    memory = core.memories.add_explicit_memory("The parcel locker code word", subject=who).memory
    core.memories.search_memories("parcel locker", subject=who)
    assert core.memories.get(memory.id, actor=OPERATOR).access_count == 0
    core.memories.search_memories(
        "parcel locker", subject=dataclasses.replace(who, agent_id=agent.id)
    )
    after = core.memories.get(memory.id, actor=OPERATOR)
    assert after.access_count == 1
    assert after.last_used_at is not None


def test_a_disabled_library_is_neither_recalled_nor_written(core, library, who):
    core.libraries.set(library.id, {"enabled": False})
    with pytest.raises(LibraryDisabled, match="team"):
        core.memories.add_explicit_memory("Something to keep", subject=who)
    with pytest.raises(LibraryDisabled):
        core.memories.search_memories("something", subject=who)


def test_libraries_of_different_dimensions_do_not_disturb_each_other(core, who):
    small = core.libraries.create("small", embedder="hash:32")
    large = core.libraries.create("large", embedder="hash:256")
    for library in (small, large):
        subject = dataclasses.replace(who, library_id=library.id)
        core.memories.add_explicit_memory("The bakery opens at seven", subject=subject)
        found = core.memories.search_memories("bakery", subject=subject)
        assert [c.memory.library_id for c in found.candidates] == [library.id]


def test_a_project_memory_needs_a_project(core, library):
    with pytest.raises(InvalidInput, match="project id"):
        core.memories.add_explicit_memory(
            "Ships on Tuesdays", subject=Subject(library.id, "u1"), scope="project"
        )


@pytest.mark.parametrize("confidence", [float("nan"), float("inf"), -0.1, 1.1, "high"])
def test_a_confidence_that_is_no_number_from_0_to_1_is_refused(core, who, confidence):
    with pytest.raises(InvalidInput, match="onfidence"):
        core.memories.add_explicit_memory("A plain fact", subject=who, confidence=confidence)


@pytest.mark.parametrize(
    "content",
    ["ma\x00ana 市场 in the south", "odd \ud800 half", "👩‍👩‍👧 family day", "שלום עולם טוב"],
)
def test_any_text_is_stored_and_found_again(core, who, content):
    added = core.memories.add_explicit_memory(content, subject=who, tags=("a\x00b", "好"))
    assert added.verdict.accepted
    stored = core.memories.get(added.memory.id, actor=OPERATOR)
    assert "\x00" not in stored.content
    assert stored.tags == ("ab", "好")
    assert core.memories.search_memories(content, subject=who).candidates


def test_status_changes_follow_the_table_and_can_be_undone(core, who):
    memory = core.memories.add_explicit_memory("Runs every morning", subject=who).memory
    changed = core.memories.change_status(memory.id, "archived", actor=OPERATOR)
    with pytest.raises(IllegalTransition, match="archived cannot become suppressed"):
        core.memories.change_status(memory.id, "suppressed", actor=OPERATOR)
    core.memories.undo(changed.batch_id, actor=OPERATOR)
    assert core.memories.get(memory.id, actor=OPERATOR).status == "active"


def test_bulk_changes_do_what_they_may_and_list_the_rest(core, library, who):
    mine = core.memories.add_explicit_memory("My own note of today", subject=who).memory
    other = core.memories.add_explicit_memory(
        "A note of somebody else", subject=Subject(library.id, "u2")
    ).memory
    changed = core.memories.delete([mine.id, other.id, "no-such-id"], actor=Actor("u1"))
    assert changed.done == (mine.id,)
    assert set(changed.refused) == {other.id, "no-such-id"}
    assert changed.refused[other.id] == changed.refused["no-such-id"]


def test_a_deleted_memory_is_gone_with_its_vector_and_comes_back_whole(core, who):
    memory = core.memories.add_explicit_memory("Allergic to peanuts", subject=who).memory
    changed = core.memories.delete(memory.id, actor=OPERATOR)
    assert rows(core, "SELECT count(*) FROM memories") == [(0,)]
    assert rows(core, "SELECT count(*) FROM embeddings") == [(0,)]
    core.memories.undo(changed.batch_id, actor=OPERATOR)
    again = core.memories.get(memory.id, actor=OPERATOR)
    assert dataclasses.replace(again, updated_at=memory.updated_at) == memory
    assert core.memories.search_memories("peanuts", subject=who).hits


def test_an_edit_moves_text_hash_and_vector_together(core, who):
    memory = core.memories.add_explicit_memory("Likes oolong tea best", subject=who).memory
    edited = core.memories.edit(memory.id, actor=OPERATOR, content="Likes pour-over coffee best")
    assert edited.content_hash != memory.content_hash
    assert edited.memory_type == memory.memory_type
    assert edited.version == memory.version + 1
    hashes = rows(core, "SELECT content_hash FROM embeddings")
    assert hashes == [(edited.content_hash,)]


def test_an_edit_of_an_older_version_is_refused_and_loses_nothing(core, who):
    memory = core.memories.add_explicit_memory("Works from home", subject=who).memory
    core.memories.edit(memory.id, actor=OPERATOR, title="B", version=memory.version)
    with pytest.raises(Conflict):
        core.memories.edit(memory.id, actor=OPERATOR, title="A", version=memory.version)
    assert core.memories.get(memory.id, actor=OPERATOR).title == "B"


def test_attributes_are_merged_by_an_edit(core, who):
    memory = core.memories.add_explicit_memory(
        "Has a dog and a cat", subject=who, attributes={"a": 1, "b": {"c": 2}}
    ).memory
    edited = core.memories.edit(memory.id, actor=OPERATOR, attributes={"a": 3})
    assert edited.attributes == {"a": 3, "b": {"c": 2}}


def test_lists_and_totals_show_only_what_the_actor_may_see(core, library, who):
    core.memories.add_explicit_memory("Private to u1 only", subject=who)
    core.memories.add_explicit_memory("Of the project, for members", subject=who, scope="project")
    core.memories.add_explicit_memory(
        "Of the project, owner only", subject=who, scope="project",
        visibility=Visibility.OWNER_ONLY,
    )  # fmt: skip
    assert core.memories.browse(actor=Actor("u1")).total == 3
    assert core.memories.browse(actor=Actor("u2")).total == 0
    core.people.join("p1", "u2", Role.VIEWER, actor=Actor("u1"))
    page = core.memories.browse(Filter(library_id=library.id), actor=Actor("u2"))
    assert (page.total, [m.content for m in page.memories]) == (1, ["Of the project, for members"])


def test_a_viewer_may_not_write_and_a_stranger_may_not_join_by_writing(core, library, who):
    core.memories.add_explicit_memory("Kicks off in May", subject=who, scope="project")
    as_u2 = Subject(library.id, "u2", project_id="p1")
    with pytest.raises(PermissionDenied, match="no member"):
        core.memories.add_explicit_memory("Intrudes here", subject=as_u2, scope="project")
    core.people.join("p1", "u2", "viewer", actor=Actor("u1"))
    with pytest.raises(PermissionDenied, match="viewer"):
        core.memories.add_explicit_memory("Reads only, no?", subject=as_u2, scope="project")


def test_an_unknown_memory_and_a_hidden_one_look_the_same(core, who):
    memory = core.memories.add_explicit_memory("Only for my eyes", subject=who).memory
    with pytest.raises(NotFound) as hidden:
        core.memories.get(memory.id, actor=Actor("u2"))
    with pytest.raises(NotFound) as unknown:
        core.memories.get("00000000-0000-0000-0000-000000000000", actor=Actor("u2"))
    assert str(hidden.value) == str(unknown.value)


def test_a_memory_keeps_the_type_it_was_given(core, who):
    added = core.memories.add_explicit_memory(
        "Decided on a monorepo", subject=who, memory_type="decision"
    )
    assert added.memory.memory_type is MemoryType.DECISION
