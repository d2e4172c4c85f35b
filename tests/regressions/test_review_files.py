"""What a new ledger, a failed write and an endless input did to files; found by a second security review.

`ledger init lab` overwrote the user's own `lab-journal`: SQLite takes a file of that name for its own. A release whose
output could not be written left, or replaced, the certificate beside it. A pipe as input was waited for without end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from shapedp.cli.main import main
from shapedp.ledger import Ledger, LedgerError
from shapedp.ledger.place import check_place, place_of
from shapedp.ledger.store import Store
from shapedp.tables.sources import source_of
from shapedp.tables.vectors import read_records, read_vector

CAP = ["--dataset", "d", "--epsilon", "5", "--delta", "1e-5", "--adjacency", "add-remove"]


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
@pytest.mark.parametrize("begun", [False, True], ids=["no file", "empty file"])
def test_a_new_ledger_leaves_the_files_beside_it_alone(tmp_path: Path, ending: str, begun: bool) -> None:
    mine, where = tmp_path / f"lab{ending}", tmp_path / "lab"
    mine.write_text("a year of notes")
    if begun:
        where.touch()
    assert main(["ledger", "init", str(where), *CAP]) == 2
    assert mine.read_text() == "a year of notes"
    assert where.exists() == begun
    with pytest.raises(LedgerError):
        Ledger.open(where)
    assert mine.read_text() == "a year of notes"


def test_a_link_or_folder_beside_a_new_ledger_is_refused(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("a year of notes")
    (tmp_path / "a-journal").symlink_to(notes)
    (tmp_path / "b-journal").mkdir()
    for name in "ab":
        assert main(["ledger", "init", str(tmp_path / name), *CAP]) == 2
    assert notes.read_text() == "a year of notes"


def test_what_sqlite_left_itself_is_no_obstacle(tmp_path: Path) -> None:
    where = tmp_path / "lab"
    assert main(["ledger", "init", str(where), *CAP]) == 0
    assert (tmp_path / "lab-journal").is_file()
    where.unlink()
    assert main(["ledger", "init", str(where), *CAP]) == 0


def test_a_ledger_is_a_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(LedgerError, match="name a plain file"):
            Ledger.create(name, dataset="d", epsilon=1.0, delta=1e-6, adjacency="replace")


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="volumes have no number here")
def test_a_copy_with_the_same_inode_on_another_volume_is_refused(tmp_path: Path) -> None:
    """On a fresh file system the first file has the same inode number as on another fresh one."""
    where = tmp_path / "b.db"
    Ledger.create(where, dataset="d", epsilon=1.0, delta=0.0, adjacency="replace")
    kept = json.loads(place_of(str(where)))
    check_place(str(where), json.dumps(kept))
    check_place(str(where), json.dumps(kept | {"device": -1}))  # numbered anew by a restart
    check_place(str(where), json.dumps(kept | {"volume": -1}))
    check_place(str(where), json.dumps({name: kept[name] for name in ("name", "device", "inode")}))  # written before
    for other in ({"device": -1, "volume": -1}, {"inode": -1}, {"name": "c.db"}):
        with pytest.raises(LedgerError, match="copy or was renamed"):
            check_place(str(where), json.dumps(kept | other))
    for odd in ("[]", "1", "null", "x", "{}", '{"volume": 1}'):
        with pytest.raises(LedgerError, match="copy or was renamed"):
            check_place(str(where), odd)


def test_an_address_that_is_none_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """A piece of a password may stand where a port is read, which was quoted as a wrong one."""
    address = "postgresql://me@host:sesame/db"
    with pytest.raises(ValueError, match="not a database URL"):
        Ledger.open(address)
    assert main(["ledger", "status", address]) == 2
    assert "sesame" not in capsys.readouterr().err


def test_a_password_among_the_options_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Every message, repr and report named it."""
    pytest.importorskip("psycopg")
    address = "postgresql://127.0.0.1:1/db?user=me&password=sesame"
    store = Store.at(address, timeout=2)
    assert store.url.password == "sesame"
    assert "sesame" not in store.name + repr(store)
    assert "user=me" in store.name
    assert main(["ledger", "status", address, "--timeout", "2"]) == 2
    assert "sesame" not in capsys.readouterr().err
    for other in ("sslpassword=sesame", "password=a&password=b"):
        with pytest.raises(ValueError, match="must not hold"):
            Store.at(f"postgresql://host/db?{other}", timeout=2)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("1\n2\n3\n")
    made = ["calibrate", "gaussian", "--l2", "1", "--dim", "3", "--adjacency", "add-remove"]
    assert main([*made, "--epsilon", "1", "--delta", "1e-6", "-o", "m.json"]) == 0
    assert main(["ledger", "init", "b.db", *CAP]) == 0
    return tmp_path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("command", [["release"], ["ledger", "spend", "b.db", "--dataset", "d"]], ids=lambda c: c[0])
