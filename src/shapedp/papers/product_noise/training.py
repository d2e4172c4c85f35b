"""Product noise on gradients, with the paper's own accounting."""

from __future__ import annotations

from dataclasses import dataclass

from shapedp.accounting import amplify, he_theorem_3
from shapedp.noise import Law, radial
from shapedp.numerics.checks import positive
from shapedp.papers.product_noise.recipes import ProductNoise
from shapedp.sensitivity import Sensitivity
from shapedp.torch.layout import Layout
from shapedp.torch.published import Published, flat_radius


@dataclass(frozen=True)
class PublishedProductNoise(Published):
    """sigma_M chi_1 times a uniform direction on the sum of clipped gradients, calibrated for 2 C.

    The claim: each step (epsilon, delta) by Corollary 7, amplified by Theorem 2, composed by Theorem 3 with its free
    constant (1e-8 reproduces the paper's figures).

    Guarantee: none. Corollary 7 rests on Theorem 1, which is false; the sensitivity 2 C belongs to replacing a
    record and the amplification to adding or removing one, for which C suffices and is what is judged.
    Reference: product noise, Algorithm 4, Corollary 7 and Remark 6.

    Parameters
    ----------
    step_epsilon, k: the epsilon of one step, and the tuning constant of Theorem 1.
    constant: the free constant of Theorem 3.

    Examples
    --------
    >>> from shapedp.sensitivity import L2
    >>> PublishedProductNoise(step_epsilon=1.0, k=1e5).calibration(L2(1.0, 100)).sigma > 0
    True
    """

    step_epsilon: float
    k: float
    constant: float = 1e-8

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_epsilon", positive("step_epsilon", self.step_epsilon))
        object.__setattr__(self, "k", positive("k", self.k))

    def calibration(self, sensitivity: Sensitivity) -> ProductNoise:
        """The paper's sigma and delta for one step."""
        return ProductNoise(sensitivity.dim, 2 * flat_radius(sensitivity), self.step_epsilon, self.k)

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Law:
        return radial.chi(1.0, self.calibration(sensitivity).sigma, sensitivity.dim)

    def claim(self, sensitivity: Sensitivity, rate: float, steps: int) -> tuple[float, float]:
        step = amplify(self.step_epsilon, self.calibration(sensitivity).claimed_delta, rate)
        return he_theorem_3(*step, steps, self.constant)
