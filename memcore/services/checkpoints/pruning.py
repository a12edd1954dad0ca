"""Carrying out a plan, and forgetting a thread.

Archive before delete: the copy is committed to memcore's database, then the originals are deleted
in one transaction per thread that first checks the plan still holds. A process that dies in between
leaves both, never neither. All of it is written to the history.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from psycopg import sql
from sqlalchemy import Engine, delete, insert, update

from memcore.database.tables import CheckpointArchiveRow, SessionStateSnapshotRow
from memcore.errors import Conflict, DatabaseError
from memcore.models import Actor
from memcore.services.checkpoints.archive import record, restore, settle
from memcore.services.checkpoints.index import path_column
from memcore.services.checkpoints.ledger import Deleted, PrunePlan, PruneReport, ThreadPlan
from memcore.services.checkpoints.packing import Parcel, pack
from memcore.services.checkpoints.retention import (
    BlobKey,
    Place,
    ThreadFacts,
    freed_blobs,
    gather,
    plan_thread,
    waiting_places,
)
from memcore.services.checkpoints.store import CheckpointStore, Conn

PART_OCTETS = 64 * 1024 * 1024
"""A thread larger than this is archived in parts."""


def prune(
    store: CheckpointStore,
    engine: Engine,
    plan: PrunePlan,
    actor: Actor,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> PruneReport:
    """Carry out a plan. A thread that changed since, so that the plan would no longer let go what
    it lists, is skipped with its reason. `progress` is told threads done and total. Raises
    PermissionDenied on a read-only database."""
    store.need_writable()
    batch = str(uuid.uuid4())
    sums = {"threads": 0, "checkpoints": 0, "blobs": 0, "writes": 0, "octets": 0, "archived": 0}
    skipped: list[tuple[str, str]] = []
    touched = [p for p in plan.threads if p.dropped]
    for number, planned in enumerate(touched):
        progress(number, len(touched))
        try:
            settle(store, engine, planned.thread_id)
            done = _prune_thread(store, engine, plan, planned, batch, actor)
        except (DatabaseError, Conflict) as error:
            skipped.append((planned.thread_id, error.message))
            continue
        sums["threads"] += 1
        for name, amount in done.items():
            sums[name] += amount
    progress(len(touched), len(touched))
    return PruneReport(
        plan, batch, sums["threads"], sums["checkpoints"], sums["blobs"], sums["writes"],
        sums["octets"], sums["archived"], tuple(skipped),
    )  # fmt: skip


def _prune_thread(
    store: CheckpointStore,
    engine: Engine,
    plan: PrunePlan,
    planned: ThreadPlan,
    batch: str,
    actor: Actor,
) -> dict[str, int]:
    thread_id = planned.thread_id
    written: list[str] = []
    try:
        with store.writing() as connection:
            facts = _unchanged(connection, plan, planned)
            dropped = set(planned.dropped)
            whole = len(dropped) == len(facts.checkpoints)
            counts = {"checkpoints": 0, "blobs": 0, "writes": 0, "octets": 0, "archived": 0}
            for part, parcel in enumerate(_parcels(connection, facts, dropped, whole)):
                payload, digest = pack(parcel)
                with engine.begin() as own:
                    row = own.execute(
                        insert(CheckpointArchiveRow)
                        .values(
                            actor=actor.user_id,
                            batch_id=batch,
                            source=store.where,
                            thread_id=thread_id,
                            part=part,
                            reason=planned.rule,
                            checkpoint_ids=[c[1] for c in parcel.checkpoints],
                            checkpoints=len(parcel.checkpoints),
                            blobs=len(parcel.blobs),
                            writes=len(parcel.writes),
                            octets=parcel.octets,
                            payload=payload,
                            digest=digest,
                        )
                        .returning(CheckpointArchiveRow.id)
                    )
                    written.append(row.scalar_one())
                counts["octets"] += parcel.octets
                counts["archived"] += len(payload)
            counts |= _delete(connection, facts, dropped, whole)
    except BaseException:
        # The commit itself may have failed with its outcome unknown: look before taking back.
        with suppress(DatabaseError):
            settle(store, engine, thread_id)
        raise
    with engine.begin() as own:
        own.execute(
            update(CheckpointArchiveRow)
            .where(CheckpointArchiveRow.id.in_(written))
            .values(state="moved")
        )
        record(own, actor, "prune", thread_id, batch, {"rule": planned.rule, **counts})
    if planned.rule == "idle" and _alive(store, thread_id):
        # An agent came back to it in the same moment, and its new checkpoint refers to blobs that
        # have just gone.
        restore(store, engine, written[0], actor)
        raise Conflict("An agent went on with it while it was being archived; it was put back.")
    return counts


def _alive(store: CheckpointStore, thread_id: str) -> bool:
    with store.reading() as connection:
        return bool(
            connection.execute(
                "SELECT 1 FROM checkpoints WHERE thread_id = %s LIMIT 1", (thread_id,)
            ).fetchone()
        )


def _unchanged(connection: Conn, plan: PrunePlan, planned: ThreadPlan) -> ThreadFacts:
    """The thread as it is now. Raises Conflict where it no longer lets the plan's rows go."""
    found = list(
        gather(connection, [planned.thread_id], waiting_places(connection, planned.thread_id))
    )
    if not found:
        raise Conflict("It is gone.")
    now = plan_thread(found[0], plan.policy, plan.at)
    if planned.rule == "idle" and now.rule != "idle":
        raise Conflict("It became active, or waits for a human, since the dry run.")
    if not set(planned.dropped) <= set(now.dropped):
        raise Conflict("It changed since the dry run, and some of its checkpoints must stay now.")
    return found[0]


