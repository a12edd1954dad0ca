"""Alembic migrations. `HEAD` spares a warm start the import of Alembic; a test keeps it true."""

HEAD = "0001"
