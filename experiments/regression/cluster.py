"""Logistic regression on files: one machine, Dask and Spark, one worker against two, memory of each, and the bits.

    python experiments/regression/cluster.py [ROWS] [local | dask | spark] [--files FOLDER] [--workers N]
    python experiments/regression/cluster.py write      # what is stored, into docs/larger-than-memory.md

1,000,000 rows of 50 columns, on Dask, if left out. Rows are written to the folder once, as parquet files of 65,536 rows
in single precision (2 GB for 1e7), and read again in every pass; `local` reads them in this process, by one thread
more than it sums. Printed and written to results/cluster.json, by kind and rows: the clock, the processor time (Spark:
of Python and of Java) and peak memory, libraries included.
Expected: the same bits from one machine, from one worker and from two, from Dask and from Spark; memory that does not
grow with the rows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS, CHUNK = 50, 65_536
RESULTS = Path(__file__).parent / "results" / "cluster.json"
PAGE = Path(__file__).parents[2] / "docs" / "larger-than-memory.md"
BEGIN, END = "<!-- cluster: written by experiments/regression/cluster.py -->", "<!-- end of cluster -->"
FILES = Path(tempfile.gettempdir()) / "shapedp-cluster"
CLAIM = {"epsilon": 1.0, "delta": 1e-8, "feature_bound": 1.0, "classes": [0, 1], "solver": "descent"}


def written(rows: int, files: Path) -> Path:
    """A folder with that many rows, made if it is not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = files / str(rows)
    if folder.exists():
        return folder
    part = folder.with_suffix(".part")
    part.mkdir(parents=True, exist_ok=True)
    names = [*(f"x{i}" for i in range(COLUMNS)), "y"]
    for number, start in enumerate(range(0, rows, CHUNK)):
        rng = np.random.default_rng(number)
        x = (rng.random((min(CHUNK, rows - start), COLUMNS), dtype=np.float32) * 2 - 1) / np.float32(np.sqrt(COLUMNS))
        y = rng.random(len(x)) < 1 / (1 + np.exp(-(x @ np.linspace(-8, 8, COLUMNS))))
        table = pa.table([*x.T, y.astype(np.float32)], names=names)
        pq.write_table(table, part / f"{number:05}.parquet", compression="none", use_dictionary=False)
    part.rename(folder)
    return folder


def used(_: Any = None) -> tuple[float, float]:
    """Processor seconds and peak memory in MiB of this process."""
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime + found.ru_stime, found.ru_maxrss / 1024


def fitted(fit: Callable[[Any], Any]) -> tuple[Any, float]:
    """The model, and the seconds it took."""
    from shapedp.learn import LogisticRegression

    start = time.perf_counter()
    model = fit(LogisticRegression(**CLAIM, random_state=0))
    return model, time.perf_counter() - start


def on_one_machine(folder: Path, workers: int) -> dict[str, Any]:
    """A fit in this process."""
    before = used()
    model, seconds = fitted(lambda model: model.fit(folder, "y"))
    after = used()
    return told(seconds, [round(after[0] - before[0], 1)], model) | {"peak_mib": [round(after[1])]}


def on_dask(folder: Path, workers: int) -> dict[str, Any]:
    """A fit on a local cluster; files are read by the one thread of each worker."""
    import dask.dataframe as dd
    import pyarrow
    from distributed import Client, LocalCluster

    from shapedp.learn import partitions

    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.run(pyarrow.set_cpu_count, 1)
        frame = dd.read_parquet(folder)
        before = client.run(used)
        model, seconds = fitted(lambda model: partitions.fit(model, frame, "y"))
        after = client.run(used)
    spent = [round(after[key][0] - before[key][0], 1) for key in after]
    return told(seconds, spent, model) | {"peak_mib": [round(after[key][1]) for key in after]}


def on_spark(folder: Path, workers: int) -> dict[str, Any]:
    """A fit on Spark in this machine, with a Java process of its own; `workers` tasks run at a time."""
    from pyspark.sql import SparkSession

    from shapedp.learn import partitions

    os.environ["PYSPARK_PYTHON"] = sys.executable
    given = {"ui.enabled": "false", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1"}
    given |= {"driver.memory": "1g", "ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master(f"local[{workers}]")
    for name, value in given.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    frame = session.read.parquet(str(folder))
    before = sum(one["seconds"] for one in descendants(os.getpid()))  # of Java, which serves both fits
    model, seconds = fitted(lambda model: partitions.fit(model, frame, "y"))
    found = descendants(os.getpid())
    session.stop()
    python = [one for one in found if "java" not in one["name"]]
    java = [one for one in found if "java" in one["name"]]
    spent = [round(sum(one["seconds"] for one in python), 1), round(sum(one["seconds"] for one in java) - before, 1)]
    return told(seconds, spent, model) | {
        "processes_of_python": len(python) - 1,  # all are forks of one more
        "largest_peak_mib_of_python": round(max(one["peak"] for one in python)),
        "peak_mib_of_java": round(sum(one["peak"] for one in java)),
    }


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


def told(seconds: float, spent: list[float], model: Any) -> dict[str, Any]:
    """What all say."""
    bits = hashlib.sha256(np.append(model.coef_, model.intercept_).tobytes()).hexdigest()[:16]
    return {"seconds": round(seconds, 1), "processor_seconds": spent, "weights_sha256": bits}


def listed(numbers: list[float]) -> str:
    """Of one worker, or of each."""
    return " and ".join(f"{one:,.0f}" for one in numbers)


def table(stored: dict[str, Any]) -> str:
    """One line per run, as Markdown."""
    head = ["rows", "on", "workers", "clock, s", "processor, s", "peak, MiB", "weights"]
    lines = [head, ["---"] * len(head)]
    for name, run in sorted(stored.items(), key=lambda one: (one[1]["rows"], one[0])):
        spent, peak = listed(run["processor_seconds"]), listed(run.get("peak_mib", []))
        if "peak_mib_of_java" in run:
            spent = "{:,.0f} Python, {:,.0f} Java".format(*run["processor_seconds"])
            peak = f"{run['largest_peak_mib_of_python']:,} Python, {run['peak_mib_of_java']:,} Java"
        kind, seconds = name.split(",")[0], f"{run['seconds']:,.0f}"
        lines.append([f"{run['rows']:,}", kind, str(run["workers"]), seconds, spent, peak, run["weights_sha256"][:8]])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write() -> None:
    """The table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    shown = table(json.loads(RESULTS.read_text(encoding="utf-8")))
    PAGE.write_text(f"{before}{BEGIN}\n\n{shown}\n\n{after}", encoding="utf-8")


KINDS = {"local": (on_one_machine, (1,)), "dask": (on_dask, (1, 2)), "spark": (on_spark, (1, 2))}


def main() -> None:
    if sys.argv[1:] == ["write"]:
        write()
        return
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("rows", nargs="?", type=float, default=1e6)
    options.add_argument("kind", nargs="?", choices=KINDS, default="dask")
    options.add_argument("--files", type=Path, default=FILES)
    options.add_argument("--workers", type=int, help="so many only, in place of one and then two")
    given = options.parse_args()
    rows, (fit, workers) = int(given.rows), KINDS[given.kind]
    folder = written(rows, given.files)
    for count in [given.workers] if given.workers else workers:
        run = {"rows": rows, "columns": COLUMNS, "workers": count} | fit(folder, count)
        print(json.dumps(run), flush=True)
        stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        stored[f"{given.kind}, {rows} rows, {count}"] = run
        RESULTS.write_text(json.dumps(dict(sorted(stored.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
