"""Logistic regression on Dask or Spark workers: one against two, memory of each, and the bits of the result.

    python experiments/regression/cluster.py [ROWS] [dask | spark]    # 1,000,000 rows of 50 columns on Dask if left out

Each partition of 65,536 rows is made where it is summed, anew in every pass, so no worker ever holds more than its
own. Spark's are made in one Python process, pass through Java, and are summed in another; its processor seconds are
those of Python and of Java. Printed and written to results/cluster.json (Spark: cluster_spark.json): the clock, the
workers' processor time and their peak memory.
Expected: the same bits from one worker and from two, from Dask and from Spark.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS, CHUNK = 50, 65_536
FOLDER = Path(__file__).parent / "results"
CLAIM = {"epsilon": 1.0, "delta": 1e-8, "feature_bound": 1.0, "classes": [0, 1], "solver": "descent"}


def made(number: int, rows: int) -> tuple[Any, Any]:
    """Rows of one partition and their labels."""
    rng = np.random.default_rng(number)
    x = (rng.random((rows, COLUMNS)) * 2 - 1) / np.sqrt(COLUMNS)
    score = x @ np.linspace(-8, 8, COLUMNS)
    return x, (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.float64)


def block(block_info: Any = None, labels: bool = False) -> Any:
    """Rows of one partition of Dask, or their labels, from its place."""
    (start, stop), number = block_info[None]["array-location"][0], block_info[None]["chunk-location"][0]
    return made(number, stop - start)[labels]


def sizes(rows: int) -> tuple[int, ...]:
    """Rows of the partitions."""
    return (CHUNK,) * (rows // CHUNK) + ((rows % CHUNK,) if rows % CHUNK else ())


def used() -> tuple[float, float]:
    """Processor seconds and peak memory in MiB of this process."""
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime + found.ru_stime, found.ru_maxrss / 1024


def on_dask(rows: int, workers: int) -> dict[str, Any]:
    """A fit on a local cluster."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    from shapedp.learn import LogisticRegression, partitions

    x = da.map_blocks(block, chunks=(sizes(rows), (COLUMNS,)), dtype=float)
    y = da.map_blocks(block, labels=True, chunks=(sizes(rows),), dtype=float)
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    quiet = dask.config.set({"distributed.scheduler.work-stealing": False})
    with quiet, LocalCluster(**options) as cluster, Client(cluster) as client:
        before, start = client.run(used), time.perf_counter()
        model = partitions.fit(LogisticRegression(**CLAIM, random_state=0), x, y)
        seconds, after = time.perf_counter() - start, client.run(used)
    spent = [round(after[key][0] - before[key][0], 1) for key in after]
    peak = {"peak_mib": [round(after[key][1]) for key in after]}
    return told(rows, workers, seconds, spent, model) | peak


def on_spark(rows: int, workers: int) -> dict[str, Any]:
    """A fit on Spark in this machine, with a Java process of its own; `workers` tasks run at a time."""
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from shapedp.learn import LogisticRegression, partitions

    os.environ["PYSPARK_PYTHON"] = sys.executable
    each = sizes(rows)
    names = [f"x{i}" for i in range(COLUMNS)]

    def blocks(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                x, y = made(number, each[number])
                for start in range(0, len(y), 8192):
                    part = slice(start, start + 8192)
                    yield pa.record_batch(
                        [*(pa.array(column) for column in x[part].T), pa.array(y[part])], [*names, "y"]
                    )

    given = {"ui.enabled": "false", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1"}
    given |= {"driver.memory": "1g", "ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master(f"local[{workers}]")
    for name, value in given.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    schema = ", ".join(f"{name} double" for name in [*names, "y"])
    frame = session.range(0, len(each), 1, len(each)).mapInArrow(blocks, schema)
    before = sum(one["seconds"] for one in descendants(os.getpid()))  # of Java, which serves both fits
    start = time.perf_counter()
    model = partitions.fit(LogisticRegression(**CLAIM, random_state=0), frame, "y")
    seconds, found = time.perf_counter() - start, descendants(os.getpid())
    session.stop()
    python = [one for one in found if "java" not in one["name"]]
    java = [one for one in found if "java" in one["name"]]
    spent = [round(sum(one["seconds"] for one in python), 1), round(sum(one["seconds"] for one in java) - before, 1)]
    peak = {
        "processes_of_python": len(python) - 1,  # all are forks of one more
        "largest_peak_mib_of_python": round(max(one["peak"] for one in python)),
        "peak_mib_of_java": round(sum(one["peak"] for one in java)),
    }
    return told(rows, workers, seconds, spent, model) | peak


def descendants(parent: int) -> list[dict[str, Any]]:
    """Name, processor seconds (with those of children that ended) and peak memory of all processes below one."""
    found, ticks = [], os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, numbers = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            status = (folder / "status").read_text()
        except OSError:
            continue
        if int(numbers.split()[1]) == parent and "VmHWM:" in status:
            seconds = sum(map(int, numbers.split()[11:15])) / ticks
            found.append({"name": name, "seconds": seconds, "peak": int(status.split("VmHWM:")[1].split()[0]) / 1024})
            found += descendants(int(folder.name))
    return found


def told(rows: int, workers: int, seconds: float, spent: list[float], model: Any) -> dict[str, Any]:
    """What both say."""
    return {
        "workers": workers,
        "rows": rows,
        "columns": COLUMNS,
        "seconds": round(seconds, 1),
        "processor_seconds": spent,
        "memory_of_the_data_mib": round(rows * COLUMNS * 8 / 2**20),
        "weights_sha256": hashlib.sha256(np.ascontiguousarray(model.coef_).tobytes()).hexdigest()[:16],
    }


def main() -> None:
    words = [one for one in sys.argv[1:] if not one.isalpha()]
    rows = int(float(words[0])) if words else 1_000_000
    fitted, name = (on_spark, "cluster_spark") if "spark" in sys.argv else (on_dask, "cluster")
    found = [fitted(rows, workers) for workers in (1, 2)]
    same = found[0]["weights_sha256"] == found[1]["weights_sha256"]
    written = {"rows": rows, "same_bits": same, "runs": found}
    (FOLDER / f"{name}.json").write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
