"""What a retention policy lets go, as a plan that is looked at before anything happens.

`plan_thread` is pure. Its rules: a thread is idle by its newest checkpoint, and then goes whole.
In other threads each namespace loses what is beyond `keep_last` or older than `max_age_days`,
but keeps its latest checkpoint, whatever waits for a human's answer, and every ancestor from which
a kept checkpoint rebuilds a delta channel. A subgraph call (`node:<task id>`) goes with the root
checkpoint it ran under. Blobs go when no kept checkpoint refers to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memcore.errors import InvalidInput
from memcore.services.checkpoints.deltas import COUNTERS, JS_MARK, walk
from memcore.services.checkpoints.index import id_before, moment, open_tasks
from memcore.services.checkpoints.ledger import Freed, Kept, Policy, PrunePlan, ThreadPlan
from memcore.services.checkpoints.store import CheckpointStore, Conn
from memcore.services.checkpoints.tasks import TASKS

_CHUNK = 200
KEEPS = (1, 5, 20, 100)

Place = tuple[str, str]
"""Namespace and checkpoint id."""
BlobKey = tuple[str, str, str]
"""Namespace, channel, version."""


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """What the plan needs to know of one checkpoint; no values."""

    ns: str
    id: str
    parent: str | None
    at: datetime | None
    format: int
    versions: Mapping[str, str]
    inline: Mapping[str, Any]
    """Scalars kept in the row; True stands for a delta channel's snapshot blob."""
    root: str | None
    """The root checkpoint a subgraph call ran under."""
    counters: frozenset[str]
    """Delta channels named by LangGraph's counters."""
    js_deltas: bool
    octets: int


@dataclass(frozen=True, slots=True)
class ThreadFacts:
    thread_id: str
    checkpoints: Sequence[CheckpointFacts]
    blobs: Mapping[BlobKey, int]
    writes: Mapping[Place, tuple[int, int, bool]]
    """Place → how many writes, their bytes, whether one sends work to a later step."""
    waiting: frozenset[str]
    """Root checkpoints at the end of a line with an unanswered interrupt."""


def check_policy(policy: Policy) -> Policy:
    """Raises InvalidInput for a policy that cannot be meant."""
    for name in ("idle_days", "max_age_days"):
        days = getattr(policy, name)
        if days is not None and not (math.isfinite(days) and days > 0):
            raise InvalidInput(f"{name} is {days}, but takes a number of days above 0.")
    if policy.keep_last is not None and policy.keep_last < 1:
        raise InvalidInput(
            f"keep_last is {policy.keep_last}, but takes 1 or more: the latest always stays."
        )
    if policy.idle_days is None and policy.keep_last is None and policy.max_age_days is None:
        raise InvalidInput(
            "The policy has no rule.", hint="Set idle_days, keep_last or max_age_days."
        )
    return policy


def plan(store: CheckpointStore, policy: Policy, *, now: datetime) -> PrunePlan:
    """What `policy` would remove at `now`. Changes nothing."""
    check_policy(policy)
    source = store.need_tables()
    with store.reading() as connection:
        ids, examined = _candidates(connection, policy, now)
        only = policy.thread_ids[0] if policy.thread_ids and len(policy.thread_ids) == 1 else None
        waiting = waiting_places(connection, only)
        plans = []
        for start in range(0, len(ids), _CHUNK):
            for facts in gather(connection, ids[start : start + _CHUNK], waiting):
                found = plan_thread(facts, policy, now)
                if found.dropped or found.kept:
                    plans.append(found)
    plans.sort(key=lambda p: (-p.octets, p.thread_id))
    return PrunePlan(policy, now, tuple(plans), examined, source)


def freed(connection: Conn, thread_id: str, now: datetime) -> tuple[Freed, ...]:
    """What keeping the newest 1, 5, 20 or 100 checkpoints of a thread would free."""
    waiting = waiting_places(connection, thread_id)
    out = []
    for facts in gather(connection, [thread_id], waiting):
        longest = max(map(len, _by_namespace(facts.checkpoints).values()))
        for keep in KEEPS:
            if keep == 1 or keep < longest:
                plan = plan_thread(facts, Policy(keep_last=keep), now)
                out.append(Freed(keep, len(plan.dropped), plan.octets))
    return tuple(out)


def waiting_places(connection: Conn, thread_id: str | None = None) -> dict[str, frozenset[str]]:
    """Thread → its root checkpoints that still wait for an answer, on any branch."""
    out: dict[str, set[str]] = {}
    for thread, checkpoint_id, _ in open_tasks(connection, heads=False, thread_id=thread_id):
        out.setdefault(thread, set()).add(checkpoint_id)
    return {k: frozenset(v) for k, v in out.items()}


