"""Product noise (chi_1 radius times a uniform direction), as published; and R1SMG before it.

Erratum: both proofs compare the densities of the radius and drop the volume factor. The density on R^M is that of
the radius over r^(M-1), so the loss has a further term (M-1) log(|n + v|/|n|), and both claims are false.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from scipy import special

from shapedp.mechanisms import Additive
from shapedp.noise import radial
from shapedp.numerics.checks import count, positive, probability
from shapedp.sensitivity import L2

INITIAL_K = 1e5
_REASON = "the published proof drops the volume factor r^(M-1), that is (M-1) log(|n + v|/|n|) of the loss"
STEP_FACTOR = 2.0
_SUMMED = 700.0  # the largest x at which e^-x is above zero
_ROUNDS = 20_000


@dataclass(frozen=True, eq=False)
class PublishedSpherical(Additive):
    """A mechanism whose refutation states the reason."""

    reason: ClassVar[str] = _REASON


@dataclass(frozen=True)
class ProductNoise:
    """The published calibration at (dim, sensitivity, epsilon) and tuning constant k > 1.

    Reference: product noise, Theorem 1 (sigma), eq. (12) and (13) (delta), eq. (19) and Proposition 6 (q*).
    """

    dim: int
    sensitivity: float
    epsilon: float
    k: float = INITIAL_K

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", count("dim", self.dim, least=3))
        for name in ("sensitivity", "epsilon", "k"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    @property
    def t(self) -> float:
        """t = sigma epsilon/sensitivity, t^2 = 2 k^(4/M) (M/4 + 3/2)^(1 + 4/M) e^-(1 + 2/M)."""
        return self.t_at(self.dim / 2)

    def t_at(self, q: float) -> float:
        """t of Propositions 5 and 6 at moment q: t^2 = 2 k^(2/q) ((q + 3)/2)^(1 + 2/q) e^-(1 + 1/q)."""
        log = math.log(2) + 2 / q * math.log(self.k) + (1 + 2 / q) * math.log((q + 3) / 2) - (1 + 1 / q)
        return math.exp(log / 2)

    @property
    def sigma(self) -> float:
        """The published noise parameter sigma_M."""
        return self.sensitivity / self.epsilon * self.t

    @property
    def shift(self) -> float:
        """lambda = sensitivity/sigma."""
        return self.epsilon / self.t

    @property
    def claimed_delta(self) -> float:
        """Eq. (13): eq. (12) at q = M/2 (the scan prints epsilon for e in e^(-lambda^2/2)); not below M = 4."""
        return self.moment_delta(self.dim / 2)

    def moment_delta(self, q: float) -> float:
        """Eq. (12) at any 1 < q < M - 3/2, with the t of that q; infinite outside, where no real root is left, and
        where the series leaves the range of float64."""
        m, shift = self.dim, self.epsilon / self.t_at(q)
        room, x = (m - q - 1.5) * (q + 0.75), shift * shift / 2
        if not room > 0 or x > _SUMMED:
            return math.inf
        series = special.hyp1f1((q + 1) / 2, 0.5, x) + math.sqrt(2) * shift * special.hyp1f1((q + 2) / 2, 1.5, x)
        return float(math.exp(-x) / (self.k * math.sqrt(math.pi)) * series * math.sqrt((m - 1) / room))

    def bound_delta(self, q: float) -> float:
        """The right-hand side of eq. (19), with the t of that q."""
        m, square = self.dim, (self.epsilon / self.t_at(q)) ** 2
        room = (m - q - 1.5) * (q + 0.75)
        if not room > 0:
            return math.inf
        growth = 1 + square * (q + 1)
        return 2 * math.exp(-square / 2) * math.sqrt((m - 1) / room) * growth / (self.k * math.sqrt(math.pi))

    @property
    def best_q(self) -> float:
        """q* of Proposition 6, which minimises eq. (19)."""
        m, square = self.dim, self.shift**2
        return (4 * m - 2 * square * m - 9) / (4 * square * m + 8 - square)

    @property
    def squared_norm_ratio(self) -> float:
        """f(M) of eq. (21) is this over 2 log(1.25/delta): E|n|^2 over M times (sensitivity/epsilon)^2."""
        return self.t**2 / self.dim


def calibrated(
    *, dim: int, sensitivity: float, epsilon: float, delta: float, k: float = INITIAL_K, step: float = STEP_FACTOR
) -> ProductNoise:
    """Algorithm 1: raise k by the step factor until the claimed delta is small enough.

    At M = 3 the square root of eq. (13) is not real at q = M/2; there the claim is eq. (12) at q* of Proposition 6.
    """
    target, step = probability("delta", delta), positive("step", step)
    if not step > 1 or target == 0:
        raise ValueError(f"Algorithm 1 needs a step factor > 1 and delta > 0, got step {step!r}, delta {delta!r}")
    noise = ProductNoise(dim, sensitivity, epsilon, k)
    for _ in range(_ROUNDS):
        if claim(noise) <= target:
            return noise
        if not noise.k * step < math.inf:
            break
        noise = ProductNoise(dim, sensitivity, epsilon, noise.k * step)
    raise ValueError(f"Algorithm 1 finds no k for epsilon {epsilon!r} and delta {delta!r}: claim less, or raise step")


def claim(noise: ProductNoise) -> float:
    """The delta claimed: eq. (13), and for M = 3 eq. (12) at the middle of the admitted q."""
    return noise.claimed_delta if noise.dim > 3 else noise.moment_delta(1.25)


def product_noise(
    *, dim: int, sensitivity: float, epsilon: float, delta: float, k: float = INITIAL_K, step: float = STEP_FACTOR
) -> Additive:
    """Product noise: a radius sigma_M chi_1 times a uniform direction, sigma_M by Theorem 1, k by Algorithm 1.

    Parameters
    ----------
    dim: the number of coordinates of the query, 3 or more (M of the paper).
    sensitivity: its L2 sensitivity.
    epsilon, delta: the claim; delta > 0.
    k, step: where Algorithm 1 starts its search for k, and the factor by which it raises k.

    Returns
    -------
    The mechanism with its claim.

    Guarantee: none. The certificate is computed and refutes the claim; `release` then raises.
    Reference: product noise, Theorem 1 and Algorithm 1; erratum above.

    >>> product_noise(dim=14, sensitivity=1.0, epsilon=1.0, delta=1e-5).certificate.verdict
    'refuted'
    """
    noise = calibrated(dim=dim, sensitivity=sensitivity, epsilon=epsilon, delta=delta, k=k, step=step)
    law = radial.chi(1.0, noise.sigma, dim)
    return PublishedSpherical(law, L2(noise.sensitivity, dim), epsilon, delta, recipe="product-noise")


def r1smg(*, dim: int, sensitivity: float, epsilon: float, delta: float) -> Additive:
    """Rank-1 singular Gaussian noise N(0, s v v^T), v a uniform direction: again a chi_1 radius times a direction.

    s = 2 sensitivity^2/(epsilon psi), psi = (delta Gamma((M-1)/2)/(sqrt(pi) Gamma(M/2)))^(2/(M-2)).

    Parameters
    ----------
    dim: the number of coordinates of the query, 3 or more (M of the paper).
    sensitivity: its L2 sensitivity.
    epsilon, delta: the claim; delta > 0.

    Returns
    -------
    The mechanism with its claim.

    Guarantee: none; refuted as product noise is.
    Reference: Ji and Li 2024, Less is more: revisiting the Gaussian mechanism, Theorem 4.

    >>> r1smg(dim=14, sensitivity=1.0, epsilon=1.0, delta=1e-5).certificate.verdict
    'refuted'
    """
    dim = count("dim", dim, least=3)
    radius, epsilon = positive("sensitivity", sensitivity), positive("epsilon", epsilon)
    if probability("delta", delta) == 0:
        raise ValueError("delta must be > 0: R1SMG has no scale for delta = 0")
    ratio = special.gammaln((dim - 1) / 2) - special.gammaln(dim / 2)
    log_psi = 2 / (dim - 2) * (math.log(delta) + ratio - 0.5 * math.log(math.pi))
    if log_psi < -700:
        raise ValueError(f"delta={delta!r} is too small in {dim} dimensions: the published scale is no float")
    sigma = radius * math.sqrt(2 / epsilon) * math.exp(-log_psi / 2)
    return PublishedSpherical(radial.chi(1.0, sigma, dim), L2(radius, dim), epsilon, delta, recipe="r1smg")
