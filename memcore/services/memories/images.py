"""Memories as history keeps them, and what every act on them shares: reading by id under a lock,
writing history lines, the report of what was done and what was refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, insert, select

from memcore.database import queries
from memcore.database.tables import HistoryRow, MemoryRow
from memcore.models import Actor, Memory, MemoryType, Scope, Status, Visibility
from memcore.plain import plain

IMPORT = "import"
"""The action of history's lines on memories that came in together; undoing removes them."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What one act did. `undo(batch_id)` takes it back."""

    batch_id: str
    done: tuple[str, ...]
    refused: Mapping[str, str]
    """Memory id → why not."""


def by_ids(connection: Connection, ids: Iterable[str], *, lock: bool = False) -> list[Memory]:
    """Those that exist, whoever may see them. Locked in id order, so that two overlapping bulk
    acts cannot deadlock."""
    wanted = []
    for memory_id in ids:
        try:
            wanted.append(str(uuid.UUID(memory_id)))
        except (ValueError, AttributeError):
            continue
    query = select(*queries.MEMORY_COLUMNS).where(MemoryRow.id.in_(wanted)).order_by(MemoryRow.id)
    rows = connection.execute(query.with_for_update() if lock else query)
    return [queries.memory_from(row) for row in rows]


def image(memory: Memory) -> dict[str, Any]:
    """`memory` whole, as JSON: what undo needs."""
    return dict(plain(memory))


def typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an image as the columns take them."""
    out = dict(values)
    for name in ("created_at", "updated_at", "last_used_at", "expires_at"):
        if isinstance(out.get(name), str):
            out[name] = datetime.fromisoformat(out[name])
    for name, kind in _ENUMS.items():
        if name in out:
            out[name] = kind(out[name])
    return out


_ENUMS: dict[str, type[StrEnum]] = {
    "memory_type": MemoryType,
    "scope": Scope,
    "status": Status,
    "visibility": Visibility,
}


def record(
    connection: Connection,
    lines: Sequence[tuple[str, str | None, Any, Any]],
    *,
    actor: Actor,
    action: str,
    batch: str,
) -> None:
    """Write history lines (memory id, library id, before, after) of one act."""
    if not lines:
        return
    connection.execute(
        insert(HistoryRow),
        [
            {
                "actor": actor.user_id,
                "action": action,
                "subject_id": subject_id,
                "library_id": library_id,
                "batch_id": batch,
                "before": before,
                "after": after,
            }
            for subject_id, library_id, before, after in lines
        ],
    )
