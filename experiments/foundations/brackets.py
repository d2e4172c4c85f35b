"""Brackets of the Gaussian loss against interval arithmetic: delta(epsilon) and epsilon(delta) in 20,000 random cases.

    python experiments/foundations/brackets.py [--full]

Expected: no case outside its bracket; largest relative gap below 1e-9 where delta >= 1e-12. Quick: 1,000 cases.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from flint import arb

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.reference import gaussian as reference

from shapedp import GaussianLoss


def deltas(n: int, seed: int) -> tuple[int, float, float, int]:
    """Cases outside their bracket, largest relative gap (delta >= 1e-12), error of log delta, deltas below 1e-300."""
    outside, gap, worst, deep = 0, 0.0, 0.0, 0
    for epsilon, mu in reference.random_points(n, seed):
        loss, truth = GaussianLoss(mu), reference.delta(epsilon, mu, 700)
        bracket = loss.delta(epsilon)
        outside += not reference.inside(truth, bracket.lower, bracket.upper)
        if bracket.lower >= 1e-12:
            gap = max(gap, bracket.relative_gap)
        deep += bracket.upper < 1e-300
        log_truth = float(truth.log())
        worst = max(worst, abs(loss.log_delta(epsilon) - log_truth) / max(1.0, abs(log_truth)))
    return outside, gap, worst, deep


def epsilons(n: int, seed: int) -> tuple[int, float]:
    """Cases outside their bracket, and the largest relative gap."""
    rng = np.random.default_rng(seed)
    outside, gap = 0, 0.0
    for _ in range(n):
        mu, target = float(np.exp(rng.uniform(np.log(1e-4), np.log(40)))), float(10 ** rng.uniform(-300, -0.31))
        bracket = GaussianLoss(mu).epsilon(target)
        outside += not reference.epsilon_excess(bracket.upper, mu, target) <= 0
        outside += not (bracket.lower == 0 or reference.epsilon_excess(bracket.lower, mu, target) >= 0)
        gap = max(gap, bracket.relative_gap if bracket.lower else 0.0)
    return outside, gap


def calibrations(n: int, seed: int) -> tuple[int, float]:
    """Calibrations on the wrong side of the root, and the largest relative distance to it."""
    wrong, distance = 0, 0.0
    for epsilon, target in reference.random_claims(n, seed):
        mu, root = arb(GaussianLoss.calibrate(epsilon, target).mu), reference.mu_for(epsilon, target)
        wrong += not mu <= root
        distance = max(distance, float((1 - mu / root).upper()))
    return wrong, distance


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="20,000 cases instead of 1,000")
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()
    n, start = (20_000 if options.full else 1_000), time.perf_counter()
    outside, gap, worst, deep = deltas(n, options.seed)
    print(f"delta(epsilon): {n} cases, {outside} outside; relative gap <= {gap:.2e} where delta >= 1e-12")
    print(f"                {deep} deltas below 1e-300; log delta off by at most {worst:.2e} of max(1, |log delta|)")
    missed, wide = epsilons(n // 4, options.seed + 1)
    print(f"epsilon(delta): {n // 4} cases, {missed} outside; relative gap <= {wide:.2e}, deltas from 1e-300")
    wrong, distance = calibrations(n // 2, options.seed + 2)
    print(f"calibration:    {n // 2} cases, {wrong} on the wrong side; within {distance:.2e} of the 50-digit root")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(outside + missed + wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
