"""GeoDP as published (noise on the norm and on each angle of the mean gradient), and its diagnostics.

Errata. The paper takes the range of the angles over B as their sensitivity, as if the angle of a mean were a mean of
angles. Where the other gradients cancel, one record turns the mean at will, whatever B is. Nothing enforces the window
beta. The variance of the Gaussian mechanism prints Delta for Delta^2, Theorem 2 prints B^2 for B.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shapedp.boundary.values import boolean, plain
from shapedp.mechanisms.angles import Direction, MeanAngles, polar
from shapedp.mechanisms.base import Claimed, Rng
from shapedp.noise import Gaussian
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, finite, positive, probability, real
from shapedp.numerics.hyperspherical import from_angles
from shapedp.numerics.outward import BELOW_8192, ROUNDINGS_16, ROUNDINGS_256, ROUNDINGS_8192
from shapedp.privacy import Loss, loss_of
from shapedp.sensitivity import L2, Adjacency

GAMMA = 0.01
RANGE = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0])  # epsilons by which a test is chosen
REASON = (
    "the angle of a mean is not a mean of angles: with B - 1 gradients that cancel, one record turns the mean by pi/2 "
    "whatever B is, and nothing enforces the window beta"
)


@dataclass(frozen=True)
class TurnedMeanLoss(Loss):
    """The loss of noise of standard deviation `spread` on the angles of a mean that one record can turn.

    Guarantee: the upper end is the loss of the same noise at full range (`full`). The lower end comes from one of two
    tests, for a single step from the better one at each epsilon, on data whose other gradients cancel. They look at
    y_z = |atan2(v_z, |(v_(z+1), ..., v_d)|)| of the released v. Where the record has a right angle there, y_z is the
    noise n_z on that angle, folded into [0, pi/2]. Where the record lies along axis z, y_z is pi/2 minus that.

    - The record is C e_1 or C e_2; the test is y_1 > c. It shows
      delta(epsilon) >= P(|n| < pi/2 - c) - exp(epsilon) P(|n| >= c) for every c in (0, pi/2). C e_1 or no record at
      all shows the same, since a mean of zero has right angles.
    - The record is C e_d, or the limit of (1, h, h^2, ...) as h -> 0; this changes all d - 2 angles by pi/2. The
      number of y_z above pi/4 is binomial, with p against 1 - p, p = P(folded |n| < pi/4); so it is where the second
      record joins a mean of zero.
    """

    spread: float
    angles: int
    full: Loss

    def __post_init__(self) -> None:
        self._inherit([self.full])

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        upper = self.full.profile(epsilon)[1]
        lower = np.clip(self._tests[self._better](epsilon), 0.0, 1.0)
        return np.minimum(lower, upper), upper

    def best_shown(self, epsilon: float) -> float:
        at = np.array([real("epsilon", epsilon)])
        return max(min(float(test(at)[0]), 1.0) for test in self._tests)

    @property
    def _tests(self) -> tuple[Callable[[Floats], Floats], ...]:
        """Each on a pair of data sets of its own."""
        return self._one_angle, self._all_angles

    @cached_property
    def _better(self) -> int:
        """The test that shows more, over a range of epsilons."""
        return int(np.argmax([np.clip(test(RANGE), 0.0, 1.0).sum() for test in self._tests]))

    def _one_angle(self, epsilon: Floats) -> Floats:
        cut = np.minimum(math.pi / 4 + 2 * self.spread**2 * epsilon / math.pi, math.pi / 2)  # the best c
        with np.errstate(under="ignore", over="ignore"):
            seen = 1 - 2 * special.ndtr(-(math.pi / 2 - cut) / self.spread)
            mistaken = special.log_ndtr(-cut / self.spread) + math.log(2)
            slack = ROUNDINGS_16 * (epsilon - mistaken)  # of the two logs, which nearly cancel
            gain = seen - np.exp(epsilon + mistaken + slack)
        return np.asarray(gain * BELOW_8192 - ROUNDINGS_256)

    def _all_angles(self, epsilon: Floats) -> Floats:
        turns = math.pi * np.arange(-8, 9)
        edges = (special.ndtr((turns + side * math.pi / 4) / self.spread) for side in (1, -1))
        p = float(np.subtract(*edges).sum()) - ROUNDINGS_8192
        if not p > 0.5 + 1e-9 or not self.angles:
            return np.zeros_like(epsilon)
        p = min(p, 1 - 1e-12)
        least = np.ceil(self.angles / 2 + np.minimum(epsilon, 600.0) / (2 * math.log(p / (1 - p))))
        at = np.minimum(least, self.angles + 1).astype(np.intp)
        with np.errstate(under="ignore"):  # P(count >= at), from a table of all counts
            seen, mistaken = (special.bdtrc(np.arange(-1, self.angles + 1), self.angles, q)[at] for q in (p, 1 - p))
        gain = seen - np.exp(np.minimum(epsilon, 600.0)) * mistaken * (1 + 1e-6) - 1e-6
        return np.where((least <= self.angles) & (epsilon < 600), gain, 0.0)


@dataclass(frozen=True, eq=False)
class GeoDP(Claimed):
    """Algorithm 1 of the paper, one iteration: n_sigma C/B on the norm, n_sigma sqrt(d + 2) beta pi/B on each angle.

    The claim is the one of the Gaussian mechanism at noise multiplier sigma. With `automatic` gradients are clipped
    as AUTO-S does, C g/(|g| + 0.01), otherwise to norm C.
    Guarantee: none. The certificate is computed, and refutes the claim unless the noise fills the sphere.
    """

    kind: ClassVar[str] = "geodp"
    reason: ClassVar[str] = REASON
    dim: int
    clip: float
    batch: int
    beta: float
    sigma: float
    epsilon: float
    delta: float
    automatic: bool = False

    def __post_init__(self) -> None:
        plain(self)
        self._plain(partial(count, least=2), "dim")
        self._plain(count, "batch")
        self._plain(positive, "clip", "beta", "sigma", "epsilon")
        if self.beta > 1:
            raise ValueError(f"beta must lie in (0, 1], got {self.beta!r}")
        self._plain(probability, "delta")

    @property
    def adjacency(self) -> Adjacency:
        """The neighbour relation of the claim: records are exchanged, the batch size is fixed."""
        return "replace"

    @property
    def spread(self) -> float:
        """The standard deviation of the noise on an angle."""
        return math.sqrt(self.dim + 2) * self.beta * math.pi * self.sigma / self.batch

    @cached_property
    def law(self) -> Gaussian:
        """The noise on (norm, angles) of the mean."""
        scales = np.full(self.dim, self.spread)
        scales[0] = self.clip * self.sigma / self.batch
        return Gaussian(scales)

    @cached_property
    def loss(self) -> Loss:
        """The privacy loss of one iteration, under replacement of a record."""
        sums = Gaussian(np.concatenate([[self.clip * self.sigma], self.law.scales[1:]]))
        honest = MeanAngles(sums, self.clip, self.batch, self.epsilon, self.delta, self.adjacency)
        return TurnedMeanLoss(self.spread, self.dim - 2, loss_of(sums, honest.sensitivity))

    def clipped(self, gradients: ArrayLike) -> Floats:
        """The gradients, one per row, as Algorithm 1 or AUTO-S clips them."""
        rows = finite("gradients", gradients)
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise ValueError(f"gradients must have shape (n, {self.dim}), got {rows.shape}")
        if self.automatic:
            return np.asarray(self.clip * rows / (np.linalg.norm(rows, axis=1, keepdims=True) + GAMMA))
        return np.asarray(L2(self.clip, dim=self.dim).clip(rows, adjacency="replace")[0])

    def release(self, gradients: ArrayLike, *, rng: Rng = None, unsafe: bool = False) -> Direction:
        """The noisy mean of per-example gradients; raises unless certified or `unsafe`."""
        return self.release_mean(self.clipped(gradients).sum(axis=0) / self.batch, rng=rng, unsafe=unsafe)

    def release_mean(self, mean: ArrayLike, *, rng: Rng = None, unsafe: bool = False) -> Direction:
        """The same, from the mean of the clipped gradients."""
        exact = polar(mean)
        if exact.shape != (self.dim,):
            raise ValueError(f"mean must have shape ({self.dim},), got {np.shape(mean)}")
        noisy = self._drawn(exact, lambda randomness: self.law.add_to(exact, randomness), rng, unsafe, law=self.law)
        return Direction.of(np.asarray(from_angles(noisy.value[0], noisy.value[1:])), noisy)


def noise_multiplier(epsilon: float, delta: float) -> float:
    """sigma = sqrt(2 log(1.25/delta))/epsilon. Reference: GeoDP, section 2.1."""
    if probability("delta", delta) == 0:
        raise ValueError("delta must be > 0: the Gaussian mechanism has no scale for delta = 0")
    return math.sqrt(2 * math.log(1.25 / delta)) / positive("epsilon", epsilon)


def geodp(
    *,
    dim: int,
    sensitivity: float,
    epsilon: float,
    delta: float,
    batch: int,
    beta: float,
    sigma: float | None = None,
    automatic: bool = False,
) -> GeoDP:
    """One iteration of GeoDP-SGD at a claim.

    Parameters
    ----------
    dim: the number of weights d, 2 or more.
    sensitivity: the clip C of a gradient's norm.
    epsilon, delta: the claim; delta > 0 unless sigma is given.
    batch: the number B of gradients.
    beta: the window of the angles, in (0, 1].
    sigma: the noise multiplier; that of the claim by the classic formula unless given.
    automatic: clip as AUTO-S does, C g/(|g| + 0.01), instead of to norm C.

    Returns
    -------
    The mechanism with its claim.

    Guarantee: none; see `GeoDP`. What can be certified: `mechanisms.angles.MeanAngles` and `AngleWindows`.
    Reference: Analyzing and optimizing perturbation of DP-SGD geometrically, Algorithm 1.

    >>> geodp(dim=100, sensitivity=0.1, epsilon=1.0, delta=1e-5, batch=256, beta=0.1).certificate.verdict
    'refuted'
    """
    automatic = boolean("automatic", automatic)
    chosen = noise_multiplier(epsilon, delta) if sigma is None else sigma
    return GeoDP(dim, sensitivity, batch, beta, chosen, epsilon, delta, automatic)


def direction_mse(noisy: ArrayLike, angles: ArrayLike) -> float:
    """The mean over gradients of |theta* - theta|_2^2. Reference: Definition 4."""
    a, b = finite("noisy", noisy), finite("angles", angles)
    if a.shape != b.shape or a.ndim == 0:
        raise ValueError(f"noisy and angles must have one shape, got {a.shape} and {b.shape}")
    return float(np.square(a - b).sum(axis=-1).mean())


def model_efficiency(weights: ArrayLike, optimum: ArrayLike) -> float:
    """|w - w*|_2^2; smaller is better. Reference: Definition 3."""
    return float(np.square(finite("weights", weights) - finite("optimum", optimum)).sum())


@dataclass(frozen=True)
class EfficiencyDifference:
    """|w_noisy - w*|^2 - |w_plain - w*|^2 after one step, as eta^2 A + B.

    `magnitude` is eta^2 (2 C/B <n, g> + (C/B)^2 |n|^2), `direction` is 2 eta C/B <n, w* - w>. Reference: Theorem 1.
    """

    magnitude: float
    direction: float

    @property
    def total(self) -> float:
        """The difference itself."""
        return self.magnitude + self.direction


def efficiency_difference(
    noise: ArrayLike, gradient: ArrayLike, weights: ArrayLike, optimum: ArrayLike, rate: float, clip: float, batch: int
) -> EfficiencyDifference:
    """What a step with noise C/B n costs beside one without, by the decomposition of Theorem 1."""
    n, g = finite("noise", noise), finite("gradient", gradient)
    way = finite("optimum", optimum) - finite("weights", weights)
    scale = positive("clip", clip) / count("batch", batch)
    eta = positive("rate", rate)
    magnitude = eta**2 * (2 * scale * float(n @ g) + scale**2 * float(n @ n))
    return EfficiencyDifference(magnitude, 2 * eta * scale * float(n @ way))
