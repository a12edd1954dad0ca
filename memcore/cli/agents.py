"""The command on agents: list them, make one, bind it, switch its memory on or off."""

from __future__ import annotations

import argparse
from typing import Any

from memcore.cli.output import command, document, opened, table
from memcore.core import Core
from memcore.errors import InvalidInput
from memcore.models import Agent


def register(commands: Any) -> None:
    parser = command(commands, "agents", _agents, "List agents, or make or change one.")
    parser.add_argument("name", nargs="?", help="an agent, by name or id: show or change it")
    parser.add_argument("--create", metavar="NAME", help="make an agent")
    parser.add_argument("--library", help="bind it to this library; an empty value unbinds it")
    parser.add_argument(
        "--memory", choices=("on", "off"), help="off: it neither recalls nor writes"
    )
    parser.add_argument("--extraction", choices=("on", "off"), help="read its conversations")
    parser.add_argument("--window", type=int, help="messages of its short-term memory; 0: 20")
    parser.add_argument("--rename", metavar="NAME", help="give it another name")


def _agents(arguments: argparse.Namespace) -> int:
    wanted = (
        arguments.library, arguments.memory, arguments.extraction, arguments.window,
        arguments.rename,
    )  # fmt: skip
    with opened() as core:
        if arguments.create:
            shown = [_create(core, arguments)]
        elif arguments.name:
            agent = core.libraries.agent(arguments.name)
            changed = any(value is not None for value in wanted)
            shown = [_change(core, agent, arguments) if changed else agent]
        elif any(value is not None for value in wanted):
            raise InvalidInput("No agent is named.", hint="Write memcore agents NAME --memory off.")
        else:
            shown = core.libraries.agents()
        names = {library.id: library.name for library in core.libraries.all()}
    if arguments.json:
        document(shown[0] if arguments.create or arguments.name else shown)
        return 0
    table(
        ("agent", "library", "memory", "extraction", "window"),
        [
            (
                a.name, names.get(a.library_id or "", "unbound"), _word(a.memory_enabled),
                _word(a.extraction_enabled), a.short_term_memory_size,
            )
            for a in shown
        ],
    )  # fmt: skip
    return 0


def _create(core: Core, arguments: argparse.Namespace) -> Agent:
    return core.libraries.create_agent(
        arguments.create,
        library_id=arguments.library or None,
        memory_enabled=None if arguments.memory is None else arguments.memory == "on",
        extraction_enabled=arguments.extraction != "off",
        short_term_memory_size=arguments.window,
    )


def _change(core: Core, agent: Agent, arguments: argparse.Namespace) -> Agent:
    library = agent.library_id if arguments.library is None else arguments.library or None
    memory = agent.memory_enabled and library is not None
    if arguments.memory is not None:
        memory = arguments.memory == "on"
    elif library is not None and agent.library_id is None:
        memory = True  # as when it is made bound
    return core.libraries.edit_agent(
        agent.id,
        name=arguments.rename or agent.name,
        library_id=library,
        memory_enabled=memory,
        extraction_enabled=(
            agent.extraction_enabled
            if arguments.extraction is None
            else arguments.extraction == "on"
        ),
        short_term_memory_size=(
            agent.short_term_memory_size if arguments.window is None else arguments.window
        ),
    )


def _word(on: bool) -> str:
    return "on" if on else "off"
