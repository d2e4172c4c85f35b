"""Noise for gradients: a law for each sensitivity set, up to one scale that the plan solves for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from shapedp.mechanisms import calibrate
from shapedp.noise import Gaussian, Laplace, Law, Radial, TensorGaussian
from shapedp.noise.stack import Stack
from shapedp.numerics.checks import one_of, positive
from shapedp.numerics.outward import ABOVE_512
from shapedp.privacy import GaussianLoss, Loss, loss_of
from shapedp.sensitivity import L2, Blocks, Box, Sensitivity
from shapedp.torch.layout import Layout
from shapedp.torch.refusals import refusal

Shape = Literal["optimal", "equal", "spr", "proportional"]
SHAPES: tuple[Shape, ...] = ("optimal", "equal", "spr", "proportional")


class Noise(ABC):
    """A family of noise laws that grow with `scale`; a Gaussian one has mu = 1/scale for every set it serves.

    Noise of your own defines `law(sensitivity, layout, scale)`, which returns the law for a clip's set.

    Examples
    --------
    >>> from shapedp.torch import Flat, GaussianNoise, Layout
    >>> layout = Layout.single(3)
    >>> law = GaussianNoise().law(Flat(0.5).sensitivity(layout), layout, 2.0)
    >>> [round(float(scale), 6) for scale in law.scales]
    [1.0]
    """

    @abstractmethod
    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Law:
        """The law for a set."""

    def family(self, sensitivity: Sensitivity, layout: Layout) -> Callable[[float], Loss]:
        """From a scale to the loss of one step."""
        return lambda scale: loss_of(self.law(sensitivity, layout, scale), sensitivity)


class _GaussianKind(Noise):
    """Laws whose loss is that of N(1/scale, 1) against N(0, 1); it depends on the scale alone."""

    def family(self, sensitivity: Sensitivity, layout: Layout) -> Callable[[float], Loss]:
        return lambda scale: GaussianLoss(1 / scale)

    def _scaled(self, unit: Law, sensitivity: Sensitivity, scale: float) -> float:
        """What multiplies a law so that its mu is at most 1/scale."""
        loss = loss_of(unit, sensitivity)
        assert isinstance(loss, GaussianLoss)
        if not math.isfinite(loss.mu):
            raise ValueError("this noise leaves a direction that a record can change without noise")
        return loss.mu * scale * ABOVE_512


@dataclass(frozen=True)
class GaussianNoise(_GaussianKind):
    """Gaussian noise with a diagonal covariance.

    Parameters
    ----------
    shape : how the standard deviations s of the entries relate to the bounds C_m of layers of size K_m, or l_i of
        entries. "optimal" has the least total energy for the clip's set: isotropic for a flat clip,
        s_m^2 ~ C_m/sqrt(K_m) per layer, s_i^2 ~ l_i per value. "equal" is isotropic for every set. "spr" (scale,
        perturb, rescale) has s_m ~ C_m/sqrt(K_m), that is s_i ~ l_i. "proportional" has s_m ~ C_m.

    Examples
    --------
    >>> from shapedp.torch import Flat, GaussianNoise, Layout
    >>> layout = Layout.single(3)
    >>> GaussianNoise("equal").law(Flat(1.0).sensitivity(layout), layout, 1.0).dim
    3

    Reference: i.n.i.d. noise paper, Theorem 4 and Definition 5 at section VI.C; He et al. 2022, group-wise clipping.
    """

    shape: Shape = "optimal"

    def __post_init__(self) -> None:
        one_of("shape", self.shape, SHAPES)

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Gaussian:
        unit = self._unit(sensitivity)
        values = unit.spread.values * self._scaled(unit, sensitivity, positive("scale", scale))
        if values.size == 1 and unit.spread.sizes is None:
            return Gaussian(float(values[0]), unit.dim)
        return Gaussian(values, sizes=unit.spread.sizes)

    def _unit(self, sensitivity: Sensitivity) -> Gaussian:
        if self.shape == "optimal":
            law = calibrate("gaussian", sensitivity, epsilon=1.0, delta=1e-6).law
            assert isinstance(law, Gaussian)
            return law
        if isinstance(sensitivity, Box) and self.shape != "equal":
            return Gaussian(sensitivity.profile)
        if isinstance(sensitivity, Blocks) and self.shape != "equal":
            per_entry = np.sqrt(sensitivity.sizes) if self.shape == "spr" else 1.0
            return Gaussian(sensitivity.radii / per_entry, sizes=sensitivity.sizes)
        return Gaussian(1.0, sensitivity.dim)


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """Independent Laplace noise with b_i ~ l_i^exponent, l_i the clip's bound on entry i; for per-value clips.

    Parameters
    ----------
    exponent : 1/2 has the least energy where many entries share the loss (it is then nearly Gaussian), 1/3 under pure
        DP (the i.n.i.d. paper's choice); 1 is SPR; 0 gives all entries the same scale.

    Examples
    --------
    >>> from shapedp.torch import LaplaceNoise, Layout, PerValue
    >>> layout = Layout.single(4)
    >>> LaplaceNoise().law(PerValue(1.0).sensitivity(layout), layout, 1.0).dim
    4

    Reference: i.n.i.d. noise paper, Theorem 5 and Definition 5.
    """

    exponent: float = 0.5

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Laplace:
        if not isinstance(sensitivity, Box):
            raise ValueError(refusal("laplace-needs-a-box", kind=sensitivity.kind))
        bounds = sensitivity.profile
        shape = (bounds / bounds.max()) ** self.exponent
        reach = sensitivity.l2_reach(shape)[1]
        return Laplace(shape * (reach * positive("scale", scale)))


@dataclass(frozen=True)
class RadialNoise(Noise):
    """Spherical noise with density ~ r^(a - dim) exp(-(r/s)^b) and E |n|^2 = dim (scale radius)^2; for flat clips.

    Parameters
    ----------
    a, b : the shape; by default that of the Gaussian. `sdp.calibrate("radial", ...)` finds better ones in low
        dimension.

    Examples
    --------
    >>> from shapedp.torch import Flat, Layout, RadialNoise
    >>> layout = Layout.single(5)
    >>> RadialNoise(b=1.5).law(Flat(1.0).sensitivity(layout), layout, 1.0).b
    1.5
    """

    a: float | None = None
    b: float = 2.0

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Radial:
        dim, radius = sensitivity.dim, flat_radius(sensitivity)
        unit = Radial(dim, dim if self.a is None else self.a, self.b, 1.0)
        rms = math.sqrt(unit.mean_squared_radius / dim)
        return Radial(dim, unit.a, unit.b, radius * positive("scale", scale) / rms)


@dataclass(frozen=True)
class TensorNoise(_GaussianKind):
    """Gaussian noise with a Kronecker covariance on each parameter: one factor per axis of its gradient.

    Parameters
    ----------
    factors : for parameters by name, a list with a matrix, a diagonal or a size (the identity) per axis. Others get
        isotropic noise. Between parameters, energy is shared as `GaussianNoise` does.

    Examples
    --------
    >>> from shapedp.torch import Flat, Layout, TensorNoise
    >>> layout = Layout(("weight",), ((2, 3),), (0,))
    >>> TensorNoise({"weight": [[1.0, 2.0], 3]}).law(Flat(1.0).sensitivity(layout), layout, 1.0).dim
    6

    Reference: tensor-valued queries, Theorem 1 (the law; its scale is solved for exactly here).
    """

    factors: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Stack:
        if sensitivity.dim != layout.dim:
            raise ValueError("tensor noise needs a clip that releases the gradient alone")
        unknown = sorted(set(self.factors) - set(layout.names))
        if unknown:
            raise ValueError(f"factors name no trainable parameter: {', '.join(unknown)}")
        levels = GaussianNoise().law(sensitivity, layout, 1.0).scales
        starts = np.cumsum([0, *layout.sizes])[:-1]
        laws = []
        for name, shape, start in zip(layout.names, layout.shapes, starts, strict=True):
            given = self.factors.get(name)
            unit = TensorGaussian(list(given) if given is not None else list(shape or (1,)))
            if unit.shape != (shape or (1,)):
                raise ValueError(f"factors of {name} give the shape {unit.shape}, its gradient has {shape}")
            least = math.prod(float(mode.scales.min()) for mode in unit.modes)
            laws.append(unit.times(float(levels[0] if levels.size == 1 else levels[start]) / least))
        law = Stack(tuple(laws))
        for _ in range(2):  # the rounding of rotated inputs does not shrink with the scale
            law = law.times(self._scaled(law, sensitivity, positive("scale", scale)))
        return law


def flat_radius(sensitivity: Sensitivity) -> float:
    """The radius of a flat clip; any other set is refused."""
    if not isinstance(sensitivity, L2) or sensitivity.scales is not None:
        raise ValueError(f"this noise is for a flat clip, not the set {sensitivity.kind!r}: use Flat or Auto")
    return sensitivity.radius


NAMES: dict[str, Callable[[], Noise]] = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
    "radial": RadialNoise,
    "tensor": TensorNoise,
}


def noise_from(noise: Any) -> Noise:
    """A noise, or the name of one in its default form."""
    return noise if isinstance(noise, Noise) else NAMES[one_of("noise", noise, tuple(NAMES))]()
