"""What a family of noise answers when it is asked to meet a claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.values import booleans
from shapedp.noise import Law
from shapedp.noise.errors import Measure, measure_of
from shapedp.sensitivity import Sensitivity, Slices

Floats = NDArray[np.float64]


class DoesNotApplyError(ValueError):
    """The family cannot serve this set, claim or error measure; the message says why."""


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked of a family, already validated."""

    sensitivity: Sensitivity
    epsilon: float
    delta: float
    weights: Floats | None = None
    error: str = "squared"
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def measure(self) -> Measure:
        """The error measure to minimise."""
        return measure_of(self.error)

    def root_weights(self) -> Floats:
        """sqrt(w), one entry per coordinate or a single 1."""
        return np.ones(1) if self.weights is None else np.sqrt(self.weights)


def by_slice(sensitivity: Slices, request: Request) -> Request:
    """The same request over the blocks that slices are, its coordinates sorted by slice."""
    weights = None if request.weights is None else sensitivity.by_slice(request.weights)
    return replace(request, sensitivity=sensitivity.blocks, weights=weights)


@dataclass(frozen=True)
class Family:
    """A name, the least-error law of the family for a request, and the options it takes.

    `every_measure` says whether it can minimise other measures than the squared error; `why` says, of a law that
    won, what made it win.
    """

    name: str
    law: Callable[[Request], Law]
    options: tuple[str, ...] = ()
    every_measure: bool = False
    why: Callable[[Request, Law], str] | None = None

    def __post_init__(self) -> None:
        booleans(self)


def optimal_scales(bounds: Floats, weights: Floats, power: float, order: float, reach: float) -> Floats:
    """Scales b that minimise sum w_i b_i^power subject to sum (bounds_i/b_i)^order = reach^order.

    b_i^(power + order) ~ bounds_i^order/w_i; an infinite power minimises max w_i b_i^2: b_i^2 ~ 1/w_i.
    Bounds are divided by their largest entry first, so that powers neither overflow nor vanish.
    Reference: i.n.i.d. noise paper, equations (9) and (12), with weights.
    """
    top = float(bounds.max())
    relative = bounds / top
    if np.isinf(power):
        shape = np.where(relative > 0, 1 / np.sqrt(weights), 0.0)
    else:
        shape = (relative**order / weights) ** (1 / (power + order))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(relative > 0, relative / shape, 0.0) ** order
    return np.asarray(shape * (float(terms.sum()) ** (1 / order) * top / reach))
