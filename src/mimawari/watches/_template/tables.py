"""What this watch keeps."""

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, Text

metadata = MetaData()

pages = Table(
    "example_pages",
    metadata,
    Column("name", String(150), primary_key=True),
    Column("url", Text, nullable=False),
    Column("every_s", Integer, nullable=False),
    Column("number", BigInteger),
    Column("readings", Integer, nullable=False),
    Column("read_at", BigInteger),
)

# Deliberately without a unique key: if a job's effects ever happened twice, it would show here.
readings = Table(
    "example_readings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("job_id", String(36), nullable=False),
    Column("page", String(150), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("read_at", BigInteger, nullable=False),
)

notes = Table(
    "example_notes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("job_id", String(36), nullable=False),
    Column("parent_id", String(36), nullable=False),
)
