"""Taking back what one act did: the images in history are laid back, newest act first.

What was changed since is refused with the reason, so that undo brings back exactly what it says.
A deleted memory comes back with its id, its links both ways and its vector, which history keeps
beside the text; only where the library got another embedder meanwhile is it embedded again.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, delete, func, select, update
from sqlalchemy.exc import IntegrityError

from memcore.database import bulk, queries
from memcore.database.tables import EmbeddingRow, HistoryRow, LibraryRow, MemoryRow
from memcore.embeddings import Vectors
from memcore.errors import NotFound, PermissionDenied
from memcore.models import Actor, Library, Memory, Status
from memcore.plain import plain
from memcore.services.libraries import LibraryService
from memcore.services.memories.adding import put_vector
from memcore.services.memories.images import IMPORT, Changed, by_ids, record, typed
from memcore.services.runtime import Runtime

_STORED_AGAIN = "The same text was stored again since."


class Undoing:
    """Part of MemoryService: undo."""

    _runtime: Runtime
    _libraries: LibraryService

    def undo(self, batch_id: str, *, actor: Actor) -> Changed:
        """Take back one act, by the batch id it returned. Raises NotFound where nothing is left to
        undo, PermissionDenied for somebody else's act."""
        batch = str(uuid.uuid4())
        with self._runtime.engine.begin() as connection:
            rows = connection.execute(
                select(*HistoryRow.__table__.columns)
                .where(
                    HistoryRow.batch_id == _uuid(batch_id),
                    HistoryRow.kind == "memory",
                    HistoryRow.undone_by.is_(None),
                )
                .order_by(HistoryRow.id.desc())
                .with_for_update()
            ).all()
            if not rows:
                raise NotFound("There is nothing left to undo.")
            if not actor.operator and any(row.actor != actor.user_id for row in rows):
                raise PermissionDenied("You may undo only what you did yourself.")
            kept = [row for row in rows if row.before is not None]
            refused = {
                row.subject_id: "Its content was erased." for row in rows if row.before is None
            }
            deleted = [row for row in kept if row.action == "delete"]
            refused |= self._recreate(connection, deleted)
            came_in = [row for row in kept if row.action == IMPORT]
            refused |= _withdraw(connection, came_in)
            changed = []
            for row in kept:
                if row.action in ("delete", IMPORT):
                    continue
                if (row.after or {}).get("superseded_by") in refused:
                    refused[row.subject_id] = "What replaced it was changed again since."
                else:
                    changed.append(row)
            refused |= self._lay_back(connection, changed)
            removed = [r.subject_id for r in came_in if r.subject_id not in refused]
            connection.execute(delete(MemoryRow).where(MemoryRow.id.in_(removed)))
            undone = [row for row in kept if row.subject_id not in refused]
            for row in deleted:
                if row.subject_id not in refused:
                    _link_again(connection, row)
            record(
                connection,
                [
                    (row.subject_id, row.library_id, row.after or {}, _shown(row.before))
                    for row in undone
                ],
                actor=actor,
                action="undo",
                batch=batch,
            )
            connection.execute(
                update(HistoryRow)
                .where(HistoryRow.id.in_([row.id for row in undone]))
                .values(undone_by=batch)
            )
        return Changed(batch, tuple(row.subject_id for row in undone), refused)

    def _recreate(self, connection: Connection, rows: Sequence[Any]) -> dict[str, str]:
        """Insert deleted memories again, all at once where none of their texts was stored again
        meanwhile. Returns what could not come back, and why."""
        if not rows:
            return {}
        try:
            with connection.begin_nested():
                self._insert_again(connection, rows)
        except IntegrityError:
            if len(rows) == 1:
                return {rows[0].subject_id: _STORED_AGAIN}
            half = len(rows) // 2
            return self._recreate(connection, rows[:half]) | self._recreate(connection, rows[half:])
        return {}

    def _insert_again(self, connection: Connection, rows: Sequence[Any]) -> None:
        by_library: dict[str, list[Any]] = {}
        for row in rows:
            by_library.setdefault(row.before["library_id"], []).append(row)
        for library_id, group in by_library.items():
            library = self._libraries.get(library_id)
            images = [typed(_shown(row.before)) for row in group]
            memories = [
                Memory(**(i | {"tags": tuple(i["tags"]), "superseded_by": None})) for i in images
            ]
            bulk.insert_memories(connection, memories)
            vectors = self._vectors_of(library, memories, [r.before.get("vector") for r in group])
            bulk.copy_vectors(connection, library.collection_id, memories, vectors)

    def _lay_back(self, connection: Connection, rows: Sequence[Any]) -> dict[str, str]:
        """Lay the earlier values back over what is there, those that are alike in one statement."""
        current = {m.id: m for m in by_ids(connection, [r.subject_id for r in rows], lock=True)}
        refused: dict[str, str] = {}
        alike: dict[str, list[Any]] = {}
        for row in rows:
            now = current.get(row.subject_id)
            if now is None:
                refused[row.subject_id] = "It was deleted since."
                continue
            if any(
                hasattr(now, name) and plain(getattr(now, name)) != value
                for name, value in row.after.items()
            ):
                refused[row.subject_id] = "It was changed again since."
                continue
            fields = {name: row.before[name] for name in row.after if name in row.before}
            one = row.subject_id if fields.keys() & {"content", "title"} else ""
            alike.setdefault(json.dumps([one, fields], sort_keys=True), []).append(row)
        for key, group in alike.items():
            refused |= self._set(connection, json.loads(key)[1], group, current)
        return refused

    def _set(
        self,
        connection: Connection,
        fields: dict[str, Any],
        rows: Sequence[Any],
        current: Mapping[str, Memory],
    ) -> dict[str, str]:
        successor = fields.get("superseded_by")
        if successor and not by_ids(connection, [successor]):
            fields = fields | {"superseded_by": None}
        values = typed(fields)
        if fields.keys() & {"content", "title"}:
            before = rows[0].before
            values |= queries.keywords(before["title"], before["content"])
        ids = [row.subject_id for row in rows]
        try:
            with connection.begin_nested():
                connection.execute(
                    update(MemoryRow)
                    .where(MemoryRow.id.in_(ids))
                    .values(version=MemoryRow.version + 1, updated_at=func.now(), **values)
                )
                if "content" in fields:
                    self._vector_again(connection, current[ids[0]], rows[0])
        except IntegrityError:
            if len(rows) == 1:
                return {ids[0]: _STORED_AGAIN}
            half = len(rows) // 2
            return self._set(connection, fields, rows[:half], current) | self._set(
                connection, fields, rows[half:], current
            )
        return {}

    def _vector_again(self, connection: Connection, memory: Memory, row: Any) -> None:
        library = self._libraries.get(memory.library_id)
        (renewed,) = by_ids(connection, [memory.id])
        connection.execute(delete(EmbeddingRow).where(EmbeddingRow.memory_id == memory.id))
        (vector,) = self._vectors_of(library, [renewed], [row.before.get("vector")])
        put_vector(connection, library, renewed, vector)

    def _vectors_of(
        self,
        library: Library,
        memories: Sequence[Memory],
        kept: Sequence[Mapping[str, Any] | None],
    ) -> Vectors:
        """(n, dimensions): as history kept them, the rest embedded now in one go."""
        out = np.zeros((len(memories), library.dimensions), dtype=np.float32)
        missing = []
        for place, vector in enumerate(kept):
            if vector and vector["collection_id"] == library.collection_id:
                out[place] = np.frombuffer(base64.b64decode(vector["float32"]), dtype="<f4")
            else:
                missing.append(place)
        if missing:
            embedder = self._runtime.embedder_for(library)
            out[missing] = embedder.embed_documents([memories[i].content for i in missing])
        return out


