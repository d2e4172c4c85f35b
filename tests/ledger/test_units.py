"""Whose privacy a dataset counts, and what a spend says of itself."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.ledger.helpers import CAP, X, gaussian

import shapedp as sdp
from shapedp.cli.main import main
from shapedp.ledger import (
    BudgetExceededError,
    Head,
    Ledger,
    LedgerCorruptedError,
    LedgerPlaceError,
    SpendRefusedError,
    schema,
)

HERE = Path(__file__).parent
WORDS = {"label": "Hours by sex", "author": "Ada Lovelace", "note": "for the yearbook\nsecond line"}


def spend(ledger, dataset="d", fits=20, **words):
    with ledger.spend(dataset, gaussian(fits), **words) as block:
        block.release(X)
    return block


def test_a_release_of_another_unit_is_refused(where):
    ledger = Ledger.create(where, dataset="d", person="patient", **CAP)
    ledger.add("rows", person=None, **CAP)
    spend(ledger, person="patient")
    spend(ledger)  # on the word of the spender
    spend(ledger, "rows", person=None)
    for dataset, person in (("d", None), ("d", "id"), ("rows", "patient"), ("rows", "row")):
        with pytest.raises(SpendRefusedError, match=r"do not add up\. Ask with person="):
            ledger.spend(dataset, gaussian(20), person=person)
    assert [entry.unit for entry in ledger.history("d")] == ["person:patient"] * 2
    assert ledger.check("d").unit == "person:patient"
    assert Ledger.open(where).status("rows").unit == "row"


def test_a_dataset_without_a_unit_takes_the_first_that_is_stated(where):
    ledger, other = Ledger.create(where, dataset="d", **CAP), Ledger.open(where)
    spend(ledger)
    spend(other)  # both know now that none is declared
    late = other.spend("d", gaussian(20), person=None)
    spend(ledger, person="id")
    with pytest.raises(SpendRefusedError, match="another unit"):
        late.__enter__()  # it was made before the unit was known, and is found under the lock
    with pytest.raises(SpendRefusedError, match="another unit"):
        other.spend("d", gaussian(20), person=None)
    spend(other)
    assert [entry.unit for entry in ledger.history("d")] == ["", "", "person:id", "person:id"]
    assert ledger.check("d").entries == 4


@pytest.mark.parametrize("person", ["", " ", "x" * 201, "a\0b", "\ud800", 3, ["id"]])
def test_a_person_that_names_no_column(tmp_path, person):
    with pytest.raises(ValueError, match="person must be the name of a column"):
        Ledger.create(tmp_path / "l.db", dataset="d", person=person, **CAP)
    assert not (tmp_path / "l.db").exists()


def test_words_are_kept_under_the_digest(where):
    ledger = Ledger.create(where, dataset="d", **CAP)
    spend(ledger.stating(author="Somebody", note=WORDS["note"]), label=WORDS["label"], author=WORDS["author"])
    (entry,) = ledger.history("d")
    assert {name: getattr(entry, name) for name in WORDS} == WORDS
    assert entry.to_json()["label"] == WORDS["label"]
    assert set(entry.mechanism) == {"type", "text"}
    for name, text in (("label", "x" * 201), ("author", "a\0"), ("note", "n" * 2001), ("note", "\udcff"), ("label", 3)):
        with pytest.raises(ValueError, match=f"{name} must be text"):
            ledger.spend("d", gaussian(20), **{name: text})

    def forge(connection):
        told = sa.func.replace(schema.entries.c.mechanism, "Ada Lovelace", "Eve")
        connection.execute(schema.entries.update().values(mechanism=told))

    ledger.store.perform(forge)
    with pytest.raises(LedgerCorruptedError, match="was changed"):
        ledger.check("d")


def test_a_unit_that_was_changed_by_hand_is_found(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", person="id", **CAP)
    with closing(sqlite3.connect(tmp_path / "l.db")) as connection, connection:
        connection.execute("UPDATE shapedp_dataset SET unit = ''")
    with pytest.raises(LedgerCorruptedError, match="changed by hand"):
        ledger.spend("d", gaussian(20), person=None)


def old(tmp_path: Path) -> Path:
    """A ledger as the release with schema 2 left it, with two entries, in a file of its own."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection, connection:
        connection.executescript((HERE / "schema2.sql").read_text())
    return tmp_path / "old.db"


