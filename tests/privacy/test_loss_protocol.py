"""What every loss promises, against pairs of small distributions computed by brute force in 50 digits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest
from tests.reference import gaussian as reference

from shapedp import GaussianLoss, LaplaceLoss, Loss
from shapedp.numerics.arrays import Floats
from shapedp.privacy import AdjustedLoss

SIZE = 6


def stick(p: Floats, q: Floats, epsilon: float) -> float:
    """sum (p - e^epsilon q)_+ in 50 digits."""
    with mp.workdps(50):
        factor = mp.exp(mp.mpf(epsilon))
        return mp.fsum(max(mp.mpf(float(a)) - factor * mp.mpf(float(b)), 0) for a, b in zip(p, q, strict=True))


def divergence(p: Floats, q: Floats, alpha: float) -> float:
    """The Renyi divergence in 50 digits."""
    with mp.workdps(50):
        total = mp.fsum(
            mp.mpf(float(a)) ** alpha * mp.mpf(float(b)) ** (1 - mp.mpf(alpha)) for a, b in zip(p, q, strict=True)
        )
        return mp.log(total) / (mp.mpf(alpha) - 1)


@dataclass(frozen=True, eq=False)
class PairLoss(Loss):
    """The loss of two distributions on a few points."""

    p: Floats
    q: Floats
    symmetric = False

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        p, q = (self.q, self.p) if reverse else (self.p, self.q)
        value = np.array([float(stick(p, q, e)) for e in epsilon])
        return value * (1 - 2.0**-50), value * (1 + 2.0**-50)


def distribution(rng: np.random.Generator) -> Floats:
    """Masses k/2^20, so that they add up to 1 exactly."""
    return (1 + rng.multinomial(2**20 - SIZE, rng.dirichlet(np.full(SIZE, 0.7)))) / 2**20


def pairs(n: int, seed: int) -> list[tuple[np.random.Generator, PairLoss]]:
    rng = np.random.default_rng(seed)
    return [(rng, PairLoss(distribution(rng), distribution(rng))) for _ in range(n)]


def holds(loss: Loss, truth: float, epsilon: float, *, reverse: bool = False) -> bool:
    lower, upper = (float(end[0]) for end in loss.profile(np.array([epsilon]), reverse=reverse))
    return lower <= truth * (1 + 1e-14) and truth <= upper + 1e-16


def test_hockey_stick_at_every_epsilon() -> None:
    for rng, loss in pairs(40, seed=1):
        epsilon = np.concatenate([rng.uniform(-8, 8, 5), [0.0, -1e-17, -40.0, 40.0]])
        for reverse, (p, q) in ((False, (loss.p, loss.q)), (True, (loss.q, loss.p))):
            lower, upper = loss.hockey_stick(epsilon, reverse=reverse)
            for at, low, high in zip(epsilon, lower, upper, strict=True):
                truth = stick(p, q, float(at))
                assert low <= truth <= high
                assert high - low < 1e-13


def test_hockey_stick_of_the_gaussian() -> None:
    """H(-e) = 1 - e^-e + e^-e H(e), and for e = 0 both agree."""
    loss = GaussianLoss(0.7)
    epsilon = np.array([-3.0, -1e-9, 0.0, 2.0])
    lower, upper = loss.hockey_stick(epsilon)
    for at, low, high in zip(epsilon.tolist(), lower, upper, strict=True):
        positive = reference.delta(abs(at), 0.7)
        truth = float(positive) if at >= 0 else -math.expm1(at) + math.exp(at) * float(positive)
        assert low <= truth * (1 + 1e-15)
        assert truth * (1 - 1e-15) <= high
        assert high - low < 1e-13


def test_delta_and_epsilon_take_the_worse_direction() -> None:
    for rng, loss in pairs(20, seed=2):
        at = float(rng.uniform(0, 2))
        worst = max(stick(loss.p, loss.q, at), stick(loss.q, loss.p, at))
        assert loss.delta(at).lower <= worst <= loss.delta(at).upper
        target = float(rng.uniform(0.001, 0.3))
        found = loss.epsilon(target)
        beyond, before = found.upper * (1 + 1e-9), found.lower * (1 - 1e-9)
        assert max(stick(loss.p, loss.q, beyond), stick(loss.q, loss.p, beyond)) <= target
        assert found.lower == 0 or max(stick(loss.p, loss.q, before), stick(loss.q, loss.p, before)) > target


def failed(loss: PairLoss, p: float, bad: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Both outputs spoiled with probability p, each in its own way."""
    return tuple((1 - p) * good + p * spoiled for good, spoiled in zip((loss.p, loss.q), bad, strict=True))  # type: ignore[return-value]


