"""The cost of a spend as the history grows, and spends per second from several processes."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from _harness import Result
from shapedp.ledger import Ledger

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.ledger.helpers import CAP, fill, gaussian, race

PROCESSES = 8


def spend_times(ledger: Ledger, repeats: int) -> list[float]:
    """Seconds per spend, each durably reserved and marked."""
    mechanism, times = gaussian(10**9), []
    for _ in range(repeats):
        started = time.perf_counter()
        with ledger.spend("d", mechanism):
            pass
        times.append(time.perf_counter() - started)
    return times


def run(quick: bool) -> Result:
    few, many, repeats, spends = (100, 1000, 30, 10) if quick else (1000, 100_000, 200, 100)
    result = Result("ledger", what="a spend in SQLite, reserved and marked durably, as the history grows", peers={})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledgers = {}
        for entries in (few, many):
            ledgers[entries] = Ledger.create(folder / f"{entries}.db", dataset="d", **CAP)
            fill(ledgers[entries], gaussian(10**9), entries)
        times: dict[int, list[float]] = {few: [], many: []}
        for _ in range(10):
            for entries, ledger in ledgers.items():
                times[entries] += spend_times(ledger, repeats // 10)
        cost = {entries: statistics.median(found) for entries, found in times.items()}
        result.ratio(f"spend at {many} entries / at {few}", cost[many] / cost[few], at_most=3)
        where, logs = str(folder / "race.db"), folder / "logs"
        logs.mkdir()
        Ledger.create(where, dataset="d", **CAP)
        started = time.perf_counter()
        race(where, logs, processes=PROCESSES, attempts=spends, fits=PROCESSES * spends)
        result.figure(f"spends per second, {PROCESSES} processes", PROCESSES * spends / (time.perf_counter() - started))
    return result
