"""Text of ours in PostgreSQL is compared by code points, as SQLite and MariaDB compare it.

A column made without a collation takes the database's, which is most often a language's: it sorts
differently from the other engines, and differently again after an upgrade of the system's library.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, text

_OTHERS = text(
    # Neither columns that a view or a generated column uses, which PostgreSQL does not let change,
    # nor tables of somebody else in the same schema.
    """
    SELECT c.relname AS name, string_agg(
        format('ALTER COLUMN %I TYPE %s COLLATE "C"',
               a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum) AS changes
    FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_collation k ON k.oid = a.attcollation
    WHERE c.relnamespace = CAST(current_schema() AS regnamespace) AND c.relkind = 'r'
      AND c.relname = ANY(:names)
      AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND k.collname <> 'C'
      AND a.atttypid IN ('text'::regtype, 'varchar'::regtype)
      AND NOT EXISTS (
        SELECT FROM pg_depend d
        WHERE d.refobjid = c.oid AND d.refobjsubid = a.attnum
          AND (d.classid = 'pg_rewrite'::regclass OR d.classid = 'pg_attrdef'::regclass
               AND NOT EXISTS (SELECT FROM pg_attrdef f WHERE f.oid = d.objid
                               AND f.adrelid = c.oid AND f.adnum = a.attnum)))
    GROUP BY c.relname ORDER BY c.relname
    """
)


def compare_by_code_points(connection: Connection, names: Sequence[str]) -> None:
    """Give the text columns of these tables the collation "C" where they have another one.

    A migration that makes a table or a text column calls it as its last step.
    """
    if connection.dialect.name != "postgresql":
        return
    for name, changes in connection.execute(_OTHERS, {"names": list(names)}).all():
        connection.exec_driver_sql(f'ALTER TABLE "{name}" {changes}')
