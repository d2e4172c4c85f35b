"""Worst pairs (P, Q) of neighbouring output laws, each known by its hockey-stick curve.

    H(x) = sup over events S of P(S) - e^x Q(S),   x any real number.

delta(epsilon) is the larger of H(epsilon) for (P, Q) and for (Q, P). The second needs no formula of its own:
H of (Q, P) at x is 1 - e^x + e^x H(-x), because P(S) - e^-x Q(S) and its negative on the complement of S differ by
1 - e^-x. Two curves with H1 <= H2 everywhere keep that order under composition and sampling, so "worse" means a
larger curve (Zhu, Dong and Wang 2022, Proposition 7 and Theorem 10).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from shapedp_check.balls import Ball, ball, normal_cdf, precision


class Pair:
    """A pair by its curve. `top` bounds every finite loss in both directions, None if nothing does."""

    formula = ""
    symmetric = True
    wide = False  # only bounds of the curve are known: more digits do not help
    top: Ball | Fraction | None = None
    unit: Fraction | None = None  # losses' own grid: kinks of the curve sit on its multiples

    def hockey(self, x: Ball) -> Ball:
        """H(x)."""
        raise NotImplementedError

    def failure(self) -> Ball:
        """The mass that P puts where Q has none: the limit of H(x) as x grows."""
        return ball(0)

    def backward(self) -> Pair:
        """The pair (Q, P)."""
        return self if self.symmetric else Backward(self)


class ByEnclosure(Pair):
    """A pair that a ball describes; two with the same enclosure are equal: what is proved of one holds for both."""

    def _key(self) -> tuple[Any, ...]:
        return (type(self), *(value.repr() if isinstance(value, arb) else value for value in vars(self).values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByEnclosure) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True)
class Backward(Pair):
    """(Q, P) of a pair (P, Q) that is not symmetric."""

    pair: Pair
    symmetric = False

    @property
    def formula(self) -> str:  # type: ignore[override]
        return self.pair.formula

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        return self.pair.top

    @property
    def unit(self) -> Fraction | None:  # type: ignore[override]
        return self.pair.unit

    def hockey(self, x: Ball) -> Ball:
        return mirrored(x, self.pair.hockey(-x))

    def backward(self) -> Pair:
        return self.pair


def mirrored(x: Ball, value: Ball) -> Ball:
    """1 - e^x + e^x H(-x)."""
    return 1 - x.exp() * (1 - value)


def no_less(x: Ball, value: Ball) -> Ball:
    """Every curve is at least 0 and at least 1 - e^x, and at most 1: a wide ball is cut to that."""
    return value.max(ball(0)).max(-x.expm1()).min(ball(1))


@dataclass(frozen=True, eq=False)
class Gaussian(ByEnclosure):
    """N(mu, 1) against N(0, 1): H(x) = Phi(mu/2 - x/mu) - e^x Phi(-mu/2 - x/mu).

    All Gaussian noise is this pair: whiten by the covariance, turn v onto the first axis, and only
    mu = |S^(-1/2) v|_2 is left (Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Section 2.3). H grows with mu.
    """

    mu: Ball
    formula = "gaussian: Phi(mu/2 - x/mu) - e^x Phi(-mu/2 - x/mu)"

    def hockey(self, x: Ball) -> Ball:
        if self.mu.is_zero():
            return no_less(x, ball(0))
        if not self.mu.is_finite():
            return ball(1)
        return no_less(x, normal_cdf(self.mu / 2 - x / self.mu) - x.exp() * normal_cdf(-self.mu / 2 - x / self.mu))


@dataclass(frozen=True, eq=False)
class Clipped(ByEnclosure):
    """N(mu, 1) against N(0, 1), of which only min(max(z, low), high) is seen.

    The loss grows with z, so the best events are {z >= c}. Without the clip c = mu/2 + x/mu; those with c between the
    two ends are still seen, and Phi(mu - c) - e^x Phi(-c) rises up to that c and falls beyond it.
    """

    mu: Ball
    low: Ball
    high: Ball
    symmetric = False
    formula = "gaussian, seen between two ends: Phi(mu - c) - e^x Phi(-c), c = mu/2 + x/mu or the nearer end"

    def hockey(self, x: Ball) -> Ball:
        c = (self.mu / 2 + x / self.mu).max(self.low).min(self.high)
        return no_less(x, normal_cdf(self.mu - c) - x.exp() * normal_cdf(-c))


@dataclass(frozen=True)
class Laplace(Pair):
    """exp(-|z|) shifted by `ratio` = l/b: H(x) = 1 - e^((x - ratio)/2) for |x| <= ratio, max(0, 1 - e^x) outside."""

    ratio: Fraction
    formula = "laplace: 1 - e^((x - l/b)/2) for |x| <= l/b"

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        return self.ratio

    @property
    def unit(self) -> Fraction | None:  # type: ignore[override]
        return self.ratio or None

    def hockey(self, x: Ball) -> Ball:
        inner = -((x - ball(self.ratio)).min(ball(0)) / 2).expm1()
        if x + ball(self.ratio) > 0:
            return no_less(x, inner)
        if x + ball(self.ratio) < 0:
            return -x.expm1()
        return no_less(x, inner.union(-x.expm1()))


@dataclass(frozen=True)
class Response(Pair):
    """Randomised response of `epsilon` that fails outright with probability `delta`.

    H(x) = delta + (1 - delta) (e^epsilon - e^x)/(1 + e^epsilon) for |x| <= epsilon. It is worse than every
    (epsilon, delta)-private pair (Kairouz, Oh and Viswanath 2015, Theorem 3.3), so a bare guarantee is this pair.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    formula = "bare guarantee: randomised response that fails with probability delta"

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        return self.epsilon

    @property
    def unit(self) -> Fraction | None:  # type: ignore[override]
        return self.epsilon or None

    def failure(self) -> Ball:
        return ball(self.delta)

    def hockey(self, x: Ball) -> Ball:
        top, fails = ball(self.epsilon), ball(self.delta)
        inside = (-((x - top).min(ball(0))).expm1() / (1 + (-top).exp())).max(-x.expm1()).max(ball(0))
        return no_less(x, fails + (1 - fails) * inside)


