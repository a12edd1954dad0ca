"""Who may do what to a memory. Pure: no I/O. Fails closed.

    project role   read            create   edit, delete, status, visibility
    owner, admin   members' memories  yes   all they can see
    editor         members' memories  yes   what they created
    viewer         members' memories  no    nothing
    none           public ones        no    nothing

User and session memories are their user's alone, owner_only ones their owner's alone; an operator
of the installation may do everything. `read` says the same as `database.queries.visible` does in
SQL; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass

from memcore.errors import PermissionDenied
from memcore.models import Action, Actor, Memory, Role, Scope, Visibility


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str


_NEUTRAL = Decision(False, "There is no such memory, or none you may see.")


def decide(actor: Actor, action: Action, memory: Memory) -> Decision:
    """Whether `actor` may do `action` to `memory`. Never reveals a memory they may not see."""
    if actor.operator:
        return Decision(True, "You operate this installation.")
    if not actor.user_id:
        return _NEUTRAL
    role = actor.roles.get(memory.project_id or "")
    if memory.user_id == actor.user_id and (memory.scope is not Scope.PROJECT or role is None):
        return Decision(True, "It is your own memory.")
    if memory.scope is not Scope.PROJECT:
        return _NEUTRAL
    own = actor.user_id in (memory.user_id, memory.created_by)
    if memory.visibility is Visibility.OWNER_ONLY and memory.user_id != actor.user_id:
        return _NEUTRAL
    if role is None and memory.visibility is not Visibility.PUBLIC:
        return _NEUTRAL
    if action is Action.READ:
        return Decision(True, f"You are {role} of its project." if role else "It is public.")
    if role in (Role.OWNER, Role.ADMIN):
        return Decision(True, f"You are {role} of its project.")
    if role is Role.EDITOR and own:
        return Decision(True, "You are editor of its project and made it.")
    if role is Role.EDITOR:
        return Decision(False, "An editor may change only what they created; ask an admin.")
    if role is Role.VIEWER:
        return Decision(False, "A viewer of a project may only read; ask an admin for a role.")
    return Decision(False, "You are no member of its project; it is public to read only.")


def may_create(actor: Actor, *, scope: Scope, user_id: str, project_id: str | None) -> Decision:
    """Whether `actor` may add a memory of that scope for `user_id`."""
    if actor.operator:
        return Decision(True, "You operate this installation.")
    if not actor.user_id or actor.user_id != user_id:
        return Decision(False, "You may add memories only as yourself.")
    if scope is not Scope.PROJECT:
        return Decision(True, "It is your own memory.")
    role = actor.roles.get(project_id or "")
    if role in (Role.OWNER, Role.ADMIN, Role.EDITOR):
        return Decision(True, f"You are {role} of the project.")
    if role is Role.VIEWER:
        return Decision(False, "A viewer of a project may only read; ask an admin for a role.")
    return Decision(
        False, f"{user_id!r} is no member of project {project_id!r}; its owner can add members."
    )


def need_operator(actor: Actor | None) -> None:
    """Libraries, agents, shared endpoints and stores belong to the installation: operators change
    them, and programs (None), which hold the database anyway. Raises PermissionDenied."""
    if actor is not None and not actor.operator:
        raise PermissionDenied(
            "Only an operator changes libraries, agents and vector stores.",
            hint="Act as operator, or ask one.",
        )
