"""How much Gaussian noise a claim leaves beside parts that draw: found by a quick sum, proved by exact composition.

And which ledgers a release takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from shapedp.accounting.compose import compose
from shapedp.numerics import last_true
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import WIDE
from shapedp.privacy import GaussianLoss
from shapedp.privacy.losses.selected import KeysLoss

_ROOM = 1 - 1e-3  # of delta: who computes on another grid must still find the claim met
_NEAR = 1e-3  # relative, of mu
_TRIED = (1.0, 0.99, 0.97, 0.92, 0.8, 0.6, 0.3)  # of the way from what is proved to what the search found
_POINTS = 2000  # of the losses that the search looks at


def check_budget(ledger: Any, dataset: Any, rng: Any) -> None:
    """Refuse what is no ledger, a ledger without a dataset, and seeded noise that a ledger would count."""
    if (ledger is None) != (dataset is None):
        raise ValueError("ledger= and dataset= go together: the ledger, and the name of the dataset in it")
    if ledger is not None and not (hasattr(ledger, "stating") and hasattr(ledger, "spend")):
        raise TypeError(f"ledger= takes a Ledger, such as Ledger.open('budget.db'), not {type(ledger).__name__}")
    if ledger is not None and rng is not None:
        raise ValueError("a ledger takes no rng=: seeded noise can be subtracted again; leave it out")


def left_for_sums(pieces: Sequence[Any], epsilon: float, delta: float, share: float) -> float:
    """The mu of Gaussian noise that meets the claim together with the other parts, nearly the largest.

    A quick sum over their losses finds it; the exact composition then decides, and where it says no a little more noise
    is taken. The sums' own share of epsilon, which plain addition proves, is always enough.
    """
    spared = math.fsum(one.delta for one in pieces)
    least = GaussianLoss.calibrate(share, (delta - spared) * _ROOM).mu * (1 - WIDE)
    losses, masses = _lattice([one.loss for one in pieces], epsilon)

    def meets(mu: float) -> bool:
        at = (epsilon - losses) / mu
        below = special.ndtr(mu / 2 - at) - np.exp(np.minimum(epsilon - losses + special.log_ndtr(-mu / 2 - at), 0.0))
        return bool(masses @ np.maximum(below, 0.0) <= (delta - spared) * _ROOM)

    near = last_true(meets, least, GaussianLoss.calibrate(epsilon, delta).mu, relative=_NEAR)
    for share in _TRIED:
        mu = least + share * (near - least)
        if compose([*((one.loss, 1) for one in pieces), GaussianLoss(mu)]).delta(epsilon).upper <= delta * (1 - WIDE):
            return mu
    return least


def _lattice(losses: Sequence[Any], epsilon: float) -> tuple[Floats, Floats]:
    """Losses of all parts together and their masses, about: it only says where the search begins."""
    top = math.fsum(one.own * one.keys if isinstance(one, KeysLoss) else one.pure for one in losses)
    step = top / _POINTS
    total = np.ones(1)
    for one in losses:
        plain = replace(one, failure=0.0) if isinstance(one, KeysLoss) else one
        half = math.ceil(min(plain.pure, top) / step) + 1
        grid = step * np.arange(-half, half + 1)
        curve = np.maximum(plain.profile(grid)[1], -np.expm1(grid))  # no curve is below 1 - e^x
        falls = -np.diff(curve) / np.diff(np.exp(grid))  # of H in e^x: how likely a larger loss is without the person
        mass = np.exp(grid[1:-1]) * -np.diff(falls)
        total = np.convolve(total, np.maximum(np.concatenate([[0.0], mass, [0.0]]), 0.0))
    half = (total.size - 1) // 2
    return np.asarray(step * np.arange(-half, half + 1.0)), np.asarray(total / total.sum())
