"""Tensor-variate noise on gradients, with the paper's own accounting."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shapedp.accounting import amplify_pure
from shapedp.noise import Law
from shapedp.numerics.checks import count, positive, probability
from shapedp.papers.tensor_noise.recipes import tvg
from shapedp.sensitivity import Sensitivity
from shapedp.torch.layout import Layout
from shapedp.torch.published import Published, flat_radius


@dataclass(frozen=True)
class PublishedTensorNoise(Published):
    """Tensor-variate Gaussian noise calibrated by Frobenius norms, step by step.

    The claim: each step (epsilon, delta) by Theorem 1, epsilon amplified by Theorem D.2, composed by Theorem 3.4 of
    Kairouz, Oh and Viswanath 2017 with the slack `slack`.

    Guarantee: the certificate decides; Theorem 1 is valid and loose by orders of magnitude (see `recipes.tvg`), so
    that the claim holds with room although Theorem D.2 is stated for delta = 0 only.
    Reference: tensor-valued queries, Theorem 1 and Appendix D.

    Parameters
    ----------
    step_epsilon, step_delta: the claim of one step.
    slack: that of the composition.

    Examples
    --------
    >>> from shapedp.sensitivity import L2
    >>> noise = PublishedTensorNoise(step_epsilon=1.0, step_delta=1e-6, slack=1e-6)
    >>> epsilon, delta = noise.claim(L2(1.0, 100), rate=0.01, steps=10)
    >>> epsilon < 1
    True
    """

    step_epsilon: float
    step_delta: float
    slack: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_epsilon", positive("step_epsilon", self.step_epsilon))
        for name in ("step_delta", "slack"):
            object.__setattr__(self, name, probability(name, getattr(self, name)))

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Law:
        radius = flat_radius(sensitivity)
        recipe = tvg(dim=sensitivity.dim, sensitivity=radius, epsilon=self.step_epsilon, delta=self.step_delta)
        return recipe.law

    def claim(self, sensitivity: Sensitivity, rate: float, steps: int) -> tuple[float, float]:
        step = amplify_pure(self.step_epsilon, rate).pure_epsilon
        return advanced_composition(step, self.step_delta, steps, self.slack)


def advanced_composition(epsilon: float, delta: float, steps: int, slack: float) -> tuple[float, float]:
    """(epsilon', 1 - (1 - delta)^k (1 - slack)) of a k-fold composition.

    epsilon' is the least of k eps and k eps tanh(eps/2) + eps sqrt(2 k log(.)), the argument of the logarithm being
    e + sqrt(k eps^2)/slack or 1/slack.
    Reference: Kairouz, Oh and Viswanath 2017, Theorem 3.4.
    """
    epsilon, delta, steps = positive("epsilon", epsilon), probability("delta", delta), count("steps", steps)
    drift = steps * epsilon * math.tanh(epsilon / 2)
    total = -math.expm1(steps * math.log1p(-delta) + math.log1p(-probability("slack", slack)))
    if slack == 0:
        return steps * epsilon, total
    log = min(math.log(math.e + math.sqrt(steps) * epsilon / slack), -math.log(slack))
    return min(steps * epsilon, drift + epsilon * math.sqrt(2 * steps * log)), total
