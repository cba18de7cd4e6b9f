"""Count how often the guard ended a process that had a job in hand."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go one step on."""
    op.add_column("jobs", sa.Column("stops", sa.Integer(), server_default="0", nullable=False))
