"""Work in the background, with progress that every process can read.

A job is a thread here and a row in `jobs`. The row says how far it is. While the thread lives, a
connection of its own holds a lock that the server lets go when the process ends, however it ends:
a killed job is told from a slow one at once, and can be started again at once. Where a connection
stays open though nobody is behind it any more, `beat_at` stands still.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from memcore.database.tables import JobRow
from memcore.errors import MemcoreError

_BEAT = 0.5
_DEAD = timedelta(seconds=20)
_SPACE = 0x6D636A62
"""Advisory locks of jobs, told from those of others."""
_HELD = text(
    "EXISTS (SELECT 1 FROM pg_locks k WHERE k.locktype = 'advisory' AND k.granted "
    "AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND k.classid = :space AND k.objsubid = 2 "
    "AND k.objid::bigint = (hashtext(jobs.id::text)::bigint & 4294967295)) AS held"
).bindparams(space=_SPACE)
_LOG = logging.getLogger("memcore.jobs")

Report = Callable[[str, int, int], None]
"""(what is being done, done, total). Raises Stopped once the job was cancelled."""


class Stopped(Exception):
    """The job was cancelled, or the core is closing. Not an error: nobody has to act."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: str
    library_id: str | None
    state: str
    """running, done, failed, cancelled, lost (its process died)."""
    done: int
    total: int
    """0: it cannot be counted."""
    note: str
    """What it is doing; why it failed, once it has."""
    created_at: datetime
    input: Mapping[str, Any]

    @property
    def running(self) -> bool:
        return self.state == "running"


class Jobs:
    """Starts jobs in this process and reads those of all."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._closing = threading.Event()
        self._threads: dict[str, threading.Thread] = {}

    def start(
        self,
        kind: str,
        library_id: str | None,
        work: Callable[[Report], str],
        input: Mapping[str, Any] | None = None,
    ) -> Job:
        """Run `work` in a thread; what it returns becomes the note. Where the same job (kind,
        library, input) runs already, in whichever process, that one is returned instead."""
        wanted = json.loads(json.dumps(dict(input or {}), sort_keys=True, default=str))
        job_id = str(uuid.uuid4())
        with self._engine.begin() as connection:
            # Two visitors pressing the same button: the second waits here and finds the first's.
            connection.execute(
                select(func.pg_advisory_xact_lock(func.hashtextextended(f"job {kind}", 0)))
            )
            for job in self._read(connection, kind, library_id):
                if job.running and job.input == wanted:
                    return job
            pulse = _Pulse(self._engine, job_id)
            connection.execute(
                insert(JobRow).values(
                    id=job_id, kind=kind, library_id=library_id, state="running", input=wanted,
                    note="Starting", beat_at=func.now(),
                )
            )  # fmt: skip
        thread = threading.Thread(
            target=self._run, args=(job_id, kind, work, pulse), name=f"memcore {kind}", daemon=True
        )
        self._threads[job_id] = thread
        thread.start()
        return self.get(job_id)

    def get(self, job_id: str) -> Job:
        with self._engine.connect() as connection:
            row = connection.execute(select(JobRow, _HELD).where(JobRow.id == job_id)).one()
        return _job(row)

    def latest(self, kind: str, library_id: str | None) -> Job | None:
        """The newest job of that kind, whatever its state."""
        with self._engine.connect() as connection:
            return next(iter(self._read(connection, kind, library_id)), None)

    def running(self, kind: str) -> set[str]:
        """Ids of the libraries that such a job runs for now, in whichever process."""
        with self._engine.connect() as connection:
            rows = connection.execute(
                select(JobRow, _HELD).where(JobRow.kind == kind, JobRow.state == "running")
            )
            return {j.library_id for j in map(_job, rows) if j.running and j.library_id}

    def cancel(self, job_id: str) -> None:
        """Ask it to stop; it does at its next report."""
        with self._engine.begin() as connection:
            connection.execute(
                update(JobRow)
                .where(JobRow.id == job_id, JobRow.state == "running")
                .values(state="cancelled", note="Cancelled")
            )

    def wait(self, job_id: str, timeout: float = 600.0) -> Job:
        """The job once it has ended, or as it is after `timeout` seconds."""
        thread = self._threads.get(job_id)
        if thread is not None:
            thread.join(timeout)
        return self.get(job_id)

    def close(self) -> None:
        """Stop this process's jobs; each ends at its next report."""
        self._closing.set()
        for thread in self._threads.values():
            thread.join(10)

    # ---- parts

    def _read(self, connection: Any, kind: str, library_id: str | None) -> list[Job]:
        rows = connection.execute(
            select(JobRow, _HELD)
            .where(JobRow.kind == kind, JobRow.library_id.is_not_distinct_from(library_id))
            .order_by(JobRow.created_at.desc(), JobRow.id)
            .limit(20)
        )
        return [_job(row) for row in rows]

    def _run(self, job_id: str, kind: str, work: Callable[[Report], str], pulse: _Pulse) -> None:
        state = _Progress()
        ended = threading.Event()
        beating = threading.Thread(
            target=self._beat, args=(job_id, state, ended, pulse), name=f"memcore {kind} beat",
            daemon=True,
        )  # fmt: skip
        beating.start()

        def report(note: str, done: int, total: int) -> None:
            state.note, state.done, state.total = note, done, total
            if state.cancelled or self._closing.is_set():
                raise Stopped

        outcome, note = "done", ""
        try:
            note = work(report)
        except Stopped:
            outcome, note = "cancelled", "Cancelled"
        except MemcoreError as error:
            outcome, note = "failed", str(error)
        except Exception as error:
            # Its text may hold content; the log filter is for that, the row is for people.
            _LOG.exception("Job %s failed", kind)
            outcome, note = "failed", f"An unexpected error stopped it ({type(error).__name__})."
        finally:
            ended.set()
            beating.join()
        try:
            self._put(job_id, state=outcome, note=note, done=state.done, total=state.total)
        except SQLAlchemyError:
            _LOG.warning("The end of job %s could not be recorded", kind)
        finally:
            pulse.close()

    def _beat(self, job_id: str, state: _Progress, ended: threading.Event, pulse: _Pulse) -> None:
        while not ended.wait(_BEAT):
            try:
                kept = _put(
                    pulse.connection(), job_id,
                    note=state.note, done=state.done, total=state.total,
                )  # fmt: skip
            except SQLAlchemyError:
                pulse.close()  # The database may be back at the next beat.
                continue
            if not kept:
                state.cancelled = True

    def _put(self, job_id: str, **values: Any) -> None:
        with self._engine.begin() as connection:
            _put(connection, job_id, **values)


