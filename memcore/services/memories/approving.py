"""What the gate held is let in by a person, or tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select, true, update

from memcore.database import records
from memcore.database.tables import DecisionRow
from memcore.errors import Conflict, NotFound
from memcore.models import Actor, Added, Subject
from memcore.services.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable


class Approving:
    """Part of MemoryService: drafts that wait."""

    _runtime: Runtime
    add: Callable[..., Added]

    def approve(self, decision_id: int, *, actor: Actor) -> Added:
        """Judge a held draft again and store it where accepted. One that reads like an order is
        let in, because `actor` has looked at it; one that could not be checked is checked. What is
        still refused (a duplicate by now) is refused with its reason. Raises NotFound, also for
        what the actor may not see; Conflict where nothing is held; and what `add` raises."""
        d = DecisionRow
        mine = true() if actor.operator else d.user_id == actor.user_id
        with self._runtime.engine.connect() as connection:
            decision: Any = connection.execute(
                select(d.__table__).where(d.id == decision_id, mine)
            ).one_or_none()
        if decision is None:
            raise NotFound("There is no such decision in the log, or none you may see.")
        if decision.memory_id is not None or decision.outcome not in ("review", "unchecked"):
            raise Conflict(
                "Nothing is held there: it was stored or refused.",
                hint="Reload the list; somebody may have approved it.",
            )
        added = self.add(
            records.draft_from(decision.draft),
            subject=Subject(
                decision.library_id,
                decision.user_id,
                decision.project_id,
                decision.conversation_id,
                decision.agent_id,
            ),
            actor=actor,
            run_id=decision.run_id,
            approved=decision.outcome == "review",
        )
        settled = added.memory.id if added.memory else added.verdict.matched_id
        if settled is not None:
            with self._runtime.engine.begin() as connection:
                connection.execute(
                    update(d).where(d.id == decision_id).values(memory_id=settled)
                )  # fmt: skip
        return added
