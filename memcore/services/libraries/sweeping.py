"""What is due from time to time: expired memories are archived, never deleted; deleted libraries
are purged after 30 days; vectors left over by a killed re-embedding go."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from sqlalchemy import text

from memcore.database import queries
from memcore.services.runtime import Runtime

KEPT_DAYS = 30


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did."""

    archived: int
    """Expired memories."""
    purged: int
    """Libraries deleted 30 days ago or earlier."""
    dropped: int
    """Collections nobody reads any more."""
    batch_id: str
    """Takes the archiving back by `memories.undo`."""


class Sweeping:
    """Part of LibraryService."""

    _runtime: Runtime

    def sweep(self) -> Swept:
        """Do what is due. Safe to call at any time, from several processes at once."""
        batch = str(uuid.uuid4())
        busy = self._runtime.jobs.running("reembed")
        with self._runtime.engine.begin() as connection:
            archived = connection.execute(
                text(
                    """
                    WITH due AS (
                        SELECT id, library_id FROM memories
                        WHERE status = 'active' AND expires_at <= now()
                        ORDER BY id FOR UPDATE SKIP LOCKED
                    ), done AS (
                        UPDATE memories m SET status = 'archived', version = version + 1,
                            updated_at = now()
                        FROM due WHERE m.id = due.id RETURNING m.id, m.library_id
                    )
                    INSERT INTO history
                        (actor, action, kind, subject_id, library_id, batch_id, before, after)
                    SELECT 'system', 'expire', 'memory', id::text, library_id, :batch,
                        '{"status": "active"}', '{"status": "archived"}'
                    FROM done
                    """
                ),
                {"batch": batch},
            ).rowcount
            purged = connection.execute(
                text(
                    "SELECT id::text, collection_id FROM libraries "
                    "WHERE deleted_at < now() - make_interval(days => :days) "
                    "FOR UPDATE SKIP LOCKED"
                ),
                {"days": KEPT_DAYS},
            ).all()
            gone = [row.id for row in purged]
            # A re-embedding drops what it retired itself, unless it was killed.
            left = connection.execute(
                text(
                    "SELECT id FROM collections WHERE library_id = ANY(CAST(:gone AS uuid[])) "
                    "OR (state = 'retired' AND library_id <> ALL(CAST(:busy AS uuid[])))"
                ),
                {"gone": gone, "busy": list(busy)},
            ).all()
            queries.drop_collections(connection, [row.id for row in left])
            connection.execute(
                text("DELETE FROM history WHERE library_id = ANY(CAST(:gone AS uuid[]))"),
                {"gone": gone},
            )
            connection.execute(
                text("DELETE FROM libraries WHERE id = ANY(CAST(:gone AS uuid[]))"), {"gone": gone}
            )
            # In-process copies read changes without using them up.
            connection.execute(
                text(
                    "DELETE FROM vector_changes v WHERE at < now() - interval '1 day' AND NOT "
                    "EXISTS (SELECT 1 FROM libraries l JOIN vector_stores s "
                    "ON s.id::text = l.vector_store "
                    "WHERE l.collection_id = v.collection_id AND s.kind <> 'memory')"
                )
            )
        return Swept(archived, len(gone), len(left), batch)