def spoiled(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Random, or a point mass each: what tells the two apart, or hides them, best."""
    if rng.random() < 0.3:
        return distribution(rng), distribution(rng)
    return np.eye(SIZE)[rng.integers(SIZE)], np.eye(SIZE)[rng.integers(SIZE)]


def test_failure_is_covered() -> None:
    for rng, loss in pairs(150, seed=3):
        p, at = float(10 ** rng.uniform(-6, -0.1)), float(rng.uniform(0, 3))
        first, second = failed(loss, p, spoiled(rng))
        adjusted = loss.with_failure(p)
        assert holds(adjusted, stick(first, second, at), at)
        assert holds(adjusted, stick(second, first, at), at, reverse=True)


def test_failure_is_attained() -> None:
    """A failure that reveals everything reaches p alone: a smaller upper end would be wrong."""
    same = PairLoss(np.full(SIZE, 1 / SIZE), np.full(SIZE, 1 / SIZE))
    adjusted = same.with_failure(0.01)
    assert adjusted.delta(1.0).upper == pytest.approx(0.01, rel=1e-12)
    wide = PairLoss(np.append(same.p, 0.0), np.append(same.q, 0.0))
    first = 0.99 * wide.p + 0.01 * np.eye(SIZE + 1)[SIZE]
    assert stick(first, wide.q, 1.0) == pytest.approx(0.01, rel=1e-12)


def moved(rng: np.random.Generator, p: Floats, distance: float) -> Floats:
    """A distribution within total-variation distance `distance` of p, often at it."""
    order = rng.permutation(SIZE)
    taken, left = np.zeros(SIZE), distance
    for i in order[:-1]:
        taken[i] = min(p[i], left)
        left -= taken[i]
    result = p - taken
    result[order[-1]] += taken.sum()
    return result


def test_total_variation_is_covered() -> None:
    for rng, loss in pairs(150, seed=4):
        distance, at = float(10 ** rng.uniform(-5, -0.5)), float(rng.uniform(0, 3))
        first, second = moved(rng, loss.p, distance), moved(rng, loss.q, distance)
        adjusted = loss.with_failure(0.0, total_variation=distance)
        assert holds(adjusted, stick(first, second, at), at)
        assert holds(adjusted, stick(second, first, at), at, reverse=True)


def test_total_variation_is_attained() -> None:
    """Mass moved out of Q where P has its own costs e^epsilon as much: (1 + e^epsilon) t is reached."""
    p = np.array([0.5, 0.5])
    t, at = 0.01, 1.0
    loss = PairLoss(p, np.array([0.5 / math.e, 1 - 0.5 / math.e]))
    change = np.array([t, -t])
    truth = stick(loss.p + change, loss.q - change, at) - stick(loss.p, loss.q, at)
    extra = loss.with_failure(0.0, total_variation=t).delta(at).upper - loss.delta(at).upper
    assert float(truth) == pytest.approx(t * (1 + math.e), rel=1e-12)
    assert extra == pytest.approx(t * (1 + math.e), rel=1e-9)


def leant(p: Floats, event: Floats, slip: float) -> Floats:
    """A distribution within e^+-slip of p that gives the event as much as it can."""
    inside = float(p[event].sum())
    up = min(math.exp(slip), (1 - (1 - inside) * math.exp(-slip)) / inside) if 0 < inside < 1 else 1.0
    return np.where(event, p * up, p * ((1 - up * inside) / (1 - inside) if inside < 1 else 1.0))


def test_slip_is_covered_and_reached() -> None:
    for rng, loss in pairs(150, seed=10):
        slip, at = float(10 ** rng.uniform(-4, -0.5)), float(rng.uniform(0, 2))
        slipped, event = AdjustedLoss(loss, slip=slip), loss.p > math.exp(at) * loss.q
        first, second = leant(loss.p, event, slip), leant(loss.q, ~event, slip)
        assert stick(first, second, at) * (1 - 1e-12) <= slipped.profile(np.array([at]))[1][0]
        back = stick(leant(loss.q, ~event, slip), leant(loss.p, event, slip), at)
        assert back * (1 - 1e-12) <= slipped.profile(np.array([at]), reverse=True)[1][0]
    apart = PairLoss(np.array([0.5, 0.5]), np.array([0.1, 0.9]))
    event = np.array([True, False])
    worst = stick(leant(apart.p, event, 0.05), leant(apart.q, ~event, 0.05), 1.0)
    assert AdjustedLoss(apart, slip=0.05).delta(1.0).upper == pytest.approx(float(worst), rel=0.02)
    assert float(worst) > 1.1 * apart.delta(1.0).upper
    with pytest.raises(ValueError, match="failure"):
        AdjustedLoss(GaussianLoss(0.6), slip=0.1).renyi(2.0)


def test_shift_covers_a_lowered_reference() -> None:
    """P against Q' >= e^-r Q, in each direction with its own reference."""
    for rng, loss in pairs(100, seed=5):
        r, at = float(rng.uniform(0, 2)), float(rng.uniform(0, 3))
        shifted = loss.shift(r)
        for reverse, (p, q) in ((False, (loss.p, loss.q)), (True, (loss.q, loss.p))):
            lowered = q * math.exp(-r) + (1 - math.exp(-r)) * spoiled(rng)[0]
            assert holds(shifted, stick(p, lowered, at), at, reverse=reverse)
            assert shifted.profile(np.array([at]), reverse=reverse)[0][0] == 0
            reached = stick(p, q * math.exp(-r), at)
            assert float(shifted.profile(np.array([at]), reverse=reverse)[1][0]) == pytest.approx(
                float(reached), rel=1e-6
            )


def test_shift_by_nothing_changes_nothing() -> None:
    for epsilon in (0.0, 0.3, 4.0):
        assert GaussianLoss(0.4).shift(0.0).delta(epsilon) == GaussianLoss(0.4).delta(epsilon)


def test_adjustments_stack() -> None:
    loss = GaussianLoss(0.5).shift(0.1).with_failure(1e-9).with_failure(1e-7, total_variation=1e-12)
    expected = float(reference.delta(0.9, 0.5)) + 1e-9 + 1e-7 + (1 + math.e) * 1e-12
    assert loss.delta(1.0).upper == pytest.approx(expected, rel=1e-12)
    assert loss.delta(1.0).upper >= expected * (1 - 1e-15)
    late = loss.delta(50.0).upper  # e^50 * 1e-12 > 1, but delta never rises with epsilon
    assert 1e-9 + 1e-7 < late < 1.05e-7


def test_adjusted_renyi() -> None:
    for rng, loss in pairs(20, seed=6):
        alpha, r = float(1 + 10 ** rng.uniform(-2, 1.5)), float(rng.uniform(0, 1))
        base = GaussianLoss(0.6)
        assert base.shift(r).renyi(alpha).upper >= base.renyi(alpha).upper + r
        assert base.shift(0.0).renyi(alpha) == base.renyi(alpha)
        lowered = loss.q * math.exp(-r) + (1 - math.exp(-r)) * spoiled(rng)[0]
        assert divergence(loss.p, lowered, alpha) <= divergence(loss.p, loss.q, alpha) + r + 1e-12
    with pytest.raises(ValueError, match="failure"):
        GaussianLoss(0.6).with_failure(1e-9).renyi(2.0)
    with pytest.raises(ValueError, match="failure"):
        GaussianLoss(0.6).with_failure(0.0, total_variation=1e-9).renyi(2.0)
    with pytest.raises(ValueError, match="no Renyi curve"):
        pairs(1, seed=7)[0][1].renyi(2.0)


def test_adjusted_keeps_the_symmetry_of_its_base() -> None:
    assert AdjustedLoss(GaussianLoss(1.0)).symmetric
    assert not pairs(1, seed=8)[0][1].with_failure(0.1).symmetric


@pytest.mark.parametrize("loss", [GaussianLoss(0.8), LaplaceLoss(0.8, [0.8]), GaussianLoss(0.8).with_failure(1e-9)])
def test_profiles_take_many_epsilons_at_once(loss: Loss) -> None:
    epsilon = np.linspace(0, 2, 7)
    lower, upper = loss.profile(epsilon)
    for at, low, high in zip(epsilon.tolist(), lower.tolist(), upper.tolist(), strict=True):
        assert (low, high) == pytest.approx((loss.delta(at).lower, loss.delta(at).upper), rel=1e-12, abs=1e-300)
