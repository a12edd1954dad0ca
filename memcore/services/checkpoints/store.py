"""Connections to the database that holds LangGraph's checkpoint tables.

Reading runs in read-only transactions with a time limit, so that looking never harms an agent's
database. Statements are not prepared: behind a transaction pooler (PgBouncer and its like) one
prepared on this connection does not exist on the next. A connection is checked when it leaves the
pool, so that one which died while idle is replaced.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import IsolationLevel, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from memcore.errors import (
    ConfigError,
    DatabaseError,
    MemcoreError,
    NotFound,
    PermissionDenied,
)
from memcore.services.checkpoints.values import Source

Conn = psycopg.Connection[DictRow]

READ_SECONDS = 30
_WAIT_SECONDS = 5.0
_ALIVE = {"keepalives": 1, "keepalives_idle": 60, "keepalives_interval": 10, "keepalives_count": 3}
_UNPREPARED = ("26000", "42P05")
_NO_TABLE, _NO_COLUMN, _TOO_SLOW, _NO_WRITES = "42P01", "42703", "57014", "25006"


class CheckpointStore:
    """One checkpoint database. Nothing is connected before it is used."""

    def __init__(
        self,
        url: str,
        *,
        own: bool = False,
        read_only: bool = True,
        prepare: bool = False,
        setting: str = "CHECKPOINT_DATABASE_URL",
    ) -> None:
        """`url` is a libpq or SQLAlchemy-style address. `read_only`: prune, restore and the
        agents' saver are refused. `prepare`: let the driver prepare statements; only without a
        transaction pooler in between. `setting` is the variable's name for messages."""
        self.conninfo = _conninfo(url, setting)
        self.own = own
        self.read_only = read_only
        self.setting = setting
        self.where = describe(self.conninfo)
        self._threshold = 1 if prepare else None
        self._lock = threading.Lock()
        self._pools: dict[str, ConnectionPool[Any]] = {}

    # ---- connections ---------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Conn]:
        """One snapshot of the database, in which nothing can be written."""
        with self.explained(), self._pool("read").connection(timeout=_WAIT_SECONDS) as connection:
            connection.execute(
                sql.SQL("SET LOCAL statement_timeout = {}").format(READ_SECONDS * 1000)
            )
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Conn]:
        """One transaction on one snapshot. Raises PermissionDenied on a read-only database."""
        self.need_writable()
        with self.explained(), self._pool("write").connection(timeout=_WAIT_SECONDS) as conn:
            yield conn

    def saver_pool(self) -> ConnectionPool[Any]:
        """Autocommitting connections for a `PostgresSaver`."""
        self.need_writable()
        with self.explained():
            return self._pool("saver")

    def need_writable(self) -> None:
        if self.read_only:
            raise PermissionDenied(
                f"The checkpoint database at {self.where} is marked read-only.",
                hint="Set CHECKPOINT_READ_ONLY=off to let memcore write to it.",
            )

    def close(self) -> None:
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _pool(self, kind: str) -> ConnectionPool[Any]:
        with self._lock:
            if kind not in self._pools:
                # A pool only says that it waited; this says at once why there is no connection.
                psycopg.connect(self.conninfo, connect_timeout=5).close()
                saver = kind == "saver"

                def configure(connection: Conn) -> None:
                    if not saver:
                        connection.isolation_level = IsolationLevel.REPEATABLE_READ
                        connection.read_only = kind == "read"

                self._pools[kind] = ConnectionPool(
                    self.conninfo,
                    min_size=0,
                    max_size=10 if saver else 4,
                    timeout=_WAIT_SECONDS * (6 if saver else 1),
                    reconnect_timeout=_WAIT_SECONDS,
                    max_idle=300,
                    name=f"checkpoints-{kind}",
                    configure=configure,
                    check=ConnectionPool.check_connection,
                    kwargs={
                        "autocommit": saver,
                        "row_factory": dict_row,
                        "prepare_threshold": self._threshold,
                        "connect_timeout": 5,
                        **_ALIVE,
                    },
                    open=True,
                )
            return self._pools[kind]

    # ---- what is there ---------------------------------------------------------------------------

    def source(self) -> Source:
        """Which database this is and whether LangGraph's tables are in it. Raises DatabaseError."""
        with self.reading() as connection:
            row = connection.execute(
                "SELECT to_regclass('checkpoints') IS NOT NULL"
                " AND to_regclass('checkpoint_blobs') IS NOT NULL"
                " AND to_regclass('checkpoint_writes') IS NOT NULL AS ready,"
                " to_regclass('checkpoint_migrations') IS NOT NULL AS versioned,"
                " pg_is_in_recovery() AS standby"
            ).fetchone()
            assert row is not None
            migration = None
            if row["ready"] and row["versioned"]:
                newest = connection.execute("SELECT max(v) AS v FROM checkpoint_migrations")
                migration = (newest.fetchone() or {"v": None})["v"]
        return Source(
            self.where, self.own, self.read_only or row["standby"], row["ready"], migration
        )

    def need_tables(self) -> Source:
        """Raises NotFound while LangGraph's tables are not there."""
        source = self.source()
        if not source.ready:
            raise self._no_tables()
        return source

    def _no_tables(self) -> NotFound:
        return NotFound(
            f"There are no LangGraph checkpoint tables in {self.where}.",
            hint="Run an agent with the saver memcore offers, load the demo threads, or point "
            f"{self.setting} at the database your agents write to.",
        )

    # ---- failures --------------------------------------------------------------------------------

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turns the driver's failures into DatabaseError (NotFound where LangGraph's tables are
        missing) with a cause and a next step."""
        try:
            yield
        except PoolTimeout as error:
            raise self._unreachable(self._cause()) from error
        except psycopg.Error as error:
            raise self._reason(error) from error

    def _cause(self) -> str:
        """Why no connection could be had: the pool itself only says that it waited."""
        try:
            psycopg.connect(self.conninfo, connect_timeout=3).close()
        except psycopg.Error as error:
            return str(error)
        return f"no connection was free for {_WAIT_SECONDS:.0f} s"

    def _unreachable(self, cause: str) -> DatabaseError:
        password = conninfo_to_dict(self.conninfo).get("password")
        if password:
            cause = cause.replace(str(password), "•••")
        lines = [line.strip() for line in cause.splitlines() if line.strip()]
        return DatabaseError(
            f"The checkpoint database at {self.where} cannot be reached: "
            f"{lines[-1][:300] if lines else 'no answer'}",
            hint=f"Check that it runs and that {self.setting} is right.",
        )

    def _reason(self, error: psycopg.Error) -> MemcoreError:
        state = error.sqlstate or ""
        if state in _UNPREPARED:
            return DatabaseError(
                "A prepared statement was not there any more: the address leads to a connection "
                "pooler in transaction mode.",
                hint="Leave CHECKPOINT_PREPARE off (prepare_threshold=None in other clients), or "
                "connect past the pooler.",
            )
        if state == _NO_TABLE:
            return self._no_tables()
        if state == _NO_COLUMN:
            return DatabaseError(
                f"The checkpoint tables in {self.where} are not those of LangGraph's saver for "
                f"PostgreSQL: {str(error).splitlines()[0][:200]}",
                hint="Run PostgresSaver.setup() there, or point "
                f"{self.setting} at another database.",
            )
        if state == _TOO_SLOW:
            return DatabaseError(
                f"The checkpoint database took longer than {READ_SECONDS} s.",
                hint="Narrow the search, or look again when it is less busy.",
            )
        if state == _NO_WRITES:
            return DatabaseError(
                f"The checkpoint database at {self.where} does not accept writes.",
                hint="It is a standby or set to read-only by its own configuration.",
            )
        if isinstance(error, psycopg.OperationalError) and not state.startswith(("40", "53")):
            return self._unreachable(str(error))
        return DatabaseError(
            f"The checkpoint database refused: {str(error).splitlines()[0][:200]}",
            hint=None if not state.startswith("40") else "Another process changed it; try again.",
        )


def _conninfo(url: str, setting: str) -> str:
    """A libpq address from a SQLAlchemy-style or plain one. Raises ConfigError without echoing
    the password."""
    address = url.strip()
    for prefix in ("postgresql+psycopg://", "postgres://"):
        if address.startswith(prefix):
            address = "postgresql://" + address.removeprefix(prefix)
    try:
        conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        raise ConfigError(
            f"{setting} is not a database address.",
            hint="Write it like postgresql://user:password@host:5432/name.",
        ) from None
    return address


def describe(conninfo: str) -> str:
    """`user@host:port/database`, for people; no password."""
    parts = conninfo_to_dict(conninfo)
    host = str(parts.get("host") or "localhost")
    user = f"{quote(str(parts['user']), safe='')}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") and not host.startswith("/") else ""
    return f"{user}{host}{port}/{parts.get('dbname') or ''}"