def test_a_ledger_of_schema_2_goes_on_and_continues_its_heads(tmp_path):
    path = old(tmp_path)
    heads = {name: Head.from_json(head) for name, head in json.loads((HERE / "schema2-heads.json").read_text()).items()}
    ledger = Ledger.open(path)
    assert ledger.check("d", head=heads["last"]).states == {"reserved": 0, "released": 1, "abandoned": 1}
    ledger.check("d", head=heads["first"], key=b"sixteen bytes or more")
    assert (ledger.status("d").unit, [entry.label for entry in ledger.history("d")]) == ("", ["", ""])
    with pytest.raises(LedgerPlaceError):  # raising the schema is no adoption: this file says no place of its own
        spend(ledger, fits=4)
    ledger = Ledger.adopt(path)
    spend(ledger, fits=4, person="id", label="first with a unit")
    assert ledger.check("d", head=heads["last"]).unit == "person:id"
    with pytest.raises(SpendRefusedError, match="another unit"):
        spend(ledger, fits=4, person=None)
    with pytest.raises(BudgetExceededError):
        spend(ledger, fits=1)
    copy = shutil.copy(path, tmp_path / "copy.db")
    with pytest.raises(LedgerPlaceError):
        spend(Ledger.open(copy), fits=4)


def test_a_damaged_ledger_of_schema_2_is_found_after_the_change(tmp_path):
    path = old(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE shapedp_dataset SET entries = 1 WHERE name = 'd'")
    with pytest.raises(LedgerCorruptedError, match="changed by hand"):
        Ledger.open(path).status("d")


def test_tables_state_their_persons(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    frame = pd.DataFrame({"id": [1, 1, 2], "sex": ["F", "F", "M"]})
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", epsilon=2.0, delta=1e-6, adjacency="add-remove", person="id")
    people = sdp.table(frame, person="id", domains={"sex": ["F", "M"]})
    rows = sdp.table(frame, person=None, domains={"sex": ["F", "M"]})
    claim = {"epsilon": 0.5, "delta": 1e-7, "dataset": "d"}
    people.group_by("sex").count().release(ledger=ledger.stating(**WORDS), **claim)
    with pytest.raises(SpendRefusedError, match="each row is another person"):
        rows.count().release(ledger=ledger, **claim)
    (entry,) = ledger.history("d")
    assert (entry.unit, entry.author) == ("person:id", "Ada Lovelace")


@pytest.mark.parametrize(
    ("rule", "left"),
    [("either", "by plain addition, or Gaussian noise of mu"), ("gaussian", "Left: Gaussian noise of mu"),
     ("renyi", "a Renyi divergence of"), ("basic", "Left: epsilon 0.6 and delta 9e-07")],
)  # fmt: skip
def test_a_refusal_names_the_rule_what_is_left_and_a_remedy(tmp_path, rule, left):
    cap = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "replace", "rule": rule}
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **cap)
    noise = sdp.calibrate("gaussian", sdp.L2(1.0, dim=1, adjacency="replace"), epsilon=0.4, delta=1e-7)
    with ledger.spend("d", noise):
        pass
    with pytest.raises(BudgetExceededError) as refused, ledger.spend("d", noise, count=100):
        pass
    for part in (f"rule={rule!r}", left, "Claim a smaller epsilon", "nothing was reserved"):
        assert part in str(refused.value)


def run(*words):
    return main(["ledger", *map(str, words)])


def test_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("id,age,visits\nA,30,2\nA,40,9\nB,50,1\n,20,1\n")
    assert run("init", "l.db", "--dataset", "d", "--epsilon", 2, "--delta", 1e-6, "--adjacency", "add-remove",
               "--person", "id") == 0  # fmt: skip
    assert main(["calibrate", "gaussian", "--box", "100,10", "--adjacency", "add-remove", "--epsilon", "0.5",
                 "--delta", "1e-7", "-o", "m.json"]) == 0  # fmt: skip
    start = ("spend", "l.db", "m.json", "people.csv", "--dataset", "d", "--records", "--columns", "age,visits")
    assert run(*start, "-o", "rows.csv") == 3
    assert "each row is another person" in capsys.readouterr().err
    assert not Path("rows.csv").exists()
    told = ("--label", "Totals", "--author", "Ada\x1b[31m", "--note", "n" * 100)
    assert run(*start, "--person", "id", "--rows", 2, "-o", "totals.csv", *told) == 0
    assert "rows clipped to 50, 5" in capsys.readouterr().err
    assert Path("totals.csv").read_text().startswith("column,value,standard_error\nage,")
    assert "the first 2 row(s)" in json.loads(Path("totals.certificate.json").read_text())["scope"]
    assert run("history", "l.db", "--dataset", "d") == 0
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("Totals", "Ada\\x1b[31m", "nnn..."))
    assert "\x1b" not in shown
    assert run("export", "l.db", "-o", "all.json") == 0
    (entry,) = json.loads(Path("all.json").read_text())["datasets"][0]["history"]
    assert (entry["unit"], entry["note"]) == ("person:id", "n" * 100)
    assert run("status", "l.db") == 0
    assert main(["release", *map(str, start[2:4]), *start[6:], "--rows", "2", "-o", "more.csv"]) == 2
    assert run(*start, "--person", "id", "--label", "x" * 201, "-o", "more.csv") == 2
    assert run("spend", "l.db", "m.json", "--dataset", "d", "--records") == 2
    assert not Path("more.csv").exists()
