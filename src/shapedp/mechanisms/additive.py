"""Noise added to a query of bounded sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.documents import described
from shapedp.boundary.values import boolean
from shapedp.mechanisms.base import Release
from shapedp.mechanisms.watch import is_watched, watched
from shapedp.noise import Law, law_from_json
from shapedp.numerics.checks import count, finite, numeric, positive, probability
from shapedp.privacy import Certificate, Deferred, Loss, assumptions_of, certificate_of, loss_of
from shapedp.privacy.assumptions import known
from shapedp.sampling import source
from shapedp.sensitivity import Sensitivity, sensitivity_from_json

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Additive:
    """f(D) + noise, with the claim (epsilon, delta) it is meant to meet.

    Guarantee: `loss` is computed from the law and the sensitivity set; `release` happens only if the claim is
    certified by it. `recipe` names the published calibration that chose the scale, if one did.
    """

    law: Law
    sensitivity: Sensitivity
    epsilon: float
    delta: float
    recipe: str | None = None
    premises: tuple[str, ...] = ()  # names of what is assumed about the query; see privacy.assumptions
    reason: ClassVar[str] = ""  # which step of a published argument fails where the claim is refuted

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
        return loss_of(self.law, self.sensitivity)

    @cached_property
    def certificate(self) -> Certificate:
        """The mechanism's own claim, computed."""
        return certificate_of(
            self.loss,
            self.epsilon,
            self.delta,
            adjacency=self.sensitivity.adjacency,
            subject=Deferred(self.to_json),
            reason=self.reason,
            assumptions=assumptions_of(self),
        )

    @property
    def expected_squared_error(self) -> float:
        """E |noise|_2^2 (rounding to the grid adds less than 1e-9 of it)."""
        return self.law.second_moment

    def expected_error(self, measure: Any = "squared", weights: NDArray[np.float64] | None = None) -> float:
        """The expected error under a measure; see `Law.expected_error`."""
        return self.law.expected_error(measure, weights)

    def release(
        self,
        x: ArrayLike,
        *,
        rng: np.random.Generator | None = None,
        unsafe: bool = False,
        batch: int | None = None,
    ) -> Release:
        """x + noise, on the grid of the law; float32 in, float32 out.

        `rng` replaces secure randomness in tests and simulations; the certificate then says so. With `batch=n`
        x holds n queries, one per row, and the release counts as n spends.
        """
        unsafe = boolean("unsafe", unsafe)
        values = self._checked(x, batch)
        flat = values.reshape(-1) if batch is None else values.reshape(-1, self.law.dim)
        randomness = source(rng)
        certificate = self.certificate if unsafe else self.certificate.require()
        return Release(
            value=watched(self, flat, lambda: self.law.add_to(flat, randomness)).reshape(values.shape),
            law=self.law,
            certificate=certificate.with_randomness(randomness.secure and not is_watched()),
            spends=1 if batch is None else len(values),
            unsafe=certificate.verdict != "certified",
            shape=self.shape,
        )

    def _checked(self, x: ArrayLike, batch: int | None) -> NDArray[Any]:
        array = numeric("x", x)
        expected = self.shape if batch is None else (count("batch", batch), *self.shape)
        if array.shape != expected:
            raise ValueError(f"x must have shape {expected}, got {array.shape}")
        checked = finite("x", array)
        return array if array.dtype == np.float32 else checked

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` restores an equal mechanism."""
        return {
            "schema": SCHEMA,
            "kind": "additive",
            "law": self.law.to_json(),
            "sensitivity": self.sensitivity.to_json(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "recipe": self.recipe,
            **({"premises": list(self.premises)} if self.premises else {}),
        }

    @classmethod
    @described
    def from_json(cls, data: Any) -> Additive:
        """What `to_json` wrote."""
        if not isinstance(data, dict) or data.get("kind") != "additive":
            raise ValueError("not a mechanism: the field kind must read 'additive'")
        if data.get("schema") != SCHEMA:
            raise ValueError(f"mechanism schema {data.get('schema')!r} is not the supported {SCHEMA}")
        try:
            law, sensitivity = law_from_json(data["law"]), sensitivity_from_json(data["sensitivity"])
            premises = tuple(data.get("premises", ()))
            return cls(law, sensitivity, data["epsilon"], data["delta"], data.get("recipe"), premises)
        except KeyError as missing:
            raise ValueError(f"mechanism lacks the field {missing}") from None
