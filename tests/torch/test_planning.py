"""The least noise: on the private side, close to the claim, and no larger than the library's own search finds."""

from __future__ import annotations

import pytest
from tests.torch.helpers import network

import shapedp as sdp
from shapedp.accounting import PlanningError
from shapedp.privacy import GaussianLoss
from shapedp.torch import LaplaceNoise, Layout, PerValue
from shapedp.torch.planning import least_scale


def gaussian(scale: float) -> GaussianLoss:
    return GaussianLoss(1 / scale)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps"), [(1.0, 1e-5, 0.05, 20), (3.0, 1e-5, 1.0, 50), (0.5, 1e-6, 0.01, 500)]
)
def test_the_claim_is_met_and_nearly_spent(epsilon: float, delta: float, rate: float, steps: int) -> None:
    scale = least_scale(epsilon=epsilon, delta=delta, sampling_rate=rate, steps=steps, family=gaussian)
    reached = sdp.compose([(sdp.subsample(gaussian(scale), rate), steps)]).delta(epsilon)
    assert reached.upper <= delta
    assert reached.lower > 0.99 * delta


@pytest.mark.slow
def test_it_agrees_with_the_general_search() -> None:
    scale = least_scale(epsilon=1.0, delta=1e-5, sampling_rate=0.05, steps=20, family=gaussian)
    other = sdp.plan(epsilon=1.0, delta=1e-5, sampling_rate=0.05, steps=20, relative=1e-3, seconds=300.0)
    assert scale == pytest.approx(other.scale, rel=2e-3)


def test_one_full_step_is_the_analytic_gaussian() -> None:
    scale = least_scale(epsilon=1.0, delta=1e-6, sampling_rate=1.0, steps=1, family=gaussian)
    assert scale == pytest.approx(1 / 0.2367043806634, rel=1e-3)


def test_claims_out_of_reach_are_refused() -> None:
    with pytest.raises(PlanningError, match="no noise between"):
        least_scale(epsilon=1e-9, delta=1e-12, sampling_rate=1.0, steps=10, family=gaussian)
    with pytest.raises(ValueError, match="delta must be > 0"):
        least_scale(epsilon=1.0, delta=0.0, sampling_rate=0.1, steps=10, family=gaussian)


@pytest.mark.slow
def test_laplace_noise_is_planned_by_its_own_loss() -> None:
    layout = Layout.of(network())
    sensitivity = PerValue(1.0).sensitivity(layout)
    family = LaplaceNoise().family(sensitivity, layout)
    scale = least_scale(epsilon=3.0, delta=1e-5, sampling_rate=0.2, steps=20, family=family)
    reached = sdp.compose([(sdp.subsample(family(scale), 0.2), 20)], accuracy=1e-3).delta(3.0)
    assert reached.upper <= 1e-5
    assert reached.lower > 0.97e-5
