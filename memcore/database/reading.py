"""Connections for the hot read path: straight to the driver, autocommit, not asked beforehand
whether they still live.

Asking costs a round trip, as much as a small recall itself. A connection the server dropped shows
at its first use instead; then every idle one is given up and the statement, which only reads, is
sent once more on a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from memcore.database import engine as database

T = TypeVar("T")
_MOST_IDLE = 10


class Reader:
    """Safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        """Its connections lead where `engine`'s do."""
        url = engine.url.render_as_string(hide_password=False)
        self._engine = database.create(url, pool_size=1, hot=True)
        # A pool that only lends: SQLAlchemy's costs as much as a tenth of a small recall.
        self._idle: list[psycopg.Connection[Any]] = []

    def run(self, read: Callable[[psycopg.Connection[Any]], T]) -> T:
        """What `read` returns for a connection in autocommit mode. It may be called twice. Raises
        DatabaseError where the server does not answer, and what `read` raises."""
        for last in (False, True):
            connection = None
            try:
                connection = self._take()
                result = read(connection)
            except psycopg.OperationalError as error:
                # A cancelled or refused statement leaves the connection open: not ours to retry.
                if connection is not None and not connection.closed:
                    self._give(connection)
                    raise
                if last or connection is None:
                    gone = OperationalError("", None, error)
                    raise database.unreachable(self._engine, gone) from error
                self._drop()
            except BaseException:
                if connection is not None:
                    self._give(connection)
                raise
            else:
                self._give(connection)
                return result
        raise AssertionError("unreachable")

    def close(self) -> None:
        self._drop()
        self._engine.dispose()

    def _take(self) -> psycopg.Connection[Any]:
        try:
            return self._idle.pop()
        except IndexError:
            pass
        lent = self._engine.raw_connection()
        connection: psycopg.Connection[Any] | None = lent.driver_connection
        assert connection is not None
        lent.detach()
        return connection

    def _give(self, connection: psycopg.Connection[Any]) -> None:
        idle = connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if not connection.closed and idle and len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _drop(self) -> None:
        """Give up every idle connection."""
        while self._idle:
            self._idle.pop().close()
