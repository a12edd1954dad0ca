"""Two memories that say the same become one: a person decides which stays, the system records what
replaced what. Nothing is deleted, and one undo takes it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, update

from memcore.database.tables import MemoryRow
from memcore.errors import IllegalTransition, InvalidInput, MemcoreError
from memcore.models import Action, Actor, Memory, Status
from memcore.services.memories.changing import Changing
from memcore.services.memories.images import Changed


class Merging(Changing):
    """Part of MemoryService: changes, and near-duplicates made one."""

    def supersede(
        self, ids: Sequence[str], by: str, *, actor: Actor, merge: bool = False
    ) -> Changed:
        """Let `by` stand for the memories `ids`: each becomes superseded and names it. With
        `merge`, `by` also takes over their tags and the highest confidence. Refused, with the
        reason, for a memory of another library, scope, agent or visibility: whoever recalls it
        could not recall `by`. Raises NotFound, PermissionDenied, InvalidInput, IllegalTransition
        where `by` cannot stay."""
        keeper = self._mine(by, Action.EDIT if merge else Action.READ, actor)
        if keeper.status is not Status.ACTIVE:
            raise IllegalTransition(
                f"The memory that stays is {keeper.status}, so it would not be recalled.",
                hint="Make it active first, or keep the other one.",
            )
        if by in ids:
            raise InvalidInput("A memory cannot be superseded by itself.")

        def check(memory: Memory) -> None:
            if memory.id == by:
                return
            if memory.status is not Status.ACTIVE:
                raise IllegalTransition(f"It is {memory.status}, so there is nothing to replace.")
            if _recalled_by(memory) != _recalled_by(keeper):
                raise IllegalTransition(
                    f"It belongs to {memory.scope} {memory.scope_id} ({memory.visibility}), the "
                    f"one that stays to {keeper.scope} {keeper.scope_id} ({keeper.visibility}), "
                    "and the two are not recalled by the same people and agents."
                )

        def apply(
            connection: Connection, memories: Sequence[Memory]
        ) -> Mapping[str, dict[str, Any] | MemcoreError]:
            gone = [m for m in memories if m.id != by]
            now: dict[str, dict[str, Any] | MemcoreError] = {by: {}}
            if merge and gone:
                taken = {
                    "tags": list(dict.fromkeys([*keeper.tags, *(t for m in gone for t in m.tags)])),
                    "confidence": max(keeper.confidence, *(m.confidence for m in gone)),
                }
                connection.execute(_changed([by], taken))
                now[by] = dict(taken)
            replaced = {"status": Status.SUPERSEDED, "superseded_by": by}
            connection.execute(_changed([m.id for m in gone], replaced))
            return now | {m.id: dict(replaced) for m in gone}

        wanted = [*ids, by] if merge else list(ids)
        return self._act(wanted, Action.CHANGE_STATUS, "supersede", actor, check, apply)


def _changed(ids: list[str], values: Mapping[str, Any]) -> Any:
    return (
        update(MemoryRow)
        .where(MemoryRow.id.in_(ids))
        .values(**values, version=MemoryRow.version + 1, updated_at=func.now())
    )


def _recalled_by(memory: Memory) -> tuple[Any, ...]:
    """What decides who recalls a memory."""
    private_to = memory.user_id if memory.visibility == "owner_only" else None
    return (
        memory.library_id, memory.scope, memory.scope_id, memory.visibility, private_to,
        None if memory.shared else memory.agent_id,
    )  # fmt: skip
