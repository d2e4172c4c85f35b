"""GeoDP-SGD on gradients, with the claim that the paper makes for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shapedp.accounting import compose, subsample
from shapedp.mechanisms.angles import MeanAngles, polar
from shapedp.noise import Gaussian, Law
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, positive, probability
from shapedp.numerics.hyperspherical import from_angles
from shapedp.papers.geodp.recipes import GeoDP, TurnedMeanLoss, noise_multiplier
from shapedp.privacy import GaussianLoss, Loss, loss_of
from shapedp.sampling import Source
from shapedp.sensitivity import Sensitivity
from shapedp.torch.layout import Layout
from shapedp.torch.published import Published, flat_radius


class TurnedNoise(Law):
    """Gaussian noise on the norm and the angles of the mean of a sum; its scales are those of norm and angles.

    What it does to a sum depends on the sum: a law in the sense of a training step only.
    """

    kind: ClassVar[str] = "geodp"
    phrase: ClassVar[str] = "Gaussian noise on the norm and the angles of the mean"
    parameters: ClassVar[tuple[str, ...]] = ("dim", "clip", "batch", "beta", "sigma")

    def __init__(self, dim: int, clip: float, batch: int, beta: float, sigma: float) -> None:
        self.step = GeoDP(dim, clip, batch, beta, sigma, 1.0, 0.0)
        self.dim, self.clip, self.batch, self.beta, self.sigma = dim, clip, batch, beta, sigma

    def log_density(self, x: Floats) -> Floats:
        raise TypeError("noise on angles has no density of its own: it depends on the sum")

    @property
    def scales(self) -> Floats:
        return self.step.law.scales

    def variances(self) -> Floats:
        return self.step.law.variances()

    def half_widths(self, confidence: float) -> Floats:
        return self.step.law.half_widths(confidence)

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        """The sum whose mean has the norm and the angles of x/B, with noise on each."""
        noisy = self.step.law.add_to(polar(np.asarray(x, dtype=np.float64) / self.batch), source)
        return np.asarray(from_angles(noisy[..., 0] * self.batch, noisy[..., 1:])).astype(x.dtype)

    def _loss(self, sensitivity: Sensitivity) -> Loss:
        """A record that joins an empty batch turns the mean at will, as one that is exchanged among others does."""
        sums = Gaussian(np.concatenate([[self.clip * self.sigma], self.scales[1:]]))
        radius = max(self.clip, flat_radius(sensitivity))
        honest = MeanAngles(sums, radius, self.batch, 1.0, 0.0, sensitivity.adjacency or "replace")
        return TurnedMeanLoss(self.step.spread, self.dim - 2, loss_of(sums, honest.sensitivity))


@dataclass(frozen=True)
class PublishedGeoDP(Published):
    """GeoDP-SGD: sigma C/B on the norm and sigma sqrt(d + 2) beta pi/B on each angle of the mean clipped gradient.

    The claim is "the same DP guarantee" as DP-SGD at noise multiplier sigma: the exact epsilon of that, at `delta`.

    Guarantee: none. One record turns the mean by pi/2 whatever B is; a single step refutes the claim.
    Reference: GeoDP, Algorithm 1 and the abstract.

    Parameters
    ----------
    sigma, beta: the noise multiplier, and the window of the angles, in (0, 1].
    batch: the batch size B that the noise is divided by: that of the loader.
    delta: the delta of the claim.

    Examples
    --------
    >>> from shapedp.sensitivity import L2
    >>> noise = PublishedGeoDP(sigma=1.0, beta=0.1, batch=256, delta=1e-5)
    >>> 0 < noise.claim(L2(0.1, 100), rate=0.01, steps=100)[0] < 3
    True
    """

    sigma: float
    beta: float
    batch: int
    delta: float

    def __post_init__(self) -> None:
        for name, check in {"sigma": positive, "beta": positive, "batch": count, "delta": probability}.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        if self.beta > 1:
            raise ValueError(f"beta must lie in (0, 1], got {self.beta!r}")

    @property
    def step_epsilon(self) -> float:  # type: ignore[override]
        """What the classic Gaussian formula claims for one step."""
        return noise_multiplier(1.0, self.delta) / self.sigma

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Law:
        return TurnedNoise(sensitivity.dim, flat_radius(sensitivity), self.batch, self.beta, self.sigma)

    def claim(self, sensitivity: Sensitivity, rate: float, steps: int) -> tuple[float, float]:
        step = subsample(GaussianLoss(1 / self.sigma), rate, adjacency="add-remove")
        return compose([(step, steps)], accuracy=1e-2).epsilon(self.delta).upper, self.delta
