"""DATABASE_URL: a PostgreSQL that is not ours, with passwords, roles and what it may lack. The
server is real: the embedded one's programs, listening on 127.0.0.1 and asking for passwords."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from memcore import Subject, open_core
from memcore.database import binaries
from memcore.errors import ConfigError, DatabaseError, ExtensionMissing, MemcoreError

PASSWORD = "p@ss/wörd:1"
IN_URL = "p%40ss%2Fw%C3%B6rd%3A1"


@dataclass
class Server:
    programs: Path
    data: Path
    port: int
    pid: int = 0

    def start(self) -> None:
        script = (
            f'"$0" -D "$1" -F -c listen_addresses=127.0.0.1 -c port={self.port} '
            '-c unix_socket_directories="" </dev/null >>"$1/server.log" 2>&1 & echo $!'
        )
        who = binaries.identity(self.data)
        shell = ["/bin/sh", "-c", script, self.programs / "postgres", self.data]
        self.pid = int(binaries.run(shell, who, self.data))
        end = time.monotonic() + 30
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                self.run("SELECT 1")
                return
            assert time.monotonic() < end, (self.data / "server.log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGINT)
        while binaries.serves(self.pid, self.data):
            time.sleep(0.01)

    def run(self, *statements: str, database: str = "postgres") -> None:
        """As superuser."""
        with psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", password=PASSWORD, dbname=database,
            autocommit=True,
        ) as c:  # fmt: skip
            for statement in statements:
                c.execute(statement)  # type: ignore[arg-type]

    def url(self, database: str, role: str = "postgres", scheme: str = "postgresql") -> str:
        return f"{scheme}://{role}:{IN_URL}@127.0.0.1:{self.port}/{database}"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture(scope="module")
def external() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="mc-", dir="/tmp"))
    folder.chmod(0o755)
    data = folder / "data"
    who = binaries.identity(data)
    programs = binaries.reachable(folder, who, print)
    binaries.create_cluster(programs, who, data, fsync=False)
    (data / "memcore.conf").write_text("")
    set_password = sql.SQL("ALTER ROLE postgres PASSWORD {}").format(sql.Literal(PASSWORD))
    single = [programs / "postgres", "--single", "-F", "-D", data, "postgres"]
    binaries.run(single, who, data, stdin=set_password.as_string(None) + "\n")
    server = Server(programs, data, free_port())
    server.start()
    server.run(
        f"CREATE ROLE plain LOGIN PASSWORD '{PASSWORD}'",
        f"CREATE ROLE owner LOGIN PASSWORD '{PASSWORD}'",
    )
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def database(external: Server) -> Iterator[str]:
    """An empty database of the superuser's."""
    name = f"d{time.monotonic_ns()}"
    external.run(f"CREATE DATABASE {name}")
    yield name
    external.run(f"DROP DATABASE {name} WITH (FORCE)")


def works(url: str, home: Path) -> None:
    """One memory goes in and is found again."""
    with open_core(url=url, home=home) as core:
        assert not core.embedded
        library = core.libraries.create(f"team {time.monotonic_ns()}", embedder="hash:64")
        who = Subject(library.id, user_id="u1")
        assert core.memories.add_explicit_memory("Prefers oolong tea", subject=who).memory
        assert core.memories.search_memories("oolong tea", subject=who).hits


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_the_address_works(
    external: Server, database: str, tmp_path: Path, scheme: str
) -> None:
    works(external.url(database, scheme=scheme), tmp_path)


def test_the_environment_names_the_database(
    external: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"  {external.url(database)}\n")
    with open_core(home=tmp_path) as core:
        assert not core.embedded
    assert not (tmp_path / "postgres").exists()


def test_a_role_that_only_owns_its_database_is_enough_once_pgvector_is_enabled(
    external: Server, database: str, tmp_path: Path
) -> None:
    external.run(f"ALTER DATABASE {database} OWNER TO owner")
    with pytest.raises(ExtensionMissing, match="'owner' may not enable it") as caught:
        works(external.url(database, "owner"), tmp_path)
    assert "CREATE EXTENSION vector" in str(caught.value)
    external.run("CREATE EXTENSION vector", database=database)
    works(external.url(database, "owner"), tmp_path)


def test_a_role_without_the_right_to_create_tables_is_told_which_right(
    external: Server, database: str, tmp_path: Path
) -> None:
    external.run("CREATE EXTENSION vector", database=database)
    with pytest.raises(DatabaseError, match="plain") as caught:
        works(external.url(database, "plain"), tmp_path)
    assert "GRANT" in str(caught.value)


