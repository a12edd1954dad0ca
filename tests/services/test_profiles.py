"""Profiles are current, private, and keep what people wrote."""

import pytest

from memcore import Actor, Role, Subject
from memcore.errors import Conflict, PermissionDenied

OPERATOR = Actor("operator", operator=True)


@pytest.fixture
def told(core, who):
    return {
        text: core.memories.add_explicit_memory(text, subject=who).memory
        for text in ("Builds pages with Vue", "Writes reports on Fridays", "Plays the cello")
    }


def shown(core, library, actor=OPERATOR, user="u1"):
    found = core.profiles.get("user", user, library_id=library.id, actor=actor)
    return {s.content for s in found.statements}


def test_a_profile_follows_every_change_of_status_edit_and_delete(core, library, who, told):
    assert shown(core, library) == set(told)
    core.memories.change_status(told["Builds pages with Vue"].id, "suppressed", actor=OPERATOR)
    changed = core.memories.delete(told["Plays the cello"].id, actor=OPERATOR)
    core.memories.edit(
        told["Writes reports on Fridays"].id, actor=OPERATOR, content="Writes reports on Mondays"
    )
    assert shown(core, library) == {"Writes reports on Mondays"}
    core.memories.undo(changed.batch_id, actor=OPERATOR)
    assert shown(core, library) == {"Writes reports on Mondays", "Plays the cello"}


def test_nobody_else_sees_a_users_profile(core, library, told):
    core.profiles.write("user", "u1", {"job": "nurse"}, library_id=library.id, actor=Actor("u1"))
    other = core.profiles.get("user", "u1", library_id=library.id, actor=Actor("u2"))
    assert (other.statements, dict(other.fields), dict(other.counts)) == ((), {}, {})
    with pytest.raises(PermissionDenied):
        core.profiles.write("user", "u1", {"job": "x"}, library_id=library.id, actor=Actor("u2"))


def test_two_editors_of_different_fields_both_keep_their_text(core, library):
    def write(patch, version):
        return core.profiles.write(
            "user", "u1", patch, library_id=library.id, actor=Actor("u1"), version=version
        )

    seen = write({"job": "engineer", "city": "Suzhou"}, None)
    write({"job": "designer"}, seen.version)
    merged = write({"city": "Chengdu"}, seen.version)
    assert merged.fields == {"job": "designer", "city": "Chengdu"}
    with pytest.raises(Conflict, match="job"):
        write({"job": "back to engineer"}, seen.version)


def test_a_projects_profile_is_for_its_members(core, library, who):
    core.memories.add_explicit_memory("Ships on Tuesdays", subject=who, scope="project")
    core.people.join("p1", "u2", Role.VIEWER, actor=Actor("u1"))

    def statements(user):
        found = core.profiles.get("project", "p1", library_id=library.id, actor=Actor(user))
        return [s.content for s in found.statements]

    assert statements("u2") == ["Ships on Tuesdays"]
    assert statements("u3") == []


def test_an_agent_gets_the_profile_of_its_user_and_project(core, library, who, told):
    core.memories.add_explicit_memory("Ships on Tuesdays", subject=who, scope="project")
    user, project = core.memories.get_profile_for_agent(who)
    assert {s.content for s in user.statements} == set(told)
    assert [s.content for s in project.statements] == ["Ships on Tuesdays"]


def test_the_subjects_listed_are_those_with_memories_the_actor_may_see(core, library, who, told):
    core.memories.add_explicit_memory("Likes jazz a lot", subject=Subject(library.id, "u2"))
    assert core.profiles.subjects(library_id=library.id, actor=Actor("u2")) == [("user", "u2", 1)]
    assert core.profiles.subjects(library_id=library.id, actor=OPERATOR) == [
        ("user", "u1", 3), ("user", "u2", 1),
    ]  # fmt: skip