# ---- rows out -----------------------------------------------------------------------------------


def _parcels(
    connection: Conn, facts: ThreadFacts, dropped: set[Place], whole: bool
) -> Iterator[Parcel]:
    """What is to go, in parcels of a bounded size. A blob travels with the first checkpoint that
    refers to it; one that nothing refers to, with the last parcel."""
    path = path_column(connection)
    blobs = freed_blobs(facts, dropped)
    places: list[Place] = []
    keys: set[BlobKey] = set()
    unlinked = _unlinked(facts, dropped)
    weight = 0
    for c in sorted(facts.checkpoints, key=lambda c: c.id):
        place = (c.ns, c.id)
        if place not in dropped:
            continue
        own = {(c.ns, channel, version) for channel, version in c.versions.items()} & blobs
        blobs -= own
        size = c.octets + sum(facts.blobs[k] for k in own)
        size += facts.writes.get(place, (0, 0, False))[1]
        if places and weight + size > PART_OCTETS:
            yield _load(connection, path, facts.thread_id, places, keys, unlinked)
            places, keys, unlinked, weight = [], set(), [], 0
        places.append(place)
        keys |= own
        weight += size
    if whole:
        known = {(c.ns, c.id) for c in facts.checkpoints}
        places += [p for p in facts.writes if p not in known]
        keys |= blobs
    yield _load(connection, path, facts.thread_id, places, keys, unlinked)


def _unlinked(facts: ThreadFacts, dropped: set[Place]) -> list[Sequence[str]]:
    return [
        (c.ns, c.id, c.parent)
        for c in facts.checkpoints
        if c.parent and (c.ns, c.id) not in dropped and (c.ns, c.parent) in dropped
    ]


