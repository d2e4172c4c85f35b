"""What an attacker can do, from any loss: trade-off curve, membership advantage, Bayes risk."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, finite, positive, probability
from shapedp.numerics.outward import ROUNDINGS_8, ROUNDINGS_32
from shapedp.privacy import Bracket, Loss

_LARGEST = 700.0  # beyond it e^epsilon is no float
_POINTS = 100_000


def _levels(alpha: ArrayLike) -> Floats:
    values = np.atleast_1d(finite("alpha", alpha))
    if values.ndim != 1:
        raise ValueError(f"alpha must be a number or a 1-d array, got shape {values.shape}")
    if ((values < 0) | (values > 1)).any():
        raise ValueError("alpha must lie in [0, 1]: it is a false-positive rate")
    return values


def trade_off(loss: Loss, alpha: ArrayLike, *, points: int = 400, largest: float = 60.0) -> Floats:
    """A lower bound on the false-negative rate of every test at each false-positive rate alpha.

    f(a) = sup over eps of max(0, 1 - delta - e^eps a, e^-eps (1 - delta - a)), over a grid of eps (the supremum over
    fewer eps is smaller, so the bound stays valid).
    Guarantee: f(alpha) <= the true trade-off curve, both directions included.
    Reference: Dong, Roth and Su 2022, Proposition 2.12.

    Example:
        >>> from shapedp import GaussianLoss
        >>> trade_off(GaussianLoss(1.0), [0.05]).round(3)
        array([0.74])
    """
    levels = _levels(alpha)
    last = min(positive("largest", largest), _LARGEST)
    epsilon = np.concatenate([[0.0], np.geomspace(1e-4, last, count("points", points, most=_POINTS))])
    upper = loss.profile(epsilon)[1]
    if not loss.symmetric:
        upper = np.maximum(upper, loss.profile(epsilon, reverse=True)[1])
    grow = np.exp(epsilon)[:, None]
    room = 1 - upper[:, None]
    best = np.maximum(room - grow * levels, (room - levels) / grow).max(axis=0)
    return np.asarray(np.clip(best - ROUNDINGS_32, 0.0, 1.0), dtype=np.float64)


def membership_advantage(loss: Loss) -> Bracket:
    """The largest true-positive minus false-positive rate of a membership attack: delta(0), the total variation.

    Reference: Yeom et al. 2018, Definition 4; Kaissis et al. 2022.

    Example:
        >>> from shapedp import GaussianLoss
        >>> round(membership_advantage(GaussianLoss(1.0)).upper, 3)
        0.383
    """
    return loss.delta(0.0)


def bayes_risk(loss: Loss, prior: float) -> Bracket:
    """The least error probability of guessing membership when the person is in with probability `prior`.

    With odds k = (1 - prior)/prior the best guess gains prior H(k): risk = prior - prior H(P, Q; log k), and
    symmetrically 1 - prior - (1 - prior) H at -log k; the worst direction counts.
    Guarantee: lower <= the risk of the best attack <= upper.

    Example:
        >>> from shapedp import GaussianLoss
        >>> round(bayes_risk(GaussianLoss(1.0), prior=0.5).lower, 3)
        0.309
    """
    prior = probability("prior", prior)
    if prior == 0:
        return Bracket(0.0, 0.0)
    log_odds = np.array([math.log1p(-prior) - math.log(prior)])
    sides = [loss.hockey_stick(log_odds)] + ([] if loss.symmetric else [loss.hockey_stick(log_odds, reverse=True)])
    best = max(float(upper[0]) for _, upper in sides)
    least = max(float(lower[0]) for lower, _ in sides)
    return Bracket(max(prior * (1 - best) - ROUNDINGS_8, 0.0), min(prior * (1 - least) + ROUNDINGS_8, prior))
