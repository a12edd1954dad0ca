"""What a superstep's tasks did, read from the writes recorded for it. Pure: no I/O.

The rule is LangGraph's own (pregel/_task_status.py): a task is finished if and only if it recorded
an output write, that is one to any channel but the control ones. Its interrupt waits for an answer
while it is unfinished. A `__resume__` write never means finished: it may answer an earlier question
of a task that now waits on a later one, so it cannot be used to tell waiting from answered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memcore.services.checkpoints.decode import unwrap
from memcore.services.checkpoints.values import ThreadStatus

ERROR, ERROR_SOURCE = "__error__", "__error_source_node__"
INTERRUPT, RESUME = "__interrupt__", "__resume__"
CONTROL = (ERROR, ERROR_SOURCE, INTERRUPT, RESUME)
SCHEDULED = "__scheduled__"
TASKS, START = "__pregel_tasks", "__start__"
NULL_TASK = "00000000-0000-0000-0000-000000000000"
_BRANCH = "branch:to:"
_JOIN = "join:"
_NOT_NODES = ("__input__", "__interrupt__", "__snapshot_bumps__")
SENT_TASK = "sent task"
"""A task made by a `Send`, where the value that names its node was not read."""
_PULLED = re.compile(r"~__pregel_pull, ([^,]+)")
_SENT = re.compile(r"~?__pregel_push, (\d+)(, .*)?")


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
    """The node a task path names: `~__pregel_pull, plan` → plan, and so does a task that a
    functional graph's `plan` called (`~__pregel_push, ~__pregel_pull, plan, …`). A task sent by
    another (`~__pregel_push, 0000000001, …`) is looked up in `sends`; older LangGraph has no
    paths."""
    pulled = _PULLED.search(task_path)
    if pulled:
        return pulled.group(1)
    sent = _SENT.fullmatch(task_path)
    if sent:
        return (sends or {}).get(int(sent.group(1))) or SENT_TASK
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


def named(nodes: Iterable[str]) -> tuple[str, ...]:
    """Each node once, in order; tasks whose node is not known are counted."""
    found = Counter(nodes)
    many = found.pop(SENT_TASK, 0)
    sent = [SENT_TASK] if many == 1 else [f"{many} {SENT_TASK}s"] if many else []
    return (*found, *sent)


def next_nodes(
    versions: Mapping[str, Any],
    seen: Mapping[str, Mapping[str, Any]],
    available: Iterable[str],
    tasks: Iterable[Task] = (),
) -> tuple[str, ...]:
    """Nodes due to run after a checkpoint, told from the checkpoint alone.

    A node runs when a channel that triggers it holds a value newer than the one the node saw.
    `versions`: channel_versions; `seen`: versions_seen; `available`: channels that hold a value
    (of control channels, those that are `ready`). Triggers are the `branch:to:<node>` and
    `join:<nodes>:<node>` channels, and those a node has a version of in `seen`. The node that
    starts a functional graph has no channel of its own: it is told from its `tasks`."""
    due = set()
    for channel in set(available):
        version = versions.get(channel)
        if version is None:
            continue
        readers = {n for n, known in seen.items() if channel in known and n not in _NOT_NODES}
        if channel.startswith(_BRANCH):
            readers.add(channel.removeprefix(_BRANCH))
        elif channel.startswith(_JOIN):
            readers.add(channel.rsplit(":", 1)[-1])
        elif channel == START:
            readers.add(START)
        due |= {n for n in readers if _newer(version, seen.get(n, {}).get(channel))}
    started = {t.node for t in tasks if t.node and t.node != START}
    if due == {START} and started:
        due = started
    return tuple(sorted(due))


def ready(channel: str, value: Any) -> bool:
    """Whether the stored (decoded) value of a control channel lets its reader run: a join once all
    of its sources are done, and one of a deferred node once nothing else is left to do."""
    value = unwrap(value)
    if channel.startswith(_JOIN):
        finished = True
        if isinstance(value, list) and len(value) == 2 and isinstance(value[1], bool):
            value, finished = unwrap(value[0]), value[1]
        if not isinstance(value, list):
            return False
        # `join:a+b:c` names its sources, in an order that the set of those that are done has lost;
        # fewer of them are shorter.
        names = channel.removeprefix(_JOIN).rsplit(":", 1)[0]
        return finished and len("+".join(map(str, value))) == len(names)
    if channel.startswith(_BRANCH) and isinstance(value, list) and len(value) == 2:
        return value[1] is not False
    return True


def is_control(channel: str) -> bool:
    """True for the channels whose stored values say which node runs next."""
    return channel.startswith((_BRANCH, _JOIN))


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
