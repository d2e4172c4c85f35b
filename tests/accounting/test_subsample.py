"""Subsampled losses against direct integration, and amplification rules against their formulas."""

from __future__ import annotations

import math
import time

import mpmath as mp
import numpy as np
import pytest

from shapedp.accounting import BareLoss, SubsampledLoss, amplify, amplify_pure, compose, subsample
from shapedp.accounting.renyi import subsampled_gaussian_renyi
from shapedp.numerics.arrays import Floats
from shapedp.privacy import GaussianLoss, LaplaceLoss, Loss


def integral(mu: float, rate: float, epsilon: float, *, reverse: bool) -> mp.mpf:
    """The hockey stick of the mixture against N(0, 1), integrated where the integrand is positive."""
    with mp.workdps(40):
        m, q, k = mp.mpf(mu), mp.mpf(rate), mp.exp(mp.mpf(epsilon))

        def ratio(x: mp.mpf) -> mp.mpf:
            return 1 - q + q * mp.exp(m * x - m * m / 2)

        if not reverse:
            start = (mp.log((k - 1 + q) / q) + m * m / 2) / m
            return mp.quad(lambda x: mp.npdf(x) * (ratio(x) - k), [start + i for i in range(0, 16)])
        if 1 / k <= 1 - q:
            return mp.mpf(0)
        end = (mp.log((1 / k - 1 + q) / q) + m * m / 2) / m
        return mp.quad(lambda x: mp.npdf(x) * (1 - k * ratio(x)), [end - i for i in range(15, -1, -1)])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.5), (0.7, 0.01), (2.0, 0.1), (0.3, 0.9)])
def test_poisson_gaussian_against_integration(mu: float, rate: float, reverse: bool) -> None:
    loss = SubsampledLoss(GaussianLoss(mu), rate)
    for epsilon in (0.0, 0.01 * rate, 0.5 * rate, 0.95 * -math.log1p(-rate)):
        exact = integral(mu, rate, epsilon, reverse=reverse)
        lower, upper = (float(end[0]) for end in loss.profile(np.array([epsilon]), reverse=reverse))
        assert lower * (1 - 1e-12) - 1e-30 <= exact <= upper * (1 + 1e-12) + 1e-30
        assert upper - lower <= 1e-9 * upper


def test_trivial_rates() -> None:
    loss = GaussianLoss(1.0)
    assert SubsampledLoss(loss, 1.0).delta(0.7) == loss.delta(0.7)
    assert SubsampledLoss(loss, 0.0).delta(0.7).upper == 0.0


def test_rounding_is_outward_at_tiny_rates() -> None:
    with mp.workdps(60):
        for rate in (1e-3, 1e-6, 1e-9):
            loss = SubsampledLoss(GaussianLoss(1.0), rate)
            for epsilon in (1e-12, 1e-7, 1e-3):
                inner = mp.log(1 + mp.expm1(mp.mpf(epsilon)) / mp.mpf(rate))
                exact = mp.mpf(rate) * (mp.ncdf(mp.mpf(0.5) - inner) - mp.exp(inner) * mp.ncdf(-mp.mpf(0.5) - inner))
                lower, upper = (float(end[0]) for end in loss.profile(np.array([epsilon])))
                assert lower <= exact <= upper


class Lopsided(Loss):
    """A pair whose two directions differ: a subsampled Gaussian seen as a base."""

    symmetric = False

    def __init__(self, flip: bool) -> None:
        self.flip = flip
        self.inner = SubsampledLoss(GaussianLoss(1.5), 0.3)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        return self.inner.profile(epsilon, reverse=reverse != self.flip)


def test_an_asymmetric_base_without_a_side_covers_both() -> None:
    epsilon = np.array([0.0, 0.05, 0.2])
    for reverse in (False, True):
        unknown = SubsampledLoss(Lopsided(False), 0.5).profile(epsilon, reverse=reverse)
        for person in ("P", "Q"):
            known = SubsampledLoss(Lopsided(False), 0.5, person=person).profile(epsilon, reverse=reverse)  # type: ignore[arg-type]
            assert (known[1] <= unknown[1]).all()
            assert (known[0] >= unknown[0]).all()
    one = SubsampledLoss(Lopsided(False), 0.5, person="P").profile(epsilon)
    two = SubsampledLoss(Lopsided(True), 0.5, person="Q").profile(epsilon)
    np.testing.assert_array_equal(one, two)


