"""The rate limit: extraction runs per session in a sliding 24 hours, counted where writers meet.

The database's clock decides, so clients may disagree about the time. `claim` counts and inserts
under one advisory lock per session: of many claims at once exactly as many succeed as slots are
free, and other sessions are not held up. A run leaves the window when it is exactly 24 h old.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, insert, text

from memcore.database.engine import driven
from memcore.database.tables import ExtractionRunRow
from memcore.models import Subject

WINDOW = timedelta(hours=24)
# now() is the transaction's start; a claim that waited for its lock must see later.
_RUNS = """
SELECT at FROM extraction_runs
WHERE library_id = %(library)s::uuid AND conversation_id = %(session)s AND counted
    AND at > clock_timestamp() - %(window)s
    AND (%(without)s::uuid IS NULL OR id <> %(without)s::uuid)
ORDER BY at DESC
"""


@dataclass(frozen=True, slots=True)
class Rate:
    """Where a session stands."""

    used: int
    """Counted runs in the window."""
    limit: int
    next_slot: datetime | None
    """When the next run is allowed; None while one is free, or when the limit is 0."""

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class Claim:
    """A slot taken, or why none was."""

    run_id: str | None
    """None: no slot was free."""
    rate: Rate
    """As it is after the claim."""


def lock_key(*parts: str) -> int:
    """The advisory lock of `parts`."""
    digest = hashlib.blake2b("/".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def advisory_lock(connection: Connection, *parts: str) -> None:
    """Let one transaction at a time past, per `parts`; others wait until it ends."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": lock_key(*parts)})


def rate_of(
    connection: Connection, subject: Subject, limit: int, *, without: str | None = None
) -> Rate:
    """Runs of the subject's session in the window, `without` one run's own id. A subject without a
    session has none."""
    if subject.session_id is None:
        return Rate(0, limit, None)
    values = {
        "library": subject.library_id, "session": subject.session_id, "without": without,
        "window": WINDOW,
    }  # fmt: skip
    with driven(connection) as driver:
        at = [row[0] for row in driver.execute(_RUNS, values, binary=True)]
    next_slot = at[limit - 1] + WINDOW if limit and len(at) >= limit else None
    return Rate(len(at), limit, next_slot)


def claim(connection: Connection, subject: Subject, limit: int, values: Mapping[str, Any]) -> Claim:
    """Take a slot by inserting an extraction run of `values` (the row's other columns), in the
    caller's transaction. A subject without a session and a run that is not `counted` need none."""
    free = subject.session_id is None or values.get("counted") is False
    if not free:
        advisory_lock(connection, "rate", subject.library_id, subject.session_id or "")
    rate = rate_of(connection, subject, limit)
    if not free and rate.used >= limit:
        return Claim(None, rate)
    run_id: str = connection.execute(
        insert(ExtractionRunRow)
        .values(
            {
                "library_id": subject.library_id,
                "agent_id": subject.agent_id,
                "user_id": subject.user_id,
                "project_id": subject.project_id,
                "conversation_id": subject.session_id,
                "at": func.clock_timestamp(),
                **values,
            }
        )
        .returning(ExtractionRunRow.id)
    ).scalar_one()
    return Claim(run_id, rate_of(connection, subject, limit))
