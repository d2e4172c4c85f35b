"""A database with foreign bytes in it ended in TypeError, AttributeError or RecursionError: SQLite stores any value in
any column. Every value is now compared with its column's type where it is read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.ledger.helpers import CAP, X, gaussian

from shapedp.ledger import Ledger, LedgerError, schema
from shapedp.report import of

VALUES = ["x'fffe00'", "CAST(x'c3286162ff' AS TEXT)", "7", "1.5", "'a'", "printf('%.*c', 100000, '[')"]
TABLES = (schema.meta, schema.datasets, schema.documents, schema.entries)
COLUMNS = [(t, c) for t in TABLES for c in t.columns if c.name != "id"]


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=[f"{t.name}.{c.name}" for t, c in COLUMNS])
def test_every_answer_or_error_is_the_ledgers(tmp_path: Path, table: object, column: object) -> None:
    path = tmp_path / "l.db"
    ledger = Ledger.create(path, dataset="d", **CAP)
    with ledger.spend("d", gaussian(100)) as spend:
        spend.release(X)
    whole, errors = path.read_bytes(), 0
    for value in VALUES:
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as connection, connection:
            try:
                connection.execute(f"UPDATE {table} SET {column.name} = {value}")  # type: ignore[attr-defined]
            except sqlite3.IntegrityError:
                continue
        for work in (Ledger.datasets, lambda ledger: ledger.status("d"), lambda ledger: ledger.check("d"),
                     lambda ledger: list(ledger.history("d")), of, _spend):  # fmt: skip
            try:
                work(Ledger.open(path))
            except LedgerError:
                errors += 1
    assert errors > 0


def _spend(ledger: Ledger) -> None:
    with ledger.spend("d", gaussian(100)) as spend:
        assert spend.remaining == 1
        spend.release(X)
