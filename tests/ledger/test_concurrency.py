"""Never over the cap, every release has its entry: races, forks, threads and kill -9."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.ledger.helpers import CAP, X, fork, gaussian, kill_during_spends, race, spend_until_done

from shapedp.ledger import BudgetExceededError, Ledger

QUICK, FULL = 40, 1000


def _race(where: str, folder: Path, attempts: int) -> None:
    fits = 8 * attempts * 5 // 8 + 3
    ledger = Ledger.create(where, dataset="d", **CAP)
    released = race(where, folder, processes=8, attempts=attempts, fits=fits)
    status = ledger.check("d")
    assert status.filter.admits(status.totals)
    assert len(released) == len(set(released)) == status.entries == status.states["released"] == fits
    assert {entry.id for entry in ledger.history("d")} == set(released)


def test_eight_processes_share_a_cap(where: str, tmp_path: Path) -> None:
    _race(where, tmp_path, QUICK)


@pytest.mark.slow
def test_eight_processes_of_a_thousand_spends(where: str, tmp_path: Path) -> None:
    started = time.perf_counter()
    _race(where, tmp_path, FULL)
    print(f"8 x {FULL} spends in {time.perf_counter() - started:.1f} s")


def _killed(where: str, folder: Path, kills: int) -> None:
    ledger = Ledger.create(where, dataset="d", **CAP)
    log = folder / "log"
    kill_during_spends(where, log, kills=kills, fits=1500, rng=np.random.default_rng(kills))
    lines = log.read_text().splitlines() if log.exists() else []
    released = {int(line) for line in lines if line != "refused"}
    states = {entry.id: entry.state for entry in ledger.history("d")}
    assert released, "no release happened between the kills: the test shows nothing"
    assert released <= set(states)
    assert {states[entry] for entry in released} <= {"released", "reserved"}
    if ledger.affords("d", gaussian(1500)):
        with ledger.spend("d", gaussian(1500)) as spend:
            spend.release(X)
    print(f"{kills} kills: {len(released)} releases, states {ledger.check('d').states}")


def test_kill_during_spends(where: str, tmp_path: Path) -> None:
    _killed(where, tmp_path, 20)


@pytest.mark.slow
def test_two_hundred_kills(where: str, tmp_path: Path) -> None:
    _killed(where, tmp_path, 200)


def test_threads_share_a_cap(where: str) -> None:
    ledger, mechanism, entries = Ledger.create(where, dataset="d", **CAP), gaussian(30), []

    def work() -> None:
        for _ in range(10):
            try:
                with ledger.spend("d", mechanism) as spend:
                    spend.release(X)
                entries.append(spend.entry)
            except BudgetExceededError:
                pass

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(entries)) == len(entries) == ledger.check("d").entries == 30


def test_fork_while_a_thread_spends(where: str, tmp_path: Path) -> None:
    """Children inherit a ledger that is in the middle of transactions, and use it."""
    import os

    ledger, mechanism, stop = Ledger.create(where, dataset="d", **CAP), gaussian(10**6), threading.Event()
    mine: list[int | None] = []

    def work() -> None:
        while not stop.is_set():
            with ledger.spend("d", mechanism) as spend:
                mine.append(spend.entry)

    def child(log: Path) -> None:
        for _ in range(5):
            with ledger.spend("d", mechanism) as spend:
                spend.release(X)
        spend_until_done(where, 10**6, 5, log)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        pids = []
        for i in range(6):
            pids.append(fork(lambda i=i: child(tmp_path / f"log{i}")))
            time.sleep(0.02)
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 6
    finally:
        stop.set()
        thread.join()
    assert ledger.check("d").states["released"] == len(mine) + 60


def test_datasets_do_not_share_a_cap(where: str) -> None:
    ledger = Ledger.create(where, dataset="d", **CAP)
    ledger.add("e", **CAP)
    for name in ("d", "e"):
        with ledger.spend(name, gaussian(1)):
            pass
        with pytest.raises(BudgetExceededError), ledger.spend(name, gaussian(1)):
            pass
    assert ledger.datasets() == ("d", "e")
