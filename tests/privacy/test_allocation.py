"""A record placed in one of several runs: against integrals, a sampler, closed forms and other laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr
from scipy.stats import norm

from shapedp import GaussianLoss, LaplaceLoss, compose
from shapedp.privacy.losses.allocation import AllocatedLoss
from shapedp.privacy.losses.shuffle import ShuffledLoss

AT = np.array([0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0])


def ends(loss: AllocatedLoss, reverse: bool) -> tuple[np.ndarray, np.ndarray]:
    return loss.profile(AT, reverse=reverse)


def call(rest: np.ndarray | float, mu: float) -> np.ndarray:
    """E (e^(mu z - mu^2/2) - rest)_+, z standard normal."""
    rest = np.asarray(rest, dtype=np.float64)
    cut = np.log(np.maximum(rest, 1e-300)) / mu + mu / 2
    return np.where(rest > 0, ndtr(mu - cut) - rest * ndtr(-cut), 1 - rest)


def by_integral(mu: float, steps: int, k: float) -> float:
    """E (mean of the ratios - k)_+ for two or three runs, by quadrature over all but the last."""

    def last(rest: np.ndarray | float) -> np.ndarray:
        return call(rest, mu)

    def density(z: float) -> float:
        return math.exp(mu * z - mu * mu / 2)

    if steps == 2:
        kink = math.log(2 * k) / mu + mu / 2
        pieces = [(-12.0, kink), (kink, 12.0 + mu)]
        return (
            sum(
                integrate.quad(lambda z: norm.pdf(z) * last(2 * k - density(z)), *ends, epsabs=1e-14, limit=400)[0]
                for ends in pieces
            )
            / 2
        )
    nodes, weights = np.polynomial.legendre.leggauss(600)
    z = 11.0 * nodes
    p = norm.pdf(z) * weights * 11.0
    ratios = np.exp(mu * z - mu * mu / 2)
    return float(p @ last(3 * k - np.add.outer(ratios, ratios)) @ p) / 3


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("reverse", [False, True])
def test_two_runs_as_an_integral(mu: float, reverse: bool) -> None:
    lower, upper = ends(AllocatedLoss(GaussianLoss(mu), 2), reverse)
    for e, low, high in zip(AT, lower, upper, strict=True):
        k = math.exp(-e if reverse else e)
        found = by_integral(mu, 2, k)
        truth = math.exp(e) * (found - 1 + k) if reverse else found
        assert low - 1e-12 <= truth <= high + 1e-12
        assert high - low <= 5e-3 * high + 1e-15


def test_three_runs_as_an_integral() -> None:
    loss = AllocatedLoss(GaussianLoss(0.8), 3)
    for e in (0.1, 0.7):
        low, high = (float(end[0]) for end in loss.profile(np.array([e])))
        assert low * (1 - 1e-5) <= by_integral(0.8, 3, math.exp(e)) <= high * (1 + 1e-5)


def test_one_run_is_the_base() -> None:
    base = GaussianLoss(0.7)
    for reverse in (False, True):
        assert np.array_equal(AllocatedLoss(base, 1).profile(AT, reverse=reverse), base.profile(AT))


@pytest.mark.parametrize(("mu", "steps"), [(1.0, 4), (0.6, 20), (2.0, 11)])
def test_against_a_sampler(mu: float, steps: int) -> None:
    """Half a million draws of the exact ratio; false alarms below 1e-6 each, and a mu 5% off is seen."""
    rng, size = np.random.default_rng(steps), 500_000
    z = rng.standard_normal((size, steps))
    under_q = np.log(np.exp(mu * z - mu * mu / 2).mean(1))
    z[:, 0] += mu  # by symmetry the place does not matter
    under_p = np.log(np.exp(mu * z - mu * mu / 2).mean(1))
    epsilons = np.array([0.0, 0.1, 0.4])
    for draws, reverse in ((under_p, False), (-under_q, True)):
        gains = np.maximum(-np.expm1(epsilons[:, None] - draws), 0.0)
        mean, room = gains.mean(1), 5.2 * gains.std(1) / math.sqrt(size)
        lower, upper = AllocatedLoss(GaussianLoss(mu), steps).profile(epsilons, reverse=reverse)
        assert (lower <= mean + room).all()
        assert (mean - room <= upper).all()
        less, more = (
            AllocatedLoss(GaussianLoss(mu * f), steps).profile(epsilons, reverse=reverse) for f in (0.95, 1.05)
        )
        assert less[1][0] < mean[0] - room[0]
        assert more[0][0] > mean[0] + room[0]


def test_falls_with_the_runs_and_stays_below_the_base() -> None:
    base = GaussianLoss(1.3)
    before = base.profile(AT)[1]
    for steps in (2, 3, 5, 16, 100):
        loss = AllocatedLoss(base, steps)
        for reverse in (False, True):
            lower, upper = ends(loss, reverse)
            assert (lower <= upper).all()
            assert (upper <= base.profile(AT)[1]).all()
        assert (loss.profile(AT)[0] <= before).all()
        before = loss.profile(AT)[1]


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    one, other = (AllocatedLoss(GaussianLoss(1.1), 7) for _ in range(2))
    first = one.profile(AT, reverse=True)
    other.epsilon(1e-7)
    other.profile(AT[::-1])
    again = other.profile(AT[::-1], reverse=True)
    assert np.array_equal(first[0], again[0][::-1])
    assert np.array_equal(first[1], again[1][::-1])


def test_fewer_points_widen_the_bracket_and_never_cross() -> None:
    fine = AllocatedLoss(GaussianLoss(1.0), 37, nodes=1500)
    for nodes in (50, 120, 400):
        rough = AllocatedLoss(GaussianLoss(1.0), 37, nodes=nodes)
        for reverse in (False, True):
            (low, high), (near, far) = ends(fine, reverse), ends(rough, reverse)
            assert (near <= high).all()
            assert (low <= far).all()


def test_laplace_noise_by_enumeration() -> None:
    """Two runs of Laplace noise, ratio 1: the ratios by a fine quadrature of their law."""
    at, steps = np.array([0.1, 0.4]), 2
    u = (np.arange(4000) + 0.5) / 4000
    noise = np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))
    ratio = np.exp(np.abs(noise) - np.abs(noise - 1.0))
    sums = (ratio[:, None] + ratio[None, :]) / 2
    lower, upper = AllocatedLoss(LaplaceLoss(1.0, [1.0]), steps).profile(at)
    for e, low, high in zip(at, lower, upper, strict=True):
        truth = float(np.maximum(sums - math.exp(e), 0.0).mean())
        assert low * (1 - 1e-3) <= truth <= high * (1 + 1e-3)
        assert high - low < 1e-3 * high


def test_passes_compose() -> None:
    """Two passes against two-fold sampling of the sum of two losses."""
    loss, size = AllocatedLoss(GaussianLoss(1.0), 5), 400_000
    rng = np.random.default_rng(0)
    z = rng.standard_normal((2, size, 5))
    z[:, :, 0] += 1.0
    total = np.log(np.exp(z - 0.5).mean(2)).sum(0)
    found = compose([(loss, 2)]).delta(0.8)
    gains = np.maximum(-np.expm1(0.8 - total), 0.0)
    room = 5.2 * gains.std() / math.sqrt(size)
    assert found.lower - room <= gains.mean() <= found.upper + room
    assert found.upper < 1.02 * found.lower


def test_what_cannot_be_placed_is_refused() -> None:
    with pytest.raises(ValueError, match="not replace"):
        AllocatedLoss(GaussianLoss(1.0, adjacency="replace"), 5)
    with pytest.raises(ValueError, match="same in both directions"):
        AllocatedLoss(AllocatedLoss(GaussianLoss(1.0), 5), 5)
    with pytest.raises(ValueError, match="none under add-remove"):
        ShuffledLoss(GaussianLoss(1.0, adjacency="add-remove"), 5)
    with pytest.raises(ValueError, match="nodes"):
        AllocatedLoss(GaussianLoss(1.0), 5, nodes=10)


def test_what_is_on_top_of_a_run_is_on_top_of_all() -> None:
    noisy = AllocatedLoss(GaussianLoss(1.0).with_failure(1e-9, total_variation=1e-12), 10)
    plain = AllocatedLoss(GaussianLoss(1.0), 10)
    more = compose([(noisy, 3)]).delta(1.0).upper - compose([(plain, 3)]).delta(1.0).upper
    assert 2.9e-8 < more < 1e-6
    assert noisy.delta(1.0).upper < plain.delta(1.0).upper + 2e-8


def test_a_shuffle_lies_between_its_pair_and_a_known_order() -> None:
    loss = ShuffledLoss(GaussianLoss(1.0), 10)
    found = loss.delta(1.0)
    assert 0.06 < found.lower <= 0.0765  # the pair's own is 0.076
    assert found.upper == GaussianLoss(1.0).delta(1.0).upper
    assert found.lower > 20 * AllocatedLoss(GaussianLoss(1.0), 10).delta(1.0).upper
    assert compose([(loss, 4)]).delta(1.0).upper == GaussianLoss(2.0).delta(1.0).upper
