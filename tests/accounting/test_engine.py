"""The engine's shortcuts against what they stand for: chosen knots, series of few terms, one rough view."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shapedp.accounting import BareLoss, compose, subsample
from shapedp.accounting.cumulants import window
from shapedp.accounting.fourier import Sums, _transformed, convolve
from shapedp.accounting.knots import for_all_tilts, near_masses
from shapedp.accounting.series import Series, series
from shapedp.privacy import GaussianLoss, LaplaceLoss
from shapedp.privacy.losses.discrete import bound_masses, coarse_step, support

SAMPLED = subsample(GaussianLoss(1 / 1.3), 256 / 60000)


def masses(loss, step, reverse, tilts=(0.0, 5.0)):
    """Lower and upper masses, on all nodes and on those that the masses of a grid ten times coarser choose."""
    low, high = support(loss, 1e-30, reverse=reverse)
    first, last = math.floor(low / step), math.ceil(high / step)
    coarse = bound_masses(loss, 8 * step, first // 8 - 1, last // 8 + 1, reverse=reverse)[1]
    knots = near_masses(coarse, tilts, step, first, last)
    return bound_masses(loss, step, first, last, reverse=reverse), knots, coarse


def sparse():
    """Upper masses of a sampled Gaussian step, on chosen knots."""
    step, last = 2.0**-15, 2**15
    coarse = bound_masses(SAMPLED, 8 * step, -64, 2**12, reverse=False)[1]
    knots = near_masses(coarse, (0.0, 9.0), step, -512, last)
    return bound_masses(SAMPLED, step, -512, last, reverse=False, knots=knots)[1]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "loss", [SAMPLED, GaussianLoss(0.4), subsample(LaplaceLoss(0.9), 0.2)], ids=["sampled", "gaussian", "laplace"]
)
def test_chosen_knots_bound_the_curve_nearly_as_well_as_all(loss, reverse) -> None:
    least, most = support(loss, 1e-30, reverse=reverse)
    step = coarse_step(max(most, (most - least) / 8) / 12000)
    (low, high), knots, _ = masses(loss, step, reverse)
    assert knots is not None
    assert 0 in knots
    few_low, few_high = bound_masses(loss, step, int(knots[0]), int(knots[-1]), reverse=reverse, knots=knots)
    at = np.concatenate([[0.0], np.geomspace(step / 3, step * knots[-1], 200)])
    lower, upper = loss.profile(at, reverse=reverse)
    assert (few_low.hockey_stick(at, upper=False) <= upper * (1 + 1e-12)).all()
    assert (few_high.hockey_stick(at, upper=True) >= lower * (1 - 1e-12)).all()
    if isinstance(loss, GaussianLoss) or loss is SAMPLED:
        assert np.count_nonzero(few_high.masses) < 0.6 * np.count_nonzero(high.masses)
    centre = np.array([0.0])
    few = few_high.hockey_stick(centre, upper=True) - few_low.hockey_stick(centre, upper=False)
    assert few <= 1.5 * (high.hockey_stick(centre, upper=True) - low.hockey_stick(centre, upper=False)) + 1e-12


def test_knots_for_all_tilts_refine_those_of_the_masses() -> None:
    step = coarse_step(support(SAMPLED, 1e-30, reverse=False)[1] / 30000)
    (low, high), knots, coarse = masses(SAMPLED, step, False, tilts=(0.0,))
    more = for_all_tilts(coarse, step, low.first, high.first + high.masses.size)
    assert set(knots) <= set(more)


@pytest.mark.parametrize("theta", [0.5, 9.0])
@pytest.mark.parametrize("count", [4000, 10_000])
def test_a_series_gives_the_sums_of_the_transform(count: int, theta: float) -> None:
    parts = [(sparse(), count)]
    step = parts[0][0].step
    _, _, left, right, *_ = window(parts, theta, 1e-9)
    first, size = math.floor(left / step), math.ceil((right - left) / step) + 3
    found = series(parts, theta, step, first, size)
    assert found is not None
    few, _, rounding = found
    assert isinstance(few, Series)
    assert few.tail.size < size / 8
    sums, relative, other = _transformed(parts, theta, step, first, size)
    assert isinstance(sums, Sums)
    index = np.unique(np.linspace(0, size - 1, 300).astype(np.int64))
    for one, two in zip(few.at(index), sums.at(index), strict=True):
        assert (np.abs(one - two) <= (rounding[1] + other[1]) * 3 + 2 * relative * np.abs(two)).all()
    assert rounding[0] < 1e-6 * float(few.at(index)[0].max())


def test_a_long_composition_is_a_series_and_a_short_one_is_not() -> None:
    kinds = [type(convolve([(sparse(), n)], 9.0, upper=True, tail=1e-9, node_limit=2**20).sums) for n in (3, 10_000)]
    assert kinds == [Sums, Series]


def test_many_kinds_of_steps_are_tight_and_hold_the_answer_of_the_sum() -> None:
    """Gaussian steps in two ways: the closed form lies inside the bracket of the grids."""
    parts = [(GaussianLoss(0.01 * (i + 1)), 20 + i) for i in range(12)]
    truth = compose(parts).epsilon(1e-6)
    found = compose(parts, closed_forms=False).epsilon(1e-6)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.relative_gap <= 1e-5


def test_bounds_near_an_epsilon_hold_wherever_it_may_be() -> None:
    rng = np.random.default_rng(24)
    for mu in (1e-3, 0.7, 30.0):
        loss = GaussianLoss(mu)
        at = np.abs(rng.normal(size=400)) * mu * 5 + mu * mu / 2
        move = at * 1e-9 * min(mu, 1.0)
        lower, upper = loss.profile_near(at, move)
        assert (lower <= loss.profile(at + move)[1]).all()
        assert (upper >= loss.profile(at - move)[0]).all()
        assert (lower <= loss.profile(at)[1]).all()


@pytest.mark.parametrize("steps", [3, 7, 15, 27, 30])
def test_a_rough_answer_is_an_answer(steps: int) -> None:
    """The first view of few steps lies at 0 and is wide: epsilon was looked for too near, and said to be infinite."""
    parts = [(subsample(GaussianLoss(1.0), 0.02), steps)]
    fine = compose(parts).epsilon(1e-5)
    rough = compose(parts, accuracy=0.05).epsilon(1e-5)
    assert fine.lower <= rough.upper <= 1.05 * fine.upper
    assert fine.lower / 1.05 <= rough.lower <= fine.upper


def test_many_epsilons_have_the_answers_of_each_alone() -> None:
    """Places, widths and floors of all of them at once, over several octaves; long profiles in parts."""
    parts = [(BareLoss(0.5), 30), (GaussianLoss(0.4), 5)]
    at = np.concatenate([np.linspace(0.0, 6.0, 13), np.linspace(14.0, 40.0, 7)])
    whole = compose(parts, accuracy=0.3)
    found = whole.profile(at)
    alone = [whole.profile(at[i : i + 1]) for i in range(at.size)]
    assert [[end[0] for end in one] for one in alone] == np.transpose(found).tolist()
    assert len(set(whole._direction(False).places(at)[1].tolist())) > 1
    long = np.linspace(0.0, 9.0, 50_000)
    pieces = [GaussianLoss(1.3).profile(long[k : k + 1000]) for k in range(0, long.size, 1000)]
    assert np.array_equal(np.concatenate(pieces, axis=1), GaussianLoss(1.3).profile(long))


def test_the_lower_masses_of_a_fixed_size_are_those_of_the_pair_it_reaches() -> None:
    """Its upper ends are of another pair: taken for rounding they made the lower masses nothing."""
    loss = subsample(GaussianLoss(1.0), 0.5, "without-replacement")
    pair, step = subsample(GaussianLoss(1.0), 0.5, person="P"), 2.0**-6
    for reverse in (False, True):
        low, _ = bound_masses(loss, step, -200, 400, reverse=reverse)
        of_pair, _ = bound_masses(pair, step, -200, 400, reverse=reverse)
        assert np.array_equal(low.masses, of_pair.masses)
        shown, (truth, _) = low.about(np.array([0.0, 0.3])), loss.profile(np.array([0.0, 0.3]), reverse=reverse)
        assert (shown <= truth).all()
        assert (shown >= 0.99 * truth).all()
