"""Guards that no statistical test can see: each kills a seeded fault of the mutation suite."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.sampling.helpers import Scripted

import shapedp as sdp
from shapedp import audit
from shapedp.accounting import subsample
from shapedp.audit import empirical
from shapedp.audit.claim import Claim
from shapedp.audit.events import choose
from shapedp.mechanisms import AdaptiveMixing
from shapedp.privacy import loss_of
from shapedp.sampling import rounded_sum, source
from shapedp.sampling.discrete import _below


@pytest.mark.parametrize(("radius", "scale"), [(0.1, 0.3), (1.0, 3.0), (0.7, 0.11)])
def test_the_reach_is_rounded_against_us(radius, scale):
    """mu and the pure epsilon are at least the exact quotient of the floats given."""
    exact = Fraction(radius) / Fraction(scale)
    for dim in (1, 4):
        assert Fraction(loss_of(sdp.Gaussian(scale, dim), sdp.L2(radius, dim)).mu) >= exact
        assert Fraction(loss_of(sdp.Laplace(scale, dim), sdp.L1(radius, dim)).pure) >= exact


def test_the_vertex_of_least_noise_is_the_worst():
    """One coordinate decides: the profile is known exactly, so the bracket is tight."""
    loss = loss_of(sdp.Laplace(np.array([1.0, 2.0])), sdp.L1(1.0, 2))
    assert loss.delta(0.5).relative_gap < 1e-6


def test_calibrate_hands_out_nothing_that_is_not_certified(monkeypatch):
    monkeypatch.setattr(sdp.Gaussian, "fitted", lambda request: sdp.Gaussian(0.5, request.sensitivity.dim))
    with pytest.raises(sdp.RefutedError):
        sdp.calibrate("gaussian", sdp.L2(1.0, 2), epsilon=1.0, delta=1e-6)


def test_bits_of_a_tiny_uniform_are_extended():
    """A word of 5 leaves the noise undecided by far more than a grid step: further bits must be drawn."""
    found = []
    for further in (0, 2**64 - 1):
        words = Scripted([5, further, further, further])
        found.append(rounded_sum(np.zeros(1), "laplace", 1.0, 2.0**-20, words)[0])
        assert len(words.asked) > 1
    assert found[0] != found[1]


def test_the_last_incomplete_multiple_is_rejected():
    bound = np.array([3 << 48], dtype=np.uint64)
    assert _below(bound, Scripted([2**64 - 1, 7])).tolist() == [7]


def test_failures_count_against_the_cap_of_a_ledger():
    pytest.importorskip("sqlalchemy")
    from shapedp.ledger.filters import make_filter
    from shapedp.ledger.fixed import Charge

    kept = make_filter(epsilon=1.0, delta=1e-5, failure_share=0.1, rule="gaussian")
    assert kept.admits(Charge((0,), kept.failure_capacity))
    assert not kept.admits(Charge((0,), kept.failure_capacity + 1))


def test_no_two_blocks_share_a_stream():
    """Learning, choosing and testing draw from streams of their own."""
    keys = []

    def f(x, rng, n):
        keys.append(rng.bit_generator.seed_seq.spawn_key)
        return x + rng.normal(size=(n, 1))

    audit.mechanism(
        f,
        neighbours=(0.0, 0.1),
        epsilon=1.0,
        delta=1e-3,
        samples=200_000,
        vectorized=True,
        score=lambda y: -y[:, 0],
        seed=1,
    )
    assert len(keys) > 4
    assert len(set(keys)) == len(keys)


def test_the_error_probability_of_an_audit_adds_up(monkeypatch):
    spent = []
    tally = empirical.tally
    monkeypatch.setattr(empirical, "tally", lambda e, h, n, alpha: spent.append(alpha) or tally(e, h, n, alpha))
    m = sdp.calibrate("gaussian", sdp.L2(1.0, 1), epsilon=1.0, delta=1e-3)
    audit.mechanism(m, samples=20_000, confidence=0.95, seed=1)
    assert len(spent) > len(empirical.LOOKS)  # several events at each look
    assert sum(spent) == pytest.approx(0.05)


def test_gaussian_noise_is_refused_for_delta_zero():
    with pytest.raises(sdp.DoesNotApplyError, match="delta = 0"):
        sdp.calibrate("gaussian", sdp.L2(1.0, 2), epsilon=1.0, delta=0.0)


def test_both_directions_are_searched():
    """One score in a hundred is told by the second input alone: only the reversed event shows it."""
    first, second = np.zeros(20_000), np.zeros(20_000)
    second[:200] = -5.0
    events = choose(first, second, Claim(1.0, 1e-3))
    assert any(event.reverse and event.threshold > 0 for event in events)


def test_radial_releases_are_smoothed():
    """The Gaussian that hides the rounding of radius and direction is added to every coordinate."""
    law, x = sdp.Radial(3, 2.5, 1.5, 1.0), np.zeros((20_000, 3))
    drawn = law.add_to(x, source(np.random.default_rng(1)))
    plain = law._draw(len(x), source(np.random.default_rng(1)))
    spread = (drawn - plain).std()
    assert spread == pytest.approx(np.hypot(law.smoothing, law.grid / np.sqrt(12)), rel=0.05)


def test_the_rounding_of_a_radial_release_is_counted():
    """Slip and missed probability only ever add to delta, and the reach is at least the exact quotient."""
    law = sdp.Radial(3, 3.0, 2.0, 0.3)
    loss = loss_of(law, sdp.L2(0.1, 3))
    assert (loss.slip, loss.missed) == law.slip
    assert Fraction(loss.base.ratio) >= Fraction(0.1) / Fraction(0.3)
    coarse = replace(loss, slip=0.0, missed=1e-3)
    assert coarse.delta(1.0).upper >= loss.base.delta(1.0).upper + 1e-3


def test_the_chance_of_too_little_noise_is_counted():
    """tau = 2 leaves P(z > 2) = 2.3%: no claim below that holds, with or without the sizes of the data."""
    m = AdaptiveMixing(rows=5, row_bound=1.0, gamma=1e4, eta=1e4, tau=2.0, epsilon=1.0, delta=0.05)
    for sized in (m, replace(m, records=10, dim=2)):
        assert 0.0227 < sized.loss.delta(1.0).upper < 0.024


def test_sampling_keeps_to_the_relation_of_its_mechanism():
    _, sensitivity = sdp.L2(1.0, 2).clip(np.zeros((3, 2)), adjacency="zero-out")
    m = sdp.calibrate("gaussian", sensitivity, epsilon=1.0, delta=1e-6)
    assert subsample(m, 0.1, adjacency="zero-out").adjacency == "zero-out"
    with pytest.raises(ValueError, match="'add-remove' was asked for"):
        subsample(m, 0.1, adjacency="add-remove")