@dataclass(frozen=True, eq=False)
class Event(ByEnclosure):
    """An event of probability p under P and p e^-loss under Q, and nothing else seen: what neighbours at least show.

    H(x) = max(p - e^x q, (1 - p) - e^x (1 - q), 1 - e^x, 0) with q = p e^-loss.
    """

    chance: Ball
    loss: Ball
    symmetric = False
    formula = "event: p (1 - e^(x - loss))"

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        rare = self.chance * (-self.loss).exp()
        return self.loss.max(((1 - rare) / (1 - self.chance)).log())

    def hockey(self, x: Ball) -> Ball:
        rare = self.chance * (-self.loss).exp()
        rest = (1 - self.chance) - x.exp() * (1 - rare)
        return no_less(x, (-self.chance * (x - self.loss).min(ball(0)).expm1()).max(rest))


@dataclass(frozen=True)
class DiscreteLaplace(Pair):
    """P(k) ~ q^|k|, q = e^(-1/steps), on the integers, shifted by a whole number of steps.

    The loss falls with k, so the best events are {k <= K}: H(x) = max over K of F(K) - e^x F(K - shift), with
    F(k) = q^-k/(1 + q) for k < 0 and 1 - q^(k+1)/(1 + q) from 0 on. For every K it grows with the shift. The best K
    is the last one with loss (shift - 2K)/steps above x, between 0 and shift - 1.
    """

    steps: int
    shift: int
    formula = "discrete laplace: max_K F(K) - e^x F(K - shift)"

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        return Fraction(self.shift, self.steps)

    def hockey(self, x: Ball) -> Ball:
        if self.shift == 0:
            return no_less(x, ball(0))
        with precision(ctx.prec + self.shift.bit_length() + self.steps.bit_length()):
            middle = (self.shift - x * self.steps) / 2
        if middle <= 0:
            return no_less(x, ball(0))
        if not middle.rad() < 1:  # H falls with x, so its ends suffice
            if x.is_exact():
                return no_less(x, ball(0).union(ball(1)))
            return self.hockey(x.lower()).union(self.hockey(x.upper()))
        near = middle.mid().max(ball(-1)).min(ball(self.shift + 1)).floor().unique_fmpz()
        if near is None:
            return no_less(x, ball(0).union(ball(1)))
        best = ball(0)
        for last in range(max(int(near) - 3, 0), min(int(near) + 4, self.shift)):
            best = best.max(self._cdf(last) - x.exp() * self._cdf(last - self.shift))
        return no_less(x, best)

    def _cdf(self, k: int) -> Ball:
        q = (ball(-1) / self.steps).exp()
        return q ** (-k) / (1 + q) if k < 0 else 1 - q ** (k + 1) / (1 + q)


