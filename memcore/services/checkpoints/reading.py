"""One checkpoint, read in one snapshot of the database and decoded safely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from psycopg import sql

from memcore.errors import NotFound
from memcore.services.checkpoints import chat
from memcore.services.checkpoints.ages import first_seen
from memcore.services.checkpoints.decode import (
    MAX_BYTES,
    Decoded,
    class_name,
    decode,
    is_delta,
    opaque,
    plain_json,
    readable,
    unwrap,
    unwrap_delta,
    visible,
)
from memcore.services.checkpoints.deltas import delta_channels, delta_value
from memcore.services.checkpoints.index import moment, path_column, step_of
from memcore.services.checkpoints.store import CheckpointStore, Conn
from memcore.services.checkpoints.tasks import (
    ERROR,
    INTERRUPT,
    NULL_TASK,
    RESUME,
    TASKS,
    WriteKey,
    is_internal,
    next_nodes,
    node_of,
    read_tasks,
    ready,
    status_of,
)
from memcore.services.checkpoints.values import (
    Channel,
    ChatMessage,
    Checkpoint,
    Interrupt,
    PendingWrite,
    ThreadStatus,
    ToolCall,
)
from memcore.text import shorten


def checkpoint(
    store: CheckpointStore, thread_id: str, checkpoint_id: str | None = None, ns: str = ""
) -> Checkpoint:
    """A checkpoint of a thread's namespace (default: the root graph), the newest one without
    `checkpoint_id`. Raises NotFound."""
    with store.reading() as connection:
        row = connection.execute(
            "SELECT checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM checkpoints"
            " WHERE thread_id = %s AND checkpoint_ns = %s"
            " AND (%s::text IS NULL OR checkpoint_id = %s)"
            " ORDER BY checkpoint_id DESC LIMIT 1",
            (thread_id, ns, checkpoint_id, checkpoint_id),
        ).fetchone()
        if row is None:
            what = f"checkpoint {checkpoint_id}" if checkpoint_id else "checkpoint"
            where = f" in namespace {ns!r}" if ns else ""
            raise NotFound(
                f"Thread {thread_id!r} has no {what}{where}.",
                hint="It may have been pruned: restore it from the archive to see it again.",
            )
        return _Reading(connection, thread_id, ns, row).result()


class _Reading:
    def __init__(self, connection: Conn, thread_id: str, ns: str, row: Mapping[str, Any]) -> None:
        self.connection = connection
        self.thread_id, self.ns, self.row = thread_id, ns, row
        self.id: str = row["checkpoint_id"]
        self.body: Mapping[str, Any] = row["checkpoint"] or {}
        self.metadata: Mapping[str, Any] = row["metadata"] or {}
        self.created_at = moment(self.body.get("ts"), self.id)
        self.versions: dict[str, str] = {
            k: str(v) for k, v in (self.body.get("channel_versions") or {}).items()
        }

    def result(self) -> Checkpoint:
        channels = self._channels()
        by_name = {c.name: c for c in channels}
        sends = _sends(by_name[TASKS].value) if TASKS in by_name else {}
        writes = self._writes(sends)
        tasks = read_tasks(
            (WriteKey(w.task_id, w.idx, w.channel, path) for w, path in writes), sends
        )
        holding = {
            c.name
            for c in channels
            if c.storage == "inline" or (c.storage == "blob" and ready(c.name, c.value))
        }
        due = next_nodes(
            self.body.get("channel_versions") or {},
            self.body.get("versions_seen") or {},
            holding,
            tasks,
        )
        newest, passed = self._place()
        spoken = _conversation(channels)
        talk = self._dated(chat.messages(spoken.value), spoken.name) if spoken else ()
        calls = chat.unanswered(talk)
        pending = [w for w, _ in writes]
        interrupts = self._interrupts(pending, {t.id for t in tasks if t.finished}, talk)
        status = ThreadStatus.PASSED if passed else status_of(tasks, due, len(sends))
        if status is ThreadStatus.WAITING and all(i.answered for i in interrupts):
            status = ThreadStatus.UNFINISHED
        return Checkpoint(
            self.thread_id,
            self.ns,
            self.id,
            self.row["parent_checkpoint_id"],
            step_of(self.metadata),
            str(self.metadata.get("source") or ""),
            self.created_at,
            status,
            newest,
            due + tuple(dict.fromkeys(sends.values())),
            self.metadata,
            talk,
            next((t for c in channels if c.name == "todos" if (t := chat.todos(c.value))), ()),
            channels,
            calls,
            tuple(interrupts),
            tuple(pending),
            tuple(
                f"{w.node}: {_error(w.value)}" if w.node else _error(w.value)
                for w in pending
                if w.channel == ERROR
            ),
        )

    def _place(self) -> tuple[bool, bool]:
        """Whether it is the newest of its namespace, and whether another follows from it."""
        row = self.connection.execute(
            "SELECT max(checkpoint_id) AS newest, bool_or(parent_checkpoint_id = %s) AS passed"
            " FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s",
            (self.id, self.thread_id, self.ns),
        ).fetchone()
        return bool(row and row["newest"] == self.id), bool(row and row["passed"])

    # ---- channels --------------------------------------------------------------------------------

    def _channels(self) -> tuple[Channel, ...]:
        inline: Mapping[str, Any] = self.body.get("channel_values") or {}
        blobs = self._blobs()
        known = self.body.get("updated_channels")
        updated = set(known) if isinstance(known, list) else self._updated()
        deltas = delta_channels(self.connection, self.thread_id, self.ns)
        out = []
        for name in sorted({*self.versions, *inline}):
            base = Channel(
                visible(name),
                self.versions.get(name, ""),
                "empty",
                "",
                0,
                name in updated,
                is_internal(name),
            )
            if name in blobs:
                kind, octets, found = blobs[name]
                base = replace(
                    base, storage="blob", kind=kind, octets=octets,
                    value=found.value, problem=found.problem, types=found.types,
                )  # fmt: skip
                if name in deltas or is_delta(found.value):
                    base = replace(base, storage="delta", value=unwrap_delta(found.value))
            elif name in inline:
                found = plain_json(inline[name])
                base = replace(
                    base, storage="inline", kind="json", octets=len(str(inline[name])),
                    value=found.value, problem=found.problem, types=found.types,
                )  # fmt: skip
            elif name in deltas:
                rebuilt = delta_value(self.connection, self.thread_id, self.ns, self.id, name)
                base = replace(
                    base, storage="delta", kind="msgpack", octets=rebuilt.octets,
                    value=rebuilt.value, problem=rebuilt.problem, types=rebuilt.types,
                    deltas=rebuilt.writes,
                )  # fmt: skip
            out.append(base)
        return tuple(out)

    def _blobs(self) -> dict[str, tuple[str, int, Decoded]]:
        rows = self.connection.execute(
            "SELECT b.channel, b.type, octet_length(b.blob) AS octets,"
            " CASE WHEN octet_length(b.blob) <= %s THEN b.blob ELSE substr(b.blob, 1, 32) END"
            " AS blob FROM unnest(%s::text[], %s::text[]) AS v(channel, version)"
            " JOIN checkpoint_blobs b ON b.thread_id = %s AND b.checkpoint_ns = %s"
            " AND b.channel = v.channel AND b.version = v.version WHERE b.type <> 'empty'",
            (MAX_BYTES, list(self.versions), list(self.versions.values()), self.thread_id, self.ns),
        )
        return {
            r["channel"]: (r["type"], r["octets"] or 0, _decoded(r["type"], r["blob"], r["octets"]))
            for r in rows
        }

    def _updated(self) -> set[str]:
        """Channels whose version differs from the parent's, where the checkpoint does not say."""
        parent = self.connection.execute(
            "SELECT checkpoint -> 'channel_versions' AS versions FROM checkpoints"
            " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s",
            (self.thread_id, self.ns, self.row["parent_checkpoint_id"]),
        ).fetchone()
        before = {k: str(v) for k, v in ((parent or {}).get("versions") or {}).items()}
        return {k for k, v in self.versions.items() if before.get(k) != v}

    # ---- writes ----------------------------------------------------------------------------------

    def _writes(self, sends: Mapping[int, str]) -> list[tuple[PendingWrite, str]]:
        """Writes recorded on this checkpoint with their task paths, in the order they apply."""
        query = sql.SQL(
            "SELECT w.task_id, w.idx, w.channel, w.type, {path} AS task_path,"
            " octet_length(w.blob) AS octets,"
            " CASE WHEN octet_length(w.blob) <= %s THEN w.blob ELSE substr(w.blob, 1, 32) END"
            " AS blob FROM checkpoint_writes w WHERE w.thread_id = %s AND w.checkpoint_ns = %s"
            " AND w.checkpoint_id = %s ORDER BY task_path, w.task_id, w.idx"
        ).format(path=path_column(self.connection))
        out = []
        for r in self.connection.execute(query, (MAX_BYTES, self.thread_id, self.ns, self.id)):
            found = _decoded(r["type"], r["blob"], r["octets"])
            task_id = r["task_id"]
            node = "" if task_id == NULL_TASK else node_of(r["task_path"], task_id, sends)
            write = PendingWrite(
                task_id, visible(node), r["idx"], visible(r["channel"]), r["type"] or "",
                r["octets"] or 0, found.value, found.problem,
            )  # fmt: skip
            out.append((write, r["task_path"]))
        return out

    def _interrupts(
        self,
        writes: list[PendingWrite],
        finished: set[str],
        talk: tuple[ChatMessage, ...],
    ) -> list[Interrupt]:
        answer = next(
            (w.value for w in writes if w.task_id == NULL_TASK and w.channel == RESUME), None
        )
        offered = any(w.task_id == NULL_TASK and w.channel == RESUME for w in writes)
        # A task records the answers it used when it stops again or ends. One that was offered and
        # that no task used last has not been consumed: the run died, or is running.
        used = any(
            isinstance(given := unwrap(w.value), list) and given and given[-1] == answer
            for w in writes
            if w.channel == RESUME and w.task_id != NULL_TASK
        )
        out: list[Interrupt] = []
        asked_ids: set[str] = set()
        for w in writes:
            if w.channel != INTERRUPT or w.task_id in finished:
                continue
            raw = w.value if isinstance(w.value, list) else [w.value]
            for item in raw:
                body = unwrap(item)
                body = body if isinstance(body, Mapping) else {"value": body}
                asked = body.get("value", body)
                key = str(body.get("id") or "")
                if key and key in asked_ids:
                    continue  # a task that a functional graph called passes its question up
                asked_ids.add(key)
                out.append(
                    Interrupt(
                        key, asked, w.node, w.task_id, self.ns,
                        self.created_at, offered and not used, chat.approvals(asked, talk),
                    )
                )  # fmt: skip
        return out

    # ---- ages ------------------------------------------------------------------------------------

    def _dated(self, talk: tuple[ChatMessage, ...], channel: str) -> tuple[ChatMessage, ...]:
        """The chat, its unanswered tool calls with the time they came into the state."""
        ids = [c.id for c in chat.unanswered(talk) if c.id]
        if not ids:
            return talk
        first = first_seen(self.connection, self.thread_id, self.ns, self.id, channel, ids)

        def dated(call: ToolCall) -> ToolCall:
            if call.status not in ("pending", "dangling"):
                return call
            return replace(call, since=first.get(call.id) or self.created_at)

        return tuple(
            replace(m, tool_calls=tuple(dated(c) for c in m.tool_calls)) if m.tool_calls else m
            for m in talk
        )


def _decoded(kind: str | None, blob: Any, octets: int | None) -> Decoded:
    if octets and octets > MAX_BYTES:
        reason = f"larger than {MAX_BYTES // (1024 * 1024)} MB"
        return Decoded(opaque(reason, bytes(blob or b""), octets), reason)
    return decode(kind, blob)


def _conversation(channels: tuple[Channel, ...]) -> Channel | None:
    """The `messages` channel; without one, the first channel that holds messages."""
    named = next((c for c in channels if c.name == "messages"), None)
    if named is not None:
        return named
    return next((c for c in channels if not c.internal and chat.looks_like_messages(c.value)), None)


def _sends(value: Any) -> dict[int, str]:
    """Nodes that were sent work (`Send`), by their place."""
    out = {}
    items = unwrap(value)
    for i, item in enumerate(items if isinstance(items, list) else ()):
        args = unwrap(item)
        if class_name(item) == "Send" and isinstance(args, list) and args:
            out[i] = str(args[0])
    return out


def _error(value: Any) -> str:
    value = readable(value)
    return shorten(value if isinstance(value, str) else str(value), 2000)
