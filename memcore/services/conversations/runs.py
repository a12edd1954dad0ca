"""The log of extraction runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from memcore.database import queries
from memcore.database.tables import ExtractionRunRow
from memcore.errors import NotFound
from memcore.extraction import Skipped
from memcore.extraction.runs import Run, judged_from, message_from
from memcore.models import Actor
from memcore.plain import plain
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime

_REPORT = ("detail", "counts", "ms", "tokens", "mode", "read_by", "dry_run", "missed", "skipped")
_FAILED = ("refused", "truncated", "unparsable", "failed")


class RunLog:
    """Part of ConversationService: runs, read back."""

    _runtime: Runtime
    _libraries: LibraryService

    def runs(
        self,
        *,
        actor: Actor,
        library_id: str | None = None,
        session_id: str | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """Runs the actor may see, the latest first: an operator all, others their own."""
        row = ExtractionRunRow
        query = select(row.__table__).order_by(row.at.desc(), row.id).limit(limit)
        if not actor.operator:
            query = query.where(row.user_id == actor.user_id)
        if library_id is not None:
            query = query.where(row.library_id == self._libraries.get(library_id).id)
        if session_id is not None:
            query = query.where(row.conversation_id == session_id)
        with self._runtime.engine.connect() as connection:
            return [_run(dict(found._mapping)) for found in connection.execute(query)]

    def run(self, run_id: str, *, actor: Actor) -> Run:
        """One run. Raises NotFound, also for somebody else's."""
        row = ExtractionRunRow
        query = select(row.__table__).where(row.id == run_id)
        if not actor.operator:
            query = query.where(row.user_id == actor.user_id)
        if queries.is_uuid(run_id):
            with self._runtime.engine.connect() as connection:
                found = connection.execute(query).first()
            if found is not None:
                return _run(dict(found._mapping))
        raise NotFound("There is no such extraction run, or none you may see.")

    def _logged(self, run: Run) -> Run:
        """Keep `run`, or what has become of it, under its id."""
        values: dict[str, Any] = {
            "id": run.id, "library_id": run.library_id, "agent_id": run.agent_id,
            "user_id": run.user_id, "project_id": run.project_id,
            "conversation_id": run.session_id, "extractor": run.extractor,
            "model": run.extractor.removeprefix("llm:") if run.extractor != "rules" else "",
            "outcome": run.outcome, "counted": run.counted, "raw_reply": run.raw_reply,
            "report": {name: plain(getattr(run, name)) for name in _REPORT},
            "input": {
                "context": plain(run.context), "messages": plain(run.messages),
                "repeats": run.repeats, "upto": run.upto,
            },
            "proposals": plain(run.items),
        }  # fmt: skip
        kept = {k: v for k, v in values.items() if k != "id"}
        with self._runtime.engine.begin() as connection:
            queries.introduce(connection, run.user_id, run.project_id)
            connection.execute(
                insert(ExtractionRunRow)
                .values(values)
                .on_conflict_do_update(index_elements=[ExtractionRunRow.id], set_=kept)
            )
        return run

    def _failures(self, session_id: str, extracted_upto: int) -> int:
        """Failed runs of the session on turns that no run has read since."""
        row = ExtractionRunRow
        with self._runtime.engine.connect() as connection:
            found = connection.scalar(
                select(func.count()).where(
                    row.conversation_id == session_id,
                    row.outcome.in_(_FAILED),
                    row.report["dry_run"].astext == "false",
                    row.input["upto"].as_integer() > extracted_upto,
                )
            )
        return found or 0


def _run(row: Mapping[str, Any]) -> Run:
    report, given = row["report"], row["input"]
    return Run(
        id=row["id"],
        at=row["at"],
        library_id=row["library_id"],
        user_id=row["user_id"],
        agent_id=row["agent_id"],
        project_id=row["project_id"],
        session_id=row["conversation_id"],
        extractor=row["extractor"],
        outcome=row["outcome"],
        detail=report.get("detail", ""),
        items=tuple(judged_from(j) for j in row["proposals"]),
        skipped=tuple(Skipped(**s) for s in report.get("skipped", ())),
        counts=report.get("counts", {}),
        ms=report.get("ms", 0.0),
        tokens=report.get("tokens", 0),
        mode=report.get("mode", ""),
        read_by=report.get("read_by", ""),
        dry_run=report.get("dry_run", False),
        counted=row["counted"],
        context=tuple(message_from(m) for m in given.get("context", ())),
        messages=tuple(message_from(m) for m in given.get("messages", ())),
        raw_reply=row["raw_reply"],
        missed=tuple(report.get("missed", ())),
        repeats=given.get("repeats"),
        upto=given.get("upto", 0),
    )
