"""The demo world: complete, the same every time, removable, and true to the rules it shows."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from memcore import demo
from memcore.core import Core
from memcore.demo import story
from memcore.errors import Conflict
from memcore.models import Actor, Scope, Status, Subject, Visibility
from memcore.services.memories import Filter

OPERATOR = Actor("operator", operator=True)
TODAY = datetime(2026, 3, 20, 21, 30, tzinfo=UTC)
LANTERN = story.identity("library", "lantern-team")
CLUB = story.identity("library", "reading-club")


def everything(core: Core) -> list[str]:
    page = core.memories.browse(Filter(), actor=OPERATOR, limit=1000)
    return sorted(m.id for m in page.memories)


def test_the_demo_has_about_300_memories_more_than_half_of_them_chinese(
    demo_core: Core,
) -> None:
    page = demo_core.memories.browse(Filter(), actor=OPERATOR, limit=1000)
    chinese = [m for m in page.memories if len(re.findall("[一-鿿]", m.content)) >= 5]
    assert 270 <= page.total <= 330
    assert 0.45 <= len(chinese) / page.total <= 0.65


def test_the_demo_shows_every_status_scope_type_and_private_memories(demo_core: Core) -> None:
    now = datetime.now(UTC)
    rows = demo_core.memories.browse(Filter(), actor=OPERATOR, limit=1000).memories
    assert {m.status for m in rows} == set(Status)
    assert {m.scope for m in rows} == set(Scope)
    assert len({m.memory_type for m in rows}) == 10
    assert {m.visibility for m in rows} == set(Visibility)
    expired = [m for m in rows if m.expires_at and m.expires_at < now]
    assert expired
    assert len({m.user_id for m in rows}) == 6


def test_loading_twice_changes_nothing_and_loading_elsewhere_gives_the_same_ids(
    core: Core,
) -> None:
    demo.load(core, embedder="hash:64", today=TODAY)
    before = everything(core)
    again = demo.load(core, embedder="hash:64", today=TODAY)
    assert again.already
    assert everything(core) == before
    assert before == sorted(m.id for m in story.memories(TODAY))


def test_removing_the_demo_leaves_other_libraries_and_people_alone(core: Core) -> None:
    own = core.libraries.create("own", embedder="hash:64")
    core.memories.add_explicit_memory("Keeps bees on the roof.", subject=Subject(own.id, "mira"))
    loaded = demo.load(core, embedder="hash:64", today=TODAY)
    assert demo.remove(core) == loaded.memories
    assert [x.name for x in core.libraries.all()] == ["own"]
    assert core.people.users() == ["mira"]
    assert core.people.projects() == []
    assert core.libraries.agents() == []
    assert not demo.load(core, embedder="hash:64", today=TODAY).already


def test_a_library_of_that_name_is_never_taken_over(core: Core) -> None:
    core.libraries.create("Lantern team", embedder="hash:64")
    with pytest.raises(Conflict, match="Lantern team"):
        demo.load(core, embedder="hash:64", today=TODAY)
    assert everything(core) == []


def test_a_changed_decision_links_both_ways_and_says_when(demo_core: Core) -> None:
    old = story.identity("memory", "k-stack-old")
    new = story.identity("memory", "k-stack-new")
    assert demo_core.history.links(old, actor=OPERATOR).replaced_by.id == new  # type: ignore[union-attr]
    assert [m.id for m in demo_core.history.links(new, actor=OPERATOR).replaces] == [old]
    changes = demo_core.history.of_memory(old, actor=OPERATOR)
    assert [c.action for c in changes] == ["supersede", "add"]
    assert changes[0].fields["status"] == ("active", "superseded")


def test_the_source_turn_of_a_memory_is_shown_to_its_user_and_to_nobody_else(
    demo_core: Core,
) -> None:
    memory = story.identity("memory", "k-nine")
    origin = demo_core.history.origin(memory, actor=Actor("anouk"))
    assert origin is not None
    (turn,) = [t for t in origin.turns if t.source]
    assert "Seven of the nine readers" in turn.content
    assert demo_core.history.origin(memory, actor=Actor("tomas")) is None
    assert demo_core.history.origin(memory, actor=OPERATOR) is not None


def test_agents_of_one_library_keep_apart_and_those_of_the_other_share(demo_core: Core) -> None:
    def found(agent: str, library: str, user: str, query: str) -> set[str]:
        who = Subject(
            story.identity("library", library), user, agent_id=story.identity("agent", agent)
        )
        return {c.memory.agent_id or "" for c in demo_core.memories.search_memories(
            query, subject=who).candidates}  # fmt: skip

    desk, curator = story.identity("agent", "desk"), story.identity("agent", "curator")
    assert found("desk", "lantern-team", "mira", "food") == {desk}
    assert curator in found("guide", "reading-club", "linxia", "选书")


def test_every_draft_the_demo_calls_rejected_is_blocked_by_the_check_it_names(
    demo_core: Core,
) -> None:
    lines = demo_core.history.latest_decisions(
        LANTERN, actor=OPERATOR, limit=1000
    ) + demo_core.history.latest_decisions(CLUB, actor=OPERATOR, limit=1000)
    blocked = sorted(line.reason or "" for line in lines if line.reason)
    expected = sorted(d["blocked_by"] for d in story.lines("drafts.jsonl"))
    others = [name for name in expected if name != "sensitive"]
    assert [name for name in blocked if name != "sensitive"] == others


def test_nothing_of_the_demo_happens_in_the_future(demo_core: Core) -> None:
    now = datetime.now(UTC)
    for memory in demo_core.memories.browse(Filter(), actor=OPERATOR, limit=1000).memories:
        assert memory.created_at <= now
        assert memory.updated_at <= now
        assert memory.created_at >= now - timedelta(days=22)
        assert memory.last_used_at is None or memory.created_at <= memory.last_used_at <= now


def test_the_figures_agree_with_the_list(demo_core: Core) -> None:
    now = datetime.now(UTC)
    for actor in (OPERATOR, Actor("anouk"), Actor("haoran"), Actor("nobody")):
        figures = demo_core.history.figures(LANTERN, actor=actor, zone=UTC, now=now)
        for status, count in figures.statuses.items():
            listed = demo_core.memories.browse(
                Filter(library_id=LANTERN, statuses=(status,)), actor=actor, limit=1
            )
            assert count == listed.total, (actor.user_id, status)
    figures = demo_core.history.figures(LANTERN, actor=OPERATOR, zone=UTC, now=now)
    assert sum(figures.stored_by_day.values()) == sum(figures.statuses.values())
    assert figures.judged == figures.accepted + sum(figures.blocked.values())


def test_the_shipped_vectors_are_those_of_the_texts_and_of_todays_embedder() -> None:
    from memcore.embeddings import open_embedder

    embedder = open_embedder("local")
    shipped = demo._shipped(embedder)
    if embedder.name == "local:use":
        pytest.skip("the default embedder of this platform is fast enough to need none")
    texts = [m.content for m in story.memories(TODAY)]
    assert {demo._key(text) for text in texts} <= set(shipped)
    some = texts[:3] + texts[150:153]
    for text, vector in zip(some, embedder.embed_documents(some), strict=True):
        assert float(vector @ shipped[demo._key(text)]) > 0.999


def test_the_gates_own_rules_say_what_replaced_what(core: Core) -> None:
    demo.load(core, today=TODAY)
    outcomes = {
        line.memory_ids: line.outcome
        for line in core.history.latest_decisions(LANTERN, actor=OPERATOR, limit=1000)
    }
    old, new = (story.identity("memory", k) for k in ("k-hold-old", "k-hold-new"))
    assert outcomes[(new, old)] == "update"


def test_a_replay_of_the_log_under_the_same_settings_comes_to_the_same_outcomes(
    demo_core: Core,
) -> None:
    from sqlalchemy import select

    from memcore.database import records
    from memcore.database.tables import DecisionRow
    from memcore.rules import gate

    with demo_core.runtime.engine.connect() as connection:
        rows = connection.execute(select(*DecisionRow.__table__.columns)).all()
    assert len(rows) == 289 + len(story.lines("drafts.jsonl"))
    for row in rows:
        again = gate.judge(
            records.draft_from(row.draft),
            records.facts_from(row.facts),
            records.gate_settings_from(row.settings),
        )
        assert (again.outcome, again.blocked_by) == (row.outcome, row.blocked_by)
