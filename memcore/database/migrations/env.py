"""Alembic's entry: runs on the connection `engine.prepare` hands over, inside its transaction."""

from alembic import context

from memcore.database.tables import Row

context.configure(connection=context.config.attributes["connection"], target_metadata=Row.metadata)
context.run_migrations()
