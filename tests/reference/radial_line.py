"""delta of radial noise by the two expectations of the theory, in 40 digits, adaptively: no substitution, no scaling.

    delta(eps) = E_R[P(X >= (up^2 - R^2 - D^2)/(2 R D))] - e^eps E_R[P(X >= (R^2 + D^2 - dn^2)/(2 R D))],

h(up) = h(R) + eps, h(dn) = h(R) - eps (dn = 0 where there is none), h(r) = (dim - a) log r + r^b, X the cosine of a
uniform direction. Caps by Arb's incomplete beta function, and far out by their own integral over the cosine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache, cmp_to_key

from flint import arb, ctx

_BITS = 200
_COARSE, _FINE = 12, 20
_DEPTH = 26


@cache
def _legendre(n: int) -> tuple[tuple[arb, arb], ...]:
    return tuple(arb.legendre_p_root(n, i, True) for i in range(n))


def _gauss(f: Callable[[arb], arb], left: arb, right: arb, n: int) -> arb:
    half, middle = (right - left) / 2, (right + left) / 2
    return half * sum((w * f((middle + half * t).mid()) for t, w in _legendre(n)), arb(0)).mid()


def cap(dim: int, x: arb) -> arb:
    """P(X >= x)."""
    if x >= 1:
        return arb(0)
    if x <= -1:
        return arb(1)
    if x < 0:
        return 1 - cap(dim, -x)
    if float(x) * math.sqrt(dim) < 1e-10:  # the next term is below 1e-30
        log_norm = (arb(dim) / 2).lgamma() - (arb(dim - 1) / 2).lgamma() - arb.pi().log() / 2
        return (arb(0.5) - log_norm.exp() * x).mid()
    if float(x) * math.sqrt(dim) < 8:
        return ((1 - x * x).beta_lower(arb(dim - 1) / 2, arb(0.5), regularized=True) / 2).mid()
    power = arb(dim - 3) / 2
    log_norm = (arb(dim) / 2).lgamma() - (arb(dim - 1) / 2).lgamma() - arb.pi().log() / 2
    end = x + 45 * (1 - x * x) / (x * (dim - 3))
    end = end.mid() if end < 1 else arb(1)
    return _gauss(lambda c: (log_norm + power * (1 - c * c).log()).exp(), x, end, 40).mid()


class Line:
    """One law and one shift, in units of the law's scale."""

    def __init__(self, dim: int, a: float, b: float, ratio: float, epsilon: float) -> None:
        self.dim, self.a, self.b, self.d, self.eps = dim, arb(a), arb(b), arb(ratio), arb(epsilon)
        self.slack, self.k = arb(dim) - self.a, self.a / self.b
        self.log_norm = self.b.log() - self.k.lgamma()

    def other(self, log_r: arb, level: arb) -> arb | None:
        """log s with h(s) = h(r) + level, by Newton in log s; None where there is none."""
        y = (self.b * log_r).exp()
        if float(self.slack) == 0:
            target = y + level
            return (target.log() / self.b).mid() if target > 0 else None
        goal = self.slack * log_r + y + level
        x = log_r
        if level > 0:  # convex in x: from above it never overshoots
            first, second = level / (self.slack + self.b * y), (1 + level / y).log() / self.b
            x = log_r + (first if first < second else second)
        for _ in range(400):
            power = (self.b * x).exp()
            step = ((self.slack * x + power - goal) / (self.slack + self.b * power)).mid()
            x = (x - step).mid()
            if abs(step) < arb(2) ** (8 - _BITS) * (1 + abs(x)):
                return x
        raise ArithmeticError("no convergence")

    def cosine(self, log_r: arb, first: bool) -> arb:
        """The least cosine that counts at this radius."""
        r = log_r.exp()
        log_s = self.other(log_r, self.eps if first else -self.eps)
        if first:
            s = log_s.exp()
            return ((s * s - r * r - self.d**2) / (2 * r * self.d)).mid()
        s = arb(0) if log_s is None else log_s.exp()
        return ((r * r + self.d**2 - s * s) / (2 * r * self.d)).mid()

    def integrand(self, log_r: arb, first: bool) -> arb:
        """Density of log R times the cap, times e^eps for the second."""
        x = self.cosine(log_r, first)
        if x >= 1:
            return arb(0)
        log_f = self.log_norm + self.a * log_r - (self.b * log_r).exp() + (0 if first else self.eps)
        return (log_f.exp() * cap(self.dim, x)).mid()

    def integral(self, first: bool, tolerance: float) -> arb:
        """Over log R: cut where the cosine passes -1 and 1, then halved until two rules agree."""
        points = self._points(first)
        values = [self.integrand(x, first) for x in points]
        top = max(values, key=lambda v: v.log() if v > 0 else arb(-1e9))
        if not top > 0:
            return arb(0)
        keep = [i for i in range(len(points) - 1) if max(values[i] / top, values[i + 1] / top, key=float) > 1e-25]
        near = {j for i in keep for j in (i - 1, i, i + 1)}
        panels = [(points[i], points[i + 1]) for i in sorted(near) if 0 <= i < len(points) - 1]
        rough = [abs(_gauss(lambda x: self.integrand(x, first), *p, 6)) for p in panels]
        allowed = sum(rough, arb(0)) * tolerance
        return sum((self._panel(*p, first, allowed, 0) for p in panels), arb(0))

    def _panel(self, left: arb, right: arb, first: bool, allowed: arb, depth: int) -> arb:
        def f(x: arb) -> arb:
            return self.integrand(x, first)

        coarse, fine = _gauss(f, left, right, _COARSE), _gauss(f, left, right, _FINE)
        if abs(coarse - fine) <= allowed or depth >= _DEPTH:
            return fine
        middle = ((left + right) / 2).mid()
        return self._panel(left, middle, first, allowed, depth + 1) + self._panel(
            middle, right, first, allowed, depth + 1
        )

    def _points(self, first: bool) -> list[arb]:
        k, b = float(self.k), float(self.b)
        centre = math.log(k) / b
        reach = 0.0 if first else math.log1p(float(self.d) * math.exp(min(-centre, 600.0)))  # by the triangle
        spread = 1 / (b * math.sqrt(k))
        left = max((800 if k > 10 else 60) / (b * k), 42 * spread)  # to e^-60 or e^-800 of the density
        right = min(42 * spread, math.log1p(40 / math.sqrt(k) + 800 / k) / b) + reach
        steps = 120
        logs = [centre - left * (1 - j / steps) ** 2 for j in range(steps)]
        logs += [centre + right * (j / steps) ** 2 for j in range(steps + 1)]
        grid = [arb(x) for x in logs]
        middle = self.d.log().mid()
        inner = None if first else self.other(middle, -self.eps)
        if inner is not None and inner > middle - 35:  # what counts may be a thin shell about D
            grid = sorted([*grid, middle], key=float)
        edges = [self.cosine(x, first) for x in grid]
        cuts = []
        for level, i in itertools.product((-1, 1), range(len(grid) - 1)):
            if (edges[i] - level) * (edges[i + 1] - level) < 0:
                low, high = grid[i], grid[i + 1]
                for _ in range(110):
                    middle = ((low + high) / 2).mid()
                    same = (self.cosine(middle, first) - level) * (edges[i] - level) > 0
                    low, high = (middle, high) if same else (low, middle)
                cuts.append(low)
        return sorted([*grid, *cuts], key=cmp_to_key(lambda x, y: 1 if x > y else -1))


def exact_delta(
    dim: int, a: float, b: float, ratio: float, epsilon: float, tolerance: float = 1e-13
) -> tuple[arb, arb]:
    """delta, and a bound on what the adaptive rule may miss (by its own account)."""
    old, ctx.prec = ctx.prec, _BITS
    try:
        line = Line(dim, a, b, ratio, epsilon)
        first, second = line.integral(True, tolerance), line.integral(False, tolerance)
        return first - second, (first + second) * tolerance * 1000
    finally:
        ctx.prec = old
