"""A whole private fit against the Gram matrix alone, the sketch as written, memory, and files larger than memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from _harness import Result, Timing, measure
from shapedp.learn import LinearRegression
from shapedp.learn.moments import Bounds, moments, one_blas_thread
from shapedp.learn.solvers.linear.mixing import mechanisms
from shapedp.numerics.threads import cores
from shapedp.tables import InMemory
from shapedp.tables.sources import CHUNK

FIRST, FIT, PASS = "fit", "fit, calibration kept", "one pass: clip and Gram"
BLAS, THREADS, SKETCH = "threaded Gram, BLAS threads", "threaded Gram, a thread per core", "explicit sketch"
CLAIM = {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 1.0, "target_bound": 1.0}


def _gram(x: np.ndarray, starts: range) -> np.ndarray:
    total = np.zeros((x.shape[1], x.shape[1]))
    for start in starts:
        part = x[start : start + CHUNK]
        total += part.T @ part
    return total


def _threaded(x: np.ndarray) -> np.ndarray:
    """The plain Gram matrix with as many threads as cores, each with its own blocks."""
    n, step = len(x), cores() * CHUNK
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        return sum(pool.map(lambda i: _gram(x, range(i * CHUNK, n, step)), range(cores())))


def _explicit(x: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """S X + sigma xi in blocks of records, so that S is never held whole."""
    y = rng.standard_normal((k, x.shape[1]))
    for start in range(0, len(x), 1 << 13):
        part = x[start : start + (1 << 13)]
        y += rng.standard_normal((k, len(part))) @ part
    return y


def run(quick: bool) -> Result:
    n, d, k = (100_000, 50, 200) if quick else (1_000_000, 100, 500)
    result = Result("linear_fit", what=f"solver mixing, {n} x {d}, {k} rows; threads: {cores()}")
    timings = result.timings = _timed(n, d, k, rounds=3 if quick else 31)
    gram = min((THREADS, BLAS), key=lambda name: timings[name].median)
    limit = None if quick else 1.2
    result.ratio("fit / threaded Gram", timings[FIRST].median / timings[gram].median, at_most=limit)
    result.ratio("fit, calibration kept / threaded Gram", timings[FIT].median / timings[gram].median, at_most=limit)
    result.ratio("best fit / best Gram", timings[FIT].best / timings[gram].best)
    result.ratio("best one pass / best Gram", timings[PASS].best / timings[gram].best)
    result.ratio("explicit sketch / fit", timings[SKETCH].best / timings[FIRST].median, at_least=None if quick else 10)
    result.notes.append(f"The Gram matrix is the faster of two plain ones, here: {gram}.")
    (extra,) = _child(_MEMORY, n, d, k)
    result.figure("fit: peak memory beyond X, y and imports, MB", extra, at_most=64)
    records = 200_000 if quick else 10_000_000
    seconds, peak = _from_parquet(records)
    result.figure(f"fit from parquet, {records} x 20 in one row group: seconds", seconds)
    result.figure("fit from parquet: peak memory of the process, MB", peak, at_most=1000)
    one, two = _child(_WORKERS, 262_144 if quick else 2_097_152)
    result.ratio("Dask, map part: 1 worker process / 2", one / two)
    return result


def _timed(n: int, d: int, k: int, rounds: int) -> dict[str, Timing]:
    """Seconds of the fits and of what they are compared with."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) / np.sqrt(4 * d)
    y = x @ rng.normal(size=d) / 4
    model = LinearRegression(**CLAIM, solver="mixing", sketch_rows=k)
    cases: dict[str, Callable[[], object]] = {
        FIRST: lambda: (mechanisms.cache_clear(), model.fit(x, y)),
        FIT: lambda: model.fit(x, y),
        PASS: lambda: moments(InMemory(x, y), Bounds(1.0, 1.0, 0.5)),
        THREADS: lambda: _threaded(x),
    }
    few: dict[str, Callable[[], object]] = {  # slow where other processes hold the cores, or always
        BLAS: lambda: _gram(x, range(0, n, CHUNK)),
        SKETCH: lambda: _explicit(x, k, rng),
    }
    return measure(cases, rounds=rounds) | measure(few, rounds=1)


_MEMORY = """
import sys
from pathlib import Path
import numpy as np
from shapedp.learn import LinearRegression
n, d, k = map(int, sys.argv[1:])
memory = lambda name: int(Path("/proc/self/status").read_text().split(name)[1].split()[0]) / 1024
model = LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0, solver="mixing", sketch_rows=k)
before = memory("VmRSS:")
Path("/proc/self/clear_refs").write_text("5")
x, y, rng = np.empty((n, d)), np.empty(n), np.random.default_rng(0)
for start in range(0, n, 1024):
    x[start : start + 1024] = rng.normal(size=x[start : start + 1024].shape) / 20
    y[start : start + 1024] = x[start : start + 1024, 0]
model.fit(x, y)
print(memory("VmHWM:") - before - (x.nbytes + y.nbytes) / 2**20)
"""

_PARQUET = """
import sys, time
from pathlib import Path
from shapedp.learn import LinearRegression
start = time.perf_counter()
LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0, solver="mixing").fit(sys.argv[1], "y")
print(time.perf_counter() - start, int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024)
"""


_WORKERS = """
import sys, warnings
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster, get_task_stream, wait
from sklearn.base import BaseEstimator
from shapedp.learn.moments import Bounds, moments
from shapedp.learn.base import read_table
from shapedp.learn.partitions import Partitioned

def seconds(workers, records):
    options = dict(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        rows = da.random.default_rng(0).normal(size=(records, 101), chunks=(131072, 101))
        frame = dd.from_dask_array(rows, columns=[*map(str, range(100)), "y"]).persist()  # the target beside its record
        wait(frame)
        best = []
        for _ in range(5):
            with get_task_stream(client) as stream:
                moments(read_table(BaseEstimator(), Partitioned(frame), "y"), Bounds(50.0, 5.0, 1.0))
            steps = [s for task in stream.data if str(task["key"]).startswith("_worked") for s in task["startstops"]]
            work = [s for s in steps if s["action"] == "compute"]
            best.append(max(s["stop"] for s in work) - min(s["start"] for s in work))  # from the first sum to the last
        return min(best)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(seconds(1, int(sys.argv[1])), seconds(2, int(sys.argv[1])))
"""


def _child(program: str, *arguments: object) -> list[float]:
    """The numbers that a program prints, run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(program, encoding="utf-8")
        command = [sys.executable, path, *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def _from_parquet(records: int) -> tuple[float, float]:
    """Seconds and peak memory of a fit in a process of its own; all records lie in one row group."""
    import pyarrow
    from pyarrow import parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.parquet"
        rng = np.random.default_rng(0)
        columns = {f"x{j}": rng.standard_normal(records) / 9 for j in range(20)}
        columns["y"] = columns["x0"] / 2
        table = pyarrow.table(columns)
        parquet.write_table(table, path, row_group_size=records, use_dictionary=False, compression="none")
        del columns, table
        seconds, peak = _child(_PARQUET, os.fspath(path))
    return seconds, peak
