"""Noise added to a query of bounded sensitivity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.values import boolean
from shapedp.mechanisms.base import Claimed, Release, Rng
from shapedp.noise import Law, Request, law_from_json, optimality
from shapedp.numerics.checks import count, finite, numeric, positive, probability
from shapedp.privacy import Bracket, Loss
from shapedp.privacy.assumptions import known
from shapedp.sensitivity import Sensitivity, sensitivity_from_json

TOGETHER = "This is the worth of each of {} releases made together: all of them cost that many times as much."


@dataclass(frozen=True, eq=False)
class Additive(Claimed):
    """f(D) + noise, with the claim (epsilon, delta) it is meant to meet.

    Parameters
    ----------
    law: the noise.
    sensitivity: what one record can change of f.
    epsilon, delta: the claim.
    recipe: the name of the published calibration that chose the scale, if one did.
    premises: names of what is assumed about the query; see `privacy.assumptions`.

    Guarantee: `loss` is computed from the law and the sensitivity set; `release` happens only if the claim is
    certified by it.

    Examples
    --------
    >>> import shapedp as sdp
    >>> Additive(sdp.Gaussian(5.0, 3), sdp.L2(1.0, dim=3), epsilon=1.0, delta=1e-5).certificate.verdict
    'certified'
    """

    kind: ClassVar[str] = "additive"
    law: Law
    sensitivity: Sensitivity
    epsilon: float
    delta: float
    recipe: str | None = None
    premises: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.law.dim != self.sensitivity.dim:
            raise ValueError(f"the law has dimension {self.law.dim}, the sensitivity {self.sensitivity.dim}")
        object.__setattr__(self, "premises", known(self.premises))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one query."""
        return self.sensitivity.shape

    @cached_property
    def loss(self) -> Loss:
        """The privacy loss of one release."""
        return self.law.loss(self.sensitivity)

    @property
    def expected_squared_error(self) -> float:
        """E |noise|_2^2 (rounding to the grid adds less than 1e-9 of it)."""
        return self.law.second_moment

    def expected_error(self, measure: Any = "squared", weights: NDArray[np.float64] | None = None) -> float:
        """The expected error under a measure; see `Law.expected_error`."""
        return self.law.expected_error(measure, weights)

    @cached_property
    def optimality(self) -> Bracket | None:
        """A proved bracket of the error over the least of any Gaussian noise that meets the claim, for a `Hull`.

        The error is the one that `calibrate` was asked for; of a mechanism made otherwise it is the squared one.
        """
        return optimality(self.law, Request(self.sensitivity, self.epsilon, self.delta))

    def release(
        self, x: ArrayLike, *, rng: Rng = None, unsafe: bool = False, batch: int | None = None
    ) -> Release[NDArray[Any]]:
        """x + noise, on the grid of the law; float32 in, float32 out.

        `rng` replaces secure randomness in tests and simulations; the certificate then says so. With `batch=n`
        x holds n queries, one per row, and the release counts as n spends.
        """
        unsafe = boolean("unsafe", unsafe)
        values = self._checked(x, batch)
        flat = values.reshape(-1) if batch is None else values.reshape(-1, self.law.dim)
        drawn = self._drawn(flat, lambda randomness: self.law.add_to(flat, randomness), rng, unsafe)
        spends, certificate = 1 if batch is None else len(values), drawn.certificate
        if spends > 1:
            certificate = replace(certificate, scope=TOGETHER.format(spends))
        return Release(
            drawn.value.reshape(values.shape), self.law, certificate, spends, drawn.unsafe, self.sensitivity.shape
        )

    def _checked(self, x: ArrayLike, batch: int | None) -> NDArray[Any]:
        array = numeric("x", x)
        one = self.sensitivity.shape
        expected = one if batch is None else (count("batch", batch), *one)
        if array.shape != expected:
            raise ValueError(f"x must have shape {expected}, got {array.shape}")
        if self.sensitivity.whole and array.dtype.kind not in "iu":
            raise TypeError("the query was declared to give whole numbers: x must be an array of integers")
        checked = finite("x", array)
        return array if array.dtype == np.float32 else checked

    def _described(self) -> dict[str, Any]:
        plain = {**super()._described(), "sensitivity": self.sensitivity.to_json()}
        premises = list(plain.pop("premises"))
        return {**plain, "premises": premises} if premises else plain

    @classmethod
    def _read(cls, data: dict[str, Any]) -> dict[str, Any]:
        law, sensitivity = law_from_json(data["law"]), sensitivity_from_json(data["sensitivity"])
        stated = {"recipe": data.get("recipe"), "premises": tuple(data.get("premises", ()))}
        return {"law": law, "sensitivity": sensitivity, "epsilon": data["epsilon"], "delta": data["delta"], **stated}
