"""Status changes, edits and deletes. Every act is checked memory by memory, done in bulk, recorded
in history with the images undo needs, and grouped under a batch id; partial failures are reported,
not hidden.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.exc import IntegrityError

from memcore.database import queries
from memcore.database.tables import EmbeddingRow, MemoryRow
from memcore.errors import (
    Conflict,
    IllegalTransition,
    InvalidInput,
    MemcoreError,
    NotFound,
    PermissionDenied,
)
from memcore.models import TRANSITIONS, Action, Actor, Memory, MemoryType, Status, Visibility
from memcore.plain import plain
from memcore.rules import permissions
from memcore.services.libraries import LibraryService
from memcore.services.memories.adding import put_vector
from memcore.services.memories.images import Changed, by_ids, image, record
from memcore.services.memories.screening import without_secrets
from memcore.services.memories.undoing import kept_vectors
from memcore.services.runtime import Runtime
from memcore.text import clean, clean_tree, content_hash

_GONE = "There is no such memory, or none you may see."
_SAME_TEXT = "An active memory with the same text exists in this scope already."

_Applied = Mapping[str, dict[str, Any] | MemcoreError]
"""Memory id → the fields that changed, or why it could not be done."""


class Changing:
    """Part of MemoryService: what happens to a memory after it is stored."""

    _runtime: Runtime
    _libraries: LibraryService

    def change_status(
        self, ids: str | Sequence[str], status: Status | str, *, actor: Actor
    ) -> Changed:
        """Move memories to `status` as models.TRANSITIONS allows; the rest is refused with its
        reason. A single refused id raises instead: NotFound, PermissionDenied, IllegalTransition,
        Conflict."""
        wanted = Status(status)
        values: dict[str, Any] = {
            "status": wanted,
            "superseded_by": None,
            "version": MemoryRow.version + 1,
            "updated_at": func.now(),
        }

        def check(memory: Memory) -> None:
            if wanted not in TRANSITIONS[memory.status]:
                raise IllegalTransition(
                    f"A memory that is {memory.status} cannot become {wanted}.",
                    hint=f"It can become: {', '.join(sorted(TRANSITIONS[memory.status]))}.",
                )

        def apply(connection: Connection, memories: Sequence[Memory]) -> _Applied:
            after: dict[str, dict[str, Any] | MemcoreError] = {
                m.id: {"status": wanted, "superseded_by": None} for m in memories
            }
            change = update(MemoryRow).values(**values)
            if wanted is not Status.ACTIVE:
                connection.execute(change.where(MemoryRow.id.in_(list(after))))
                return after
            # Only a memory that becomes active can meet another one of the same text.
            for memory in memories:
                try:
                    with connection.begin_nested():
                        connection.execute(change.where(MemoryRow.id == memory.id))
                except IntegrityError:
                    after[memory.id] = Conflict(_SAME_TEXT, hint="Archive that one first.")
            return after

        return self._act(ids, Action.CHANGE_STATUS, "status", actor, check, apply)

    def edit(
        self, memory_id: str, *, actor: Actor, version: int | None = None, **changes: Any
    ) -> Memory:
        """Change fields of one memory: content, title, tags, memory_type, category, confidence,
        visibility, shared, expires_at, attributes (merged). A new content is judged for length and
        secrets like any other and embedded again before anything is saved. `version` is the one
        the editor saw. Raises Conflict, InvalidInput, NotFound, PermissionDenied, EndpointError.
        """
        unknown = set(changes) - _EDITABLE
        if unknown:
            raise InvalidInput(
                f"{', '.join(sorted(unknown))} cannot be edited.",
                hint=f"These can: {', '.join(sorted(_EDITABLE))}.",
            )
        action = Action.CHANGE_VISIBILITY if set(changes) == {"visibility"} else Action.EDIT
        memory = self._mine(memory_id, action, actor)
        values = _parsed(memory, changes)
        without_secrets(values)
        library = self._libraries.get(memory.library_id)
        vector = None
        if values.get("content", memory.content) != memory.content:
            settings = self._runtime.settings_of(library).settings.gate
            if not settings.min_length <= len(values["content"]) <= settings.max_length:
                raise InvalidInput(
                    f"The text has {len(values['content'])} characters, but takes "
                    f"{settings.min_length} to {settings.max_length}."
                )
            values["content_hash"] = content_hash(values["content"])
            vector = self._runtime.embedder_for(library).embed_documents([values["content"]])[0]
        columns = dict(values)
        if "content" in values or "title" in values:
            now = {"title": memory.title, "content": memory.content} | values
            columns |= queries.keywords(now["title"], now["content"])

        def check(current: Memory) -> None:
            if version is not None and current.version != version:
                raise Conflict(
                    "It was changed by someone else since you opened it.",
                    hint="Load it again; your text is still in the form.",
                )

        def apply(connection: Connection, memories: Sequence[Memory]) -> _Applied:
            (current,) = memories
            try:
                with connection.begin_nested():
                    connection.execute(
                        update(MemoryRow)
                        .where(MemoryRow.id == current.id)
                        .values(version=MemoryRow.version + 1, updated_at=func.now(), **columns)
                    )
            except IntegrityError:
                return {current.id: Conflict(_SAME_TEXT)}
            if vector is not None:
                connection.execute(delete(EmbeddingRow).where(EmbeddingRow.memory_id == current.id))
                renewed = replace(current, content_hash=values["content_hash"])
                put_vector(connection, library, renewed, vector)
            return {current.id: values}

        self._act(memory.id, action, "edit", actor, check, apply, vectors=vector is not None)
        return self._mine(memory.id, Action.READ, actor)

    def delete(self, ids: str | Sequence[str], *, actor: Actor) -> Changed:
        """Remove memories, their vectors and links; `undo` brings them back until purged. Refusals
        as in change_status."""

        def apply(connection: Connection, memories: Sequence[Memory]) -> _Applied:
            gone = [m.id for m in memories]
            after: dict[str, dict[str, Any] | MemcoreError] = {i: {} for i in gone}
            replaced = connection.execute(
                select(MemoryRow.superseded_by, func.array_agg(MemoryRow.id))
                .where(MemoryRow.superseded_by.in_(gone))
                .group_by(MemoryRow.superseded_by)
            )
            for successor, those in replaced:
                after[str(successor)] = {"had_replaced": [str(i) for i in those]}
            connection.execute(delete(MemoryRow).where(MemoryRow.id.in_(gone)))
            return after

        return self._act(ids, Action.DELETE, "delete", actor, lambda _: None, apply, vectors=True)

    # ---- parts

    def _mine(self, memory_id: str, action: Action, actor: Actor) -> Memory:
        """The memory, if the actor may do that to it."""
        with self._runtime.engine.connect() as connection:
            found = by_ids(connection, [memory_id])
            asking = replace(actor, roles=queries.roles_of(connection, actor.user_id))
        if not found:
            raise NotFound(_GONE)
        _must(asking, action, found[0])
        return found[0]

    def _act(
        self,
        ids: str | Sequence[str],
        action: Action,
        verb: str,
        actor: Actor,
        check: Callable[[Memory], None],
        apply: Callable[[Connection, Sequence[Memory]], _Applied],
        *,
        vectors: bool = False,
    ) -> Changed:
        """Check each memory, apply the act to those that pass, record it. `vectors`: keep theirs
        in history, because the act loses them."""
        wanted = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        batch = str(uuid.uuid4())
        refused: dict[str, str] = {}

        def refuse(memory_id: str, error: MemcoreError) -> None:
            if isinstance(ids, str):
                raise error
            refused[memory_id] = str(error)

        with self._runtime.engine.begin() as connection:
            asking = replace(actor, roles=queries.roles_of(connection, actor.user_id))
            found = {m.id: m for m in by_ids(connection, wanted, lock=True)}
            passing: list[Memory] = []
            for memory_id in wanted:
                try:
                    memory = found.get(memory_id)
                    if memory is None:
                        raise NotFound(_GONE)
                    _must(asking, action, memory)
                    check(memory)
                except (NotFound, PermissionDenied, IllegalTransition, Conflict) as error:
                    refuse(memory_id, error)
                    continue
                passing.append(memory)
            kept = kept_vectors(connection, passing) if vectors and passing else {}
            applied = apply(connection, passing) if passing else {}
            lines = []
            for memory in passing:
                after = applied[memory.id]
                if isinstance(after, MemcoreError):
                    refuse(memory.id, after)
                    continue
                before = image(memory)
                if memory.id in kept:
                    before["vector"] = kept[memory.id]
                lines.append((memory.id, memory.library_id, before, plain(after)))
            record(connection, lines, actor=actor, action=verb, batch=batch)
        return Changed(batch, tuple(line[0] for line in lines), refused)


def _must(actor: Actor, action: Action, memory: Memory) -> None:
    """Raise NotFound for what the actor may not see, PermissionDenied for what they may not do."""
    if not permissions.decide(actor, Action.READ, memory).allowed:
        raise NotFound(_GONE)
    decision = permissions.decide(actor, action, memory)
    if not decision.allowed:
        raise PermissionDenied(decision.reason)


_EDITABLE = {
    "content", "title", "tags", "memory_type", "category", "confidence", "visibility", "shared",
    "expires_at", "attributes",
}  # fmt: skip


def _parsed(memory: Memory, changes: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = dict(changes)
    for name in ("content", "title", "category"):
        if name in values:
            values[name] = clean(values[name])
    if "tags" in values:
        values["tags"] = list(dict.fromkeys(t for t in map(clean, values["tags"]) if t))
    if "memory_type" in values:
        values["memory_type"] = MemoryType(values["memory_type"])
    if "visibility" in values:
        values["visibility"] = Visibility(values["visibility"])
    if "confidence" in values and not 0 <= float(values["confidence"]) <= 1:
        raise InvalidInput(f"Confidence is {values['confidence']}, outside its range from 0 to 1.")
    if "attributes" in values:
        values["attributes"] = merged(memory.attributes, clean_tree(values["attributes"]))
    return values


def merged(base: Any, patch: Any) -> Any:
    """`patch` laid over `base`, mapping by mapping; what the patch does not name stays."""
    if isinstance(base, Mapping) and isinstance(patch, Mapping):
        return {**base, **{k: merged(base.get(k), v) for k, v in patch.items()}}
    return patch
