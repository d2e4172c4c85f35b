"""The empirical audit: known answers, false alarms, faults caught, reproducibility, bad calls."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.audit.helpers import GROUPS, Gaussian, calibrated, members, product_noise, r1smg, served

import shapedp as sdp
from shapedp import audit
from shapedp.audit.sketches import subject_of
from shapedp.mechanisms import AdaptiveMixing
from shapedp.noise import FAMILIES
from shapedp.privacy import GaussianLoss

KNOWN = {
    "gaussian": lambda: sdp.calibrate("gaussian", sdp.L2(1.0, 1), epsilon=1.0, delta=1e-3),
    "gaussian-3": lambda: sdp.calibrate("gaussian", sdp.Box([1.0, 0.3, 0.1]), epsilon=1.0, delta=1e-3),
    "laplace": lambda: sdp.calibrate("laplace", sdp.L1(1.0, 1), epsilon=1.0, delta=0.0),
    "radial": lambda: sdp.calibrate("radial", sdp.L2(1.0, 2), epsilon=1.0, delta=1e-3, shape=(1.7, 1.5)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_lower_bound_reaches_nine_tenths_of_the_true_epsilon(name):
    """Within 1e7 outputs; all but the plain Gaussian need no more than 4e6."""
    m = KNOWN[name]()
    samples = 10_000_000 if name == "gaussian" else 4_000_000
    result = audit.mechanism(m, epsilon=1.0, delta=1e-3, samples=samples, seed=5)
    assert m.loss.delta(1.0).upper <= 1e-3  # so that the true epsilon is at most 1 ...
    assert 0.9 <= result.epsilon_lower <= 1  # ... and the bound nine tenths of it at least
    assert result.delta_lower <= m.loss.delta(1.0).upper
    assert not result.violation


CORRECT = {
    "gaussian": KNOWN["gaussian"],
    "laplace": lambda: sdp.recipes.laplace(dim=1, sensitivity=1.0, epsilon=1.0, delta=0.0),
}


def false_alarms(m, audits: int, seed: int) -> int:
    return sum(audit.mechanism(m, samples=100_000, seed=seed + i).violation for i in range(audits))


@pytest.mark.parametrize("name", CORRECT)
def test_false_alarms_are_rare(name):
    """At 99% confidence 100 audits raise more than 8 false alarms with probability below 1e-5."""
    assert false_alarms(CORRECT[name](), 100, 0) <= 8


@pytest.mark.slow
def test_a_thousand_audits_of_correct_mechanisms():
    assert false_alarms(CORRECT["gaussian"](), 500, 10_000) + false_alarms(CORRECT["laplace"](), 500, 20_000) <= 20


@pytest.mark.parametrize("dim", [100, 1000])
def test_product_noise_as_published_is_caught(dim):
    f = product_noise(dim, epsilon=1.0)
    shift = np.zeros(dim)
    shift[0] = 1.0
    pair = (np.zeros(dim), shift)
    result = audit.mechanism(
        f,
        neighbours=pair,
        epsilon=1.0,
        delta=1e-5,
        samples=20_000,
        vectorized=True,
        score=f.score(*pair),
        early_stop=False,
        seed=1,
    )
    assert result.violation
    assert result.delta_lower > 0.5


def test_product_noise_is_caught_without_its_density():
    f = product_noise(30, epsilon=1.0)
    pair = (np.zeros(30), np.full(30, 1 / math.sqrt(30)))
    result = audit.mechanism(f, neighbours=pair, epsilon=1.0, delta=1e-5, samples=50_000, vectorized=True, seed=1)
    assert result.violation
    assert result.method == "learned score"


def test_r1smg_is_caught():
    f = r1smg(100, epsilon=1.0, delta=1e-5)
    pair = (np.zeros(100), np.full(100, 0.1))
    result = audit.mechanism(
        f,
        neighbours=pair,
        epsilon=1.0,
        delta=1e-5,
        samples=20_000,
        vectorized=True,
        score=f.score(*pair),
        early_stop=False,
        seed=1,
    )
    assert result.violation
    assert result.delta_lower > 0.9


def test_gaussian_noise_at_four_fifths_of_its_scale_is_caught():
    m = sdp.calibrate("gaussian", sdp.L2(1.0, 3), epsilon=1.0, delta=1e-5)
    sigma = 0.8 * float(m.law.scales[0])
    pair = (np.zeros(3), m.sensitivity.extreme())

    def ratio(y):
        return m.law.log_density(y - pair[0]) - m.law.log_density(y - pair[1])

    by_profile = audit.mechanism(
        Gaussian(sigma),
        neighbours=pair,
        epsilon=1.0,
        delta=1e-5,
        loss=m.loss,
        samples=200_000,
        vectorized=True,
        score=ratio,
        seed=3,
    )
    assert by_profile.violation
    assert by_profile.witness.against == "loss"
    less = sdp.Additive(sdp.Gaussian(sigma, 3), m.sensitivity, 1.0, 1e-3)
    more = sdp.calibrate("gaussian", sdp.L2(1.0, 3), epsilon=1.0, delta=1e-3)
    weak = sdp.Additive(sdp.Gaussian(0.8 * float(more.law.scales[0]), 3), m.sensitivity, 1.0, 1e-3)
    assert not audit.mechanism(less, samples=1_000_000, seed=3).violation  # that scale is enough for delta = 1e-3
    assert audit.mechanism(weak, samples=1_000_000, seed=3).violation


def test_a_sampler_that_draws_too_little_is_caught_by_the_profile(monkeypatch):
    m = sdp.calibrate("gaussian", sdp.L2(1.0, 2), epsilon=1.0, delta=1e-6)
    draw = sdp.Gaussian.add_to
    monkeypatch.setattr(sdp.Gaussian, "add_to", lambda law, x, s: x + 0.8 * (draw(law, x, s) - x))
    result = audit.mechanism(m, samples=300_000, seed=2)
    assert result.violation
    assert result.stopped_early
    assert result.samples < 300_000


@pytest.mark.parametrize("kind", served(4))
def test_certified_mechanisms_are_not_caught(kind):
    """Every family that serves the set, with and without delta; 99.99% confidence each."""
    found = [
        m for family in FAMILIES for delta in (1e-6, 0.0) if (m := calibrated(family, kind, 4, delta, True)) is not None
    ]
    assert found
    for m in found:
        result = audit.mechanism(m, samples=30_000, confidence=0.9999, seed=11)
        assert not result.violation, result.explain()
        assert result.delta_lower <= m.certificate.bracket.upper


@pytest.mark.parametrize("group", ["mixed", "recipes"])
def test_certified_mechanisms_of_other_kinds_are_not_caught(group):
    found = [m for _, m in members(group, 14)]
    assert found
    for m in found:
        assert not audit.mechanism(m, samples=30_000, confidence=0.9999, seed=12).violation


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("kind", [sdp.Mixing, AdaptiveMixing])
def test_mixing_is_not_caught_and_a_tenth_of_its_noise_is(kind, adjacency):
    """A tenth of the noise of a sketch, or of the eigenvalue that an adaptive one releases."""
    m = mixing(kind, adjacency)
    weak, samples, pair = replace(m, gamma=1 + (m.gamma - 1) / 10), 100_000, None
    if kind is AdaptiveMixing:
        weak, samples = replace(m, eta=m.eta / 10), 2000
        rows = 2.0 * np.eye(2)[np.arange(2 * int(m.gamma / 2 + weak.eta * m.tau)) % 2]
        pair = (rows, np.concatenate([[[0.0, 2.0 * (adjacency == "replace")]], rows[1:]]))
    right = audit.mechanism(m, samples=samples, confidence=0.9999, seed=3)
    wrong = audit.mechanism(weak, neighbours=pair, samples=samples, loss=m.loss, epsilon=1.0, delta=1e-3, seed=3)
    assert right.method == "likelihood ratio"
    assert not right.violation, right.explain()
    assert wrong.violation, wrong.explain()


@cache
def mixing(kind, adjacency):
    records = 2 if kind is sdp.Mixing else 40
    return kind.calibrate(rows=7, row_bound=2.0, epsilon=1.0, delta=1e-3, adjacency=adjacency, records=records, dim=2)


@pytest.mark.parametrize("kind", [sdp.Mixing, AdaptiveMixing])
def test_scores_of_sketches_are_log_likelihood_ratios(kind):
    """A ratio of densities has mean 1 under the second input; eight standard errors."""
    subject = subject_of(mixing(kind, "zero-out"), None, None, False)
    outputs = subject.draw(1, 1500, np.random.default_rng(5))
    ratio = np.exp(subject.score(outputs))
    assert abs(ratio.mean() - 1) < 8 * ratio.std() / np.sqrt(ratio.size)
    assert ratio.std() > 0.1
    assert kind is sdp.Mixing or np.unique(outputs[:, -1]).size > 100  # the noise adapts


@pytest.mark.slow
@pytest.mark.parametrize("dim", [2, 14, 100, 1000])
def test_certified_mechanisms_are_not_caught_at_length(dim):
    """1e6 outputs up to dimension 100 (in dimension 100 of the claims 1e-6 and 0), 1e5 above; 99.99% each."""
    samples = 1_000_000 if dim <= 100 else 100_000
    for name, m in (one for group in GROUPS for one in members(group, dim)):
        result = audit.mechanism(m, samples=samples, confidence=0.9999)
        assert not result.violation, f"{name}: {result.explain()}"


def test_coordinates_without_noise_are_left_out_and_told_apart():
    m = sdp.calibrate("gaussian", sdp.Box([1.0, 0.0, 0.5]), epsilon=1.0, delta=1e-5, exact_zeros=True)
    assert not audit.mechanism(m, samples=50_000, seed=1).violation
    told = audit.mechanism(m, neighbours=([0.0, 0.0, 0.0], [0.0, 1.0, 0.0]), samples=50_000, early_stop=False)
    assert told.violation
    assert told.delta_lower > 0.99


def test_laplace_noise_beyond_its_claim_by_learned_score():
    def f(x, rng):
        return x + rng.laplace(scale=1.0)

    right = audit.mechanism(f, neighbours=(0.0, 1.0), epsilon=1.0, delta=0.0, samples=40_000, seed=4)
    wrong = audit.mechanism(f, neighbours=(0.0, 1.0), epsilon=0.6, delta=0.0, samples=40_000, seed=4)
    assert not right.violation
    assert right.epsilon_lower > 0.7
    assert wrong.violation


def test_a_leak_of_small_probability_is_caught():
    """Releases the answer itself once in a thousand: nothing but an atom gives it away."""

    def f(x, rng, n):
        y = x + rng.normal(scale=10.0, size=(n, 1))
        return np.where(rng.random((n, 1)) < 1e-3, x, y)

    result = audit.mechanism(
        f, neighbours=(0.0, 1.0), epsilon=1.0, delta=1e-5, samples=1_000_000, vectorized=True, early_stop=False, seed=1
    )
    assert result.violation
    assert 2e-4 < result.delta_lower < 1e-3


def test_a_classifier_of_the_scikit_learn_kind():
    linear_model = pytest.importorskip("sklearn.linear_model")
    result = audit.mechanism(
        Gaussian(1.0),
        neighbours=(np.zeros(2), np.ones(2)),
        epsilon=1.0,
        delta=1e-5,
        samples=40_000,
        vectorized=True,
        early_stop=False,
        classifier=linear_model.LogisticRegression(),
        seed=1,
    )
    true = GaussianLoss(math.sqrt(2)).delta(1.0).upper
    assert 0.8 * true < result.delta_lower <= true


def test_the_same_seed_gives_the_same_audit_in_any_number_of_processes():
    m = KNOWN["gaussian-3"]()
    one, again, two = (audit.mechanism(m, samples=200_000, seed=9, parallel=p) for p in (1, 1, 2))
    assert one == again == two
    assert one != audit.mechanism(m, samples=200_000, seed=10)


def test_without_a_seed_randomness_is_secure(monkeypatch):
    from shapedp.mechanisms import base

    asked = []
    source = base.source
    monkeypatch.setattr(base, "source", lambda rng: asked.append(rng) or source(rng))
    audit.mechanism(KNOWN["gaussian"](), samples=4000)
    assert asked
    assert all(rng is None for rng in asked)


def test_progress_is_drawn_where_asked_for(capsys):
    pytest.importorskip("tqdm")
    audit.mechanism(KNOWN["gaussian"](), samples=4000, seed=1, progress=True)
    assert "outputs" in capsys.readouterr().err


def test_the_result_explains_itself():
    result = audit.mechanism(KNOWN["gaussian"](), samples=20_000, seed=1)
    assert result.verdict == "no violation found"
    assert result.explain().startswith("no violation found: with confidence 0.99")
    assert result.to_json()["verdict"] == result.verdict


MIXING = sdp.Mixing(rows=3, row_bound=1.0, gamma=20.0, epsilon=1.0, delta=1e-3)

BAD = [
    (TypeError, "audit takes a mechanism", {"mechanism": 3}),
    (ValueError, "neighbours must be given", {"mechanism": abs, "epsilon": 1.0, "delta": 0.0}),
    (ValueError, "neighbours must be a pair", {"neighbours": 3}),
    (ValueError, "two queries of shape", {"neighbours": (np.zeros(2), np.ones(2))}),
    (ValueError, "are equal", {"neighbours": (np.ones(1), np.ones(1))}),
    (ValueError, "are equal", {"mechanism": abs, "neighbours": ([1, 2], [1, 2]), "epsilon": 1.0, "delta": 0.0}),
    (TypeError, "score goes with a function", {"mechanism": MIXING, "score": np.sum}),
    (TypeError, "classifier goes with a function", {"classifier": object()}),
    (ValueError, "two tables of one shape", {"mechanism": MIXING, "neighbours": (np.eye(2), np.eye(3))}),
    (ValueError, "must be finite", {"neighbours": (np.array([np.nan]), np.zeros(1))}),
    (ValueError, "go together", {"epsilon": 1.0}),
    (ValueError, "carries no claim", {"mechanism": abs, "neighbours": (0, 1)}),
    (ValueError, "confidence", {"confidence": 1.0}),
    (ValueError, "confidence", {"confidence": math.nan}),
    (ValueError, "samples", {"samples": 10}),
    (TypeError, "samples", {"samples": 1e6}),
    (ValueError, "delta", {"epsilon": 1.0, "delta": 1.0}),
    (TypeError, "score goes with a function", {"score": np.sum}),
]


@pytest.mark.parametrize(("error", "text", "call"), BAD)
def test_bad_calls(error, text, call):
    call = {"mechanism": KNOWN["gaussian"](), **call}
    with pytest.raises(error, match=text):
        audit.mechanism(call.pop("mechanism"), **call)


def test_a_function_that_returns_nothing_is_not_called_private():
    with pytest.raises(ValueError, match="no number at all"):
        audit.mechanism(
            lambda x, rng: float("nan"), neighbours=(0.0, 1.0), epsilon=1.0, delta=0.0, samples=4000, seed=0
        )
