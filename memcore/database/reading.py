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


class Reader:
    """Safe to share between threads."""

    def __init__(self, engine: Engine) -> None:
        """Its connections lead where `engine`'s do."""
        url = engine.url.render_as_string(hide_password=False)
        self._engine = database.create(url, pool_size=5, hot=True)

    def run(self, read: Callable[[psycopg.Connection[Any]], T]) -> T:
        """What `read` returns for a connection in autocommit mode. It may be called twice. Raises
        DatabaseError where the server does not answer, and what `read` raises."""
        for last in (False, True):
            connection = None
            try:
                connection = self._engine.raw_connection()
                driver = connection.driver_connection
                assert driver is not None
                return read(driver)
            except psycopg.OperationalError as error:
                # A cancelled or refused statement leaves the connection open: not ours to retry.
                if connection is not None and not connection.driver_connection.closed:  # type: ignore[union-attr]
                    raise
                if last or connection is None:
                    gone = OperationalError("", None, error)
                    raise database.unreachable(self._engine, gone) from error
                connection.invalidate(error)
                self._engine.dispose()
            finally:
                if connection is not None:
                    connection.close()
        raise AssertionError("unreachable")

    def close(self) -> None:
        self._engine.dispose()
