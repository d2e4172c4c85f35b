"""Claims of the paper on independent, non-identical noise, sections III to V: the numbers that decide them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shapedp.mechanisms import Additive, calibrate
from shapedp.noise import Gaussian
from shapedp.numerics.arrays import Floats
from shapedp.papers.inid_noise import recipes as inid
from shapedp.papers.values import Values
from shapedp.privacy import loss_of
from shapedp.sensitivity import Box

_PROFILE = np.array([0.85, 0.15, 2.0, 0.6])
_PURE = {"epsilon": 1.0}
_MIXED = {"epsilon": 1.0, "delta": 1e-6}


def profile(name: str, dim: int, norm: int) -> Floats:
    """A profile of section V, of unit l1 or l2 norm."""
    i = np.arange(1.0, dim + 1)
    raw = {"uniform": np.ones(dim), "linear": i, "quadratic": i**2, "exponential": np.exp(i - dim)}[name]
    return np.asarray(raw / np.linalg.norm(raw, norm))


def _made(recipe: Callable[..., Additive], bounds: ArrayLike, p: Values) -> Additive:
    """The recipe at the claim of `p`; pure where that has no delta."""
    return recipe(profile=bounds, epsilon=p["epsilon"], delta=p.get("delta", 0.0))


def _error(recipe: Callable[..., Additive], bounds: ArrayLike, p: Values) -> float:
    return _made(recipe, bounds, p).expected_squared_error


def _decibel(ratio: float) -> float:
    return 10 * math.log10(ratio)


def lemma_3(p: Values) -> Values:
    law = Gaussian(np.array([3.0, 1.0, 9.0, 2.0]))
    mu = math.sqrt(float(np.square(_PROFILE / law.scales).sum()))
    inside = max(loss_of(law, Box(_PROFILE * t)).delta(p["epsilon"]).upper for t in (0.25, 0.5, 0.75))
    return {"mu": mu, "exact": loss_of(law, Box(_PROFILE)).delta(p["epsilon"]).upper, "inside": inside}


def theorem_4(p: Values) -> Values:
    found = _made(inid.inid_gaussian, _PROFILE, p)
    formula = float(_PROFILE.sum()) ** 2 / inid.bisection_mu(p["epsilon"], p["delta"]) ** 2
    best = calibrate("gaussian", Box(_PROFILE), epsilon=p["epsilon"], delta=p["delta"])
    return {
        "delta": found.certificate.bracket.upper,
        "over_formula": found.expected_squared_error / formula,
        "over_best": found.expected_squared_error / best.expected_squared_error,
    }


def theorem_5(p: Values) -> Values:
    found = _made(inid.inid_laplace, _PROFILE, p)
    formula = 2 * float((_PROFILE ** (2 / 3)).sum()) ** 3 / p["epsilon"] ** 2
    return {
        "delta": found.certificate.bracket.upper,
        "over_formula": found.expected_squared_error / formula,
        "over_iid": found.expected_squared_error / _error(inid.iid_laplace, _PROFILE, p),
    }


def corollary_6(p: Values) -> Values:
    relaxed = _made(inid.inid_laplace_approximate, np.ones(int(p["dim"])), p)
    return {"claimed": p["delta"], "delta": relaxed.certificate.bracket.upper}


def insignificant(p: Values) -> Values:
    bounds = np.ones(int(p["dim"]))
    pure = _error(inid.inid_laplace, bounds, {"epsilon": p["epsilon"]})
    exact = calibrate("laplace", Box(bounds), epsilon=p["epsilon"], delta=p["delta"])
    return {
        "corollary_over_pure": _error(inid.inid_laplace_approximate, bounds, p) / pure,
        "exact_over_pure": exact.expected_squared_error / pure,
    }


def remark_4(p: Values) -> Values:
    """Theorem 4's scales for the profile alpha l, used on the profile l as the remark says."""
    printed = _made(inid.inid_gaussian, p["alpha"] * _PROFILE, p)
    return {"claimed": p["delta"], "exact": loss_of(printed.law, Box(_PROFILE)).delta(p["epsilon"]).lower}


def spr(p: Values) -> Values:
    return {
        "gaussian": _error(inid.spr_gaussian, _PROFILE, p) / _error(inid.iid_gaussian, _PROFILE, p),
        "laplace": _error(inid.spr_laplace, _PROFILE, p) / _error(inid.iid_laplace, _PROFILE, p),
    }


