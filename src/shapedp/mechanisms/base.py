"""What every mechanism answers, and what a release hands back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.values import booleans
from shapedp.noise import Law
from shapedp.numerics.checks import numeric
from shapedp.privacy import Certificate, Loss, one_relation


@runtime_checkable
class Mechanism(Protocol):
    """A release with a privacy loss: the loss is the mechanism's own, nothing else computes privacy."""

    @property
    def loss(self) -> Loss:
        """The privacy loss of one release."""

    @property
    def certificate(self) -> Certificate:
        """The mechanism's own claim, computed."""

    def release(self, x: Any, *, rng: np.random.Generator | None = None, unsafe: bool = False) -> Release:
        """A noisy answer; raises unless the certificate is certified or `unsafe` is passed."""


def adjacency_of(subject: Any) -> str | None:
    """The neighbour relation of a mechanism, a plan or a loss, None where the user vouches for it.

    Guarantee: what the subject states of itself agrees with what its loss was computed for, or ValueError is raised.
    """
    loss = getattr(subject, "loss", None)
    holders = (subject, getattr(subject, "sensitivity", None), loss if isinstance(loss, Loss) else None)
    return one_relation(getattr(holder, "adjacency", None) for holder in holders)


@dataclass(frozen=True, eq=False)
class Release:
    """A released value with its error bars and the certificate it was released under.

    `spends` is the number of times the mechanism's budget was used; `unsafe` marks a release whose claim is not
    certified. `shape` is that of one query, where `value` may hold a batch of them.
    """

    value: NDArray[Any]
    law: Law
    certificate: Certificate
    spends: int = 1
    unsafe: bool = False
    shape: tuple[int, ...] = (-1,)

    def __post_init__(self) -> None:
        booleans(self)
        values = numeric("value", self.value)
        if values.size and not (math.isfinite(values.min()) and math.isfinite(values.max())):
            raise ValueError("a released value must be finite")
        named: tuple[Any, Any] = (self.law, self.certificate)
        if not isinstance(named[0], Law) or not isinstance(named[1], Certificate):
            raise TypeError("a release names the law of its noise and the certificate it was released under")
        if not self.unsafe and self.certificate.verdict != "certified":
            raise ValueError("a release under a claim that is not certified must say unsafe=True")

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """The standard deviation of the noise in each coordinate."""
        return self.law.marginal_scales().reshape(self.shape)

    def interval(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends that hold each true coordinate with the given probability, one at a time."""
        half = np.broadcast_to(self.law.half_widths(confidence), self.law.dim).reshape(self.shape)
        centre = np.asarray(self.value, dtype=np.float64)
        return centre - half, centre + half

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.value)
