"""The default rule: plain addition or the Gaussian rule, whichever is within its share; adaptive spends included."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.stats import norm

import shapedp as sdp
from shapedp.accounting import BareLoss
from shapedp.ledger import BudgetExceededError, Charge, Ledger, make_filter
from shapedp.privacy.losses import GaussianLoss, LaplaceLoss


class Priced:
    """A mechanism that is only its loss and its claim."""

    def __init__(self, loss, epsilon, delta):
        self.loss = loss
        self.certificate = sdp.certify(loss, epsilon=epsilon, delta=delta)


@functools.cache
def cap_of(epsilon, delta):
    return make_filter(epsilon=epsilon, delta=delta)


def nothing(cap):
    return Charge((0,) * len(cap.capacities))


def test_a_pure_release_costs_what_addition_says():
    """Under the Gaussian rule one release of epsilon 0.5 took 193% of a cap of (2, 1e-6)."""
    cap = make_filter(epsilon=2.0, delta=1e-6)
    assert cap.rule == "either"
    half = cap.charge(Priced(LaplaceLoss(0.5), 0.5, 0.0))
    assert cap.affords(nothing(cap), half) == 4
    assert cap.spent(half) == pytest.approx(0.25)


def test_the_whole_cap_at_once_and_nothing_after_it(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", epsilon=1.0, delta=1e-6, adjacency="replace")
    whole = sdp.calibrate("gaussian", sdp.L2(1.0, dim=2, adjacency="replace"), epsilon=1.0, delta=1e-6)
    small = sdp.calibrate("laplace", sdp.L1(1.0, dim=2, adjacency="replace"), epsilon=1e-3, delta=0.0)
    assert ledger.affords("d", whole) == 1
    with pytest.raises(BudgetExceededError), ledger.spend("d", whole, count=2):
        pass
    with ledger.spend("d", whole) as spend:
        spend.release([1.0, 2.0])
    assert ledger.status("d").spent == 1.0
    for mechanism in (whole, small):
        with pytest.raises(BudgetExceededError), ledger.spend("d", mechanism):
            pass


def test_after_a_small_spend_the_whole_cap_does_not_fit():
    cap = make_filter(epsilon=1.0, delta=1e-6)
    whole = cap.charge(sdp.calibrate("gaussian", sdp.L2(1.0, dim=1), epsilon=1.0, delta=1e-6))
    small = cap.charge(Priced(LaplaceLoss(1e-6), 1e-6, 0.0))
    assert cap.admits(whole)
    assert not cap.admits(whole.plus(small))
    assert not cap.admits(small.plus(whole))


@functools.cache
def spends(cap):
    """30 random spends: each with its charge, and what it tells of a bit as (P, Q) over finitely many answers."""
    rng = np.random.default_rng(7)
    made = [spend(rng, cap) for _ in range(30)]
    return [(mechanism, cap.charge(mechanism), told) for mechanism, told in made]


def spend(rng, cap):
    kind = int(rng.integers(3))
    if kind == 0:
        epsilon = float(cap.epsilon * rng.uniform(0.05, 0.7))
        heads = math.exp(epsilon) / (1 + math.exp(epsilon))
        return Priced(LaplaceLoss(epsilon), epsilon, 0.0), np.array([[heads, 1 - heads], [1 - heads, heads]])
    if kind == 1:
        mu = float(rng.uniform(0.05, 0.6))
        claim = float(rng.uniform(0.02, 0.2)) * cap.delta
        epsilon = GaussianLoss(mu).epsilon(claim).upper * (1 + 1e-9) + 1e-12
        cuts = np.concatenate([[-np.inf], np.sort(rng.normal(size=3) + rng.choice([0.0, 2.0])), [np.inf]])
        told = np.array([np.diff(norm.cdf(cuts - mu)), np.diff(norm.cdf(cuts))])
        return Priced(GaussianLoss(mu), epsilon, claim), told
    epsilon, delta = float(cap.epsilon * rng.uniform(0.0, 0.5)) + 1e-9, float(cap.delta * rng.uniform(0.01, 0.4))
    heads = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    told = np.array([[delta, heads, 1 - delta - heads, 0.0], [0.0, 1 - delta - heads, heads, delta]])
    return Priced(BareLoss(epsilon, delta), epsilon, delta), told


def play(rng, cap, totals, p, q, depth):
    """Spends chosen anew after every answer, until refused or tired: the (P, Q) of all transcripts."""
    for _ in range(3):
        _, charge, told = spends(cap)[int(rng.integers(30))]
        if depth and cap.admits(totals.plus(charge)):
            parts = [
                play(rng, cap, totals.plus(charge), p * one, q * other, depth - 1)
                for one, other in told.T
                if one or other
            ]
            return [leaf for part in parts for leaf in part]
    return [(p, q)]


def test_no_adaptive_analyst_passes_the_cap():
    """1,000 random strategies, every transcript enumerated: the exact delta is at most the cap's."""
    worst = 0.0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        cap = cap_of(float(rng.choice([0.3, 1.0, 2.0])), float(rng.choice([1e-3, 0.05])))
        leaves = np.array(play(rng, cap, nothing(cap), 1.0, 1.0, int(rng.integers(1, 6))))
        assert leaves.sum(axis=0) == pytest.approx([1.0, 1.0])
        for p, q in (leaves.T, leaves.T[::-1]):
            delta = np.maximum(p - math.exp(cap.epsilon) * q, 0).sum()
            assert delta <= cap.delta * (1 + 1e-9)
            worst = max(worst, delta / cap.delta)
    assert worst > 0.3  # the strategies do come near


