"""A trigger in a ledger's file was neither refused nor noticed; other edits of the file ended in a driver's words."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import shapedp as sdp
from shapedp.cli import main
from shapedp.ledger import Ledger, LedgerCorruptedError

CAP = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove", "person": None}
NOISE = sdp.calibrate("laplace", sdp.L1(1.0, dim=1, adjacency="add-remove"), epsilon=0.5, delta=0.0)
FOREIGN = (
    "CREATE TRIGGER back AFTER INSERT ON shapedp_entry BEGIN DELETE FROM shapedp_entry; END",
    "CREATE VIEW shown AS SELECT * FROM shapedp_entry",
)


def edited(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize("statement", FOREIGN)
def test_a_file_with_foreign_parts_is_refused(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "l.db"
    ledger = Ledger.create(path, dataset="one", **CAP)
    edited(path, statement)
    with pytest.raises(LedgerCorruptedError, match="trigger or a view"):
        Ledger.open(path)
    with pytest.raises(LedgerCorruptedError, match="trigger or a view"):
        ledger.check("one")
    with pytest.raises(LedgerCorruptedError, match="trigger or a view"):
        Ledger.create(path, dataset="two", **CAP)
    with pytest.raises(LedgerCorruptedError, match="trigger or a view"), ledger.spend("one", NOISE):
        raise AssertionError("never reached: a ledger that was open before, too")


def test_a_schema_version_set_back_is_said_to_be_that(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    Ledger.create(path, dataset="one", **CAP)
    edited(path, "UPDATE shapedp_ledger SET schema_version = 2")
    with pytest.raises(LedgerCorruptedError, match="changed by hand"):
        Ledger.open(path)


def test_status_without_a_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "l.db"
    Ledger.create(path, dataset="one", **CAP)
    edited(path, "DELETE FROM shapedp_dataset")
    assert main(["ledger", "status", str(path)]) in (0, 2)
    assert "internal error" not in capsys.readouterr().err


def test_a_plain_file_is_spent_from(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="one", **CAP)
    with ledger.spend("one", NOISE) as spend:
        spend.release([1.0])
    assert ledger.check("one").entries == 1