def test_a_migrated_database_asks_for_no_more_than_its_tables(
    external: Server, database: str, tmp_path: Path
) -> None:
    external.run(f"ALTER DATABASE {database} OWNER TO owner")
    external.run("CREATE EXTENSION vector", database=database)
    works(external.url(database, "owner"), tmp_path)
    external.run(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO plain",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO plain",
        database=database,
    )
    with open_core(url=external.url(database, "plain"), home=tmp_path) as core:
        library = core.libraries.all()[0]
        who = Subject(library.id, user_id="u1")
        assert core.memories.add_explicit_memory("Drinks no coffee at all", subject=who).memory
        assert len(core.memories.search_memories("tea or coffee", subject=who).hits) == 2


def test_a_server_without_pgvector_is_told_what_to_install(
    external: Server, tmp_path: Path
) -> None:
    """A second server whose programs are the same but for the extension's files."""
    folder = Path(tempfile.mkdtemp(prefix="mc-", dir="/tmp"))
    folder.chmod(0o755)
    install = external.programs.parent
    (folder / "bin").mkdir()
    shutil.copy2(external.programs / "postgres", folder / "bin")
    (folder / "lib").symlink_to(install / "lib")
    extensions = folder / "share" / "extension"
    extensions.mkdir(parents=True)
    for item in (install / "share").iterdir():
        if item.name != "extension":
            (folder / "share" / item.name).symlink_to(item)
    for item in (install / "share" / "extension").iterdir():
        if not item.name.startswith("vector"):
            (extensions / item.name).symlink_to(item)
    external.stop()
    without = Server(folder / "bin", external.data, external.port)
    try:
        without.start()
        try:
            with pytest.raises(ExtensionMissing, match="has no pgvector") as caught:
                works(without.url("memcore"), tmp_path)
            assert "Install pgvector 0.8" in str(caught.value)
        finally:
            without.stop()
    finally:
        external.start()
        shutil.rmtree(folder)


def test_an_old_pgvector_is_refused_by_its_version(
    external: Server, database: str, tmp_path: Path
) -> None:
    external.run(
        "CREATE EXTENSION vector",
        "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'",
        database=database,
    )
    with pytest.raises(ExtensionMissing, match=r"0\.7\.4.*0\.8 or newer"):
        works(external.url(database), tmp_path)


def test_troubles_in_reaching_it_are_told_without_the_password(
    external: Server, database: str, tmp_path: Path
) -> None:
    wrong = external.url(database).replace(IN_URL, "hunter2")
    nobody_there = f"postgresql://postgres:hunter2@127.0.0.1:{free_port()}/x"
    no_such = external.url("no_such_database")
    no_host = "postgresql://postgres:hunter2@no-such-host.invalid/x"
    for url, cause in [
        (wrong, "password authentication failed"),
        (nobody_there, "127.0.0.1"),
        (no_such, "no_such_database"),
        (no_host, "no-such-host.invalid"),
    ]:
        with pytest.raises(DatabaseError, match=cause) as caught:
            open_core(url=url, home=tmp_path)
        assert "DATABASE_URL" in str(caught.value)
        for secret in ("hunter2", PASSWORD, IN_URL):
            assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["mysql://u:hunter2@h/db", "sqlite:///x.db", "hunter2", "postgresql://u:hunter2@h:port/d"],
)
def test_an_address_that_is_none_is_refused_without_showing_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL") as caught:
        open_core(url=url, home=tmp_path)
    assert "hunter2" not in str(caught.value)


def test_six_that_start_at_once_migrate_once(
    external: Server, database: str, tmp_path: Path
) -> None:
    failures: list[BaseException] = []

    def open_one() -> None:
        try:
            with open_core(url=external.url(database), home=tmp_path):
                pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    works(external.url(database), tmp_path)


def test_a_restarted_server_is_noticed_by_the_next_call(
    external: Server, database: str, tmp_path: Path
) -> None:
    with open_core(url=external.url(database), home=tmp_path) as core:
        library = core.libraries.create("team", embedder="hash:64")
        who = Subject(library.id, user_id="u1")
        add: Callable[[str], object] = lambda t: core.memories.add_explicit_memory(t, subject=who)  # noqa: E731
        add("Prefers oolong tea")
        external.stop()
        with pytest.raises(MemcoreError):
            core.memories.search_memories("tea", subject=who)
        external.start()
        assert core.memories.search_memories("tea", subject=who).hits
        add("Prefers green tea on Mondays")
