"""Taking back what one act did: the images in history are laid back, newest act first.

What was changed since is refused with the reason, so that undo brings back exactly what it says.
A deleted memory comes back with its id, its links both ways and its vector, which history keeps
beside the text; only where the library got another embedder meanwhile is it embedded again.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from memcore.database import queries
from memcore.database.tables import EmbeddingRow, HistoryRow, LibraryRow, MemoryRow
from memcore.embeddings import Vectors
from memcore.errors import Conflict, NotFound, PermissionDenied
from memcore.models import Actor, Library, Memory
from memcore.services.libraries import LibraryService
from memcore.services.memories.adding import put_vector
from memcore.services.memories.images import Changed, by_ids, image, record, typed
from memcore.services.runtime import Runtime


class Undoing:
    """Part of MemoryService: undo."""

    _runtime: Runtime
    _libraries: LibraryService

    def undo(self, batch_id: str, *, actor: Actor) -> Changed:
        """Take back one act, by the batch id it returned. Raises NotFound where nothing is left to
        undo, PermissionDenied for somebody else's act."""
        done: list[str] = []
        refused: dict[str, str] = {}
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
            for row in rows:
                if row.before is None:
                    refused[row.subject_id] = "Its content was erased."
                    continue
                try:
                    with connection.begin_nested():
                        self._put_back(connection, row)
                except Conflict as error:
                    refused[row.subject_id] = error.message
                    continue
                except IntegrityError:
                    refused[row.subject_id] = "The same text was stored again since."
                    continue
                done.append(row.subject_id)
            for row in rows:
                if row.subject_id in done and row.action == "delete":
                    _link_again(connection, row)
            record(
                connection,
                [
                    (row.subject_id, row.library_id, row.after or {}, _shown(row.before))
                    for row in rows
                    if row.subject_id in done
                ],
                actor=actor,
                action="undo",
                batch=batch,
            )
            connection.execute(
                update(HistoryRow)
                .where(HistoryRow.batch_id == batch_id, HistoryRow.subject_id.in_(done))
                .values(undone_by=batch)
            )
        return Changed(batch, tuple(done), refused)

    def _put_back(self, connection: Connection, row: Any) -> None:
        before = dict(row.before)
        vector = before.pop("vector", None)
        if row.action == "delete":
            library = self._libraries.get(before["library_id"])
            before |= {"vector_id": None, "superseded_by": None}
            connection.execute(
                insert(MemoryRow).values(
                    **typed(before), **queries.keywords(before["title"], before["content"])
                )
            )
            self._vector_again(connection, library, row.subject_id, vector)
            return
        after = row.after or {}
        (current,) = by_ids(connection, [row.subject_id], lock=True) or (None,)
        if current is None:
            raise Conflict("It was deleted since.")
        now = image(current)
        if any(name in now and now[name] != value for name, value in after.items()):
            raise Conflict("It was changed again since.")
        fields = {name: before[name] for name in after if name in before}
        if fields.get("superseded_by") and not by_ids(connection, [fields["superseded_by"]]):
            fields["superseded_by"] = None
        values = typed(fields)
        if "content" in fields or "title" in fields:
            values |= queries.keywords(before["title"], before["content"])
        connection.execute(
            update(MemoryRow)
            .where(MemoryRow.id == row.subject_id)
            .values(version=MemoryRow.version + 1, updated_at=func.now(), **values)
        )
        if "content" in fields:
            connection.execute(delete(EmbeddingRow).where(EmbeddingRow.memory_id == row.subject_id))
            library = self._libraries.get(current.library_id)
            self._vector_again(connection, library, row.subject_id, vector)

    def _vector_again(
        self,
        connection: Connection,
        library: Library,
        memory_id: str,
        kept: Mapping[str, Any] | None,
    ) -> None:
        (memory,) = by_ids(connection, [memory_id])
        if kept and kept["collection_id"] == library.collection_id:
            vector = np.frombuffer(base64.b64decode(kept["float32"]), dtype="<f4")
        else:
            vector = self._runtime.embedder_for(library).embed_documents([memory.content])[0]
        put_vector(connection, library, memory, vector)


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
