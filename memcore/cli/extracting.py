"""Commands on conversations: extract, read-reply, context, mcp."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
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
from memcore.errors import ConfigError, InvalidInput
from memcore.extraction import Extraction, Extractor, Proposal
from memcore.extraction.conversation import Transcript, read_transcripts
from memcore.extraction.reply import read_reply
from memcore.extraction.rules import RulesExtractor
from memcore.extraction.runs import Judged, Run
from memcore.models import Actor
from memcore.settings import from_environment, resolve


def register(commands: Any) -> None:
    extract = command(
        commands, "extract", _extract,
        "Extract memories from a conversation: JSON Lines, OpenAI messages, LoCoMo, plain text.",
    )  # fmt: skip
    extract.add_argument("file", type=Path, help="- for standard input")
    extract.add_argument("--extractor", choices=["rules", "llm"], default="rules")
    extract.add_argument("--model", default="", help="chat model, for --extractor llm")
    extract.add_argument("--limit", type=int, help="most memories per conversation")
    extract.add_argument("--store", action="store_true", help="store what the gate lets in")
    subject_arguments(extract, required=False)

    reply = command(
        commands, "read-reply", _read_reply,
        "Read raw replies of a model, one JSON object a line: reply or message, finish_reason, "
        "conversation. Judges nothing, stores nothing.",
    )  # fmt: skip
    reply.add_argument("file", type=Path, help="- for standard input")

    context = command(
        commands, "context", _context,
        "Show the prompt an agent would get for a message. Nothing counts as used.",
    )  # fmt: skip
    context.add_argument("message")
    subject_arguments(context)

    mcp = command(commands, "mcp", _mcp, "Serve the memory tools over MCP on standard input.")
    subject_arguments(mcp)


def _extract(arguments: argparse.Namespace) -> int:
    if arguments.limit is not None and arguments.limit < 1:
        raise InvalidInput(f"--limit is {arguments.limit}, but takes at least 1.")
    transcripts = read_transcripts(_text(arguments.file))
    judged = arguments.library is not None
    if judged and not arguments.user:
        raise InvalidInput("A library needs a user, too.", hint="Add --user.")
    if arguments.store and not judged:
        raise InvalidInput("There is no place to store it.", hint="Add --library and --user.")
    if judged:
        return _through_library(arguments, transcripts)
    defaults = resolve({}, environment=from_environment()).settings
    limit = arguments.limit or defaults.max_memories_per_extraction
    extractor = _extractor(arguments)
    out = []
    for transcript in transcripts:
        started = time.perf_counter()
        found = extractor.extract(transcript.messages, limit=limit)
        spent = (time.perf_counter() - started) * 1e3
        out.append(_document(found) | {"name": transcript.name, "ms": spent})
    _show(arguments, out)
    return 0 if not any(d["failed"] for d in out) else 1


def _through_library(arguments: argparse.Namespace, transcripts: tuple[Transcript, ...]) -> int:
    with opened() as core:
        subject = subject_of(core, arguments)
        # Without a model named, `llm` is the one the library's settings name.
        own = arguments.extractor == "llm" and not arguments.model
        extractor = None if own else _extractor(arguments)
        out = []
        for transcript in transcripts:
            run = core.conversations.extract_from(
                transcript.messages,
                subject=subject,
                actor=Actor(subject.user_id),
                extractor=extractor,
                dry_run=not arguments.store,
            )
            out.append(_run_document(run) | {"name": transcript.name})
    _show(arguments, out)
    return 0 if not any(d["failed"] for d in out) else 1


def _extractor(arguments: argparse.Namespace) -> Extractor:
    if arguments.extractor == "rules":
        return RulesExtractor()
    from memcore.core import chat_client
    from memcore.extraction.llm import LLMExtractor

    if not arguments.model:
        raise ConfigError("No chat model was named.", hint="Add --model NAME.")
    return LLMExtractor(chat_client(), arguments.model)


def _read_reply(arguments: argparse.Namespace) -> int:
    failed = False
    for number, value in _lines(arguments.file):
        if not isinstance(value, dict):
            raise InvalidInput(f"Line {number} is not one JSON object.")
        read = read_reply(
            value.get("reply"),
            message=value.get("message"),
            finish_reason=value.get("finish_reason"),
            conversation=value.get("conversation") or (),
            max_tokens=value.get("max_tokens"),
        )
        failed = failed or read.failed
        if arguments.json:
            document({"id": value.get("id"), **_document(read)})
        else:
            _print(_document(read), str(value.get("id") or f"line {number}"))
    return 1 if failed else 0


def _context(arguments: argparse.Namespace) -> int:
    with opened() as core:
        seen = core.conversations.build_context(
            arguments.message, subject=subject_of(core, arguments), preview=True
        )
    if arguments.json:
        document(
            {
                "messages": [{"role": m.role, "content": m.content} for m in seen.messages],
                "tokens": seen.tokens,
                "budget": seen.block.budget,
                "included": seen.block.included,
                "left_out": seen.block.left_out,
                "summarised": seen.summarised,
                "notice": seen.notice,
            }
        )
        return 0
    for message in seen.messages:
        print(f"[{message.role}]\n{message.content}\n")
    left = f", {len(seen.block.left_out)} left out" if seen.block.left_out else ""
    print(f"about {seen.tokens} tokens; {len(seen.block.included)} memory lines{left}")
    if seen.notice:
        print(seen.notice)
    return 0


def _mcp(arguments: argparse.Namespace) -> int:
    from memcore import mcp

    with opened() as core:
        mcp.server(core, subject_of(core, arguments)).run()
    return 0


# ---- what is printed -------------------------------------------------------------------------


def _document(read: Extraction) -> dict[str, Any]:
    return {
        "outcome": read.outcome,
        "failed": read.failed,
        "truncated": read.truncated,
        "detail": read.detail,
        "read_by": read.read_by,
        "counts": read.counts,
        "proposals": [_proposal(p) for p in read.proposals],
        "held": [_proposal(p) for p in read.held],
        "skipped": read.skipped,
        "missed": read.missed,
    }


def _run_document(run: Run) -> dict[str, Any]:
    def items(*, held: bool) -> list[dict[str, Any]]:
        return [_judged(j) for j in run.items if (j.status == "held") == held]

    return {
        "run_id": run.id,
        "outcome": run.outcome,
        "failed": run.failed,
        "detail": run.detail,
        "read_by": run.read_by,
        "counts": run.counts,
        "proposals": items(held=False),
        "held": items(held=True),
        "skipped": run.skipped,
        "missed": run.missed,
        "ms": run.ms,
    }


def _proposal(proposal: Proposal) -> dict[str, Any]:
    draft = proposal.draft
    return {
        "content": draft.content,
        "type": draft.memory_type,
        "title": draft.title,
        "tags": draft.tags,
        "scope": draft.scope,
        "confidence": draft.confidence,
        "evidence": proposal.evidence,
        "action": proposal.action,
        "target_id": proposal.target_id,
        "flags": proposal.flags,
        "notes": proposal.notes,
    }


def _judged(item: Judged) -> dict[str, Any]:
    return _proposal(item.proposal) | {
        "status": item.status,
        "verdict": item.verdict,
        "memory_id": item.memory_id,
        "note": item.note,
    }


def _show(arguments: argparse.Namespace, out: list[dict[str, Any]]) -> None:
    if arguments.json:
        document(out[0] if len(out) == 1 else {"conversations": out})
        return
    for found in out:
        _print(found, found["name"])


def _print(found: dict[str, Any], name: str) -> None:
    print(f"{name}: {found['outcome']}. {found['detail']}")
    rows = [
        (
            p.get("status") or ("held" if p in found["held"] else "proposed"),
            p["type"],
            p["confidence"],
            p["content"],
            ", ".join(f.kind for f in p["flags"]) or (p["evidence"].quote if p["evidence"] else ""),
        )
        for p in (*found["proposals"], *found["held"])
    ]
    rows += [("skipped", s.reason, None, s.item, s.detail) for s in found["skipped"]]
    if rows:
        table(("", "type", "confidence", "content", "evidence, or why not"), rows)


def _text(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError):
            raise InvalidInput(f"Line {number} is not one JSON object.") from None
