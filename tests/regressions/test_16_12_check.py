"""`ledger check` missed an edited `state`, `ended` or `secure` and a dataset row that was set back; a copy restored
from yesterday could not be found at all."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ledger.helpers import CAP, X, gaussian
from tests.ledger.test_cli import run

from shapedp.ledger import Head, Ledger, LedgerCorruptedError, LedgerError

KEY = b"0123456789abcdef"


def spend(ledger: Ledger) -> None:
    with ledger.spend("d", gaussian(8), count=2) as block:
        block.release(X)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    spend(ledger)
    ledger.spend("d", gaussian(8)).__enter__()
    ledger.check("d")
    return tmp_path / "l.db"


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    "change",
    [
        "state = 'abandoned' WHERE sequence = 1",
        "state = 'released' WHERE sequence = 2",
        "ended = '2020-01-01T00:00:00.000000+00:00' WHERE sequence = 1",
        "secure = 0 WHERE sequence = 1",
        "secure = 1 WHERE sequence = 2",
        "taken = 0 WHERE sequence = 1",
        "taken = 1 WHERE sequence = 2",
        "taken = -5 WHERE sequence = 2",
    ],
)
def test_what_changes_about_an_entry_is_digested(path: Path, change: str) -> None:
    edit(path, f"UPDATE shapedp_entry SET {change}")
    with pytest.raises(LedgerCorruptedError, match="changed by hand"):
        Ledger.open(path).check("d")
    with pytest.raises(LedgerCorruptedError):
        Ledger.adopt(path)


def test_marks_exchanged_between_entries_are_found(path: Path) -> None:
    columns = ("state", "ended", "secure", "taken")
    other = ", ".join(f"{c} = (SELECT {c} FROM old WHERE old.sequence = 3 - shapedp_entry.sequence)" for c in columns)
    edit(path, "CREATE TEMP TABLE old AS SELECT * FROM shapedp_entry", f"UPDATE shapedp_entry SET {other}")
    with pytest.raises(LedgerCorruptedError, match="changed by hand"):
        Ledger.open(path).check("d")


def test_a_dataset_row_that_was_set_back(path: Path) -> None:
    """Its seal is right, and the entries that it counts add up."""
    copy = shutil.copy(path, path.with_name("before.db"))
    spend(Ledger.open(path))
    edit(
        path,
        f"ATTACH '{copy}' AS old",
        "DELETE FROM shapedp_dataset",
        "INSERT INTO shapedp_dataset SELECT * FROM old.shapedp_dataset",
    )
    ledger = Ledger.open(path)
    with pytest.raises(LedgerCorruptedError, match="set back"):
        ledger.check("d")
    with pytest.raises(LedgerCorruptedError, match="contradicts itself"):
        spend(ledger)


@pytest.mark.parametrize("between", [spend, lambda ledger: ledger.spend("d", gaussian(8)).__enter__().release(X)])
def test_a_copy_of_yesterday_does_not_continue_a_kept_head(path: Path, between: Callable[[Ledger], object]) -> None:
    yesterday = path.read_bytes()
    ledger = Ledger.open(path)
    early = ledger.head("d", key=KEY)
    between(ledger)
    late = ledger.head("d", key=KEY)
    spend(ledger)
    for head in (early, late):
        ledger.check("d", head=head, key=KEY)
    path.write_bytes(yesterday)
    ledger.check("d")
    ledger.check("d", head=early, key=KEY)
    with pytest.raises(LedgerCorruptedError, match="set back"):
        ledger.check("d", head=late, key=KEY)
    spend(ledger)
    spend(ledger)
    ledger.check("d")
    with pytest.raises(LedgerCorruptedError, match="rewritten"):
        ledger.check("d", head=late, key=KEY)


def test_units_taken_since_count_as_a_change(path: Path) -> None:
    ledger = Ledger.open(path)
    block = ledger.spend("d", gaussian(8), count=2).__enter__()
    before = path.read_bytes()
    block.release(X)
    head = ledger.head("d")
    path.write_bytes(before)
    with pytest.raises(LedgerCorruptedError, match="set back"):
        ledger.check("d", head=head)
    block.release(X, batch=None)
    with pytest.raises(LedgerCorruptedError):
        ledger.check("d", head=replace(head, seal="0" * 64))


def test_the_head_of_another_ledger(path: Path, tmp_path: Path) -> None:
    empty = Ledger.create(tmp_path / "m.db", dataset="d", **CAP).head("d")
    with pytest.raises(LedgerCorruptedError, match="rewritten"):
        Ledger.open(path).check("d", head=empty)
    with pytest.raises(ValueError, match="of dataset 'e'"):
        Ledger.open(path).check("d", head=replace(empty, dataset="e"))


def test_heads_are_signed(path: Path) -> None:
    ledger = Ledger.open(path)
    head = Head.from_json(json.loads(json.dumps(ledger.head("d", key=KEY).to_json())))
    ledger.check("d", head=head, key=KEY)
    for other in (replace(head, signature=None), replace(head, entries=0), replace(head, signature="0" * 64)):
        with pytest.raises(LedgerCorruptedError, match="not signed"):
            ledger.check("d", head=other, key=KEY)
    with pytest.raises(LedgerCorruptedError, match="not signed"):
        ledger.check("d", head=head, key=KEY + b"x")
    with pytest.raises(ValueError, match="16 bytes"):
        ledger.head("d", key=b"short")
    for name, value in (("entries", "1"), ("events", True), ("chain", None), ("kind", "x")):
        with pytest.raises(ValueError, match="head"):
            Head.from_json(head.to_json() | {name: value})


def test_on_the_command_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, kept, yesterday = path.with_name("key"), path.with_name("head.json"), path.read_bytes()
    key.write_bytes(KEY)
    spend(Ledger.open(path))
    assert run("head", path, "--key", key, "-o", kept) == 0
    assert run("status", path, "--check", "--head", kept, "--key", key) == 0
    path.write_bytes(yesterday)
    assert run("status", path, "--check") == 0
    assert run("status", path, "--check", "--head", kept, "--key", key) == 2
    assert "was set back" in capsys.readouterr().err
    assert run("head", path) == 0
    assert json.loads(capsys.readouterr().out)["heads"][0]["entries"] == 2
    for wrong in (["--head", kept], ["--check", "--key", key]):
        assert run("status", path, *wrong) == 2
        assert "--head" in capsys.readouterr().err
    copy = shutil.copy(path, path.with_name("copy.db"))
    assert run("adopt", copy) == 0
    spend(Ledger.open(copy))


def old(tmp_path: Path) -> Path:
    """A ledger as the release with schema 1 left it: a released, an abandoned and a reserved entry."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection, connection:
        connection.executescript((Path(__file__).parents[1] / "ledger" / "schema1.sql").read_text())
    return tmp_path / "old.db"


