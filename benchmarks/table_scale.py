"""A private table over many rows: 1e8 rows of parquet by three columns, at most three rows of each person.

- plain: a GROUP BY of the same columns in DuckDB, without persons;
- by hand: what one writes in SQL to keep three rows of each person (row_number in an order of no meaning), no key;
- ours: the bounded sums without noise, then noise, intervals and the certificate on top.

All with the same limit of memory, in one process, one after the other in each round. The quick run has 1e6 rows.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import shapedp as sdp
from _harness import Result, Timing, ratio

FILES, EACH, MOST, MEMORY = 8, 4, 3, "2.5GB"
DOMAINS = {"region": [f"region {k}" for k in range(12)], "sex": ["F", "M"], "education": 16}
BY = ", ".join(DOMAINS)


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    own = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(folder / "spill")})
    own.execute("SET preserve_insertion_order = false")
    return own


def generate(rows: int, folder: Path) -> list[Path]:
    """People with four rows on average, in no order, in several files."""
    paths, each = [], rows // FILES
    with connect(folder) as own:
        for k in range(FILES):
            paths.append(folder / f"part{k}.parquet")
            own.execute(f"""COPY (
                SELECT (hash(i, 1) % {rows // EACH})::BIGINT AS id, 'region ' || (hash(i, 2) % 12) AS region,
                    CASE WHEN hash(i, 3) % 2 = 0 THEN 'F' ELSE 'M' END AS sex, (hash(i, 4) % 16)::SMALLINT AS education,
                    ((hash(i, 5) % 321) / 4)::DOUBLE AS hours
                FROM range({k * each}, {(k + 1) * each}) r(i)) TO '{paths[-1]}' (FORMAT parquet)""")
    return paths


def in_sql(folder: Path, rows: str) -> list[tuple[object, ...]]:
    with connect(folder) as own:
        return own.execute(f"SELECT {BY}, count(*), sum(hours) FROM {rows} GROUP BY ALL").fetchall()


def run(quick: bool) -> Result:
    count, rounds = (10**6, 3) if quick else (10**8, 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = generate(count, folder)
        size = sum(path.stat().st_size for path in paths)
        files = f"read_parquet({[str(path) for path in paths]})"
        numbered = f"SELECT *, row_number() OVER (PARTITION BY id ORDER BY {BY}, hours) AS place FROM {files}"
        t = sdp.table(paths, person="id", rows=MOST, bounds={"hours": (0, 80)}, domains=DOMAINS, memory=MEMORY)
        question = t.group_by(*DOMAINS).agg(people=sdp.count(), hours=sdp.sum("hours"))
        plan = t.plan(question, epsilon=1.0, delta=1e-6)
        counted = []
        cases: dict[str, Callable[[], object]] = {
            "plain": lambda: in_sql(folder, files),
            "by hand": lambda: in_sql(folder, f"(SELECT * FROM ({numbered}) WHERE place <= {MOST})"),
            "ours, without noise": lambda: counted.append(plan.exact_tables()),
            "noise, intervals, certificate": lambda: plan.answers(plan.mechanism.release(counted[-1])),
        }
        wall: dict[str, list[float]] = {name: [] for name in cases}
        busy: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(rounds):
            for case, call in cases.items():
                start, used = time.perf_counter(), time.process_time()
                call()
                wall[case].append(time.perf_counter() - start)
                busy[case].append(time.process_time() - used)
    assert counted[0].records == counted[-1].records  # another key chooses other rows, but as many
    return summary(count, size, wall, busy)


def summary(count: int, size: int, wall: dict[str, list[float]], busy: dict[str, list[float]]) -> Result:
    """Ratios of processor time, which other work on the machine does not change; seconds as they passed."""
    result = Result(
        "table_scale", what=f"{count:.0e} rows by three columns, {MOST} rows of each person: processor time"
    )
    result.timings = {case: Timing(tuple(samples), 1) for case, samples in wall.items()}
    used = {case: Timing(tuple(samples), 1) for case, samples in busy.items()}
    ours, noise = "ours, without noise", "noise, intervals, certificate"
    result.ratio("with noise / without", 1 + ratio(used, noise, ours), at_most=1.3)
    result.ratio("with noise / without, seconds passed", 1 + ratio(result.timings, noise, ours), at_most=1.3)
    result.ratio("ours / by hand", ratio(used, ours, "by hand"))
    result.ratio("ours / plain GROUP BY", ratio(used, ours, "plain"))
    result.ratio("by hand / plain GROUP BY", ratio(used, "by hand", "plain"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    result.figure("peak memory of the process, GB", peak, at_most=4)
    result.figure("parquet, GB", size / 1e9)
    for case, timing in used.items():
        result.figure(f"{case}, s of processor time", timing.median)
    result.notes.append(f"DuckDB {duckdb.__version__}, memory={MEMORY!r}; what does not fit goes to temporary files.")
    return result
