"""Logistic noise: delta against 50-digit quadrature, two routes, the checker, the sampler's tail."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import shapedp as sdp
from shapedp.noise import FAMILIES, Logistic
from shapedp.noise.logistic import LogisticQuantile
from shapedp.privacy.losses.logistic import LogisticLoss

SETS = {
    "l1": sdp.L1(2.0, 3),
    "box": sdp.Box([1.0, 0.4, 0.4]),
    "l2": sdp.L2(1.0, 3),
    "blocks": sdp.Blocks([1.0, 0.5], [2, 1]),
    "slices": sdp.Slices([1.0, 0.5], (2, 2), 0),
}


def density(x):
    return mp.exp(-abs(x)) / (1 + mp.exp(-abs(x))) ** 2


def quadrature(ratio, epsilon):
    """The integral of (p(x) - e^eps p(x + a))_+ to 50 digits, split where the two densities cross."""
    with mp.workdps(50):
        a, e = mp.mpf(ratio), mp.mpf(epsilon)
        if e >= a:
            return mp.mpf(0)
        low, high = -a / 2, mp.mpf(200)
        for _ in range(200):
            edge = (low + high) / 2
            below = mp.log(density(edge)) - mp.log(density(edge + a)) < e
            low, high = (edge, high) if below else (low, edge)
        return mp.quad(lambda x: density(x) - mp.exp(e) * density(x + a), [edge, edge + 5, edge + 30, 150, 400])


@pytest.mark.parametrize("ratio", [1e-3, 0.3, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.9])
def test_one_coordinate_against_quadrature(ratio, share):
    bracket, truth = LogisticLoss(ratio, [ratio], worst=True).delta(share * ratio), quadrature(ratio, share * ratio)
    assert bracket.lower <= float(truth) <= bracket.upper
    assert bracket.relative_gap < 1e-12


def test_beyond_its_ratio_nothing_is_lost_and_tiny_deltas_stay_above_the_truth():
    loss = LogisticLoss(1.0, [1.0], worst=True)
    assert loss.delta(1.0).upper == 0
    near = 1 - 2.0**-40
    with mp.workdps(50):
        truth = mp.expm1((mp.mpf(near) - 1) / 2) ** 2 / -mp.expm1(-1)
    assert loss.delta(near).lower <= float(truth) <= loss.delta(near).upper
    assert LogisticLoss(math.inf, [math.inf]).delta(3.0).lower > 1 - 1e-12


def two(ratios, epsilon):
    """Two coordinates: the density e^(l/2)/(4 sinh(a/2)) of one loss, integrated against delta of the other."""
    with mp.workdps(30):
        a, b, e = (mp.mpf(float(value)) for value in (*ratios, epsilon))

        def other(x):
            if x >= b:
                return mp.mpf(0)
            return 1 - mp.exp(x) if x <= -b else mp.expm1((x - b) / 2) ** 2 / -mp.expm1(-b)

        edges = [-a, *sorted(x for x in (e - b, e + b) if -a < x < a), a]
        return mp.quad(lambda x: mp.exp(x / 2) / (4 * mp.sinh(a / 2)) * other(e - x), edges)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_two_coordinates_against_quadrature(epsilon):
    ratios = np.array([0.7, 0.45])
    bracket = LogisticLoss(1.15 * (1 + 1e-15), ratios, worst=True).delta(epsilon)
    assert bracket.lower <= float(two(ratios, epsilon)) <= bracket.upper
    assert bracket.relative_gap < 1e-5


def test_the_sum_agrees_with_the_composition_of_its_coordinates():
    there = sdp.compose([(LogisticLoss(0.2, [0.2], worst=True), 6)]).delta(0.3)
    here = LogisticLoss(1.2 * (1 + 1e-15), np.full(6, 0.2), worst=True).delta(0.3)
    assert here.lower <= there.upper
    assert there.lower <= here.upper


def test_many_ratios_are_bounded_from_above():
    ratios = np.geomspace(0.01, 0.1, 100)
    loss = LogisticLoss(float(ratios.sum()) * (1 + 1e-14), ratios, worst=True)
    wide = LogisticLoss(10.0, np.full(100, 0.1), worst=True)
    few = LogisticLoss(float(ratios[-20:].sum()) * (1 + 1e-14), ratios[-20:], worst=True)
    for epsilon in (0.1, 0.5):
        assert few.delta(epsilon).lower <= loss.delta(epsilon).upper <= wide.delta(epsilon).upper


@pytest.mark.parametrize("alpha", [1.5, 4.0, 40.0])
def test_renyi_against_quadrature(alpha):
    a = 0.8
    with mp.workdps(40):
        moment = mp.quad(lambda x: density(x) ** alpha * density(x + a) ** (1 - alpha), [-300, -30, -3, 0, 3, 30, 300])
        truth = float(mp.log(moment) / (alpha - 1))
    bracket = LogisticLoss(a, [a], worst=True).renyi(alpha)
    assert bracket.lower <= truth * (1 + 1e-14)
    assert bracket.upper >= truth * (1 - 1e-14)
    assert bracket.relative_gap < 1e-10


@pytest.mark.parametrize("base", SETS.values(), ids=SETS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_calibrated_on_every_set(base, delta):
    mechanism = sdp.calibrate("logistic", base, epsilon=1.0, delta=delta)
    upper = mechanism.certificate.bracket.upper
    assert upper <= delta
    assert upper >= delta * (1 - 1e-4)
    smaller = Logistic(mechanism.law.scales * 0.98) if mechanism.law.scales.size > 1 else None
    smaller = smaller or Logistic(float(mechanism.law.scales[0]) * 0.98, base.dim)
    assert smaller.loss(base).delta(1.0).upper > delta
    assert mechanism.release(np.zeros(base.shape)).value.shape == base.shape
    assert FAMILIES["logistic"].law is Logistic


@pytest.mark.parametrize("bound", [Fraction(1, 10**9), Fraction(1, 3), Fraction(5), Fraction(40), Fraction(200)])
@pytest.mark.parametrize("bits", [64, 200])
def test_the_tail_is_enclosed(bound, bits):
    low, high = LogisticQuantile().tail(bound, bits)
    with mp.workdps(150):
        truth = mp.mpf(2) ** bits / (1 + mp.exp(mp.mpf(bound.numerator) / bound.denominator))
        assert low <= truth <= high
    assert high - low <= 2


def test_the_quantile_is_accurate():
    u = np.concatenate([np.geomspace(2.0**-24, 0.5, 200), [0.5 - 2.0**-53]])
    out = u.copy()
    LogisticQuantile().magnitude(out)
    with mp.workdps(40):
        truth = [mp.log(mp.mpf(float(x)) / (1 - mp.mpf(float(x)))) for x in u]
    assert max(abs(float(t - mp.mpf(float(o)))) for t, o in zip(truth, out, strict=True)) < 2.0**-44


@pytest.mark.parametrize("base", SETS.values(), ids=SETS)
def test_the_checker_agrees(base):
    check = pytest.importorskip("shapedp_check")
    law = sdp.calibrate("logistic", base, epsilon=1.0, delta=1e-6).law
    made = sdp.Additive(law, base, 1.0, 1.2e-6).certificate  # room for the checker's coarser compositions
    answer = check.check(made.to_json())
    assert answer.verdict == "certified"
    assert answer.lower <= made.bracket.upper
    assert made.bracket.lower <= answer.upper


def test_words_for_the_report():
    from shapedp.report.figures import number

    assert Logistic(1.0, 2).words(number) == "logistic noise, independent in every coordinate"