def _candidates(connection: Conn, policy: Policy, now: datetime) -> tuple[list[str], int]:
    """Threads some rule may touch, told from ids alone, and how many threads there are."""
    rows = connection.execute(
        "SELECT thread_id, max(newest) AS newest, min(oldest) AS oldest, max(n) AS longest FROM"
        " (SELECT thread_id, checkpoint_ns, max(checkpoint_id) AS newest,"
        " min(checkpoint_id) AS oldest, count(*) AS n FROM checkpoints"
        " WHERE %(ids)s::text[] IS NULL OR thread_id = ANY(%(ids)s) GROUP BY 1, 2) AS lines"
        " GROUP BY thread_id ORDER BY thread_id",
        {"ids": list(policy.thread_ids) if policy.thread_ids is not None else None},
    ).fetchall()
    idle = id_before(now - timedelta(days=policy.idle_days)) if policy.idle_days else ""
    old = id_before(now - timedelta(days=policy.max_age_days)) if policy.max_age_days else ""
    touched = [
        r["thread_id"]
        for r in rows
        if r["newest"] < idle
        or r["oldest"] < old
        or (policy.keep_last is not None and r["longest"] > policy.keep_last)
    ]
    return touched, len(rows)


# ---- the rules -----------------------------------------------------------------------------------


def plan_thread(facts: ThreadFacts, policy: Policy, now: datetime) -> ThreadPlan:
    """What goes from one thread, and what a rule would drop but must stay. Pure."""
    times = [c.at for c in facts.checkpoints if c.at is not None]
    newest, oldest = (max(times), min(times)) if times else (None, None)
    idle = (
        policy.idle_days is not None
        and newest is not None
        and newest < now - timedelta(days=policy.idle_days)
    )
    kept: dict[Place, Kept] = {}
    if idle and not facts.waiting:
        return _result(facts, "idle", {(c.ns, c.id) for c in facts.checkpoints}, {}, newest, oldest)
    if idle:
        for root in facts.waiting:
            kept[("", root)] = Kept("", root, "waiting", "the idle thread waits for a human")
    wanted = _unwanted(facts, policy, now)
    stay = _must_stay(facts, wanted)
    dropped = wanted - set(stay)
    dropped |= _calls_of(facts, {i for ns, i in dropped if ns == ""})
    for place, reason in stay.items():
        if place in wanted and place not in dropped:
            kept.setdefault(place, Kept(*place, reason))
    return _result(facts, "trim" if dropped else "keep", dropped, kept, newest, oldest)


def _unwanted(facts: ThreadFacts, policy: Policy, now: datetime) -> set[Place]:
    """What the rules alone would drop."""
    cutoff = now - timedelta(days=policy.max_age_days) if policy.max_age_days else None
    out: set[Place] = set()
    for ns, line in _by_namespace(facts.checkpoints).items():
        for rank, c in enumerate(line):
            if policy.keep_last is not None and rank >= policy.keep_last:
                out.add((ns, c.id))
            if cutoff is not None and c.at is not None and c.at < cutoff:
                out.add((ns, c.id))
    return out


def _must_stay(facts: ThreadFacts, wanted: set[Place]) -> dict[Place, str]:
    """Place → why it stays, whatever the rules say."""
    stay: dict[Place, str] = {}
    for root in facts.waiting:
        stay[("", root)] = "waiting"
    lines = _by_namespace(facts.checkpoints)
    for ns, line in lines.items():
        head = line[0]
        stay.setdefault((ns, head.id), "latest")
        # Before format 4 work sent to the next step is read from the parent's writes.
        sends = facts.writes.get((ns, head.parent or ""), (0, 0, False))[2]
        if head.format < 4 and head.parent and sends:
            stay.setdefault((ns, head.parent), "pending_sends")
    for ns, line in lines.items():
        needed = [c for c in line if (ns, c.id) not in wanted or (ns, c.id) in stay]
        for place in _delta_ancestors(facts, line, needed):
            stay.setdefault(place, "delta_ancestor")
    return stay


def _delta_ancestors(
    facts: ThreadFacts, line: Sequence[CheckpointFacts], needed: Iterable[CheckpointFacts]
) -> Iterator[Place]:
    """Ancestors from which `needed` checkpoints rebuild their delta channels."""
    ns = line[0].ns
    if any(c.js_deltas for c in line):
        # LangGraph.js marks such threads but names no channels: nothing can be ruled out.
        yield from ((ns, c.id) for c in line)
        return
    channels = frozenset().union(*(c.counters for c in line))
    parents = {c.id: c.parent for c in line}
    for channel in channels:
        stored = {
            c.id: (
                (ns, channel, c.versions.get(channel, "")) in facts.blobs,
                c.inline.get(channel),
                c.versions.get(channel),
            )
            for c in line
        }
        for c in needed:
            has_blob, inline, version = stored[c.id]
            if version is None or has_blob or inline is not None:
                continue
            yield from ((ns, i) for i in walk(parents, stored, c.id).checkpoints)


def _calls_of(facts: ThreadFacts, roots: set[str]) -> set[Place]:
    """Checkpoints of the subgraph calls that ran under these root checkpoints. A subgraph with a
    state of its own across calls has no task id in its namespace and is not one."""
    return {(c.ns, c.id) for c in facts.checkpoints if ":" in c.ns and c.root in roots}


