"""Statements of older work that the papers compare with or build on: what decides them is computed here."""

from __future__ import annotations

import math

from shapedp.accounting import ACCOUNTANTS, BareLoss, amplify, compose, he_theorem_3, subsample
from shapedp.mechanisms import Additive
from shapedp.papers.classics import recipes
from shapedp.papers.inid_noise.recipes import staircase as staircase_noise
from shapedp.papers.values import Values, unit_claim
from shapedp.privacy import Bracket, GaussianLoss


def _exact_delta(made: Additive) -> Values:
    return {"claimed": made.delta, "exact": made.certificate.bracket.upper}


def classic(p: Values) -> Values:
    return _exact_delta(recipes.classic_gaussian(dim=int(p["dim"]), **unit_claim(p)))


def analytic(p: Values) -> Values:
    return _exact_delta(recipes.analytic_gaussian(dim=int(p["dim"]), **unit_claim(p)))


def _pure(made: Additive) -> Values:
    return {"claimed": made.epsilon, "exact": made.loss.epsilon(0.0).upper}


def laplace(p: Values) -> Values:
    return _pure(recipes.laplace(dim=int(p["dim"]), **unit_claim(p)))


def staircase(p: Values) -> Values:
    made, plain = (recipe(dim=1, **unit_claim(p)) for recipe in (staircase_noise, recipes.laplace))
    return {**_pure(made), "error_over_laplace": made.expected_error("absolute") / plain.expected_error("absolute")}


def _adassp_mu(p: Values) -> float:
    """mu of one of AdaSSP's three Gaussian releases, of scale sqrt(log(6/delta))/(epsilon/3) for sensitivity 1."""
    return p["epsilon"] / 3 / math.sqrt(math.log(6 / p["delta"]))


def adassp(p: Values) -> Values:
    """All three releases together."""
    each = _adassp_mu(p)
    exact = GaussianLoss(math.sqrt(3) * each).delta(p["epsilon"]).upper
    enough = GaussianLoss.calibrate(p["epsilon"], p["delta"]).mu / math.sqrt(3)
    return {"claimed": p["delta"], "exact": exact, "noise_over_needed": enough / each}


def adassp_alone(p: Values) -> Values:
    return {"claimed": p["delta"] / 3, "exact": GaussianLoss(_adassp_mu(p)).delta(p["epsilon"] / 3).lower}


def amplification(p: Values) -> Values:
    """The rule for the worst (epsilon, delta) mechanism, against that mechanism sampled exactly."""
    epsilon, delta = amplify(p["epsilon"], p["delta"], p["rate"])
    sampled = subsample(BareLoss(p["epsilon"], p["delta"]), p["rate"], adjacency="add-remove")
    return {"epsilon": epsilon, "claimed": delta, "exact": sampled.delta(epsilon).upper}


def theorem_3(p: Values) -> Values:
    """The composition rule of He et al., against the exact composition of the worst mechanisms."""
    times = int(p["times"])
    epsilon, delta = he_theorem_3(p["epsilon"], p["delta"], times, p["constant"])
    best = compose([(BareLoss(p["epsilon"], p["delta"]), times)]).delta(epsilon)
    total, half = times * p["epsilon"], (epsilon + times * p["epsilon"]) / 2
    printed = times * (math.log(2 * total / (total - epsilon)) - math.log1p(math.exp(p["epsilon"]))) - half
    printed -= half * math.log((total + epsilon) / (total - epsilon))
    found = {"claimed": delta, "exact_at_least": best.lower}
    return {"epsilon": epsilon, **found, "log10_of_printed_delta": printed / math.log(10)}


def _training(p: Values, accountant: str) -> tuple[float, Bracket]:
    """The epsilon of DP-SGD by an accountant, and exactly."""
    items = [(subsample(GaussianLoss(1 / p["sigma"]), p["rate"]), int(p["steps"]))]
    exact = compose(items, accuracy=1e-3).epsilon(p["delta"])
    return ACCOUNTANTS[accountant].answer(items, p["delta"]).epsilon, exact


def central_limit(p: Values) -> Values:
    claimed, exact = _training(p, "clt")
    return {"claimed": claimed, "exact_at_least": exact.lower}


def renyi(p: Values) -> Values:
    claimed, exact = _training(p, "renyi")
    return {"claimed": claimed, "exact": exact.upper}
