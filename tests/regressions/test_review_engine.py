"""Grids, points set apart and compositions against enumerated laws of a few atoms, some with mass of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from shapedp.accounting import compose
from shapedp.accounting.fourier import convolve
from shapedp.privacy import Loss
from shapedp.privacy.losses.discrete import bound_masses, coarse_step

Laws = tuple[np.ndarray, np.ndarray]


class Atoms(Loss):
    """P and Q on a few points; the bounds of the profile are `fuzz` apart, relatively."""

    symmetric = False

    def __init__(self, law: Laws, fuzz: float = 0.0) -> None:
        self.law, self.fuzz = law, fuzz

    def profile(self, epsilon: Any, *, reverse: bool = False) -> tuple[Any, Any]:
        value = exact(self.law, np.asarray(epsilon), reverse)
        with np.errstate(invalid="ignore"):
            gaps = np.abs(self.law[0] - self.law[1])
        slack = 2.0**-48 * (1 + float(np.max(gaps[np.isfinite(gaps)])))
        upper = np.where(value > 0, value * (1 + self.fuzz) + slack, slack)
        return np.maximum(value * (1 - self.fuzz) - slack, 0.0), np.minimum(upper, 1.0)


def exact(law: Laws, epsilon: np.ndarray, reverse: bool) -> np.ndarray:
    """The sum of (p - e^eps q)_+ from logarithms."""
    p, q = law[::-1] if reverse else law
    held = np.isfinite(p)
    below = np.minimum(np.ravel(epsilon)[:, None] - (p[held] - q[held]), 0.0)
    return np.asarray((np.exp(p[held]) * -np.expm1(below)).sum(axis=1)).reshape(epsilon.shape)


def together(*laws: Laws) -> Laws:
    p, q = np.zeros(1), np.zeros(1)
    for one, other in laws:
        p, q = np.add.outer(p, one).ravel(), np.add.outer(q, other).ravel()
    kept = np.isfinite(p) | np.isfinite(q)
    return p[kept], q[kept]


def random_law(rng: np.random.Generator) -> Laws:
    """Two to four common atoms; often one more that P or Q has alone, or nearly so."""
    size = int(rng.integers(2, 5))
    p = rng.random(size) ** rng.choice([1, 3, 8])
    q = p * np.exp(rng.normal(size=size) * 10 ** rng.uniform(-3, 1.5))
    p, q = p / p.sum(), q / q.sum()
    rare, kind = 10 ** rng.uniform(-9, -0.3), rng.random()
    if kind < 0.7:
        other = 0.0 if kind < 0.4 else rare * 10 ** -rng.uniform(0.5, 100)
        ends = (rare, other) if rng.random() < 0.5 else (other, rare)
        p, q = np.append(p * (1 - ends[0]), ends[0]), np.append(q * (1 - ends[1]), ends[1])
    with np.errstate(divide="ignore"):
        return np.log(p), np.log(q)


@pytest.mark.parametrize("seed", range(150))
def test_grids_and_points_set_apart_bound_enumerated_laws(seed: int) -> None:
    rng = np.random.default_rng([2611, seed])
    reverse = bool(rng.random() < 0.5)
    step = 10 ** rng.uniform(-2.5, 0.9)
    step = coarse_step(step) if rng.random() < 0.6 else step
    laws: list[Laws] = []
    lower, upper = [], []
    spread = np.concatenate([rng.normal(size=60) * step * 10, step * np.linspace(-3.0, 3.0, 121)])
    for _ in range(int(rng.integers(1, 4))):
        law, count = random_law(rng), int(rng.integers(1, 4))
        if len(laws) + count > 5:
            break
        loss = Atoms(law, float(rng.choice([0, 0, 0, 1e-9, 1e-3])))
        first, last = -int(rng.integers(1, 80)), int(rng.integers(3, 200))
        knots = None
        if seed % 2:
            kept = rng.random(last - first + 1) < rng.uniform(0.2, 1.0)
            kept[[0, -first, last - first]] = True
            knots = first + np.flatnonzero(kept)
        low, high = bound_masses(loss, step, first, last, reverse=reverse, knots=knots)
        places = (law[0] - law[1])[np.isfinite(law[0]) & np.isfinite(law[1])] * (-1 if reverse else 1)
        near = np.append(spread, places)
        alone = exact(law, near, reverse)
        assert (low.hockey_stick(near, upper=False) <= alone * (1 + 1e-10) + 1e-15).all()
        assert (high.hockey_stick(near, upper=True) >= alone * (1 - 1e-10) - 1e-15).all()
        lower.append((low.apart(10 ** rng.uniform(-3, 2)), count))
        upper.append((high, count))
        laws += [law] * count
    at = np.append(np.abs(rng.normal(size=40)) * step * 30, [0.0, 1e-12, 500.0])
    truth = exact(together(*laws), at, reverse)
    theta = float(rng.choice([0.0, min(10 ** rng.uniform(-3, 0.5), 20 / step)]))
    below, above = (
        convolve(parts, theta, upper=top, tail=1e-12, node_limit=2**17).delta(at)
        for parts, top in ((lower, False), (upper, True))
    )
    assert (below <= truth * (1 + 1e-10) + 1e-15).all()
    assert (above >= truth * (1 - 1e-10) - 1e-15).all()


@pytest.mark.parametrize("seed", range(2))
def test_compositions_of_enumerated_laws_hold_in_any_order(seed: int) -> None:
    rng = np.random.default_rng([2612, seed])
    laws = [random_law(rng) for _ in range(2)]
    counts = [int(n) for n in rng.integers(1, 4, size=2)]
    parts = list(zip((Atoms(law) for law in laws), counts, strict=True))
    whole = together(*(law for law, n in zip(laws, counts, strict=True) for _ in range(n)))
    found: dict[float, tuple[float, float]] = {}
    for epsilons in ([0.0, 0.3, 2.0, 60.0], [60.0, 0.3, 0.0, 2.0]):
        composed = compose(parts, closed_forms=False, accuracy=0.3)
        for one in epsilons:
            delta = composed.delta(one)
            truth = max(float(exact(whole, np.array([one]), back)[0]) for back in (False, True))
            assert delta.lower <= truth * (1 + 1e-10) + 1e-15
            assert delta.upper >= truth * (1 - 1e-10) - 1e-15
            assert found.setdefault(one, (delta.lower, delta.upper)) == (delta.lower, delta.upper)
    assert all(math.isfinite(end) for pair in found.values() for end in pair)