def theorem_7(p: Values) -> Values:
    bounds = profile("quadratic", int(p["dim"]), 2)
    nu, k, top = inid.disparity(bounds), bounds.size, float(bounds.max())
    mu = inid.bisection_mu(**_MIXED)
    return {
        "nu_squared": nu**2,
        "gaussian": _error(inid.inid_gaussian, bounds, _MIXED) / (k**2 * top**2 / mu**2),
        "laplace": _error(inid.inid_laplace, bounds, _PURE) / (2 * k**3 * top**2),
    }


def majorization(p: Values) -> Values:
    """A Robin Hood transfer makes the profile (its squares for Gaussian noise) less disparate, and the error larger."""
    sharp = np.array([4.0, 1.0, 0.5])
    flat = sharp + p["gift"] * np.array([-1.0, 0.0, 1.0])
    gaussian = [_error(inid.inid_gaussian, np.sqrt(one), _MIXED) for one in (sharp, flat)]
    laplace = [_error(inid.inid_laplace, one, _PURE) for one in (sharp, flat)]
    return {
        "majorizes": float(inid.majorizes(sharp, flat)),
        "gaussian": gaussian[0] / gaussian[1],
        "laplace": laplace[0] / laplace[1],
    }


def lemma_11(p: Values) -> Values:
    """The least slope of phi over a grid of mu, and how far a difference quotient is from the printed derivative."""
    mu = np.geomspace(p["least"], p["most"], 40)
    step = 1e-5 * mu
    slope = (_phi(mu + step, p["epsilon"]) - _phi(mu - step, p["epsilon"])) / (2 * step)
    printed = np.exp(-((p["epsilon"] / mu - mu / 2) ** 2) / 2) / math.sqrt(2 * math.pi)
    return {"least_slope": float(slope.min()), "furthest_from_printed": float(abs(slope / printed - 1).max())}


def _phi(mu: Floats, epsilon: float) -> Floats:
    lower, upper = special.ndtr(mu / 2 - epsilon / mu), special.ndtr(-mu / 2 - epsilon / mu)
    return np.asarray(lower - math.exp(epsilon) * upper)


def appendix_b(p: Values) -> Values:
    low, high = inid.bisection_bracket(p["epsilon"], p["delta"])
    return {"low": low, "mu": inid.bisection_mu(p["epsilon"], p["delta"]), "high": high}


def reductions(p: Values) -> Values:
    """What shaping saves, in decibel, and where the error of the exponential profile saturates."""
    out, pure = {}, {"epsilon": p["epsilon"]}
    for name in ("linear", "quadratic", "exponential"):
        one, two = (profile(name, int(p["dim"]), norm) for norm in (1, 2))
        out[f"gaussian_{name}_db"] = _decibel(_error(inid.iid_gaussian, two, p) / _error(inid.inid_gaussian, two, p))
        out[f"laplace_{name}_db"] = _decibel(_error(inid.iid_laplace, one, pure) / _error(inid.inid_laplace, one, pure))
    saturated = _error(inid.inid_gaussian, profile("exponential", 200, 2), p)
    return {**out, "gaussian_saturation_db": _decibel(saturated)}


def laplace_saturation(p: Values) -> Values:
    level = _error(inid.inid_laplace, profile("exponential", int(p["dim"]), 1), p)
    return {"claimed_db": 14.243, "level_db": _decibel(level)}


def crossing(p: Values) -> Values:
    """In which dimensions pure Laplace noise costs more than Gaussian noise."""

    def above(name: str, dim: int) -> bool:
        bounds = profile(name, dim, 2)
        return _error(inid.inid_laplace, bounds, {"epsilon": p["epsilon"]}) > _error(inid.inid_gaussian, bounds, p)

    dims = range(1, int(p["last"]) + 1)
    uniform = [dim for dim in dims if above("uniform", dim)]
    return {
        "first": float(uniform[0]),
        "count": float(len(uniform)),
        "exponential": float(sum(above("exponential", dim) for dim in dims)),
    }


def table_2(p: Values) -> Values:
    """Expected l1 errors of three laws, at six values of epsilon."""
    out: dict[str, float] = {}
    bounds = np.array([0.85, 0.15])
    for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
        laws = {
            "staircase": inid.staircase(dim=2, sensitivity=1.0, epsilon=epsilon, delta=0.0),
            "iid": inid.iid_laplace(profile=bounds, epsilon=epsilon, delta=0.0),
            "inid": calibrate("laplace", Box(bounds), epsilon=epsilon, delta=p["delta"], error="absolute"),
        }
        out |= {f"{name}_{epsilon:g}": made.expected_error("absolute") for name, made in laws.items()}
    return out
