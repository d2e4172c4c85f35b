"""Certified minima: the bound holds against 50 digits, by every route, and impossible tolerances are refused."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from shapedp.learn.losses import HuberHinge, Logistic
from shapedp.learn.solvers.erm.problem import Problem, Records, Risk
from shapedp.numerics import convex
from shapedp.numerics.convex import distance, least_tolerance, minimum


def risk(n=30, d=4, columns=2, strength=1e-2, loss=None, seed=0, tilt=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)
    signs = np.where(rng.random((n, columns)) < 0.5, 1.0, -1.0)
    problem = Problem(loss or Logistic(), n, d, columns, 1.0, strength, 1.0, 1e-5)
    linear = rng.normal(size=(d, columns))
    linear *= tilt / np.linalg.norm(linear, axis=0)
    return Risk(problem, Records(x, signs), linear if tilt else None, tilt)


def exact_minimum(objective, column):
    """Newton's method in 50 digits, for the logistic loss."""
    x, signs = objective.records.x, objective.records.signs[:, column]
    n, d = x.shape
    with mpmath.workdps(50):
        rows = mpmath.matrix((x * signs[:, None]).tolist())
        w = mpmath.matrix(d, 1)
        for _ in range(60):
            margin = rows * w
            low = [1 / (1 + mpmath.exp(margin[i])) for i in range(n)]
            gradient = [
                -sum(low[i] * rows[i, j] for i in range(n)) / n
                + mpmath.mpf(objective.modulus) * w[j]
                + (0 if objective.linear is None else mpmath.mpf(float(objective.linear[j, column])))
                for j in range(d)
            ]
            if mpmath.norm(gradient) < mpmath.mpf(10) ** -40:
                break
            hessian = mpmath.matrix(d)
            for j in range(d):
                for k in range(d):
                    hessian[j, k] = sum(low[i] * (1 - low[i]) * rows[i, j] * rows[i, k] for i in range(n)) / n
                hessian[j, j] += mpmath.mpf(objective.modulus)
            w -= mpmath.lu_solve(hessian, mpmath.matrix(gradient))
        return w


@pytest.mark.parametrize("route", ["newton", "quasi-newton", "descent"])
@pytest.mark.parametrize("tilt", [0.0, 0.3])
def test_the_tolerance_holds_against_fifty_digits(route, tilt, monkeypatch):
    objective = risk(tilt=tilt)
    if route == "quasi-newton":
        monkeypatch.setattr(convex, "NEWTON_ORDER", 0)
    tolerance = 2 * least_tolerance(objective) if route != "descent" else 1e-6
    w = minimum(objective, tolerance, limit=0 if route == "descent" else 1000)
    for column in range(2):
        exact = exact_minimum(objective, column)
        with mpmath.workdps(50):
            gap = mpmath.sqrt(sum((exact[j] - mpmath.mpf(float(w[j, column]))) ** 2 for j in range(4)))
        assert gap <= tolerance
        assert gap <= distance(objective, w)[column]
        assert mpmath.norm(exact) <= objective.radius


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(), HuberHinge(0.01)], ids=str)
@pytest.mark.parametrize("strength", [1e-6, 1e-3, 1.0])
def test_every_route_finds_the_same_minimum(loss, strength, monkeypatch):
    objective = risk(n=60, d=6, columns=3, strength=strength, loss=loss)
    tolerance = max(2 * least_tolerance(objective), 1e-9)
    first = minimum(objective, tolerance)
    monkeypatch.setattr(convex, "NEWTON_ORDER", 0)
    second = minimum(objective, tolerance)
    assert np.linalg.norm(first - second, axis=0).max() <= 2 * tolerance


def test_the_fallback_is_taken_only_when_needed(monkeypatch):
    taken = []
    plain = convex._descent
    monkeypatch.setattr(convex, "_descent", lambda *given: taken.append(1) or plain(*given))
    minimum(risk(), 1e-8)
    assert not taken
    minimum(risk(), 1e-3, limit=0)
    assert taken


def test_impossible_tolerances_are_refused_without_a_look_at_the_data():
    blank = Risk(risk(strength=1e-9).problem)  # no records: an evaluation would raise
    with pytest.raises(ValueError, match="rounding"):
        minimum(blank, 1e-12)


def test_gradient_error_bounds_the_rounding():
    """Against 50 digits, at weights of many sizes."""
    rng = np.random.default_rng(3)
    objective = risk(n=200, d=5, columns=1, strength=1e-3)
    x, signs = objective.records.x, objective.records.signs[:, 0]
    for size in (1e-3, 1.0, 30.0, 1e3):
        w = rng.normal(size=(5, 1))
        w *= size / np.linalg.norm(w)
        found = objective.evaluate(w)[1][:, 0]
        with mpmath.workdps(50):
            total = [mpmath.mpf(0)] * 5
            for row, sign in zip(x.tolist(), signs.tolist(), strict=True):
                z = sign * sum(mpmath.mpf(a) * mpmath.mpf(float(b)) for a, b in zip(row, w[:, 0], strict=True))
                low = 1 / (1 + mpmath.exp(z))
                total = [t - low * sign * mpmath.mpf(a) for t, a in zip(total, row, strict=True)]
            exact = [t / 200 + mpmath.mpf(1e-3) * mpmath.mpf(float(b)) for t, b in zip(total, w[:, 0], strict=True)]
            gap = mpmath.sqrt(sum((e - mpmath.mpf(float(f))) ** 2 for e, f in zip(exact, found, strict=True)))
        assert gap <= objective.gradient_error(size * 1.0001)
