"""Many rows at once: memories in one pipelined statement, vectors by binary COPY. No round trip per
row. Import, the demo world and undo write through here.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import ARRAY, Connection, Text, bindparam, func, insert, text

from memcore.database import queries
from memcore.database.tables import MemoryRow
from memcore.embeddings import Vectors
from memcore.models import Memory

_FIELDS = tuple(f.name for f in fields(Memory))
# Read field by field: asdict copies deeply, which took a quarter of an import's time.


def insert_memories(connection: Connection, memories: Sequence[Memory]) -> None:
    """Insert whole memories with their ids and times. Links to superseding memories are set after
    all rows are there, in one statement. Raises IntegrityError for a living duplicate."""
    if not memories:
        return
    terms = bindparam("terms", type_=ARRAY(Text))
    connection.execute(
        insert(MemoryRow).values(keywords=func.array_to_tsvector(terms)),
        [
            {
                **{name: getattr(m, name) for name in _FIELDS},
                "superseded_by": None,
                "tags": list(m.tags),
                "attributes": dict(m.attributes),
                "terms": queries.keyword_terms(m.title, m.content),
            }
            for m in memories
        ],
    )
    links = {m.id: m.superseded_by for m in memories if m.superseded_by}
    if links:
        supersede(connection, links)


def supersede(connection: Connection, links: dict[str, str]) -> None:
    """Set `superseded_by` of each key to its value."""
    connection.execute(
        text(
            "UPDATE memories SET superseded_by = link.new FROM "
            "unnest(CAST(:old AS uuid[]), CAST(:new AS uuid[])) AS link(old, new) "
            "WHERE memories.id = link.old"
        ),
        {"old": list(links), "new": list(links.values())},
    )


def copy_vectors(
    connection: Connection, collection_id: int, memories: Sequence[Memory], vectors: Vectors
) -> None:
    """One vector for each memory into a collection. `vectors`: (n, dimensions) float32, checked."""
    if not memories:
        return
    driver: Any = connection.connection.driver_connection
    statement = (
        "COPY embeddings (collection_id, memory_id, content_hash, embedding) "
        "FROM STDIN WITH (FORMAT BINARY)"
    )
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(["int8", "uuid", "text", "vector"])
        for memory, vector in zip(memories, vectors, strict=True):
            copy.write_row((collection_id, uuid.UUID(memory.id), memory.content_hash, vector))
