"""What a privacy loss costs in each currency, rounded up."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch

from scipy import special

from shapedp.accounting.compose import root_sum_squares
from shapedp.boundary.refusals import refusal
from shapedp.ledger.errors import SpendRefusedError
from shapedp.numerics.outward import ABOVE_16, ABOVE_8192, ROUNDINGS_256
from shapedp.privacy.conversions import pure_to_rdp
from shapedp.privacy.losses import GaussianLoss, Loss
from shapedp.privacy.losses.base import Pieces

_PURE_LIMIT = 600.0
_EXP_LIMIT = 700.0  # a failure that grows by more is certain


def split(loss: Loss) -> tuple[Pieces, Fraction, Fraction]:
    """(core, failure, total variation): the loss off the events on which nothing is promised, and those.

    The same pieces as a composition takes: a plan costs what its mechanisms do. What makes outputs likelier by a factor
    makes failures likelier by it.
    """
    given: object = loss
    if not isinstance(given, Loss):
        raise TypeError(f"what is charged needs a privacy loss: a mechanism has one, got {type(given).__name__}")
    taken = loss.pieces()
    failure = Fraction(taken.failure) + Fraction(taken.certain)
    growth = min(taken.log_ratio + taken.slip, _EXP_LIMIT)
    factor = Fraction(math.exp(growth)) * (1 + Fraction(1, 2**50)) if growth else Fraction(1)
    core = replace(taken, failure=0.0, total_variation=0.0, certain=0.0, spoilt=0.0)
    return core, failure * factor, Fraction(taken.total_variation) * factor


def pure_epsilon(loss: Loss) -> float:
    """The epsilon of pure differential privacy; infinite where there is none."""
    core, failure, variation = split(loss)
    return math.inf if failure or variation else _pure(core)


def _pure(core: Pieces) -> float:
    """Pure epsilons add up; both laws are off by a factor e^slip at most."""
    alone = len(core.parts) == 1 and core.parts[0][1] == 1 and not core.log_ratio and not core.slip
    parts = math.fsum(n * _pure_of(part) for part, n in core.parts)
    return parts if alone else (parts + core.log_ratio + 2 * core.slip) * ABOVE_16


@singledispatch
def _pure_of(loss: Loss) -> float:
    """The pure epsilon of a part, searched for where it does not state one; infinite where none is found."""
    return loss.pure if loss.pure < math.inf else loss.epsilon(0.0).upper


@_pure_of.register
def _(loss: GaussianLoss) -> float:
    return math.inf if loss.mu else 0.0


def gaussian_mu(core: Pieces) -> float:
    """A mu for which the pieces together are mu-GDP: mu^2 of the parts adds up, rounded up."""
    if core.log_ratio or core.slip:
        return _gaussian_of_pure(_pure(core), "a loss with a determinant factor or a rounding slip")
    if len(core.parts) == 1 and core.parts[0][1] == 1:
        return _gaussian(core.parts[0][0])
    return root_sum_squares([(_gaussian(part), n) for part, n in core.parts])


@singledispatch
def _gaussian(loss: Loss) -> float:
    return _gaussian_of_pure(_pure_of(loss), type(loss).__name__)


@_gaussian.register
def _(loss: GaussianLoss) -> float:
    if loss.mu == math.inf:
        raise SpendRefusedError("the noise is zero in a direction that a person can change: its loss is infinite")
    return loss.mu


def _gaussian_of_pure(epsilon: float, name: str) -> float:
    """2 Phi^-1(e^eps/(1 + e^eps)), the mu of an eps-DP loss.

    Guarantee: the trade-off curve of eps-DP joins (0, 1), (c, c), (1, 0) by lines, c = 1/(1 + e^eps); the
    curve of that mu passes through the same three points and is convex, hence lies below.
    Reference: Dong, Roth and Su 2022, Definition 2.6 and equation 6 (the two curves).
    """
    if not epsilon <= _PURE_LIMIT:
        raise SpendRefusedError(refusal("ledger", "neither-gaussian-nor-pure", name=name))
    mu = -2 * float(special.ndtri(1 / (1 + math.exp(epsilon))))
    return max(mu, 0.0) * ABOVE_8192 + (ROUNDINGS_256 if epsilon else 0.0)


def renyi_curve(core: Pieces, orders: tuple[float, ...]) -> tuple[float, ...]:
    """Upper bounds on the Renyi divergence of the pieces together at each order; infinite where there is none.

    The divergences of the parts add up, a log-ratio adds itself, and laws within e^s of others add (2 a - 1)/(a - 1)
    s: a for the first law, a - 1 for the second. Randomised response bounds a pure loss.
    Raises SpendRefusedError where no order has a finite one.
    """
    total, reasons = [core.log_ratio + (2 * a - 1) / (a - 1) * core.slip for a in orders], []
    for part, n in core.parts:
        curve, reason = _part_curve(part, orders)
        total = [(one + n * more) * ABOVE_16 for one, more in zip(total, curve, strict=True)]
        if math.inf in curve:
            reasons.append(refusal("ledger", "no-renyi-price", kind=type(part).__name__, reason=reason))
    if not any(value < math.inf for value in total):
        raise SpendRefusedError("; ".join(reasons) or "the log-ratio is infinite")
    return tuple(total)


def _part_curve(part: Loss, orders: tuple[float, ...]) -> tuple[list[float], str]:
    """Of one part, and why it is infinite where it is."""
    curve, reason = [], "its Renyi divergence is infinite at every order of this dataset"
    for order in orders:
        try:
            curve.append(part.renyi(order).upper)
        except ValueError as refused:
            curve.append(math.inf)
            reason = str(refused)
    epsilon = _pure_of(part)
    if epsilon < _PURE_LIMIT:
        curve = [min(value, pure_to_rdp(epsilon, order)) for value, order in zip(curve, orders, strict=True)]
    return curve, reason
