"""Commands on the installation: serve, status."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import text

from memcore.cli.output import command, document, opened
from memcore.core import home_folder


def register(commands: Any) -> None:
    serve = command(commands, "serve", _serve, "Start the console.")
    serve.add_argument("--port", type=int, default=8501)
    serve.add_argument("--headless", action="store_true", help="open no browser")

    demo = command(commands, "demo", _demo, "Put the demo world in, or take it out again.")
    demo.add_argument("act", choices=["load", "remove"])
    demo.add_argument("--embedder", default="local")

    command(commands, "status", _status, "Say what is running and what is stored.")


def console_app() -> Path:
    """`app.py`: in the checkout, or where the wheel put it."""
    import memcore

    package = Path(memcore.__file__).parent
    for candidate in (package / "console" / "app.py", package.parent / "app.py"):
        if candidate.exists():
            return candidate
    raise FileNotFoundError("app.py")


def _serve(arguments: argparse.Namespace) -> int:
    import os

    from streamlit.web.cli import main as streamlit

    app = console_app()
    # Streamlit reads .streamlit/config.toml of the working folder.
    os.chdir(app.parent)
    sys.argv = ["streamlit", "run", str(app), "--server.port", str(arguments.port)]
    if arguments.headless:
        sys.argv += ["--server.headless", "true"]
    return int(streamlit() or 0)


def _demo(arguments: argparse.Namespace) -> int:
    from memcore import demo

    def progress(done: int, total: int) -> None:
        print(f"\rEmbedding {done} of {total} texts …", end="", file=sys.stderr)
        if done == total:
            print(file=sys.stderr)

    with opened() as core:
        if arguments.act == "remove":
            gone = demo.remove(core)
            found: dict[str, object] = {"removed": gone}
            said = f"{gone} memories of the demo removed"
        else:
            loaded = demo.load(core, embedder=arguments.embedder, progress=progress)
            found = {
                "library": core.libraries.get(loaded.library_id).name,
                "loaded": loaded.memories,
                "already": loaded.already,
            }
            said = (
                "the demo is loaded already" if loaded.already
                else f"{loaded.memories} memories loaded; look at them with: memcore serve"
            )  # fmt: skip
    if arguments.json:
        document(found)
    else:
        print(said)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    with opened() as core, core.runtime.engine.connect() as connection:
        server, pgvector = connection.execute(
            text(
                "SELECT current_setting('server_version'), "
                "(SELECT extversion FROM pg_extension WHERE extname = 'vector')"
            )
        ).one()
        counts = connection.execute(
            text(
                "SELECT (SELECT count(*) FROM libraries WHERE deleted_at IS NULL) AS libraries, "
                "(SELECT count(*) FROM agents) AS agents, "
                "(SELECT count(*) FROM memories) AS memories, "
                "(SELECT count(*) FROM decisions) AS decisions"
            )
        ).one()
        found = {
            "home": str(home_folder()),
            "database": core.runtime.engine.url.render_as_string(hide_password=True),
            "embedded": core.embedded,
            "postgresql": server,
            "pgvector": pgvector,
            **counts._mapping,
        }
    if arguments.json:
        document(found)
    else:
        for name, value in found.items():
            print(f"{name:12} {value}")
    return 0
