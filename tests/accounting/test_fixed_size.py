"""Samples of a fixed size in the plan's file, in the library and in the checker, against sums over all samples."""

from __future__ import annotations

import itertools
import json
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import shapedp as sdp
from shapedp.accounting import BareLoss, Plan, Step
from shapedp_check.files import NotDescribed
from shapedp_check.subjects import read_subject
from shapedp_check.verdict import bounds, check

MU, EPSILON = 1.0, 0.4
GRID = 1e-5  # what the sums over a grid may miss


def fixed(loss, rate, count=1):
    return Plan((Step(loss, rate, count, "without-replacement"),))


def certificate(plan, epsilon, delta):
    return json.loads(json.dumps(sdp.certify(plan, epsilon=epsilon, delta=delta).to_json()))


def means(records, size):
    """What the query, a sum over the sample, can be: one value for each sample."""
    return np.array([sum(chosen) for chosen in itertools.combinations(records, size)], dtype=float)


def hockey(one, other, epsilon, runs):
    """max over both directions of the integral of (p - e^epsilon q)+, the runs on a grid of their own axes each."""
    x = np.linspace(-8, 10, 1201)
    p, q = (norm.pdf(x[:, None], m, 1.0).mean(axis=1) for m in (one, other))
    if runs == 2:
        p, q = np.multiply.outer(p, p), np.multiply.outer(q, q)
    cell = (x[1] - x[0]) ** runs
    return max(np.maximum(a - math.exp(epsilon) * b, 0).sum() * cell for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize(
    ("rest", "size", "exchanged"),
    [((0, 0, 0), 2, (0, 1)), ((0, 1, 1), 2, (0, 1)), ((0, 0, 0), 1, (0, 1)), ((1, 0, 0, 1), 3, (1, 0))],
)
def test_every_data_set_is_within_what_is_certified(runs, rest, size, exchanged):
    """The sum of 0s and 1s of a sample changes by at most 1 when one record is replaced."""
    rate = math.nextafter(size / (len(rest) + 1), 1.0)
    one, other = (means((value, *rest), size) for value in exchanged)
    true = hockey(one, other, EPSILON, runs)
    plan = fixed(sdp.GaussianLoss(MU), rate, runs)
    ours, theirs = plan.delta(EPSILON), check(certificate(plan, EPSILON, true))
    assert true <= min(ours.upper, theirs.upper) + GRID
    assert ours.lower <= theirs.upper
    if sum(rest) == 0:  # the worst of such data: no lower end may be above
        assert true - 1e-4 < theirs.lower <= true + GRID
        assert 0.95 * true < ours.lower <= true + GRID
        assert ours.upper <= (true + GRID if runs == 1 else 1.1 * true)


@pytest.mark.parametrize("rate", [1e-3, 0.2, 0.9])
def test_one_run_has_the_formula_s_delta(rate):
    inner = mpmath.log(1 + mpmath.expm1(EPSILON) / rate)
    true = rate * (mpmath.ncdf(MU / 2 - inner / MU) - mpmath.exp(inner) * mpmath.ncdf(-MU / 2 - inner / MU))
    plan = fixed(sdp.GaussianLoss(MU), rate)
    low, high = bounds(read_subject(plan.to_json()), EPSILON, 0.0)
    assert float(low) == pytest.approx(float(true), rel=1e-12)
    assert float(high) == pytest.approx(float(true), rel=1e-12)
    assert plan.delta(EPSILON).lower <= true <= plan.delta(EPSILON).upper


@pytest.mark.parametrize("loss", [sdp.GaussianLoss(0.7), BareLoss(0.5), BareLoss(0.5, 1e-4)])
@pytest.mark.parametrize(("rate", "count"), [(0.05, 20), (0.5, 3), (1.0, 2), (0.0, 4)])
def test_library_and_checker_agree(loss, rate, count):
    made = certificate(fixed(loss, rate, count), 1.0, 1e-3)
    answer = check(made)
    assert answer.verdict == made["verdict"]
    assert made["adjacency"] == "replace"
    assert made["bracket"]["upper"] >= answer.lower
    assert made["bracket"]["lower"] <= answer.upper


def test_a_plan_file_keeps_the_scheme_and_the_old_form_stays():
    plan = fixed(sdp.GaussianLoss(0.5), 0.1, 10)
    data = json.loads(json.dumps(plan.to_json()))
    assert data["steps"][0]["scheme"] == "without-replacement"
    assert Plan.from_json(data) == plan
    assert "scheme" not in Plan((Step(sdp.GaussianLoss(0.5), 0.1, 10),)).to_json()["steps"][0]
    assert plan.delta(0.5).upper > Plan((Step(sdp.GaussianLoss(0.5), 0.1, 10),)).delta(0.5).lower


def test_a_scheme_changed_in_the_file_is_not_certified_as_the_other():
    made = certificate(fixed(sdp.GaussianLoss(0.5), 0.1, 10), 1.0, 1e-5)
    del made["subject"]["steps"][0]["scheme"]  # Poisson: another relation than the certificate names
    assert check(made).verdict in ("refuted", "not described")


@pytest.mark.parametrize("scheme", ["fixed", None, 1, ["poisson"], "Poisson"])
def test_other_schemes_are_refused(scheme):
    data = json.loads(json.dumps(fixed(sdp.GaussianLoss(0.5), 0.1).to_json()))
    data["steps"][0]["scheme"] = scheme
    with pytest.raises(NotDescribed, match="scheme"):
        read_subject(data)
    with pytest.raises(ValueError, match="scheme"):
        Plan.from_json(data)


@pytest.mark.parametrize("relation", ["add-remove", "zero-out"])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_fixed_sizes_need_replaced_neighbours(relation, rate):
    loss = {"loss": "gaussian", "mu": 0.5, "adjacency": relation}
    data = {"schema": 1, "kind": "plan", "steps": [{"subject": loss, "sampling_rate": rate, "count": 1}]}
    data["steps"][0]["scheme"] = "without-replacement"
    with pytest.raises(NotDescribed, match="without-replacement"):
        read_subject(data)
    with pytest.raises(ValueError, match="without-replacement"):
        Plan.from_json(data)


def test_several_runs_are_bounded_by_the_pair_that_mirrors_itself():
    """Right of 0 the losses of the Poisson pair, left of 0 their mirror image, the rest of the mass at 0."""
    x = np.linspace(0.5, 10, 1501)[:-1] + 9.5 / 3000  # where the mixture is the larger density
    cell = 9.5 / 1500
    q = norm.pdf(x)
    p = 0.5 * q + 0.5 * norm.pdf(x, MU)
    loss = np.log(p / q)
    mass = np.concatenate([p, q, [0.0]]) * cell
    mass[-1] = 1 - mass.sum()
    losses = np.concatenate([loss, -loss, [0.0]])
    total = np.add.outer(losses, losses)
    known = (np.multiply.outer(mass, mass) * np.maximum(-np.expm1(EPSILON - total), 0)).sum()
    plan = fixed(sdp.GaussianLoss(MU), 0.5, 2)
    assert plan.delta(EPSILON).upper == pytest.approx(known, rel=1e-3)
    assert check(certificate(plan, EPSILON, 0.18)).upper == pytest.approx(known, rel=1e-3)
