"""What a family of noise answers when it is asked to meet a claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.noise import Law
from shapedp.sensitivity import Sensitivity

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

    def root_weights(self) -> Floats:
        """sqrt(w), one entry per coordinate or a single 1."""
        return np.ones(1) if self.weights is None else np.sqrt(self.weights)


@dataclass(frozen=True)
class Family:
    """A name, the least-error law of the family for a request, and the options it takes."""

    name: str
    law: Callable[[Request], Law]
    options: tuple[str, ...] = ()
