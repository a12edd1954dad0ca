"""The command line. `memcore COMMAND`: tables for people, `--json` for programs.

Exit status: 0 done, 1 refused or trouble, 2 wrong usage. Each module beside this one registers a
group of commands with `register(commands)`; a command is a function of the parsed arguments that
returns its exit status and prints through `output`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from memcore.cli import output
from memcore.errors import MemcoreError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not cost the answer.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return int(arguments.run(arguments))
    except MemcoreError as error:
        output.trouble(error, as_json=arguments.json)
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    from memcore.cli import (
        agents,
        checkpoints,
        extracting,
        gate,
        libraries,
        mapping,
        memories,
        recalling,
        serving,
    )

    parser = argparse.ArgumentParser(
        prog="memcore", description="Long-term memory for AI agents, and the console that shows it."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (
        serving, memories, gate, libraries, agents, recalling, extracting, checkpoints, mapping,
    ):  # fmt: skip
        module.register(commands)
    return parser
