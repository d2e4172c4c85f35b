"""Random compositions through the grids: never below the truth, never above it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.pairs import ScalarLaplace, gaussian_delta, laplace_delta, response_delta

from shapedp.accounting import BareLoss, compose
from shapedp.privacy import GaussianLoss, Loss


def one(rng: np.random.Generator) -> str | None:
    """A random composition of one of three kinds; what is wrong with its bracket, if anything."""
    kind = rng.choice(["gaussian", "mixed gaussians", "response", "laplace"], p=[0.45, 0.25, 0.2, 0.1])
    accuracy = float(10 ** rng.uniform(-4, -1))
    parts: list[tuple[Loss, int]]
    if kind in ("gaussian", "mixed gaussians"):
        terms = []
        for _ in range(1 if kind == "gaussian" else int(rng.integers(2, 5))):
            times = int(10 ** rng.uniform(0, 5 if kind == "gaussian" else 3))
            terms.append((float(10 ** rng.uniform(-2, 0.7) / times**0.5), times))
        whole = float(np.sqrt(sum(n * mu * mu for mu, n in terms)))
        epsilon = max(float(whole * whole / 2 + whole * rng.uniform(-1, 10)), 0.0)
        exact = gaussian_delta(epsilon, *terms)
        parts = [(GaussianLoss(mu), n) for mu, n in terms]
    else:
        most = 64 if kind == "response" else 6
        times, pure = int(rng.integers(1, most + 1)), float(10 ** rng.uniform(-2, 0.5))
        epsilon = float(rng.uniform(0, 0.999)) * pure * times
        if kind == "response":
            failure = float(rng.choice([0.0, 10 ** rng.uniform(-12, -2)]))
            exact = response_delta(pure, failure, times, epsilon)
            parts = [(BareLoss(pure, failure), times)]
        else:
            exact = laplace_delta(pure, times, epsilon)
            parts = [(ScalarLaplace(pure), times)]
    bracket = compose(parts, closed_forms=False, accuracy=accuracy).delta(epsilon)
    if bracket.lower <= exact <= bracket.upper:
        return None
    return f"{kind} {parts} at {epsilon!r}: {exact} is outside [{bracket.lower!r}, {bracket.upper!r}]"


def run(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [wrong for wrong in (one(rng) for _ in range(n)) if wrong]


def test_random_compositions() -> None:
    assert run(120, seed=11) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_compositions_10_000(seed: int) -> None:
    assert run(100, seed=1000 + seed) == []
