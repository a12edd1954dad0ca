"""From turns to memories: which turns, by which extractor, judged by the gate, logged.

A run reads the turns since the last one, with some before them as context. It takes its place in
the session's rate before a model is asked, and gives it back when nothing was stored, so an empty
or failed run costs no quota. A run that failed moves nothing on: the turns are read again, the
later the more often it failed.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update

from memcore.database import rate
from memcore.database.tables import ConversationRow, DecisionRow, ExtractionRunRow, MemoryRow
from memcore.errors import MemcoreError
from memcore.extraction import Action, Extraction, Extractor, Known, Proposal
from memcore.extraction.conversation import read_messages
from memcore.extraction.runs import Judged, Run, counts_of
from memcore.models import Actor, Conversation, Message, Scope, Subject, Verdict
from memcore.rules import sensitive
from memcore.rules import window as windows
from memcore.services.conversations.messages import Messages
from memcore.services.conversations.runs import RunLog
from memcore.services.memories import MemoryService
from memcore.settings import LibrarySettings
from memcore.text import clean, content_hash

CONTEXT = 6
"""Messages before the new ones that a model sees."""
MOST_KNOWN = 20
"""Memories of the scope that a model is shown."""
_STALE = timedelta(minutes=15)
"""A run that did not end in this time is taken for dead."""


class Extracting(Messages, RunLog):
    """Part of ConversationService: from conversation to memory."""

    _memories: MemoryService

    def extractor(
        self, library_id: str, *, model: str | None = None, prompt: str | None = None
    ) -> Extractor:
        """The library's extractor, or the one for another `model` (blank: the offline rules) or
        `prompt`. Raises ConfigError, NotFound."""
        settings = self._libraries.settings(library_id).settings
        if model is not None:
            settings = replace(settings, extraction_model=model)
        if prompt is not None:
            settings = replace(settings, extraction_prompt=prompt)
        return self._minds.extractor(settings)

    def due(self, session_id: str, *, actor: Actor) -> windows.Batch:
        """What the next run would read, and whether it is time for it. Raises NotFound."""
        conversation = self.conversation(session_id, actor=actor)
        return self._batch(conversation, self.messages(session_id, actor=actor))

    def extract(
        self,
        session_id: str,
        *,
        actor: Actor,
        extractor: Extractor | None = None,
        now: bool = False,
        again: bool = False,
        dry_run: bool = False,
    ) -> Run | None:
        """Extract from a stored conversation and store what the gate lets in; None when it is not
        time yet, nothing is new, or another run is at it. `now` does not wait for the interval,
        `again` reads everything once more, `dry_run` stores no memory and moves nothing on.
        `extractor` replaces the library's. An endpoint that fails gives a failed run, not an
        error. Raises NotFound, LibraryDisabled, PermissionDenied, DatabaseError."""
        conversation = self.conversation(session_id, actor=actor)
        subject = self._subject(conversation)
        settings = self._libraries.settings(subject.library_id).settings
        if self._off(conversation) and not (now or again or dry_run):
            return None
        messages = self.messages(session_id, actor=actor)
        if again:
            conversation = replace(conversation, extracted_upto=0)
        batch = self._batch(conversation, messages)
        if not batch.new or not (now or again or dry_run or batch.due):
            return None
        upto = len(messages)
        extractor = extractor or self._minds.extractor(settings)
        if dry_run:
            run_id = str(uuid.uuid4())
        else:
            claimed = self._claim(subject, extractor, upto, settings.gate.max_extractions)
            if claimed is None:
                return None
            if isinstance(claimed, Run):
                return claimed
            run_id = claimed
        run = self._run(
            run_id, subject, batch.new, batch.context, extractor, settings, actor,
            dry_run=dry_run, upto=upto,
        )  # fmt: skip
        if not dry_run and not run.failed:
            with self._runtime.engine.begin() as connection:
                connection.execute(
                    update(ConversationRow)
                    .where(ConversationRow.id == session_id)
                    .values(extracted_upto=func.greatest(ConversationRow.extracted_upto, upto))
                )
        return run

    def extract_from(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        subject: Subject,
        actor: Actor,
        extractor: Extractor | None = None,
        dry_run: bool = True,
    ) -> Run:
        """Extract from a conversation that is not stored, such as a pasted one; dicts are read as
        OpenAI writes messages. Raises as `extract`."""
        settings = self._libraries.settings(subject.library_id).settings
        # Ids of a pasted text mean nothing elsewhere: what was said names the message.
        named = tuple(replace(m, id=_name_of(m, n)) for n, m in enumerate(read_messages(messages)))
        return self._run(
            str(uuid.uuid4()), subject, named, (), extractor or self._minds.extractor(settings),
            settings, actor, dry_run=dry_run, upto=0,
        )  # fmt: skip

    def repeat(self, run_id: str, *, actor: Actor, extractor: Extractor | None = None) -> Run:
        """The same turns read again, by another model or prompt; a dry run of its own in the log.
        Raises NotFound."""
        first = self.run(run_id, actor=actor)
        subject = _subject_of(first)
        settings = self._libraries.settings(subject.library_id).settings
        return self._run(
            str(uuid.uuid4()), subject, first.messages, first.context,
            extractor or self._minds.extractor(settings), settings, actor,
            dry_run=True, upto=first.upto, repeats=first.id,
        )  # fmt: skip

    def accept(self, run_id: str, numbers: Sequence[int], *, actor: Actor) -> Run:
        """Store the proposals a person ticked, by their numbers. What held them for a person no
        longer does; secrets, length and duplicates still count. Raises NotFound."""
        run = self.run(run_id, actor=actor)
        subject = _subject_of(run)
        items = [
            self._stored(j, subject, actor, run.id, approved=True)
            if j.number in numbers and _acceptable(j)
            else j
            for j in run.items
        ]
        return self._logged(replace(run, items=tuple(items), counts=_recount(run, items)))

    # ---- parts

    def _batch(self, conversation: Conversation, messages: Sequence[Message]) -> windows.Batch:
        read = messages[: conversation.extracted_upto]
        interval = self._interval(conversation)
        failed = self._failures(conversation.id, conversation.extracted_upto)
        return windows.batch(
            messages, read[-1].id if read else None, interval * (1 + failed), context=CONTEXT
        )

    def _interval(self, conversation: Conversation) -> int:
        if conversation.library_id is None:
            return windows.DEFAULT_SIZE
        return self._libraries.settings(conversation.library_id).settings.extraction_interval

    def _off(self, conversation: Conversation) -> bool:
        """Is extraction switched off for the agent?"""
        if conversation.agent_id is None:
            return False
        agent = self._libraries.agent(conversation.agent_id)
        return not (agent.memory_enabled and agent.extraction_enabled)

    def _claim(
        self, subject: Subject, extractor: Extractor, upto: int, limit: int
    ) -> str | Run | None:
        """A place in the session's rate: the run's id. A Run that says the rate is used up; None
        where another run is reading these turns."""
        row = ExtractionRunRow
        with self._runtime.engine.begin() as connection:
            rate.advisory_lock(connection, "rate", subject.library_id, subject.session_id or "")
            mine = (
                row.library_id == subject.library_id,
                row.conversation_id == subject.session_id,
            )
            if connection.scalar(
                select(row.id).where(
                    *mine, row.outcome == "running", row.at > func.now() - _STALE
                ).limit(1)
            ):  # fmt: skip
                return None
            values = _identity(subject, extractor) | {
                "outcome": "running",
                "input": {"upto": upto},
            }
            claim = rate.claim(connection, subject, limit, values)
            if claim.run_id is not None:
                return claim.run_id
        now = claim.rate
        detail = f"{now.used} of {now.limit} runs of this session were used in the last 24 hours."
        if now.next_slot:
            detail += f" The next one may start at {now.next_slot:%Y-%m-%d %H:%M} UTC."
        return self._logged(
            _empty(str(uuid.uuid4()), subject, extractor.name, "rate_limited", detail, upto)
        )

    def _run(
        self,
        run_id: str,
        subject: Subject,
        new: Sequence[Message],
        context: Sequence[Message],
        extractor: Extractor,
        settings: LibrarySettings,
        actor: Actor,
        *,
        dry_run: bool,
        upto: int,
        repeats: str | None = None,
    ) -> Run:
        started = time.perf_counter()
        base = _empty(run_id, subject, extractor.name, "failed", "", upto)
        base = replace(
            base, dry_run=dry_run, repeats=repeats,
            messages=tuple(map(_masked, new)), context=tuple(map(_masked, context)),
        )  # fmt: skip
        try:
            known = self._known(subject, new, actor) if extractor.name != "rules" else ()
            extraction = extractor.extract(
                new, context=context, known=known, limit=settings.max_memories_per_extraction
            )
        except MemcoreError as error:
            spent = (time.perf_counter() - started) * 1e3
            return self._logged(replace(base, detail=str(error), ms=spent))
        except BaseException:
            self._logged(replace(base, detail="The run was broken off."))
            raise
        items = self._judged(extraction, subject, actor, run_id, dry_run=dry_run)
        counts = counts_of(extraction, items)
        run = replace(
            base,
            outcome=str(extraction.outcome),
            detail=extraction.detail,
            items=tuple(items),
            skipped=tuple(
                replace(s, detail=_mask(s.detail), item=_mask(s.item)) for s in extraction.skipped
            ),
            counts=counts,
            ms=(time.perf_counter() - started) * 1e3,
            tokens=extraction.tokens,
            mode=extraction.mode,
            read_by=extraction.read_by,
            counted=not dry_run and bool(counts["added"] + counts["updated"]),
            raw_reply=_mask_reply(extraction.raw, new),
            missed=extraction.missed,
        )
        return self._logged(run)

    def _judged(
        self, extraction: Extraction, subject: Subject, actor: Actor, run_id: str, *, dry_run: bool
    ) -> list[Judged]:
        proposals = [*extraction.proposals, *extraction.held]
        items = []
        for number, proposal in enumerate(proposals):
            item = Judged(number, _placed(proposal, subject), "held" if proposal.flags else "")
            if not item.status and self._yielded(subject, item.proposal):
                note = "This message yielded the same statement before."
                item = replace(item, status="repeat", note=note)
            elif dry_run or item.status:
                item = self._previewed(item, subject, actor)
            else:
                item = self._stored(item, subject, actor, run_id, approved=False)
            items.append(replace(item, proposal=_without_secrets(item.proposal)))
        return items

    def _previewed(self, item: Judged, subject: Subject, actor: Actor) -> Judged:
        """What the gate would say; a held item stays held."""
        if item.proposal.action is Action.DELETE:
            return item
        try:
            _, verdict = self._memories.validate_memory(
                item.proposal.draft, subject=subject, actor=actor
            )
        except MemcoreError as error:
            return replace(item, status=item.status or "refused", note=str(error))
        status = "proposed" if verdict.accepted else _kept_out(verdict)
        return replace(item, status=item.status or status, verdict=verdict)

    def _stored(
        self, item: Judged, subject: Subject, actor: Actor, run_id: str, *, approved: bool
    ) -> Judged:
        """Put one item through the gate; trouble with it is its own."""
        proposal = item.proposal
        try:
            if proposal.action is Action.DELETE:
                self._libraries.opened(subject)
                self._memories.delete([proposal.target_id or ""], actor=actor)
                return replace(item, status="deleted", memory_id=proposal.target_id)
            added = self._memories.add(
                proposal.draft, subject=subject, actor=actor, run_id=run_id,
                approved=approved, updates=proposal.target_id,
            )  # fmt: skip
        except MemcoreError as error:
            return replace(item, status="refused", note=str(error))
        if added.memory is None:
            status = _kept_out(added.verdict)
        else:
            status = "updated" if added.verdict.outcome in ("update", "conflict") else "added"
        return replace(
            item, status=status, verdict=added.verdict, note="", decision_id=added.decision_id,
            memory_id=added.memory.id if added.memory else None,
        )  # fmt: skip

    def _known(self, subject: Subject, new: Sequence[Message], actor: Actor) -> tuple[Known, ...]:
        """Memories of the scope nearest to what people said, for the model to see."""
        said = "\n".join(m.content for m in new if m.role == "user")
        found = self._memories.recall(said, subject=subject, actor=actor, k=MOST_KNOWN)
        return tuple(Known(h.memory.id, h.memory.content) for h in found.hits)

    def _yielded(self, subject: Subject, proposal: Proposal) -> bool:
        """Did this message yield this statement before, whatever became of it since?"""
        draft = proposal.draft
        if draft.source_message_id is None:
            return False
        digest = content_hash(draft.content)
        kept = select(MemoryRow.id).where(
            MemoryRow.library_id == subject.library_id,
            MemoryRow.source_message_id == draft.source_message_id,
            MemoryRow.content_hash == digest,
        )
        judged = select(DecisionRow.id).where(
            DecisionRow.library_id == subject.library_id,
            DecisionRow.user_id == subject.user_id,
            DecisionRow.accepted,
            DecisionRow.draft["source_message_id"].astext == draft.source_message_id,
            DecisionRow.draft["content"].astext == clean(draft.content),
        )
        with self._runtime.engine.connect() as connection:
            return any(connection.scalar(q.limit(1)) is not None for q in (kept, judged))

    def _subject(self, conversation: Conversation) -> Subject:
        if conversation.library_id is None:
            raise MemcoreError(
                "This conversation belongs to no library.", hint="Its library was deleted."
            )
        return Subject(
            conversation.library_id, conversation.user_id, conversation.project_id,
            conversation.id, conversation.agent_id,
        )  # fmt: skip


def _kept_out(verdict: Verdict) -> str:
    """The status of what the gate did not let in."""
    return "held" if verdict.outcome in ("review", "unchecked") else "rejected"


def _acceptable(item: Judged) -> bool:
    """May a person store it? Not what is stored, and not a secret: the log holds it masked."""
    secret = item.status == "rejected" and item.verdict and item.verdict.blocked_by == "sensitive"
    return item.status in ("proposed", "held", "rejected", "refused") and not secret


def _subject_of(run: Run) -> Subject:
    return Subject(run.library_id, run.user_id, run.project_id, run.session_id, run.agent_id)


def _identity(subject: Subject, extractor: Extractor) -> dict[str, Any]:
    return {
        "library_id": subject.library_id, "agent_id": subject.agent_id,
        "user_id": subject.user_id, "project_id": subject.project_id,
        "conversation_id": subject.session_id, "extractor": extractor.name,
    }  # fmt: skip


def _empty(
    run_id: str, subject: Subject, extractor: str, outcome: str, detail: str, upto: int
) -> Run:
    return Run(
        run_id, datetime.now(UTC), subject.library_id, subject.user_id, subject.agent_id,
        subject.project_id, subject.session_id, extractor, outcome, detail, (), (), {}, 0.0, 0,
        "", "", False, False, (), (), "", upto=upto,
    )  # fmt: skip


def _placed(proposal: Proposal, subject: Subject) -> Proposal:
    """`proposal` in a scope the subject has; the user's own where it has no other."""
    scope = proposal.draft.scope
    has = {Scope.PROJECT: subject.project_id, Scope.SESSION: subject.session_id}
    if scope is Scope.USER or has[scope]:
        return proposal
    note = f"no {scope} here: kept with the user"
    return replace(
        proposal, draft=replace(proposal.draft, scope=Scope.USER), notes=(*proposal.notes, note)
    )


