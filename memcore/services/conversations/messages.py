"""Conversations and their messages: kept in order, read back as a window and a running summary."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, select, true, update
from sqlalchemy.dialects.postgresql import insert

from memcore.database import queries
from memcore.database.tables import ConversationRow, MessageRow
from memcore.errors import ConfigError, EndpointError, InvalidInput, NotFound
from memcore.extraction.conversation import read_messages, split_injected
from memcore.models import Actor, Conversation, Message, Subject, ToolCall
from memcore.rules import summary as extractive
from memcore.rules import window as windows
from memcore.rules.tokens import estimate_tokens
from memcore.services.conversations.minds import Minds
from memcore.services.libraries import LibraryService
from memcore.services.runtime import Runtime
from memcore.text import clean, shorten

SUMMARY_BUDGET = extractive.DEFAULT_BUDGET
_COLUMNS = tuple(ConversationRow.__table__.columns)
_FOREIGN = uuid.UUID("6f1c1d0e-4a54-4b7b-9a7e-6d1f3a2b9c10")
"""Ids of other systems' messages become ours in this namespace, the same one each time."""


@dataclass(frozen=True, slots=True)
class ShortTerm:
    """What an agent still has before its eyes."""

    window: windows.Window
    summary: str
    """Of what left the window; empty while nothing has."""
    summary_tokens: int
    summarised: int
    """Messages the summary covers."""
    size: int
    """Most messages in the window."""

    @property
    def tokens(self) -> int:
        return self.window.tokens + self.summary_tokens


class Messages:
    """Part of ConversationService: what was said."""

    _runtime: Runtime
    _libraries: LibraryService
    _minds: Minds

    def start(self, subject: Subject, *, title: str = "") -> Conversation:
        """The conversation of the subject's session, begun if it is new. Raises InvalidInput
        without a session id, NotFound where it belongs to another user."""
        if not subject.session_id:
            raise InvalidInput("A conversation needs a session id, and none was given.")
        with self._runtime.engine.begin() as connection:
            queries.introduce(connection, subject.user_id, subject.project_id)
            connection.execute(
                insert(ConversationRow)
                .values(
                    id=subject.session_id,
                    library_id=subject.library_id,
                    agent_id=subject.agent_id,
                    user_id=subject.user_id,
                    project_id=subject.project_id,
                    title=shorten(clean(title), 120),
                )
                .on_conflict_do_nothing()
            )
        return self.conversation(subject.session_id, actor=Actor(subject.user_id))

    def conversation(self, session_id: str, *, actor: Actor) -> Conversation:
        """One conversation. Raises NotFound, also for somebody else's."""
        with self._runtime.engine.connect() as connection:
            row = connection.execute(
                select(*_COLUMNS).where(ConversationRow.id == session_id, _mine(actor))
            ).first()
        if row is None:
            raise NotFound("There is no such conversation, or none you may see.")
        return Conversation(**row._mapping)

    def conversations(
        self,
        *,
        actor: Actor,
        library_id: str | None = None,
        agent_id: str | None = None,
        user_id: str | None = None,
        limit: int = 50,
    ) -> list[Conversation]:
        """Conversations the actor may see, the latest first."""
        query = (
            select(*_COLUMNS)
            .where(_mine(actor))
            .order_by(ConversationRow.updated_at.desc(), ConversationRow.id)
            .limit(limit)
        )
        for column, wanted in (
            (ConversationRow.library_id, library_id),
            (ConversationRow.agent_id, agent_id),
            (ConversationRow.user_id, user_id),
        ):
            if wanted is not None:
                query = query.where(column == wanted)
        with self._runtime.engine.connect() as connection:
            return [Conversation(**row._mapping) for row in connection.execute(query)]

    def append(
        self, session_id: str, messages: Iterable[Message | Mapping[str, Any]], *, actor: Actor
    ) -> tuple[Message, ...]:
        """Add messages at the end, in order; OpenAI's form is understood. One whose id is there
        already changes nothing. Returns them as stored. Raises NotFound."""
        given = [m if isinstance(m, Message) else _read(m) for m in messages]
        with self._runtime.engine.begin() as connection:
            self._locked(connection, session_id, actor)
            place = connection.scalar(
                select(func.coalesce(func.max(MessageRow.seq), 0)).where(
                    MessageRow.conversation_id == session_id
                )
            )
            assert place is not None
            ids = []
            for message in given:
                ids.append(_own_id(session_id, message.id))
                added = connection.execute(
                    insert(MessageRow)
                    .values(_row(session_id, ids[-1], place + 1, message))
                    .on_conflict_do_nothing()
                    .returning(MessageRow.seq)
                ).first()
                place += added is not None
            connection.execute(
                update(ConversationRow)
                .where(ConversationRow.id == session_id)
                .values(updated_at=func.now())
            )
            stored = _read_back(connection, session_id)
        by_id = {m.id: m for m in stored}
        return tuple(by_id[i] for i in ids if i in by_id)

    def messages(self, session_id: str, *, actor: Actor) -> tuple[Message, ...]:
        """All messages, oldest first. Raises NotFound."""
        self.conversation(session_id, actor=actor)
        with self._runtime.engine.connect() as connection:
            return _read_back(connection, session_id)

    def short_term(self, session_id: str, *, actor: Actor) -> ShortTerm:
        """Window and running summary. What left the window since the last call is summarised now,
        once: calling again changes nothing. Raises NotFound."""
        conversation = self.conversation(session_id, actor=actor)
        messages = self.messages(session_id, actor=actor)
        size = windows.DEFAULT_SIZE
        if conversation.agent_id:
            size = self._libraries.agent(conversation.agent_id).short_term_memory_size
        view = windows.window(messages, size)
        text, upto = self._summarised(conversation, messages, view)
        return ShortTerm(view, text, estimate_tokens(text), upto, max(size, 1))

    def delete_conversation(self, session_id: str, *, actor: Actor) -> None:
        """Remove a conversation with its messages; memories stay. Raises NotFound."""
        self.conversation(session_id, actor=actor)
        with self._runtime.engine.begin() as connection:
            connection.execute(delete(ConversationRow).where(ConversationRow.id == session_id))

    # ---- parts

    def _summarised(
        self, conversation: Conversation, messages: Sequence[Message], view: windows.Window
    ) -> tuple[str, int]:
        """The running summary and the place up to which it reaches."""
        places = {m.id: n for n, m in enumerate(messages, 1)}
        pending = [m for m in view.left if places[m.id] > conversation.summary_upto]
        if not pending:
            return conversation.summary, conversation.summary_upto
        text = self._summarise(conversation, pending)
        upto = max(places[m.id] for m in pending)
        with self._runtime.engine.begin() as connection:
            changed = connection.execute(
                update(ConversationRow)
                .where(
                    ConversationRow.id == conversation.id,
                    # Another process may have taken the same messages up meanwhile.
                    ConversationRow.summary_upto == conversation.summary_upto,
                )
                .values(summary=text, summary_upto=upto)
                .returning(ConversationRow.id)
            ).first()
            if changed is None:
                row = connection.execute(
                    select(ConversationRow.summary, ConversationRow.summary_upto).where(
                        ConversationRow.id == conversation.id
                    )
                ).one()
                return row.summary, row.summary_upto
        return text, upto

    def _summarise(self, conversation: Conversation, pending: Sequence[Message]) -> str:
        """By the library's model where it has one and that one answers, else offline."""
        if conversation.library_id is not None:
            try:
                settings = self._libraries.settings(conversation.library_id).settings
                if summariser := self._minds.summariser(settings):
                    return summariser.extend(conversation.summary, pending, SUMMARY_BUDGET)
            except (ConfigError, EndpointError, NotFound):
                pass
        return extractive.extend(conversation.summary, pending, SUMMARY_BUDGET)

    def _locked(self, connection: Connection, session_id: str, actor: Actor) -> None:
        """Let one writer at a time into a conversation. Raises NotFound."""
        found = connection.execute(
            select(ConversationRow.id)
            .where(ConversationRow.id == session_id, _mine(actor))
            .with_for_update()
        ).first()
        if found is None:
            raise NotFound("There is no such conversation, or none you may see.")