def test_no_certificate_without_its_output(folder: Path, command: list[str]) -> None:
    os.mkfifo(folder / "out.csv")  # nobody reads it
    certificate = folder / "out.certificate.json"
    for before in (None, "of an earlier release"):
        if before is not None:
            certificate.write_text(before)
        assert main([*command, "m.json", "in.csv", "-o", "out.csv"]) == 2
        assert certificate.exists() == (before is not None)
        assert before is None or certificate.read_text() == before
    assert not list(folder.glob(".shapedp-*"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_endless_input_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(60)
    os.mkfifo(folder / "pipe.csv")
    (folder / "zero.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "zero.csv"):
        assert main(["release", "m.json", name, "-o", "out.csv"]) == 2
        assert main(["release", "m.json", name, "--records", "--columns", "a,b,c", "-o", "out.csv"]) == 2
        claim = ["--feature-bound", "1", "--target-bound", "1", "--epsilon", "1", "--delta", "1e-6", "-o", "model.json"]
        assert main(["fit", "linear", name, "--target", "a", "--features", "b", "--types", "number", *claim]) == 2
        assert capsys.readouterr().err.count("not a plain file") == 3
        with pytest.raises(FileNotFoundError, match="not a plain file"):
            source_of(folder / name)
    assert main(["ledger", "head", "b.db", "--key", "/dev/zero"]) == 2
    signal.alarm(0)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_streams_change_no_exit_code(folder: Path, closed: tuple[int, ...]) -> None:
    """A release that was made and recorded said it had failed, as there was no stream to print to."""

    def close() -> None:
        for handle in closed:
            os.close(handle)

    def run(*words: str) -> int:
        return subprocess.run([sys.executable, "-m", "shapedp", *words], preexec_fn=close, check=False).returncode

    assert run("ledger", "spend", "b.db", "m.json", "in.csv", "--dataset", "d", "-o", "out.csv") == 0
    assert len((folder / "out.csv").read_text().splitlines()) == 3
    assert json.loads((folder / "out.certificate.json").read_text())["kind"] == "certificate"
    assert run("release", "m.json", "missing.csv", "-o", "out.csv") == 2
    assert run("certify", "classic-gaussian", "--dim", "3", "--epsilon", "10", "--delta", "1e-5") == 3


def _repeated(path: Path, columns: list[str], groups: int, rows: int) -> None:
    """A parquet file whose groups of rows are all the same zeros."""
    table = pyarrow.table({name: np.zeros(rows) for name in columns})
    with parquet.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(groups):
            writer.write_table(table)


def test_a_small_parquet_file_of_many_rows_is_refused_unread(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 0.9 MB took 5 GB: 200 million zeros, of which a release has no use."""
    monkeypatch.setattr("shapedp.numerics.checks.LAID_OUT", 30_000)
    _repeated(folder / "many.parquet", ["a", "b", "c"], 4, 10_000)
    for words in (["--column", "a"], ["--records"], ["--records", "--columns", "c,a,b"]):
        assert main(["release", "m.json", "many.parquet", *words, "-o", "out.csv"]) == 2
        assert "cannot be laid out" in capsys.readouterr().err
    _repeated(folder / "few.parquet", ["a", "b", "c"], 1, 10_000)
    assert main(["release", "m.json", "few.parquet", "--records", "--columns", "c,a,b", "-o", "out.csv"]) == 0


def test_parquet_columns_are_those_asked_for(folder: Path) -> None:
    rows = {"a.b": [1.0, 2.0, 3.0], "a": [4.0, 5.0, 6.0], "words": ["x", "y", "z"]}
    nested = folder / "year=2020"  # no column of the file
    nested.mkdir()
    parquet.write_table(pyarrow.table(rows), nested / "t.parquet")
    assert read_vector(nested / "t.parquet", "a").values.tolist() == rows["a"]
    assert read_vector(nested / "t.parquet", "a.b").values.tolist() == rows["a.b"]
    names, table = read_records(nested / "t.parquet", ["a", "a.b"])
    assert (names, table.tolist()) == (["a", "a.b"], [[4.0, 1.0], [5.0, 2.0], [6.0, 3.0]])
    for bad in (["words"], ["nothing"], None):
        with pytest.raises(ValueError, match=r"words|no column"):
            read_records(nested / "t.parquet", bad)
    with pytest.raises(ValueError, match="choose one"):
        read_vector(nested / "t.parquet")
