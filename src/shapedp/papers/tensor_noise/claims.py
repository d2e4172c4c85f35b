"""Claims of the paper on tensor-valued queries: its theorems hold and are loose; two printed steps do not."""

from __future__ import annotations

import math

import numpy as np

from shapedp.mechanisms import Additive
from shapedp.noise import TensorGaussian
from shapedp.papers.tensor_noise import recipes
from shapedp.papers.tensor_noise.recipes import idn, tvg, udn
from shapedp.papers.values import Values, unit_claim
from shapedp.privacy import GaussianLoss, loss_of
from shapedp.sensitivity import L2

_CLAIM = unit_claim({"epsilon": 1.0, "delta": 1e-5})
_FACTORS = (np.array([[1.0, 0.5], [0.2, 2.0]]), np.array([[1.0, 0.3, 0.1], [0.0, 0.7, 0.2], [0.4, 0.0, 1.5]]))


def _worth(mechanism: Additive) -> Values:
    """mu of the recipe, the mu its claim allows, and its error over that of noise calibrated exactly."""
    loss = mechanism.loss
    assert isinstance(loss, GaussianLoss)
    allowed = GaussianLoss.calibrate(mechanism.epsilon, mechanism.delta).mu
    return {"mu": loss.mu, "mu_allowed": allowed, "variance_over_exact": (allowed / loss.mu) ** 2}


def theorem_1(p: Values) -> Values:
    return _worth(tvg(dim=int(p["entries"]), **unit_claim(p)))


def theorem_2(p: Values) -> Values:
    return _worth(udn(shape=(int(p["first"]), int(p["rest"])), **unit_claim(p)))


def theorem_3(p: Values) -> Values:
    shape = (int(p["first"]), int(p["rest"]))
    made = idn(shape=shape, **unit_claim(p))
    norm = float(np.linalg.norm(1 / made.law.modes[0].scales)) if isinstance(made.law, TensorGaussian) else math.nan
    worth = _worth(made)
    return {**worth, "frobenius_over_mu": norm / math.sqrt(shape[0]) / worth["mu"]}


def mvg(p: Values) -> Values:
    return _worth(recipes.mvg(shape=(int(p["rows"]), int(p["columns"])), **unit_claim(p)))


def lemma_2(p: Values) -> Values:
    """|Y x_1 U_1 x_2 U_2| over |Y| |U_1|_F |U_2|_F: the largest, by spectral norms, and for factors of rank 1."""
    spectral, frobenius = (math.prod(float(np.linalg.norm(u, kind)) for u in _FACTORS) for kind in (2, "fro"))
    column = np.full((3, 1), p["entry"]) @ np.ones((1, 3))
    rank_1 = float(np.linalg.norm(column, 2) / np.linalg.norm(column, "fro"))
    return {"largest_over_bound": spectral / frobenius, "rank_1_over_bound": rank_1}


def equation_10(p: Values) -> Values:
    """With a 1 x 1 factor sigma the largest <D', Q'>/(s zeta) is 1/sigma; the printed bound is 1/sigma^2."""
    return {"largest": 1 / p["sigma"], "bound": 1 / p["sigma"] ** 2}


def equation_25(p: Values) -> Values:
    weights = [np.array([1.0, p["ratio"]]), np.array([1.0, 2.0, 3.0])]
    law = tvg(shape=(2, 3), weights=weights, **_CLAIM).law
    even = tvg(shape=(2, 3), **_CLAIM).law
    entries = np.multiply.outer(*weights).reshape(-1)
    assert isinstance(law, TensorGaussian)
    budget = math.prod(float(np.square(1 / mode.scales).sum()) for mode in law.modes)
    printed = math.prod(float(np.sqrt(w).sum()) for w in weights) ** 2 / budget
    error = law.weighted_second_moment(entries)
    return {"error_over_printed": error / printed, "error_over_isotropic": error / even.weighted_second_moment(entries)}


def corollary_1(p: Values) -> Values:
    apart, merged = TensorGaussian(_FACTORS), TensorGaussian([np.kron(*_FACTORS)])
    first, second = loss_of(apart, L2(p["radius"], shape=(2, 3))), loss_of(merged, L2(p["radius"], 6))
    return {"delta_apart": first.delta(1.0).upper, "delta_merged": second.delta(1.0).upper}


def corollary_1_proof(p: Values) -> Values:
    inverses = math.prod(float(np.linalg.norm(np.linalg.inv(u * p["scale"]))) ** 2 for u in _FACTORS)
    whole = np.kron(*_FACTORS) * p["scale"] ** 2
    return {"product_of_inverses": inverses, "square_of_whole": float(np.linalg.norm(whole)) ** 2}


def corollary_2(p: Values) -> Values:
    first, second = np.array([1.0, p["ratio"]]), np.array([1.0, 2.0, 3.0])
    apart = tvg(shape=(2, 3), weights=[first, second], **_CLAIM)
    entries = np.multiply.outer(first, second).reshape(-1)
    flat = tvg(dim=6, weights=[entries], **_CLAIM)
    errors = [one.law.weighted_second_moment(entries) for one in (apart, flat)]
    return {"error_apart": errors[0], "error_flat": errors[1]}


def theorem_b1(p: Values) -> Values:
    """The trace of the big covariance, rectangular factors included."""
    factors = [p["scale"] * _FACTORS[0], np.hstack([_FACTORS[1], np.ones((3, 2))])]
    root = np.kron(*factors)
    trace = float(np.trace(root @ root.T))
    return {
        "trace": trace,
        "product_of_squares": math.prod(float(np.linalg.norm(u)) ** 2 for u in factors),
        "law": TensorGaussian(factors).second_moment,
    }


def theorem_d1(p: Values) -> Values:
    """I entries, each released with (epsilon, delta): together a Gaussian loss of sqrt(I) mu."""
    mu = GaussianLoss.calibrate(p["epsilon"], p["delta"]).mu * math.sqrt(p["entries"])
    exact = GaussianLoss(mu).epsilon(p["entries"] * p["delta"]).upper
    return {"claimed": p["entries"] * p["epsilon"], "exact": exact}


def theorem_d2(p: Values) -> Values:
    """The printed sampling rate against the exact amplification log(1 + q (e^e* - 1))."""
    target, base = p["epsilon"], p["base"]
    rate = math.expm1(target) / (math.exp(base) + math.exp(target) - math.exp(target - base) - 1)
    return {"claimed": target, "rate": rate, "exact": math.log1p(rate * math.expm1(base))}
