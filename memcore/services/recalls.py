"""The agents' recalls of the past: read, replayed under other settings, their hits judged."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from memcore.database import queries, recall_log
from memcore.database.tables import EvaluationCaseRow, MemoryRow
from memcore.errors import NotFound
from memcore.explanations import LoggedRecall
from memcore.models import Actor, Subject
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime
from memcore.text import clean


class RecallService:
    """Safe to share between threads."""

    def __init__(self, runtime: Runtime, libraries: LibraryService) -> None:
        self._runtime = runtime
        self._libraries = libraries

    def latest(
        self,
        library_id: str,
        *,
        actor: Actor,
        limit: int = 20,
        agent_id: str | None = None,
    ) -> tuple[LoggedRecall, ...]:
        """The newest logged recalls of a library, newest first: all for an operator, those made
        for themselves for anybody else."""
        with self._runtime.engine.connect() as connection:
            return tuple(
                recall_log.read(
                    connection,
                    library_id=self._libraries.get(library_id).id,
                    visible=queries.visible(actor),
                    limit=limit,
                    user_id=None if actor.operator else actor.user_id,
                    agent_id=agent_id,
                )
            )

    def get(self, recall_id: int, *, library_id: str, actor: Actor) -> LoggedRecall:
        """One logged recall. Raises NotFound, also for what the actor may not see."""
        with self._runtime.engine.connect() as connection:
            found = recall_log.read(
                connection,
                library_id=self._libraries.get(library_id).id,
                visible=queries.visible(actor),
                limit=1,
                user_id=None if actor.operator else actor.user_id,
                recall_id=recall_id,
            )
        if not found:
            raise NotFound("There is no such recall in the log, or none you may see.")
        return found[0]

    # ---- judgements

    def judge(
        self, query: str, memory_id: str, relevant: bool | None, *, subject: Subject, actor: Actor
    ) -> None:
        """Say that for this query this memory is right or wrong; None takes it back. What is said
        is an evaluation case of the library, the last word counting. Raises NotFound where the
        actor may not see the memory."""
        query = clean(query)
        library_id = self._libraries.get(subject.library_id).id
        row = EvaluationCaseRow
        with self._runtime.engine.begin() as connection:
            if not queries.may_see(connection, actor, memory_id):
                raise NotFound("There is no such memory, or none you may see.")
            if relevant is None:
                connection.execute(
                    delete(row).where(
                        row.library_id == library_id,
                        row.query == query,
                        row.memory_id == memory_id,
                    )
                )
                return
            said = {"actor": actor.user_id, "subject": asdict(subject), "relevant": relevant}
            connection.execute(
                insert(row)
                .values(library_id=library_id, query=query, memory_id=memory_id, **said)
                .on_conflict_do_update(
                    index_elements=[row.library_id, row.query, row.memory_id], set_=said
                )
            )

    def judgements(self, library_id: str, query: str, *, actor: Actor) -> dict[str, bool]:
        """Memory id → right or wrong, as far as the actor may see the memory."""
        row = EvaluationCaseRow
        statement = (
            select(row.memory_id, row.relevant)
            .join(MemoryRow, MemoryRow.id == row.memory_id)
            .where(
                row.library_id == self._libraries.get(library_id).id,
                row.query == clean(query),
                queries.visible(actor),
            )
        )
        with self._runtime.engine.connect() as connection:
            return {str(memory_id): said for memory_id, said in connection.execute(statement)}
