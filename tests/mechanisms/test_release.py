"""Releases: only what is certified, on the grid, with error bars that hold."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from shapedp.mechanisms import Additive, Mechanism, calibrate
from shapedp.mechanisms.watch import watching
from shapedp.noise import Gaussian, Laplace
from shapedp.privacy import RefutedError, UndecidedError
from shapedp.sampling import SecureSource, grid_for
from shapedp.sensitivity import L1, L2, Blocks, Box

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
QUANTILE = 4.9  # normal, 1e-6 over both tails

MECHANISMS = {
    "gaussian-l2": calibrate("gaussian", L2(1.0, 3), **CLAIM),
    "gaussian-box": calibrate("gaussian", Box([1.0, 1e-3, 50.0]), **CLAIM),
    "gaussian-blocks": calibrate("gaussian", Blocks([1.0, 3.0], [1, 2]), **CLAIM),
    "laplace-l1": calibrate("laplace", L1(1.0, 3), **CLAIM),
    "laplace-box": calibrate("laplace", Box([1.0, 1e-3, 50.0]), **CLAIM),
    "pure-l1": calibrate("laplace", L1(1.0, 3), epsilon=1.0, delta=0.0),
    "pure-box": calibrate("laplace", Box([1.0, 1e-3, 50.0]), epsilon=1.0, delta=0.0),
}
EVERY = pytest.mark.parametrize("name", MECHANISMS)
X = np.array([0.1, 1 / 3, -7.7])


def grid_of(mechanism) -> np.ndarray:
    law = mechanism.law
    return np.broadcast_to(law.grid if hasattr(law, "grid") else grid_for(law.scales), law.dim)


class Untouched(np.random.Generator):
    """A generator that must not be asked."""

    def integers(self, *args, **kwargs):
        raise AssertionError("randomness was drawn")


@pytest.fixture
def no_randomness(monkeypatch):
    def refuse(self, n):
        raise AssertionError("randomness was drawn")

    monkeypatch.setattr(SecureSource, "words", refuse)


def test_the_fixture_would_notice(no_randomness):
    with pytest.raises(AssertionError, match="drawn"):
        MECHANISMS["gaussian-l2"].release(X)
    with pytest.raises(AssertionError, match="drawn"):
        MECHANISMS["gaussian-l2"].release(X, rng=Untouched(np.random.PCG64(1)))


@EVERY
def test_values_lie_on_the_grid(name):
    mechanism, given = MECHANISMS[name], X.copy()
    for rng in (None, np.random.default_rng(1)):
        release = mechanism.release(given, rng=rng)
        assert release.value.shape == (3,)
        assert release.value.dtype == np.float64
        steps = release.value / grid_of(mechanism)
        assert np.array_equal(steps, np.rint(steps))
        assert np.array_equal(given, X)
        assert not np.shares_memory(release.value, given)
        assert (release.spends, release.unsafe) == (1, False)


@EVERY
def test_kinds_of_input(name):
    mechanism = MECHANISMS[name]

    def at(x):
        return mechanism.release(x, rng=np.random.default_rng(5)).value

    want = at(np.array([1.0, 2.0, 3.0]))
    frozen = np.array([1.0, 2.0, 3.0])
    frozen.setflags(write=False)
    for x in (
        [1, 2, 3],
        (1.0, 2, 3),
        np.arange(1, 4),
        np.arange(1, 4, dtype=np.uint8),
        frozen,
        np.arange(1.0, 7.0)[:3],
    ):
        assert np.array_equal(at(x), want)
    assert np.array_equal(at(np.array([1.0, 9.0, 2.0, 9.0, 3.0])[::2]), want)
    single = mechanism.release(np.array([1, 2, 3], dtype=np.float32), rng=np.random.default_rng(5)).value
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, want, rtol=2.0**-23)
    steps = single.astype(np.float64) / grid_of(mechanism)
    assert np.array_equal(steps, np.rint(steps))


@EVERY
def test_secure_by_default_and_a_generator_is_recorded(name):
    mechanism = MECHANISMS[name]
    assert mechanism.certificate.secure is None
    assert mechanism.release(X).certificate.secure is True
    simulated = mechanism.release(X, rng=np.random.default_rng(2))
    assert simulated.certificate.secure is False
    assert mechanism.certificate.secure is None
    assert simulated.certificate.to_json()["secure"] is False
    assert np.array_equal(simulated.value, mechanism.release(X, rng=np.random.default_rng(2)).value)
    assert not np.array_equal(mechanism.release(X).value, mechanism.release(X).value)
    for seed in (0, np.random.RandomState(1), "secure"):
        with pytest.raises(TypeError, match="rng"):
            mechanism.release(X, rng=seed)


@EVERY
def test_batches_are_independent_draws_and_as_many_spends(name):
    mechanism = MECHANISMS[name]
    release = mechanism.release(np.tile(X, (5, 1)), batch=5)
    assert release.value.shape == (5, 3)
    assert release.spends == 5
    assert len(release) == 5
    assert len(np.unique(release.value, axis=0)) == 5
    low, high = release.interval(0.9)
    assert low.shape == high.shape == (5, 3)
    for bad in (0, -1, 2.0, True, "5"):
        with pytest.raises((TypeError, ValueError), match="batch"):
            mechanism.release(np.tile(X, (5, 1)), batch=bad)
    for x, batch in ((X, 1), (np.tile(X, (5, 1)), 4), (np.tile(X, (5, 1)), None)):
        with pytest.raises(ValueError, match="x must have shape"):
            mechanism.release(x, batch=batch)


@EVERY
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_intervals_and_standard_errors_hold_on_releases(name, confidence):
    """False-alarm rate 1e-6 per coordinate; the same test refuses intervals 2% too narrow or too wide."""
    mechanism, n = MECHANISMS[name], 600_000
    release = mechanism.release(np.tile(X, (n, 1)), batch=n)
    low, high = release.interval(confidence)
    centre, half = (low + high) / 2, (high - low) / 2
    tolerance = QUANTILE * np.sqrt(confidence * (1 - confidence) / n)

    def gap(factor):
        return np.abs((np.abs(X - centre) <= half * factor).mean(axis=0) - confidence)

    assert (gap(1.0) <= tolerance).all()
    assert (gap(0.98) > tolerance).all()
    assert (gap(1.02) > tolerance).all()
    error = release.value - X
    assert release.standard_error.shape == (3,)
    squares = np.square(error / release.standard_error)
    assert (np.abs(squares.mean(axis=0) - 1) < 1.05 * QUANTILE * squares.std(axis=0) / np.sqrt(n)).all()
    assert (np.abs(error.mean(axis=0)) < QUANTILE * release.standard_error / np.sqrt(n) + grid_of(mechanism)).all()


@EVERY
def test_a_release_is_an_array(name):
    release = MECHANISMS[name].release(X)
    assert np.array_equal(np.asarray(release), release.value)
    assert np.asarray(release, dtype=np.float32).dtype == np.float32
    assert np.array_equal(release + np.zeros(3), release.value)
    assert float(np.sum(release)) == pytest.approx(float(release.value.sum()))
    copied = np.array(release)
    copied[:] = 0
    assert release.value.any()
    assert isinstance(MECHANISMS[name], Mechanism)


BAD = [
    ([1.0, 2.0], ValueError),
    (1.0, ValueError),
    ([[1.0, 2.0, 3.0]], ValueError),
    ([], ValueError),
    ([1.0, np.nan, 3.0], ValueError),
    ([1.0, np.inf, 3.0], ValueError),
    ([-np.inf, np.inf, 3.0], ValueError),
    (np.array([1, 2, np.inf], dtype=np.float32), ValueError),
    ([1.0, 2.0, None], TypeError),
    (["1", "2", "3"], TypeError),
    ([1j, 2, 3], TypeError),
    ([True, False, True], TypeError),
    (np.array([1, 2, 3], dtype=object), TypeError),
    ([[1.0], [2.0, 3.0]], TypeError),
    (np.array([2**53 + 2, 0, 0]), ValueError),
    (np.array([0, 2**64 - 1, 0], dtype=np.uint64), ValueError),
    (np.array([1, 2, 3], dtype=np.longdouble), TypeError),
    ([1e300, 0.0, 0.0], ValueError),
    ([0.0, 0.0, -(2.0**70)], ValueError),
]


@EVERY
@pytest.mark.parametrize(("x", "error"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused_before_any_randomness(no_randomness, name, x, error):
    """Also values beyond 2^62 steps of the grid."""
    with pytest.raises(error, match=r"\bx\b"):
        MECHANISMS[name].release(x)
    with pytest.raises(error, match=r"\bx\b"):
        MECHANISMS[name].release(x, rng=Untouched(np.random.PCG64(1)))


@pytest.mark.parametrize("law", [Gaussian(1.0, 3), Laplace(1.0, 3)])
def test_refuted_claims_are_not_released(no_randomness, law):
    mechanism = Additive(law, L1(3.0, 3), **CLAIM)
    assert mechanism.certificate.verdict == "refuted"
    with pytest.raises(RefutedError, match="refuted") as refusal:
        mechanism.release(X)
    assert refusal.value.certificate is mechanism.certificate


def test_undecided_claims_are_not_released(no_randomness):
    bracket = Additive(Gaussian(4.0, 3), L2(1.0, 3), **CLAIM).loss.delta(1.0)
    between = (bracket.lower + bracket.upper) / 2
    assert bracket.lower < between < bracket.upper
    mechanism = Additive(Gaussian(4.0, 3), L2(1.0, 3), 1.0, between)
    assert mechanism.certificate.verdict == "undecided"
    with pytest.raises(UndecidedError, match="undecided"):
        mechanism.release(X)
    assert Additive(Gaussian(4.0, 3), L2(1.0, 3), 1.0, bracket.upper).certificate.verdict == "certified"


def test_unsafe_releases_are_marked():
    wrong = Additive(Gaussian(1.0, 3), L2(1.0, 3), **CLAIM)
    release = wrong.release(X, unsafe=True)
    assert release.unsafe
    assert release.certificate.verdict == "refuted"
    assert release.value.shape == (3,)
    assert not MECHANISMS["gaussian-l2"].release(X, unsafe=True).unsafe


@EVERY
def test_mechanisms_and_certificates_survive_pickle(name):
    mechanism = MECHANISMS[name]
    again = pickle.loads(pickle.dumps(mechanism))
    assert again.to_json() == mechanism.to_json()
    assert again.certificate.bracket == mechanism.certificate.bracket
    released = mechanism.release(X)
    copied = pickle.loads(pickle.dumps(released))
    assert json.dumps(copied.certificate.to_json()) == json.dumps(released.certificate.to_json())


def test_what_a_long_mechanism_is_gets_written_only_when_read(monkeypatch):
    written = []
    original = Additive.to_json
    monkeypatch.setattr(Additive, "to_json", lambda self: written.append(1) or original(self))
    mechanism = calibrate("gaussian", Box(np.arange(1.0, 2000.0)), **CLAIM)
    release = mechanism.release(np.zeros(1999))
    assert not written
    subject = release.certificate.to_json()["subject"]
    assert written
    assert subject == original(mechanism)
    assert release.certificate.subject["law"] == mechanism.law.to_json()


def test_mismatched_parts_are_refused():
    with pytest.raises(ValueError, match="dimension"):
        Additive(Gaussian(1.0, 2), L2(1.0, 3), **CLAIM)
    for bad in ({"epsilon": 0.0, "delta": 0.1}, {"epsilon": 1.0, "delta": 1.0}, {"epsilon": np.nan, "delta": 0.1}):
        with pytest.raises(ValueError, match=r"epsilon|delta"):
            Additive(Gaussian(1.0, 2), L2(1.0, 2), **bad)


def test_a_watched_release_is_not_called_secure() -> None:
    mechanism = calibrate("gaussian", L2(1.0, dim=2), epsilon=1.0, delta=1e-6)
    with watching(lambda _mechanism, x, _draw: x):
        assert mechanism.release([1.0, 2.0]).certificate.secure is False
    assert mechanism.release([1.0, 2.0]).certificate.secure is True
