"""Objective perturbation: a random linear term in a strongly convex objective, and a little noise on its minimum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, ClassVar

import numpy as np

from shapedp.boundary.values import boolean
from shapedp.mechanisms.base import Claimed, Release, Rng
from shapedp.noise import Gaussian, Law
from shapedp.noise.radial import Radial
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, finite, nonnegative, one_of, positive, probability
from shapedp.numerics.outward import ABOVE_32, ABOVE_WIDER
from shapedp.numerics.radius import RadiusRule
from shapedp.privacy import GaussianLoss, Loss
from shapedp.privacy.losses.largest import LargestLoss
from shapedp.privacy.losses.radial import RadialLoss, ReleasedRadialLoss
from shapedp.sampling import Source, rounded_sum
from shapedp.sensitivity import L2, Adjacency

FAR = 1e-30  # the probability with which `farthest` may be exceeded
NEIGHBOURS: tuple[Adjacency, ...] = ("zero-out", "replace")
Solve = Callable[[Floats], Floats]
_ONE_SIDED: dict[Adjacency, tuple[float, ...]] = {"zero-out": (1.0, 1.0), "replace": (1.0, 2.0, 0.0, 0.0, 1.0)}
_SIGNED: dict[Adjacency, tuple[float, ...]] = {"zero-out": (0.0, 2.0), "replace": (0.0, 0.0, 0.0, 0.0, 4.0)}


@dataclass(frozen=True, eq=False)
class ObjectivePerturbation(Claimed):
    """w near argmin J(w) + b.w, b drawn from `law`; then w + n, n from `output_law`.

    J is the sum of the records' losses and a strongly convex term, in `problems` blocks of weights. Each record's
    loss in a block depends on one product x.w and falls with it: its gradient is c s, 0 <= c <= 1, for a vector s of
    length at most `reach` that does not depend on w; with `signed`, -1 <= c <= 1, as of generalised linear models.
    `log_ratio` bounds what one record changes of log det J''.
    What is released before n is within `output_reach`/2 of the minimum for the real-valued b.

    Guarantee: the density of the exact minimum at w is that of the noise at -J'(w), times det J''(w). A neighbour
    moves J'(w) by v = c s (zero-out) or c s - c' s' (replace) in each block, in a polytope that does not depend on w;
    noise of a spherically decreasing density loses most at one of its vertices (log p(b) - log p(b + v) rises with
    |b + v|, which is convex in v), so that the loss is at most log_ratio + the largest over the vertices
    (`LargestLoss`). Given the minimum, the second noise hides a difference
    of `output_reach`: it composes exactly for Gaussian noise, and for radial noise at a share `output_epsilon`.
    Reference: Kifer, Smith and Thakurta 2012, Theorem 2; Iyengar et al. 2019, Algorithm 1; that the direction is fixed
    for generalised linear losses, Redberg, Koskela and Wang 2023.

    Parameters
    ----------
    law, output_law: the noise in the objective and on the weights.
    reach, problems, log_ratio, output_reach, output_epsilon, signed: see above.
    epsilon, delta, adjacency: the claim.
    recipe: the name of the published calibration that chose the scales, if one did.

    Examples
    --------
    >>> noise, after = Gaussian(10.0, 1), Gaussian(1e-3, 1)
    >>> ObjectivePerturbation(noise, 1.0, 1, 0.1, after, 1e-6, epsilon=1.0, delta=1e-5).certificate.verdict
    'certified'
    """

    kind: ClassVar[str] = "objective"
    _laws: ClassVar[tuple[str, ...]] = ("law", "output_law")
    law: Law
    reach: float
    problems: int
    log_ratio: float
    output_law: Gaussian
    output_reach: float
    epsilon: float
    delta: float
    adjacency: Adjacency = "zero-out"
    output_epsilon: float = 0.0
    recipe: str | None = None
    signed: bool = False

    def __post_init__(self) -> None:
        self._plain(boolean, "signed")
        self._plain(positive, "reach", "epsilon")
        self._plain(nonnegative, "log_ratio", "output_reach", "output_epsilon")
        self._plain(probability, "delta")
        self._plain(count, "problems")
        one_of("adjacency", self.adjacency, NEIGHBOURS)
        laws: tuple[Any, ...] = (self.law, self.output_law)
        if not all(isinstance(law, Law) for law in laws):
            raise TypeError("law and output_law must be laws of noise")
        isotropic = isinstance(self.law, Gaussian) and self.law.scales.size == 1
        if not isotropic and not isinstance(self.law, Radial):
            raise TypeError(f"objective perturbation needs isotropic Gaussian or radial noise, not {self.law.kind}")
        if self.law.dim != self.output_law.dim or self.law.dim % self.problems:
            raise ValueError("both laws must have one dimension, a multiple of problems")
        if not self.law.second_moment > 0 or (self.output_reach and not self.output_law.scales.min() > 0):
            raise ValueError("both laws must add noise: their scales must be > 0")

    @classmethod
    def _read(cls, data: dict[str, Any]) -> dict[str, Any]:
        return super()._read({"signed": False, **data})  # certificates from before there were signed losses

    @property
    def sensitivity(self) -> L2:
        """By how far one record moves the gradient of J, at any w."""
        farthest = self.reach * (2 if self.adjacency == "replace" else 1)
        return L2(farthest * math.sqrt(self.problems) * ABOVE_32, dim=self.law.dim, adjacency=self.adjacency)

    @cached_property
    def loss(self) -> Loss:
        """The privacy loss of the release, from above."""
        mu = self.output_reach / float(self.output_law.scales.min()) * ABOVE_32 if self.output_reach else 0.0
        loss = loss_with(self.law, self, mu)
        return loss.with_failure(2 * FAR).under(self.adjacency)

    @property
    def vertices(self) -> tuple[tuple[float, float], ...]:
        """(length, count) of the vertices of the polytope of shifts, at their longest; blocks add up in squares.

        A segment from 0 to s, or a parallelogram with 0, s, -s' and s - s'; signed: from -s to s, or four of s + s'.
        """
        one = np.array(_SIGNED[self.adjacency] if self.signed else _ONE_SIDED[self.adjacency])
        counts = np.ones(1)
        for _ in range(self.problems):
            counts = np.convolve(counts, one)
        if not np.isfinite(counts).all():
            raise ValueError(f"{self.problems} problems are too many for objective perturbation: perturb the output")
        return tuple(
            (self.reach * math.sqrt(m) * ABOVE_32, float(times) * ABOVE_32)
            for m, times in enumerate(counts)
            if times > 0
        )

    def release(
        self, gradient: Floats, solve: Solve | None = None, *, rng: Rng = None, unsafe: bool = False
    ) -> Release[Floats]:
        """`solve(b)` must return weights within `output_reach`/2 of the minimum, rounding of b to its grid included.

        `gradient` is J'(0), by which an audit sees what one record moves.
        """
        unsafe = boolean("unsafe", unsafe)
        if solve is None:
            raise TypeError("solve must be given: a function from the random linear term to the weights")

        def draw(randomness: Source) -> Floats:
            weights = finite("what solve returns", solve(fine_draw(self.law, randomness)))
            return np.asarray(self.output_law.add_to(weights.reshape(-1), randomness))

        return self._drawn(np.asarray(gradient).reshape(-1), draw, rng, unsafe)


@singledispatch
def loss_with(law: Law, mechanism: ObjectivePerturbation, mu: float) -> Loss:
    """The loss of Gaussian (or radial) noise `law` on the gradient and of a Gaussian release mu given the minimum."""
    sigma = float(law.scales[0])
    parts = [(math.hypot(length / sigma, mu) * ABOVE_32, times) for length, times in mechanism.vertices]
    return LargestLoss(tuple((GaussianLoss(one), times) for one, times in parts if one), mechanism.log_ratio * ABOVE_32)


@loss_with.register
def _(law: Radial, mechanism: ObjectivePerturbation, mu: float) -> Loss:
    parts = tuple(
        (RadialLoss(law.dim, law.a, law.b, length / law.scale * ABOVE_32), times)
        for length, times in mechanism.vertices
        if length
    )
    base = LargestLoss(parts, (mechanism.log_ratio + mechanism.output_epsilon) * ABOVE_32)
    second = GaussianLoss(mu).delta(mechanism.output_epsilon).upper
    slip, missed = law.slip
    return ReleasedRadialLoss(base, slip, missed).with_failure(second)  # type: ignore[arg-type]


@singledispatch
def farthest(law: Law) -> float:
    """A length that a draw of Gaussian (or radial) noise exceeds with probability at most FAR."""
    return float(law.scales.max()) * (math.sqrt(law.dim) + 12)


@farthest.register
def _(law: Radial) -> float:
    top = float(RadiusRule(law.a, law.b).radii(np.array([1.0]), np.array([FAR / 4]))[0])
    return float(law.scale * top * ABOVE_WIDER + law.smoothing * (math.sqrt(law.dim) + 12))


@singledispatch
def fine_draw(law: Law, randomness: Source) -> Floats:
    """One Gaussian (or radial) draw, on a grid far finer than that of releases: not released, only minimised with."""
    return rounded_sum(np.zeros(law.dim), "gaussian", float(law.scales[0]), fine_grid(law), randomness)


@fine_draw.register
def _(law: Radial, randomness: Source) -> Floats:
    return rounded_sum(law._draw(1, randomness)[0], "gaussian", law.smoothing, fine_grid(law), randomness)


def fine_grid(law: Any) -> float:
    """2^-28 of the scale of what is rounded: there the sampler still settles nearly every draw in floats."""
    rounded = law.smoothing if isinstance(law, Radial) else float(law.scales[0])
    return float(2.0 ** (math.frexp(rounded)[1] - 29))


def grid_error(law: Any) -> float:
    """A bound on how far rounding to the fine grid moves a draw, in the L2 norm."""
    return fine_grid(law) * math.sqrt(law.dim)
