"""Advice, calibration calls, certificates of mechanisms and their verification."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from shapedp.mechanisms import Additive, DoesNotApplyError, advise, calibrate, certify, verify
from shapedp.noise import DiscreteLaplace, Gaussian, Laplace
from shapedp.privacy import Bracket, Certificate, GaussianLoss
from shapedp.sensitivity import L1, L2, Blocks, Box

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
PURE = {"epsilon": 1.0, "delta": 0.0}
SETS = {
    "l2": L2(1.5, 4, adjacency="add-remove"),
    "ellipsoid": L2(1.0, 4, scales=[1.0, 2.0, 3.0, 0.1]),
    "l1": L1(0.5, 4, adjacency="replace"),
    "box": Box([1.0, 2.0, 3.0, 0.1], adjacency="zero-out"),
    "blocks": Blocks([1.0, 2.0], [3, 1], adjacency="add-remove"),
}
LONG = Box(np.exp(np.random.default_rng(1).normal(size=400)), adjacency="add-remove")
EVERY_SET = pytest.mark.parametrize("name", SETS)
EVERY_MECHANISM = pytest.mark.parametrize(
    ("family", "claim", "base"),
    [
        *((family, CLAIM, base) for family in ("gaussian", "laplace") for base in SETS.values()),
        *(("laplace", PURE, base) for base in SETS.values()),
        ("gaussian", CLAIM, LONG),
        ("laplace", PURE, LONG),
    ],
)


@EVERY_SET
@pytest.mark.parametrize("claim", [CLAIM, PURE, {"epsilon": 0.01, "delta": 1e-20}, {"epsilon": 30.0, "delta": 0.3}])
def test_ranked_by_error_and_certified(name, claim):
    weights = np.linspace(1, 5, SETS[name].dim)
    ranked = advise(SETS[name], weights=weights, **claim)
    served = [advice for advice in ranked if advice.mechanism is not None]
    assert ranked[: len(served)] == served
    assert {"gaussian", "laplace"} <= {advice.family for advice in ranked}
    errors = [advice.expected_error for advice in served]
    assert errors == sorted(errors)
    assert served[0].reason == "least expected error"
    for advice in served:
        assert advice.mechanism.certificate.verdict == "certified"
        assert (advice.mechanism.epsilon, advice.mechanism.delta) == tuple(claim.values())
        assert advice.expected_error == advice.mechanism.law.weighted_second_moment(weights)
        alone = calibrate(advice.family, SETS[name], weights=weights, **claim)
        assert advice.expected_error == pytest.approx(alone.law.weighted_second_moment(weights), rel=1e-12)
        assert advice.family in str(advice)
    for advice in ranked[len(served) :]:
        assert advice.reason
        assert advice.expected_error == float("inf")


def test_the_better_family_comes_first():
    def best(base, **claim):
        return advise(base, **claim)[0].family

    assert best(L1(1.0, 100), epsilon=1.0, delta=1e-6) == "laplace"
    many = {advice.family: advice.expected_error for advice in advise(L2(1.0, 1000), **CLAIM)}
    assert many["gaussian"] < many["laplace"] / 10


@EVERY_SET
def test_gaussian_noise_does_not_apply_without_delta(name):
    by_family = {advice.family: advice for advice in advise(SETS[name], **PURE)}
    refused = by_family["gaussian"]
    assert refused.mechanism is None
    assert "delta" in refused.reason
    assert by_family["laplace"].mechanism.law.kind == "discrete-laplace"
    with pytest.raises(DoesNotApplyError, match="delta"):
        calibrate("gaussian", SETS[name], **PURE)


def test_weights_move_the_noise_and_the_ranking_counts_them():
    box, weights = Box([1.0, 1.0]), np.array([100.0, 1.0])
    plain, weighted = (calibrate("gaussian", box, weights=w, **CLAIM).law for w in (None, weights))
    assert weighted.scales[0] < plain.scales[0] < weighted.scales[1]
    assert weighted.weighted_second_moment(weights) < 0.7 * plain.weighted_second_moment(weights)
    gaussian = next(a for a in advise(box, weights=weights, **CLAIM) if a.family == "gaussian")
    assert gaussian.expected_error == pytest.approx(weighted.weighted_second_moment(weights), rel=1e-12)
    for bad in ([1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [[1.0], [1.0]], 3.0):
        with pytest.raises(ValueError, match="weights"):
            advise(box, weights=bad, **CLAIM)


def test_zero_sensitivity_must_be_said():
    box = Box([1.0, 0.0])
    with pytest.raises(ValueError, match="exact_zeros"):
        advise(box, **CLAIM)
    served = [a for a in advise(box, exact_zeros=True, **CLAIM) if a.mechanism is not None]
    assert {"gaussian", "laplace"} <= {advice.family for advice in served}
    for advice in served:
        if advice.family in ("gaussian", "laplace"):
            assert advice.mechanism.law.marginal_scales()[1] == 0


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"epsilon": np.nan}, ValueError, "epsilon"),
        ({"epsilon": np.inf}, ValueError, "epsilon"),
        ({"epsilon": "1"}, TypeError, "epsilon"),
        ({"epsilon": True}, TypeError, "epsilon"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"delta": -1e-9}, ValueError, "delta"),
        ({"delta": np.nan}, ValueError, "delta"),
        ({"sensitivity": 1.0}, TypeError, "sensitivity"),
        ({"error": "cubed"}, ValueError, "error"),
        ({"weights": [1.0]}, ValueError, "weights"),
    ],
)
def test_bad_calls(change, error, word):
    asked = {"sensitivity": SETS["box"], **CLAIM, **change}
    base = asked.pop("sensitivity")
    with pytest.raises(error, match=word):
        advise(base, **asked)
    with pytest.raises(error, match=word):
        calibrate("gaussian", base, **asked)


def test_nothing_that_spends_privacy_has_a_default():
    for missing in ("epsilon", "delta"):
        rest = {key: value for key, value in CLAIM.items() if key != missing}
        with pytest.raises(TypeError, match=missing):
            calibrate("gaussian", SETS["l2"], **rest)
        with pytest.raises(TypeError, match=missing):
            advise(SETS["l2"], **rest)
        with pytest.raises(TypeError, match=missing):
            certify(GaussianLoss(1.0), **rest)
    with pytest.raises(ValueError, match="family"):
        calibrate("cauchy", SETS["l2"], **CLAIM)
    with pytest.raises(TypeError, match="colour"):
        calibrate("gaussian", SETS["l2"], **CLAIM, colour="pink")


@EVERY_MECHANISM
def test_json_restores_the_same_loss(family, claim, base):
    mechanism = calibrate(family, base, **claim)
    text = json.dumps(mechanism.to_json())
    again = Additive.from_json(json.loads(text))
    assert json.dumps(again.to_json()) == text
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        assert again.loss.delta(epsilon) == mechanism.loss.delta(epsilon)
    assert again.certificate == mechanism.certificate
    assert again.expected_squared_error == mechanism.expected_squared_error
    x = np.arange(float(mechanism.law.dim))
    here, there = (m.release(x, rng=np.random.default_rng(3)).value for m in (mechanism, again))
    assert np.array_equal(here, there)


@EVERY_MECHANISM
def test_certificates_are_verified_offline(family, claim, base):
    mechanism = calibrate(family, base, **claim)
    certificate = Certificate.from_json(json.loads(json.dumps(mechanism.certificate.to_json())))
    assert certificate == mechanism.certificate
    assert certificate.adjacency == base.adjacency
    assert verify(certificate).bracket == mechanism.certificate.bracket
    released = mechanism.release(np.zeros(mechanism.law.dim)).certificate
    assert verify(Certificate.from_json(json.loads(json.dumps(released.to_json())))).verdict == "certified"


def test_false_certificates_are_found():
    certificate = calibrate("gaussian", SETS["l2"], **CLAIM).certificate
    with pytest.raises(ValueError, match="contradicts"):
        verify(replace(certificate, bracket=Bracket(0.0, 1e-9)))
    with pytest.raises(ValueError, match="contradicts"):
        verify(replace(certificate, bracket=Bracket(0.1, 0.2)))
    with pytest.raises(ValueError, match="replace"):
        verify(replace(certificate, adjacency="replace"))
    with pytest.raises(ValueError, match="does not describe"):
        verify(replace(certificate, subject=None))
    weaker = json.loads(json.dumps(certificate.to_json()))
    weaker["subject"]["law"]["scale"] /= 2
    with pytest.raises(ValueError, match="contradicts"):
        verify(Certificate.from_json(weaker))
    lied = {**certificate.to_json(), "verdict": "certified", "delta": 1e-9}
    assert Certificate.from_json(lied).verdict == "refuted"


def test_certify_answers_for_mechanisms_and_losses():
    mechanism = calibrate("gaussian", SETS["l2"], **CLAIM)
    assert certify(mechanism, **CLAIM) == mechanism.certificate
    assert certify(mechanism, epsilon=0.5, delta=1e-6).verdict == "refuted"
    assert certify(mechanism, epsilon=2.0, delta=1e-6).verdict == "certified"
    assert certify(mechanism.loss, **CLAIM).bracket == mechanism.certificate.bracket
    assert certify(mechanism.loss, **CLAIM).subject is None
    for bad in (1.0, "gaussian", SETS["l2"], None):
        with pytest.raises(TypeError, match="certify takes"):
            certify(bad, **CLAIM)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda d: d.pop("law"), "law"),
        (lambda d: d.pop("sensitivity"), "sensitivity"),
        (lambda d: d.pop("epsilon"), "epsilon"),
        (lambda d: d.update(kind="other"), "kind"),
        (lambda d: d.update(schema=99), "schema"),
        (lambda d: d.update(delta=2.0), "delta"),
        (lambda d: d["law"].update(dim=3), "dim"),
        (lambda d: d["law"].update(scale=-1.0), "scale"),
        (lambda d: d["sensitivity"].update(radius=-1.0), "radius"),
    ],
)
def test_bad_mechanism_json(change, word):
    data = calibrate("gaussian", SETS["l2"], **CLAIM).to_json()
    change(data)
    with pytest.raises(ValueError, match=word):
        Additive.from_json(data)


def test_noise_that_is_too_small_is_found_out():
    """Certificates of hand-made mechanisms: never certified with 1e-6 less noise than calibrated."""
    for base in (*SETS.values(), LONG):
        scale = calibrate("gaussian", base, **CLAIM).law.scales * (1 - 1e-6)
        law = Gaussian(scale[0], base.dim) if scale.size == 1 else Gaussian(scale)
        assert Additive(law, base, **CLAIM).certificate.verdict == "refuted"
        pure = calibrate("laplace", base, **PURE).law
        short = DiscreteLaplace(np.floor(pure.steps * 0.999), pure.grid, base.dim)
        assert Additive(short, base, **PURE).certificate.verdict != "certified"
        assert (
            Additive(Laplace(pure.scales[0] / 2, base.dim), L1(pure.scales[0], base.dim), **PURE).certificate.verdict
            == "refuted"
        )


def test_staircase_noise_is_left_out_where_it_is_slow():
    started = time.monotonic()
    advice = {one.family: one for one in advise(Box(np.linspace(0.1, 1.0, 1000)), **CLAIM)}
    assert time.monotonic() - started < 20
    assert advice["staircase"].mechanism is None
    assert "not tried beyond 100 different bounds" in str(advice["staircase"])
    same = {one.family: one for one in advise(Box(np.full(101, 0.5)), epsilon=1.0, delta=0.0)}
    assert same["staircase"].mechanism is not None
