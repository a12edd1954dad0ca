"""Commands on memories: add, memories, status-change, libraries."""

from __future__ import annotations

import argparse
from typing import Any

from memcore.cli.output import (
    command,
    document,
    opened,
    subject_arguments,
    subject_of,
    table,
)
from memcore.models import Actor, MemoryType, Scope, Status
from memcore.services.memories import Filter


def register(commands: Any) -> None:
    add = command(commands, "add", _add, "Store one memory, if the gate lets it in.")
    add.add_argument("text")
    subject_arguments(add)
    add.add_argument("--type", default="fact", choices=[str(t) for t in MemoryType])
    add.add_argument("--scope", default="user", choices=[str(s) for s in Scope])
    add.add_argument("--confidence", type=float, default=0.8)
    add.add_argument("--title", default="")
    add.add_argument("--tag", action="append", default=[], help="may be given several times")

    libraries = command(commands, "libraries", _libraries, "List libraries, or create one.")
    libraries.add_argument("--create", metavar="NAME")
    libraries.add_argument("--embedder", default="local")

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

    change = command(commands, "status-change", _status, "Change the status of a memory.")
    change.add_argument("memory_id")
    change.add_argument("status", choices=["active", "archived", "suppressed"])
    change.add_argument("--user", help="act as this user; without it, as the operator")


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


def _libraries(arguments: argparse.Namespace) -> int:
    with opened() as core:
        if arguments.create:
            core.libraries.create(arguments.create, embedder=arguments.embedder)
        found = core.libraries.all()
    if arguments.json:
        document(found)
    else:
        table(
            ("name", "embedder", "dimensions", "vector store", "id"),
            ((x.name, x.embedder, x.dimensions, x.vector_store, x.id) for x in found),
        )
    return 0


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
