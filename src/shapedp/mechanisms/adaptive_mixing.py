"""Gaussian mixing that adds less noise where the data are rich: the least eigenvalue is released first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import special

from shapedp.mechanisms.mixing import (
    ROOM,
    EigenvalueSketching,
    calibratable,
    draw_sketch,
    eigenvalue_slip,
    float_share,
    rounding,
)
from shapedp.numerics import outward
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, positive
from shapedp.numerics.gram import gram_error, least_eigenvalue
from shapedp.privacy import Loss
from shapedp.privacy.losses.gaussian import GaussianLoss
from shapedp.privacy.losses.mixing import MixingLoss, Neighbours
from shapedp.sampling import Source, grid_for, rounded_sum


@dataclass(frozen=True)
class AdaptiveMixing(EigenvalueSketching):
    """Release l = lambda_min(X^T X) + eta C^2 (z - tau), z ~ N(0, 1); then mix with sigma^2 = gamma C^2 - l.

    sigma^2 is kept within [0, (gamma - 1) C^2]: more is never needed.

    Guarantee: the Gaussian loss of l (lambda_min moves by at most C^2: mu = 1/eta) and the mixing loss at 1/gamma
    compose exactly; P(z > tau), when sigma may be too small, is added to delta. For the row x and the other records A,
    t = q/(1 + q) with q = x^T (A + sigma^2 I)^-1 x, at most 1/gamma as soon as l <= lambda_min(A) + C^2, hence as
    soon as l <= lambda_min of either neighbour.
    Reference: Lev et al. 2025, Algorithm 1, mended: l in units of C^2, sqrt(gamma), no classic Gaussian bound.

    Parameters
    ----------
    gamma, eta, tau: see above.
    Others as for `Mixing`.

    Examples
    --------
    >>> AdaptiveMixing.calibrate(rows=500, row_bound=1.0, epsilon=1.0, delta=1e-6).certificate.verdict
    'certified'
    """

    kind: ClassVar[str] = "adaptive-mixing"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 < self.gamma < 1e90 or not 1e-9 < self.eta < 1e90:
            raise ValueError(f"gamma must lie in (1, 1e90) and eta in (1e-9, 1e90), got {self.gamma!r}, {self.eta!r}")

    @property
    def failure(self) -> float:
        """P(z > tau), z short of tau by the eigenvalue's error and by half a step of the grid that l is rounded to."""
        reach = self.tau * outward.BELOW_8192 - (self._slip + float(grid_for(self.eta)) / 2) / self.eta
        return min(float(special.ndtr(-reach)) * outward.ABOVE_8192, 1.0)

    @property
    def _slip(self) -> float:
        """How far the computed eigenvalue may be off, in units of C^2."""
        return eigenvalue_slip(self.records, self.dim)

    @cached_property
    def loss(self) -> Loss:
        """The privacy loss of the eigenvalue and the sketch together, from above: sigma is mostly larger."""
        mu = (1 + 2 * self._slip) / self.eta * outward.ABOVE_512
        base = MixingLoss(self.rows, float_share(self.gamma, self.records, self.dim), self.adjacency, mu, 0.0)
        missed = rounding(self.rows, self.gamma, self.records, self.dim)
        return base.with_failure(self.failure, total_variation=missed)

    @property
    def reach(self) -> float:
        """gamma + eta tau: sigma^2 + lambda_min in units of C^2 where the eigenvalue is large (z = 0)."""
        return self.gamma + self.eta * self.tau

    @classmethod
    def calibrate(
        cls,
        *,
        rows: int,
        row_bound: float,
        epsilon: float,
        delta: float,
        adjacency: Neighbours = "zero-out",
        records: int | None = None,
        dim: int | None = None,
        plain: float | None = None,
    ) -> AdaptiveMixing:
        """The eta and the failure share that minimise gamma + eta tau; gamma on the private side.

        `plain` is about the gamma of `Mixing` for the same claim, where that is known: a guide for the search.

        gamma alone would be least with eta infinite, an eigenvalue that says nothing; gamma + eta tau is what
        sigma^2 + lambda_min comes to.
        """
        epsilon, delta = calibratable(epsilon, delta, adjacency)
        rows = count("rows", rows)
        if plain is None:
            plain = MixingLoss.calibrate(rows, epsilon, delta, neighbours=adjacency, tolerance=1e-4).gamma
        plain = positive("plain", plain)
        spent = ROOM * delta
        if records is not None and dim is not None:
            records, dim = count("records", records), count("dim", dim)
            tv = rounding(rows, plain, records, dim)
            spent = ((1 + math.exp(epsilon)) * tv + outward.WIDE * delta) * outward.ABOVE_512
            if not spent < delta / 2:
                raise ValueError(cls.too_large(rows, records, dim, delta))
        mu, share, about = _best(rows, epsilon, delta - spent, adjacency, plain)
        tau = -float(special.ndtri(share * (delta - spent))) + 2.0**-17  # half a step of the grid, in units of eta
        tau += mu * eigenvalue_slip(records, dim)
        aim, spread = (delta - spent) * (1 - share) * outward.BELOW_WIDER, mu * outward.ABOVE_WIDER
        near = MixingLoss(rows, min(1 / about, 0.5), adjacency)
        gamma = MixingLoss.calibrate(rows, epsilon, aim, neighbours=adjacency, mu=spread, near=near).gamma
        slip = 0.0 if records is None or dim is None else gram_error(records, dim)
        gamma *= 1 + outward.ROUNDINGS_8192 + 2 * slip / (gamma - 1)
        made = cls(rows, row_bound, gamma, 1 / mu, tau * outward.ABOVE_WIDE, epsilon, delta, adjacency, records, dim)
        made.certificate.require()
        return made

    def _draw(self, moments: Floats, randomness: Source) -> tuple[Floats, float]:
        square = self.row_bound**2
        start = np.array([least_eigenvalue(moments) / square - self.eta * self.tau])
        noisy = float(rounded_sum(start, "gaussian", self.eta, None, randomness)[0])
        variance = min(max(self.gamma - noisy, 0.0), self.gamma - 1) * square
        return draw_sketch(moments, self.rows, variance, (self.gamma - 1) / 2 * square, randomness), variance


