"""The embedded PostgreSQL: one server per home folder, started on demand, shared by processes.

    home/postgres/   launch.lock  held while somebody starts or stops the server
                     lease        held shared by every user; the kernel drops it with the process
                     data/ run/   database and socket, owned by the server's OS user

If that OS user cannot reach the home folder (root's home below a private /root, say), data/ and
run/ live in a new folder under /var/lib instead, and home/postgres/moved_to names it. No mode or
owner is ever changed outside these folders. A pid is never believed on its own: it may be stale,
a zombie or recycled. POSIX only: it relies on flock and unix sockets.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from memcore.database import binaries
from memcore.errors import DatabaseError

PORT = 5432
"""Only part of the socket's name: the server listens on no network address."""
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
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # A failing statement or its detail may quote what a user wrote: keep both out of the log.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_FSYNC_OFF = {"fsync": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class ServerStatus:
    state: Literal["absent", "stopped", "busy", "running"]
    """absent: no database yet. busy: it starts, recovers or stops."""
    pid: int | None
    data: Path
    log: Path


@dataclass(eq=False)
class Cluster:
    """The server of one home folder. `url` and `dsn` are final once it has been started.

    keep_running: leave the server up when the last user leaves (also MEMCORE_KEEP_SERVER=1).
    fsync: False risks the database in a power failure for speed; for tests.
    say: told about what takes its time.
    """

    home: Path
    keep_running: bool = False
    fsync: bool = True
    say: Callable[[str], None] = lambda _: None
    _leases: list[int] = field(default_factory=list, repr=False)

    @classmethod
    def at(
        cls,
        home: Path,
        *,
        keep_running: bool = False,
        fsync: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> Cluster:
        """The cluster of `home`; touches nothing yet."""
        if sys.platform == "win32":
            raise DatabaseError(
                "The embedded database does not run on Windows.",
                hint="Set DATABASE_URL to a PostgreSQL with pgvector, or use WSL.",
            )
        keep = keep_running or os.environ.get("MEMCORE_KEEP_SERVER") == "1"
        return cls(Path(home).expanduser().resolve(), keep, fsync, say)

    # ---- where things are

    @property
    def folder(self) -> Path:
        """The folder of the locks."""
        return self.home / "postgres"

    @property
    def place(self) -> Path:
        """The folder of data/ and run/."""
        with contextlib.suppress(FileNotFoundError):
            return Path((self.folder / "moved_to").read_text().strip())
        return self.folder

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def socket_dir(self) -> Path:
        """run/, or a folder under /tmp where that path cannot be a socket's: the kernel takes
        about 100 bytes, and libpq reads a comma as a list."""
        run = self.place / "run"
        if len(os.fsencode(run)) <= 80 and "," not in str(run):
            return run
        return Path("/tmp") / f"memcore-{hashlib.sha256(os.fsencode(run)).hexdigest()[:16]}"

    def url(self, database: str = "memcore") -> str:
        """For SQLAlchemy."""
        where = quote(str(self.socket_dir), safe="/")
        return f"postgresql+psycopg://postgres@/{database}?host={where}&port={PORT}"

    def dsn(self, database: str = "memcore") -> str:
        """For psycopg.connect."""
        words = {"host": str(self.socket_dir), "port": PORT, "user": "postgres", "dbname": database}
        escaped = {k: str(v).replace("\\", r"\\").replace("'", r"\'") for k, v in words.items()}
        return " ".join(f"{k}='{v}'" for k, v in escaped.items())

    # ---- users

    def acquire(self, timeout: float = 600) -> None:
        """Start the server if needed and count as one user of it until `release` or the end of
        this process, however it ends. Raises DatabaseError."""
        import fcntl

        with self._launch_lock(timeout):
            self._ensure(timeout)
            lease = os.open(self.folder / "lease", os.O_RDONLY | os.O_CREAT, 0o644)
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
        with self._launch_lock(60), open(self.folder / "lease") as lease:
            try:
                fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._stop(60)

    @contextlib.contextmanager
    def use(self) -> Iterator[Cluster]:
        self.acquire()
        try:
            yield self
        finally:
            self.release()

    def _release_all(self) -> None:
        while self._leases:
            self.release()

    # ---- start, stop, status

    def ensure(self, timeout: float = 600) -> None:
        """Create the database if there is none, start the server if it is not running.

        Safe against other processes doing the same and after any crash. timeout: seconds,
        generous because recovery after a crash may take minutes. Raises DatabaseError.
        """
        with self._launch_lock(timeout):
            self._ensure(timeout)

    def stop(self, timeout: float = 60) -> None:
        """Stop the server, whoever uses it. Does nothing if it is not running."""
        if self.folder.is_dir():
            with self._launch_lock(timeout):
                self._stop(timeout)

    def status(self) -> ServerStatus:
        log = self.data / "server.log"
        pid, ready = self._postmaster()
        if not (self.data / "PG_VERSION").exists():
            return ServerStatus("absent", None, self.data, log)
        if self._answers():
            return ServerStatus("running" if ready else "busy", pid, self.data, log)
        if pid and binaries.serves(pid, self.data):
            return ServerStatus("busy", pid, self.data, log)
        return ServerStatus("stopped", None, self.data, log)

    def _ensure(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        pid, ready = self._postmaster()
        if ready and self._answers():
            return
        if not pid or not (self._answers() or binaries.serves(pid, self.data)):
            who = binaries.identity(self.data)
            self._find_place(who)
            programs = binaries.reachable(self.place, who, self.say)
            for half_made in self.place.glob("creating-*"):
                shutil.rmtree(half_made, ignore_errors=True)
            if not (self.data / "PG_VERSION").exists():
                self.say("Creating the database.")
                binaries.create_cluster(programs, who, self.data, fsync=self.fsync)
            if pid:
                self._clear_after_crash()
            pid = self._launch(programs, who)
        self._await_ready(pid, deadline)

    def _stop(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        pid, _ = self._postmaster()
        if not pid or not binaries.serves(pid, self.data):
            return
        os.kill(pid, signal.SIGINT)  # PostgreSQL's fast shutdown: roll back, checkpoint, leave
        while binaries.serves(pid, self.data):
            if time.monotonic() > deadline:
                raise DatabaseError(f"PostgreSQL did not stop within {timeout:.0f} s.")
            time.sleep(0.01)

    # ---- is it alive?

    def _postmaster(self) -> tuple[int | None, bool]:
        """The server's pid as its data folder names it, and whether it says it is ready."""
        with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return int(lines[0]), len(lines) > 7 and lines[7].strip() == "ready"
        return None, False

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            # Anybody may make a folder in /tmp: trust only one of the database's owner.
            if self.socket_dir.lstat().st_uid == self.data.stat().st_uid:
                s.connect(str(self.socket_dir / f".s.PGSQL.{PORT}"))
                return True
        return False

    # ---- launch, recover

    def _find_place(self, who: binaries.Identity | None) -> None:
        if not who or binaries.can_enter(self.place, who):
            return
        if (self.data / "PG_VERSION").exists():
            raise DatabaseError(
                f"OS user {who.user}, who owns the database in {self.place}, cannot reach it.",
                hint="Let others pass the folders above it (chmod o+x), or move it.",
            )
        for parent in ("/var/lib", "/var/db", "/var/tmp"):
            with contextlib.suppress(OSError):
                moved = Path(tempfile.mkdtemp(prefix="memcore-", dir=parent))
                moved.chmod(0o755)
                if binaries.can_enter(moved, who):
                    _write(self.folder / "moved_to", f"{moved}\n")
                    self.say(f"The server's OS user cannot reach {self.home}: using {moved}.")
                    return
                moved.rmdir()
        raise DatabaseError(
            f"OS user {who.user} can reach neither {self.home} nor /var/lib.",
            hint="Set MEMCORE_HOME to a folder below one that others may pass.",
        )

    def _launch(self, programs: Path, who: binaries.Identity | None) -> int:
        """Start a detached server; returns its pid, before it is ready."""
        run = self.socket_dir
        run.mkdir(mode=0o700, exist_ok=True)
        if who and run.lstat().st_uid == 0:
            os.chown(run, who.user, who.group, follow_symlinks=False)
        if run.lstat().st_uid != self.data.stat().st_uid:
            raise DatabaseError(f"The socket folder {run} belongs to somebody else.")
        settings = _SETTINGS | ({} if self.fsync else _FSYNC_OFF)
        if sys.platform == "linux":  # one call instead of one per file
            settings["recovery_init_sync_method"] = "syncfs"
        settings["unix_socket_directories"] = '"' + str(run).replace('"', '""') + '"'
        shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
        if shm and shm.f_bavail * shm.f_frsize < 512 * 2**20:  # 64 MB in many containers
            settings["dynamic_shared_memory_type"] = "mmap"
        quoted = {k: v.replace("\\", r"\\").replace("'", "''") for k, v in settings.items()}
        _write(self.data / "memcore.conf", "".join(f"{k} = '{v}'\n" for k, v in quoted.items()))
        # A shell starts it in the background and leaves: we get no child to wait for.
        script = '"$0" -D "$1" </dev/null >>"$2" 2>&1 & echo $!'
        log = self.data / "server.log"
        shell = ["/bin/sh", "-c", script, programs / "postgres", self.data, log]
        return int(binaries.run(shell, who, self.data))

    def _await_ready(self, pid: int, deadline: float) -> None:
        begun = time.monotonic()
        speak_at = begun + 2
        log = self.data / "server.log"
        while not (self._postmaster()[1] and self._answers()):
            now = time.monotonic()
            named, _ = self._postmaster()  # not ours if a server somebody else started was faster
            if not binaries.alive(pid) and not (named and binaries.serves(named, self.data)):
                raise DatabaseError(
                    f"PostgreSQL stopped while starting: {_complaint(log)}", hint=f"See {log}."
                )
            if now > deadline:
                raise DatabaseError(
                    f"PostgreSQL was not ready after {now - begun:.0f} s.",
                    hint=f"It may still be recovering: see {log}, and try again.",
                )
            if now > speak_at:
                self.say(f"PostgreSQL starts or recovers from a crash: {now - begun:.0f} s so far.")
                speak_at = now + 5
            time.sleep(0.01)

    def _clear_after_crash(self) -> None:
        """The server is gone. Its orphaned backends still share its memory and usually leave at
        once; a busy one is told to quit. Then go the lock files, whose pids may be recycled."""
        import psutil

        begun = time.monotonic()
        while orphans := [p for p in psutil.pids() if binaries.serves(p, self.data)]:
            waited = time.monotonic() - begun
            for pid in orphans if waited > 1 else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if waited > 6 else signal.SIGQUIT)
            if waited > 20:
                raise DatabaseError(f"Processes {orphans} of a dead server use {self.data}.")
            time.sleep(0.05)
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        (self.socket_dir / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _launch_lock(self, timeout: float) -> Iterator[None]:
        import fcntl

        begun = time.monotonic()
        told = False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(self.folder / "launch.lock", "a") as lock:
                while True:
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        waited = time.monotonic() - begun
                    if waited > timeout:
                        raise DatabaseError(
                            f"Another process has been starting or stopping the database in"
                            f" {self.folder} for more than {waited:.0f} s."
                        )
                    if waited > 2 and not told:
                        self.say("Waiting for another process that starts or stops the database.")
                        told = True
                    time.sleep(0.01)
                yield
        except OSError as e:
            raise DatabaseError(
                f"The embedded database cannot use {e.filename or self.folder}: {e.strerror}.",
                hint="Set MEMCORE_HOME to a folder of your own, or DATABASE_URL to a server.",
            ) from e


def _complaint(log: Path) -> str:
    """The last serious line of a server log."""
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()[-40:]
        serious = [line for line in lines if "FATAL:" in line or "PANIC:" in line]
        return (serious or lines or ["it left no log."])[-1].split("] ", 1)[-1]
    return "it left no log."


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.chmod(0o644)
    fresh.replace(path)
