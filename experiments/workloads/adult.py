"""Adult, the real file: all two-way tables; counts, sums and means with intervals that hold as often as they say.

    python experiments/workloads/adult.py tables      # plan, count and release 91 tables; 200 releases against theory
    python experiments/workloads/adult.py coverage    # 10,000 releases of education x sex x race with hours
    python experiments/workloads/adult.py coverage --pure    # the same with Laplace noise, delta = 0

Reads SHAPEDP_DATA/adult. Domains are those of adult.names, numbers in public intervals.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from typing import Any

import numpy as np
import pandas as pd

import shapedp as sdp
from shapedp.papers.datasets.files import read
from shapedp.papers.datasets.formats import read_rows
from shapedp.papers.datasets.tables import ADULT_CATEGORIES, ADULT_COLUMNS
from shapedp.workloads.counting import counted

CLAIM = {"epsilon": 1.0, "delta": 1e-9}
EDGES = {
    "age": np.linspace(17, 102, 86),
    "fnlwgt": np.linspace(0, 1_500_000, 101),
    "education-num": np.arange(1, 18),
    "capital-gain": np.linspace(0, 100_000, 101),
    "capital-loss": np.linspace(0, 5_000, 101),
    "hours-per-week": np.arange(1, 101),
}


def frame() -> pd.DataFrame:
    """The 48,842 records, as published."""
    rows = [row for part in ("data", "test") for row in read_rows(read(f"adult/adult.{part}.gz", None), 15)]
    names = [*ADULT_COLUMNS[:14], "income"]
    table = pd.DataFrame(rows, columns=names)
    return table.astype(dict.fromkeys(EDGES, float))


def schema() -> dict[str, Any]:
    """The 14 attributes."""
    found: dict[str, Any] = {}
    for name in ADULT_COLUMNS[:14]:
        if name in EDGES:
            found[name] = {"edges": EDGES[name].tolist(), "other": True}
        else:
            found[name] = {"labels": list(ADULT_CATEGORIES[name]), "other": True}
    return found


def tables(releases: int) -> dict[str, Any]:
    """All two-way tables: seconds of each step, and the measured error of many releases."""
    data, begun = frame(), time.perf_counter()
    asked = sdp.Workload(schema()).marginals(2)
    made = asked.calibrate(**CLAIM)
    planned = time.perf_counter()
    exact = counted(made, data)
    after = time.perf_counter()
    release = made.release(exact)
    answers = {name: release[name] for name in release}
    done = time.perf_counter()
    truth = {name: _exact(asked, name, exact) for name in answers}
    rng, errors = np.random.default_rng(0), []
    for _ in range(releases):
        one = made.release(exact, rng=rng)
        errors.append(sum(float(np.square(one[name] - truth[name]).sum()) for name in answers) / len(asked))
    predicted = made.expected_squared_error / len(asked)
    closed = _closed(asked) / sdp.GaussianLoss.calibrate(**CLAIM).mu ** 2 / len(asked)
    return {
        "answers": len(asked),
        "seconds": {"plan": planned - begun, "count": after - planned, "release": done - after, "all": done - begun},
        "rms": math.sqrt(predicted),
        "rms of the closed form": math.sqrt(closed),
        "rms measured": math.sqrt(float(np.mean(errors))),
        "standard error of the measured mean square": float(
            np.std(errors, ddof=1) / math.sqrt(releases) / np.mean(errors)
        ),
        "optimality": made.optimality.upper if made.optimality else None,
    }


def _exact(asked: sdp.Workload, name: str, exact: Any) -> np.ndarray[Any, Any]:
    term = next(term for term in asked.terms if term.name == name)
    return np.asarray(exact.tables[term.attributes][..., 0])


def _closed(asked: sdp.Workload) -> float:
    """(sum_B m_B sqrt(v_B))^2/N, written with v_B/N to stay within floats."""
    sizes, shares = asked.schema.sizes, {}
    for term in asked.terms:
        a, b = term.attributes
        for block in ((), (a,), (b,), (a, b)):
            shares[block] = shares.get(block, 0.0) + 1 / math.prod(sizes[k] for k in term.attributes)
    return sum(math.prod(sizes[k] - 1 for k in block) * math.sqrt(share) for block, share in shares.items()) ** 2


def coverage(releases: int, delta: float = CLAIM["delta"]) -> dict[str, Any]:
    """How often the 95% intervals hold: over all cells of education x sex x race, means over cells with people."""
    whole = schema()
    names = ("education", "sex", "race")
    asked = sdp.Workload(
        {name: {"labels": whole[name]["labels"]} for name in names}, measures={"hours-per-week": (0, 99)}
    ).means("hours-per-week", *names)
    made, data = asked.calibrate(epsilon=CLAIM["epsilon"], delta=delta), frame()
    exact = counted(made, data)
    table = exact.tables[0, 1, 2]
    count, total = table[..., 0], table[..., 1] * asked.schema.measures[0].step
    mean = total / np.maximum(count, 1)
    rng, held = np.random.default_rng(1), {name: [] for name in ("counts", "sums", "means", "joint counts")}
    counts, sums = (term.name for term in asked.terms)
    for _ in range(releases):
        release = made.release(exact, rng=rng)
        for word, name, truth in (("counts", counts, count), ("sums", sums, total)):
            low, high = release.interval(name, 0.95)
            held[word].append(((low <= truth) & (truth <= high)).mean())
        low, high = release.interval(counts, 0.95, joint=True)
        held["joint counts"].append(((low <= count) & (count <= high)).all())
        _, low, high = release.means("hours-per-week", *names, confidence=0.95)
        held["means"].append(((low <= mean) & (mean <= high))[count > 0].mean())
    return {"cells": count.size, **{name: float(np.mean(found)) for name, found in held.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tables", "coverage"))
    parser.add_argument("--releases", type=int, help="how many releases (default 200, or 10,000)")
    parser.add_argument("--pure", action="store_true", help="delta = 0 (coverage)")
    options = parser.parse_args()
    if options.what == "tables":
        done = tables(options.releases or 200)
    else:
        done = coverage(options.releases or 10_000, 0.0 if options.pure else CLAIM["delta"])
    print(json.dumps(done, indent=2))


if __name__ == "__main__":
    main()
