"""What is asked of a family of noise: a sensitivity set, a claim and an error measure to minimise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shapedp.boundary.values import plain
from shapedp.noise.errors import Measure, measure_of
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, positive, real, vector
from shapedp.numerics.outward import ABOVE_512
from shapedp.sensitivity import Sensitivity, Slices


class DoesNotApplyError(ValueError):
    """The family cannot serve this set, claim or error measure; the message says why.

    Example:
        >>> import shapedp as sdp
        >>> try:
        ...     sdp.calibrate("gaussian", sdp.L2(1.0, dim=3), epsilon=1.0, delta=0.0)
        ... except DoesNotApplyError as refused:
        ...     print(refused)
        Gaussian noise cannot meet delta = 0: use Laplace noise, or allow a delta > 0
    """


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked of a family, already validated.

    Example:
        >>> from shapedp import L2
        >>> Request(L2(1.0, dim=3), 1.0, 1e-6, error="absolute").measure.power
        1.0
    """

    sensitivity: Sensitivity
    epsilon: float
    delta: float
    weights: Floats | None = None
    error: str = "squared"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plain(self)

    @property
    def measure(self) -> Measure:
        """The error measure to minimise."""
        return measure_of(self.error)

    def plain_weights(self) -> Floats:
        """w, one entry per coordinate or a single 1."""
        return np.ones(1) if self.weights is None else self.weights

    def root_weights(self) -> Floats:
        """sqrt(w), one entry per coordinate or a single 1."""
        return np.sqrt(self.plain_weights())

    def optimal_scales(
        self, bounds: Floats, reach: float, *, order: float, weights: Floats | None = None, copies: int = 1
    ) -> Floats:
        """`optimal_scales` for the measure and weights asked for, a little above the root; read-only."""
        chosen = self.plain_weights() if weights is None else vector("weights", weights, least=0.0, strict=True)
        if not 2.0**-10 <= real("order", order) <= 2.0**10:
            raise ValueError(f"order must lie in [2^-10, 2^10], got {order!r}")
        reach, order, copies = positive("reach", reach), positive("order", order), count("copies", copies)
        scales = optimal_scales(vector("bounds", bounds), chosen, self.measure.power, order, reach, copies=copies)
        if np.isnan(scales).any():
            raise ValueError("bounds, weights and order are too extreme: scales leave the range of floats")
        scales *= ABOVE_512
        return frozen(scales)


def by_slice(sensitivity: Slices, request: Request) -> Request:
    """The same request over the blocks that slices are, its coordinates sorted by slice."""
    weights = None if request.weights is None else sensitivity.by_slice(request.weights)
    return replace(request, sensitivity=sensitivity.blocks, weights=weights)


def optimal_scales(
    bounds: Floats, weights: Floats, power: float, order: float, reach: float, *, copies: int = 1
) -> Floats:
    """Scales b that minimise sum w_i b_i^power subject to sum (bounds_i/b_i)^order = reach^order.

    b_i^(power + order) ~ bounds_i^order/w_i; an infinite power minimises max w_i b_i^2: b_i^2 ~ 1/w_i. Each entry
    stands for `copies` coordinates. Bounds are divided by their largest entry first, so that powers neither overflow
    nor vanish.
    Reference: i.n.i.d. noise paper, equations (9) and (12), with weights.
    """
    top = float(bounds.max())
    relative = bounds / top
    if np.isinf(power):
        shape = np.where(relative > 0, 1 / np.sqrt(weights), 0.0)
    elif power == order == 2:  # shape^2 = bounds/sqrt(w): in two passes or three, without powers
        root = np.sqrt(weights)
        alike = root.size == 1
        total = float(relative.sum()) * float(root[0]) if alike else float((relative * root).sum())
        shape = relative if alike else relative / root
        np.sqrt(shape, out=shape)
        with np.errstate(over="ignore"):  # an infinite scale is refused by the law
            shape *= np.sqrt(total * copies) * top / (reach * (root[0] ** 0.5 if alike else 1.0))
        return np.asarray(shape)
    else:
        shape = (relative**order / weights) ** (1 / (power + order))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(relative > 0, relative / shape, 0.0) ** order
    return np.asarray(shape * ((float(terms.sum()) * copies) ** (1 / order) * top / reach))
