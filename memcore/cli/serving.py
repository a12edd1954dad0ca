"""Commands on the installation: serve, status."""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import signal
import socket
import sys
import threading
import time
import urllib.request
import webbrowser
from pathlib import Path
from typing import Any

from sqlalchemy import text

from memcore.cli.output import command, document, opened
from memcore.core import Core, home_folder, open_core
from memcore.errors import MemcoreError


def register(commands: Any) -> None:
    serve = command(commands, "serve", _serve, "Start the console.")
    serve.add_argument("--port", type=int, help="default: the first free one from 8501 on")
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
    port = arguments.port or _free_port()
    address = f"http://localhost:{port}"
    # Beside the web server, which takes a second to load anyway, and whose pages explain what a
    # database in trouble needs.
    threading.Thread(target=_open_database, daemon=True).start()
    if not arguments.headless and _has_screen():
        threading.Thread(target=_open_browser, args=(address,), daemon=True).start()
    print(f"memcore console: {address}   (Ctrl-C stops it)", file=sys.stderr)
    # The web server closes down on SIGTERM and then raises it again: end in the ordinary way, so
    # that the database is left properly. A closed terminal (SIGHUP) ends the same way.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    sys.argv = ["streamlit", "run", str(console_app()), f"--server.port={port}"]
    try:
        # Run, not imported: the console is a program of its own that happens to share the process.
        runpy.run_module("streamlit", run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _open_database() -> None:
    """Start and migrate the database now rather than under the first page. The lease is held until
    the process ends."""
    try:
        _held.append(open_core(say=lambda step: print(step, file=sys.stderr)))
    except MemcoreError as error:
        print(f"memcore: {error}\nThe console opens all the same and says so.", file=sys.stderr)


_held: list[Core] = []


def _open_browser(address: str) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/_stcore/health"):
            webbrowser.open(address)
            return
        time.sleep(0.1)


def _has_screen() -> bool:
    if os.environ.get("CI"):
        return False
    return sys.platform == "darwin" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def _free_port(first: int = 8501) -> int:
    """The first port from 8501 on that nothing listens on."""
    for port in range(first, first + 100):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)):
                return port
    return first


def _demo(arguments: argparse.Namespace) -> int:
    from memcore import demo
    from memcore.demo import threads

    def progress(done: int, total: int) -> None:
        print(f"\rEmbedding {done} of {total} texts …", end="", file=sys.stderr)
        if done == total:
            print(file=sys.stderr)

    with opened() as core:
        if arguments.act == "remove":
            gone = demo.remove(core)
            threads.remove(core)
            found: dict[str, object] = {"removed": gone}
            said = f"{gone} memories of the demo removed"
        else:
            loaded = demo.load(core, embedder=arguments.embedder, progress=progress)
            found = {
                "library": core.libraries.get(loaded.library_id).name,
                "loaded": loaded.memories,
                "already": loaded.already,
                "threads": threads.load(core) if threads.fits(core) else 0,
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
