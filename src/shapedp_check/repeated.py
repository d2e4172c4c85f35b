"""The best of K runs, where K has the logarithmic law P(K = k) ~ (1 - gamma)^k/k and only the best run is shown.

Above. With R(a) the Renyi divergence of one run, for all orders a > 1 and h >= 1 (Papernot and Steinke 2022, Theorem 2
with eta = 0):

    R'(a) <= R(a) + (1 - 1/h) R(h) + log(1/gamma)/h + log(E K)/(a - 1),   E K = (1/gamma - 1)/log(1/gamma),
    H(x) <= e^((a - 1)(R'(a) - x)) (1 - 1/a)^a/(a - 1)   (Canonne, Kamath and Steinke 2020, Proposition 12).

Below. Runs may be ranked by the answer itself: then F'(z) = G(F(z)), with G(s) = log(1 - (1 - gamma) s)/log(gamma) the
generating function of K, and the events {z > c} and {z <= c} of the best answer are seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from shapedp_check.balls import Ball, ball, normal_cdf
from shapedp_check.pairs import Gaussian, Laplace, Pair, Response, no_less

ORDERS = tuple(1 + 2.0 ** (power / 4) for power in range(-24, 48))


@dataclass(frozen=True, eq=False)
class Repeated(Pair):
    """The best of K runs of `run`; the curve is known between two bounds, so its balls are wide."""

    run: Gaussian | Laplace | Response
    gamma: Ball
    orders: tuple[float, ...] = ORDERS
    wide = True
    formula = "best of K runs: Renyi divergence R(a) + (1 - 1/h) R(h) + log(1/gamma)/h + log(E K)/(a - 1)"

    def hockey(self, x: Ball) -> Ball:
        return no_less(x, self._below(x).union(self._above(x)))

    def _above(self, x: Ball) -> Ball:
        whole = -self.gamma.log()
        extra = whole
        for h in self.orders:
            extra = extra.min((1 - 1 / ball(h)) * self._renyi(ball(h)) + whole / h)
        runs = ((1 / self.gamma - 1) / whole).log()
        best = ball(1)
        for order in self.orders:
            a = ball(order)
            total = self._renyi(a) + extra + runs / (a - 1)
            best = best.min(((a - 1) * (total - x) + a * (-1 / a).log1p()).exp() / (a - 1))
        return best

    def _renyi(self, a: Ball) -> Ball:
        """R(a) of one run, or a bound: a mu^2/2; Laplace (Mironov 2017, Proposition 6); randomised response."""
        if isinstance(self.run, Gaussian):
            return a * self.run.mu**2 / 2
        if isinstance(self.run, Laplace):
            ratio = ball(self.run.ratio)
            value = a / (2 * a - 1) * ((a - 1) * ratio).exp() + (a - 1) / (2 * a - 1) * (-a * ratio).exp()
        else:
            top = ball(self.run.epsilon)
            value = (((a - 1) * top).exp() + (-a * top).exp()) / (1 + (-top).exp())
        return (value.log() / (a - 1)).max(ball(0))

    def _below(self, x: Ball) -> Ball:
        best = ball(0)
        for one, other in self._tails():
            first, second = (self._generating(s) for s in (one, other))
            for p, q in ((first, second), (second, first), (1 - first, 1 - second), (1 - second, 1 - first)):
                best = best.max(p - x.exp() * q)
        return best

    def _generating(self, s: Ball) -> Ball:
        return (-(1 - self.gamma) * s).log1p() / self.gamma.log()

    def _tails(self) -> list[tuple[Ball, Ball]]:
        """(F(c), F(c - shift)) of one run at thresholds c."""
        if isinstance(self.run, Gaussian):
            mu = self.run.mu
            return [(normal_cdf(c), normal_cdf(c - mu)) for c in (ball(step) / 2 for step in range(-12, 17))]
        if isinstance(self.run, Laplace):
            ratio = ball(self.run.ratio)
            return [(_laplace(c), _laplace(c - ratio)) for c in (ratio * step / 4 for step in range(-8, 13))]
        high = 1 / (1 + (-ball(self.run.epsilon)).exp())
        return [(high, 1 - high)]


def _laplace(z: Ball) -> Ball:
    return z.exp() / 2 if z < 0 else 1 - (-z).exp() / 2 if z >= 0 else (-abs(z)).exp().union(ball(1)) / 2
