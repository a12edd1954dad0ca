"""One turn of a conversation, from a person's message to what is remembered of it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from memcore.errors import MemcoreError
from memcore.extraction.runs import Run
from memcore.models import Actor, Message, Subject
from memcore.services.conversations.context import Context, ContextBuilding
from memcore.services.conversations.extracting import Extracting
from memcore.services.conversations.replies import Replier
from memcore.services.conversations.working import Working, WorkingMemory


@dataclass(frozen=True, slots=True)
class Turn:
    """What happened in one turn."""

    said: Message
    reply: Message
    context: Context
    """What the agent was given."""
    working: Working
    """What it held in mind; not stored."""
    run: Run | None
    """The extraction this turn set off; None: it was not time."""
    trouble: str
    """Why nothing was extracted though it was time; empty: no trouble."""
    turns_left: int
    """User messages until the next extraction."""
    ms: float


class Turning(ContextBuilding, Extracting):
    """Part of ConversationService: talking."""

    def replier(self, library_id: str) -> Replier:
        """Who answers for the library: its model, or the script. Raises ConfigError, NotFound."""
        return self._minds.replier(self._libraries.settings(library_id).settings)

    def turn(
        self,
        text: str,
        *,
        subject: Subject,
        replier: Replier,
        actor: Actor | None = None,
        system: str = "",
    ) -> Turn:
        """Answer `text` in the subject's session with what is remembered, keep both messages, and
        extract when it is time. Trouble with extraction costs no answer. Raises InvalidInput,
        NotFound, EndpointError (no reply; nothing is kept), DatabaseError."""
        started = time.perf_counter()
        actor = actor or Actor(subject.user_id)
        conversation = self.start(subject, title=text)
        with WorkingMemory() as mind:
            mind.todo("Recall", "Answer", "Remember")
            with mind.tool("memory_search", text) as found:
                context = self.build_context(text, subject=subject, actor=actor, system=system)
                found.append(context.notice or f"{len(context.block.included)} lines injected")
            mind.done("Recall")
            answer = replier.reply(context, mind)
            mind.done("Answer")
            said, reply = self.append(
                conversation.id,
                [Message("", "user", text), Message("", "assistant", answer)],
                actor=actor,
            )
            run, trouble = None, ""
            try:
                with mind.tool("extract", "when it is time") as result:
                    run = self.extract(conversation.id, actor=actor)
                    result.append(run.detail if run else "not yet")
            except MemcoreError as error:
                trouble = str(error)
            mind.done("Remember")
            working = mind.snapshot()
        left = self._turns_left(conversation.id, actor)
        spent = (time.perf_counter() - started) * 1e3
        return Turn(said, reply, context, working, run, trouble, left, spent)

    def _turns_left(self, session_id: str, actor: Actor) -> int:
        conversation = self.conversation(session_id, actor=actor)
        return max(0, self._interval(conversation) - self.due(session_id, actor=actor).turns)
