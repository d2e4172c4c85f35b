"""How many samples it takes to see how large a fault."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from shapedp.audit.bounds import LEVELS, SPENDING
from shapedp.audit.claim import Claim
from shapedp.numerics.checks import entries, positive, probability
from shapedp.privacy import GaussianLoss

FAULTS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
_EVENTS, _TESTED, _CHECKS = 3, 0.8, 10
_ENOUGH = 10.0  # expected hits below which a normal approximation says nothing


@dataclass(frozen=True)
class PowerRow:
    """Outputs needed to see noise of `factor` times the scale it should have; infinite where no number suffices.

    `claim`: against (epsilon, delta) alone. `profile`: against the whole profile. `distribution`: values of noise
    needed by the distribution audit.

    Examples
    --------
    >>> from shapedp.audit import power
    >>> row = power(epsilon=1.0, delta=1e-5, faults=(0.5,))[0]
    >>> row.factor, row.profile < row.claim
    (0.5, True)
    """

    factor: float
    epsilon: float
    delta: float
    claim: float
    profile: float
    distribution: float


def power(
    *,
    epsilon: float,
    delta: float,
    faults: tuple[float, ...] = FAULTS,
    confidence: float = 0.99,
    chance: float = 0.9,
    false_alarm: float = 1e-6,
) -> list[PowerRow]:
    """Outputs needed to catch exactly calibrated Gaussian noise whose scale is too small by each factor.

    Normal approximations of the counts at the best event: right within a few per cent where the audit needs
    hundreds of hits.

    Parameters
    ----------
    epsilon, delta : the claim.
    faults : factors in (0, 1) that the noise is too small by.
    confidence, false_alarm : of the audits.
    chance : the probability of catching the fault.

    Returns
    -------
    A `PowerRow` for each factor.

    Examples
    --------
    >>> from shapedp.audit import power
    >>> [row.factor for row in power(epsilon=1.0, delta=1e-5, faults=(0.5, 0.9))]
    [0.5, 0.9]
    """
    claimed = GaussianLoss.calibrate(epsilon, probability("delta", delta))
    confidence, chance = probability("confidence", confidence), probability("chance", chance)
    false_alarm = probability("false_alarm", false_alarm)
    rows = []
    for factor in entries("faults", faults):
        if not 0 < positive("fault", factor) < 1:
            raise ValueError(f"faults must lie in (0, 1), got {factor!r}")
        actual = claimed.mu / factor
        claims = (Claim(epsilon, delta, loss) for loss in (None, claimed))
        claim, profile = (_outputs(one, actual, 1 - confidence, chance) for one in claims)
        true = GaussianLoss(actual)
        spent = true.epsilon(delta).upper, true.delta(epsilon).upper
        rows.append(PowerRow(factor, *spent, claim, profile, _values(factor, false_alarm, chance)))
    return rows


def _outputs(claim: Claim, mu: float, alpha: float, chance: float) -> float:
    """All outputs, both inputs and the choice of events included, at the best event and epsilon."""
    sure = float(special.ndtri(1 - alpha * SPENDING[-1] / (2 * _EVENTS)))
    luck = float(special.ndtri(chance))
    epsilons = claim.grid()[:, None]
    t = np.linspace(-4, 12, 1601)[None, :] * mu  # thresholds of the log ratio, which is N(mu^2/2, mu^2)
    p, q = special.ndtr(mu / 2 - t / mu), special.ndtr(-mu / 2 - t / mu)
    growth = np.exp(epsilons)
    p_error, q_error = np.sqrt(p * (1 - p)), growth * np.sqrt(q * (1 - q))
    excess = p - growth * q - claim.delta_at(epsilons.ravel())[:, None]
    spread = sure * (p_error + q_error) + luck * np.hypot(p_error, q_error)
    needed = np.square(spread / np.where(excess > 0, np.maximum(excess, 1e-150), 1.0))
    needed = np.where(excess > 0, np.maximum(needed, _ENOUGH / np.maximum(p, 1e-300)), np.inf)
    return float(2 * needed.min() / _TESTED)


def _values(factor: float, false_alarm: float, chance: float) -> float:
    """Values of noise at the best width."""
    sure = float(special.ndtri(1 - false_alarm / (2 * _CHECKS * LEVELS.size)))
    luck = float(special.ndtri(chance))
    widths = special.ndtri(0.5 + LEVELS / 2)
    seen = 2 * special.ndtr(widths / factor) - 1
    needed = (sure * np.sqrt(LEVELS * (1 - LEVELS)) + luck * np.sqrt(seen * (1 - seen))) / (seen - LEVELS)
    return float(np.square(needed).min())


def readable(n: float) -> str:
    """A count in short."""
    if math.isinf(n):
        return "-"
    return f"{n:.1e}" if n >= 1e5 else f"{math.ceil(n / 100) * 100:d}"
