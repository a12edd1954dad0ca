"""The write side: a `PostgresSaver` for agents on the configured database, and resuming a thread.

The saver decodes under a strict allow-list: a class that is not on it comes back as plain values
instead of being imported. It also saves what the stock saver cannot: strings with NUL or broken
characters and numbers that are not finite, which PostgreSQL's JSON refuses, go to a blob.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from memcore.errors import Conflict, InvalidInput, MissingExtra
from memcore.services.checkpoints.store import CheckpointStore
from memcore.services.checkpoints.tasks import NULL_TASK, RESUME, WriteKey, read_tasks

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres import PostgresSaver

Allowed = Iterable[type | tuple[str, str]]
_SETUP = threading.Lock()


def open_saver(store: CheckpointStore, allow: Allowed = ()) -> PostgresSaver:
    """A saver on the checkpoint database, its tables made where they are missing. `allow`: classes
    of the agent's state that may be rebuilt, beyond the messages and plain types LangGraph knows
    to be safe. It lives as long as the store. Raises MissingExtra, PermissionDenied,
    DatabaseError."""
    kind = _saver_class()
    try:
        from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    except ImportError:
        raise MissingExtra("langgraph", "langgraph") from None
    listed = [(a.__module__, a.__name__) if isinstance(a, type) else a for a in allow]
    serde = JsonPlusSerializer(
        pickle_fallback=False,
        allowed_msgpack_modules=listed or None,
        allowed_json_modules=None,
    )
    saver = kind(store.saver_pool(), serde=serde)
    with store.explained(), _SETUP:
        saver.setup()
    return saver


def _saver_class() -> type[PostgresSaver]:
    try:
        from langgraph.checkpoint.postgres import PostgresSaver
    except ImportError:
        raise MissingExtra("langgraph-checkpoint-postgres", "langgraph") from None

    class Saver(PostgresSaver):
        """PostgresSaver, but for scalars that PostgreSQL's JSON cannot hold."""

        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            values = checkpoint["channel_values"]
            awkward = {k: _Boxed(v) for k, v in values.items() if not _fits_json(v)}
            if awkward:
                checkpoint = {**checkpoint, "channel_values": {**values, **awkward}}
            return super().put(config, checkpoint, metadata, new_versions)

        def _dump_blobs(
            self, thread_id: str, checkpoint_ns: str, values: Any, versions: Any
        ) -> Any:
            plain = {k: v.value if isinstance(v, _Boxed) else v for k, v in values.items()}
            return super()._dump_blobs(thread_id, checkpoint_ns, plain, versions)

    return Saver


class _Boxed:
    """A scalar on its way into a blob: the stock saver keeps bare scalars in the JSON row."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _fits_json(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
    return not isinstance(value, float) or math.isfinite(value)


def resume(
    graph: Any,
    thread_id: str,
    value: Any = None,
    *,
    answers: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Any:
    """Go on with a thread of a compiled graph, and return what the graph returns.

    Waiting for one answer: `value` is it. Waiting for several: `answers` maps interrupt ids to
    answers. Killed or stopped at a breakpoint: neither is needed, the run goes on from its last
    checkpoint with the results its tasks had saved. Raises Conflict where nothing is left to do or
    an answer is missing, InvalidInput where it cannot be told which question `value` answers."""
    try:
        from langgraph.types import Command
    except ImportError:
        raise MissingExtra("langgraph", "langgraph") from None
    given = dict((config or {}).get("configurable") or {})
    run = {**(config or {}), "configurable": {**given, "thread_id": thread_id}}
    state = graph.get_state(run)
    saved = graph.checkpointer.get_tuple(run)
    writes = list(saved.pending_writes or ()) if saved else []
    tasks = read_tasks(WriteKey(task, n, channel) for n, (task, channel, _) in enumerate(writes))
    # LangGraph goes on listing the questions of tasks that are finished, while others are not.
    finished = {t.id for t in tasks if t.finished}
    waiting = [i for task in state.tasks if task.id not in finished for i in task.interrupts]
    ids = [i.id for i in waiting]
    if answers is not None:
        if unknown := sorted(set(answers) - set(ids)):
            raise InvalidInput(
                f"Thread {thread_id!r} does not wait for an answer to {', '.join(unknown)}.",
                hint=f"It waits for: {', '.join(ids) or 'none'}.",
            )
        return graph.invoke(Command(resume=dict(answers)), run)
    if waiting and value is not None:
        if len(waiting) > 1:
            raise InvalidInput(
                f"Thread {thread_id!r} waits for {len(waiting)} answers, and one was given.",
                hint=f"Pass answers={{id: answer}} for: {', '.join(ids)}.",
            )
        return graph.invoke(Command(resume=value), run)
    if value is not None:
        raise Conflict(
            f"Thread {thread_id!r} waits for no answer.",
            hint="Resume it without a value, or send it a new message.",
        )
    if waiting and not _answered(writes):
        raise Conflict(
            f"Thread {thread_id!r} waits for an answer: {str(waiting[0].value)[:200]}",
            hint="Pass it as value.",
        )
    if not state.next:
        raise Conflict(f"Thread {thread_id!r} is finished: there is nothing to resume.")
    return graph.invoke(None, run)


def _answered(writes: Iterable[tuple[str, str, Any]]) -> bool:
    """Whether an answer is stored that no task has used: the run that brought it died."""
    given = [(task, value) for task, channel, value in writes if channel == RESUME]
    used = [v[-1] for task, v in given if task != NULL_TASK and isinstance(v, list) and v]
    return any(task == NULL_TASK and v not in used for task, v in given)