def _name_of(message: Message, place: int) -> str:
    return f"text:{content_hash(f'{place}/{message.role}/{message.content}')[:32]}"


def _mask(said: str) -> str:
    return sensitive.mask(said, sensitive.find(said))


def _mask_reply(raw: str, messages: Sequence[Message]) -> str:
    """`raw` without its secrets and those people said: a bare tag does not look like one."""
    texts = (raw, *(m.content for m in messages))
    secrets = {said[f.start : f.end] for said in texts for f in sensitive.find(said)}
    masked = _mask(raw)
    for secret in sorted(secrets, key=len, reverse=True):
        masked = masked.replace(secret, "••••••••")
    return masked


def _masked(message: Message) -> Message:
    return replace(message, content=_mask(message.content))


def _without_secrets(proposal: Proposal) -> Proposal:
    draft, evidence = proposal.draft, proposal.evidence
    content = _mask(draft.content)
    tags = tuple(_mask(t) for t in sensitive.outside(draft.tags, draft.content, content))
    return replace(
        proposal,
        draft=replace(draft, content=content, title=_mask(draft.title), tags=tags),
        evidence=replace(evidence, quote=_mask(evidence.quote)) if evidence else None,
    )


def _recount(run: Run, items: Sequence[Judged]) -> Mapping[str, int]:
    return {
        **run.counts,
        **{s: sum(j.status == s for j in items)
           for s in ("added", "updated", "deleted", "rejected", "repeat", "refused")},
    }  # fmt: skip