@dataclass(frozen=True, eq=False)
class Mixing(ByEnclosure):
    """k independent N(0, 1) against k independent N(0, 1 - t): one record of share t in a Gaussian sketch.

    L = (k log(1 - t) + Z t/(1 - t))/2 with Z chi-square of k degrees under P, so with the threshold
    c = (2 x - k log(1 - t))(1 - t)/t: H(x) = SF(c) - e^x SF(c/(1 - t)). It grows with t: adding independent
    N(0, a) to every coordinate turns share t into t/(1 + a), and processing never makes a pair worse.
    """

    rows: int
    share: Ball
    symmetric = False
    formula = "mixing: SF_k(c) - e^x SF_k(c/(1 - t)), c = (2x - k log(1 - t))(1 - t)/t"

    def hockey(self, x: Ball) -> Ball:
        t = self.share
        c = (2 * x - self.rows * (-t).log1p()) * (1 - t) / t
        if not c > 0:
            return no_less(x, -x.expm1()) if c <= 0 else no_less(x, (-x.expm1()).union(ball(1)))
        return no_less(x, self._tail(c) - x.exp() * self._tail(c / (1 - t)))

    def _tail(self, c: Ball) -> Ball:
        """P(Z > c), with digits beyond those of c only as far as a float can tell numbers from 0 (flint may hang)."""
        with precision(min(ctx.prec, max(int(c.rel_accuracy_bits()), 64) + 1100)):
            return (c / 2).gamma_upper(ball(self.rows) / 2, 1)


@dataclass(frozen=True)
class Sampled(Pair):
    """((1 - q) Q + q P, Q): the person takes part with probability q.

    H(x) = q H_base(log(1 + (e^x - 1)/q)) as long as e^x > 1 - q, and 1 - e^x below: the mixture has loss at least
    log(1 - q) everywhere (Balle, Barthe and Gaboardi 2018, Theorem 2; Zhu, Dong and Wang 2022, Theorem 11).
    With `both` the curve left of 0 is the mirror image of that right of 0: fixed-size samples, where the other side
    is a mixture too and the curve right of 0 bounds both directions.
    """

    base: Pair
    rate: Fraction
    both: bool = False

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.both

    @property
    def formula(self) -> str:  # type: ignore[override]
        kind = "fixed-size" if self.both else "poisson"
        return f"{kind} sampling: q H(log(1 + (e^x - 1)/q)); {self.base.formula}"

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        if self.base.top is None:
            return None
        rate, top = ball(self.rate), ball(self.base.top)
        above = (rate * top.expm1()).log1p()
        if self.base.backward().failure().is_zero():  # then P >= e^-top Q, and the mixture is at least so much of Q
            return above.max(-(rate * (-top).expm1()).log1p())
        return above.max(-(-rate).log1p()) if self.rate < 1 else above

    def failure(self) -> Ball:
        return ball(self.rate) * self.base.failure()

    def hockey(self, x: Ball) -> Ball:
        if self.both and x < 0:
            return mirrored(x, self._forward(-x))
        return self._forward(x)

    def _forward(self, x: Ball) -> Ball:
        rate = ball(self.rate)
        inner = 1 + x.expm1() / rate
        if inner > 0:
            return no_less(x, rate * self.base.hockey(inner.log()))
        if inner <= 0:
            return -x.expm1()
        return no_less(x, (-x.expm1()).union(ball(1)))


@dataclass(frozen=True)
class Worst(Pair):
    """The largest of several curves: convex again, so the curve of a pair that is worse than each of them."""

    pairs: tuple[Pair, ...]

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return all(pair.symmetric for pair in self.pairs)

    @property
    def formula(self) -> str:  # type: ignore[override]
        return self.pairs[0].formula

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        exact = [top for pair in self.pairs if isinstance(top := pair.top, Fraction)]
        if len(exact) == len(self.pairs):
            return max(exact)
        largest = ball(0)
        for pair in self.pairs:
            if pair.top is None:
                return None
            largest = largest.max(ball(pair.top))
        return largest

    @property
    def unit(self) -> Fraction | None:  # type: ignore[override]
        units = {pair.unit for pair in self.pairs}
        return units.pop() if len(units) == 1 else None

    def hockey(self, x: Ball) -> Ball:
        value = self.pairs[0].hockey(x)
        for pair in self.pairs[1:]:
            value = value.max(pair.hockey(x))
        return value

    def backward(self) -> Pair:
        return self if self.symmetric else Worst(tuple(pair.backward() for pair in self.pairs))


@dataclass(frozen=True, eq=False)
class Share(ByEnclosure):
    """A curve that lies above `probability` times that of `base`: only an event of that probability is looked at."""

    base: Pair
    probability: Ball
    symmetric = False

    @property
    def formula(self) -> str:  # type: ignore[override]
        return self.base.formula

    def hockey(self, x: Ball) -> Ball:
        return no_less(x, self.probability * self.base.hockey(x))


@dataclass(frozen=True)
class Hopeless(Pair):
    """Two laws that share no outcome: a coordinate that a person can change carries no noise."""

    formula = "no noise where a person can change the answer: H = 1"

    def failure(self) -> Ball:
        return ball(1)

    def hockey(self, x: Ball) -> Ball:
        return ball(1)
