"""Neighbouring tables replayed on every back end: nothing differs but the exact sums, and these by what is certified.

    python experiments/tables/replay.py                       # 1,000 pairs of each kind of source: results/replay.txt
    python experiments/tables/replay.py --pairs 60 --alone 1  # quick

In each pair a person is added, removed or replaced. Cells are NaN, infinite, texts in columns of numbers, categories
outside the domain, nulls of dictionaries, ids that are missing. Both sides choose rows by the same key, without noise.

- Many pairs are one table per side, each pair with persons of its own, and every question is asked by pair: sums, a
  mean of a column with missing cells, a filter, a histogram, the counts of a quantile by group, the persons by key.
- Some pairs are also replayed alone, each side a table of its own: what the plan says, the names, types and lengths of
  the columns, errors and warnings must be equal as well.

SQLite lacks functions that a table needs: both sides must be refused in the same words.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import ibis
import numpy as np

import shapedp as sdp

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.private.neighbours import CHANGES, Batch, one_key, pair, replayed

NAMES = {
    "pandas": "pandas",
    "objects": "pandas, columns of objects",
    "polars": "polars",
    "arrow": "Arrow",
    "dictionary": "Arrow, dictionaries with nulls",
    "csv": "csv",
    "parquet": "parquet (DuckDB)",
    "ibis": "Ibis over DuckDB",
    "spark": "Ibis over Spark, local",
}


def refused(rows: list[dict[str, object]], folder: Path, number: int) -> str:
    """What SQLite's table is told."""
    path = folder / f"{number}.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (id INTEGER, sex TEXT, hours REAL, age REAL)")
        listed = [(row["id"], row["sex"], row["hours"], row["age"]) for row in rows]
        database.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", listed)
    t = sdp.table(ibis.sqlite.connect(path).table("people"), person="id", rows=2, bounds={"hours": (0, 80)})
    try:
        t.sum("hours").release(epsilon=1.0, delta=1e-6)
    except ValueError as error:
        return str(error)
    raise AssertionError("SQLite was not refused")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1000, help="in one table per side, for each kind of source")
    parser.add_argument("--alone", type=int, default=12, help="replayed alone, for each kind of source")
    parser.add_argument("--kinds", nargs="*", default=list(NAMES), choices=list(NAMES))
    options = parser.parse_args()
    print(f"{'source':32} {'pairs':>6} {'differ':>7} {'farthest':>9} {'alone':>6} {'farthest':>9} {'cpu s':>6}")
    with TemporaryDirectory() as name, one_key():
        folder = Path(name)
        for kind in options.kinds:
            start, rng = time.process_time(), np.random.default_rng([1, len(kind)])
            far = np.array(Batch(options.pairs, list(NAMES).index(kind)).checked(kind, folder))
            alone = [replayed(kind, CHANGES[n % 3], rng, folder) for n in range(options.alone)]
            print(
                f"{NAMES[kind]:32} {far.size:6} {(far > 0).sum():7} {far.max():9.4f} {len(alone):6} "
                f"{max(alone, default=0):9.4f} {time.process_time() - start:6.1f}",
                flush=True,
            )
        sides = pair(np.random.default_rng(0), "remove")
        words = {refused(rows, folder, k) for k, rows in enumerate(sides)}
        print(f"SQLite: both sides are refused, in {'the same' if len(words) == 1 else 'DIFFERENT'} words")
    print("farthest: how far the sums of two neighbours were apart, as a share of what is certified")
    return int(len(words) != 1)


if __name__ == "__main__":
    sys.exit(main())
