"""Spherical noise: density ~ |z|^(a - M) exp(-(|z|/s)^b) on R^M, a <= M, against itself shifted by a length D.

With y = log |z|, h(y) = (M - a) y + e^(b (y - log s)) the negative log density, and X the cosine of the angle between
z and the shift, P(X >= c) = I_((1 - c)/2)((M - 1)/2, (M - 1)/2):

    H(x) = E P(X >= A(Y)) - e^x E P(X >= B(Y)),
    A(y) = (u^2 - r^2 - D^2)/(2 r D) with r = e^y, u = e^w, h(w) = h(y) + x,
    B(y) = (r^2 + D^2 - u^2)/(2 r D) with h(w) = h(y) - x (no such w: probability 0).

The best event is {h(|z + v|) >= h(|z|) + x}; the first term is its mass under z, the second under z + v, seen from the
other centre. The density decreases, so H grows with D: its level sets are balls, and two balls of fixed radii overlap
less the further their centres are apart.

Both expectations are integrals over y. On short intervals the density of Y and the derivative of P(X >= A(y)) are
expanded in Taylor series with a remainder proved by evaluating the last coefficient on the whole interval (Moore);
the probability itself is carried along from left to right. Intervals are halved until the error is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from flint import arb_series, ctx

from shapedp_check.balls import Ball, TooLarge, ball, precision, tick
from shapedp_check.pairs import ByEnclosure, no_less

ORDER = 10
_BITS = 160
_NARROW = 2.0**-50
Series = Any  # flint.arb_series


@dataclass(frozen=True, eq=False)
class Radial(ByEnclosure):
    """The pair of a shift of length `reach`, in units of the law's scale s (so s = 1 here)."""

    dim: int
    a: float
    b: float
    reach: Ball
    relative: float = 2.0**-18
    formula = "radial: E P(X >= A(Y)) - e^x E P(X >= B(Y)), X the cosine, Y the log radius"

    @property
    def top(self) -> Ball | None:  # type: ignore[override]
        """With a = M and b <= 1 the loss is at most D^b, because |u^b - r^b| <= |u - r|^b."""
        return self.reach**self.b if self.a == self.dim and self.b <= 1 else None

    def hockey(self, x: Ball) -> Ball:
        if self.reach.is_zero() or (self.top is not None and abs(x) >= self.top):
            return no_less(x, ball(0))
        if x < 0:
            return 1 - x.exp() * (1 - self.hockey(-x))  # the pair is symmetric
        with precision(_BITS):
            cap = ctx.cap
            try:
                ctx.cap = ORDER + 1
                return no_less(x, _Integrals(self, x).difference())
            finally:
                ctx.cap = cap


