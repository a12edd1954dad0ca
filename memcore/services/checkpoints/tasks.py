"""What a superstep's tasks did, read from the writes recorded for it. Pure: no I/O.

The rule is LangGraph's own (pregel/_task_status.py): a task is finished if and only if it recorded
an output write, that is one to any channel but the control ones. Its interrupt waits for an answer
while it is unfinished. A `__resume__` write never means finished: it may answer an earlier question
of a task that now waits on a later one, so it cannot be used to tell waiting from answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memcore.services.checkpoints.values import ThreadStatus

ERROR, ERROR_SOURCE = "__error__", "__error_source_node__"
INTERRUPT, RESUME = "__interrupt__", "__resume__"
CONTROL = (ERROR, ERROR_SOURCE, INTERRUPT, RESUME)
SCHEDULED = "__scheduled__"
TASKS = "__pregel_tasks"
NULL_TASK = "00000000-0000-0000-0000-000000000000"
_BRANCH = "branch:to:"
_JOIN = "join:"
_NOT_NODES = ("__input__", "__interrupt__", "__snapshot_bumps__")


@dataclass(frozen=True, slots=True)
class WriteKey:
    """A recorded write without its value."""

    task_id: str
    idx: int
    channel: str
    task_path: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    node: str
    finished: bool
    interrupted: bool
    """It asked, and is not finished."""
    failed: bool
    answered: bool
    """An answer was offered and it has used none yet: the run that brought it died, or is at work.
    An answer to a later question cannot be told from keys alone."""


def node_of(task_path: str, task_id: str = "", sends: Mapping[int, str] | None = None) -> str:
    """The node a task path names: `~__pregel_pull, plan` → plan. A task sent by another
    (`~__pregel_push, 0000000001`) is looked up in `sends`; unknown ones are named by their id."""
    parts = task_path.lstrip("~").split(", ")
    if len(parts) >= 2 and parts[0] == "__pregel_pull":
        return parts[1]
    if len(parts) == 2 and parts[0] == "__pregel_push" and parts[1].isdigit():
        sent = (sends or {}).get(int(parts[1]))
        if sent:
            return sent
    return f"task {task_id[:8]}" if task_id else ""


def read_tasks(writes: Iterable[WriteKey], sends: Mapping[int, str] | None = None) -> list[Task]:
    """The tasks that recorded something, in the order of their first write. Writes of the null
    task are input to the superstep, not a task's."""
    seen: dict[str, dict[str, Any]] = {}
    offered = False
    for write in writes:
        if write.task_id == NULL_TASK:
            offered = offered or write.channel == RESUME
            continue
        task = seen.setdefault(write.task_id, {"path": "", "channels": set()})
        task["channels"].add(write.channel)
        task["path"] = task["path"] or write.task_path
    out = []
    for task_id, task in seen.items():
        channels: set[str] = task["channels"]
        finished = bool(channels - {*CONTROL, SCHEDULED})
        out.append(
            Task(
                task_id,
                node_of(task["path"], task_id, sends),
                finished,
                INTERRUPT in channels and not finished,
                ERROR in channels,
                offered and RESUME not in channels,
            )
        )
    return out


def next_nodes(
    versions: Mapping[str, Any],
    seen: Mapping[str, Mapping[str, Any]],
    available: Iterable[str],
) -> tuple[str, ...]:
    """Nodes due to run after a checkpoint, told from the checkpoint alone.

    A node runs when a channel that triggers it holds a value newer than the one the node saw.
    `versions`: channel_versions; `seen`: versions_seen; `available`: channels that hold a value.
    Triggers are the `branch:to:<node>` channels, and those a node has a version of in `seen`. A
    `join:a+b:c` channel holds a value before all of its sources are done, so it does not count.
    """
    due = set()
    holding = set(available)
    for channel in holding:
        version = versions.get(channel)
        if version is None or channel.startswith(_JOIN):
            continue
        readers = {n for n, known in seen.items() if channel in known and n not in _NOT_NODES}
        if channel.startswith(_BRANCH):
            readers.add(channel.removeprefix(_BRANCH))
        elif channel == "__start__":
            readers.add("__start__")
        due |= {n for n in readers if _newer(version, seen.get(n, {}).get(channel))}
    return tuple(sorted(due))


def _newer(version: Any, known: Any) -> bool:
    if known is None:
        return True
    if isinstance(version, type(known)):
        return bool(version > known)
    return str(version) > str(known)


def status_of(tasks: Iterable[Task], due: Iterable[str], sends: int = 0) -> ThreadStatus:
    """What a thread that stands at this checkpoint is doing. An error counts until its superstep
    is over: a task that fails may have recorded output too."""
    tasks = list(tasks)
    if any(t.interrupted and not t.answered for t in tasks):
        return ThreadStatus.WAITING
    if any(t.failed for t in tasks):
        return ThreadStatus.FAILED
    if sends or any(True for _ in due):
        return ThreadStatus.UNFINISHED
    return ThreadStatus.FINISHED


def is_internal(channel: str) -> bool:
    """True for LangGraph's bookkeeping channels."""
    return channel.startswith(("__", _BRANCH, _JOIN)) or channel.startswith("start:")
