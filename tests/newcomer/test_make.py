"""`make` on a machine that lacks what it needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.console import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "pyproject.toml").touch()
    return subprocess.run(
        ["make", *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_without_a_python_it_says_what_to_install(tmp_path: Path) -> None:
    done = make(tmp_path, "run", "PYTHON=no-such-python")
    assert done.returncode != 0
    assert "Python 3.11 or newer" in done.stdout
    assert "PYTHON=" in done.stdout
    assert not (tmp_path / ".venv").exists()


def test_a_python_that_is_too_old_or_broken_is_passed_over(tmp_path: Path) -> None:
    for name in ("old", "broken"):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {1 if name == 'old' else 127}\n")
        (tmp_path / name).chmod(0o755)
    done = make(tmp_path, "-n", "run", f"PYTHON={tmp_path}/old {tmp_path}/broken")
    assert done.returncode == 0  # a dry run prints, and creates nothing
    done = make(tmp_path, "run", f"PYTHON={tmp_path}/old {tmp_path}/broken")
    assert done.returncode != 0
    assert "found none" in done.stdout


def test_cleaning_keeps_what_is_no_build_product(tmp_path: Path) -> None:
    for folder in (".venv", "build", "memcore/__pycache__", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    assert make(tmp_path, "clean").returncode == 0
    assert (tmp_path / "docs").exists()
    assert (tmp_path / "memcore").exists()
    assert not (tmp_path / ".venv").exists()
    assert not (tmp_path / "memcore" / "__pycache__").exists()
