"""The cost of a spend as the history grows, and spends per second from several processes.

python benchmarks/ledger.py [--url postgresql://...] [--entries 1000 10000 100000]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.ledger.helpers import CAP, fill, gaussian, race

from shapedp.accounting.ledger import Ledger


def spend_times(ledger: Ledger, repeats: int) -> list[float]:
    """Seconds per spend, each durably reserved and marked."""
    mechanism, times = gaussian(10**9), []
    for _ in range(repeats):
        started = time.perf_counter()
        with ledger.spend("d", mechanism):
            pass
        times.append(time.perf_counter() - started)
    return times


def main() -> None:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="an empty PostgreSQL database for the throughput (default: SQLite only)")
    parser.add_argument("--entries", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--spends", type=int, default=100, help="spends of each of 8 processes")
    options = parser.parse_args()
    report: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        medians = {}
        for entries in options.entries:
            ledger = Ledger.create(folder / f"{entries}.db", dataset="d", **CAP)
            fill(ledger, gaussian(10**9), entries)
            medians[entries] = statistics.median(spend_times(ledger, options.repeats))
        report["median_ms_by_entries"] = {k: round(v * 1e3, 3) for k, v in medians.items()}
        report["ratio_last_to_first"] = round(medians[options.entries[-1]] / medians[options.entries[0]], 3)
        places = {"sqlite": str(folder / "race.db")} | ({"postgresql": options.url} if options.url else {})
        for kind, where in places.items():
            logs = folder / kind
            logs.mkdir()
            Ledger.create(where, dataset="d", **CAP)
            started = time.perf_counter()
            race(where, logs, processes=8, attempts=options.spends, fits=8 * options.spends)
            report[f"{kind}_spends_per_second"] = round(8 * options.spends / (time.perf_counter() - started), 1)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
