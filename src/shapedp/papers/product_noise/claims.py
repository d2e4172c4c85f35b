"""Claims of the product-noise paper, sections 4 and 6.3: the numbers that decide them."""

from __future__ import annotations

import math

from shapedp.accounting import amplify, he_theorem_3, subsample
from shapedp.mechanisms import Additive
from shapedp.noise import radial
from shapedp.numerics.checks import count
from shapedp.papers.product_noise import recipes
from shapedp.papers.product_noise.recipes import ProductNoise, calibrated, claim
from shapedp.papers.values import Values, unit_claim
from shapedp.privacy import GaussianLoss, loss_of
from shapedp.privacy.losses.radial import RadialLoss
from shapedp.sensitivity import L2


def noise_of(p: Values) -> ProductNoise:
    """The published calibration that the parameters name, for a unit shift."""
    return ProductNoise(count("dim", int(p["dim"])), 1.0, p["epsilon"], p["k"])


def exact_delta(dim: int, sigma: float, epsilon: float, nu: float = 1.0) -> float:
    """The middle of the bracket of delta(epsilon) of sigma chi_nu noise against a unit shift."""
    bracket = RadialLoss(dim, nu, 2.0, 1 / (sigma * math.sqrt(2)), 1e-9).delta(epsilon)
    return (bracket.lower + bracket.upper) / 2


def _judged(noise: ProductNoise) -> Values:
    return {"claimed": claim(noise), "exact": exact_delta(noise.dim, noise.sigma, noise.epsilon)}


def theorem_1(p: Values) -> Values:
    return _judged(noise_of(p))


def algorithm_1(p: Values) -> Values:
    return _judged(calibrated(dim=int(p["dim"]), **unit_claim(p)))


def proposition_1(p: Values) -> Values:
    """The log-ratio of densities at noise orthogonal to the difference, and the bound of eq. (3)."""
    noise = noise_of(p)
    radius, shift = p["radius"], 1 / noise.sigma
    grown = math.hypot(radius, shift)
    ratio = (noise.dim - 1) * math.log(grown / radius) + (grown**2 - radius**2) / 2
    return {"bound": shift * (radius + shift), "exact": ratio}


def angles(p: Values) -> Values:
    """E[1/sin^q] of the angle between noise and difference: eq. (11) against the density of Lemma 7."""
    from scipy import integrate, special

    dim, q = p["dim"], p["order"]
    log_constant = special.gammaln(dim / 2) - special.gammaln((dim - 1) / 2)
    formula = math.exp(log_constant + special.gammaln((dim - q - 1) / 2) - special.gammaln((dim - q) / 2))

    def density(angle: float) -> float:
        return float(math.exp(log_constant) / math.sqrt(math.pi) * math.sin(angle) ** (dim - 2 - q))

    return {"formula": formula, "quadrature": float(integrate.quad(density, 0, math.pi, epsabs=0, epsrel=1e-10)[0])}


def figure_9(p: Values) -> Values:
    noise = noise_of(p)
    return {"delta_13": noise.claimed_delta, "delta_19": noise.bound_delta(noise.dim / 2)}


def _size_ratio(dim: int, p: Values) -> float:
    """f(M) of eq. (21): the squared noise over that of the classic Gaussian."""
    return ProductNoise(dim, 1.0, 1.0, p["k"]).squared_norm_ratio / (2 * math.log(1.25 / p["delta"]))


def corollary_1(p: Values) -> Values:
    first = next(dim for dim in range(3, 1000) if _size_ratio(dim, p) < 1)
    return {"first_dim_below_1": float(first), "ratio_at_dim": _size_ratio(int(p["dim"]), p)}


def corollary_2(p: Values) -> Values:
    limit = 1 / (4 * math.e * math.log(1.25 / p["delta"]))
    return {"inverse_limit": 1 / limit, "ratio_over_limit": _size_ratio(int(p["dim"]), p) / limit}


def r1smg(p: Values) -> Values:
    mechanism = recipes.r1smg(dim=int(p["dim"]), **unit_claim(p))
    sigma = mechanism.law.scales[0] / math.sqrt(2)
    return {"claimed": p["delta"], "exact": exact_delta(int(p["dim"]), float(sigma), p["epsilon"])}


def calibrated_chi_1(p: Values) -> Values:
    dim = int(p["dim"])
    ratio = RadialLoss.approximate(dim, 1.0, 2.0, p["epsilon"], p["delta"])
    mu = GaussianLoss.calibrate(p["epsilon"], p["delta"]).mu
    size = radial.Radial(dim, 1.0, 2.0, 1.0).mean_squared_radius / ratio**2
    return {"squared_norm_over_gaussian": size * mu**2 / dim}


def step(p: Values) -> Values:
    """One step on all the data: a record exchanged moves the sum of clipped gradients by 2 C, as the scale allows."""
    noise = noise_of(p)
    loss = loss_of(radial.chi(1.0, noise.sigma, noise.dim), L2(1.0, noise.dim))
    return {"claimed": noise.claimed_delta, "exact_at_least": loss.delta(noise.epsilon).lower}


def training(p: Values) -> Values:
    """One sampled step of product-noise training, at the epsilon claimed for all of them.

    The scale is for 2 C, a record exchanged. Under the sampling that is analysed a record comes or goes, and moves
    the sum by C: half of what the scale is for.
    """
    noise = ProductNoise(int(p["dim"]), 1.0, p["step_epsilon"], p["k"])
    step_epsilon, step_delta = amplify(noise.epsilon, noise.claimed_delta, p["rate"])
    epsilon = he_theorem_3(step_epsilon, 0.0, int(p["steps"]), p["constant"])[0]
    delta = he_theorem_3(step_epsilon, step_delta, int(p["steps"]), p["constant"])[1]
    ball = L2(0.5, noise.dim, adjacency="add-remove")
    law = radial.chi(1.0, noise.sigma, noise.dim)
    step = subsample(Additive(law, ball, noise.epsilon, noise.claimed_delta), p["rate"])
    return {"epsilon": epsilon, "claimed": delta, "exact_at_least": step.delta(epsilon).lower}