class _Pulse:
    """The connection that shows a job lives, by a lock that ends with it. It is none of the
    pool's, so that closing it always lets the lock go."""

    def __init__(self, engine: Engine, job_id: str) -> None:
        self._engine = engine
        self._job_id = job_id
        self._open: Connection | None = None
        self.connection()

    def connection(self) -> Connection:
        """Open and locked, also after the server was away."""
        if self._open is None:
            made = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            made.detach()
            self._open = made
            made.execute(
                text("SELECT pg_try_advisory_lock(:space, hashtext(:id))"),
                {"space": _SPACE, "id": self._job_id},
            )
        return self._open

    def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            with contextlib.suppress(SQLAlchemyError):
                opened.close()


def _put(connection: Connection, job_id: str, **values: Any) -> bool:
    """Write values to a running job; False when it is not running any more."""
    written = connection.execute(
        update(JobRow)
        .where(JobRow.id == job_id, JobRow.state == "running")
        .values(beat_at=func.now(), **values)
    )
    return bool(written.rowcount)


class _Progress:
    """What the work thread says and the beating thread writes."""

    note = "Starting"
    done = 0
    total = 0
    cancelled = False


def _job(row: Any) -> Job:
    held, row = row.held, getattr(row, "JobRow", row)
    state = row.state
    beat = row.beat_at or row.created_at
    if state == "running" and (not held or datetime.now(UTC) - beat > _DEAD):
        state = "lost"
    return Job(
        row.id, row.kind, row.library_id, state, row.done, row.total, row.note, row.created_at,
        row.input,
    )  # fmt: skip
