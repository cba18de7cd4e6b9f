"""Keep which process has an event in hand, and which events are suspected of stopping one."""

import sqlalchemy as sa
from alembic import op

from mimawari.store.sql.collation import compare_by_code_points

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go one step on."""
    op.add_column("lanes", sa.Column("owner", sa.String(length=36), nullable=True))
    suspect = sa.Column("suspect", sa.Integer(), server_default="0", nullable=False)
    op.add_column("lanes", suspect)
    op.create_index("lanes_suspect", "lanes", ["suspect", "due_at"])
    op.create_index("lanes_owner", "lanes", ["owner"])
    compare_by_code_points(op.get_bind(), ["lanes"])
