"""`memcore serve` without a word said about ports or browsers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.console import ROOT


def test_it_takes_a_free_port_and_opens_the_browser_there_once_it_answers(
    fresh_database_url: str, tmp_path: Path
) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    browser.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k != "CI"}
    environment |= {"BROWSER": str(browser), "DISPLAY": ":0", "MEMCORE_HOME": str(tmp_path)}
    environment |= {"DATABASE_URL": fresh_database_url}
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8501))
            taken.listen()
        except OSError:
            pass  # somebody else has it: as good
        process = subprocess.Popen(
            [sys.executable, "-m", "memcore", "serve"], cwd=ROOT, env=environment, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            (address,) = re.findall(r"http://localhost:\d+", said)
            assert not address.endswith(":8501")
            end = time.monotonic() + 60
            while not opened.exists() and time.monotonic() < end:
                time.sleep(0.05)
            assert opened.read_text().split() == [address]
            with urllib.request.urlopen(f"{address}/_stcore/health") as reply:
                assert reply.status == 200
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
    assert process.returncode == 0
