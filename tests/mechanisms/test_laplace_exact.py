"""Laplace and mixed noise calibrated on the exact profile for delta > 0."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from shapedp.mechanisms import DoesNotApplyError, advise, calibrate
from shapedp.noise import Laplace, Mixed
from shapedp.numerics.inversion import stop_loss
from shapedp.numerics.laplace_sums import LaplaceSum
from shapedp.privacy import loss_of
from shapedp.sensitivity import L1, L2, Box

CLAIM = {"epsilon": 1.0, "delta": 1e-6}


def pure_error(bounds, epsilon: float) -> float:
    return 2 * float((bounds ** (2 / 3)).sum()) ** 3 / epsilon**2


def test_400_equal_coordinates_cost_twice_the_gaussian():
    base = Box(np.ones(400))
    laplace, gaussian = calibrate("laplace", base, **CLAIM), calibrate("gaussian", base, **CLAIM)
    assert laplace.certificate.bracket.relative_gap <= 1e-6
    assert laplace.expected_squared_error <= 2.0 * gaussian.expected_squared_error
    assert pure_error(base.profile, 1.0) > 44 * gaussian.expected_squared_error


@pytest.mark.parametrize("name", ["linear", "power", "two", "random"])
@pytest.mark.parametrize("claim", [CLAIM, {"epsilon": 0.3, "delta": 1e-3}, {"epsilon": 4.0, "delta": 1e-9}])
def test_never_worse_than_pure_and_certified(name, claim):
    bounds = {
        "linear": np.arange(1.0, 31),
        "power": np.arange(1.0, 41) ** -2.0,
        "two": np.array([1.0, 0.5]),
        "random": np.exp(np.random.default_rng(2).normal(size=60)),
    }[name]
    mechanism = calibrate("laplace", Box(bounds), **claim)
    assert mechanism.certificate.verdict == "certified"
    assert mechanism.expected_squared_error <= pure_error(bounds, claim["epsilon"]) * (1 + 1e-9)
    if not math.isclose(mechanism.expected_squared_error, pure_error(bounds, claim["epsilon"]), rel_tol=1e-3):
        assert mechanism.certificate.bracket.upper > 0.99 * claim["delta"]


def test_close_to_a_general_optimiser_over_all_shapes():
    """Three groups of coordinates: every group's ratio is free, delta(ratios) = target by a root in the unit."""
    bounds, counts, epsilon, delta = np.array([1.0, 0.3, 0.05]), np.array([2.0, 10.0, 100.0]), 1.0, 1e-4

    def delta_at(log_ratios, unit) -> float:
        values = np.exp(log_ratios + unit)
        order = np.argsort(values)
        total = LaplaceSum.grouped(values[order], counts[order])
        return float(stop_loss(total, np.array([epsilon]), nodes=2**12)[1][0])

    def error(shape) -> float:
        log_ratios = np.append(0.0, shape)
        unit = optimize.brentq(lambda u: math.log(max(delta_at(log_ratios, u), 1e-200) / delta), -6, 2, xtol=1e-10)
        return math.log(2 * float(counts @ (bounds / np.exp(log_ratios + unit)) ** 2))

    start = np.log(bounds[1:] ** (2 / 3))
    found = optimize.minimize(
        error, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-7, "maxiter": 120}
    )
    mechanism = calibrate("laplace", Box(np.repeat(bounds, counts.astype(int))), epsilon=epsilon, delta=delta)
    assert mechanism.expected_squared_error == pytest.approx(math.exp(found.fun), rel=2e-3)


def test_one_coordinate_spends_delta_where_it_is_worth_it():
    mechanism = calibrate("laplace", L1(1.0, 3), epsilon=1.0, delta=0.1)
    assert mechanism.law.scales[0] == pytest.approx(1 / (1 - 2 * math.log(0.9)), rel=1e-9)
    assert mechanism.certificate.bracket.upper == pytest.approx(0.1, rel=1e-9)


def test_a_mixture_wins_where_one_coordinate_decides():
    bounds = np.concatenate([[1.0], np.full(100, 0.01)])
    ranked = advise(Box(bounds), **CLAIM)
    assert ranked[0].family == "mixed"
    law = ranked[0].mechanism.law
    assert isinstance(law, Mixed)
    assert list(np.flatnonzero(~law.gaussian)) == [0]
    by_family = {advice.family: advice.expected_error for advice in ranked}
    assert by_family["mixed"] < 0.76 * min(by_family["gaussian"], by_family["laplace"])
    assert "1 coordinate decides" in ranked[0].why
    assert ranked[1].why == ""


def test_mixtures_are_refused_with_the_reason():
    for base, claim, reason in (
        (L2(1.0, 3), CLAIM, "boxes"),
        (Box([1.0, 0.5]), {"epsilon": 1.0, "delta": 0.0}, "delta = 0"),
        (Box(np.ones(40)), CLAIM, "no mixture"),
    ):
        with pytest.raises(DoesNotApplyError, match=reason):
            calibrate("mixed", base, **claim)


def test_the_winner_explains_itself():
    assert "squares over the 300 coordinates" in advise(Box(np.ones(300)), **CLAIM)[0].why
    assert "factor of" in advise(Box(np.repeat([1.0, 0.3, 0.1], 100)), **CLAIM)[0].why
    assert "L1 ball" in advise(L1(1.0, 5), **CLAIM)[0].why
    assert advise(Box([1.0, 0.5]), epsilon=4.0, delta=0.0)[0].why.startswith("staircase noise")


def test_exact_laplace_round_trips():
    mechanism = calibrate("laplace", Box(np.ones(50)), **CLAIM)
    again = type(mechanism).from_json(mechanism.to_json())
    assert isinstance(again.law, Laplace)
    assert again.certificate.bracket == mechanism.certificate.bracket


def test_permuting_and_scaling_many_coordinates():
    """The unit 37 is not a power of two, and the search for the shape stops where the error is flat."""
    rng = np.random.default_rng(4)
    bounds = np.exp(rng.normal(size=40))
    base = calibrate("laplace", Box(bounds), **CLAIM).law.scales
    order = rng.permutation(40)
    np.testing.assert_allclose(calibrate("laplace", Box(bounds[order]), **CLAIM).law.scales, base[order], rtol=1e-9)
    np.testing.assert_allclose(calibrate("laplace", Box(bounds * 37.0), **CLAIM).law.scales, base * 37.0, rtol=1e-4)


def test_never_worse_than_one_scale_for_all():
    bounds = np.exp(np.random.default_rng(6).normal(size=30))
    for error in ("squared", "absolute", "max"):
        shaped = calibrate("laplace", Box(bounds), error=error, **CLAIM)
        alike = Laplace(float(shaped.law.scales.mean()), 30)
        while loss_of(alike, Box(bounds)).delta(1.0).upper > 1e-6:
            alike = Laplace(alike.scales[0] * 1.1, 30)
        assert shaped.expected_error(error) <= alike.expected_error(error) * (1 + 1e-9)
