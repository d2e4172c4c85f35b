"""The lower end of several passes with much noise lost: it was that of no loss at all, 82 where the truth is 136."""

from __future__ import annotations

import math

import numpy as np

from shapedp import GaussianLoss, compose
from shapedp.privacy.losses.allocation import AllocatedLoss
from shapedp.privacy.losses.discrete import DiscreteLoss

MU, RUNS, PASSES, DELTA = 3.4898936833375647, 11, 4, 1.0083215538659251e-08


def sampled(epsilon: float, size: int = 40_000) -> tuple[float, float]:
    """delta at epsilon by importance sampling, with its standard error: the loud run of each pass is moved up."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((PASSES, size, RUNS))
    wanted = (
        epsilon / PASSES + math.log(RUNS) + MU * MU / 2
    )  # of MU times the loud run, for the losses to reach epsilon
    move = max(wanted / MU - MU, 0.0)
    weight = np.exp(-move * z[:, :, 0] - move * move / 2).prod(0)
    z[:, :, 0] += MU + move
    loss = np.log(np.exp(MU * z - MU * MU / 2).mean(2)).sum(0)
    gains = weight * np.maximum(-np.expm1(epsilon - loss), 0.0)
    return float(gains.mean()), float(gains.std() / math.sqrt(size))


def test_both_ends_lie_beside_the_truth() -> None:
    found = compose([(AllocatedLoss(GaussianLoss(MU), RUNS), PASSES)]).epsilon(DELTA)
    assert 1 - found.lower / found.upper < 0.01  # 0.405 before
    for epsilon, sign in ((found.lower, 1), (found.upper, -1)):
        value, error = sampled(epsilon * (1 - sign * 0.005))  # half a percent outside, so that the sampler can tell
        assert sign * (value - DELTA) > 5.2 * error  # fails with probability below 1e-6


def test_a_grid_of_one_pass_keeps_the_lower_end() -> None:
    one = AllocatedLoss(GaussianLoss(MU), RUNS)
    grid, at = DiscreteLoss.of(one, nodes=8000), np.array([0.0, 1.0, 5.0, 12.0, 20.0])
    for reverse in (False, True):
        exact, found = one.profile(at, reverse=reverse)[0], grid.profile(at, reverse=reverse)[0]
        assert (found <= exact).all()
        assert (found[exact > 1e-12] > 0.9 * exact[exact > 1e-12]).all()
