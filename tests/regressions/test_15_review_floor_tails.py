"""Deep tails of the binomial tests behind every lower end: scipy's betainc returns 3.3e-275 for 4.9e-275, and then 0.

Times e^eps that made a test seem to tell neighbours apart: an upper end that was right contradicted it, and the answer
was refused (342 randomised responses at epsilon 630); in between, a lower end could be too large.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import betainc

from shapedp.accounting import BareLoss, compose, floor
from shapedp.numerics.arrays import Floats
from shapedp.privacy import Loss


@pytest.mark.parametrize(
    ("scale", "times", "epsilon"), [(2.327538507618391, 342, 630.4353970495148), (2.0, 400, 640.0)]
)
def test_many_randomised_responses_far_out(scale: float, times: int, epsilon: float) -> None:
    ctx.prec = 300
    p = 1 / (1 + (-arb(scale)).exp())
    exact = arb(0)
    for j in range(times + 1):
        loss = (2 * j - times) * arb(scale)
        if loss > epsilon:
            weight = arb(math.comb(times, j)) * p**j * (1 - p) ** (times - j)
            exact += weight * (1 - (arb(epsilon) - loss).exp())
    found = compose([(BareLoss(scale), times)], closed_forms=False).delta(epsilon)
    assert arb(found.lower) <= exact
    assert exact <= arb(found.upper)
    tests = floor.Floor(((BareLoss(scale), times),), False)
    assert arb(float(tests.at(np.array([epsilon]))[0])) <= exact


def test_betainc_is_accurate_above_what_counts_as_nothing() -> None:
    """To `_FUNCTION`, over the sizes of compositions; what it returns beyond is below what counts as nothing."""
    ctx.prec = 400
    rng = np.random.default_rng(0)
    for _ in range(600):
        n, x = int(10 ** rng.uniform(0.31, 4)), float(10 ** -rng.uniform(0.001, rng.choice([0.5, 3, 12, 290])))
        k = int(rng.integers(1, n + 1))
        truth, found = arb(x).beta_lower(arb(k), arb(n - k + 1), 1), float(betainc(k, n - k + 1, x))
        if truth > floor._UNDERFLOW:
            assert abs(arb(found) / truth - 1) < floor._FUNCTION
        else:
            assert found <= 2 * floor._UNDERFLOW


@pytest.mark.parametrize(("n", "p", "top"), [(50, 0.3, 13.85), (100, 0.5, 6.81)])
def test_a_count_whose_size_underflows_shows_nothing(n: int, p: float, top: float) -> None:
    """ "All n losses are the largest" has P = p^n and Q = p^n e^(-n top), which is no float. Taken as 0 it gave
    delta >= p^n at every epsilon below 700, also above n top, where delta is 0."""
    q = p * math.exp(-top)

    class Rare(Loss):
        def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
            ours, theirs = ((q, 1 - q), (p, 1 - p)) if reverse else ((p, 1 - p), (q, 1 - q))
            value = sum(np.maximum(a - np.exp(epsilon) * b, 0.0) for a, b in zip(ours, theirs, strict=True))
            return value * (1 - 2.0**-40), value * (1 + 2.0**-40)

    tests = floor.Floor(((Rare(), n),), False)
    assert tests.at(np.array([n * top / 2]))[0] > 0.9 * p**n
    assert tests.at(np.array([n * top + 1.0]))[0] == 0.0
