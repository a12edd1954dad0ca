"""The first schema."""

from alembic import op

from memcore.database.tables import Row

revision = "0001"
down_revision = None


def upgrade() -> None:
    Row.metadata.create_all(op.get_bind())


def downgrade() -> None:
    Row.metadata.drop_all(op.get_bind())
