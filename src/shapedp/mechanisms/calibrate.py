"""From a claim to the least-error mechanism that meets it; and every family that can serve a query, ranked by error."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import boolean
from shapedp.mechanisms.additive import Additive
from shapedp.noise import FAMILIES, DoesNotApplyError, Family, Request, optimality
from shapedp.noise.errors import measure_of
from shapedp.numerics.checks import numeric, one_of, positive, probability, vector
from shapedp.privacy import NotCertifiedError
from shapedp.sensitivity import Box, Sensitivity

_STAIRCASE_BOUNDS = 100  # the time of its loss grows fast with the number of different coordinates


def calibrate(
    family: str,
    sensitivity: Sensitivity,
    *,
    epsilon: float,
    delta: float,
    weights: ArrayLike | None = None,
    error: Any = "squared",
    exact_zeros: bool = False,
    **options: Any,
) -> Additive:
    """The least-error mechanism of a family that meets (epsilon, delta) for a sensitivity set.

    Parameters
    ----------
    family: the kind of noise, one of `noise.FAMILIES`.
    sensitivity: what one record can change of the query.
    epsilon, delta: the claim; `delta=0.0` asks for pure differential privacy.
    weights: w_i > 0, the weights of the coordinates in the error.
    error: what is minimised: "squared", "absolute", "l3" or ("lp", p) for sum_i w_i E |n_i|^p, "max" for the largest
        w_i E n_i^2.
    exact_zeros: release coordinates of zero sensitivity as they are; without it they are refused.
    options: those of the family.

    Returns
    -------
    The mechanism.

    Guarantee: the mechanism returned is certified; the scale lies on the private side of the root.
    For the Gaussian scales of many claims at once see `privacy.losses.largest_mus`.

    Examples
    --------
    >>> import shapedp as sdp
    >>> calibrate("laplace", sdp.L1(1.0, dim=2), epsilon=0.5, delta=0.0).law.scales.round(3)
    array([2.])
    """
    exact_zeros = boolean("exact_zeros", exact_zeros)
    chosen = FAMILIES[one_of("family", family, tuple(FAMILIES))]
    if unknown := sorted(set(options) - set(chosen.options)):
        known = ", ".join(chosen.options) or "none"
        raise TypeError(f"{chosen.name} noise takes no option {', '.join(unknown)} (its options: {known})")
    return _calibrated(chosen, _request(sensitivity, epsilon, delta, weights, error, exact_zeros, options))


def _request(
    sensitivity: Sensitivity, epsilon: float, delta: float, weights: Any, error: Any, exact_zeros: bool, options: Any
) -> Request:
    if not isinstance(sensitivity, Sensitivity):
        raise TypeError(f"sensitivity must be L2, L1, Box, Blocks, Slices or Hull, got {type(sensitivity).__name__}")
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    measure = measure_of(error)
    if not exact_zeros and sensitivity.has_fixed:
        raise ValueError(refusal("mechanisms", "zero-sensitivity"))
    chosen = None if weights is None else _weights(weights, sensitivity)
    return Request(sensitivity, epsilon, delta, chosen, measure.name, options)


def _weights(weights: ArrayLike, sensitivity: Sensitivity) -> NDArray[np.float64]:
    """One weight per coordinate, in C order."""
    given = numeric("weights", weights)
    if given.shape not in (sensitivity.shape, (sensitivity.dim,)):
        raise ValueError(f"weights must have one entry per coordinate {sensitivity.shape}, got shape {given.shape}")
    return vector("weights", given.reshape(-1), least=0.0, strict=True)


def _calibrated(family: Family, request: Request) -> Additive:
    if request.measure.power != 2 and not family.every_measure:
        raise DoesNotApplyError(f"{family.name} noise is calibrated for the squared error only")
    for aim in (1.0, 1 - 2.0**-36, 1 - 2.0**-28):  # lower where rounding alone leaves the claim undecided
        try:
            law = family.law.fitted(replace(request, delta=request.delta * aim))
        except ArithmeticError:
            raise DoesNotApplyError(refusal("mechanisms", "extreme-claim", claim=request, name=family.name)) from None
        top = float(law.scales.max())
        if not 1e-145 < top < 1e145:  # squares of other scales overflow or vanish
            raise ValueError(f"the noise needed has scale {top:g}: measure the query in other units")
        mechanism = Additive(law, request.sensitivity, request.epsilon, request.delta)
        if mechanism.certificate.verdict != "undecided":
            break
    mechanism.certificate.require()
    if family.name == "gaussian":
        vars(mechanism)["optimality"] = optimality(law, request)
    return mechanism


@dataclass(frozen=True, eq=False)
class Advice:
    """One family's answer: a calibrated mechanism and its expected error, or the reason it does not apply.

    Parameters
    ----------
    family: the name of the family.
    mechanism, expected_error: its mechanism and what that costs; None and infinity where the family does not apply.
    reason: how it compares with the best, or why it does not apply.
    why: of the best family, in one sentence what made it win.

    Examples
    --------
    >>> print(Advice("staircase", None, float("inf"), "needs delta = 0"))
    staircase             -  needs delta = 0
    """

    family: str
    mechanism: Any
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
    """Every family, calibrated to (epsilon, delta) and ranked by expected error; those that do not apply last.

    Parameters
    ----------
    sensitivity, epsilon, delta, weights, error, exact_zeros: as for `calibrate`.

    Returns
    -------
    One `Advice` per family.

    Examples
    --------
    >>> import shapedp as sdp
    >>> advise(sdp.Box([1.0]), epsilon=1.0, delta=0.0)[-1].mechanism is None
    True
    """
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
        ratio = _ratio(cost, served[0][0])
        reason = "least expected error" if ratio == 1 else f"{ratio:.4g} times the least expected error"
        ranked.append(Advice(name, mechanism, cost, reason, "" if ranked else _why(request, served)))
    return ranked + refused


def _different(request: Request) -> int:
    """The number of different bounds or weights of a box."""
    if not isinstance(request.sensitivity, Box):
        return 1
    weights = np.broadcast_to(request.root_weights(), request.sensitivity.profile.shape)
    return len(np.unique(np.stack([request.sensitivity.profile, weights]), axis=1).T)


def _ratio(cost: float, least: float) -> float:
    """cost/least; both may have vanished, where epsilon is beyond all measure."""
    return 1.0 if cost == least else cost / least if least > 0 else math.inf


def _why(request: Request, served: list[tuple[float, str, Additive]]) -> str:
    cost, name, mechanism = served[0]
    text = f"{name} noise has the least expected error"
    if reason := FAMILIES[name].law.why(request, mechanism.law):
        text += f": {reason}"
    if len(served) > 1:
        text += f"; {served[1][1]} noise costs {_ratio(served[1][0], cost):.3g} times as much"
    return text + "."
