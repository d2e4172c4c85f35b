"""A parquet file larger than the memory that counting takes: seconds and peak memory.

    python experiments/workloads/larger.py FOLDER --rows 50000000

Writes FOLDER/people.parquet row group by row group, counts and releases it in a process of its own, and deletes it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

GROUP = 1 << 20
CHILD = "--count"


def write(path: Path, rows: int) -> None:
    """Three attributes and a measure, at random."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, GROUP):
        size = min(GROUP, rows - start)
        table = pa.table(
            {
                "age": rng.integers(0, 100, size).astype(np.float64),
                "sex": rng.choice(np.array(["F", "M"]), size),
                "region": rng.integers(0, 50, size),
                "hours": rng.uniform(0, 80, size),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def count(path: Path, rows: int) -> None:
    """Plan, count and release; prints a line of JSON."""
    import shapedp as sdp

    asked = sdp.Workload({"age": 100, "sex": ["F", "M"], "region": 50}, measures={"hours": (0, 80)})
    made = asked.marginals(1, 2).means("hours", "sex", "region").calibrate(epsilon=1.0, delta=1e-9, records=rows)
    before, begun = _peak(), time.perf_counter()
    release = made.release(str(path))
    total = float(release["sex"].sum())
    print(
        json.dumps(
            {
                "rows": rows,
                "file_mb": path.stat().st_size / 1e6,
                "seconds": time.perf_counter() - begun,
                "peak_mb_before": before,
                "peak_mb": _peak(),
                "noisy total": total,
            }
        )
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument(CHILD, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.folder / "people.parquet"
    if options.count:
        count(path, options.rows)
        return
    if path.exists():
        raise SystemExit(f"{path} exists: name another folder")
    try:
        write(path, options.rows)
        again = [sys.executable, __file__, str(options.folder), "--rows", str(options.rows), CHILD]
        subprocess.run(again, check=True)
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
