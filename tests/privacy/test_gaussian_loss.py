"""The Gaussian loss against interval arithmetic: every bracket holds the truth, every calibration is private."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import gaussian as reference

from shapedp import GaussianLoss
from shapedp.privacy.losses import gaussian as module


def held(epsilon: float, mu: float) -> bool:
    bracket = GaussianLoss(mu).delta(epsilon)
    return reference.inside(reference.delta(epsilon, mu, 700), bracket.lower, bracket.upper)


def test_brackets_hold_the_truth() -> None:
    points = reference.random_points(2000, seed=11)
    assert [point for point in points if not held(*point)] == []


def attacks(n: int, seed: int) -> list[tuple[float, float]]:
    """Where rounding hurts: a near 0, tiny and huge mu, epsilon = 0, subnormal deltas."""
    rng = np.random.default_rng(seed)
    points = []
    for _ in range(n):
        small, large, giant = 10 ** rng.uniform(-12, -4), 10 ** rng.uniform(1.6, 9), 10 ** rng.uniform(9, 140)
        sign = rng.choice([-1, 1])
        points += [
            (small * rng.uniform(0, 39), small),
            (large * max(large / 2 + rng.uniform(-40, 40), 0), large),
            (giant * giant / 2 * (1 + sign * 10 ** rng.uniform(-16, -1)), giant),
            (0.0, 10 ** rng.uniform(-300, 3)),
            (small * (small / 2 + rng.uniform(37, 38.6)), small),
        ]
        mu = 10 ** rng.uniform(-4, 1.6)
        points += [(mu * (mu / 2 + rng.uniform(36.5, 39)), mu)]
    return [(float(e), float(m)) for e, m in points]


def test_brackets_hold_where_rounding_hurts() -> None:
    assert [point for point in attacks(400, seed=12) if not held(*point)] == []


@pytest.mark.parametrize(
    ("epsilon", "mu", "lower", "upper"),
    [
        (1.0, 1e200, 1 - 1e-9, 1.0),
        (0.0, 1e300, 1 - 1e-9, 1.0),
        (5e199, 1e100, 0.0, 1.0),
        (700.0, 1e-200, 0.0, 1e-300),
        (1.0, 1e-320, 0.0, 1e-300),
        (3.0, 0.0, 0.0, 0.0),
        (3.0, math.inf, 1.0, 1.0),
    ],
)
def test_ends_of_the_range(epsilon: float, mu: float, lower: float, upper: float) -> None:
    bracket = GaussianLoss(mu).delta(epsilon)
    assert lower <= bracket.lower <= bracket.upper <= upper


def test_brackets_are_tight() -> None:
    """Relative gap at most 1e-6 for delta >= 1e-12, as promised."""
    gaps = []
    for epsilon, mu in reference.random_points(2000, seed=13):
        bracket = GaussianLoss(mu).delta(epsilon)
        if bracket.lower >= 1e-12:
            gaps.append(bracket.relative_gap)
    assert len(gaps) > 300
    assert max(gaps) < 1e-9


def test_a_smaller_rounding_term_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference sees a bracket that is too narrow."""
    monkeypatch.setattr(module, "ROUNDINGS_32", 2.0**-55)
    assert any(not held(*point) for point in reference.random_points(2000, seed=11))


def test_epsilon_brackets_hold_the_truth() -> None:
    rng = np.random.default_rng(14)
    for _ in range(150):
        mu, target = float(np.exp(rng.uniform(np.log(1e-4), np.log(40)))), float(10 ** rng.uniform(-30, -0.3))
        bracket = GaussianLoss(mu).epsilon(target)
        assert bracket.upper - bracket.lower <= 1e-9 * max(bracket.upper, mu)
        assert reference.epsilon_excess(bracket.upper, mu, target) <= 0
        if bracket.lower > 0:
            assert reference.epsilon_excess(bracket.lower, mu, target) >= 0


@pytest.mark.parametrize(("mu", "target"), [(1.0, 1e-300), (0.1, 1e-320), (40.0, 1e-300), (1e-4, 1e-30), (5.0, 0.999)])
def test_epsilon_at_the_ends(mu: float, target: float) -> None:
    bracket = GaussianLoss(mu).epsilon(target)
    assert reference.epsilon_excess(bracket.upper, mu, target) <= 0
    assert bracket.lower == 0 or reference.epsilon_excess(bracket.lower, mu, target) >= 0


def test_no_pure_privacy() -> None:
    assert GaussianLoss(1.0).epsilon(0.0).upper == math.inf


def test_log_delta_at_any_depth() -> None:
    """Relative error of delta at most 1e-6, down to log delta = -1e6 and epsilon 700, deltas of 1e-300 among them."""
    rng = np.random.default_rng(15)
    depths = [float(d) for d in np.concatenate([rng.uniform(-9, 39, 400), 10 ** rng.uniform(1.5, 3, 200)])]
    for depth in depths:
        mu = float(np.exp(rng.uniform(np.log(1e-3), np.log(35))))
        epsilon = min(max(mu * (mu / 2 + depth), 0.0), 700.0)
        truth = reference.log_delta(epsilon, mu)
        assert abs(float(arb(GaussianLoss(mu).log_delta(epsilon)) - truth)) <= 1e-8 + 1e-14 * abs(float(truth))