def _best(rows: int, epsilon: float, delta: float, adjacency: Neighbours, plain: float) -> tuple[float, float, float]:
    """mu = 1/eta, the share of delta for failure and about the gamma that make gamma + eta tau least: a mere guide.

    First as if the mixing loss were Gaussian, scaled so that gamma is right at mu = 0; then, for the few rows where
    that misses the least value by more than 0.1%, with the loss itself.
    """
    from scipy import optimize

    most = GaussianLoss.calibrate(epsilon, delta).mu

    def least(gamma: Callable[[float, float], float], start: list[float]) -> list[float]:
        def reach(point: Floats) -> float:
            mu, share = most * float(special.expit(point[0])), float(special.expit(point[1]))
            tau = -float(special.ndtri(share * delta))
            left = delta * (1 - share)
            if not tau > 0 or _gaussian(mu, epsilon) >= left * 0.999:
                return 1e6 * plain
            return gamma(mu, left) + tau / mu

        options: Any = {"xatol": 0.02, "fatol": 1e-4 * plain, "maxfev": 80}
        found = optimize.minimize(reach, start, method="Nelder-Mead", options=options)
        return [float(value) for value in found.x]

    def rough(mu: float, left: float) -> float:
        total = optimize.brentq(lambda m: _gaussian(m, epsilon) - left, mu, most * 1.01, rtol=1e-9)
        return plain * most / math.sqrt(max(total**2 - mu**2, 1e-18 * most**2))

    def true(mu: float, left: float) -> float:
        return MixingLoss.calibrate(rows, epsilon, left, neighbours=adjacency, mu=mu, tolerance=1e-5).gamma

    start, gamma = least(rough, [0.5, -1.0]), rough
    if rows < 200:
        start, gamma = least(true, start), true
    mu, share = most * float(special.expit(start[0])), float(special.expit(start[1]))
    return mu, share, gamma(mu, delta * (1 - share))


def _gaussian(mu: float, epsilon: float) -> float:
    """About delta(epsilon) of a Gaussian loss."""
    return float(special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(-mu / 2 - epsilon / mu))
