"""Commands on libraries: list, make, set, rebuild their vectors; what is due; the secret key."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from memcore.cli.output import command, document, opened, table
from memcore.core import Core
from memcore.database.jobs import Job
from memcore.errors import ConfigError
from memcore.plain import plain


def register(commands: Any) -> None:
    listing = command(commands, "libraries", _libraries, "List libraries, or make or change one.")
    listing.add_argument("name", nargs="?", help="a library, by name or id: show its settings")
    listing.add_argument("--create", metavar="NAME", help="make a library")
    listing.add_argument("--embedder", default="local", help="with --create; default: local")
    listing.add_argument("--preset", default="basic", help="with --create: basic, high_precision")
    listing.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="set a setting by hand; an empty value goes back to the default",
    )  # fmt: skip

    reindex = command(
        commands, "reindex", _reindex,
        "Embed what has no vector or an outdated one; with --embedder, everything anew.",
    )  # fmt: skip
    reindex.add_argument("--library", required=True, help="library, by name or id")
    reindex.add_argument("--embedder", help="give the library this embedder")
    reindex.add_argument("--all", action="store_true", help="make every vector anew")
    reindex.add_argument("--check", action="store_true", help="only count what is wrong")

    command(commands, "sweep", _sweep, "Archive expired memories; purge what is long deleted.")
    command(commands, "secret-key", _secret_key, "Print a new secret key for MEMCORE_SECRET_KEY.")


def _libraries(arguments: argparse.Namespace) -> int:
    with opened() as core:
        if arguments.create:
            arguments.name = core.libraries.create(
                arguments.create, embedder=arguments.embedder, preset=arguments.preset,
                overrides=_settings(arguments.set),
            ).name  # fmt: skip
        elif arguments.set:
            library = core.libraries.get(arguments.name or "")
            core.libraries.adjust(library.id, _settings(arguments.set))
        if arguments.name:
            return _one(core, arguments)
        cards = core.libraries.cards()
    if arguments.json:
        document(
            [
                {
                    **plain(card.library), "enabled": card.resolved.settings.enabled,
                    "store": card.store, "agents": card.agents, "memories": card.memories,
                    "active": card.active, "last_activity": plain(card.last_activity),
                    "pass_rate": card.pass_rate,
                }
                for card in cards
            ]
        )  # fmt: skip
        return 0
    table(
        ("library", "embedder", "dimensions", "store", "agents", "memories", "last activity"),
        [
            (
                c.library.name, c.library.embedder, c.library.dimensions, c.store,
                ", ".join(c.agents) or "unbound", c.memories, c.last_activity,
            )
            for c in cards
        ],
    )  # fmt: skip
    return 0


def _one(core: Core, arguments: argparse.Namespace) -> int:
    library = core.libraries.get(arguments.name)
    resolved = core.libraries.settings(library.id)
    values = {
        name: getattr(group, name)
        for group in (resolved.settings, resolved.settings.gate, resolved.settings.ranking)
        for name in resolved.sources
        if hasattr(group, name)
    }
    if arguments.json:
        shown = {n: {"value": plain(v), "source": resolved.sources[n]} for n, v in values.items()}
        document({**plain(library), "settings": shown})
        return 0
    print(f"{library.name}: {library.embedder}, {library.dimensions} dimensions\n")
    rows = [(n, "off" if v is None else v, resolved.sources[n]) for n, v in values.items()]
    table(("setting", "value", "from"), rows)
    return 0


def _settings(given: Sequence[str]) -> dict[str, str]:
    out = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals:
            raise ConfigError(f"{item!r} is no setting.", hint="Write it as name=value.")
        out[name.strip()] = value.strip()
    return out


def _reindex(arguments: argparse.Namespace) -> int:
    with opened() as core:
        library = core.libraries.get(arguments.library)
        note = ""
        state = "done"
        if not arguments.check:
            if arguments.embedder or arguments.all:
                embedder = arguments.embedder or library.embedder
                job = core.libraries.change_embedder(library.id, embedder)
            else:
                job = core.libraries.reindex(library.id)
            ended = _watched(core, job)
            state, note = ended.state, ended.note
        health = core.libraries.health(library.id)
    well = state == "done" and health.well
    if arguments.json:
        document({"state": state, "note": note, "health": plain(health), "well": health.well})
    else:
        if note:
            print(note, file=sys.stdout if state == "done" else sys.stderr)
        table(("check", "count"), [(n, v) for n, v in plain(health).items() if n != "trouble"])
        if health.trouble:
            print(health.trouble, file=sys.stderr)
    return 0 if well else 1


def _watched(core: Core, job: Job) -> Job:
    """The job once it has ended, its progress on standard error until then."""
    shown = ""
    while job.running:
        time.sleep(0.2)
        job = core.runtime.jobs.get(job.id)
        said = f"\r{job.note} {job.done} of {job.total}" if job.total else ""
        if said and said != shown and sys.stderr.isatty():
            print(said, end="", file=sys.stderr)
            shown = said
    if shown:
        print(file=sys.stderr)
    return job


def _sweep(arguments: argparse.Namespace) -> int:
    with opened() as core:
        swept = core.libraries.sweep()
    if arguments.json:
        document(swept)
    else:
        print(
            f"{swept.archived} expired memories archived, {swept.purged} libraries purged, "
            f"{swept.dropped} collections dropped."
        )
    return 0


def _secret_key(arguments: argparse.Namespace) -> int:
    from cryptography.fernet import Fernet

    key = Fernet.generate_key().decode()
    if arguments.json:
        document({"key": key})
    else:
        print(key)
    return 0
