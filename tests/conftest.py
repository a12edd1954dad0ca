"""What every test stands on: a scrubbed environment, one embedded PostgreSQL for the run, and a
database of its own, made from a migrated template, for each test that asks for `core`."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from memcore.core import Core, open_core
from memcore.database.tables import Row
from memcore.models import Library, Subject

for _name in list(os.environ):
    if _name.startswith(("MEMORY_", "MEMCORE_", "OPENAI_", "DATABASE_URL", "CHECKPOINT_")) and (
        not _name.startswith("MEMCORE_TEST_")
    ):
        del os.environ[_name]


@pytest.fixture(scope="session")
def server() -> Iterator[Callable[[str], str]]:
    """Database name → URL on the run's server; `memcore` is the migrated template."""
    from memcore.database import engine as database
    from memcore.database.embedded import Cluster

    # A short path: a socket's name has little room.
    home = Path(tempfile.mkdtemp(prefix="mc-", dir="/tmp"))
    # As root the server runs as another user, who must be able to enter.
    home.chmod(0o755)
    cluster = Cluster.at(home, fsync=False)
    with cluster.use():
        engine = database.create(cluster.url("memcore"))
        database.prepare(engine)
        engine.dispose()
        yield cluster.url
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def fresh_database_url(server: Callable[[str], str]) -> Iterator[str]:
    """A migrated database of the test's own; for tests that change the schema or count sessions."""
    with _database(server, "memcore") as url:
        yield url


@contextmanager
def _database(
    server: Callable[[str], str], template: str, *, keep: str | None = None
) -> Iterator[str]:
    name = keep or f"t{uuid.uuid4().hex}"
    admin = create_engine(server("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
    yield server(name)
    if not keep:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
    admin.dispose()


@pytest.fixture(scope="session")
def database_from(
    server: Callable[[str], str],
) -> Callable[[str], AbstractContextManager[str]]:
    """Template → URL of a copy, dropped at the end: `with database_from(demo_template) as url`."""
    return partial(_database, server)


@pytest.fixture(scope="session")
def shared_database(server: Callable[[str], str]) -> Iterator[Engine]:
    with _database(server, "memcore", keep="shared") as url:
        engine = create_engine(url)
        yield engine
        engine.dispose()


@pytest.fixture
def database_url(shared_database: Engine) -> Iterator[str]:
    """A migrated database that is empty when the test begins: much faster than a new one."""
    yield shared_database.url.render_as_string(hide_password=False)
    with shared_database.begin() as connection:
        partitions = connection.scalars(
            text(
                "SELECT inhrelid::regclass::text FROM pg_inherits "
                "WHERE inhparent = 'embeddings'::regclass"
            )
        ).all()
        for partition in partitions:
            connection.execute(text(f"DROP TABLE {partition}"))
        for table in reversed(Row.metadata.sorted_tables):
            connection.execute(table.delete())


@pytest.fixture(scope="session")
def demo_template(server: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of a database that holds the demo world, made once."""
    from memcore import demo

    with (
        _database(server, "memcore", keep="demo_world") as url,
        open_core(url=url, home=tmp_path_factory.mktemp("demo")) as opened,
    ):
        demo.load(opened, embedder="hash:64")
    return "demo_world"


@pytest.fixture
def demo_url(server: Callable[[str], str], demo_template: str) -> Iterator[str]:
    """A database of the test's own with the demo world in it."""
    with _database(server, demo_template) as url:
        yield url


@pytest.fixture
def demo_core(demo_url: str, tmp_path: Path) -> Iterator[Core]:
    """The demo world, to read and to change."""
    with open_core(url=demo_url, home=tmp_path) as opened:
        yield opened


@pytest.fixture
def core(database_url: str, tmp_path: Path) -> Iterator[Core]:
    with open_core(url=database_url, home=tmp_path) as opened:
        yield opened


@pytest.fixture
def library(core: Core) -> Library:
    """A library with the hand-computable embedder."""
    return core.libraries.create("team", embedder="hash:64")


@pytest.fixture
def who(library: Library) -> Subject:
    return Subject(library.id, user_id="u1", project_id="p1", session_id="s1")
