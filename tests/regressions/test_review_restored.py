"""A backup restored while a block was open let the block take the units of whoever got its entry's number."""

import shutil

import pytest

import shapedp as sdp
from shapedp.ledger import Ledger
from shapedp.ledger.errors import LedgerError

pytest.importorskip("sqlalchemy")


def test_a_block_does_not_take_units_of_another_entry(tmp_path):
    noise = sdp.calibrate("gaussian", sdp.L2(1.0, dim=2, adjacency="replace"), epsilon=0.1, delta=1e-9)
    path = tmp_path / "budget.db"
    Ledger.create(path, dataset="d", epsilon=5.0, delta=1e-5, adjacency="replace", rule="basic")
    shutil.copy(path, tmp_path / "backup.db")
    block = Ledger.open(path).spend("d", noise)
    mine = block.__enter__()
    path.write_bytes((tmp_path / "backup.db").read_bytes())  # in place: the same inode
    with Ledger.open(path).spend("d", noise, count=3) as theirs:
        assert theirs.entry == mine.entry
        with pytest.raises(LedgerError, match="no longer in the ledger"):
            mine.release([0.0, 0.0])
        with pytest.raises(LedgerError, match="no longer in the ledger"):
            block.__exit__(None, None, None)
        assert theirs.remaining == 3
