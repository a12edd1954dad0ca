"""Libraries and agents: made, changed, copied, switched off, deleted and brought back."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from memcore.core import open_core
from memcore.errors import (
    ConfigError,
    Conflict,
    InvalidInput,
    LibraryDisabled,
    NotFound,
    PermissionDenied,
)
from memcore.models import Actor, Draft, Status, Subject

BOSS = Actor("boss", operator=True)
GUEST = Actor("guest")


def store(core, who, content, **fields):
    return core.memories.add_explicit_memory(content, subject=who, **fields).memory


def test_a_preset_sets_its_values_and_what_is_set_by_hand_goes_above(core):
    precise = core.libraries.create(
        "precise", embedder="hash:32", preset="high_precision", overrides={"max_recall": 3}
    )
    resolved = core.libraries.settings(precise.id)
    assert resolved.settings.gate.min_confidence == 0.85
    assert resolved.settings.ranking.max_recall == 3
    assert resolved.sources["min_confidence"] == "library"
    basic = core.libraries.create("basic", embedder="hash:32")
    assert dict(basic.overrides) == {}
    with pytest.raises(InvalidInput, match="high_precision"):
        core.libraries.create("x", embedder="hash:32", preset="turbo")


def test_each_value_says_where_it_comes_from(database_url, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMORY_MIN_CONFIDENCE", "0.6")
    with open_core(url=database_url, home=tmp_path) as core:
        one = core.libraries.create("one", embedder="hash:32", overrides={"max_recall": 4})
        sources = core.libraries.settings(one.id).sources
    assert sources["min_confidence"] == "environment"
    assert sources["max_recall"] == "library"
    assert sources["duplicate_threshold"] == "calibrated"
    assert sources["min_length"] == "default"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_recall", 0), ("max_recall", 101), ("similarity_threshold", 1.5),
        ("min_confidence", "nan"), ("dense_weight", -0.1), ("expiration_days", 366),
        ("fusion", "sum"), ("similarity_weight", -1), ("extraction_interval", 0), ("no_such", 1),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_by_name_and_the_library_stays(core, library, name, value):
    with pytest.raises(ConfigError, match=name):
        core.libraries.set(library.id, {name: value})
    assert dict(core.libraries.get(library.id).overrides) == {}


def test_a_blank_value_means_the_default_and_zero_means_zero(core, library):
    core.libraries.set(library.id, {"max_recall": "", "min_length": 0})
    settings = core.libraries.settings(library.id).settings
    assert settings.ranking.max_recall == 8
    assert settings.gate.min_length == 0


def test_a_change_of_settings_can_be_undone_once(core, library):
    core.libraries.set(library.id, {"max_recall": 3}, actor=BOSS)
    core.libraries.set(library.id, {"max_recall": 4}, actor=BOSS)
    change = core.libraries.last_change(library.id)
    back = core.libraries.undo(change, actor=BOSS)
    assert dict(back.overrides) == {"max_recall": 3}
    with pytest.raises(NotFound, match="nothing left"):
        core.libraries.undo(change, actor=BOSS)


def test_undo_refuses_when_it_was_changed_again_since(core, library):
    core.libraries.set(library.id, {"max_recall": 3})
    first = core.libraries.last_change(library.id)
    core.libraries.set(library.id, {"max_recall": 4})
    with pytest.raises(Conflict, match="changed again"):
        core.libraries.undo(first)


def test_rename_and_describe(core, library):
    core.libraries.create("other", embedder="hash:32")
    renamed = core.libraries.edit(library.id, name=" 团队 ", description="what we know")
    assert (renamed.name, renamed.description) == ("团队", "what we know")
    assert core.libraries.get("团队").id == library.id
    with pytest.raises(Conflict, match="other"):
        core.libraries.edit(library.id, name="other")
    with pytest.raises(InvalidInput, match="1 to 100"):
        core.libraries.edit(library.id, name="  ")


def test_a_copy_has_the_settings_and_no_memories(core, library, who):
    store(core, who, "Prefers oolong tea in the morning")
    core.libraries.set(library.id, {"max_recall": 3})
    copy = core.libraries.duplicate(library.id, "copy")
    assert dict(copy.overrides) == {"max_recall": 3}
    assert copy.embedder == library.embedder
    assert copy.collection_id != library.collection_id
    (card,) = core.libraries.cards(search="cop")
    assert card.memories == 0


def test_a_library_switched_off_is_neither_recalled_nor_written_and_says_so(core, library, who):
    store(core, who, "Prefers oolong tea in the morning")
    core.libraries.enable(library.id, False)
    with pytest.raises(LibraryDisabled, match="team"):
        core.memories.search_memories("tea", subject=who)
    with pytest.raises(LibraryDisabled):
        core.memories.add_explicit_memory("Drinks coffee after lunch", subject=who)
    core.libraries.enable(library.id, True)
    assert dict(core.libraries.get(library.id).overrides) == {}
    assert len(core.memories.search_memories("tea", subject=who).hits) == 1


def test_a_deleted_library_is_gone_from_every_path_and_comes_back_whole(core, library, who):
    kept = store(core, who, "Prefers oolong tea in the morning")
    agent = core.libraries.create_agent("helper", library_id=library.id)
    contents = core.libraries.contents(library.id)
    assert (contents.memories, contents.agents) == (1, 1)
    batch = core.libraries.delete(library.id, actor=BOSS)
    with pytest.raises(NotFound):
        core.libraries.get(library.id)
    with pytest.raises(NotFound):
        core.memories.search_memories("tea", subject=who)
    assert core.libraries.all() == []
    assert core.memories.browse(actor=BOSS).total == 0
    with pytest.raises(NotFound):
        core.memories.get(kept.id, actor=BOSS)
    assert core.libraries.cards() == []
    assert core.libraries.agent(agent.id).library_id is None
    replacement = core.libraries.create("team", embedder="hash:32")
    with pytest.raises(Conflict, match="team"):
        core.libraries.undo(batch, actor=BOSS)
    core.libraries.edit(replacement.id, name="team two")
    back = core.libraries.undo(batch, actor=BOSS)
    assert back.name == "team"
    assert len(core.memories.search_memories("tea", subject=who).hits) == 1
    assert core.libraries.agent(agent.id).library_id == library.id
    assert core.libraries.agent(agent.id).memory_enabled


def test_a_sweep_purges_what_was_deleted_thirty_days_ago(core, library, who):
    store(core, who, "Prefers oolong tea in the morning")
    batch = core.libraries.delete(library.id)
    assert core.libraries.sweep().purged == 0
    with core.runtime.engine.begin() as connection:
        connection.execute(text("UPDATE libraries SET deleted_at = now() - interval '31 days'"))
    assert core.libraries.sweep().purged == 1
    with core.runtime.engine.connect() as connection:
        for table in ("libraries", "memories", "collections", "embeddings"):
            query = text(f"SELECT count(*) FROM {table}")  # noqa: S608
            assert connection.scalar(query) == 0, table
    with pytest.raises(NotFound):
        core.libraries.undo(batch)


def test_a_sweep_archives_what_expired_and_deletes_nothing(core, library, who):
    past, future = datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=3)
    gone = core.memories.add(Draft("The cinema voucher is valid", expires_at=future), subject=who)
    kept = core.memories.add(Draft("The library card is valid", expires_at=future), subject=who)
    with core.runtime.engine.begin() as connection:
        connection.execute(
            text("UPDATE memories SET expires_at = :past WHERE id = :id"),
            {"past": past, "id": gone.memory.id},
        )
    statistics = core.libraries.statistics(library.id, actor=BOSS)
    assert (statistics.expired, statistics.expiring) == (1, 1)
    swept = core.libraries.sweep()
    assert swept.archived == 1
    assert core.libraries.sweep().archived == 0
    assert core.memories.get(gone.memory.id, actor=BOSS).status is Status.ARCHIVED
    assert core.memories.get(kept.memory.id, actor=BOSS).status is Status.ACTIVE
    assert core.memories.undo(swept.batch_id, actor=BOSS).done == (gone.memory.id,)


def test_only_an_operator_changes_libraries(core, library):
    for act in (
        lambda: core.libraries.create("x", embedder="hash:32", actor=GUEST),
        lambda: core.libraries.set(library.id, {"max_recall": 3}, actor=GUEST),
        lambda: core.libraries.delete(library.id, actor=GUEST),
        lambda: core.libraries.change_embedder(library.id, "hash:32", actor=GUEST),
        lambda: core.libraries.reindex(library.id, actor=GUEST),
        lambda: core.stores.create("m", kind="memory", actor=GUEST),
    ):
        with pytest.raises(PermissionDenied):
            act()


def test_a_card_counts_what_its_library_holds(core, library, who):
    kept = store(core, who, "Prefers oolong tea in the morning")
    core.memories.add_explicit_memory("no", subject=who)
    other = store(core, who, "Works from the Hangzhou office")
    core.memories.change_status(other.id, Status.ARCHIVED, actor=BOSS)
    core.libraries.create_agent("beta", library_id=library.id)
    core.libraries.create_agent("alpha", library_id=library.id)
    core.libraries.create("empty", embedder="hash:32")
    first, second = core.libraries.cards()
    assert (first.active, first.memories, first.agents) == (1, 2, ("alpha", "beta"))
    assert (first.judged, first.passed, first.pass_rate) == (3, 2, pytest.approx(2 / 3))
    assert first.last_activity is not None
    assert first.last_activity >= kept.created_at
    assert (second.memories, second.agents, second.pass_rate) == (0, (), None)
    assert [card.library.name for card in core.libraries.cards(search="EMP")] == ["empty"]


def test_statistics_name_the_most_used_and_the_share_of_recalls_with_a_hit(core, library, who):
    tea = store(core, who, "Prefers oolong tea in the morning")
    store(core, who, "Plays badminton on Tuesday evenings")
    agent = core.libraries.create_agent("helper", library_id=library.id)
    asked = Subject(library.id, who.user_id, who.project_id, who.session_id, agent.id)
    core.memories.search_memories("oolong tea", subject=asked, k=1)
    core.memories.search_memories("oolong tea", subject=asked, k=1)
    elsewhere = Subject(library.id, "nobody", agent_id=agent.id)
    core.memories.search_memories("oolong tea", subject=elsewhere)
    statistics = core.libraries.statistics(library.id, actor=BOSS)
    assert statistics.total == 2
    assert [m.id for m in statistics.most_used] == [tea.id]
    assert (statistics.recalls, statistics.hit_share) == (3, pytest.approx(2 / 3))
    assert statistics.oldest == tea.created_at
    assert core.libraries.statistics(library.id, actor=GUEST).total == 0


def test_settings_changed_since_the_editor_began_are_not_overwritten(core, library):
    core.libraries.set(library.id, {"max_recall": 5})
    with pytest.raises(Conflict, match="max_recall was changed elsewhere"):
        core.libraries.set(library.id, {"min_length": 2}, seen={})
    assert dict(core.libraries.get(library.id).overrides) == {"max_recall": 5}
    core.libraries.set(library.id, {"min_length": 2}, seen={"max_recall": 5})
    assert dict(core.libraries.get(library.id).overrides) == {"min_length": 2}


def test_adjusting_one_setting_keeps_what_another_process_set_a_moment_ago(
    core, library, database_url, tmp_path
):
    core.libraries.get(library.id)  # known here as it was
    with open_core(url=database_url, home=tmp_path) as elsewhere:
        elsewhere.libraries.adjust(library.id, {"max_recall": 5})
    core.libraries.adjust(library.id, {"min_length": 2})
    core.libraries.enable(library.id, False)
    assert dict(core.libraries.get(library.id).overrides) == {
        "max_recall": 5, "min_length": 2, "enabled": False,
    }  # fmt: skip
    core.libraries.adjust(library.id, {"max_recall": None, "enabled": ""})
    assert dict(core.libraries.get(library.id).overrides) == {"min_length": 2}
    with pytest.raises(ConfigError, match="max_recall"):
        core.libraries.adjust(library.id, {"max_recall": 0})


# ---- agents


def test_an_agent_without_a_library_has_no_memory(core, library):
    alone = core.libraries.create_agent("alone")
    assert not alone.memory_enabled
    assert alone.short_term_memory_size == 20
    with pytest.raises(InvalidInput, match="bound to no library"):
        core.libraries.create_agent("eager", memory_enabled=True)
    bound = core.libraries.edit_agent(
        alone.id, name="bound", library_id=library.id, memory_enabled=True,
        extraction_enabled=False, short_term_memory_size=6,
    )  # fmt: skip
    assert (bound.library_id, bound.memory_enabled) == (library.id, True)
    assert (bound.extraction_enabled, bound.short_term_memory_size) == (False, 6)


@pytest.mark.parametrize("size", [None, 0, -3])
def test_an_empty_or_negative_window_means_twenty_messages(core, library, size):
    agent = core.libraries.create_agent("a", library_id=library.id, short_term_memory_size=size)
    assert agent.short_term_memory_size == 20


def test_one_library_serves_many_agents_and_a_name_is_taken_once(core, library):
    for name in ("a", "b", "c"):
        core.libraries.create_agent(name, library_id=library.id)
    assert [a.name for a in core.libraries.agents(library.id)] == ["a", "b", "c"]
    with pytest.raises(Conflict, match="'a'"):
        core.libraries.create_agent("a")
    with pytest.raises(Conflict):
        core.libraries.edit_agent(
            core.libraries.agent("b").id, name="c", library_id=None, memory_enabled=False,
            extraction_enabled=True, short_term_memory_size=20,
        )  # fmt: skip


def test_what_a_deleted_agent_remembered_stays(core, library, who):
    agent = core.libraries.create_agent("a", library_id=library.id)
    asked = Subject(library.id, who.user_id, agent_id=agent.id)
    kept = store(core, asked, "Prefers oolong tea in the morning")
    core.libraries.delete_agent(agent.id)
    assert core.memories.get(kept.id, actor=BOSS).agent_id is None
    with pytest.raises(NotFound):
        core.libraries.agent(agent.id)
