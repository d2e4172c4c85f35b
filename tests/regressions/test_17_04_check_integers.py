"""The checker's lower end was false for whole numbers as soon as one coordinate had a grid above 1: it let them round
apart as reals do, in every coordinate, and could refute what is true."""

import itertools
import json
import math

import pytest

import shapedp as sdp
from shapedp.mechanisms import Additive
from shapedp.noise import DiscreteLaplace
from shapedp.sensitivity import L1, Box


def moved(difference, grid):
    """How many steps apart two integers can be rounded."""
    if grid <= 1:
        return {abs(int(difference / grid))}
    period = range(2 * int(grid))
    return {abs(round((x + difference) / grid) - round(x / grid)) for x in period}


def losses(step, shift):
    """The losses of geometric noise moved by whole steps, and their probabilities."""
    q = math.exp(-1 / step)
    if shift == 0:
        return {0: 1.0}
    inner = {(shift - 2 * k) / step: (1 - q) / (1 + q) * q**k for k in range(1, shift)}
    return {shift / step: 1 / (1 + q), -shift / step: q**shift / (1 + q), **inner}


def delta(steps, shifts, epsilon):
    total = 0.0
    for terms in itertools.product(*(losses(*pair).items() for pair in zip(steps, shifts, strict=True))):
        loss = sum(one for one, _ in terms)
        total += math.prod(p for _, p in terms) * max(-math.expm1(epsilon - loss), 0.0)
    return total


CASES = [
    (Box([0.0, 1.0]), [1.0, 1.0], [4.0, 1.0]),
    (Box([3.0, 1.0]), [2.0, 1.0], [2.0, 0.5]),
    (Box([5.0]), [2.0], [4.0]),
    (L1(1.0, dim=3), [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]),
    (L1(2.0, dim=2), [3.0, 2.0], [2.0, 1.0]),
]


@pytest.mark.parametrize(("region", "steps", "grid"), CASES)
def test_the_checker_holds_brute_force_over_integers(region, steps, grid):
    check = pytest.importorskip("shapedp_check").check
    whole = region.of_integers()
    bounds = whole.profile if isinstance(whole, Box) else [whole.radius] * whole.dim
    differences = itertools.product(*(range(int(bound) + 1) for bound in bounds))
    inside = (v for v in differences if isinstance(whole, Box) or sum(v) <= whole.radius)
    shifts = {one for v in inside for one in itertools.product(*(moved(*p) for p in zip(v, grid, strict=True)))}
    mechanism = Additive(DiscreteLaplace(steps, grid, whole.dim), whole, 1.0, 1e-3)
    for epsilon in (0.2, 0.7, 1.3):
        truth = max(delta(steps, one, epsilon) for one in shifts)
        made = sdp.certify(mechanism, epsilon=epsilon, delta=1e-3)
        answer = check(json.loads(json.dumps(made.to_json())))
        assert answer.lower <= truth * (1 + 1e-9) + 1e-12
        assert answer.upper >= truth * (1 - 1e-9) - 1e-12
        assert made.bracket.lower <= truth * (1 + 1e-9) + 1e-12
        assert made.bracket.upper >= truth * (1 - 1e-9) - 1e-12
