"""Issue 16, second review by fresh eyes: a ledger made through a link removed a file beside the link's end."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapedp.ledger import Ledger, LedgerPlaceError

CAP = {"dataset": "d", "epsilon": 1.0, "delta": 0.0, "adjacency": "replace"}


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
@pytest.mark.parametrize("chain", [1, 2])
def test_no_file_beside_the_end_of_a_link_is_lost(tmp_path: Path, ending: str, chain: int) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    other = folder / f"real.db{ending}"
    other.write_text("my thesis")
    (tmp_path / "0.db").symlink_to(folder / "real.db")
    (tmp_path / "1.db").symlink_to("0.db")
    with pytest.raises(LedgerPlaceError, match="would overwrite"):
        Ledger.create(tmp_path / f"{chain - 1}.db", **CAP)
    assert other.read_text() == "my thesis"
    assert not (folder / "real.db").exists()


def test_a_link_to_no_file_yet_makes_a_ledger_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    Ledger.create(tmp_path / "link.db", **CAP)
    assert Ledger.open(tmp_path / "real.db").check("d").entries == 0
