"""The archive: what it holds, putting it back, and settling what a dead process left undecided."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import sql
from sqlalchemy import ARRAY, Connection, Engine, Text, cast, delete, func, insert, select, update

from memcore.database.tables import CheckpointArchiveRow, HistoryRow
from memcore.errors import Conflict, NotFound
from memcore.models import Actor
from memcore.services.checkpoints.index import path_column
from memcore.services.checkpoints.ledger import Archived, RestoreReport
from memcore.services.checkpoints.packing import Parcel, pack, unpack
from memcore.services.checkpoints.store import CheckpointStore, Conn

Links = list[Sequence[str]]
"""(namespace, checkpoint, parent)"""


def archived(engine: Engine, *, thread_id: str | None, limit: int) -> tuple[Archived, ...]:
    """Archive entries, newest first; parts of one thread and run are one entry."""
    a = CheckpointArchiveRow
    query = (
        select(
            func.min(cast(a.id, Text)).label("id"),
            a.batch_id, a.thread_id, a.source, func.min(a.at).label("at"), a.actor, a.reason,
            func.sum(a.checkpoints).label("checkpoints"), func.sum(a.blobs).label("blobs"),
            func.sum(a.writes).label("writes"), func.sum(a.octets).label("octets"),
            func.coalesce(func.sum(func.octet_length(a.payload)), 0).label("stored"),
            func.max(a.restored_at).label("restored_at"),
        )
        .group_by(a.batch_id, a.thread_id, a.source, a.actor, a.reason)
        .order_by(func.min(a.at).desc(), a.thread_id)
        .limit(limit)
    )  # fmt: skip
    if thread_id is not None:
        query = query.where(a.thread_id == thread_id)
    with engine.connect() as own:
        rows = own.execute(query).all()
        return tuple(
            Archived(
                r.id, str(r.batch_id), r.thread_id, r.source, r.at, r.actor, r.reason,
                int(r.checkpoints), int(r.blobs), int(r.writes), int(r.octets), int(r.stored),
                r.restored_at,
            )
            for r in rows
        )  # fmt: skip


def restore(store: CheckpointStore, engine: Engine, archive_id: str, actor: Actor) -> RestoreReport:
    """Put back what one run took from a thread (all parts of it, named by any). Rows that are
    there already are left alone. Raises NotFound, Conflict, StoreError."""
    store.need_writable()
    store.need_tables()
    with engine.connect() as own:
        chosen = own.execute(
            select(CheckpointArchiveRow.thread_id, CheckpointArchiveRow.batch_id).where(
                CheckpointArchiveRow.id == _uuid(archive_id)
            )
        ).first()
    if chosen is None:
        raise NotFound(f"There is no archive entry {archive_id!r}.")
    thread_id = chosen.thread_id
    settle(store, engine, thread_id)
    with engine.begin() as own:
        entries = own.execute(
            select(CheckpointArchiveRow)
            .where(CheckpointArchiveRow.batch_id == chosen.batch_id)
            .where(CheckpointArchiveRow.thread_id == thread_id)
            .order_by(CheckpointArchiveRow.part)
            .with_for_update()
        ).all()
        if any(e.payload is None for e in entries):
            raise Conflict("It was restored already.", hint="The thread is in the list again.")
        if any(e.source != store.where for e in entries):
            raise Conflict(
                f"It was archived from {entries[0].source}, but {store.where} is open now.",
                hint="Point CHECKPOINT_DATABASE_URL at the database it came from.",
            )
        counts = {"checkpoints": 0, "blobs": 0, "writes": 0}
        expected = 0
        links: Links = []
        with store.writing() as connection:
            for entry in entries:
                parcel = unpack(entry.payload or b"", entry.digest)
                expected += len(parcel.checkpoints) + len(parcel.blobs) + len(parcel.writes)
                for name, n in put_back(connection, thread_id, parcel).items():
                    counts[name] += n
                links += parcel.unlinked
            unmet = relink(connection, thread_id, links)
        _hand_on(own, thread_id, chosen.batch_id, unmet)
        own.execute(
            update(CheckpointArchiveRow)
            .where(CheckpointArchiveRow.batch_id == chosen.batch_id)
            .where(CheckpointArchiveRow.thread_id == thread_id)
            .values(state="restored", payload=None, restored_at=func.now())
        )
        record(own, actor, "restore", thread_id, str(uuid.uuid4()), counts)
    return RestoreReport(thread_id, **counts, already_there=expected - sum(counts.values()))


def put_back(connection: Conn, thread_id: str, parcel: Parcel) -> dict[str, int]:
    counts = {"checkpoints": 0, "blobs": 0, "writes": 0}
    for row in parcel.checkpoints:
        counts["checkpoints"] += connection.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id,"
            " parent_checkpoint_id, type, checkpoint, metadata)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            (thread_id, *row),
        ).rowcount
    for row in parcel.blobs:
        counts["blobs"] += connection.execute(
            "INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)"
            " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            (thread_id, *row),
        ).rowcount
    known = path_column(connection).as_string() != "''::text"
    for ns, checkpoint_id, task, path, idx, channel, kind, blob in parcel.writes:
        columns = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob"
        values = [thread_id, ns, checkpoint_id, task, idx, channel, kind, blob]
        if known:
            columns += ", task_path"
            values.append(path)
        counts["writes"] += connection.execute(
            sql.SQL("INSERT INTO checkpoint_writes ({}) VALUES ({}) ON CONFLICT DO NOTHING").format(
                sql.SQL(columns), sql.SQL(", ").join(sql.Placeholder() * len(values))
            ),
            values,
        ).rowcount
    return counts


def relink(connection: Conn, thread_id: str, links: Links) -> Links:
    """Give checkpoints that stayed their parents again; returns the links of those that are not
    there, because a later run took them."""
    unmet = []
    for link in links:
        ns, checkpoint_id, parent = link
        done = connection.execute(
            "UPDATE checkpoints SET parent_checkpoint_id = coalesce(parent_checkpoint_id, %s)"
            " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s",
            (parent, thread_id, ns, checkpoint_id),
        )
        if not done.rowcount:
            unmet.append(link)
    return unmet


def _hand_on(own: Connection, thread_id: str, batch: Any, links: Links) -> None:
    """Write the parents of checkpoints that another run took into what it took."""
    parents = {(ns, checkpoint_id): parent for ns, checkpoint_id, parent in links}
    if not parents:
        return
    a = CheckpointArchiveRow
    others = own.execute(
        select(a.id, a.payload, a.digest)
        .where(a.thread_id == thread_id, a.batch_id != batch, a.payload.is_not(None))
        .where(a.checkpoint_ids.op("&&")(cast([i for _, i in parents], ARRAY(Text))))
        .with_for_update()
    ).all()
    for other in others:
        parcel = unpack(other.payload, other.digest)
        parcel.checkpoints = [
            (ns, checkpoint_id, parent or parents.get((ns, checkpoint_id)), *rest)
            for ns, checkpoint_id, parent, *rest in parcel.checkpoints
        ]
        payload, digest = pack(parcel)
        own.execute(update(a).where(a.id == other.id).values(payload=payload, digest=digest))


def settle(store: CheckpointStore, engine: Engine, thread_id: str) -> None:
    """Decide what a process that died while pruning left undecided: where the originals are still
    there, its copies are taken back; where they are gone, the copies count."""
    with engine.begin() as own:
        rows = own.execute(
            select(CheckpointArchiveRow.id, CheckpointArchiveRow.checkpoint_ids)
            .where(CheckpointArchiveRow.thread_id == thread_id)
            .where(CheckpointArchiveRow.source == store.where)
            .where(CheckpointArchiveRow.state == "moving")
            .with_for_update(skip_locked=True)
        ).all()
        if not rows:
            return
        ids = sorted({i for r in rows for i in r.checkpoint_ids})
        with store.reading() as connection:
            there = connection.execute(
                "SELECT 1 FROM checkpoints WHERE thread_id = %s AND checkpoint_id = ANY(%s)"
                " LIMIT 1",
                (thread_id, ids),
            ).fetchone()
        chosen = CheckpointArchiveRow.id.in_([r.id for r in rows])
        if there:
            own.execute(delete(CheckpointArchiveRow).where(chosen))
        else:
            own.execute(update(CheckpointArchiveRow).where(chosen).values(state="moved"))


def record(
    own: Connection,
    actor: Actor,
    action: str,
    thread_id: str,
    batch: str,
    after: Mapping[str, Any],
) -> None:
    own.execute(
        insert(HistoryRow).values(
            actor=actor.user_id,
            action=action,
            kind="thread",
            subject_id=thread_id,
            batch_id=batch,
            after=dict(after),
        )
    )


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise NotFound(f"There is no archive entry {text[:80]!r}.") from None
