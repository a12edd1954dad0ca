"""The recall log: kept as the library says, replayed without I/O, its hits judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from memcore.core import Core
from memcore.errors import NotFound
from memcore.models import Actor, Library, Role, Subject
from memcore.rules.ranking import compare, replay
from memcore.settings import RankingSettings
from tests.services.test_recall import put

OPERATOR = Actor("op", operator=True)


@pytest.fixture
def agent(core: Core, who: Subject) -> Subject:
    return replace(who, agent_id=core.libraries.create_agent("aide", library_id=who.library_id).id)


def test_a_replay_under_the_same_settings_changes_nothing(
    core: Core, library: Library, agent: Subject
) -> None:
    for i in range(12):
        put(core, library, f"boards the night ferry {i}", confidence=0.5 + i / 30)
    result = core.memories.search_memories("night ferry", subject=agent)
    logged = core.recalls.get(result.recall_id or 0, library_id=library.id, actor=OPERATOR)
    assert logged.hits == tuple(h.memory.id for h in result.hits)
    assert (logged.query, logged.subject, logged.mode) == ("night ferry", agent, "hybrid")
    assert logged.candidates == tuple(
        replace(c, keywords=None, memory=replace(c.memory, **_unread(logged, c.memory.id)))
        for c in result.candidates
    )
    again = replay([logged], logged.ranking)[0]
    assert again.comparison.same
    assert [h.score for h in again.ranking.hits] == [h.score for h in result.hits]


def _unread(logged: Any, memory_id: str) -> dict[str, Any]:
    """What counting the use changed in the rows since."""
    now = next(c.memory for c in logged.candidates if c.memory.id == memory_id)
    return {"relevance": now.relevance, "last_used_at": now.last_used_at}


def test_a_replay_under_other_settings_says_what_moves_comes_and_goes(
    core: Core, library: Library, agent: Subject
) -> None:
    sure = put(core, library, "owns a lighthouse", confidence=1.0)
    near = put(core, library, "sails the evening ferry", confidence=0.5)
    core.memories.search_memories("evening ferry", subject=agent, k=1)
    logged = core.recalls.latest(library.id, actor=OPERATOR)
    assert logged[0].hits == (near,)
    other = RankingSettings(similarity_weight=0, max_recall=1)
    comparison = replay(logged, other)[0].comparison
    assert (comparison.gained, comparison.lost) == ((sure,), (near,))
    assert not comparison.same


def test_two_orders_are_compared_place_by_place() -> None:
    comparison = compare(["a", "b", "c"], ["c", "a", "d"])
    assert [(m.memory_id, m.before, m.after) for m in comparison.moves] == [
        ("c", 3, 1), ("a", 1, 2), ("d", None, 3), ("b", 2, None),
    ]  # fmt: skip
    assert compare(["a"], ["a"]).same


def test_what_is_deleted_since_is_in_no_log(core: Core, library: Library, agent: Subject) -> None:
    memory_id = put(core, library, "the alarm code lies under the clock")
    core.memories.search_memories("alarm", subject=agent)
    core.memories.delete(memory_id, actor=OPERATOR)
    logged = core.recalls.latest(library.id, actor=OPERATOR)[0]
    assert logged.gone == {memory_id}
    assert logged.candidates[0].memory.content == ""
    assert replay([logged], logged.ranking)[0].comparison.same
    with core.runtime.engine.connect() as connection:
        kept = connection.scalar(text("SELECT candidates::text || hits::text FROM recalls"))
    assert "clock" not in str(kept)


def test_a_log_shows_no_text_its_reader_may_not_see(
    core: Core, library: Library, agent: Subject
) -> None:
    put(
        core,
        library,
        "harbour gate opens at six",
        user_id="u2",
        scope="project",
        project_id="p1",
        visibility="members",
    )
    core.people.join("p1", "u1", Role.VIEWER, actor=Actor("u2"))
    core.memories.search_memories("harbour gate", subject=agent)
    mine = core.recalls.latest(library.id, actor=Actor("u1"))
    assert mine[0].candidates[0].memory.content == "harbour gate opens at six"
    core.people.leave("p1", "u1", actor=Actor("u2"))
    mine = core.recalls.latest(library.id, actor=Actor("u1"))
    assert mine[0].candidates[0].memory.content == ""
    assert core.recalls.latest(library.id, actor=Actor("u9")) == ()
    with pytest.raises(NotFound):
        core.recalls.get(mine[0].id, library_id=library.id, actor=Actor("u9"))


@pytest.mark.parametrize(
    ("keep", "low", "high"), [("off", 0, 0), ("all", 60, 60), ("sampled", 1, 25)]
)
def test_a_library_keeps_all_recalls_some_or_none(
    core: Core, library: Library, agent: Subject, keep: str, low: int, high: int
) -> None:
    core.libraries.set(library.id, {"recall_log": keep})
    memory_id = put(core, library, "fjord")
    for _ in range(60):
        core.memories.search_memories("fjord", subject=agent)
    assert low <= len(core.recalls.latest(library.id, actor=OPERATOR, limit=100)) <= high
    assert core.memories.get(memory_id, actor=OPERATOR).access_count == 60


def test_a_judgement_is_an_evaluation_case_and_the_last_word_counts(
    core: Core, library: Library, who: Subject
) -> None:
    memory_id = put(core, library, "fjord")

    def judge(said: bool | None, actor: Actor = OPERATOR) -> dict[str, bool]:
        core.recalls.judge(" water? ", memory_id, said, subject=who, actor=actor)
        return core.recalls.judgements(library.id, "water?", actor=OPERATOR)

    assert judge(True) == {memory_id: True}
    assert judge(False) == {memory_id: False}
    assert core.recalls.judgements(library.id, "water?", actor=Actor("u2")) == {}
    with core.runtime.engine.connect() as connection:
        row = connection.execute(
            text("SELECT query, relevant, subject FROM evaluation_cases")
        ).one()
    assert (row.query, row.relevant, row.subject["user_id"]) == ("water?", False, "u1")
    assert judge(None) == {}
    with pytest.raises(NotFound):
        judge(True, Actor("u2"))