def _load(
    connection: Conn,
    path: sql.Composable,
    thread_id: str,
    places: Sequence[Place],
    keys: Iterable[BlobKey],
    unlinked: list[Sequence[str]],
) -> Parcel:
    """These checkpoints and blobs as they stand in the tables."""
    at = ([ns for ns, _ in places], [i for _, i in places], thread_id)
    parcel = Parcel(unlinked=unlinked)
    for r in connection.execute(
        "SELECT c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.type,"
        " c.checkpoint::text AS body, c.metadata::text AS metadata"
        " FROM unnest(%s::text[], %s::text[]) AS k(ns, id) JOIN checkpoints c"
        " ON c.thread_id = %s AND c.checkpoint_ns = k.ns AND c.checkpoint_id = k.id",
        at,
    ):
        parcel.checkpoints.append(tuple(r.values()))
    query = sql.SQL(
        "SELECT w.checkpoint_ns, w.checkpoint_id, w.task_id, {path} AS task_path, w.idx,"
        " w.channel, w.type, w.blob FROM unnest(%s::text[], %s::text[]) AS k(ns, id)"
        " JOIN checkpoint_writes w ON w.thread_id = %s AND w.checkpoint_ns = k.ns"
        " AND w.checkpoint_id = k.id"
    ).format(path=path)
    for r in connection.execute(query, at):
        parcel.writes.append(tuple(r.values()))
    wanted = sorted(keys)
    for r in connection.execute(
        "SELECT b.checkpoint_ns, b.channel, b.version, b.type, b.blob"
        " FROM unnest(%s::text[], %s::text[], %s::text[]) AS k(ns, channel, version)"
        " JOIN checkpoint_blobs b ON b.thread_id = %s AND b.checkpoint_ns = k.ns"
        " AND b.channel = k.channel AND b.version = k.version",
        ([k[0] for k in wanted], [k[1] for k in wanted], [k[2] for k in wanted], thread_id),
    ):
        parcel.blobs.append(tuple(r.values()))
    return parcel


def _delete(
    connection: Conn, facts: ThreadFacts, dropped: set[Place], whole: bool
) -> dict[str, int]:
    thread_id = facts.thread_id
    if whole:
        return _delete_thread(connection, thread_id)
    counts = {"checkpoints": 0, "blobs": 0, "writes": 0}
    for ns in sorted({ns for ns, _ in dropped}):
        ids = [i for n, i in dropped if n == ns]
        values = (thread_id, ns, ids)
        counts["writes"] += connection.execute(
            "DELETE FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_ns = %s"
            " AND checkpoint_id = ANY(%s)",
            values,
        ).rowcount
        counts["checkpoints"] += connection.execute(
            "DELETE FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s"
            " AND checkpoint_id = ANY(%s)",
            values,
        ).rowcount
    for ns, checkpoint_id, _ in _unlinked(facts, dropped):
        connection.execute(
            "UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = %s"
            " AND checkpoint_ns = %s AND checkpoint_id = %s",
            (thread_id, ns, checkpoint_id),
        )
    by_channel: dict[tuple[str, str], list[str]] = {}
    for ns, channel, version in freed_blobs(facts, dropped):
        by_channel.setdefault((ns, channel), []).append(version)
    for (ns, channel), versions in by_channel.items():
        counts["blobs"] += connection.execute(
            "DELETE FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = %s"
            " AND channel = %s AND version = ANY(%s)",
            (thread_id, ns, channel, versions),
        ).rowcount
    return counts


def _delete_thread(connection: Conn, thread_id: str) -> dict[str, int]:
    counts = {}
    for name in ("checkpoints", "blobs", "writes"):
        table = "checkpoints" if name == "checkpoints" else f"checkpoint_{name}"
        counts[name] = connection.execute(
            sql.SQL("DELETE FROM {} WHERE thread_id = %s").format(sql.Identifier(table)),
            (thread_id,),
        ).rowcount
    return counts


def delete_thread(store: CheckpointStore, engine: Engine, thread_id: str, actor: Actor) -> Deleted:
    """Forget a thread: its checkpoints, blobs and writes, its archived ones and its snapshots.
    It cannot be restored. The history keeps the counts and no content."""
    store.need_writable()
    store.need_tables()
    with store.writing() as connection:
        counts = _delete_thread(connection, thread_id)
    with engine.begin() as own:
        archive = own.execute(
            delete(CheckpointArchiveRow).where(CheckpointArchiveRow.thread_id == thread_id)
        ).rowcount
        snapshots = own.execute(
            delete(SessionStateSnapshotRow).where(SessionStateSnapshotRow.thread_id == thread_id)
        ).rowcount
        done = Deleted(thread_id, **counts, archived=archive, snapshots=snapshots)
        record(own, actor, "delete", thread_id, str(uuid.uuid4()),
               {**counts, "archived": archive, "snapshots": snapshots})  # fmt: skip
    return done
