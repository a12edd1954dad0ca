"""What commands print and the arguments they share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from memcore.core import Core, open_core
from memcore.errors import MemcoreError
from memcore.models import Subject
from memcore.plain import plain
from memcore.text import shorten


def command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], help: str
) -> argparse.ArgumentParser:
    """A new command with `--json`."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def subject_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument("--library", required=required, help="library, by name or id")
    parser.add_argument("--user", required=required, help="user id")
    parser.add_argument("--project", help="project id")
    parser.add_argument("--session", help="session id")
    parser.add_argument("--agent", help="agent, by name or id")


def subject_of(core: Core, arguments: argparse.Namespace) -> Subject:
    return Subject(
        core.libraries.get(arguments.library).id,
        user_id=arguments.user,
        project_id=arguments.project,
        session_id=arguments.session,
        agent_id=core.libraries.agent(arguments.agent).id if arguments.agent else None,
    )


def opened() -> AbstractContextManager[Core]:
    """The core, with its progress on standard error."""
    return open_core(say=lambda step: print(step, file=sys.stderr))


def document(value: Any) -> None:
    """Print one JSON document."""
    print(json.dumps(plain(value), ensure_ascii=False))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; wide characters are counted as two columns, long cells are cut."""
    cells = [list(columns)] + [[shorten(_cell(v), 60) for v in row] for row in rows]
    widths = [max(_width(row[i]) for row in cells) for i in range(len(columns))]
    for row in cells:
        padded = (c + " " * (w - _width(c)) for c, w in zip(row, widths, strict=True))
        print("  ".join(padded).rstrip())


def trouble(error: MemcoreError, *, as_json: bool) -> None:
    if as_json:
        document({"error": type(error).__name__, "message": error.message, "hint": error.hint})
    print(f"memcore: {error}", file=sys.stderr)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M UTC")
    return str(value)


def _width(text: str) -> int:
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
