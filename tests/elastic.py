"""A server that speaks Elasticsearch's REST interface: the one MEMCORE_TEST_ES_URL names, or the
emulator `noida-db` on a port of its own. No real Elasticsearch can be installed from a package."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "MEMCORE_TEST_ES_URL"


@contextmanager
def elastic(folder: Path) -> Iterator[str]:
    """Its URL. Raises RuntimeError, whose text is the reason to skip."""
    if url := os.environ.get(VARIABLE, "").strip():
        yield url
        return
    command = Path(sysconfig.get_path("scripts")) / "noida-db"
    if not command.exists():
        raise RuntimeError(f"no noida-db is installed and {VARIABLE} is not set")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [
        sys.executable, str(command), "start", "--data-dir", str(folder),
        "--only", "elasticsearch", "--elasticsearch-port", str(port),
    ]  # fmt: skip
    process = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            if process.poll() is not None:
                said = process.stderr.read().decode(errors="replace") if process.stderr else ""
                raise RuntimeError(f"noida-db ended at once: {said.strip()[-200:]}")
            try:
                with urllib.request.urlopen(url, timeout=1):
                    break
            except OSError:
                time.sleep(0.1)
        else:
            raise RuntimeError("noida-db did not answer within 10 s")
        yield url
    finally:
        # The command starts the server as a child of its own: end both.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stderr:
            process.stderr.close()