def test_a_ledger_of_schema_1_goes_on(tmp_path: Path) -> None:
    path = old(tmp_path)
    ledger = Ledger.open(path)
    status = ledger.check("d")
    assert (status.states, status.vouching) == ({"reserved": 1, "released": 1, "abandoned": 1}, False)
    assert [entry.taken for entry in ledger.history("d")] == [1, 1, 1]
    assert ledger.affords("d", gaussian(4)) == 1
    with ledger.spend("d", gaussian(4)) as block:
        block.release(X)
    Ledger.create(path, dataset="e", **CAP)
    assert Ledger.open(path).check("d", head=ledger.head("d")).entries == 4
    assert ledger.check("b").entries == 0


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE shapedp_dataset SET totals = \'{"amounts":["0"],"failure":"0"}\' WHERE name = \'d\'',
        "DELETE FROM shapedp_entry WHERE sequence = 3",
    ],
)
def test_damage_is_not_sealed_anew_by_the_upgrade(tmp_path: Path, statement: str) -> None:
    path = old(tmp_path)
    edit(path, statement)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(LedgerCorruptedError, match="changed by hand"):
            Ledger.open(path)
    assert path.read_bytes()[100:] == before[100:]
    edit(path, "UPDATE shapedp_ledger SET schema_version = 7")
    with pytest.raises(LedgerError, match="schema version 7"):
        Ledger.open(path)


def test_a_dataset_that_was_removed_leaves_its_entries(path: Path) -> None:
    ledger = Ledger.open(path)
    ledger.add("q", **CAP)
    edit(path, "DELETE FROM shapedp_dataset WHERE name = 'd'")
    with pytest.raises(LedgerCorruptedError, match="no longer in it"):
        ledger.check("q")
    with pytest.raises(LedgerCorruptedError, match="no longer in it"):
        ledger.add("d", **CAP)
    assert ledger.datasets() == ("q",)
