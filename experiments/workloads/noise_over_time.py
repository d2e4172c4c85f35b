"""Errors of noise over time for prefix sums beside the hull's engine and jax_privacy's optimisers.

    python experiments/workloads/noise_over_time.py               # n = 64, 256, 1024: about five minutes
    python experiments/workloads/noise_over_time.py --quick       # n = 64
    python experiments/workloads/noise_over_time.py --jax .venv-jax/bin/python    # beside jax_privacy

`make .venv-jax/.setup-done` makes that environment. Prints a table and writes
experiments/results/noise-over-time.json. Errors are sums of squares over all prefix sums, at noise of standard
deviation 1 where a record moves C g by 1 (buffers: times the reach squared).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from shapedp.numerics.ellipsoid import Points, best_ellipsoid
from shapedp.workloads import Banded, Buffered, StepSums, Toeplitz

RESULTS = Path(__file__).resolve().parents[1] / "results" / "noise-over-time.json"
PEER = """
import json, os, sys
os.environ["JAX_ENABLE_X64"] = "1"
import jax.numpy as jnp, numpy as np
from jax_privacy.matrix_factorization import banded, buffered_toeplitz, toeplitz
kind, n, b = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def error(column):
    seen = np.cumsum(np.asarray(toeplitz.inverse_coef(jnp.asarray(column), n)))
    return float((seen * seen) @ np.arange(n, 0, -1))
if kind == "bands":
    print(float(jnp.sum(banded.per_query_error(banded.optimize(n, bands=b, max_optimizer_steps=300)))))
elif kind == "Toeplitz":
    found = toeplitz.optimize_banded_toeplitz(n, bands=b)
    print(error(found / jnp.linalg.norm(found)))
else:
    found = buffered_toeplitz.optimize(n=n, min_sep=b, max_participations=-(-n // b), error="mean")
    column = np.asarray(found.toeplitz_coefs(n))
    print(float(toeplitz.minsep_sensitivity_squared(jnp.asarray(column), b, -(-n // b), n)) * error(column))
"""


def ours(kind: str, steps: int, bands: int) -> dict[str, Any]:
    """The error, the least that any bands can have where it is proved, and the seconds of the search."""
    workload, begun = StepSums(steps), time.perf_counter()
    if kind == "buffers":
        buffered = Buffered.best(workload, bands)
        return {"error": buffered.reach**2 * buffered.error(workload), "seconds": time.perf_counter() - begun}
    if kind == "Toeplitz":
        return {"error": Toeplitz.best(workload, bands).error(workload), "seconds": time.perf_counter() - begun}
    found = Banded.best(workload, bands)
    seconds = time.perf_counter() - begun
    return {"error": found.error(workload), "least": found.least(workload), "seconds": seconds}


def hull(steps: int) -> float:
    """The lower bound of the hull's engine: no Gaussian noise errs less for one use."""
    return best_ellipsoid(Points(StepSums(steps).matrix().T), np.ones(steps), gap=1e-3, rounds=2000).least


def peer(python: str, kind: str, steps: int, bands: int) -> float | None:
    """What jax_privacy's optimiser reaches, or None where it fails."""
    made = subprocess.run([python, "-c", PEER, kind, str(steps), str(bands)], capture_output=True, text=True)
    return float(made.stdout.split()[-1]) if made.returncode == 0 else None


def rows(sizes: list[int], python: str | None) -> list[dict[str, Any]]:
    """One row per kind of noise, number of steps and bands."""
    found = []
    for steps in sizes:
        asked = [("bands", b) for b in sorted({1, 8, 64, steps})] + [("Toeplitz", b) for b in (8, 64) if b < steps]
        for kind, bands in [*asked, ("buffers", steps), ("buffers", steps // 4)]:
            row: dict[str, Any] = {"kind": kind, "steps": steps, "bands": bands, **ours(kind, steps, bands)}
            row["hull"] = hull(steps) if kind == "bands" and bands == steps else None
            too_long = kind == "bands" and steps > 256  # minutes to hours on two cores
            row["jax_privacy"] = None if python is None or too_long else peer(python, kind, steps, bands)
            found.append(row)
            print(" | ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return found


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="64 steps alone; nothing is written")
    parser.add_argument("--jax", help="the python of an environment with requirements/jax.txt")
    options = parser.parse_args()
    found = rows([64] if options.quick else [64, 256, 1024], options.jax)
    for row in found:
        for other in ("hull", "jax_privacy"):
            if row[other] is not None and row["error"] > 1.01 * row[other]:
                raise SystemExit(f"more than 1% above {other}: {row}")
    if not options.quick:
        RESULTS.write_text(json.dumps({"rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
