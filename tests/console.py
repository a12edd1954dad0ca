"""A running console and a browser tab, for tests in tests/browser and for taking pictures."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).parents[1]


@dataclass
class Console:
    """A running console."""

    address: str
    process: subprocess.Popen[bytes]
    log: Path

    def url(self, page: str = "", **query: str) -> str:
        return f"{self.address}/{page}" + (f"?{urlencode(query)}" if query else "")


@contextlib.contextmanager
def running(
    home: Path,
    *,
    database_url: str | None = None,
    command: tuple[str, ...] = (sys.executable, "-m", "memcore", "serve", "--headless", "--port"),
    cwd: Path = ROOT,
    **env: str,
) -> Iterator[Console]:
    """A console of `home` on a free port, ended with SIGTERM. Without `database_url` it starts the
    embedded database."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    home.mkdir(parents=True, exist_ok=True)
    log = home / "console.log"
    environment = {**os.environ, "MEMCORE_HOME": str(home), **env}
    if database_url is not None:
        environment["DATABASE_URL"] = database_url
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, str(port)], cwd=cwd, env=environment, stdout=out, stderr=out
        )
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 60
        while True:
            with (
                contextlib.suppress(OSError, urllib.error.URLError),
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=5),
            ):
                break
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        yield Console(address, process, log)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass
class Tab:
    """A browser tab that notes what should not happen."""

    page: Any
    """Playwright's."""
    troubles: list[str] = field(default_factory=list)

    def open(self, url: str) -> None:
        """Open `url` cold and wait until the page is drawn."""
        self.page.goto(url)
        self.settle()

    def settle(self) -> None:
        """Wait until the script has run and nothing is stale."""
        self.page.locator("h1").first.wait_for(timeout=60_000)
        self.page.wait_for_selector(
            "[data-testid=stApp][data-test-script-state=notRunning]", timeout=60_000
        )

    def widget(self, key: str) -> Any:
        """The element of the widget `key`."""
        return self.page.locator(f".st-key-{key}")

    def exceptions(self) -> list[str]:
        return list(self.page.locator("[data-testid=stException]").all_inner_texts())
