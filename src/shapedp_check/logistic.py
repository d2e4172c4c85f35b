"""The pair of logistic noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shapedp_check.balls import Ball, ball
from shapedp_check.pairs import Pair, no_less


@dataclass(frozen=True)
class Logistic(Pair):
    """Density e^-z/(1 + e^-z)^2 shifted by `ratio` = l/s: H(x) = (1 - e^((x - ratio)/2))^2/(1 - e^-ratio).

    For |x| <= ratio; max(0, 1 - e^x) outside. With F = 1/(1 + e^-z), p(z)/p(z + ratio) = e^x at F = (e^r - e^((r +
    x)/2))/(e^r - 1), and H is F there minus e^x times F at the shifted place. The density is log-concave, so that H
    grows with the ratio.
    """

    ratio: Fraction
    formula = "logistic: (1 - e^((x - l/s)/2))^2/(1 - e^(-l/s)) for |x| <= l/s"

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        return self.ratio

    def hockey(self, x: Ball) -> Ball:
        if not self.ratio:
            return no_less(x, ball(0))
        inner = ((x - ball(self.ratio)).min(ball(0)) / 2).expm1() ** 2 / -(-ball(self.ratio)).expm1()
        if x + ball(self.ratio) > 0:
            return no_less(x, inner)
        if x + ball(self.ratio) < 0:
            return -x.expm1()
        return no_less(x, inner.union(-x.expm1()))
