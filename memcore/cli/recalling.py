"""Commands on recall: search, why-not."""

from __future__ import annotations

import argparse
from typing import Any

from memcore.cli.output import command, document, opened, subject_arguments, subject_of, table
from memcore.models import Actor, SearchResult
from memcore.plain import plain
from memcore.rules import ranking


def register(commands: Any) -> None:
    search = command(commands, "search", _search, "Recall memories, with the reason for each.")
    search.add_argument("query")
    _recall_arguments(search)
    search.add_argument(
        "--token-budget", type=int, metavar="N", help="also drop what does not fit into N tokens"
    )

    why = command(commands, "why-not", _why_not, "Why is this memory not recalled for that query?")
    why.add_argument("memory_id")
    why.add_argument("query")
    _recall_arguments(why)


def _recall_arguments(parser: argparse.ArgumentParser) -> None:
    subject_arguments(parser)
    parser.add_argument("-k", type=int, metavar="N", help="most hits; the library's when not given")
    parser.add_argument(
        "--mode", choices=["hybrid", "vector", "keyword"], help="channels; the library's by default"
    )


def _search(arguments: argparse.Namespace) -> int:
    with opened() as core:
        result = core.memories.search_memories(
            arguments.query,
            subject=subject_of(core, arguments),
            k=arguments.k,
            mode=arguments.mode,
            token_budget=arguments.token_budget,
        )
    if arguments.json:
        document(searched(result))
        return 0
    table(
        ("score", "terms", "type", "scope", "content"),
        (
            (
                ranking.shown(hit.terms, 4)[1],
                " + ".join(f"{name} {part:.4f}" for name, part in ranking.shown(hit.terms, 4)[0]),
                hit.memory.memory_type,
                hit.memory.scope,
                hit.memory.content,
            )
            for hit in result.hits
        ),
    )
    if result.notice:
        print(result.notice)
    stages = ", ".join(f"{name} {count}" for name, count in result.stages.items())
    print(f"{len(result.hits)} hits, {len(result.dropped)} dropped ({stages})")
    return 0


def searched(result: SearchResult) -> dict[str, Any]:
    """A search as JSON: hits and dropped as design has them, and what was searched how."""
    return {
        "query": result.query,
        "mode": result.mode,
        "notice": result.notice,
        "hits": result.hits,
        "dropped": [{"memory_id": d.memory.id, **plain(d)} for d in result.dropped],
        "stages": result.stages,
        "timings": result.timings,
        "recall_id": result.recall_id,
    }


def _why_not(arguments: argparse.Namespace) -> int:
    with opened() as core:
        why = core.memories.why_not(
            arguments.memory_id,
            arguments.query,
            subject=subject_of(core, arguments),
            # At this terminal one may ask about any memory.
            actor=Actor("operator", operator=True),
            k=arguments.k,
            mode=arguments.mode,
        )
    if arguments.json:
        document({"memory_id": why.memory.id, **plain(why), "change": why.change})
        return 0
    print(why.detail)
    table(
        ("step", "passed", "observed", "limit", "note"),
        ((c.name, c.passed, c.observed, c.limit, c.note) for c in why.checks),
    )
    if why.change:
        table(
            ("would bring it in", "now", "then", "steps"),
            ((c.setting, c.before, c.after, c.steps) for c in why.changes),
        )
    return 0