def _withdraw(connection: Connection, rows: Sequence[Any]) -> dict[str, str]:
    """Take imported memories out of use, so that what they replaced can come back before they are
    removed. Returns those that were changed since, and why they stay."""
    current = {m.id: m for m in by_ids(connection, [r.subject_id for r in rows], lock=True)}
    refused = {}
    for row in rows:
        now = current.get(row.subject_id)
        if now is None:
            refused[row.subject_id] = "It was deleted since."
        elif row.after != {"status": now.status, "version": now.version}:
            refused[row.subject_id] = "It was changed again since."
    going = [i for i in current if i not in refused]
    connection.execute(
        update(MemoryRow).where(MemoryRow.id.in_(going)).values(status=Status.ARCHIVED)
    )
    return refused


def kept_vectors(connection: Connection, memories: Sequence[Memory]) -> dict[str, dict[str, Any]]:
    """Memory id → its vector in its library's current collection, as history keeps it."""
    rows = connection.execute(
        select(EmbeddingRow.memory_id, EmbeddingRow.collection_id, EmbeddingRow.embedding)
        .join(MemoryRow, MemoryRow.id == EmbeddingRow.memory_id)
        .join(
            LibraryRow,
            and_(
                LibraryRow.id == MemoryRow.library_id,
                LibraryRow.collection_id == EmbeddingRow.collection_id,
            ),
        )
        .where(EmbeddingRow.memory_id.in_([m.id for m in memories]))
    )
    return {
        row.memory_id: {
            "collection_id": row.collection_id,
            "float32": base64.b64encode(_array(row.embedding).tobytes()).decode(),
        }
        for row in rows
    }


def _array(value: Any) -> Vectors:
    array = value.to_numpy() if hasattr(value, "to_numpy") else value
    return np.ascontiguousarray(array, dtype="<f4")


def _link_again(connection: Connection, row: Any) -> None:
    """Links of a memory that came back: to its successor, and from those it had replaced."""
    successor = row.before.get("superseded_by")
    if successor and by_ids(connection, [successor]):
        connection.execute(
            update(MemoryRow).where(MemoryRow.id == row.subject_id).values(superseded_by=successor)
        )
    replaced = (row.after or {}).get("had_replaced") or []
    if replaced:
        connection.execute(
            update(MemoryRow)
            .where(
                MemoryRow.id.in_(replaced),
                MemoryRow.superseded_by.is_(None),
                MemoryRow.status == "superseded",
            )
            .values(superseded_by=row.subject_id)
        )


def _shown(before: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in before.items() if name != "vector"}


def _uuid(value: str) -> str:
    try:
        return str(uuid.UUID(value))
    except (ValueError, AttributeError, TypeError):
        raise NotFound("There is nothing left to undo.") from None
