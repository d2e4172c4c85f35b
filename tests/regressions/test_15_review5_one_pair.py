"""Lower ends of one loss, at all epsilons: those of one pair of neighbours, or compositions of them are too large.

All data "sampled" (rate 1) of a release that differs in its two directions took the larger lower end of both at every
epsilon, for each direction. Six of them had delta(0) >= 0.3798, and the truth is 0.3227: true claims were refuted. The
published sketches and GeoDP took the best of several pairs of data sets at every epsilon, and composed these.
"""

from __future__ import annotations

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import SubsampledLoss, compose, subsample
from shapedp.papers.gaussian_mixing.losses import EigenvalueLoss, PublishedMixingLoss, ThresholdLoss
from shapedp.papers.geodp.recipes import TurnedMeanLoss
from shapedp.privacy import Loss

AT = np.linspace(0.0, 12.0, 13)


def apart(large: float, rare: float, small: float, often: float) -> Loss:
    """Two sampled releases, the person on another side of each: one direction shows more at small epsilons."""
    one = SubsampledLoss(sdp.GaussianLoss(large), rare, person="P")
    return compose([one, SubsampledLoss(sdp.GaussianLoss(small), often, person="Q")])


def test_a_sample_of_everybody_is_the_release_itself() -> None:
    base = apart(3.0, 0.02, 1.0, 0.3)
    everybody, itself = compose([(subsample(base, 1.0), 6)]), compose([(base, 6)])
    for epsilon in (0.0, 1.0):
        assert everybody.delta(epsilon).lower <= itself.delta(epsilon).upper <= everybody.delta(epsilon).upper


def test_one_sample_of_everybody_is_known_as_well_as_the_release() -> None:
    base = SubsampledLoss(sdp.GaussianLoss(3.0), 0.02, person="P")
    for epsilon in (0.0, 0.5, 2.0):
        assert subsample(base, 1.0).delta(epsilon).lower == base.delta(epsilon).lower


@pytest.mark.parametrize(
    "loss",
    [
        PublishedMixingLoss(100, 3.0, 80.0, 8.0, 5.4),
        PublishedMixingLoss(20, 1.0, 20.0, 3.0, 4.0),
        ThresholdLoss(100, 5.0, 30.0, 4.0, 50.0),
        ThresholdLoss(3, 2.0, 8.0, 2.0, 9.0),
    ],
)
def test_sketches_show_what_data_of_one_eigenvalue_show(loss: EigenvalueLoss) -> None:
    lower = loss.profile(AT)[0]
    pairs = [loss.shown(one, AT) for one in loss.eigenvalues]
    if isinstance(loss, PublishedMixingLoss):
        pairs.append(np.array([loss.eigenvalue_witness(one) for one in AT.tolist()]))
    assert any(np.all(lower <= pair) for pair in pairs)
    best = [max(float(pair[i]) for pair in pairs) for i in range(AT.size)]
    assert [loss.delta(float(one)).lower for one in AT] == pytest.approx(best)


@pytest.mark.parametrize(("spread", "angles"), [(0.3, 40), (0.6, 1), (0.5, 1), (0.8, 500)])
def test_a_turned_mean_shows_what_one_test_shows(spread: float, angles: int) -> None:
    loss = TurnedMeanLoss(spread, angles, sdp.GaussianLoss(100.0))
    lower, tests = loss.profile(AT)[0], [np.clip(test(AT), 0.0, 1.0) for test in (loss._one_angle, loss._all_angles)]
    assert any(np.all(lower <= test) for test in tests)
    assert [loss.delta(float(one)).lower for one in AT] == pytest.approx(np.maximum(*tests).tolist())


def test_failures_and_samples_of_a_single_release_keep_the_best_pair() -> None:
    loss = TurnedMeanLoss(0.3, 40, sdp.GaussianLoss(100.0))
    best = [loss.delta(one).lower for one in AT.tolist()]
    assert [loss.with_failure(1e-9).delta(one).lower for one in AT.tolist()] == pytest.approx(best, abs=1e-3)
    sampled = subsample(loss, 0.1, adjacency="add-remove")
    for one in (0.0, 0.5, 1.0, 2.0):
        inner = float(np.log1p(np.expm1(one) / 0.1))
        assert sampled.delta(one).lower == pytest.approx(0.1 * loss.delta(inner).lower, rel=1e-6)
