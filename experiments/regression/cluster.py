"""Logistic regression on Dask workers: one against two, memory of each, and the bits of the result.

    python experiments/regression/cluster.py [ROWS]      # 1,000,000 rows of 50 columns where none are given

Each partition of 65,536 rows is made where it is summed, anew in every pass, so no worker ever holds more than its
own. Printed and written to results/cluster.json: the clock, the workers' processor time and their peak memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS, CHUNK = 50, 65_536
RESULTS = Path(__file__).parent / "results" / "cluster.json"
CLAIM = {"epsilon": 1.0, "delta": 1e-8, "feature_bound": 1.0, "classes": [0, 1], "solver": "descent"}


def block(block_info: Any = None, labels: bool = False) -> Any:
    """Rows of one partition, or their labels, from its place."""
    (start, stop), number = block_info[None]["array-location"][0], block_info[None]["chunk-location"][0]
    rng = np.random.default_rng(number)
    x = (rng.random((stop - start, COLUMNS)) * 2 - 1) / np.sqrt(COLUMNS)
    if not labels:
        return x
    score = x @ np.linspace(-8, 8, COLUMNS)
    return (rng.random(stop - start) < 1 / (1 + np.exp(-score))).astype(np.float64)


def used() -> tuple[float, float]:
    """Processor seconds and peak memory in MiB of this process."""
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime + found.ru_stime, found.ru_maxrss / 1024


def fitted(rows: int, workers: int) -> dict[str, Any]:
    """A fit on a local cluster."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    from shapedp.learn import LogisticRegression, partitions

    sizes = (CHUNK,) * (rows // CHUNK) + ((rows % CHUNK,) if rows % CHUNK else ())
    x = da.map_blocks(block, chunks=(sizes, (COLUMNS,)), dtype=float)
    y = da.map_blocks(block, labels=True, chunks=(sizes,), dtype=float)
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    quiet = dask.config.set({"distributed.scheduler.work-stealing": False})
    with quiet, LocalCluster(**options) as cluster, Client(cluster) as client:
        before, start = client.run(used), time.perf_counter()
        model = partitions.fit(LogisticRegression(**CLAIM, random_state=0), x, y)
        seconds, after = time.perf_counter() - start, client.run(used)
    spent = [round(after[key][0] - before[key][0], 1) for key in after]
    return {
        "workers": workers,
        "rows": rows,
        "columns": COLUMNS,
        "seconds": round(seconds, 1),
        "processor_seconds": spent,
        "peak_mib": [round(after[key][1]) for key in after],
        "memory_of_the_data_mib": round(rows * COLUMNS * 8 / 2**20),
        "weights": model.coef_[0].tolist(),
    }


def main() -> None:
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    found = [fitted(rows, workers) for workers in (1, 2)]
    same = found[0].pop("weights") == found[1].pop("weights")
    written = {"rows": rows, "same_bits": same, "runs": found}
    RESULTS.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
