"""Clopper-Pearson bounds and binomial p-values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shapedp.audit.bounds import LOOKS, SPENDING, binomial_p_values, lower_bound, upper_bound
from shapedp.audit.claim import Claim
from shapedp.audit.events import Event, Tally, choose, tally
from shapedp.privacy import GaussianLoss


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (3, 10), (1, 4_000_000), (20_000, 4_000_000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-3, 1e-9])
def test_bounds_are_those_of_clopper_and_pearson(hits, n, alpha):
    lower, upper = float(lower_bound(hits, n, alpha)), float(upper_bound(hits, n, alpha))
    assert lower <= hits / n <= upper
    if hits:
        assert stats.binom.sf(hits - 1, n, lower) == pytest.approx(alpha, rel=1e-6)
    else:
        assert lower == 0
    if hits < n:
        assert stats.binom.cdf(hits, n, upper) == pytest.approx(alpha, rel=1e-6)
    else:
        assert upper == 1


@pytest.mark.parametrize("p", [1e-3, 0.2, 0.9])
def test_bounds_miss_no_more_often_than_they_say(p):
    """Exactly, by summing over every count: no sampling."""
    n, alpha = 60, 0.01
    counts = np.arange(n + 1)
    mass = stats.binom.pmf(counts, n, p)
    assert mass[lower_bound(counts, n, alpha) > p].sum() <= alpha
    assert mass[upper_bound(counts, n, alpha) < p].sum() <= alpha


@pytest.mark.parametrize(("n", "p"), [(30, 0.5), (50, 0.1), (40, 0.99)])
def test_p_values_are_valid_and_sharp(n, p):
    counts = np.arange(n + 1)
    values = binomial_p_values(counts, n, p)
    mass = stats.binom.pmf(counts, n, p)
    for level in (0.2, 0.05, 0.01):
        assert mass[values <= level].sum() <= level
    for k in (0, n // 2, n):
        tails = stats.binom.cdf(k, n, p), stats.binom.sf(k - 1, n, p)
        assert values[k] == pytest.approx(min(1.0, 2 * min(tails)), rel=1e-9)


def test_the_error_probability_is_spent_once():
    assert sum(SPENDING) == pytest.approx(1.0, abs=1e-12)
    assert len(SPENDING) == len(LOOKS)
    assert LOOKS[-1] == 1


def test_a_tally_splits_alpha_over_both_inputs():
    one = tally(Event(False, 0.0, 1.0), (900, 100), 1000, 0.02)
    assert one.p_lower == pytest.approx(float(lower_bound(900, 1000, 0.01)))
    assert one.q_upper == pytest.approx(float(upper_bound(100, 1000, 0.01)))
    swapped = tally(Event(True, 0.0, 1.0), (100, 900), 1000, 0.02)
    assert (swapped.p_lower, swapped.q_upper) == (one.p_lower, one.q_upper)


def test_bounds_of_a_tally():
    one = Tally(Event(False, 0.0, 1.0), 0.5, 0.1)
    assert one.delta(1.0) == pytest.approx(0.5 - np.e * 0.1)
    assert one.delta(5.0) == 0
    assert one.epsilon(0.1) == pytest.approx(np.log(4))
    assert one.epsilon(0.6) == 0


def test_what_a_point_implies_about_the_profile():
    """(epsilon, delta) implies delta' = delta + (1 - delta)(e^E - e^e)/(1 + e^E): randomised response attains it."""
    claim = Claim(1.0, 0.01)
    at = np.array([0.0, 0.5, 1.0, 2.0])
    e, d = np.exp(1.0), 0.01
    p, q = d + (1 - d) * e / (1 + e), (1 - d) / (1 + e)  # one output's chances under the two inputs
    expected = np.maximum(p - np.exp(at) * q, d)
    np.testing.assert_allclose(claim.delta_at(at), expected, rtol=1e-12)


def test_a_loss_tightens_the_claim_but_never_loosens_it():
    loss = GaussianLoss.calibrate(1.0, 1e-5)
    claim = Claim(1.0, 1e-5, loss)
    at = claim.grid()
    assert (claim.delta_at(at) <= claim.implied(at)).all()
    np.testing.assert_allclose(claim.delta_at(at), np.minimum(claim.implied(at), loss.profile(at)[1]))
    assert claim.broken(0.0, float(claim.delta_at(at)[0])) == "loss"
    assert claim.broken(0.0, float(claim.implied(at)[0])) == "claim"


def test_chosen_events_serve_both_directions():
    rng = np.random.default_rng(1)
    high, low = rng.normal(0.5, 1, 20_000), rng.normal(-0.5, 1, 20_000)
    events = choose(high, low, Claim(0.1, 1e-3))
    assert 1 <= len(events) <= 3
    for event in events:
        p, q = (low, high) if event.reverse else (high, low)
        assert event.hits(p) > event.hits(q)
