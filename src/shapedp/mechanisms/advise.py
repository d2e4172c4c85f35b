"""Every family that can serve a query, ranked by the error it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shapedp.boundary.values import boolean
from shapedp.mechanisms.additive import Additive
from shapedp.mechanisms.calibrate import _calibrated, _request
from shapedp.noise import FAMILIES, Request
from shapedp.privacy import NotCertifiedError
from shapedp.sensitivity import Box, Sensitivity

_STAIRCASE_BOUNDS = 100  # the time of its loss grows fast with the number of different coordinates


@dataclass(frozen=True, eq=False)
class Advice:
    """One family's answer: a calibrated mechanism and its expected error, or the reason it does not apply.

    `why` says, of the best family, in one sentence what made it win.
    """

    family: str
    mechanism: Additive | None
    expected_error: float
    reason: str
    why: str = ""

    def __str__(self) -> str:
        error = "-" if self.mechanism is None else f"{self.expected_error:.6g}"
        return f"{self.family:<10} {error:>12}  {self.reason}"


def advise(
    sensitivity: Sensitivity,
    *,
    epsilon: float,
    delta: float,
    weights: ArrayLike | None = None,
    error: Any = "squared",
    exact_zeros: bool = False,
) -> list[Advice]:
    """Every family, calibrated to (epsilon, delta) and ranked by expected error; those that do not apply last."""
    exact_zeros = boolean("exact_zeros", exact_zeros)
    request = _request(sensitivity, epsilon, delta, weights, error, exact_zeros, {})
    served, refused = [], []
    for family in FAMILIES.values():
        if family.name == "staircase" and _different(request) > _STAIRCASE_BOUNDS:
            reason = f"not tried beyond {_STAIRCASE_BOUNDS} different bounds: slow; calibrate('staircase', ...) does it"
            refused.append(Advice(family.name, None, float("inf"), reason))
            continue
        try:
            mechanism = _calibrated(family, request)
        except (ValueError, NotCertifiedError) as refusal:
            refused.append(Advice(family.name, None, float("inf"), str(refusal)))
            continue
        served.append((mechanism.expected_error(request.error, request.weights), family.name, mechanism))
    served.sort(key=lambda entry: entry[0])
    ranked: list[Advice] = []
    for cost, name, mechanism in served:
        ratio = cost / served[0][0]
        reason = "least expected error" if ratio == 1 else f"{ratio:.4g} times the least expected error"
        ranked.append(Advice(name, mechanism, cost, reason, "" if ranked else _why(request, served)))
    return ranked + refused


def _different(request: Request) -> int:
    """The number of different bounds or weights of a box."""
    if not isinstance(request.sensitivity, Box):
        return 1
    weights = np.broadcast_to(request.root_weights(), request.sensitivity.profile.shape)
    return len(np.unique(np.stack([request.sensitivity.profile, weights]), axis=1).T)


def _why(request: Request, served: list[tuple[float, str, Additive]]) -> str:
    cost, name, mechanism = served[0]
    text = f"{name} noise has the least expected error"
    if reason := FAMILIES[name].law.why(request, mechanism.law):
        text += f": {reason}"
    if len(served) > 1:
        text += f"; {served[1][1]} noise costs {served[1][0] / cost:.3g} times as much"
    return text + "."
