"""Claims of the GeoDP paper: privacy of Algorithm 1, and what Theorems 1 to 3, Lemma 1 and the corollaries say."""

from __future__ import annotations

import math

import numpy as np

from shapedp.mechanisms import AngleWindows, MeanAngles, calibrate
from shapedp.mechanisms.angles import polar
from shapedp.noise import Gaussian
from shapedp.numerics.arrays import Floats
from shapedp.numerics.hyperspherical import to_angles
from shapedp.papers.geodp import recipes
from shapedp.papers.geodp.recipes import direction_mse, geodp, model_efficiency, noise_multiplier
from shapedp.papers.values import Values
from shapedp.privacy import GaussianLoss, loss_of
from shapedp.sensitivity import L2


def sensitivity(p: Values) -> Values:
    """How far the direction of the mean turns between C e_1 and C e_2, the other gradients cancelling."""
    d = int(p["dim"])
    first, second = (polar(np.eye(1, d, axis)[0] / p["batch"]) for axis in (0, 1))
    claimed = math.sqrt(d + 2) * p["beta"] * math.pi / p["batch"]
    return {"claimed": claimed, "reached": float(np.linalg.norm(first[1:] - second[1:]))}


def _iteration(p: Values, clip: float, **claim: float) -> recipes.GeoDP:
    return geodp(dim=int(p["dim"]), sensitivity=clip, batch=int(p["batch"]), beta=p["beta"], **claim)  # type: ignore[arg-type]


def algorithm_1(p: Values) -> Values:
    epsilon = noise_multiplier(1.0, p["delta"]) / p["sigma"]
    m = _iteration(p, 0.1, epsilon=epsilon, delta=p["delta"])
    found = {"claimed": p["delta"], "exact_at_least": m.certificate.bracket.lower}
    return {"epsilon": epsilon, "angle_noise": m.spread, **found}


def same_guarantee(p: Values) -> Values:
    """Norm and direction each at mu = 1/sigma, beside DP-SGD at mu = 1/sigma."""
    alone, both = GaussianLoss(1 / p["sigma"]), GaussianLoss(math.sqrt(2) / p["sigma"])
    return {"dp_sgd": alone.epsilon(p["delta"]).upper, "geodp": both.epsilon(p["delta"]).upper}


def budget_share(p: Values) -> Values:
    """The direction's part of mu^2: its sensitivity over its noise is 1/sigma, as is that of the norm."""
    d, sigma, batch = p["dim"], p["sigma"], p["batch"]
    reach = math.sqrt(d + 2) * math.pi / batch
    norm, direction = (1 / batch) / (sigma / batch), reach / (reach * sigma)
    return {"claimed": (d - 1) / d, "share": direction**2 / (direction**2 + norm**2)}


def printed_variance(p: Values) -> Values:
    """The exact delta of variance 2 Delta log(1.25/delta)/epsilon^2."""
    law = Gaussian(math.sqrt(2 * p["sensitivity"] * math.log(1.25 / p["delta"])) / p["epsilon"], 1)
    return {"claimed": p["delta"], "exact": loss_of(law, L2(p["sensitivity"], 1)).delta(p["epsilon"]).lower}


def multiplier(p: Values) -> Values:
    """The exact delta of the Gaussian mechanism where sigma = sqrt(2 log(1.25/delta))/epsilon."""
    epsilon = noise_multiplier(1.0, p["delta"]) / p["sigma"]
    return {"epsilon": epsilon, "claimed": p["delta"], "exact": GaussianLoss(1 / p["sigma"]).delta(epsilon).lower}


def _vectors(p: Values, seed: int, count: int) -> Floats:
    return np.random.default_rng(seed).standard_normal((count, int(p["dim"])))


def theorem_1(p: Values) -> Values:
    noise, gradient, weights, optimum = _vectors(p, 0, 4)
    plain, scale = weights - p["rate"] * gradient, p["rate"] * p["clip"] / int(p["batch"])
    left = model_efficiency(plain - scale * noise, optimum) - model_efficiency(plain, optimum)
    return {"left": left, "right": _difference(p, _vectors(p, 0, 4)).total}


def _difference(p: Values, vectors: Floats) -> recipes.EfficiencyDifference:
    noise, gradient, weights, optimum = vectors
    return recipes.efficiency_difference(noise, gradient, weights, optimum, p["rate"], p["clip"], int(p["batch"]))


def corollary_1(p: Values) -> Values:
    """At the optimum with a zero gradient and noise of its mean square norm."""
    zero = np.zeros(int(p["dim"]))
    parts = _difference(p, np.stack([zero + p["sigma"], zero, zero, zero]))
    return {"magnitude": parts.magnitude, "direction": parts.direction}


