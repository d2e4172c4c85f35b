"""The loss of Gaussian mixing: brackets against 50 digits, two routes, the worst pair, calibration."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from tests.reference.mixing import composed, zero_out

from shapedp.accounting import compose
from shapedp.numerics.chisquare import lower_excess, upper_excess
from shapedp.numerics.contour import QuadraticSum
from shapedp.privacy import GaussianLoss
from shapedp.privacy.losses import MixingLoss

GAMMAS = [(100, "zero-out", 36.5401721), (1000, "zero-out", 100.991459), (100, "replace", 44.4112861)]


def _random_cases(n, seed, most=3e4):
    rng = np.random.default_rng(seed)
    for i in range(n):
        k = int(np.exp(rng.uniform(0, np.log(most)))) if i % 4 else int(rng.integers(1, 12))
        t = float(np.exp(rng.uniform(np.log(1e-5), np.log(0.98))))
        spread = t * math.sqrt(k / 2) / (1 - t)
        yield k, t, 0.0 if i % 10 == 0 else float(abs(rng.normal()) * spread * rng.choice([1, 4, 12]))


@pytest.mark.parametrize("seed", range(4))
def test_profile_brackets_fifty_digits(seed):
    for k, t, epsilon in _random_cases(60, seed):
        for reverse, bounds in ((False, upper_excess), (True, lower_excess)):
            lower, upper = (float(end[0]) for end in bounds(k, t, np.array([epsilon])))
            truth = zero_out(k, t, epsilon, reverse=reverse)
            assert lower <= truth <= upper, (k, t, epsilon, reverse)
            assert upper < 1e-12 or upper - lower <= 1e-7 * upper, (k, t, epsilon, reverse)


@pytest.mark.parametrize(
    ("k", "t", "epsilon"),
    [(10**6, 1 / 3000, 1.0), (10**6, 1 / 3000, 4.0), (10**6 - 1, 1e-4, 0.05), (10**5, 0.01, 12.0), (3, 0.5, 300.0)],
)
def test_profile_of_many_rows_and_far_tails(k, t, epsilon):
    for reverse in (False, True):
        lower, upper = (float(end[0]) for end in MixingLoss(k, t).profile(np.array([epsilon]), reverse=reverse))
        truth = zero_out(k, t, epsilon, reverse=reverse)
        assert lower <= truth <= upper
        assert upper < 1e-290 or upper - lower <= 1e-8 * upper


def test_two_routes_agree():
    """The sums and the contour integral, derived separately, have overlapping brackets."""
    for k, t, epsilon in _random_cases(80, 11):
        if k < 8:
            continue
        shift = k / 2 * math.log1p(-t)
        at = np.array([epsilon])
        one, two = upper_excess(k, t, at), QuadraticSum(k, (t / (1 - t),), shift).hockey_stick(at)
        assert one[0] <= two[1]
        assert two[0] <= one[1]


@pytest.mark.parametrize(
    ("k", "t", "epsilon", "neighbours", "mu", "parts", "reverse"),
    [
        (100, 1 / 44.41, 1.0, "replace", 0.0, "fr", False),
        (7, 0.2, 2.0, "replace", 0.0, "fr", False),
        (40, 0.05, 0.0, "replace", 0.0, "fr", False),
        (100, 1 / 40, 1.0, "zero-out", 0.05, "f", False),
        (100, 1 / 40, 1.0, "zero-out", 0.2, "r", True),
        (31, 0.1, 3.0, "zero-out", 0.5, "f", False),
    ],
)
def test_replacement_and_composition_against_quadrature(k, t, epsilon, neighbours, mu, parts, reverse):
    lower, upper = MixingLoss(k, t, neighbours, mu).profile(np.array([epsilon]), reverse=reverse)
    truth = composed(k, t, epsilon, parts, mu, digits=18)
    assert float(lower[0]) * (1 - 1e-11) <= truth <= float(upper[0]) * (1 + 1e-11)
    assert upper[0] - lower[0] <= 1e-9 * upper[0]


def test_few_rows_replaced_stay_within_the_gap():
    """One row decays slowly on the contour: its gap is wider."""
    for k, t, gap in ((1, 0.1, 1e-4), (2, 0.1, 1e-6), (3, 0.3, 1e-6), (5, 0.05, 1e-6)):
        bracket = MixingLoss(k, t, "replace").delta(1.0)
        assert bracket.upper < 1e-12 or bracket.relative_gap < gap


def test_orthogonal_rows_are_the_worst_pair():
    """Random pairs of rows at any angle and length stay below the loss; orthogonal ones of full length attain it."""
    rng = np.random.default_rng(5)
    k, q = 60, 0.04
    loss = MixingLoss(k, q / (1 + q), "replace")
    for i in range(60):
        u, v = rng.normal(size=(2, 2))
        u *= math.sqrt(q * (rng.uniform() if i % 2 else 1)) / np.linalg.norm(u)
        v *= math.sqrt(q * (rng.uniform() if i % 3 else 1)) / np.linalg.norm(v)
        ratios = np.linalg.eigvals(np.linalg.solve(np.eye(2) + np.outer(u, u), np.eye(2) + np.outer(v, v))).real
        pair = QuadraticSum(k, tuple((1 / ratios - 1).tolist()), k / 2 * float(np.log(ratios).sum()))
        for epsilon in (0.0, 0.5, 2.0):
            assert pair.hockey_stick(np.array([epsilon]))[0][0] <= loss.delta(epsilon).upper
    ratios = np.array([1 + q, 1 / (1 + q)])
    pair = QuadraticSum(k, tuple((1 / ratios - 1).tolist()), 0.0)
    assert pair.hockey_stick(np.array([0.5]))[1][0] >= loss.delta(0.5).lower


@pytest.mark.parametrize(("rows", "neighbours", "gamma"), GAMMAS)
def test_calibration_returns_the_private_side(rows, neighbours, gamma):
    loss = MixingLoss.calibrate(rows, 1.0, 1e-6, neighbours=neighbours)
    assert loss.gamma == pytest.approx(gamma, rel=1e-7)
    assert 1e-6 * (1 - 1e-9) < loss.delta(1.0).upper <= 1e-6
    assert MixingLoss(rows, loss.t * (1 + 1e-9), neighbours).delta(1.0).lower > 1e-6


@pytest.mark.parametrize("rows", [1, 2, 17, 10**4, 10**6])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-9), (5.0, 1e-30), (30.0, 0.1)])
def test_calibration_at_the_edges(rows, epsilon, delta):
    loss = MixingLoss.calibrate(rows, epsilon, delta)
    assert loss.delta(epsilon).upper <= delta
    assert loss.delta(epsilon).upper > 0.999 * delta


def test_delta_falls_with_epsilon_and_grows_with_t():
    epsilon = np.linspace(0, 3, 40)
    for neighbours in ("zero-out", "replace"):
        loss = MixingLoss(50, 0.05, neighbours)
        lower, upper = loss.profile(epsilon)
        assert (lower[1:] <= upper[:-1]).all()
        deltas = [MixingLoss(50, t, neighbours).delta(1.0) for t in np.linspace(0.001, 0.5, 20).tolist()]
        assert all(a.lower <= b.upper for a, b in itertools.pairwise(deltas))


def test_composition_agrees_with_the_accountant():
    loss = MixingLoss(100, 1 / 36.54)
    other = compose([loss, GaussianLoss(0.1)], accuracy=1e-3).delta(1.0)
    exact = MixingLoss(100, 1 / 36.54, mu=0.1).delta(1.0)
    assert other.lower <= exact.upper
    assert exact.lower <= other.upper


@pytest.mark.parametrize(("rows", "t", "alpha"), [(10, 0.1, 2.0), (100, 0.02, 20.0), (3, 0.3, 1.01), (5, 0.2, 4.9)])
def test_renyi_against_quadrature(rows, t, alpha):
    with mp.workdps(40):
        r = 1 - mp.mpf(t)

        def divergence(p, q):
            """Of N(0, p) from N(0, q), by the integral of p^alpha q^(1 - alpha)."""
            rate = mp.mpf(alpha) / p + (1 - mp.mpf(alpha)) / q
            return (
                rows * mp.log(p ** (-mp.mpf(alpha) / 2) * q ** ((mp.mpf(alpha) - 1) / 2) / mp.sqrt(rate)) / (alpha - 1)
            )

        forward, reverse = divergence(mp.mpf(1), r), divergence(r, mp.mpf(1))
        bracket = MixingLoss(rows, t).renyi(alpha)
        assert bracket.lower <= max(forward, reverse) <= bracket.upper
        both = MixingLoss(rows, t, "replace").renyi(alpha)
        assert both.lower <= forward + reverse <= both.upper
        assert bracket.relative_gap < 1e-9
    assert math.isinf(MixingLoss(rows, t).renyi(1 / t + 0.01).lower)


def test_tcdp_bounds_the_renyi_curve():
    """Corollary 1 on a grid of gamma and alpha."""
    for gamma in np.geomspace(2.51, 1e4, 40).tolist():
        loss = MixingLoss(10, 1 / gamma)
        rho, w = loss.tcdp
        for alpha in np.linspace(1, w, 30)[1:-1].tolist():
            if alpha > 1:
                assert loss.renyi(alpha).lower <= rho * alpha


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ({"rows": 0, "t": 0.1}, ValueError, "rows"),
        ({"rows": 2.0, "t": 0.1}, TypeError, "rows"),
        ({"rows": True, "t": 0.1}, TypeError, "rows"),
        ({"rows": 10**9, "t": 0.1}, ValueError, "rows"),
        ({"rows": 5, "t": 1.0}, ValueError, "t"),
        ({"rows": 5, "t": math.nan}, ValueError, "t"),
        ({"rows": 5, "t": -0.1}, ValueError, "t"),
        ({"rows": 5, "t": "0.1"}, TypeError, "t"),
        ({"rows": 5, "t": 1e-200}, ValueError, "t"),
        ({"rows": 5, "t": 0.1, "neighbours": "add-remove"}, ValueError, "neighbours"),
        ({"rows": 5, "t": 0.1, "mu": -1.0}, ValueError, "mu"),
        ({"rows": 5, "t": 0.1, "mu": math.inf}, ValueError, "mu"),
    ],
)
def test_bad_losses(arguments, error, word):
    with pytest.raises(error, match=word):
        MixingLoss(**arguments)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: MixingLoss.calibrate(5, 1.0, 0.0), "delta"),
        (lambda: MixingLoss.calibrate(5, 0.0, 1e-6), "epsilon"),
        (lambda: MixingLoss.calibrate(5, 1.0, 1e-6, mu=5.0), "mu"),
        (lambda: MixingLoss(5, 0.1).renyi(1.0), "alpha"),
        (lambda: MixingLoss(5, 0.1).delta(-1.0), "epsilon"),
        (lambda: MixingLoss(5, 0.5).tcdp, "gamma"),
        (lambda: MixingLoss(5, 0.1, "replace").tcdp, "zero-out"),
    ],
)
def test_bad_calls(call, word):
    with pytest.raises(ValueError, match=word):
        call()


def test_no_data_no_loss():
    assert MixingLoss(5, 0.0).delta(0.0).upper == 0
    assert math.isinf(MixingLoss(5, 0.0).gamma)