@pytest.mark.parametrize(("epsilon", "golden"), [(1.0, 0.2367043806634), (0.5, 0.1241061490305)])
def test_golden_calibration(epsilon: float, golden: float) -> None:
    assert GaussianLoss.calibrate(epsilon, 1e-6).mu == pytest.approx(golden, rel=5e-13)


def test_calibration_is_private_and_tight() -> None:
    """2,000 claims: below the root, by at most 1e-9 of it."""
    worst = 0.0
    for epsilon, target in reference.random_claims(2000, seed=16):
        loss, root = GaussianLoss.calibrate(epsilon, target), reference.mu_for(epsilon, target)
        assert arb(loss.mu) <= root, (epsilon, target)
        assert loss.delta(epsilon).upper <= target
        worst = max(worst, float((1 - arb(loss.mu) / root).upper()))
    assert worst < 1e-9


@settings(deadline=None, max_examples=200)
@given(
    st.floats(1e-300, 1e8),
    st.one_of(st.floats(1e-320, 1, exclude_max=True), st.floats(-320, 0).map(lambda x: min(10.0**x, 0.99))),
)
def test_calibration_never_crashes(epsilon: float, target: float) -> None:
    loss = GaussianLoss.calibrate(epsilon, target)
    assert loss.mu > 0
    assert loss.delta(epsilon).upper <= target


def test_a_delta_floats_cannot_resolve_is_refused() -> None:
    with pytest.raises(ValueError, match="delta = 5e-324"):
        GaussianLoss.calibrate(1.0, 5e-324)


@settings(deadline=None, max_examples=150)
@given(st.floats(1e-4, 40), st.floats(0, 50), st.floats(0, 5))
def test_monotone(mu: float, epsilon: float, step: float) -> None:
    here = GaussianLoss(mu).delta(epsilon)
    assert GaussianLoss(mu).delta(epsilon + step).lower <= here.upper
    assert GaussianLoss(mu + step).delta(epsilon).upper >= here.lower


def test_least_widens_the_lower_end_only() -> None:
    exact, wide = GaussianLoss(1.0).delta(1.0), GaussianLoss(1.0, 0.5).delta(1.0)
    assert wide.upper == exact.upper
    assert wide.lower == GaussianLoss(0.5).delta(1.0).lower < exact.lower


def test_renyi_is_half_alpha_mu_squared() -> None:
    for mu in (1e-200, 1e-4, 0.3, 40.0, 1e200):
        for alpha in (1 + 1e-12, 1.5, 2.0, 1e3):
            bracket = GaussianLoss(mu).renyi(alpha)
            truth = arb(alpha) * arb(mu) ** 2 / 2
            assert arb(bracket.lower) <= truth
            assert bracket.upper == math.inf or truth <= arb(bracket.upper)


def test_one_point_and_many_give_the_same_bits() -> None:
    """`delta` of a number takes a path without arrays: another answer than `profile` would be a second truth."""
    rng = np.random.default_rng(3)
    mus = np.concatenate(
        [10 ** rng.uniform(-12, 12, 4000), 10 ** rng.uniform(-2, 2, 4000), [0.0, 5e-324, 1e-300, 1e150]]
    )
    near = mus * mus / 2 + mus * rng.uniform(-40, 40, mus.size)  # from far below the mean of the loss to far above it
    epsilons = np.abs(np.where(rng.random(mus.size) < 0.8, near, 10 ** rng.uniform(-12, 12, mus.size)))
    epsilons[::101] = 0.0
    for mu, epsilon in zip(mus.tolist(), np.minimum(epsilons, 1e300).tolist(), strict=True):
        lower, upper = GaussianLoss(mu).profile(np.array([epsilon]))
        one = GaussianLoss(mu).delta(epsilon)
        assert (one.lower, one.upper) == (lower[0], upper[0]), (mu, epsilon)


def test_many_claims_are_each_met_and_none_with_room() -> None:
    rng = np.random.default_rng(4)
    n = 3 * module._BLOCK // 2
    epsilon, delta = 10 ** rng.uniform(-6, 3, n), 10 ** -rng.uniform(0.01, 310, n)
    delta[::3] = 10 ** -rng.uniform(0.01, 12, delta[::3].size)
    mus = module.largest_mus(epsilon, delta)
    for mu, e, d in zip(mus.tolist(), epsilon.tolist(), delta.tolist(), strict=True):
        assert GaussianLoss(mu).delta(e).upper <= d
    some = slice(0, n, 7)
    alone = [GaussianLoss.calibrate(e, d).mu for e, d in zip(epsilon[some].tolist(), delta[some].tolist(), strict=True)]
    assert np.max(np.abs(mus[some] / alone - 1)) < 1e-9
    assert module.largest_mus([[1.0], [2.0]], [1e-6, 1e-5, 1e-4]).shape == (2, 3)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (1.0, 0.0), (1.0, 1.0), (math.nan, 0.1), ([], [])])
def test_many_claims_with_a_bad_one_are_refused(epsilon: object, delta: object) -> None:
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        module.largest_mus(epsilon, delta)  # type: ignore[arg-type]
