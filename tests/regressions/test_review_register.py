"""A second reading of the register: what a refuted certificate says about one step, and what a sketch shows."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

import shapedp as sdp
from shapedp.papers.gaussian_mixing.losses import PublishedMixingLoss, ThresholdLoss
from shapedp.papers.gaussian_mixing.recipes import rdp_gamma
from shapedp.papers.register import CLAIMS
from shapedp.papers.register.condition import holds
from shapedp.papers.register.seal import unsealed

pytest.importorskip("torch")
pytest.importorskip("sqlalchemy")


def noise(**changed):
    return sdp.torch.PublishedGeoDP(**{"sigma": 1.0, "beta": 0.1, "batch": 60, "delta": 1e-5, **changed})


def plan(steps):
    layout = sdp.torch.Layout.single(42)
    return sdp.torch.TrainingPlan(layout, 600, 60, sdp.torch.Flat(1.0), noise(), steps=steps)


def test_a_claim_that_one_step_breaks_says_whose_bracket_it_shows():
    found = plan(10).certificate
    assert found.verdict == "refuted"
    assert found.bracket.upper < 0.2  # ten steps at rate 0.1 have a delta of 0.65
    assert "one step alone; all 10 give away more" in found.explain()
    assert "one step" not in plan(1).certificate.explain()


def test_a_ledger_refuses_a_plan_that_gives_records_away(tmp_path, monkeypatch):
    budget = {"epsilon": 10.0, "delta": 1e-4, "adjacency": "add-remove"}
    ledger = sdp.ledger.Ledger.create(tmp_path / "ledger.db", dataset="data", **budget)
    with pytest.raises(sdp.ledger.BudgetExceededError), ledger.spend("data", plan(1).account().plan()):
        pass
    monkeypatch.setattr(sdp.accounting.Plan, "epsilon", lambda *_: sdp.privacy.Bracket(1.0, math.inf))
    with pytest.raises(sdp.ledger.SpendRefusedError, match="no finite epsilon at the delta of the cap"):
        ledger.spend("data", plan(1).account().plan())
    with pytest.raises(sdp.ledger.SpendRefusedError, match="refuted"):
        ledger.spend("data", plan(10).certificate)
    assert list(ledger.history("data")) == []


def test_a_window_above_one_is_refused_at_once():
    with pytest.raises(ValueError, match=r"beta must lie in \(0, 1\]"):
        noise(beta=2.0)


def mixing(k, gamma, epsilon):
    """delta of mixing by the chi-square law, the record's row first."""
    left = 1 - 1 / gamma
    at = 2 * (epsilon - k / 2 * math.log(left)) / (1 / left - 1)
    return stats.chi2.sf(at, k) - math.exp(epsilon) * stats.chi2.sf(at / left, k)


def test_the_public_code_of_algorithm_5_is_decided():
    k, epsilon, delta = 1000, 1.0, 1e-6
    gamma, slack = rdp_gamma(k, epsilon / 2, delta), 2 * math.log(1 / delta)
    found = ThresholdLoss(k, gamma / 2, slack, 2.0, gamma).delta(epsilon)
    least = gamma / 2 + slack + np.linspace(-2, 1, 61)
    p, q = stats.laplace.cdf(np.linspace(-1, 0.5, 61)), stats.laplace.cdf((least - 1 - gamma / 2 - slack) / 2)
    own = max(a * mixing(k, at, epsilon - math.log(a / b)) for a, b, at in zip(p, q, least, strict=True))
    assert found.lower > 80 * delta
    assert found.lower == pytest.approx(own, rel=5e-2)
    assert found.lower <= own * (1 + 1e-9)


def test_what_is_shown_stays_below_what_is_proved():
    epsilon = np.linspace(0.0, 8.0, 33)
    for loss in (
        PublishedMixingLoss(100, 3.0, 80.0, 8.0, 5.4),
        PublishedMixingLoss(100, 3.0, 80.0, 8.0, 5.4, slip=1e-3, wider=1.01, neighbours="replace", most=200.0),
        ThresholdLoss(100, 5.0, 30.0, 4.0, 50.0),
        ThresholdLoss(1, 2.0, 0.1, 0.01, 50.0),
    ):
        lower, upper = loss.profile(epsilon)
        assert (lower <= upper).all()
        assert (lower >= 0).all()
        assert (np.diff(lower) <= 1e-15).all()


def test_the_seal_covers_what_decides_a_claim():
    claim = CLAIMS["product-noise/lemma-9"]
    weaker = replace(claim, judge=partial(holds, "largest <= 1000000000"))
    other = replace(claim, compute=CLAIMS["product-noise/lemma-10"].compute)
    assert unsealed(claim) is None
    assert unsealed(weaker)
    assert unsealed(other)


def test_weights_of_another_size_name_both_forms():
    with pytest.raises(ValueError, match="a vector or a matrix per mode"):
        sdp.recipes.tvg(shape=(2, 3), sensitivity=1.0, epsilon=1.0, delta=1e-5, weights=[np.eye(3), np.ones(3)])
