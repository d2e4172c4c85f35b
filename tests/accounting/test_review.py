"""Places where an upper end once lay below the truth, or an answer said nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shapedp.accounting import BareLoss, SubsampledLoss, amplify, compose, subsample
from shapedp.privacy import GaussianLoss, Loss
from shapedp.privacy.losses import MixingLoss


class Reversed(Loss):
    """A loss with its two directions exchanged."""

    symmetric = False

    def __init__(self, base: Loss) -> None:
        self.base = base

    def profile(self, epsilon, *, reverse=False):
        return self.base.profile(epsilon, reverse=not reverse)


def test_a_full_sample_keeps_the_person_on_their_side() -> None:
    mixing = MixingLoss(10, 0.15)
    turned = SubsampledLoss(Reversed(mixing), 1.0, person="Q")
    at = np.array([0.2, 1.0])
    for reverse in (False, True):
        np.testing.assert_array_equal(turned.profile(at, reverse=reverse), mixing.profile(at, reverse=reverse))
    either = SubsampledLoss(mixing, 1.0)
    both = [mixing.profile(at, reverse=side)[1] for side in (False, True)]
    np.testing.assert_array_equal(either.profile(at)[1], np.maximum(*both))


def test_many_small_failures_are_added_exactly() -> None:
    parts = [GaussianLoss(0.1).with_failure(0.25)] + [GaussianLoss(0.1).with_failure(1e-17)] * 20_000
    assert compose(parts).delta(700.0).upper >= math.fsum([0.25] + [1e-17] * 20_000)


def test_a_composed_gaussian_keeps_what_is_known_from_below() -> None:
    bracket = compose([(GaussianLoss(1.0, 0.5), 2)]).delta(1.0)
    assert bracket.lower <= GaussianLoss(0.5 * math.sqrt(2)).delta(1.0).upper
    assert bracket.upper == pytest.approx(GaussianLoss(math.sqrt(2)).delta(1.0).upper)


@pytest.mark.parametrize(("epsilon", "delta", "rate", "steps"), [(0.1, 1e-8, 0.01, 100), (1.0, 1e-6, 0.1, 2)])
def test_samples_of_bare_guarantees_compose(epsilon: float, delta: float, rate: float, steps: int) -> None:
    """At most basic composition of the generic rule, at least one step of it that fails."""
    sampled = subsample(BareLoss(epsilon, delta), rate, adjacency="add-remove")
    whole = compose([(sampled, steps)])
    each = amplify(epsilon, delta, rate)
    found = whole.delta(steps * each[0])
    assert found.upper <= steps * each[1] * 1.01
    assert found.lower <= found.upper
    some_step_fails = -math.expm1(steps * math.log1p(-rate * delta))  # a loss above all that are finite
    assert whole.delta(2 * steps * epsilon).upper >= some_step_fails * (1 - 1e-9)
    assert whole.epsilon(10 * steps * each[1]).upper <= steps * each[0]
    single = compose([(sampled, 1)]).delta(each[0] / 2)
    exact = sampled.delta(each[0] / 2)
    assert single.upper >= exact.lower
    assert single.lower <= exact.upper
    assert single.upper == pytest.approx(exact.upper, rel=1e-5)
