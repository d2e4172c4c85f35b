"""Compositions of the published product noise: brackets of delta, their cost, and Monte Carlo beside ten of them.

    python experiments/trust/product_compositions.py            # the table; results/product_compositions.txt
    python experiments/trust/product_compositions.py --quick    # without Monte Carlo

Every cell is T releases of the published calibration (sensitivity 1, epsilon 1, k = 1e5), each on a Poisson sample of
the given rate: at the epsilon of one (amplified) release, and at the T-fold claim of the paper's Theorem 3.
The Monte Carlo draws the noise, computes exact likelihood ratios and shares no code with the library; its intervals
are empirical Bernstein bounds that fail with probability 1e-6 each.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shapedp.accounting import compose
from shapedp.accounting.accountants import he_theorem_3
from shapedp.accounting.subsample import SubsampledLoss, amplify
from shapedp.papers.product_noise.recipes import ProductNoise
from shapedp.privacy import Bracket, Loss
from shapedp.privacy.losses import RadialLoss

DIMS = (3, 14, 100, 10**4, 10**6)
TIMES = (2, 10, 100)
RATES = (1.0, 0.01)
CHECKED = ((3, 100, 1.0, 1.0), (14, 10, 1.0, 10.0), (14, 100, 0.01, 1.0), (100, 2, 1.0, 1.0), (100, 10, 0.01, 0.3))
CHECKED += ((100, 100, 0.01, 1.0), (10**4, 2, 1.0, 9.5), (10**4, 100, 0.01, 1.0), (10**6, 2, 1.0, 20.0))
CHECKED += ((10**6, 10, 0.01, 0.3),)
FADED = 1e-15  # a delta so small that it says nothing
GAP, SECONDS = 0.01, 10.0
ALARM = 1e-6
RESULTS = Path(__file__).parent / "results" / "product_compositions.txt"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """T releases in `dim` dimensions on samples of a rate."""

    dim: int
    times: int
    rate: float

    @property
    def sigma(self) -> float:
        return ProductNoise(self.dim, 1.0, 1.0, 1e5).sigma

    def loss(self) -> Loss:
        base = RadialLoss(self.dim, 1.0, 2.0, 1 / (self.sigma * math.sqrt(2)), adjacency="add-remove")
        return compose([(base if self.rate == 1 else SubsampledLoss(base, self.rate), self.times)])

    @property
    def epsilons(self) -> tuple[float, float]:
        """That of one release, and that of the claim."""
        one = amplify(1.0, 0.0, self.rate)[0]
        return one, he_theorem_3(one, 1e-6, self.times, 1e-8)[0]

    def drawn(self, epsilon: float, count: int, *, back: bool, seed: int) -> tuple[float, float]:
        """An interval for delta of one direction, from `count` draws of all releases together."""
        rng = np.random.default_rng([seed, self.dim, self.times, int(back)])
        total = np.zeros(count)
        for _ in range(self.times):
            total += self._losses(rng, count, back)
        values = -np.expm1(np.minimum(epsilon - total, 0.0))
        log = math.log(4 / ALARM)  # Maurer and Pontil 2009, Theorem 4, on both sides
        slack = math.sqrt(2 * float(values.var(ddof=1)) * log / count) + 7 * log / (3 * (count - 1))
        return float(values.mean()) - slack, float(values.mean()) + slack

    def _losses(self, rng: np.random.Generator, count: int, back: bool) -> Floats:
        """Losses of one release. With the person in the sample the noise is P, else Q; back: seen from Q."""
        radius = self.sigma * np.abs(rng.standard_normal(count))
        along = rng.standard_normal(count)
        cosine = along / np.sqrt(along**2 + rng.chisquare(self.dim - 1, count))
        grown = 2 * radius * cosine + 1  # |n + v|^2 - |n|^2
        loss = 0.5 * (self.dim - 1) * np.log1p(grown / radius**2) + grown / (2 * self.sigma**2)
        held = np.zeros(count, dtype=bool) if back else rng.random(count) < self.rate
        loss = np.where(held, loss, -loss)  # log p/q under P, or under Q
        with np.errstate(divide="ignore"):
            mixed = np.logaddexp(math.log(self.rate) + loss, math.log1p(-self.rate) if self.rate < 1 else -math.inf)
        return -mixed if back else mixed


def cells() -> Iterator[Cell]:
    for dim in DIMS:
        for rate in RATES:
            for times in TIMES:
                yield Cell(dim, times, rate)


def asked(cell: Cell, epsilon: float) -> tuple[Bracket, float]:
    """The bracket of delta, and the processor time it took."""
    begun = time.process_time()
    return cell.loss().delta(epsilon), time.process_time() - begun


def good(found: Bracket, seconds: float) -> bool:
    """Whether a bracket is narrow and was found quickly, or delta is next to nothing."""
    return seconds <= SECONDS and (found.relative_gap <= GAP or found.upper < FADED)


def agrees(cell: Cell, epsilon: float, draws: int, seed: int = 1) -> tuple[bool, str]:
    """Whether the brackets of both directions meet the intervals drawn; and both in words."""
    loss, said, met = cell.loss(), [], True
    for back in (False,) if cell.rate == 1 else (False, True):
        low, high = (float(end[0]) for end in loss.profile(np.array([epsilon]), reverse=back))
        least, most = cell.drawn(epsilon, draws, back=back, seed=seed)
        met &= low <= most and least <= high
        said.append(f"{'back' if back else 'forward'} [{low:.6g}, {high:.6g}] drawn [{least:.6g}, {most:.6g}]")
    return met, "; ".join(said)


def table(monte_carlo: bool) -> Iterator[tuple[bool, str]]:
    yield True, f"{'M':>8} {'rate':>5} {'T':>4} {'epsilon':>9} {'lower':>13} {'upper':>13} {'gap':>8} {'cpu s':>6}"
    for cell in cells():
        for epsilon in cell.epsilons:
            found, seconds = asked(cell, epsilon)
            row = f"{cell.dim:>8} {cell.rate:>5g} {cell.times:>4} {epsilon:>9.5g} {found.lower:>13.8g} "
            row += f"{found.upper:>13.8g} {found.relative_gap:>8.1e} {seconds:>6.1f}"
            fine = good(found, seconds)
            yield fine, row + ("" if fine else "  MISSED") + ("  next to nothing" if found.upper < FADED else "")
    for dim, times, rate, epsilon in CHECKED if monte_carlo else ():
        cell = Cell(dim, times, rate)
        met, said = agrees(cell, epsilon, 2_000_000 // min(times, 10))
        yield met, f"Monte Carlo M {dim} rate {rate:g} T {times} epsilon {epsilon:g}: {said}{'' if met else '  MISSED'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without Monte Carlo")
    quick = parser.parse_args().quick
    rows, missed = [], 0
    for fine, row in table(not quick):
        print(row, flush=True)
        rows.append(row)
        missed += not fine
    rows.append(f"{missed} rows missed a gap of {GAP:.0%} in {SECONDS:g} s of processor time, or their draws")
    print(rows[-1])
    if not quick:
        RESULTS.write_text("\n".join(rows) + "\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
