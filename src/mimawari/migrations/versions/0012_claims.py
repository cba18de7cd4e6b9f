"""Let monitors be claimed: a version fences what an earlier holder still says."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go one step on."""
    version = sa.Column("version", sa.Integer(), server_default="0", nullable=False)
    op.add_column("monitor_states", version)
    op.add_column("monitor_states", sa.Column("report_id", sa.String(length=36), nullable=True))
    op.create_index("monitors_pod_name", "monitors", ["pod_name", "status"])
