"""The least noise that meets a claim, in few evaluations of the composed loss."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shapedp.accounting import PlanningError, compose
from shapedp.accounting.subsample import SubsampledLoss
from shapedp.numerics.checks import count, positive, probability
from shapedp.privacy import GaussianLoss, LaplaceLoss, Loss

EVALUATIONS = 30
_NEAR = 2e-3  # relative distance of delta to the claim at which the search stops
_ROUGH, _FINE = 1e-2, 2e-4


def least_scale(
    *, epsilon: float, delta: float, sampling_rate: float, steps: int, family: Callable[[float], Loss]
) -> float:
    """A noise scale at which `steps` Poisson-sampled runs of family(scale) meet (epsilon, delta).

    Secant steps on log delta from the scale that a central limit theorem suggests for Gaussian noise; delta is
    within 0.2% of the claim (1% where the noise is not Gaussian).

    Guarantee: the upper end of the composed bracket meets the claim at the scale returned.
    """
    epsilon, delta, steps = positive("epsilon", epsilon), probability("delta", delta), count("steps", steps)
    if delta == 0:
        raise ValueError("delta must be > 0: a composition of noisy gradients has no pure guarantee worth its noise")

    def excess(scale: float, accuracy: float) -> float:
        """log(delta reached / delta claimed)."""
        base = family(scale)
        with np.errstate(all="ignore"):
            if isinstance(base, LaplaceLoss):
                base = base.discretize()  # bounds on a grid: cheap to sample, and above the loss itself
            loss = SubsampledLoss(base, sampling_rate, "poisson")
            upper = compose([(loss, steps)], accuracy=accuracy).delta(epsilon).upper
        return math.log(upper / delta) if upper > 0 else -math.inf

    if not isinstance(family(1.0), GaussianLoss):
        start = least_scale(
            epsilon=epsilon, delta=delta, sampling_rate=sampling_rate, steps=steps, family=lambda s: GaussianLoss(1 / s)
        )
        return _secant(lambda scale: excess(scale, 1e-3), start, 5 * _NEAR)
    found = _secant(lambda scale: excess(scale, _ROUGH), _limit_guess(epsilon, delta, sampling_rate, steps), 2e-2)
    return _secant(lambda scale: excess(scale, _FINE), found, _NEAR)


def _secant(excess: Callable[[float], float], start: float, near: float) -> float:
    """A scale with -near <= excess <= 0; `excess` falls as the scale grows."""
    low, high = 0.0, math.inf  # fails, meets
    scale, slope, last = start, -10.0, (0.0, 0.0)
    for turn in range(EVALUATIONS):
        value = excess(scale)
        if -near <= value <= 0:
            return scale
        if value > 0:
            low = max(low, scale)
        else:
            high = min(high, scale)
        if math.isfinite(value):
            if turn and last[0] != scale and value != last[1]:
                slope = min((value - last[1]) / math.log(scale / last[0]), -0.1)
            last = (scale, value)
            following = scale * math.exp(min(max(-(value + near / 2) / slope, -0.7), 0.7))
        else:
            following = scale / 2
        if not low < following < high:
            following = math.sqrt(low * high) if low > 0 and math.isfinite(high) else following
        if math.isfinite(high) and low > 0 and high < low * (1 + 1e-9):
            return high
        if not 1e-3 < following < 1e7:
            raise PlanningError(
                "no noise between 1e-3 and 1e7 times the clip meets the claim: allow a larger epsilon or delta, or "
                "fewer steps"
            )
        scale = following
    if math.isfinite(high):
        return high
    raise PlanningError(f"no noise scale was settled in {EVALUATIONS} evaluations: try another claim")


def _limit_guess(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The scale of rate sqrt(steps (e^(1/scale^2) - 1)) = mu for the mu of the claim: a start, never an answer."""
    mu = GaussianLoss.calibrate(epsilon, delta).mu
    if rate == 1:
        return math.sqrt(steps) / mu
    return 1 / math.sqrt(math.log1p((mu / rate) ** 2 / steps))
