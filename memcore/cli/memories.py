"""Commands on memories: add, memories, status-change, libraries."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from memcore.cli.output import (
    command,
    document,
    opened,
    subject_arguments,
    subject_of,
    table,
)
from memcore.errors import InvalidInput
from memcore.models import Actor, MemoryType, Scope, Status
from memcore.services.memories import Filter
from memcore.services.transfer import Form


def register(commands: Any) -> None:
    add = command(commands, "add", _add, "Store one memory, if the gate lets it in.")
    add.add_argument("text")
    subject_arguments(add)
    add.add_argument("--type", default="fact", choices=[str(t) for t in MemoryType])
    add.add_argument("--scope", default="user", choices=[str(s) for s in Scope])
    add.add_argument("--confidence", type=float, default=0.8)
    add.add_argument("--title", default="")
    add.add_argument("--tag", action="append", default=[], help="may be given several times")

    listing = command(commands, "memories", _memories, "List memories, newest first.")
    listing.add_argument("--library")
    listing.add_argument("--user", help="only what this user may see")
    listing.add_argument("--status", action="append", default=[], choices=[str(s) for s in Status])
    listing.add_argument(
        "--type", action="append", default=[], choices=[str(t) for t in MemoryType]
    )
    listing.add_argument("--scope", action="append", default=[], choices=[str(s) for s in Scope])
    listing.add_argument("--text", default="", help="part of the title or content")
    listing.add_argument("--limit", type=int, default=50)
    listing.add_argument("--offset", type=int, default=0)

    bring = command(commands, "import", _import, "Import memories from JSON, JSON Lines or CSV.")
    bring.add_argument("file", help="a path, or - for standard input")
    subject_arguments(bring)
    bring.add_argument("--dry-run", action="store_true", help="read and report, store nothing")

    take = command(commands, "export", _export, "Export memories as JSON Lines or CSV.")
    take.add_argument("file", help="a path, or - for standard output")
    take.add_argument("--library", required=True)
    take.add_argument("--user", help="only what this user may see")
    take.add_argument("--status", action="append", default=[], choices=[str(s) for s in Status])

    change = command(commands, "status-change", _status, "Change the status of a memory.")
    change.add_argument("memory_id")
    change.add_argument("status", choices=["active", "archived", "suppressed"])
    change.add_argument("--user", help="act as this user; without it, as the operator")

    undo = command(commands, "undo", _undo, "Take back one act on memories, such as an import.")
    undo.add_argument("batch_id", help="what the act printed as its batch_id")
    undo.add_argument("--user", help="act as this user; without it, as the operator")


def actor_of(user: str | None) -> Actor:
    """The user named, or the operator at this terminal."""
    return Actor(user) if user else Actor("operator", operator=True)


def _add(arguments: argparse.Namespace) -> int:
    with opened() as core:
        added = core.memories.add_explicit_memory(
            arguments.text,
            subject=subject_of(core, arguments),
            memory_type=arguments.type,
            scope=arguments.scope,
            confidence=arguments.confidence,
            title=arguments.title,
            tags=tuple(arguments.tag),
        )
    verdict = added.verdict
    if arguments.json:
        document(
            {
                "accepted": verdict.accepted,
                "outcome": verdict.outcome,
                "blocked_by": verdict.blocked_by,
                "matched_id": verdict.matched_id,
                "checks": verdict.checks,
                "memory": added.memory,
                "decision_id": added.decision_id,
            }
        )
    else:
        table(
            ("check", "passed", "observed", "limit", "note"),
            ((c.name, c.passed, c.observed, c.limit, c.note) for c in verdict.checks),
        )
        print(f"{verdict.outcome}: {added.memory.id if added.memory else verdict.blocked_by}")
    return 0 if verdict.accepted else 1


def _memories(arguments: argparse.Namespace) -> int:
    with opened() as core:
        page = core.memories.browse(
            Filter(
                library_id=core.libraries.get(arguments.library).id if arguments.library else None,
                types=tuple(MemoryType(t) for t in arguments.type),
                statuses=tuple(Status(s) for s in arguments.status),
                scopes=tuple(Scope(s) for s in arguments.scope),
                text=arguments.text,
            ),
            actor=actor_of(arguments.user),
            limit=arguments.limit,
            offset=arguments.offset,
        )
    if arguments.json:
        document({"total": page.total, "memories": page.memories})
    else:
        table(
            ("id", "type", "scope", "status", "confidence", "content"),
            (
                (m.id, m.memory_type, m.scope, m.status, f"{m.confidence:.2f}", m.content)
                for m in page.memories
            ),
        )
        print(f"{len(page.memories)} of {page.total}")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    if arguments.file == "-":
        data, name = sys.stdin.buffer.read(), ""
    else:
        path = Path(arguments.file)
        try:
            data, name = path.read_bytes(), path.name
        except OSError as error:
            raise InvalidInput(f"{arguments.file} cannot be read: {error.strerror}.") from None
    with opened() as core:
        done = core.transfer.import_file(
            data, name, subject=subject_of(core, arguments), dry_run=arguments.dry_run
        )
    if arguments.json:
        document(done)
    else:
        for line in done.refused:
            print(f"line {line.line}: {line.reason}")
        for note in done.notes:
            print(note)
        word = "would be judged" if arguments.dry_run else "stored"
        print(f"{done.stored} {word}, {len(done.refused)} not, of {done.records}")
        if done.batch_id:
            print(f"Take it back with: memcore undo {done.batch_id}")
    return 0 if done.stored or not done.records else 1


def _export(arguments: argparse.Namespace) -> int:
    form: Form = "csv" if arguments.file.lower().endswith(".csv") else "jsonl"
    rows = 0
    with opened() as core:
        library = core.libraries.get(arguments.library)
        wanted = Filter(library_id=library.id, statuses=tuple(Status(s) for s in arguments.status))
        lines = core.transfer.export(wanted, actor=actor_of(arguments.user), form=form)
        if arguments.file == "-":
            for line in lines:
                sys.stdout.write(line)
            return 0
        try:
            with open(arguments.file, "w", encoding="utf-8", newline="") as out:
                for line in lines:
                    out.write(line)
                    rows += 1
        except OSError as error:
            raise InvalidInput(f"{arguments.file} cannot be written: {error.strerror}.") from None
    rows -= form == "csv"
    size = Path(arguments.file).stat().st_size
    if arguments.json:
        document({"file": arguments.file, "memories": rows, "bytes": size})
    else:
        print(f"{rows} memories in {arguments.file} ({size} bytes)")
    return 0


def _undo(arguments: argparse.Namespace) -> int:
    with opened() as core:
        changed = core.memories.undo(arguments.batch_id, actor=actor_of(arguments.user))
    if arguments.json:
        document(changed)
    else:
        for memory_id, why in changed.refused.items():
            print(f"{memory_id}: {why}")
        print(f"{len(changed.done)} taken back, {len(changed.refused)} not.")
    return 0 if changed.done else 1


def _status(arguments: argparse.Namespace) -> int:
    with opened() as core:
        actor = actor_of(arguments.user)
        changed = core.memories.change_status(arguments.memory_id, arguments.status, actor=actor)
        memory = core.memories.get(arguments.memory_id, actor=actor)
    if arguments.json:
        document({"memory": memory, "batch_id": changed.batch_id})
    else:
        print(f"{memory.id} is {memory.status} now")
    return 0
