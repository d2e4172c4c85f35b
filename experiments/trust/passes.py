"""Passes over the data: how tight the brackets are, and what each way of drawing batches costs.

    python experiments/trust/passes.py              # 50 settings and the table; results/passes.txt
    python experiments/trust/passes.py --table      # the table of docs/deep-learning.md alone

A setting is Gaussian noise (mu 0.3 to 5), t runs of a pass (10 to 10,000), passes (1 to 50) and a delta (1e-8 to
1e-5), all drawn on a logarithmic scale from a fixed seed. The gap is that of epsilon, 1 - lower/upper.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shapedp import Bracket, GaussianLoss
from shapedp.accounting import Plan, Step

SETTINGS, SEED, DELTA = 50, 5, 1e-6
ROWS = ((1.0, 10, 1), (1.0, 100, 1), (1.0, 1000, 1), (1.0, 100, 10), (0.7, 100, 10), (2.0, 1000, 50))
RESULTS = Path(__file__).parent / "results" / "passes.txt"


@dataclass(frozen=True)
class Setting:
    """Passes of so many runs of Gaussian noise."""

    mu: float
    batches: int
    passes: int
    delta: float

    def epsilon(self) -> Bracket:
        return Plan(
            (Step(GaussianLoss(self.mu), count=self.passes, scheme="allocation", batches=self.batches),)
        ).epsilon(self.delta)


def settings(count: int = SETTINGS) -> Iterator[Setting]:
    """The same ones each time."""
    rng = np.random.default_rng(SEED)
    low, high = np.log([0.3, 10, 1, 1e-8]), np.log([5, 10_000, 50, 1e-5])
    for mu, batches, passes, delta in np.exp(rng.uniform(low, high, (count, 4))):
        yield Setting(float(mu), round(batches), round(passes), float(delta))


def ways(sigma: float, batches: int, passes: int) -> list[str]:
    """Epsilon at DELTA of each way of drawing batches, rounded up; of a shuffle also what is known from below."""
    mu, steps = 1 / sigma, batches * passes
    plans = {
        "poisson": Step(GaussianLoss(mu), 1 / batches, steps),
        "allocation": Step(GaussianLoss(mu), count=passes, scheme="allocation", batches=batches),
        "fixed": Step(GaussianLoss(2 * mu), 1 / batches, steps, "without-replacement"),
        "shuffle": Step(GaussianLoss(mu), count=passes, scheme="shuffle", batches=batches),
    }
    found = {name: Plan((step,)).epsilon(DELTA).upper for name, step in plans.items()}
    one = Plan((Step(GaussianLoss(mu), scheme="shuffle", batches=batches),)).epsilon(DELTA).lower
    known = GaussianLoss(mu * passes**0.5).epsilon(DELTA).upper
    shown = [f"{_up(found[name])}" for name in ("poisson", "allocation", "fixed")]
    return [*shown, f"{one - 0.005:.2f} to {_up(found['shuffle'])}", _up(known)]


def _up(value: float) -> str:
    return f"{np.ceil(value * 100) / 100:.2f}"


def table() -> str:
    """As the page shows it."""
    head = "| noise | batches of a pass | passes | `poisson` | `allocation` | `fixed` | `shuffle` | known order |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for sigma, batches, passes in ROWS:
        lines.append(" | ".join([f"| {sigma:g}", f"{batches:,}", str(passes), *ways(sigma, batches, passes)]) + " |")
    return "\n".join(lines)


def line(one: Setting) -> tuple[str, float]:
    """A setting, its bracket and its gap."""
    start = time.process_time()
    found = one.epsilon()
    gap, seconds = 1 - found.lower / found.upper, time.process_time() - start
    ends = f"epsilon [{found.lower:.6g}, {found.upper:.6g}]  gap {100 * gap:.3f}%  {seconds:.1f} s"
    return f"mu {one.mu:.4g}  t {one.batches}  passes {one.passes}  delta {one.delta:.2e}  {ends}", gap


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--table", action="store_true")
    arguments.add_argument("--only", type=int, help="one setting, by its number")
    options = arguments.parse_args()
    if options.table:
        print(table())
        return 0
    if options.only is not None:
        print(line(list(settings())[options.only])[0])
        return 0
    lines, worst = [], 0.0
    for one in settings():
        text, gap = line(one)
        worst = max(worst, gap)
        lines.append(text)
        print(text, flush=True)
    lines.append(f"{len(lines)} settings, largest gap of epsilon {100 * worst:.3f}%")
    print(lines[-1])
    RESULTS.write_text("\n".join([*lines, "", table(), ""]), "utf-8")
    return 0 if worst <= 0.01 else 1


if __name__ == "__main__":
    raise SystemExit(main())
