"""Connections: one engine per database, checked for pgvector, migrated once.

`connect(url)` is the only way in. Without a URL the embedded server is started (embedded.py).
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    OperationalError,
    ProgrammingError,
    StatementError,
)

from memcore.errors import ConfigError, DatabaseError, ExtensionMissing

if TYPE_CHECKING:
    import psycopg

SMALLEST_SERVER = 150000
SMALLEST_PGVECTOR = (0, 8)
_MIGRATION_LOCK = 0x6D656D63  # "memc"
_SHORT_REST = 5.0
"""Seconds after which a connection that rested is asked whether it lives."""


def as_url(url: str) -> URL:
    """`url` for psycopg 3. Takes postgres://, postgresql:// and postgresql+psycopg://. Raises
    ConfigError; the password is never in the message."""
    try:
        parsed = make_url(url.strip())
    except (ArgumentError, ValueError):
        raise ConfigError(
            "DATABASE_URL is not a database address.",
            hint="Write it like postgresql://user:password@host:5432/name.",
        ) from None
    if parsed.drivername not in ("postgres", "postgresql", "postgresql+psycopg"):
        raise ConfigError(
            f"DATABASE_URL starts with {parsed.drivername}://, but memcore runs on PostgreSQL.",
            hint="Write it like postgresql://user:password@host:5432/name.",
        )
    return parsed.set(drivername="postgresql+psycopg")


def create(url: str, *, pool_size: int = 10, hot: bool = False) -> Engine:
    """An engine whose connections speak UTC and send numpy arrays as binary vectors. `hot` is for
    `reading.Reader`: autocommit, and not asked before use whether they still live."""
    lean: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None}
    options = "-c timezone=UTC -c jit=off"
    if hot:
        # One plan per statement: planning a recall anew costs as much as running it.
        options += " -c plan_cache_mode=force_generic_plan"
    engine = create_engine(
        as_url(url),
        pool_size=pool_size,
        max_overflow=10,
        **(lean if hot else {}),
        connect_args={"connect_timeout": 10, "options": options},
    )

    @event.listens_for(engine, "connect")
    def _vectors(connection: psycopg.Connection[Any], _record: object) -> None:
        from pgvector.psycopg import register_vector
        from psycopg import ProgrammingError
        from psycopg.types import TypeInfo

        # Before the first migration there is no vector type yet.
        try:
            if TypeInfo.fetch(connection, "vector") is not None:
                register_vector(connection)
        except ProgrammingError:
            pass
        connection.rollback()

    @event.listens_for(engine, "checkin")
    def _rested(_connection: object, record: Any) -> None:
        record.info["since"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _living(connection: psycopg.Connection[Any], record: Any, _proxy: object) -> None:
        """Asks the server whether a connection still lives only where that is in doubt: after a
        rest, or when something arrived unasked, as it does when the server ends. Asking each time
        (pool_pre_ping) costs as much as a small statement."""
        rest = time.monotonic() - record.info.get("since", time.monotonic())
        if hot or (rest < _SHORT_REST and not _spoken(connection)):
            return
        try:
            engine.dialect.do_ping(connection)  # type: ignore[arg-type]
        except engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError() from error

    @event.listens_for(engine, "handle_error")
    def _gone(context: ExceptionContext) -> DatabaseError | None:
        """A server that does not answer, or stopped answering, is trouble people can act on."""
        if context.sqlalchemy_exception is None:
            return None
        if context.is_disconnect or context.connection is None:
            return unreachable(engine, context.sqlalchemy_exception)
        return None

    return engine


def _spoken(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server sent something nobody asked for, or ended the connection."""
    try:
        return bool(select.select([connection.fileno()], [], [], 0)[0])
    except (OSError, ValueError):  # closed, or a number too large for select
        return True


def prepare(engine: Engine, say: Callable[[str], None] = lambda _: None) -> None:
    """Make the database ready: reachable, pgvector there, migrated to the newest version. Safe
    when several processes start at once. Raises DatabaseError or ExtensionMissing."""
    try:
        with engine.connect() as connection:
            version = connection.scalar(text("SELECT current_setting('server_version_num')::int"))
            if version < SMALLEST_SERVER:
                raise DatabaseError(
                    f"The database is PostgreSQL {version // 10000}, but memcore needs 15 or newer."
                )
            if _is_current(connection):
                return
        say("Setting up tables …")
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            need_pgvector(connection)
            _migrate(connection)
        # Connections opened before the extension existed do not know its type.
        engine.dispose()
    except ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) != "42501":
            raise
        raise DatabaseError(
            f"Role {engine.url.username!r} may not set up memcore's tables in database "
            f"{engine.url.database!r}: {error.orig}",
            hint="Let it create there (GRANT CREATE ON SCHEMA public TO it), or have the "
            "database's owner run `memcore status` once.",
        ) from error


def unreachable(engine: Engine, error: StatementError) -> DatabaseError:
    """`error` as a sentence that names the host and never the password."""
    url = engine.url
    where = url.host or url.query.get("host", "")
    cause = str(error.orig).strip().splitlines()[-1] if error.orig else ""
    if url.password:
        cause = cause.replace(str(url.password), "•••")
    return DatabaseError(
        f"The database at {where} cannot be reached: {cause[:300]}",
        hint="Check that the server runs and DATABASE_URL is right; without DATABASE_URL memcore "
        "starts its own.",
    )


@contextmanager
def driven(connection: Connection) -> Iterator[psycopg.Connection[Any]]:
    """The driver's connection under `connection`, in the same transaction, for statements that are
    not worth building with SQLAlchemy. Raises DatabaseError where the server went away."""
    import psycopg

    driver: Any = connection.connection.driver_connection
    try:
        yield driver
    except psycopg.OperationalError as error:
        if not driver.closed:
            raise
        connection.invalidate(error)
        raise unreachable(connection.engine, OperationalError("", None, error)) from error


def need_pgvector(connection: Connection) -> None:
    """Make sure that the extension is there and new enough. Raises ExtensionMissing."""
    installed = connection.scalar(
        text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    )
    if installed is None:
        offered = connection.scalar(
            text("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
        )
        if offered is None:
            raise ExtensionMissing(
                "The database server has no pgvector.",
                hint="Install pgvector 0.8 or newer on the server "
                "(package postgresql-NN-pgvector), or unset DATABASE_URL to use the embedded one.",
            )
        try:
            with connection.begin_nested():
                connection.execute(text("CREATE EXTENSION vector"))
        except DBAPIError as error:
            user = connection.scalar(text("SELECT current_user"))
            raise ExtensionMissing(
                f"pgvector is installed on the server but not enabled in this database, and role "
                f"{user!r} may not enable it.",
                hint="Have a superuser run CREATE EXTENSION vector; in this database once.",
            ) from error
        installed = offered
    if tuple(int(p) for p in installed.split(".")[:2]) < SMALLEST_PGVECTOR:
        raise ExtensionMissing(
            f"pgvector is {installed}, but memcore needs 0.8 or newer.",
            hint="Install a newer pgvector, then run ALTER EXTENSION vector UPDATE.",
        )


def _is_current(connection: Connection) -> bool:
    from memcore.database.migrations import HEAD

    exists = connection.scalar(text("SELECT to_regclass('alembic_version') IS NOT NULL"))
    if not exists:
        return False
    return bool(connection.scalar(text("SELECT version_num FROM alembic_version")) == HEAD)


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
