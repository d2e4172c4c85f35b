"""PCA of the fully random model: table III of the i.n.i.d. noise paper, against the isometric release.

    python experiments/inid_learning/components.py [trials]      # 1000; writes components.json
    shapedp reproduce inid-learning/table-3 [--full]

Expected: the isometric release ahead of i.i.d. noise and of clipped, shaped noise at every epsilon; no Laplace row
below 0.85. Settings ours: 1000 unit rows, uniform on the sphere of a random 10-dimensional subspace of R^100 (the
paper prints "N = 100, N = 1000"), not centred, a removed record.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp import Additive, calibrate
from shapedp.learn import PCA, subspace_error
from shapedp.learn.solvers.covariance import SecondMoments, principal
from shapedp.privacy import loss_of
from shapedp.sensitivity.symmetric import symmetric_matrix, upper_triangle

Floats = NDArray[np.float64]
FEATURES, RECORDS, RANK, DELTA = 100, 1000, 10, 1e-6
EPSILONS = (1.0, 2.0, 5.0)
PUBLISHED = {
    ("gaussian", "iid"): (0.4762, 0.2484, 0.1067),
    ("gaussian", "clipped"): (0.3269, 0.1728, 0.0752),
    ("laplace", "iid"): (0.6185, 0.3272, 0.1389),
    ("laplace", "clipped"): (0.5034, 0.2523, 0.1093),
}
ARMS = [(noise, release) for noise in ("gaussian", "laplace") for release in ("isometric", "iid", "clipped")]
UNCLIPPED = ("gaussian", "shaped, not clipped")
RESULTS = Path(__file__).with_name("components.json")


def rows_and_basis(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Unit rows in a random subspace, and its basis in rows."""
    basis = np.linalg.qr(rng.standard_normal((FEATURES, RANK)))[0].T
    inside = rng.standard_normal((RECORDS, RANK))
    inside /= np.linalg.norm(inside, axis=1, keepdims=True)
    return inside @ basis, basis


@cache
def shaped(epsilon: float) -> Additive:
    """Noise for entries that were clipped."""
    box = SecondMoments(FEATURES, 1.0, "zero-out", "clipped").sensitivity()
    return calibrate("gaussian", box, epsilon=epsilon, delta=DELTA)


def true_delta(epsilon: float) -> float:
    """The delta of that noise where nothing is clipped: rows of norm 1 move X^T X by 1 in the Frobenius norm."""
    return loss_of(shaped(epsilon).law, SecondMoments(FEATURES, 1.0, "zero-out").sensitivity()).delta(epsilon).lower


def recovery(noise: str, release: str, epsilon: float, seed: int) -> float:
    """The subspace recovery error of one trial."""
    rng = np.random.default_rng([seed, 7])
    rows, basis = rows_and_basis(rng)
    if (noise, release) == UNCLIPPED:
        value = shaped(epsilon).release(upper_triangle(rows.T @ rows), rng=rng).value
        return subspace_error(principal(symmetric_matrix(value))[1][:RANK], basis)
    delta = DELTA if noise == "gaussian" else 0.0
    found = PCA(
        RANK,
        epsilon=epsilon,
        delta=delta,
        feature_bound=1.0,
        center=False,
        release=release,
        noise=noise,
        random_state=rng,
    ).fit(rows)
    return subspace_error(found.components_, basis)


def _job(job: tuple[str, str, float, int]) -> float:
    return recovery(*job)


def table(trials: int, processes: int = 1) -> list[dict[str, Any]]:
    """Mean and standard error of the mean, for every row and epsilon."""
    arms = [*ARMS, UNCLIPPED]
    jobs = [(*arm, epsilon, seed) for arm in arms for epsilon in EPSILONS for seed in range(trials)]
    if processes > 1:
        with multiprocessing.Pool(processes) as pool:
            values = pool.map(_job, jobs, chunksize=max(trials // 20, 1))
    else:
        values = [_job(job) for job in jobs]
    found = np.array(values).reshape(len(arms), len(EPSILONS), trials)
    means, errors = found.mean(axis=2), found.std(axis=2) / np.sqrt(trials)
    return [
        {"noise": noise, "release": release, "mean": means[i].tolist(), "error": errors[i].tolist(), "trials": trials}
        for i, (noise, release) in enumerate(arms)
    ]


def main() -> None:
    """Run, print and write."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    results = {"table": table(trials, os.cpu_count() or 1), "true_delta": [true_delta(e) for e in EPSILONS]}
    print(json.dumps(results, indent=1))
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    part.rename(RESULTS)


if __name__ == "__main__":
    main()
