"""Audits of the trainers end to end through `fit`: honest ones pass, the same with 30 % less noise are caught."""

import numpy as np
import pytest
from tests.learn.trainers import CLAIM, TRAINERS, noise_times

from shapedp import audit

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def audited(name, samples, confidence):
    fit, neighbours = TRAINERS[name]
    return audit.mechanism(fit, **CLAIM, neighbours=neighbours, samples=samples, confidence=confidence, seed=0)


@pytest.mark.parametrize("name", ["Lasso, objective", "PCA, isometric"])
def test_a_few_thousand_fits_stay_below_the_claim(name):
    assert not audited(name, 2000, 0.999).violation


@pytest.mark.parametrize("name", ["Lasso, objective", "PCA, isometric"])
def test_much_less_noise_is_caught_within_a_few_thousand_fits(name):
    with noise_times(0.25):
        assert audited(name, 2000, 0.999).violation


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINERS)
def test_a_hundred_thousand_fits_stay_below_the_claim(name):
    found = audited(name, 100_000, 0.999)
    assert not found.violation
    assert found.epsilon_lower <= CLAIM["epsilon"]
    assert found.delta_lower <= CLAIM["delta"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINERS)
def test_thirty_percent_less_noise_is_caught(name):
    with noise_times(0.7):
        found = audited(name, 100_000, 0.999)
    assert found.violation


def test_outputs_depend_on_the_record_that_differs():
    """The neighbours are apart: otherwise an audit that finds nothing would mean nothing."""
    for fit, (one, two) in TRAINERS.values():
        first, second = (fit(data, np.random.default_rng(0)) for data in (one, two))
        assert not np.array_equal(first, second)
