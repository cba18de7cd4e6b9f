"""The tables are those of the description, by the databases' own catalogues."""

from typing import Any

from sqlalchemy import Integer, String, inspect, text

from mimawari.columns.stamps import WRITTEN, parse_stamp
from mimawari.store.sql import SqlStore
from mimawari.store.sql.engine import Session
from tests.prices.crawling import add_product

# Column, type, whether it must be there, and its default.
COLUMNS: list[tuple[str, type[Any], bool, str | None]] = [
    ("id", Integer, True, None),
    ("product_id", Integer, True, None),
    ("external_id", String, True, None),
    ("name", String, True, None),
    ("price", Integer, True, None),
    ("selling_url", String, True, None),
    ("image_url", String, True, None),
    ("selling_status", Integer, True, None),
    ("seller_type", Integer, True, None),
    ("seller_id", String, False, None),
    ("sold_out_at", String, False, None),
    ("created_at", String, True, "CURRENT_TIMESTAMP"),
    ("updated_at", String, True, "CURRENT_TIMESTAMP"),
]
INDEXES = {
    "product_external_unique_idx": (["product_id", "external_id"], True),
    "product_id_idx": (["product_id"], False),
    "external_id_idx": (["external_id"], False),
    "created_at_idx": (["created_at"], False),
    "updated_at_idx": (["updated_at"], False),
}
TABLE = "mercari_crawl_results"


async def test_the_results_have_the_columns_of_the_description(store: SqlStore) -> None:
    found = await store.database.look(lambda s: inspect(s.connection).get_columns(TABLE))
    assert [column["name"] for column in found] == [name for name, *_ in COLUMNS]
    for column, (_, kind, is_needed, default) in zip(found, COLUMNS, strict=True):
        assert isinstance(column["type"], kind)
        assert column["nullable"] == (not is_needed)
        if default is not None:
            said = str(column["default"]).upper().replace("CURRENT_TIMESTAMP()", default)
            assert default in said


async def test_the_results_have_the_indexes_of_the_description(store: SqlStore) -> None:
    def look(session: Session) -> tuple[Any, Any, Any]:
        catalogue = inspect(session.connection)
        return (
            catalogue.get_indexes(TABLE),
            catalogue.get_pk_constraint(TABLE),
            catalogue.get_foreign_keys(TABLE),
        )

    indexes, primary, foreign = await store.database.look(look)
    named = {one["name"]: (one["column_names"], bool(one["unique"])) for one in indexes}
    assert named == INDEXES
    assert primary["constrained_columns"] == ["id"]
    [owner] = foreign
    assert (owner["referred_table"], owner["constrained_columns"]) == ("products", ["product_id"])


async def test_a_row_that_somebody_else_writes_gets_its_number_and_its_times(
    store: SqlStore,
) -> None:
    product = await add_product(store)
    columns = [name for name, _, is_needed, default in COLUMNS[1:] if is_needed and not default]
    values = {"product_id": product.id, "price": 1, "selling_status": 1, "seller_type": 1}
    given = {name: values.get(name, "x") for name in columns}
    marks = ", ".join(f":{name}" for name in given)
    async with store.edit() as tx:
        insert = f"INSERT INTO {TABLE} ({', '.join(given)}) VALUES ({marks})"
        await tx.execute(text(insert), given)
        row = (await tx.execute(text(f"SELECT * FROM {TABLE}"))).one()
    assert row.id > 0
    assert parse_stamp(row.created_at).strftime(WRITTEN) == row.created_at[:19]