def _mine(actor: Actor) -> Any:
    """A conversation is its user's alone."""
    return true() if actor.operator else ConversationRow.user_id == actor.user_id


def _read(value: Mapping[str, Any]) -> Message:
    read = read_messages([value], prefix="")
    if not read:
        raise InvalidInput(
            "A message needs a role and content.", hint='Such as {"role": "user", "content": "…"}.'
        )
    # An id made from the place would name another message each time.
    own = str(value.get("id") or value.get("message_id") or "")
    return Message(**{**_fields(read[0]), "id": own})


def _fields(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__slots__}


def _own_id(session_id: str, given: str) -> str:
    if not given:
        return str(uuid.uuid4())
    return given if queries.is_uuid(given) else str(uuid.uuid5(_FOREIGN, f"{session_id}/{given}"))


def _row(session_id: str, message_id: str, seq: int, message: Message) -> dict[str, Any]:
    said, put_in = split_injected(message.content)
    values: dict[str, Any] = {
        "id": message_id,
        "conversation_id": session_id,
        "seq": seq,
        "role": message.role,
        "content": clean(message.content),
        "name": clean(message.name) or None,
        "tool_calls": [asdict(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        "tokens": windows.message_tokens(message),
        "injected": message.role == "system" or bool(put_in and not said),
    }
    if message.created_at is not None:
        values["created_at"] = message.created_at
    return values


def _read_back(connection: Connection, session_id: str) -> tuple[Message, ...]:
    rows = connection.execute(
        select(
            MessageRow.id,
            MessageRow.role,
            MessageRow.content,
            MessageRow.created_at,
            MessageRow.name,
            MessageRow.tool_calls,
            MessageRow.tool_call_id,
        )
        .where(MessageRow.conversation_id == session_id)
        .order_by(MessageRow.seq)
    )
    return tuple(
        Message(
            row.id,
            row.role,
            row.content,
            row.created_at,
            row.name or "",
            tuple(ToolCall(**call) for call in row.tool_calls),
            row.tool_call_id,
        )
        for row in rows
    )
