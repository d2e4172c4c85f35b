"""Published noise for private gradients with its papers' own accounting; what holds is computed beside it."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from shapedp.accounting import Plan, Step, amplify, amplify_pure, he_theorem_3
from shapedp.mechanisms import Additive, certify
from shapedp.noise import Law, radial
from shapedp.numerics.checks import count, positive, probability
from shapedp.privacy import Certificate
from shapedp.recipes.product_noise import ProductNoise
from shapedp.recipes.tensor import tvg
from shapedp.sensitivity import L2, Sensitivity
from shapedp.torch.layout import Layout
from shapedp.torch.noise import Noise


class Published(Noise):
    """Noise whose scale a paper's formula chose; `claim` is what the paper says a training with it is worth."""

    step_epsilon: float

    @abstractmethod
    def claim(self, sensitivity: Sensitivity, rate: float, steps: int) -> tuple[float, float]:
        """(epsilon, delta) of a whole training by the paper's accounting."""

    def judged(self, mechanism: Additive, rate: float, steps: int, epsilon: float, delta: float) -> Certificate:
        """The claim, computed: one step first, since a claim that one step breaks is broken by more of them."""
        one = certify(Plan((Step(mechanism, rate, 1),)), epsilon=epsilon, delta=delta)
        if one.verdict == "refuted":
            return one
        return certify(Plan((Step(mechanism, rate, steps),)), epsilon=epsilon, delta=delta)


@dataclass(frozen=True)
class PublishedProductNoise(Published):
    """sigma_M chi_1 times a uniform direction on the sum of clipped gradients, calibrated for 2 C.

    The claim: each step (epsilon, delta) by Corollary 7, amplified by Theorem 2, composed by Theorem 3 with its free
    constant (1e-8 reproduces the paper's figures).

    Guarantee: none. Corollary 7 rests on Theorem 1, which is false; the sensitivity 2 C belongs to replacing a
    record and the amplification to adding or removing one, for which C suffices and is what is judged.
    Reference: product noise, Algorithm 4, Corollary 7 and Remark 6.
    """

    step_epsilon: float
    k: float
    constant: float = 1e-8

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_epsilon", positive("step_epsilon", self.step_epsilon))
        object.__setattr__(self, "k", positive("k", self.k))

    def calibration(self, sensitivity: Sensitivity) -> ProductNoise:
        """The paper's sigma and delta for one step."""
        return ProductNoise(sensitivity.dim, 2 * _radius(sensitivity), self.step_epsilon, self.k)

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Law:
        return radial.chi(1.0, self.calibration(sensitivity).sigma, sensitivity.dim)

    def claim(self, sensitivity: Sensitivity, rate: float, steps: int) -> tuple[float, float]:
        step = amplify(self.step_epsilon, self.calibration(sensitivity).claimed_delta, rate)
        return he_theorem_3(*step, steps, self.constant)


@dataclass(frozen=True)
class PublishedTensorNoise(Published):
    """Tensor-variate Gaussian noise calibrated by Frobenius norms, step by step.

    The claim: each step (epsilon, delta) by Theorem 1, epsilon amplified by Theorem D.2, composed by Theorem 3.4 of
    Kairouz, Oh and Viswanath 2017 with the slack `slack`.

    Guarantee: the certificate decides; Theorem 1 is valid and loose by orders of magnitude (see `recipes.tvg`), so
    that the claim holds with room although Theorem D.2 is stated for delta = 0 only.
    Reference: tensor-valued queries, Theorem 1 and Appendix D.
    """

    step_epsilon: float
    step_delta: float
    slack: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_epsilon", positive("step_epsilon", self.step_epsilon))
        for name in ("step_delta", "slack"):
            object.__setattr__(self, name, probability(name, getattr(self, name)))

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Law:
        radius = _radius(sensitivity)
        recipe = tvg(dim=sensitivity.dim, sensitivity=radius, epsilon=self.step_epsilon, delta=self.step_delta)
        return recipe.law

    def claim(self, sensitivity: Sensitivity, rate: float, steps: int) -> tuple[float, float]:
        return advanced_composition(
            amplify_pure(self.step_epsilon, rate).pure_epsilon, self.step_delta, steps, self.slack
        )


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
    spread = epsilon * math.sqrt(
        2 * steps * min(math.log(math.e + math.sqrt(steps) * epsilon / slack), -math.log(slack))
    )
    return min(steps * epsilon, drift + spread), total


def _radius(sensitivity: Sensitivity) -> float:
    if not isinstance(sensitivity, L2) or sensitivity.scales is not None:
        raise ValueError(f"the published noise is for a flat clip, not the set {sensitivity.kind!r}: use Flat or Auto")
    return sensitivity.radius
