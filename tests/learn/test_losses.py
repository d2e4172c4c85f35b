"""Losses of the margin: derivatives, bounds, rounding."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from shapedp.learn.losses import HuberHinge, Logistic
from shapedp.learn.solvers.erm.problem import Problem

LOSSES = [Logistic(), HuberHinge(), HuberHinge(0.5), HuberHinge(1.0)]
Z = np.linspace(-6, 6, 4801)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_slope_is_the_derivative_and_curvature_that_of_the_slope(loss):
    h = 1e-6
    slope = (loss.value(Z + h) - loss.value(Z - h)) / (2 * h)
    assert np.abs(slope - loss.slope(Z)).max() < 1e-5
    away = np.abs(np.abs(1 - Z) - getattr(loss, "width", 100.0)) > 1e-3
    curvature = (loss.slope(Z + h) - loss.slope(Z - h)) / (2 * h)
    assert np.abs(curvature - loss.curvature(Z))[away].max() < 1e-5


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_bounds_hold_and_are_attained(loss):
    far = np.concatenate([Z, [-1e3, 1e3]])
    assert (loss.slope(far) <= 0).all()
    assert loss.slope(far).min() == -1.0
    assert loss.curvature(far).max() <= loss.curvature_bound
    assert loss.curvature(far).max() > 0.999 * loss.curvature_bound
    assert (np.diff(loss.value(Z), 2) > -1e-12).all()  # convex


def test_huber_hinge_is_the_standard_one():
    """0 beyond 1 + h, 1 - z below 1 - h, and the quadratic of Chapelle 2007 between."""
    loss, h = HuberHinge(0.1), 0.1
    z = np.array([-3.0, 0.0, 0.85, 0.95, 1.0, 1.05, 1.15, 4.0])
    between = (1 + h - z) ** 2 / (4 * h)
    expected = np.where(z > 1 + h, 0.0, np.where(z < 1 - h, 1 - z, between))
    assert np.allclose(loss.value(z), expected, atol=1e-15)
    assert np.allclose(between, (1 - z) ** 2 / (4 * h) + (1 - z) / 2 + h / 4)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_slope_error_bounds_the_rounding(loss):
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.uniform(-40, 40, 300), rng.uniform(0, 2, 700)])
    with mpmath.workdps(50):
        for margin, found in zip(z.tolist(), loss.slope(z).tolist(), strict=True):
            exact = _slope(loss, mpmath.mpf(margin))
            assert abs(exact - found) <= loss.slope_error


def _slope(loss, z):
    if isinstance(loss, Logistic):
        return -1 / (1 + mpmath.exp(z))
    h = mpmath.mpf(loss.width)
    return -min(max((1 - z + h) / (2 * h), mpmath.mpf(0)), mpmath.mpf(1))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_constants_of_one_record(loss):
    """|gradient| <= L and |Hessian| <= beta for records within the row bound; the Hessian has rank 1."""
    rng = np.random.default_rng(1)
    bound = 2.5
    one = Problem(loss, 100, 4, 1, bound, 0.1, 1.0, 1e-5)
    for _ in range(200):
        x = rng.normal(size=4)
        x *= bound * rng.random() ** 0.2 / np.linalg.norm(x)
        w = rng.normal(size=4) * 3
        gradient = float(loss.slope(np.array(x @ w))) * x
        hessian = float(loss.curvature(np.array(x @ w))) * np.outer(x, x)
        assert np.linalg.norm(gradient) <= one.lipschitz
        assert np.linalg.norm(hessian, 2) <= one.smoothness
        assert np.linalg.matrix_rank(hessian) <= 1


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, 2.0, 1e-9])
def test_odd_widths_are_refused(width):
    with pytest.raises(ValueError, match="width"):
        HuberHinge(width)