def _turn(gradients: Floats, noise: Floats) -> float:
    """Definition 4 for noise added to gradients."""
    return direction_mse(to_angles(gradients + noise)[1], to_angles(gradients)[1])


def corollary_2(p: Values) -> Values:
    """Direction MSE of flat noise on gradients of norm 1, clipped to each C."""
    unit = _vectors(p, 0, 400)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    noise = _vectors(p, 1, 400) * p["sigma"] / p["batch"]
    return {f"clip_{c:g}": _turn(unit * min(1.0, c), noise * c) for c in (10.0, 1.0, 0.1)}


def example_1(p: Values) -> Values:
    n = np.array([p["n_1"], p["n_2"]])
    g = np.array([1.0, math.sqrt(3)])
    first, second = g + n, g / 2 + n / 2
    return {"theta_1": math.atan2(first[1], first[0]), "theta_2": math.atan2(second[1], second[0])}


def example_3(p: Values) -> Values:
    """The directions of (1, 1) + n and (2, 2) + n."""
    return {f"theta_{g}": math.atan2(g + p["n_2"], g + p["n_1"]) for g in (1, 2)}


def lemma_1(p: Values) -> Values:
    """DP at C/B sigma per coordinate; GeoDP adds (d - 1) spread^2 to the angles."""
    d, batch = int(p["dim"]), int(p["batch"])
    gradients = _vectors(p, 0, 400)
    gradients /= np.linalg.norm(gradients, axis=1, keepdims=True)
    spread = math.sqrt(d + 2) * p["beta"] * math.pi * p["sigma"] / batch
    return {"dp": _turn(gradients, _vectors(p, 1, 400) * p["sigma"] / batch), "geodp": (d - 1) * spread**2}


def unbiased(p: Values) -> Values:
    """E v_z = x_z e^(-z s^2/2): how much more the last coordinates shrink than the first."""
    m = _iteration(p, 0.1, epsilon=1.0, delta=1e-5, sigma=1.0)
    return {"last_over_first": math.exp(-(m.dim - 2) * m.spread**2 / 2)}


def theorem_2(p: Values) -> Values:
    """The integral of sqrt(B/(2 pi v)) exp(-B^2 x^2/(2 v)), v = 1, by the trapezoidal rule."""
    b = p["batch"]
    x = np.linspace(-10 / b, 10 / b, 4001)
    density = math.sqrt(b / (2 * math.pi)) * np.exp(-(b**2) * x**2 / 2)
    return {"integral": float(density.sum() * (x[1] - x[0]))}


def after_step(scales: Floats, norm: float, rate: float, way: float) -> float:
    """E|w - eta v - w*|^2, w - w* = way times g: v has norm and angles of g with noise of these scales, all g_z equal.

    E v_z = g_z exp(-(s_1^2 + ... + s_z^2)/2) and E|v|^2 = |g|^2 + s_0^2.
    """
    d = len(scales)
    shrink = np.exp(-np.cumsum(np.square(scales[1:])) / 2)
    kept = float(shrink.sum() + shrink[-1]) / d
    return norm**2 * (way**2 - 2 * rate * way * kept + rate**2) + rate**2 * float(scales[0]) ** 2


def flat_step(dim: int, sd: float, norm: float, rate: float, way: float) -> float:
    """The same for noise of standard deviation sd on each coordinate."""
    return norm**2 * (way - rate) ** 2 + rate**2 * dim * sd**2


def theorem_3(p: Values) -> Values:
    d, batch, sigma, clip = int(p["dim"]), int(p["batch"]), p["sigma"], p["clip"]
    m = _iteration(p, clip, epsilon=1.0, delta=1e-5, sigma=sigma)
    geo = after_step(m.law.scales, clip, p["rate"], 1.0)
    return {"geodp": geo, "dp": flat_step(d, clip * sigma / batch, clip, p["rate"], 1.0)}


def certified(p: Values) -> Values:
    """All records share one gradient of norm C, best for the angle mechanisms; every law meets the claim exactly."""
    d, batch, clip = int(p["dim"]), int(p["batch"]), p["clip"]
    size, claim = {"dim": d, "clip": clip, "batch": batch}, {"epsilon": p["epsilon"], "delta": p["delta"]}
    mean, window = MeanAngles.calibrate(**size, **claim), AngleWindows.calibrate(**size, **claim)  # type: ignore[arg-type]
    flat = calibrate("gaussian", L2(clip, d), epsilon=p["epsilon"], delta=p["delta"]).law.scales[0]
    divided = mean.law.scales.copy()
    divided[0] /= batch
    found = {"mean_angles": divided, "angle_windows": window.law.scales / batch}
    errors = {name: after_step(scales, clip, p["rate"], 1.0) for name, scales in found.items()}
    return {**errors, "flat": flat_step(d, float(flat) / batch, clip, p["rate"], 1.0)}
