"""Gaussian noise on some coordinates, Laplace on the others; the best split of a box."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.documents import decode, described, encode
from shapedp.noise.base import Law, confidence_level, of_order, registered
from shapedp.noise.gaussian import normal_half_width, normal_moment
from shapedp.noise.laplace import Laplace
from shapedp.noise.request import DoesNotApplyError, Request
from shapedp.noise.spread import SpreadLaw
from shapedp.noise.tilted import least_error
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import entries, numeric, vector
from shapedp.privacy.losses import GaussianLoss, MixedLoss
from shapedp.sampling import Source, rounded_sum
from shapedp.sensitivity import Box, Sensitivity


@registered(family="mixed", every_measure=True)
@dataclass(frozen=True, eq=False, init=False)
class Mixed(SpreadLaw):
    """Independent coordinates: N(0, scale_i^2) where `gaussian_i`, density exp(-|x|/scale_i)/(2 scale_i) elsewhere.

    Parameters: `scale` holds one number per coordinate, `gaussian` one boolean each.

    Example:
        >>> Mixed([1.0, 1.0], [True, False]).variances()
        array([1., 2.])
    """

    kind: ClassVar[str] = "mixed"
    phrase: ClassVar[str] = "Gaussian noise in some coordinates, Laplace noise in the others"
    gaussian: NDArray[np.bool_]

    def __init__(self, scale: ArrayLike, gaussian: ArrayLike) -> None:
        super().__init__(vector("scale", scale, least=0.0))
        chosen = np.array(gaussian if isinstance(gaussian, np.ndarray) else entries("gaussian", gaussian))
        if chosen.shape != (self.dim,) or chosen.dtype != np.bool_:
            raise ValueError(f"gaussian must hold one boolean per scale ({self.dim}), got {gaussian!r}")
        chosen.setflags(write=False)
        object.__setattr__(self, "gaussian", chosen)

    def log_density(self, x: Floats) -> Floats:
        z = np.asarray(x, dtype=np.float64) / self.scales
        normal = -0.5 * np.square(z) - 0.5 * math.log(2 * math.pi)
        each = np.where(self.gaussian, normal, -np.abs(z) - math.log(2))
        return np.asarray(each.sum(-1) - np.log(self.scales).sum())

    def variances(self) -> Floats:
        return np.where(self.gaussian, 1.0, 2.0) * np.square(self.scales)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        return np.asarray(np.where(self.gaussian, normal_moment(p), math.gamma(p + 1)) * self.scales**p)

    def half_widths(self, confidence: float) -> Floats:
        level = confidence_level(confidence)
        return np.asarray(np.where(self.gaussian, normal_half_width(level), -math.log1p(-level)) * self.scales)

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        x = numeric("x", x)
        if x.shape[-1:] != (self.dim,):
            raise ValueError(f"x must have {self.dim} columns, got shape {x.shape}")
        out = np.empty(x.shape, dtype=np.float32 if x.dtype == np.float32 else np.float64)
        for kind, chosen in (("gaussian", self.gaussian), ("laplace", ~self.gaussian)):
            if chosen.any():
                out[..., chosen] = rounded_sum(x[..., chosen], kind, self.scales[chosen], None, source)
        return out

    def to_json(self) -> dict[str, Any]:
        return {"law": self.kind, "scale": encode(self.scales), "gaussian": encode(self.gaussian.astype(np.float64))}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> Mixed:
        return cls(decode("scale", data["scale"]), decode("gaussian", data["gaussian"]) != 0)

    def of_coordinates(self, keep: NDArray[np.bool_]) -> Mixed:
        keep = self._kept(keep)
        return Mixed(self.scales[keep], self.gaussian[keep])

    def _loss(self, sensitivity: Sensitivity) -> MixedLoss | GaussianLoss:
        if not isinstance(sensitivity, Box):
            raise TypeError(f"mixed noise is known for boxes only, not for the set {sensitivity.kind!r}")
        moving = sensitivity.profile > 0
        if (self.scales[moving] == 0).any():
            return GaussianLoss(math.inf)
        normal, other = moving & self.gaussian, moving & ~self.gaussian
        z = sensitivity.profile[normal] / self.scales[normal]
        ratios = sensitivity.profile[other] / self.scales[other]
        return MixedLoss(ratios if ratios.size else np.zeros(1), math.sqrt(math.fsum(z * z)))

    @classmethod
    def fitted(cls, request: Request) -> Mixed:
        """Laplace noise on the coordinates that decide, Gaussian noise on the many that do not."""
        if request.delta == 0:
            raise DoesNotApplyError("mixed noise cannot meet delta = 0: use Laplace noise, or allow a delta > 0")
        sensitivity = request.sensitivity
        if not isinstance(sensitivity, Box):
            raise DoesNotApplyError(f"mixed noise serves boxes, whose corner is the worst, not {sensitivity.kind!r}")
        pure = request.optimal_scales(sensitivity.profile, request.epsilon, order=1)
        found = least_error(sensitivity, request, Laplace(pure), cls._of, mixed=True)
        if not isinstance(found, Mixed) or found.gaussian.all():
            raise DoesNotApplyError("no mixture beats one kind of noise for all coordinates: use laplace or gaussian")
        return found

    @classmethod
    def _of(cls, scales: Floats, gaussian: NDArray[np.bool_]) -> Law:
        return cls(scales, gaussian) if gaussian.any() else Laplace(scales)

    @classmethod
    def why(cls, request: Request, law: Law) -> str:
        if not isinstance(law, Mixed):
            raise TypeError(f"law must be mixed noise, got {type(law).__name__}")
        crowd = int(law.gaussian.sum())
        few = law.dim - crowd
        decide = "1 coordinate decides and carries" if few == 1 else f"{few} coordinates decide and carry"
        rest = f"the losses of the other {crowd} add up in squares under Gaussian noise"
        return f"{decide} Laplace noise, sharp at zero; {rest}"
