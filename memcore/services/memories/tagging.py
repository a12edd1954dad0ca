"""Tags on many memories at once, in one act that one undo takes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, update

from memcore.database.tables import MemoryRow
from memcore.errors import InvalidInput, MemcoreError
from memcore.models import Action, Actor, Memory
from memcore.services.memories.changing import Changing
from memcore.services.memories.images import Changed
from memcore.text import clean


class Tagging(Changing):
    """Part of MemoryService: tags in bulk."""

    def tag(
        self,
        ids: Sequence[str],
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
        actor: Actor,
    ) -> Changed:
        """Add and remove tags of memories, order kept. Refusals as in change_status. Raises
        InvalidInput where there is nothing to add or remove."""
        adding = [t for t in map(clean, add) if t]
        removing = {clean(t) for t in remove}
        if not adding and not removing:
            raise InvalidInput("There is no tag to add or remove.")

        def apply(
            connection: Connection, memories: Sequence[Memory]
        ) -> Mapping[str, dict[str, Any] | MemcoreError]:
            after: dict[str, dict[str, Any] | MemcoreError] = {}
            for memory in memories:
                tags = [t for t in dict.fromkeys([*memory.tags, *adding]) if t not in removing]
                connection.execute(
                    update(MemoryRow)
                    .where(MemoryRow.id == memory.id)
                    .values(tags=tags, version=MemoryRow.version + 1, updated_at=func.now())
                )
                after[memory.id] = {"tags": tags}
            return after

        return self._act(list(ids), Action.EDIT, "edit", actor, lambda _: None, apply)
