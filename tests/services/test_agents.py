"""Agents whose memory is off, or who ask another library, are neither recalled nor written; and
every change of an agent is an operator's, is kept in history and can be taken back."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from memcore.core import Core, open_core
from memcore.database.tables import HistoryRow
from memcore.errors import AgentMemoryOff, Conflict, NotFound, PermissionDenied
from memcore.models import Actor, Agent, Draft, Library, Memory, Status, Subject

BOSS = Actor("boss", operator=True)
GUEST = Actor("guest")


def change(core: Core, agent: Agent, actor: Actor | None = None, **values: object) -> Agent:
    fields = {
        name: getattr(agent, name)
        for name in ("name", "library_id", "memory_enabled", "extraction_enabled",
                     "short_term_memory_size")
    }  # fmt: skip
    return core.libraries.edit_agent(agent.id, actor=actor, **{**fields, **values})


def store(core: Core, who: Subject, content: str) -> Memory:
    memory = core.memories.add(Draft(content), subject=who).memory
    assert memory is not None
    return memory


@pytest.fixture
def desk(core: Core, library: Library) -> Agent:
    return core.libraries.create_agent("desk", library_id=library.id)


@pytest.fixture
def asked(who: Subject, desk: Agent) -> Subject:
    return replace(who, agent_id=desk.id)


@pytest.mark.parametrize(
    "act",
    [
        lambda core, who: core.memories.search_memories("kayak", subject=who),
        lambda core, who: core.memories.recall("kayak", subject=who),
        lambda core, who: core.memories.add(Draft("Owns a red kayak"), subject=who),
        lambda core, who: core.memories.add_explicit_memory("Owns a red kayak", subject=who),
        lambda core, who: core.memories.add_many([Draft("Owns a red kayak")], subject=who),
        lambda core, who: core.memories.validate_memory(Draft("Owns a red kayak"), subject=who),
        lambda core, who: core.memories.get_profile_for_agent(who),
    ],
)
def test_an_agent_whose_memory_is_off_neither_recalls_nor_writes(core, asked, who, desk, act):
    store(core, who, "Paddles a kayak on Sundays")
    change(core, desk, memory_enabled=False)
    with pytest.raises(AgentMemoryOff, match="'desk' is switched off") as refused:
        act(core, asked)
    assert "Libraries page, under Agents" in str(refused.value)
    # A person who looks without the agent still finds what is there.
    assert core.memories.search_memories("kayak", subject=who).hits
    assert core.memories.browse(actor=BOSS).total == 1
    change(core, desk)
    act(core, asked)


def test_a_tool_of_an_agent_that_is_off_says_why(core, asked, desk):
    from memcore import tools

    change(core, desk, memory_enabled=False)
    for said in (
        tools.memory_search(core, asked, "kayak"),
        tools.memory_add(core, asked, "Owns a red kayak"),
    ):
        assert "AgentMemoryOff" in said
        assert "switched off" in said


def test_an_agent_recalls_from_the_library_it_is_bound_to_and_no_other(core, asked, desk):
    other = core.libraries.create("other", embedder="hash:64")
    there = replace(asked, library_id=other.id)
    with pytest.raises(AgentMemoryOff, match="bound to another library than 'other'"):
        core.memories.search_memories("kayak", subject=there)
    change(core, desk, library_id=other.id)
    core.memories.search_memories("kayak", subject=there)
    with pytest.raises(AgentMemoryOff):
        core.memories.add(Draft("Owns a red kayak"), subject=asked)
    with pytest.raises(NotFound, match="no agent"):
        core.memories.search_memories("kayak", subject=replace(asked, agent_id="nobody"))


def test_an_agent_switched_off_in_another_process_is_refused_within_two_seconds(
    core, asked, desk, database_url, tmp_path, monkeypatch
):
    core.memories.search_memories("kayak", subject=asked)
    with open_core(url=database_url, home=tmp_path) as elsewhere:
        change(elsewhere, desk, memory_enabled=False)
    monkeypatch.setattr("memcore.services.libraries.agents.FRESH_SECONDS", 0.0)
    with pytest.raises(AgentMemoryOff):
        core.memories.search_memories("kayak", subject=asked)


def test_why_not_names_the_agent_and_what_would_change_it(core, asked, who, desk):
    kept = store(core, asked, "Paddles a kayak on Sundays")
    assert core.memories.why_not(kept.id, "kayak", subject=asked).present
    change(core, desk, memory_enabled=False)
    why = core.memories.why_not(kept.id, "kayak", subject=asked)
    assert (why.reason, why.present) == ("agent_off", False)
    assert why.change is not None
    assert (why.change.setting, why.change.after) == ("agent's memory", True)
    assert core.memories.why_not(kept.id, "kayak", subject=who).present


# ---- who changes an agent, and how it is taken back


@pytest.mark.parametrize(
    "act",
    [
        lambda core, agent, actor: core.libraries.create_agent("new", actor=actor),
        lambda core, agent, actor: change(core, agent, actor, name="renamed"),
        lambda core, agent, actor: core.libraries.delete_agent(agent.id, actor=actor),
    ],
)
def test_only_an_operator_changes_agents_and_each_change_is_kept(core, desk, act):
    with pytest.raises(PermissionDenied):
        act(core, desk, GUEST)
    act(core, desk, BOSS)
    with core.runtime.engine.connect() as connection:
        lines = connection.execute(
            select(HistoryRow.actor, HistoryRow.action)
            .where(HistoryRow.kind == "agent")
            .order_by(HistoryRow.id)
        ).all()
    assert lines[0] == ("system", "add")  # a program made it
    assert lines[1].actor == "boss"


def test_a_change_of_an_agent_is_taken_back_unless_it_changed_again(core, desk, library):
    change(core, desk, BOSS, memory_enabled=False, short_term_memory_size=6)
    batch = core.libraries.last_change(desk.id, "agent")
    change(core, desk, BOSS, memory_enabled=False, short_term_memory_size=8)
    with pytest.raises(Conflict, match="changed again"):
        core.libraries.undo(batch, actor=BOSS)
    core.libraries.undo(core.libraries.last_change(desk.id, "agent"), actor=BOSS)
    with pytest.raises(PermissionDenied):
        core.libraries.undo(batch, actor=GUEST)
    assert core.libraries.undo(batch, actor=BOSS) == desk
    with pytest.raises(NotFound):
        core.libraries.undo(batch, actor=BOSS)


def test_saving_an_agent_unchanged_leaves_nothing_to_undo(core, desk):
    change(core, desk, BOSS)
    assert core.libraries.last_change(desk.id, "agent") is None


def test_a_deleted_agent_comes_back_with_what_was_its_own(core, desk, asked, who):
    kept = store(core, asked, "Paddles a kayak on Sundays")
    core.conversations.start(asked)
    batch = core.libraries.delete_agent(desk.id, actor=BOSS)
    assert core.memories.get(kept.id, actor=BOSS).agent_id is None
    assert core.libraries.undo(batch, actor=BOSS) == desk
    assert core.memories.get(kept.id, actor=BOSS).agent_id == desk.id
    assert core.conversations.conversation(who.session_id, actor=BOSS).agent_id == desk.id
    assert core.memories.search_memories("kayak", subject=asked).hits


def test_two_agents_that_knew_the_same_can_both_be_deleted(core, library, who):
    one, two = (core.libraries.create_agent(n, library_id=library.id) for n in ("one", "two"))
    first, second = (
        store(core, replace(who, agent_id=a.id), "Paddles a kayak on Sundays") for a in (one, two)
    )
    core.libraries.delete_agent(one.id)
    batch = core.libraries.delete_agent(two.id)
    now = core.memories.get(second.id, actor=BOSS)
    assert (now.status, now.superseded_by) == (Status.SUPERSEDED, first.id)
    assert [h.memory.id for h in core.memories.search_memories("kayak", subject=who).hits] == [
        first.id
    ]
    core.libraries.undo(batch)
    assert core.memories.get(second.id, actor=BOSS).status is Status.ACTIVE


def test_a_deleted_library_comes_back_with_each_agent_as_it_was(core, library):
    loud = core.libraries.create_agent("loud", library_id=library.id)
    quiet = core.libraries.create_agent("quiet", library_id=library.id, memory_enabled=False)
    batch = core.libraries.delete(library.id, actor=BOSS)
    assert not core.libraries.agent(loud.id).memory_enabled
    core.libraries.undo(batch, actor=BOSS)
    assert core.libraries.agent(loud.id) == loud
    assert core.libraries.agent(quiet.id) == quiet


def test_an_agent_whose_library_is_gone_comes_back_unbound(core, library, desk):
    batch = core.libraries.delete_agent(desk.id)
    core.libraries.delete(library.id)
    back = core.libraries.undo(batch)
    assert isinstance(back, Agent)
    assert (back.library_id, back.memory_enabled) == (None, False)