def _by_namespace(
    checkpoints: Iterable[CheckpointFacts],
) -> dict[str, list[CheckpointFacts]]:
    """Checkpoints of each namespace, newest first."""
    out: dict[str, list[CheckpointFacts]] = {}
    for c in sorted(checkpoints, key=lambda c: c.id, reverse=True):
        out.setdefault(c.ns, []).append(c)
    return out


def _result(
    facts: ThreadFacts,
    rule: str,
    dropped: set[Place],
    kept: Mapping[Place, Kept],
    newest: datetime | None,
    oldest: datetime | None,
) -> ThreadPlan:
    blobs = freed_blobs(facts, dropped)
    writes = [facts.writes[p] for p in facts.writes if rule == "idle" or p in dropped]
    return ThreadPlan(
        facts.thread_id,
        rule,
        newest,
        oldest,
        len(facts.checkpoints),
        tuple(sorted(dropped)),
        tuple(sorted(kept.values(), key=lambda k: (k.checkpoint_ns, k.checkpoint_id))),
        sum(w[0] for w in writes),
        len(blobs),
        sum(facts.blobs[b] for b in blobs)
        + sum(w[1] for w in writes)
        + sum(c.octets for c in facts.checkpoints if (c.ns, c.id) in dropped),
    )


def freed_blobs(facts: ThreadFacts, dropped: set[Place]) -> set[BlobKey]:
    """Blobs that go with `dropped`: what they refer to and nothing that stays does. All of them,
    where nothing stays."""
    if len(dropped) == len(facts.checkpoints):
        return set(facts.blobs)
    gone: set[BlobKey] = set()
    live: set[BlobKey] = set()
    for c in facts.checkpoints:
        refs = {(c.ns, channel, version) for channel, version in c.versions.items()}
        if (c.ns, c.id) in dropped:
            gone |= refs
        else:
            live |= refs
    return {b for b in gone - live if b in facts.blobs}


# ---- facts from the database ---------------------------------------------------------------------


def gather(
    connection: Conn, thread_ids: Sequence[str], waiting: Mapping[str, frozenset[str]]
) -> Iterator[ThreadFacts]:
    """Facts of these threads. No blob is read."""
    ids = list(thread_ids)
    checkpoints: dict[str, list[CheckpointFacts]] = {}
    for r in connection.execute(
        "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id,"
        " checkpoint ->> 'ts' AS ts, coalesce((checkpoint ->> 'v')::int, 0) AS v,"
        " checkpoint -> 'channel_versions' AS versions,"
        # Strings can be long and only whether there is one matters.
        " (SELECT coalesce(jsonb_object_agg(e.key, true), '{}') FROM"
        " jsonb_each(coalesce(checkpoint -> 'channel_values', '{}')) AS e"
        " WHERE e.value <> 'null') AS inline,"
        " metadata -> 'parents' ->> '' AS root, metadata -> %s AS counters,"
        " metadata ? %s AS js_deltas,"
        " octet_length(checkpoint::text) + octet_length(metadata::text) AS octets"
        " FROM checkpoints WHERE thread_id = ANY(%s)",
        (COUNTERS, JS_MARK, ids),
    ):
        checkpoints.setdefault(r["thread_id"], []).append(
            CheckpointFacts(
                r["checkpoint_ns"],
                r["checkpoint_id"],
                r["parent_checkpoint_id"],
                moment(r["ts"], r["checkpoint_id"]),
                r["v"],
                {k: str(v) for k, v in (r["versions"] or {}).items()},
                r["inline"],
                r["root"],
                frozenset(r["counters"] if isinstance(r["counters"], dict) else ()),
                r["js_deltas"],
                r["octets"],
            )
        )
    blobs: dict[str, dict[BlobKey, int]] = {}
    for r in connection.execute(
        "SELECT thread_id, checkpoint_ns, channel, version, octet_length(blob) AS octets"
        " FROM checkpoint_blobs WHERE thread_id = ANY(%s)",
        (ids,),
    ):
        key = (r["checkpoint_ns"], r["channel"], r["version"])
        blobs.setdefault(r["thread_id"], {})[key] = r["octets"] or 0
    writes: dict[str, dict[Place, tuple[int, int, bool]]] = {}
    for r in connection.execute(
        "SELECT thread_id, checkpoint_ns, checkpoint_id, count(*) AS n,"
        " sum(octet_length(blob)) AS octets, bool_or(channel = %s) AS sends"
        " FROM checkpoint_writes WHERE thread_id = ANY(%s) GROUP BY 1, 2, 3",
        (TASKS, ids),
    ):
        place = (r["checkpoint_ns"], r["checkpoint_id"])
        writes.setdefault(r["thread_id"], {})[place] = (r["n"], int(r["octets"] or 0), r["sends"])
    for thread_id in ids:
        if thread_id in checkpoints:
            yield ThreadFacts(
                thread_id,
                checkpoints[thread_id],
                blobs.get(thread_id, {}),
                writes.get(thread_id, {}),
                waiting.get(thread_id, frozenset()),
            )
