"""What a privacy loss costs in each currency, rounded up. New losses register here or need nothing."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

from scipy import special

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.ledger.errors import SpendRefusedError
from shapedp.privacy.conversions import pure_to_rdp
from shapedp.privacy.losses import AdjustedLoss, GaussianLoss, LaplaceLoss, Loss

_PURE_LIMIT = 600.0


@singledispatch
def split(loss: Loss) -> tuple[Loss, Fraction, Fraction]:
    """(core, failure, total variation): the loss off the events on which nothing is promised, and those."""
    return loss, Fraction(0), Fraction(0)


@split.register
def _(loss: AdjustedLoss) -> tuple[Loss, Fraction, Fraction]:
    core, failure, variation = split(loss.base)
    if loss.log_ratio:
        growth = Fraction(math.exp(loss.log_ratio)) * (1 + Fraction(1, 2**50)) if failure or variation else 1
        core, failure, variation = core.shift(loss.log_ratio), failure * growth, variation * growth
    return core, failure + Fraction(loss.failure), variation + Fraction(loss.total_variation)


@split.register
def _(loss: BareLoss) -> tuple[Loss, Fraction, Fraction]:
    return BareLoss(loss.pure_epsilon), Fraction(loss.failure), Fraction(0)


@singledispatch
def pure_epsilon(loss: Loss) -> float:
    """The epsilon of pure differential privacy; infinite where there is none."""
    return loss.epsilon(0.0).upper


@pure_epsilon.register
def _(loss: GaussianLoss) -> float:
    return math.inf if loss.mu else 0.0


@pure_epsilon.register
def _(loss: LaplaceLoss) -> float:
    return loss.pure


@pure_epsilon.register
def _(loss: BareLoss) -> float:
    return math.inf if loss.failure else loss.pure_epsilon


@pure_epsilon.register
def _(loss: AdjustedLoss) -> float:
    if loss.failure or loss.total_variation:
        return math.inf
    return (pure_epsilon(loss.base) + loss.log_ratio) * (1 + 2.0**-50)


@singledispatch
def gaussian_mu(loss: Loss) -> float:
    """A mu for which the loss is mu-GDP: 2 Phi^-1(e^eps/(1 + e^eps)) for an eps-DP loss.

    Guarantee: the trade-off curve of eps-DP joins (0, 1), (c, c), (1, 0) by lines, c = 1/(1 + e^eps); the
    curve of that mu passes through the same three points and is convex, hence lies below.
    Reference: Dong, Roth and Su 2022, Definition 2.6 and equation 6 (the two curves).
    """
    epsilon = pure_epsilon(loss)
    if not epsilon <= _PURE_LIMIT:
        raise SpendRefusedError(
            f"a Gaussian ledger takes Gaussian and pure-DP mechanisms; {type(loss).__name__} is neither: "
            "use a dataset with rule='renyi' or rule='basic'"
        )
    mu = -2 * float(special.ndtri(1 / (1 + math.exp(epsilon))))
    return max(mu, 0.0) * (1 + 2.0**-40) + (2.0**-45 if epsilon else 0.0)


@gaussian_mu.register
def _(loss: GaussianLoss) -> float:
    if loss.mu == math.inf:
        raise SpendRefusedError(
            "the Gaussian noise is zero in a direction that a person can change: its loss is infinite"
        )
    return loss.mu


def renyi_curve(loss: Loss, orders: tuple[float, ...]) -> tuple[float, ...]:
    """Upper bounds on the Renyi divergence at each order; infinite where the loss has none.

    Raises SpendRefusedError where no order has a finite one. Randomised response bounds a pure loss.
    """
    curve, reason = [], "its Renyi divergence is infinite at every order of this dataset"
    for order in orders:
        try:
            curve.append(loss.renyi(order).upper)
        except ValueError as refused:
            curve.append(math.inf)
            reason = str(refused)
    epsilon = pure_epsilon(loss)
    if epsilon < _PURE_LIMIT:
        curve = [min(value, pure_to_rdp(epsilon, order)) for value, order in zip(curve, orders, strict=True)]
    if not any(value < math.inf for value in curve):
        raise SpendRefusedError(f"a Renyi ledger cannot charge {type(loss).__name__}: {reason}")
    return tuple(curve)
