"""The command `gate`: judge a text, or every line of a file, and store nothing."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from memcore import settings
from memcore.cli.output import command, document, opened, subject_arguments, subject_of, table
from memcore.core import Core
from memcore.errors import InvalidInput
from memcore.models import Actor, Draft, Facts, MemoryType, Scope, Verdict
from memcore.rules import gate
from memcore.services.memories.screening import screened
from memcore.text import shorten

_WRITER = "operator"


def register(commands: Any) -> None:
    parser = command(commands, "gate", _gate, "Would this be stored? Judges, and stores nothing.")
    parser.add_argument("text", nargs="?")
    parser.add_argument(
        "--file", metavar="F.jsonl", help='one {"text": …} a line, also confidence, memory_type'
    )
    subject_arguments(parser, required=False)
    parser.add_argument("--type", default="fact", choices=[str(t) for t in MemoryType])
    parser.add_argument("--scope", default="user", choices=[str(s) for s in Scope])
    parser.add_argument("--confidence", type=float, default=0.8)
    parser.epilog = (
        "Without --library the settings of the environment hold and there is nothing to repeat."
    )
    parser.set_defaults(parser=parser)


def _gate(arguments: argparse.Namespace) -> int:
    if (arguments.text is None) == (arguments.file is None):
        arguments.parser.error("give a text, or --file")
    if arguments.library and not arguments.user:
        arguments.user = _WRITER
    drafts = _drafts(arguments)
    with opened() as core:
        judged = iter(_judged(core, arguments, [d for d in drafts if isinstance(d, Draft)]))
    accepted = True
    for number, draft in enumerate(drafts, 1):
        if isinstance(draft, str):
            document({"line": number, "error": draft})
            continue
        facts, verdict = next(judged)
        accepted = verdict.accepted
        if arguments.json:
            document(said(facts, verdict))
        elif arguments.file is None:
            _show(facts, verdict)
        else:
            print(f"{verdict.outcome:10} {verdict.blocked_by or '–':10} {shorten(facts.text)}")
    return 0 if arguments.file is not None or accepted else 1


def _drafts(arguments: argparse.Namespace) -> list[Draft | str]:
    """The drafts to judge; in the place of a line that is none, what is wrong with it."""
    base = {
        "memory_type": arguments.type, "scope": arguments.scope, "confidence": arguments.confidence,
    }  # fmt: skip
    if arguments.file is None:
        return [_draft({"text": arguments.text, **base})]
    try:
        raw = sys.stdin.read() if arguments.file == "-" else Path(arguments.file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{arguments.file} cannot be read: {error}.") from None
    out: list[Draft | str] = []
    for line in raw.splitlines():
        try:
            given = json.loads(line)
            out.append(_draft({**base, **given}))
        except (ValueError, TypeError, KeyError) as error:
            out.append(f"not a draft: {type(error).__name__}")
    return out


def _draft(given: dict[str, Any]) -> Draft:
    text = given.get("text", given.get("content"))
    if not isinstance(text, str):
        raise TypeError("text")
    return Draft(
        text,
        memory_type=MemoryType(given["memory_type"]),
        scope=Scope(given["scope"]),
        confidence=float(given["confidence"]),
        title=str(given.get("title", "")),
    )


def _judged(
    core: Core, arguments: argparse.Namespace, drafts: list[Draft]
) -> list[tuple[Facts, Verdict]]:
    if arguments.library:
        return core.memories.validate_many(
            drafts, subject=subject_of(core, arguments), actor=Actor(_WRITER, operator=True)
        )
    limits = settings.resolve(environment=core.runtime.environment).settings.gate
    out = []
    for draft in drafts:
        screen = screened(draft)
        facts = Facts(
            text=screen.draft.content,
            confidence=screen.draft.confidence,
            neighbours=(),
            extractions_in_window=0,
            rate_exempt=True,
            sensitive=screen.found,
        )
        out.append((facts, gate.judge(screen.draft, facts, limits)))
    return out


def said(facts: Facts, verdict: Verdict) -> dict[str, Any]:
    """One judged draft as JSON."""
    return {
        "accepted": verdict.accepted,
        "blocked_by": verdict.blocked_by,
        "outcome": verdict.outcome,
        "matched_id": verdict.matched_id,
        "text": facts.text,
        "checks": verdict.checks,
        "sensitive": facts.sensitive,
        "nearest": facts.neighbours,
    }


def _show(facts: Facts, verdict: Verdict) -> None:
    table(
        ("check", "passed", "observed", "limit", "note"),
        ((c.name, c.passed, c.observed, c.limit, c.note) for c in verdict.checks),
    )
    if facts.neighbours:
        print()
        table(
            ("similarity", "relation", "nearest memory", "id"),
            ((n.similarity, n.relation, n.content, n.memory_id) for n in facts.neighbours),
        )
    blocked = f", blocked by {verdict.blocked_by}" if verdict.blocked_by else ""
    print(f"\n{verdict.outcome}{blocked}")
