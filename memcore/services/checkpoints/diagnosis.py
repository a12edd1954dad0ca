"""What an engineer wants to know first about a checkpoint: does it wait, has it failed, is it
stuck, and what to do. Pure: no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from memcore.services.checkpoints.decode import readable
from memcore.services.checkpoints.values import Checkpoint, Finding, Interrupt, ThreadStatus
from memcore.text import shorten

# What a strict saver rebuilds without being told (langgraph/checkpoint/serde/_msgpack.py).
_KNOWN_MODULES = (
    "builtins", "collections", "datetime", "decimal", "ipaddress", "langchain_core.documents.base",
    "langchain_core.messages", "langchain.schema", "langgraph.store.base", "langgraph.types",
    "langgraph.checkpoint.serde.types", "numpy", "pathlib", "re", "uuid", "zoneinfo",
)  # fmt: skip


def diagnose(checkpoint: Checkpoint, *, now: datetime) -> tuple[Finding, ...]:
    """Findings, the most urgent first. One that others follow from neither waits nor runs."""
    found = list(_findings(checkpoint, now))
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(found, key=lambda f: order[f.level]))


def _findings(checkpoint: Checkpoint, now: datetime) -> Iterator[Finding]:
    if checkpoint.status is not ThreadStatus.PASSED:
        yield from _standing(checkpoint, now)
    dangling = [c for c in checkpoint.pending_tool_calls if c.status == "dangling"]
    if dangling:
        names = ", ".join(f"{c.name} ({c.id or 'no id'})" for c in dangling)
        yield Finding(
            "error",
            f"{_count(len(dangling), 'tool call')} never answered, though the chat went on",
            f"Chat models refuse such a history. Add a tool message for each, or remove the call: "
            f"{names}.",
        )
    left = [c for c in checkpoint.pending_tool_calls if c.status == "pending"]
    if left and checkpoint.newest and checkpoint.status is ThreadStatus.FINISHED:
        yield Finding(
            "warning",
            f"The run ended with {_count(len(left), 'tool call')} unanswered",
            "The next message will leave a history that chat models refuse: "
            + ", ".join(c.name for c in left)
            + ".",
        )
    for channel in checkpoint.channels:
        if channel.problem:
            yield Finding(
                "warning",
                f"Channel {channel.name} is not shown in full",
                f"{channel.problem[:1].upper()}{channel.problem[1:]}. {channel.octets:,} bytes.",
            )
    unknown = sorted(
        {t for c in checkpoint.channels for t in c.types if not t.startswith(_KNOWN_MODULES)}
    )
    if unknown:
        yield Finding(
            "info",
            f"State holds {_count(len(unknown), 'class', 'classes')} a strict saver must be told "
            "about",
            "Name them in saver(allow=…), or they come back as plain values: "
            + ", ".join(unknown)
            + ". Nothing was imported to show them.",
        )
    deltas = [c.name for c in checkpoint.channels if c.storage == "delta"]
    if deltas:
        yield Finding(
            "info",
            f"{_count(len(deltas), 'delta channel')}: {', '.join(deltas)}",
            "Rebuilt from the last snapshot and the writes of later ancestors; those must be kept.",
        )


def _standing(checkpoint: Checkpoint, now: datetime) -> Iterator[Finding]:
    age = _age(checkpoint.created_at, now)
    waiting = [i for i in checkpoint.interrupts if not i.answered]
    answered = [i for i in checkpoint.interrupts if i.answered]
    for interrupt in waiting:
        yield Finding(
            "warning",
            f"Waiting for a human at {interrupt.node or 'a node'} for {age}",
            _question(interrupt),
        )
    if answered:
        yield Finding(
            "error",
            f"Answered, but the run has not got past {answered[0].node or 'the node'}",
            f"The answer is stored and the process is gone or still at work ({age} since the "
            "question). Resume without a value to go on with the stored answer.",
        )
    for error in checkpoint.errors:
        if "CancelledError(" in error and len(checkpoint.errors) > 1:
            yield Finding("info", "A task was cancelled because another failed", error)
        else:
            yield Finding("error", "A task failed", error)
    if checkpoint.status is ThreadStatus.UNFINISHED and not answered:
        done = len({w.task_id for w in checkpoint.pending_writes if w.node and w.idx >= 0})
        part = f" {_count(done, 'task')} of this step {'has' if done == 1 else 'have'} results."
        yield Finding(
            "warning",
            f"Due to run: {', '.join(checkpoint.next_nodes) or 'a task'}; nothing done for {age}",
            "It is running now, was killed, or stopped at a breakpoint (interrupt_before). Resume "
            f"without a value to go on.{part if done else ''}",
        )


def _question(interrupt: Interrupt) -> str:
    if interrupt.actions:
        return "Asks to approve " + ", ".join(a.name for a in interrupt.actions) + "."
    value = readable(interrupt.value)
    if isinstance(value, dict) and isinstance(value.get("question"), str):
        value = value["question"]
    return shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 300)


def _age(since: datetime | None, now: datetime) -> str:
    if since is None:
        return "an unknown time"
    seconds = max(0.0, (now - since).total_seconds())
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return _count(int(seconds // size), unit)
    return _count(int(seconds), "second")


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
