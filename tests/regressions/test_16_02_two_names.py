"""Two names for one SQLite file: after a crash under one of them, committed spends made under the other were undone,
because the rollback journal is found by name."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.ledger.helpers import CAP, X, gaussian

from shapedp.ledger import Ledger, LedgerPlaceError, place


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    return tmp_path / "l.db"


def spend(where: Path) -> int:
    ledger = Ledger.open(where)
    with ledger.spend("d", gaussian(8)) as block:
        block.release(X)
    return ledger.check("d").entries


def test_hard_link(path: Path) -> None:
    other = path.with_name("other.db")
    other.hardlink_to(path)
    ledger = Ledger.open
    for name in (path, other):
        with pytest.raises(LedgerPlaceError, match="hard links"):
            ledger(name)
    other.unlink()
    assert spend(path) == 1


def test_a_link_made_later_stops_an_open_ledger(path: Path) -> None:
    ledger = Ledger.open(path)
    with ledger.spend("d", gaussian(8), count=2) as block:
        block.release(X)
        path.with_name("other.db").hardlink_to(path)
        with pytest.raises(LedgerPlaceError):
            block.release(X)
        path.with_name("other.db").unlink()
    assert [entry.taken for entry in ledger.history("d")] == [1]


def test_bind_mount_of_the_file(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    other = path.parent / "elsewhere" / "l.db"
    other.touch()
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", path, other], capture_output=True).returncode:
        pytest.skip("a file cannot be mounted here")
    try:
        with pytest.raises(LedgerPlaceError, match="mount its folder"):
            Ledger.open(other)
        assert spend(path) == 1
    finally:
        subprocess.run(["umount", other], check=True)


def test_mount_points_are_read_as_the_system_writes_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = path.parent / "a b"
    folder.mkdir()
    target = shutil.move(path, folder / "l.db")
    table = path.parent / "mountinfo"
    monkeypatch.setattr(place, "_MOUNTS", table)
    line = "97 29 254:0 /x {} rw,relatime shared:1 - ext4 /dev/vda rw\n"
    table.write_text(line.format("/") + line.format(str(folder).replace(" ", "\\040")))
    assert spend(target) == 1
    table.write_text(line.format("/") + line.format(str(target).replace(" ", "\\040")))
    with pytest.raises(LedgerPlaceError, match="single file"):
        spend(target)
    table.unlink()
    assert spend(target) == 2


@pytest.mark.parametrize("how", [shutil.copy, os.rename], ids=["copy", "rename"])
def test_a_copy_or_a_renamed_file_is_read_but_not_spent_from(path: Path, how: object) -> None:
    assert spend(path) == 1
    other = path.with_name("other.db")
    how(path, other)  # type: ignore[operator]
    assert Ledger.open(other).check("d").entries == 1
    with pytest.raises(LedgerPlaceError, match="adopt"):
        spend(other)
    with pytest.raises(LedgerPlaceError, match="adopt"):
        Ledger.open(other).add("e", **CAP)
    assert Ledger.adopt(other).status("d").entries == 1
    assert spend(other) == 2


def test_a_symbolic_link_is_the_same_name(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    assert spend(link) == 1
    assert spend(path) == 2
    assert path.with_name("l.db-journal").exists()
    assert not path.with_name("link.db-journal").exists()


def test_a_moved_folder_is_no_other_name(path: Path) -> None:
    assert spend(path) == 1
    folder = path.parent / "new"
    folder.mkdir()
    for file in (path, path.with_name("l.db-journal")):
        os.rename(file, folder / file.name)
    assert spend(folder / "l.db") == 2
