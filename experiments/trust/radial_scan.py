"""The radial loss against the theory's two integrals in 40 digits: random laws, shifts and epsilons.

    python experiments/trust/radial_scan.py [--quick] [--first N] [--cases N]

dim from 2 to 1e6, a from 1e-2 to dim, b from 0.3 to 8, epsilon from 0 to far beyond the typical loss (delta to 1e-300).
A case is seeded by its number: runs resume and add up. Expected: no case outside its bracket; exit code 1 otherwise.
Quick: 24 cases, about a minute. Default: 400 cases, about half an hour.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
from flint import arb

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.reference.radial_line import exact_delta

from shapedp.privacy.losses.radial import RadialLoss

Case = tuple[int, float, float, float, float]


def case(number: int) -> Case:
    """dim, a, b, ratio and epsilon of a case."""
    rng = np.random.default_rng([15, 10, number])
    dim = max(2, round(10 ** rng.uniform(0.2, 6)))
    b = float(rng.choice([1.0, 2.0, 10 ** rng.uniform(-0.5, 0.9)]))
    share = float(rng.choice([1.0, 1.0, rng.uniform(0.3, 1), 10 ** rng.uniform(-3, 0)]))
    a = float(dim) if share == 1 else min(max(dim * share, 0.01), float(dim))
    k = a / b
    mu = 10 ** rng.uniform(-1.5, 1.7)
    ratio = mu * math.exp(math.log(k) / b) * math.sqrt(1 / dim + 1e-3 * rng.uniform() * (dim < 1000))
    r, log_r = math.exp(math.log(k) / b), math.log(k) / b
    top = (dim - a) * (math.log(r + ratio) - log_r) + (math.exp(b * math.log(r + ratio)) - k)
    typical = 0.5 * mu * mu + mu * rng.uniform(-2, 37)
    epsilon = float(rng.choice([0.0, typical, typical, rng.uniform(0, 1.1) * top]))
    return dim, a, b, ratio, min(max(epsilon, 0.0), 9e3)


def check(number: int) -> tuple[bool, str]:
    """Whether the bracket holds the truth, and a line that says so."""
    dim, a, b, ratio, epsilon = at = case(number)
    bracket = RadialLoss(*at[:4]).delta(epsilon)
    began = time.perf_counter()
    truth, unsure = exact_delta(*at)
    truth = truth if truth > 0 else arb(0)  # below 1e-1000 the reference may cancel
    held = bool(bracket.lower <= truth + unsure) and bool(truth - unsure <= bracket.upper)
    gap = (bracket.upper - bracket.lower) / max(bracket.upper, 1e-300)
    shown = f"dim {dim} a {a:.6g} b {b:.4g} ratio {ratio:.4g} eps {epsilon:.5g}"
    exact = truth.str(8, radius=False)
    seconds = time.perf_counter() - began
    verdict = "" if held else f"  OUTSIDE {bracket!r}"
    return held, f"{number:5d}  {shown}  exact {exact}  gap {gap:.1e}  {seconds:.1f} s{verdict}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int)
    options = parser.parse_args()
    cases = options.cases or (24 if options.quick else 400)
    outside = 0
    for number in range(options.first, options.first + cases):
        held, line = check(number)
        outside += not held
        print(line, flush=True)
    print(f"{cases} cases, {outside} outside their bracket")
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
