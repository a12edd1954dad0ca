"""One predicate: what SQL lets an actor see is what the pure rule allows, for every combination."""

import itertools

import pytest

from memcore import Actor, Role, Scope, Subject, Visibility
from memcore.models import Action
from memcore.rules import permissions
from memcore.services.memories import Filter

OPERATOR = Actor("operator", operator=True)


@pytest.fixture
def everything(core, library):
    core.people.join("p1", "ann", Role.OWNER, actor=Actor("ann"))
    for user, role in (("bob", Role.EDITOR), ("cat", Role.VIEWER), ("dan", Role.ADMIN)):
        core.people.join("p1", user, role, actor=Actor("ann"))
    core.people.introduce("eve")
    places = itertools.product(("ann", "bob"), Scope, Visibility)
    for n, (user, scope, visibility) in enumerate(places):
        core.memories.add_explicit_memory(
            f"Statement number {n} about topic {chr(97 + n) * 4}",
            subject=Subject(library.id, user, project_id="p1", session_id=f"s-{user}"),
            scope=scope,
            visibility=visibility,
        )
    memories = core.memories.browse(actor=OPERATOR, limit=100).memories
    assert len(memories) == 18
    return memories


@pytest.mark.parametrize("user", ["ann", "bob", "cat", "dan", "eve", "", "nobody"])
def test_sql_and_the_pure_rule_agree_on_who_sees_what(core, everything, user):
    actor = core.people.actor(user)
    seen = {m.id for m in core.memories.browse(actor=actor, limit=100).memories}
    allowed = {m.id for m in everything if permissions.decide(actor, Action.READ, m).allowed}
    assert seen == allowed


def test_the_role_matrix_holds_for_every_derived_action(core, everything):
    of_project = [m for m in everything if m.scope is Scope.PROJECT and m.visibility == "members"]
    by_ann = next(m for m in of_project if m.user_id == "ann")
    by_bob = next(m for m in of_project if m.user_id == "bob")
    changes = [Action.EDIT, Action.DELETE, Action.CHANGE_STATUS, Action.CHANGE_VISIBILITY]
    for action in changes:
        for user, memory, expected in [
            ("ann", by_bob, True), ("dan", by_ann, True), ("bob", by_bob, True),
            ("bob", by_ann, False), ("cat", by_ann, False), ("eve", by_ann, False),
        ]:  # fmt: skip
            actor = core.people.actor(user)
            assert permissions.decide(actor, action, memory).allowed is expected, (user, action)


def test_a_role_taken_away_closes_at_once_even_for_an_old_actor_object(core, everything):
    actor = core.people.actor("cat")
    assert core.memories.browse(actor=actor).total
    core.people.leave("p1", "cat", actor=Actor("ann"))
    only_public = core.memories.browse(actor=actor).memories
    assert {m.visibility for m in only_public} == {Visibility.PUBLIC}


def test_ids_are_compared_whole(core, library):
    for user in ("user-1", "user-10"):
        core.memories.add_explicit_memory(
            f"The note of {user} here", subject=Subject(library.id, user)
        )
    seen = core.memories.browse(Filter(user_id="user-1"), actor=OPERATOR).memories
    assert [m.user_id for m in seen] == ["user-1"]
    found = core.memories.search_memories("note", subject=Subject(library.id, "user-1"))
    assert {c.memory.user_id for c in found.candidates} == {"user-1"}
