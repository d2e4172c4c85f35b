"""From the tables of schema 1 to those of schema 2, in one transaction."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from shapedp.ledger import schema
from shapedp.ledger.errors import LedgerCorruptedError

_STATEMENTS = (
    "ALTER TABLE shapedp_ledger ADD COLUMN place TEXT",
    "ALTER TABLE shapedp_dataset RENAME COLUMN head TO chain",
    "ALTER TABLE shapedp_dataset ADD COLUMN vouching INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE shapedp_dataset ADD COLUMN events BIGINT NOT NULL DEFAULT 0",
    f"ALTER TABLE shapedp_dataset ADD COLUMN genesis TEXT NOT NULL DEFAULT '{schema.GENESIS}'",
    "ALTER TABLE shapedp_dataset ADD COLUMN marks TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE shapedp_entry ADD COLUMN taken BIGINT NOT NULL DEFAULT 0",
    "UPDATE shapedp_entry SET taken = count",
)
_SEALED = ("name", "created", "adjacency", "filter", "totals", "entries", "chain")


def upgrade(connection: sa.Connection) -> None:
    """Adds what schema 2 keeps. Nothing that was counted changes; units of earlier entries count as taken.

    Every seal and number of entries is compared first: what was damaged is not sealed anew.
    """
    for statement in _STATEMENTS:
        connection.exec_driver_sql(statement)
    table = schema.datasets
    for found in connection.execute(sa.select(table)).mappings().all():
        row = schema.typed(found, table)
        number, marks = marks_sum(connection, row)
        if schema.fields_digest([row[name] for name in _SEALED]) != row["seal"] or number != row["entries"]:
            raise LedgerCorruptedError(
                f"the row of dataset {row['name']!r} was damaged or changed by hand, so that the ledger is not brought "
                "to this release; restore it from a backup and treat what is missing as spent"
            )
        row |= {"events": number, "marks": schema.marks_text(marks)}
        connection.execute(
            table.update()
            .where(table.c.id == row["id"])
            .values(events=row["events"], marks=row["marks"], seal=schema.seal_of(row))
        )
    connection.execute(schema.meta.update().values(schema_version=schema.SCHEMA_VERSION))


def marks_sum(connection: sa.Connection, row: dict[str, Any]) -> tuple[int, int]:
    """The number of a dataset's entries and the sum of their marks."""
    table, number, total = schema.entries, 0, 0
    columns = (table.c.digest, table.c.state, table.c.ended, table.c.secure, table.c.taken)
    for found in connection.execute(sa.select(*columns).where(table.c.dataset_id == row["id"])).mappings():
        number, total = number + 1, total + schema.mark_of(schema.typed(found, table))
    return number, total