class _Integrals:
    """Both integrals at one x."""

    def __init__(self, law: Radial, x: Ball) -> None:
        self.law, self.x = law, x
        self.slope = ball(law.dim) - ball(law.a)
        self.power = ball(law.b)
        self.norm = (self.power.log() - (ball(law.a) / self.power).lgamma()).exp()
        half = (ball(law.dim) - 1) / 2
        self.half = half
        self.beta = (half.lgamma() + ball(0.5).lgamma() - (half + 0.5).lgamma()).exp() if law.dim > 1 else ball(1)

    def difference(self) -> Ball:
        """H(x), first roughly, then with an error that is small beside the value."""
        least = 2.0**-24
        for _ in range(4):
            low, high, outside = self._window(least)
            rest = ball(0).union(outside)
            first = self._integral(1, low, high, least) + rest
            value = first - self.x.exp() * (self._integral(-1, low, high, least) + rest)
            if float(value.rad()) <= float(value.abs_lower()) * self.law.relative:
                break
            least = min(least / 64, float(value.upper().mid()) * self.law.relative / 4 / float(self.x.exp().mid() + 1))
            if least < 2.0**-400:
                break
        return value

    def _window(self, least: float) -> tuple[float, float, Ball]:
        """y between which all but about `least` of the radius lies, and a Chernoff bound on the rest.

        G = e^(b y) has the law Gamma(k), k = a/b: P(G >= g) and, below k, P(G <= g) are at most
        exp(-(g - k - k log(g/k))).
        """
        k, need = self.law.a / self.law.b, -math.log(least) + 2
        if not 2.0**-10 < k < 2.0**50:
            raise TooLarge("a/b is too small or too large")
        low = high = 0.0  # log(g/k)
        while k * (math.expm1(high) - high) < need:
            high += min(1.0, 1 / math.sqrt(k))
        while k * (math.expm1(low) - low) < need:
            low -= 1 / min(k, math.sqrt(k))
        ends = [(end + math.log(k)) / self.law.b for end in (low, high)]
        shape = ball(self.law.a) / self.power
        rest = ball(0)
        for end in ends:
            g = (ball(end) * self.power).exp()
            rest += (-(g - shape - shape * (g / shape).log())).exp()
        return ends[0], ends[1], rest

    def _solve(self, y: Ball, change: Ball) -> Ball | None:
        """q with h(y + q) = h(y) + change, or None if h stays above it: (M - a) q + e^(b y)(e^(b q) - 1) = change.

        The left side increases with q, so a change of sign proves the root that Newton's method found.
        """
        lead = (self.power * y).exp()
        if self.slope.is_zero():
            return (change / lead).log1p() / self.power if change / lead > -1 else None

        def gap(q: Ball) -> Ball:
            return self.slope * q + lead * (self.power * q).expm1() - change

        q = ((change / lead).log1p() / self.power if change / lead > -1 else change / self.slope).mid()
        for _ in range(2000):
            step = (gap(q) / (self.slope + self.power * lead * (self.power * q).exp())).mid()
            q = (q - step).mid()
            if abs(step) < abs(q) * 2.0**-140:
                break
        radius = (
            abs(q) * 2.0**-130 + gap(q).rad() / (self.slope + self.power * lead * (self.power * q).exp()).abs_lower()
        )
        for _ in range(60):
            low, high = q - radius, q + radius
            if gap(low) <= 0 and gap(high) >= 0:
                return low.union(high)
            radius *= 4
        raise ArithmeticError("no root")

    def _root(self, y: Ball, change: Ball, at: bool) -> Ball | None:
        """`_solve` for a wide ball: w = y + q grows with y (`at`), and q shrinks towards 0, so the ends suffice."""
        ends = [y] if y.is_exact() else [y.lower(), y.upper()]
        found = [self._solve(end, change) for end in ends]
        values = [end + q if at else q for end, q in zip(ends, found, strict=True) if q is not None]
        return values[0].union(values[-1]) if len(values) == len(ends) else None

    def _growth(self, y: Ball, start: Ball, at: bool) -> Series:
        """The Taylor series of w (`at`) or of q = w - y around y, from w' = h'(y)/h'(w), h' = (M - a) + b e^(b .).

        Coefficient by coefficient. `mine` are those of b e^(b y); `other` those of b e^(b w). For q the numerator
        h'(y) - h'(w) is b e^(b y)(1 - e^(b q)), with the coefficients `factor` of e^(b q) - 1: nothing cancels.
        """
        mine = self.power * (self.power * arb_series([y, 1])).exp()
        factor = [(self.power * start).expm1()]
        other = [self.power * (self.power * start).exp()] if at else []
        rates: list[Ball] = []
        for n in range(ORDER):
            top = (mine[n] + self.slope if n == 0 else mine[n]) if at else -_product_at(mine, factor, n)
            if not at:
                other.append(mine[n] - top)
            top -= _product_at(rates, other, n) if n else 0
            rates.append(top / (self.slope + other[0]))
            following = self.power * _product_at(rates, other if at else factor, n) / (n + 1)
            if at:
                other.append(following)
            else:
                factor.append(following + self.power * rates[n] / (n + 1))
        return arb_series([start, *(rate / (n + 1) for n, rate in enumerate(rates))])

    def _angle(self, y: Ball, sign: int) -> Ball | None:
        """A(y) for sign 1, B(y) for sign -1; None where there is no such w."""
        near = not y > self.law.reach.log()
        start = self._root(y, sign * self.x, near)
        return None if start is None else self._cosine(y.exp(), start, sign, near)

    def _angle_series(self, y: Ball, sign: int) -> Series | None:
        """The same as a series; on a wide ball its first coefficient is cut down by the mean value theorem."""
        near = not y > self.law.reach.log()
        start = self._root(y, sign * self.x, near)
        if start is None:
            return None
        series = self._cosine(arb_series([y, 1]).exp(), self._growth(y, start, near), sign, near)
        first = self._cosine(y.exp(), start, sign, near)
        middle = None if y.is_exact() else self._angle(y.mid(), sign)
        closer = first if middle is None else middle + series[1] * (y - y.mid())
        return _begun(series, first.intersection(closer) if closer.is_finite() else first)

    def _cosine(self, r: Any, start: Any, sign: int, near: bool) -> Any:
        """sign (u^2 - r^2 - D^2)/(2 r D), in a form without cancellation for u near D (r < D) or for u near r.

        With z = (u - D)/r it is z + r (z^2 - 1)/(2 D); with u = r e^q it is r (e^(2q) - 1)/(2 D) - D/(2 r).
        """
        d = self.law.reach
        if near:
            z = (start.exp() - d) / r
            return sign * (z + r * (z * z - 1) / (2 * d))
        return sign * (r * ((2 * start).exp() - 1) / d - d / r) / 2

    def _tail(self, c: Ball) -> Ball:
        """P(X >= c)."""
        if not c.is_finite():
            return ball(0).union(ball(1))
        if c >= 1:
            return ball(0)
        if c <= -1:
            return ball(1)
        if self.law.dim == 1:
            return ball(0.5) if -1 < c < 1 else ball(0).union(ball(1))
        if -1 < c < 1:
            return ((1 - c) / 2).beta_lower(self.half, self.half, 1)
        return self._tail(c.lower().max(ball(-1)).mid()).union(self._tail(c.upper().min(ball(1)).mid()))

    def _bound(self, c: Ball) -> Ball:
        """A cheap ball of P(X >= c): at most (1 - c^2)^((M - 1)/2) for c >= 0."""
        if self.law.dim < 50:
            return self._tail(c.lower()).union(self._tail(c.upper()))
        edge = c.lower()
        if not edge > 0:
            return ball(0).union(ball(1))
        room = (1 - edge * edge).max(ball(0))
        return ball(0).union(room**self.half if room > 0 else ball(0))

    def _integral(self, sign: int, low: float, high: float, least: float) -> Ball:
        """E P(X >= A(Y)) for sign 1, E P(X >= B(Y)) for -1, over Y in [low, high], from left to right."""
        pieces = max(int((high - low) * math.sqrt(self.law.a * self.law.b) / 0.5), 8)
        edges = [low + (high - low) * i / pieces for i in range(pieces + 1)]
        todo = list(pairwise(edges))[::-1]
        result, carried = ball(0), None
        while todo:
            tick()
            left, right = todo.pop()
            piece = self._piece(sign, left, right, carried, least / (8 * pieces))
            if piece is None:
                middle = (left + right) / 2
                todo += [(middle, right), (left, middle)]
            else:
                result, carried = result + piece[0], piece[1]
        return result

    def _piece(
        self, sign: int, left: float, right: float, carried: Ball | None, allowed: float
    ) -> tuple[Ball, Ball | None] | None:
        """(integral, P at the right end or None) of one interval, or None where it must be halved."""
        start, end = ball(left), ball(right)
        wide, narrow = start.union(end), right - left < _NARROW
        density = self._density(wide)
        angle = self._angle_series(wide, sign)
        if angle is None and self._angle(end, sign) is None:
            return ball(0), ball(0)
        cosine = ball(-2).union(ball(2)) if angle is None else angle[0]
        if cosine >= 1:
            return ball(0), ball(0)
        inside = -1 < cosine < 1
        if inside or cosine <= -1:
            if not inside:
                angle, carried = None, ball(1)
            elif carried is None or carried.rel_accuracy_bits() < 20:
                at = self._angle(start, sign)
                carried = self._tail(cosine if at is None else at)
            done = self._taylor(sign, start, end, density, None if self.law.dim == 1 else angle, carried)
            if done is not None and self._small(done[0], allowed):
                return done
        crude = density[0] * (end - start) * self._bound(cosine)
        return (crude, None) if narrow or self._small(crude, allowed) else None

    @staticmethod
    def _small(value: Ball, allowed: float) -> bool:
        return bool(value.is_finite()) and float(value.rad()) <= allowed

    def _density(self, y: Ball) -> Series:
        """The density of Y around y as a series: b/Gamma(k) e^(a y - e^(b y)), k = a/b.

        With u = b y - log k it is const exp(-k (e^u - 1 - u)); on a wide ball the bracket is taken from the ends and,
        where u may vanish, zero: it is monotone on both sides.
        """
        k = ball(self.law.a) / self.power
        u = self.power * arb_series([y, 1]) - k.log()
        bracket = u.exp() - 1 - u
        if not y.is_exact():
            low, high = u[0].lower(), u[0].upper()
            exact = (low.exp() - 1 - low).union(high.exp() - 1 - high)
            exact = exact if low > 0 or high < 0 else exact.union(ball(0))
            bracket = _begun(bracket, exact.max(ball(0)))
        return self.norm * (-k * bracket).exp() * (k * k.log() - k).exp()

    def _slope(self, c: Series) -> Series:
        """d P(X >= c(y))/dy = -(1 - c^2)^((M - 3)/2)/Beta((M - 1)/2, 1/2) c'(y)."""
        return -((1 - c * c).log() * (self.half - 1)).exp() * c.derivative() / self.beta

    def _taylor(
        self, sign: int, start: Ball, end: Ball, density_far: Series, angle_far: Series | None, carried: Ball
    ) -> tuple[Ball, Ball] | None:
        """The integral of density times probability over [start, end], and the probability at the end."""
        centre = ((start + end) / 2).mid()
        rho = ((end - start) / 2).upper()
        density = self._density(centre)
        error = abs(density_far[ORDER]) * rho**ORDER
        moves, drift = [ball(0)], ball(0)
        if angle_far is not None:
            near = self._angle_series(centre, sign)
            if near is None:
                return None
            rate = self._slope(near)
            moves += [rate[i] / (i + 1) for i in range(ORDER - 1)]
            drift = abs(self._slope(angle_far)[ORDER - 1]) * rho**ORDER / ORDER
        if not (error.is_finite() and drift.is_finite()):
            return None
        spread = ball(0).union(drift) - ball(0).union(drift)
        at_centre = carried - _value(moves, -rho) + spread
        chance = [at_centre, *moves[1:]]
        slack = 2 * rho * (error + drift * (abs(density_far[0]) + error))
        total = ball(0)
        for i in range(ORDER):
            for j, factor in enumerate(chance):
                if (i + j) % 2 == 0:
                    total += density[i] * factor * (2 * rho ** (i + j + 1) / (i + j + 1))
        total += ball(0).union(slack) - ball(0).union(slack)
        return total, (_value(chance, rho) + spread).max(ball(0)).min(ball(1))


def _product_at(left: Any, right: Any, n: int) -> Ball:
    """Coefficient n of a product of series, over the coefficients that `left` has."""
    result = ball(0)
    for i in range(min(n + 1, len(left))):
        result += left[i] * right[n - i]
    return result


def _begun(series: Series, first: Ball) -> Series:
    """The series with its first coefficient replaced."""
    return arb_series([first, *(series[i] for i in range(1, ORDER + 1))])


def _value(coefficients: list[Ball], at: Ball) -> Ball:
    result = ball(0)
    for coefficient in reversed(coefficients):
        result = result * at + coefficient
    return result
