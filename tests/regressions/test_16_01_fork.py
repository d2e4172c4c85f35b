"""A reservation of one release gave one release to every fork: the units left were counted in process memory.

Threads, forks, spawned processes and pickled copies of a spend now take their units in the database.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.helpers import CAP, X, gaussian, outcome

from shapedp.ledger import Ledger, LedgerError, SpendRefusedError

OPEN: list[Any] = []


def released(spend: Any) -> bool:
    try:
        spend.release(X)
    except SpendRefusedError:
        return False
    return True


def inherited(_: int) -> bool:
    return released(OPEN[-1])


def from_pickle(text: bytes) -> bool:
    return released(pickle.loads(text))


def units(ledger: Ledger) -> tuple[int, str]:
    (entry,) = ledger.history("d")
    ledger.check("d")
    return entry.taken, entry.state


@pytest.mark.parametrize("count", [1, 3])
def test_a_forked_pool_shares_the_reservation(tmp_path: Path, count: int) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    with ledger.spend("d", gaussian(8), count=count) as spend:
        OPEN.append(spend)
        with ProcessPoolExecutor(4, mp_context=mp.get_context("fork")) as pool:
            assert sum(pool.map(inherited, range(4))) == count
        assert spend.remaining == 0
    assert units(ledger) == (count, "released")


def test_os_fork_and_a_child_that_leaves_the_block(tmp_path: Path) -> None:
    """The child does not close its parent's entry."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    with ledger.spend("d", gaussian(8), count=2) as spend:

        def child() -> bool:
            spend.release(X)
            spend.__exit__(KeyError, KeyError(), None)
            return True

        assert outcome(child) == "returned True"
        spend.release(X)
        assert not released(spend)
    assert units(ledger) == (2, "released")


def test_spawned_processes_take_units_of_a_pickled_spend(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    with ledger.spend("d", gaussian(8), count=3) as spend:
        text = pickle.dumps(spend)
        with ProcessPoolExecutor(2, mp_context=mp.get_context("spawn")) as pool:
            assert sum(pool.map(from_pickle, [text] * 4)) == 3
        assert not released(spend)
    assert units(ledger) == (3, "released")


def test_threads_share_the_reservation(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    with ledger.spend("d", gaussian(20), count=5) as spend, ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: released(spend), range(16))) == 5
    assert units(ledger) == (5, "released")


def test_nothing_is_released_once_the_block_has_ended(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    with ledger.spend("d", gaussian(8), count=2) as spend:
        copy = pickle.loads(pickle.dumps(spend))
    with pytest.raises(SpendRefusedError, match="has ended"):
        copy.release(X)
    with pytest.raises(LedgerError, match="not open"):
        spend.release(X)
    assert units(ledger) == (0, "released")
    assert os.getpid() == spend._owner