def strategy(share):
    """Gaussian noise first; then, as its answer suggests, randomised response or Gaussian noise, up to (4, 1e-3).

    Plain addition and the Gaussian rule are each used up at `share` of delta. Returns the three spends and delta(4).
    """
    epsilon, delta = 4.0, 1e-3 * share
    mu = GaussianLoss.calibrate(epsilon, delta).mu * (1 - 1e-9)
    first, second = 0.1 * mu, math.sqrt(0.99) * mu
    claim = GaussianLoss(first).epsilon(delta).upper * (1 + 1e-9)
    rest = (epsilon - claim) * (1 - 1e-9)
    z = np.linspace(-8, 8 + first, 4001)
    p, q = norm.pdf(z - first) * (z[1] - z[0]), norm.pdf(z) * (z[1] - z[0])
    heads = 1 / (1 + math.exp(-rest))
    added = sum(np.maximum(p * one - math.exp(epsilon) * q * (1 - one), 0) for one in (heads, 1 - heads))
    left = epsilon - (first * z - first**2 / 2)
    gaussian = p * (norm.cdf(second / 2 - left / second) - np.exp(left) * norm.cdf(-second / 2 - left / second))
    spends = (GaussianLoss(first), claim, delta), (LaplaceLoss(rest), rest, 0.0), (GaussianLoss(second), 8.0, 1e-3)
    return [Priced(*one) for one in spends], np.maximum(added, gaussian).sum()


def test_the_shares_are_needed():
    """With the whole delta for each rule this analyst reaches 1.9 times the cap's; with half, nearly the cap's."""
    cap = make_filter(epsilon=4.0, delta=1e-3)
    for share, reached, granted in ((1.0, 1.9, False), (0.5, 0.9, True)):
        mechanisms, delta = strategy(share)
        first, pure, gaussian = map(cap.charge, mechanisms)
        assert delta > reached * cap.delta
        assert bool(delta <= cap.delta) == granted
        assert (cap.admits(first.plus(pure)), cap.admits(first.plus(gaussian))) == (granted, granted)


def test_what_addition_allows_fits_and_what_is_granted_composes():
    """1,000 random mixed sequences: within (epsilon, delta/2) by addition never refused; granted ones hold composed."""
    refused = composed = 0
    for seed in range(1000):
        rng = np.random.default_rng([1, seed])
        cap = cap_of(float(rng.choice([0.5, 2.0])), float(rng.choice([1e-6, 1e-3])))
        totals, epsilon, delta, granted = nothing(cap), 0.0, 0.0, []
        for _ in range(int(rng.integers(1, 9))):
            mechanism, charge, _ = spends(cap)[int(rng.integers(30))]
            claim = mechanism.certificate
            fits = cap.admits(totals.plus(charge))
            sums, shares = (epsilon + claim.epsilon, delta + claim.delta), (cap.epsilon, cap.delta / 2)
            if all(one <= share * (1 - 1e-9) for one, share in zip(sums, shares, strict=True)):
                assert fits
            if not fits:
                refused += 1
                continue
            totals = totals.plus(charge)
            (epsilon, delta), granted = sums, [*granted, mechanism.loss]
        if granted and seed % 40 == 0:
            composed += 1
            assert sdp.compose(granted).delta(cap.epsilon).lower <= cap.delta
    assert refused > 500
    assert composed > 15


def test_ledgers_of_the_gaussian_rule_keep_it(tmp_path):
    where = tmp_path / "old.db"
    options = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "replace"}
    Ledger.create(where, dataset="d", rule="gaussian", **options)
    again = Ledger.open(where)
    assert again.status("d").filter.rule == "gaussian"
    again.add("e", **options)
    assert again.status("e").filter.rule == "either"
    assert Ledger.open(where).status("e").filter == make_filter(epsilon=1.0, delta=1e-6)
