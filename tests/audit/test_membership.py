"""Membership inference from scores, and both attacks on a classifier that memorises or forgets."""

from __future__ import annotations

import numpy as np
import pytest

from shapedp.audit.membership import epsilon_bound, likelihood_ratio_attack, membership, shadow_attack
from shapedp.privacy import GaussianLoss


def log_probabilities(logits):
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


class Neighbour:
    """Class means plus, for a memorising model, a bonus for the label of records it saw; noise hides it."""

    def __init__(self, n, bonus, rng):
        self.y = rng.integers(3, size=n)
        self.x = np.eye(3)[self.y] + rng.normal(size=(n, 3))
        self.bonus, self.rng = bonus, rng

    def __call__(self, indices):
        means = np.stack([self.x[indices][self.y[indices] == k].mean(0) for k in range(3)])
        logits = -((self.x[:, None] - means) ** 2).sum(2)
        logits[indices, self.y[indices]] += self.bonus
        return log_probabilities(logits + self.rng.normal(scale=0.3, size=logits.shape))


def test_auc_counts_pairs_and_its_interval_covers():
    rng = np.random.default_rng(1)
    one, nought = rng.normal(0.3, 1, 300), np.round(rng.normal(size=200), 1)
    found = membership(np.round(one, 1), nought)
    pairs = np.sign(np.subtract.outer(np.round(one, 1), nought))
    assert found.auc == pytest.approx((pairs.mean() + 1) / 2, abs=1e-12)
    truth = 0.58405  # Phi(0.3/sqrt 2)
    hits = 0
    for _ in range(400):
        found = membership(rng.normal(0.3, 1, 150), rng.normal(size=150))
        hits += found.lower <= truth <= found.upper
    assert 360 <= hits <= 398  # Binomial(400, 0.95) outside: 4e-5 below, 1e-6 above


def test_tailored_auc_and_power_at_low_rates():
    others = np.arange(1000.0)
    found = membership(np.full(50, 990.5), others, rates=(0.001, 0.01, 0.1))
    assert [p.found for p in found.powers] == [0.0, 1.0, 1.0]
    assert found.powers[1].lower == pytest.approx(0.025 ** (1 / 50))
    assert found.tailored_auc == found.auc
    assert membership(-others, others).tailored_auc == 0.5
    assert found.to_json()["tailored_auc"] == found.auc
    assert "AUC" in found.explain()


def test_a_wide_interval_has_not_found_nothing():
    rng = np.random.default_rng(8)
    few, many = (membership(rng.normal(size=n), rng.normal(size=n)) for n in (10, 20_000))
    assert few.lower < 0.5 < few.upper
    assert not few.found_nothing(0.02)
    assert many.found_nothing(0.02), many.explain()
    assert not membership(rng.normal(0.1, 1, 20_000), rng.normal(size=20_000)).found_nothing(0.02)


@pytest.mark.parametrize("attack", [shadow_attack, likelihood_ratio_attack])
def test_attacks_find_a_model_that_memorises_and_nothing_else(attack):
    rng = np.random.default_rng(2)
    model = Neighbour(4000, 1.0, rng)
    caught = attack(model, model.y, rng=rng)
    assert caught.lower > 0.6, caught.explain()
    model = Neighbour(4000, 0.0, rng)
    clean = attack(model, model.y, rng=rng, confidence=0.999999)
    assert clean.found_nothing(0.1), clean.explain()  # half the interval is 0.045 at this confidence
    assert not caught.found_nothing(0.1)


def test_offline_ratio_finds_it_too():
    rng = np.random.default_rng(3)
    model = Neighbour(3000, 1.0, rng)
    found = likelihood_ratio_attack(model, model.y, shadows=8, offline=True, rng=rng)
    assert found.lower > 0.6, found.explain()
    with pytest.raises(ValueError, match="complementary pairs"):
        likelihood_ratio_attack(model, model.y, shadows=5, rng=rng)


@pytest.mark.parametrize(("delta", "share"), [(1e-5, 0.25), (0.1, 0.6)])
def test_the_epsilon_bound_holds_and_is_of_use(delta, share):
    rng, mu = np.random.default_rng(4), 2.0
    exact = GaussianLoss(mu).epsilon(delta).upper
    bounds = []
    for _ in range(20):
        scores = rng.normal(mu, 1, 4000), rng.normal(size=4000)
        bounds.append(epsilon_bound(*scores, delta=delta, confidence=0.999))
    assert max(bounds) <= exact  # each is above with probability at most 1e-3
    assert np.median(bounds) > share * exact


def test_no_difference_gives_no_bound():
    rng = np.random.default_rng(6)
    assert epsilon_bound(rng.normal(size=500), rng.normal(size=500), delta=1e-5, confidence=0.999) == 0


@pytest.mark.parametrize("scores", [[1.0], [np.nan, 1.0], [[1.0, 2.0]]])
def test_bad_scores_are_refused(scores):
    with pytest.raises(ValueError):
        membership(scores, [0.0, 1.0])


def test_bad_outputs_are_refused():
    rng = np.random.default_rng(5)
    with pytest.raises(ValueError, match="log-probabilities"):
        shadow_attack(lambda indices: np.ones((20, 2)), np.zeros(20, dtype=int), rng=rng)
    with pytest.raises(ValueError, match="whole numbers"):
        shadow_attack(lambda indices: np.ones((20, 2)), np.zeros(20), rng=rng)