def test_nested_poisson_sampling_multiplies_the_rates() -> None:
    once = SubsampledLoss(GaussianLoss(1.5), 0.15)
    twice = SubsampledLoss(SubsampledLoss(GaussianLoss(1.5), 0.3), 0.5, person="P")
    epsilon = np.array([0.0, 0.01, 0.1])
    for reverse in (False, True):
        np.testing.assert_allclose(
            once.profile(epsilon, reverse=reverse), twice.profile(epsilon, reverse=reverse), rtol=1e-9
        )


def test_the_loss_itself_beats_the_generic_rule() -> None:
    loss = GaussianLoss.calibrate(1.0, 1e-5)
    epsilon, delta = amplify(1.0, 1e-5, 0.01)
    assert subsample(loss, 0.01).delta(epsilon).upper <= delta * (1 + 1e-9)
    assert subsample(loss, 0.01).delta(2 * epsilon).upper < delta / 10


def test_fixed_size_sampling_meets_the_generic_bound_at_every_epsilon() -> None:
    loss = subsample(GaussianLoss(1.0), 0.2, "without-replacement")
    for inner in (0.1, 1.0, 3.0):
        outer = math.log1p(0.2 * math.expm1(inner))
        assert loss.delta(outer).upper == pytest.approx(0.2 * GaussianLoss(1.0).delta(inner).upper, rel=1e-9)


def test_pure_amplification_inverts_the_published_rate() -> None:
    for pure in (0.1, 1.0, 3.0):
        for rate in (0.01, 0.3, 0.9):
            got = amplify_pure(pure, rate).pure_epsilon
            e, s = math.exp(got), math.exp(pure)
            assert got <= pure
            if got == pure:
                continue  # the rule helps at small rates only
            assert (e - 1) / (s + e - math.exp(got - pure) - 1) == pytest.approx(rate, rel=1e-9)
    assert amplify_pure(0.5, 1.0) == BareLoss(0.5, attained=False)


@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0, 7.3, 64.0])
def test_renyi_of_the_subsampled_gaussian(alpha: float) -> None:
    mu, rate = 0.8, 0.05
    with mp.workdps(30):
        exact = mp.log(
            mp.quad(
                lambda x: mp.npdf(x) * (1 - mp.mpf(rate) + rate * mp.exp(mu * x - mp.mpf(mu) ** 2 / 2)) ** alpha,
                [-15 + 5 * i for i in range(0, 20)],
            )
        ) / (alpha - 1)
    bracket = subsampled_gaussian_renyi(mu, rate, alpha)
    assert bracket.lower <= exact * (1 + mp.mpf(10) ** -13)
    assert exact * (1 - mp.mpf(10) ** -13) <= bracket.upper
    assert bracket.gap <= 1e-9 * (1 + bracket.upper)


def test_both_directions_are_accounted() -> None:
    composed = compose([(subsample(GaussianLoss(1.0), 0.3), 5)], accuracy=1e-4)
    at = np.array([0.3])
    forward, reverse = composed.profile(at), composed.profile(at, reverse=True)
    assert composed.delta(0.3).upper >= max(forward[0][0], reverse[0][0])


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.99])
def test_the_largest_loss_of_a_sample(rate):
    """Pure bases keep a pure epsilon; what has none is known at once, also for a sampled composition."""
    for base, pure in ((LaplaceLoss(0.7), 0.7), (BareLoss(3.0), 3.0), (compose([(LaplaceLoss(0.2), 5)]), 1.0)):
        found = subsample(base, rate, adjacency="add-remove").epsilon(0.0)
        true = math.log1p(rate * math.expm1(pure))
        assert found.lower <= true <= found.upper
        assert found.upper <= true * (1 + 1e-12)
    plan = compose([(subsample(GaussianLoss(1.0), 0.1, adjacency="add-remove"), 5)])
    started = time.process_time()
    assert subsample(plan, rate).epsilon(0.0).upper == math.inf
    assert time.process_time() - started < 5
