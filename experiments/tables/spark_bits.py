"""Generated visits on local Spark and on DuckDB, with bounds per person: the same bits?

    python experiments/tables/spark_bits.py                 # 1,000,000 rows, as in results/spark_bits.txt
    python experiments/tables/spark_bits.py --rows 20000    # quick

Both read one parquet file and sum by three columns, choosing rows by the same key: at most 3 rows of a person, or 2
rows in each of 4 groups. Compared are all tables of the plan, number by number, and their SHA-256.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import shapedp as sdp

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.private.neighbours import one_key
from tests.private.people import spark_table

WARDS, KINDS = [f"ward {k}" for k in range(12)], ["call", "visit", "stay"]


def visits(rows: int) -> pa.Table:
    """Visits of persons with four rows on average, some with many; some cells are missing or beyond bounds."""
    rng = np.random.default_rng(21)
    cost = rng.gamma(2.0, 60.0, rows)
    cost[rng.random(rows) < 0.01] = np.nan
    return pa.table(
        {
            "id": (rng.pareto(1.5, rows) * rows / 40).astype(np.int64) % (rows // 4),
            "ward": pa.array(rng.choice([*WARDS, "unseen"], rows)),
            "kind": pa.array(rng.choice(KINDS, rows)),
            "age": rng.integers(0, 100, rows),
            "cost": cost,
        }
    )


def sums(source: Any, bounds: dict[str, int]) -> tuple[dict[Any, np.ndarray], float]:
    """The tables of the plan without noise, and the seconds they took."""
    domains = {"ward": WARDS, "kind": KINDS, "age": {"edges": list(range(0, 101, 10))}}
    t = sdp.table(source, person="id", bounds={"cost": (0, 500)}, domains=domains, **bounds)
    asked = t.group_by("ward", "kind", "age").agg(n=sdp.count(), s=sdp.sum("cost")), t.where("age >= 18").mean("cost")
    plan = t.plan(*asked, epsilon=1.0, delta=1e-6, gap=1e-2)
    start = time.perf_counter()
    return plan.exact_tables().tables, time.perf_counter() - start


def digest(tables: dict[Any, np.ndarray]) -> str:
    """SHA-256 of all numbers, in order."""
    found = hashlib.sha256()
    for axes, cells in sorted(tables.items()):
        found.update(repr((axes, cells.shape)).encode() + np.ascontiguousarray(cells, dtype="<i8").tobytes())
    return found.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    equal = True
    with TemporaryDirectory() as name, one_key():
        path = Path(name) / "visits.parquet"
        parquet.write_table(visits(options.rows), path, row_group_size=100_000)
        for words, bounds in (("rows=3", {"rows": 3}), ("rows=2, groups=4", {"rows": 2, "groups": 4})):
            found = {}
            for engine, source in (("DuckDB", path), ("Spark", spark_table(path))):
                found[engine], seconds = sums(source, bounds)
                tables = found[engine].values()
                cells = sum(one[..., 0].size for one in tables)
                kept = max(int(one[..., 0].sum()) for one in tables)
                print(
                    f"{words:18} {engine:7} {options.rows:9,} rows, {kept:9,} kept, {cells:4} cells, {seconds:6.1f} s, "
                    f"{digest(found[engine])[:32]}",
                    flush=True,
                )
            one, other = found.values()
            equal &= one.keys() == other.keys() and all(np.array_equal(one[axes], other[axes]) for axes in one)
    print("all numbers are equal" if equal else "NUMBERS DIFFER")
    return int(not equal)


if __name__ == "__main__":
    sys.exit(main())
