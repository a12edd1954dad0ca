"""Status changes, edits, deletes, and undoing them. Every act is checked, recorded in history with
the images undo needs, and grouped under a batch id; partial failures are reported, not hidden.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from memcore.database import queries
from memcore.database.tables import EmbeddingRow, HistoryRow, MemoryRow
from memcore.errors import (
    Conflict,
    IllegalTransition,
    InvalidInput,
    NotFound,
    PermissionDenied,
)
from memcore.models import (
    TRANSITIONS,
    Action,
    Actor,
    Memory,
    MemoryType,
    Scope,
    Status,
    Visibility,
)
from memcore.rules import permissions, sensitive
from memcore.services.libraries import LibraryService
from memcore.services.memories.adding import put_vector
from memcore.services.runtime import Runtime
from memcore.text import clean, clean_tree, content_hash


@dataclass(frozen=True, slots=True)
class Changed:
    """What one act did. `undo(batch_id)` takes it back."""

    batch_id: str
    done: tuple[str, ...]
    refused: Mapping[str, str]
    """Memory id → why not."""


class Changing:
    """Part of MemoryService: what happens to a memory after it is stored."""

    _runtime: Runtime
    _libraries: LibraryService

    def change_status(
        self, ids: str | Sequence[str], status: Status | str, *, actor: Actor
    ) -> Changed:
        """Move memories to `status` as models.TRANSITIONS allows; the rest is refused with its
        reason. A single refused id raises instead: NotFound, PermissionDenied,
        IllegalTransition."""
        wanted = Status(status)

        def act(connection: Connection, memory: Memory) -> dict[str, Any]:
            if wanted not in TRANSITIONS[memory.status]:
                allowed = ", ".join(sorted(TRANSITIONS[memory.status])) or "nothing"
                raise IllegalTransition(
                    f"A memory that is {memory.status} cannot become {wanted}.",
                    hint=f"It can become: {allowed}.",
                )
            try:
                with connection.begin_nested():
                    connection.execute(
                        update(MemoryRow)
                        .where(MemoryRow.id == memory.id)
                        .values(
                            status=wanted,
                            superseded_by=None,
                            version=MemoryRow.version + 1,
                            updated_at=func.now(),
                        )
                    )
            except IntegrityError:
                raise Conflict(
                    "An active memory with the same text exists in this scope already.",
                    hint="Archive that one first.",
                ) from None
            return {"status": wanted, "superseded_by": None}

        return self._each(ids, Action.CHANGE_STATUS, "status", actor, act)

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
        memory = self._own(memory_id)
        values = _parsed(memory, changes)
        library = self._libraries.get(memory.library_id)
        vector = None
        if "content" in values:
            settings = self._runtime.settings_of(library).settings.gate
            if not settings.min_length <= len(values["content"]) <= settings.max_length:
                raise InvalidInput(
                    f"The text has {len(values['content'])} characters, but takes "
                    f"{settings.min_length} to {settings.max_length}."
                )
            if found := sensitive.find(values["content"]):
                raise InvalidInput(
                    f"The text has a secret in it ({found[0].kind}: {found[0].masked}).",
                    hint="Take it out; secrets are never stored.",
                )
            values["content_hash"] = content_hash(values["content"])
            vector = self._runtime.embedder_for(library).embed_documents([values["content"]])[0]
        if "content" in values or "title" in values:
            now = {"title": memory.title, "content": memory.content} | values
            values |= queries.keywords(now["title"], now["content"])

        def act(connection: Connection, current: Memory) -> dict[str, Any]:
            if version is not None and current.version != version:
                raise Conflict(
                    "It was changed by someone else since you opened it.",
                    hint="Load it again; your text is still in the form.",
                )
            try:
                with connection.begin_nested():
                    connection.execute(
                        update(MemoryRow)
                        .where(MemoryRow.id == current.id)
                        .values(version=MemoryRow.version + 1, updated_at=func.now(), **values)
                    )
            except IntegrityError:
                raise Conflict(
                    "An active memory with the same text exists in this scope already."
                ) from None
            if vector is not None:
                connection.execute(delete(EmbeddingRow).where(EmbeddingRow.memory_id == current.id))
                put_vector(
                    connection,
                    library,
                    replace(current, content_hash=values["content_hash"]),
                    vector,
                )
            return {k: v for k, v in values.items() if k not in ("keywords", "keyword_count")}

        action = Action.CHANGE_VISIBILITY if set(changes) == {"visibility"} else Action.EDIT
        self._each(memory.id, action, "edit", actor, act)
        return self._own(memory.id)

    def delete(self, ids: str | Sequence[str], *, actor: Actor) -> Changed:
        """Remove memories, their vectors and links; `undo` brings them back until purged."""

        def act(connection: Connection, memory: Memory) -> None:
            connection.execute(delete(MemoryRow).where(MemoryRow.id == memory.id))

        return self._each(ids, Action.DELETE, "delete", actor, act)

    def undo(self, batch_id: str, *, actor: Actor) -> Changed:
        """Take back what one act did, newest first. What was changed since is refused."""
        done: list[str] = []
        refused: dict[str, str] = {}
        batch = str(uuid.uuid4())
        with self._runtime.engine.begin() as connection:
            rows = connection.execute(
                select(HistoryRow)
                .where(HistoryRow.batch_id == batch_id, HistoryRow.undone_by.is_(None))
                .order_by(HistoryRow.id.desc())
                .with_for_update()
            ).all()
            if not rows:
                raise NotFound("There is nothing left to undo.")
            if not actor.operator and any(r.actor != actor.user_id for r in rows):
                raise PermissionDenied("You may undo only what you did yourself.")
            for row in rows:
                if row.before is None:
                    refused[row.subject_id] = "Its content was erased."
                    continue
                try:
                    with connection.begin_nested():
                        self._put_back(connection, row)
                except (IntegrityError, Conflict):
                    refused[row.subject_id] = "It was changed since, or its text was stored again."
                    continue
                done.append(row.subject_id)
                _record(
                    connection, actor, "undo", row.subject_id, row.library_id, batch,
                    row.after, row.before,
                )  # fmt: skip
            connection.execute(
                update(HistoryRow)
                .where(HistoryRow.batch_id == batch_id, HistoryRow.subject_id.in_(done))
                .values(undone_by=batch)
            )
        return Changed(batch, tuple(done), refused)

    # ---- parts

    def _own(self, memory_id: str) -> Memory:
        with self._runtime.engine.connect() as connection:
            found = _by_ids(connection, [memory_id])
        if not found:
            raise NotFound("There is no such memory, or none you may see.")
        return found[0]

    def _each(
        self, ids: str | Sequence[str], action: Action, verb: str, actor: Actor, act: Any
    ) -> Changed:
        wanted = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        batch = str(uuid.uuid4())
        done: list[str] = []
        refused: dict[str, str] = {}
        with self._runtime.engine.begin() as connection:
            roles = queries.roles_of(connection, actor.user_id)
            asking = replace(actor, roles=roles)
            found = {m.id: m for m in _by_ids(connection, wanted, lock=True)}
            for memory_id in wanted:
                try:
                    memory = found.get(memory_id)
                    if memory is None:
                        raise NotFound("There is no such memory, or none you may see.")
                    decision = permissions.decide(asking, action, memory)
                    if not decision.allowed:
                        raise PermissionDenied(decision.reason)
                    after = act(connection, memory)
                except (NotFound, PermissionDenied, IllegalTransition, Conflict) as error:
                    if isinstance(ids, str):
                        raise
                    refused[memory_id] = str(error)
                    continue
                done.append(memory_id)
                _record(
                    connection, actor, verb, memory.id, memory.library_id, batch,
                    image(memory), plain(after),
                )  # fmt: skip
        return Changed(batch, tuple(done), refused)

    def _put_back(self, connection: Connection, row: Any) -> None:
        before = dict(row.before)
        if row.action == "delete":
            before.pop("vector_id", None)
            library = self._libraries.get(before["library_id"])
            if before.get("superseded_by") and not _by_ids(connection, [before["superseded_by"]]):
                before["superseded_by"] = None
            connection.execute(
                insert(MemoryRow).values(
                    **_typed(before), **queries.keywords(before["title"], before["content"])
                )
            )
            self._embed_again(connection, library, row.subject_id)
            return
        after = row.after or {}
        fields = {k: before[k] for k in after if k in before}
        if fields:
            changed = connection.execute(
                update(MemoryRow)
                .where(MemoryRow.id == row.subject_id)
                .values(version=MemoryRow.version + 1, updated_at=func.now(), **_typed(fields))
            )
            if not changed.rowcount:
                raise Conflict("It is gone.")
        if "content" in fields or "title" in fields:
            (memory,) = _by_ids(connection, [row.subject_id])
            connection.execute(
                update(MemoryRow)
                .where(MemoryRow.id == memory.id)
                .values(**queries.keywords(memory.title, memory.content))
            )
            connection.execute(delete(EmbeddingRow).where(EmbeddingRow.memory_id == memory.id))
            self._embed_again(connection, self._libraries.get(memory.library_id), memory.id)

    def _embed_again(self, connection: Connection, library: Any, memory_id: str) -> None:
        (memory,) = _by_ids(connection, [memory_id])
        vector = self._runtime.embedder_for(library).embed_documents([memory.content])[0]
        put_vector(connection, library, memory, vector)


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


def _by_ids(connection: Connection, ids: Iterable[str], *, lock: bool = False) -> list[Memory]:
    wanted = []
    for memory_id in ids:
        try:
            wanted.append(str(uuid.UUID(memory_id)))
        except (ValueError, AttributeError):
            continue
    # In id order, so that two overlapping bulk acts cannot deadlock.
    query = select(*queries.MEMORY_COLUMNS).where(MemoryRow.id.in_(wanted)).order_by(MemoryRow.id)
    rows = connection.execute(query.with_for_update() if lock else query)
    return [queries.memory_from(row) for row in rows]


def plain(value: Any) -> Any:
    """`value` as JSON takes it."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, StrEnum) else value


def image(memory: Memory) -> dict[str, Any]:
    """`memory` whole, as JSON: what undo needs."""
    return dict(plain(asdict(memory)))


def _typed(values: Mapping[str, Any]) -> dict[str, Any]:
    typed = dict(values)
    for name in ("created_at", "updated_at", "last_used_at", "expires_at"):
        if isinstance(typed.get(name), str):
            typed[name] = datetime.fromisoformat(typed[name])
    for name, kind in _ENUMS.items():
        if name in typed:
            typed[name] = kind(typed[name])
    return typed


_ENUMS: dict[str, type[StrEnum]] = {
    "memory_type": MemoryType,
    "scope": Scope,
    "status": Status,
    "visibility": Visibility,
}


def _record(
    connection: Connection,
    actor: Actor,
    action: str,
    subject_id: str,
    library_id: str | None,
    batch_id: str,
    before: Any,
    after: Any,
) -> None:
    connection.execute(
        insert(HistoryRow).values(
            actor=actor.user_id,
            action=action,
            subject_id=subject_id,
            library_id=library_id,
            batch_id=batch_id,
            before=before,
            after=after,
        )
    )
