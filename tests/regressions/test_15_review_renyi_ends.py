"""Renyi divergences that lay outside their bracket: many ratios, ratios below the range of floats, tiny epsilons."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from shapedp.accounting.bare import BareLoss
from shapedp.privacy.losses.laplace import LaplaceLoss
from shapedp.privacy.losses.logistic import LogisticLoss
from shapedp.privacy.losses.selected import SelectionLoss


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


def logistic(ratios, order):
    """The sum over coordinates of log(sinh(s a)/(2 s sinh(a/2)))/(order - 1), s = order - 1/2."""
    s = mp.mpf(order) - mp.mpf(1) / 2
    terms = (mp.log(mp.sinh(s * a) / (2 * s * mp.sinh(a / 2))) for a in map(mp.mpf, ratios))
    return mp.fsum(terms) / (mp.mpf(order) - 1)


def laplace(ratio, order):
    a, x = mp.mpf(order), mp.mpf(ratio)
    with mp.workdps(1000):
        return mp.log((a * mp.exp((a - 1) * x) + (a - 1) * mp.exp(-a * x)) / (2 * a - 1)) / (a - 1)


@pytest.mark.parametrize("order", [1.01, 2.0, 30.0])
@pytest.mark.parametrize("count", [32, 33, 200])
def test_more_than_32_logistic_ratios(count, order):
    ratios = np.linspace(0.01, 0.4, count)
    found = LogisticLoss(float(ratios.sum()) * 1.001, ratios, worst=True).renyi(order)
    exact = logistic(ratios.tolist(), order)
    assert found.lower <= exact <= found.upper <= found.lower * (1 + 1e-6)


@pytest.mark.parametrize("order", [1.01, 2.0, 100.0])
@pytest.mark.parametrize("tiny", [5e-324, 1e-310])
@pytest.mark.filterwarnings("error")
def test_a_logistic_ratio_below_the_range_of_floats_changes_nothing(tiny, order):
    found = LogisticLoss(1.000001, [1.0, tiny, tiny], worst=True).renyi(order)
    assert found.lower <= logistic([1.0], order) <= found.upper <= found.lower * (1 + 1e-6)


@pytest.mark.parametrize("kind", [LaplaceLoss, LogisticLoss])
def test_divergences_of_tiny_ratios_are_not_lost(kind):
    """At a large order the divergence is far above the square of the ratio, which underflows."""
    exact = laplace(1e-170, 1e100) if kind is LaplaceLoss else mp.mpf(1e-170) ** 2 * mp.mpf(1e100) / 6
    assert exact > 1e-242
    assert kind(1e-170, [1e-170], worst=True).renyi(1e100).upper >= exact * (1 - mp.mpf(10) ** -20)
    assert kind(1e-200, [1e-200], worst=True).renyi(2.0).upper > 0


def test_selections_of_tiny_range_are_not_lost():
    found = SelectionLoss("exponential", Fraction(1, 10**170), 1, 1, 0).renyi(1e100)
    assert found.upper >= mp.mpf(10) ** -240 / 8


@pytest.mark.parametrize(("epsilon", "order"), [(3.97e-228, 1 + 2.0**-32), (1.97e-158, 1 + 2.0**-10), (1e-310, 39.0)])
def test_randomised_response_of_tiny_epsilon_has_no_lower_end_above_the_truth(epsilon, order):
    exact = mp.mpf(order) * mp.mpf(epsilon) ** 2 / 2
    found = BareLoss(epsilon).renyi(order)
    assert found.lower <= exact * (1 + mp.mpf(10) ** -100)
    assert exact * (1 - mp.mpf(10) ** -100) <= found.upper
