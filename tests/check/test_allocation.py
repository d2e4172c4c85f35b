"""The independent checker on passes: its own law of the ratios, against integrals and the library's brackets."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

import shapedp as sdp
import shapedp_check
from shapedp.accounting import Plan, Step
from shapedp.mechanisms import certify
from shapedp.privacy.losses.allocation import AllocatedLoss
from shapedp_check.allocation import BITS, Allocated, ratios
from shapedp_check.balls import ball, down, precision, up
from shapedp_check.pairs import Gaussian, Laplace


def pair(mu: float, runs: int) -> Allocated:
    return Allocated(Gaussian(ball(mu)), runs)


@pytest.mark.parametrize(("mu", "runs"), [(1.0, 2), (0.5, 13), (2.0, 5)])
def test_its_curve_meets_the_librarys_bracket(mu: float, runs: int) -> None:
    at = np.array([0.0, 0.1, 0.7, 1.5])
    loss = AllocatedLoss(sdp.GaussianLoss(mu), runs)
    with precision(256):
        worse = pair(mu, runs)
        for reverse, one in ((False, worse), (True, worse.backward())):
            lower, upper = loss.profile(at, reverse=reverse)
            for e, low, high in zip(at, lower, upper, strict=True):
                value = one.hockey(ball(float(e)))
                assert up(value) >= low  # both are above the truth, or hold it
                assert down(value) <= high + 1e-25
                assert up(value) - down(value) < 1e-15


def test_the_law_of_one_ratio_has_its_mean_and_is_worse() -> None:
    with precision(256):
        base = Gaussian(ball(0.8))
        law = ratios(base)
        mass = Fraction(sum(law.law.values()), 1 << BITS)
        mean = Fraction(sum(place * value for place, value in law.law.items()) + law.beyond, 1 << BITS) * law.unit
        assert 0 <= mass - 1 < Fraction(1, 10**40)
        assert 0 <= mean - 1 < Fraction(1, 10**30)
        for x in (-2.0, -0.5, 0.0, 0.3, 2.0):
            k = Fraction(math.exp(x))
            call = sum(value * max(place * law.unit - k, 0) for place, value in law.law.items()) / (1 << BITS)
            assert float(call) >= down(base.hockey(ball(k).log())) * (1 - 1e-12)


def test_laplace_noise() -> None:
    loss = AllocatedLoss(sdp.LaplaceLoss(1.0, [1.0], True), 4)
    with precision(256):
        value = Allocated(Laplace(Fraction(1)), 4).hockey(ball(0.2))
    low, high = (float(end[0]) for end in loss.profile(np.array([0.2])))
    assert low <= up(value) <= high * (1 + 1e-4)


@pytest.mark.parametrize(("mu", "runs", "passes"), [(1.0, 10, 1), (0.7, 60, 3)])
def test_certificates_of_passes(mu: float, runs: int, passes: int) -> None:
    whole = Plan((Step(sdp.GaussianLoss(mu), count=passes, scheme="allocation", batches=runs),))
    epsilon = whole.epsilon(1e-6).upper
    data = json.loads(json.dumps(certify(whole, epsilon=epsilon, delta=1e-6).to_json()))
    assert shapedp_check.check(data).verdict == "certified"
    data["subject"]["steps"][0]["batches"] = max(runs // 2, 1)
    assert shapedp_check.check(data).verdict != "certified"


def test_a_shuffle_is_what_a_known_order_is() -> None:
    for share, verdict in ((1.0001, "certified"), (0.99, "undecided")):
        whole = Plan((Step(sdp.GaussianLoss(1.0), count=4, scheme="shuffle", batches=20),))
        epsilon = sdp.GaussianLoss(2.0).epsilon(1e-6).upper * share
        found = certify(whole, epsilon=epsilon, delta=1e-6)
        assert found.verdict == verdict
        answer = shapedp_check.check(json.loads(json.dumps(found.to_json())))
        assert (answer.verdict == "certified") == (verdict == "certified")


def test_what_is_not_described_is_refused() -> None:
    whole = Plan((Step(sdp.GaussianLoss(1.0), scheme="allocation", batches=5),))
    data = json.loads(json.dumps(certify(whole, epsilon=5.0, delta=1e-6).to_json()))
    for name, value in (("batches", 0), ("batches", 2.5), ("sampling_rate", 0.5), ("scheme", "poisson")):
        changed = json.loads(json.dumps(data))
        changed["subject"]["steps"][0][name] = value
        assert shapedp_check.check(changed).verdict != "certified"
    assert ctx.prec == 53
