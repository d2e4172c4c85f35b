"""Certificates: the verdict is computed, never read; only certified claims release."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp import Bracket, Certificate, RefutedError, UndecidedError, certify, recipes, verify
from shapedp.numerics.arrays import Floats
from shapedp.privacy import Loss


def certificate(lower: float, upper: float, delta: float = 1e-5) -> Certificate:
    return Certificate(1.0, delta, None, Bracket(lower, upper), "test")


@pytest.mark.parametrize(
    ("lower", "upper", "verdict"),
    [
        (0.0, 1e-6, "certified"),
        (1e-5, 1e-5, "certified"),
        (0.0, 1e-5, "certified"),
        (1e-6, 2e-5, "undecided"),
        (1e-5, 2e-5, "undecided"),
        (1.0000001e-5, 2e-5, "refuted"),
        (0.5, 1.0, "refuted"),
    ],
)
def test_verdict(lower: float, upper: float, verdict: str) -> None:
    made = certificate(lower, upper)
    assert made.verdict == verdict
    assert made.explain().startswith(verdict)
    if verdict == "certified":
        assert made.require() is made
    else:
        with pytest.raises(RefutedError if verdict == "refuted" else UndecidedError) as caught:
            made.require()
        assert caught.value.certificate is made


def test_no_one_is_told_to_claim_a_useless_delta() -> None:
    assert "Claim the upper end" in certificate(1e-6, 2e-5).explain()
    assert "Claim the upper end" not in certificate(0.0, 1.0).explain()


def test_pure_claims() -> None:
    assert certificate(0.0, 0.0, delta=0.0).verdict == "certified"
    assert certificate(0.0, 5e-324, delta=0.0).verdict == "undecided"
    assert certificate(5e-324, 5e-324, delta=0.0).verdict == "refuted"


def mechanisms() -> list[sdp.Additive]:
    return [
        sdp.calibrate("gaussian", sdp.L2(1.0, 3, adjacency="replace"), epsilon=1.0, delta=1e-6),
        sdp.calibrate("gaussian", sdp.Box(np.linspace(0.1, 1, 300)), epsilon=0.3, delta=1e-9),
        sdp.calibrate("gaussian", sdp.Blocks([1.0, 2.0], [2, 3]), epsilon=2.0, delta=1e-3),
        sdp.calibrate("laplace", sdp.L1(1.0, 4, adjacency="add-remove"), epsilon=1.0, delta=0.0),
        recipes.classic_gaussian(dim=2, sensitivity=1.0, epsilon=10.0, delta=1e-5),
    ]


@pytest.mark.parametrize("index", range(5))
def test_json_round_trip_and_recheck(index: int) -> None:
    made = mechanisms()[index].certificate
    again = Certificate.from_json(json.loads(json.dumps(made.to_json(), allow_nan=False)))
    assert again.to_json() == made.to_json()
    assert again.verdict == made.verdict
    assert verify(again).bracket == made.bracket


def written() -> dict[str, Any]:
    return json.loads(json.dumps(mechanisms()[4].certificate.to_json()))


def test_a_tampered_verdict_is_ignored() -> None:
    data = written()
    assert data["verdict"] == "refuted"
    data["verdict"] = "certified"
    assert Certificate.from_json(data).verdict == "refuted"


def test_a_tampered_bracket_is_caught() -> None:
    data = written()
    data["bracket"] = {"lower": 0.0, "upper": 1e-6}
    forged = Certificate.from_json(data)
    assert forged.verdict == "certified"
    with pytest.raises(ValueError, match="contradicts"):
        verify(forged)


def test_a_widened_bracket_is_replaced() -> None:
    data = written()
    data["bracket"] = {"lower": 0.0, "upper": 1.0}
    assert verify(Certificate.from_json(data)).verdict == "refuted"


def test_a_tampered_claim_is_caught() -> None:
    """A smaller epsilon leaves the bracket of another claim behind."""
    data = json.loads(json.dumps(mechanisms()[0].certificate.to_json()))
    data["epsilon"] = 0.5
    with pytest.raises(ValueError, match="contradicts"):
        verify(Certificate.from_json(data))


def test_a_tampered_adjacency_is_caught() -> None:
    data = json.loads(json.dumps(mechanisms()[0].certificate.to_json()))
    data["adjacency"] = "add-remove"
    with pytest.raises(ValueError, match="add-remove"):
        verify(Certificate.from_json(data))


def test_nothing_to_recompute() -> None:
    with pytest.raises(ValueError, match="does not describe"):
        verify(certify(sdp.GaussianLoss(0.1), epsilon=1.0, delta=1e-6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "schema"),
        ({"schema": None}, "schema"),
        ({"kind": "receipt"}, "kind"),
        ({"bracket": {"lower": 0.0}}, "upper"),
        ({"bracket": {"lower": 0.9, "upper": 0.1}}, "lower <= upper"),
        ({"bracket": {"lower": "0", "upper": 0.1}}, "lower"),
        ({"bracket": {"lower": float("nan"), "upper": 0.1}}, "lower"),
        ({"bracket": None}, "field"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": float("nan")}, "delta"),
        ({"adjacency": "sometimes"}, "adjacency"),
    ],
)
def test_wrong_files_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Certificate.from_json({**written(), **change})


@pytest.mark.parametrize(
    "field", ["epsilon", "delta", "adjacency", "bracket", "method", "secure", "version", "subject"]
)
def test_missing_fields_are_named(field: str) -> None:
    data = written()
    del data[field]
    with pytest.raises(ValueError, match=field):
        Certificate.from_json(data)


@pytest.mark.parametrize("data", [None, [], "certificate", 3, {}])
def test_what_is_no_certificate(data: Any) -> None:
    with pytest.raises(ValueError, match="not a certificate"):
        Certificate.from_json(data)


@dataclass(frozen=True)
class WideLoss(Loss):
    """A loss whose bracket holds every claim."""

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        return np.zeros_like(epsilon), np.ones_like(epsilon)


@dataclass(frozen=True, eq=False)
class Undecided(sdp.Additive):
    """A mechanism whose loss is known only to be a loss."""

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        return WideLoss()


def undecided() -> sdp.Additive:
    made = mechanisms()[0]
    return Undecided(made.law, made.sensitivity, made.epsilon, made.delta)


@pytest.mark.parametrize(
    ("mechanism", "error"),
    [(undecided(), UndecidedError), (mechanisms()[4], RefutedError)],
    ids=["undecided", "refuted"],
)
def test_only_certified_claims_release(mechanism: sdp.Additive, error: type[Exception]) -> None:
    x = np.zeros(mechanism.law.dim)
    with pytest.raises(error):
        mechanism.release(x)
    with pytest.raises(error):
        mechanism.release(x, rng=np.random.default_rng(1))
    released = mechanism.release(x, unsafe=True)
    assert released.unsafe
    assert released.certificate.verdict == mechanism.certificate.verdict != "certified"
    assert released.certificate.secure is True


def test_a_certified_release_is_not_marked() -> None:
    mechanism = mechanisms()[0]
    for unsafe in (False, True):
        released = mechanism.release(np.zeros(3), unsafe=unsafe)
        assert not released.unsafe
        assert released.certificate.verdict == "certified"


def test_simulated_randomness_is_marked() -> None:
    mechanism = mechanisms()[0]
    assert mechanism.certificate.secure is None
    assert mechanism.release(np.zeros(3)).certificate.secure is True
    assert mechanism.release(np.zeros(3), rng=np.random.default_rng(1)).certificate.secure is False


def test_certify_asks_other_claims_of_the_same_mechanism() -> None:
    mechanism = mechanisms()[0]
    assert certify(mechanism, epsilon=1.0, delta=1e-6).verdict == "certified"
    assert certify(mechanism, epsilon=1.0, delta=9e-7).verdict == "refuted"
    assert certify(mechanism, epsilon=0.9, delta=1e-6).verdict == "refuted"
    assert certify(mechanism.loss, epsilon=1.0, delta=1e-6).verdict == "certified"
    made = certify(mechanism, epsilon=1.0, delta=1e-6)
    assert made.adjacency == "replace"
    assert replace(made, secure=True).verdict == "certified"
