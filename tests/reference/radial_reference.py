"""High-precision oracles of the radial profile that share no formula with the library."""

from __future__ import annotations

import itertools
from functools import cache

import mpmath as mp
from flint import acb, arb, ctx


@cache
def _legendre(n: int) -> tuple[tuple[arb, arb], ...]:
    return tuple(arb.legendre_p_root(n, i, True) for i in range(n))


def _panel(f, left: arb, right: arb, n: int) -> arb:
    """Gauss-Legendre in s with x = left + (right - left) (1 - cos s)/2: square-root ends become smooth."""
    total, width, quarter = arb(0), right - left, arb.pi() / 2
    for t, w in _legendre(n):
        s = quarter * (1 + t)
        total += w * f(left + width * (1 - s.cos()) / 2) * s.sin()
    return (total * quarter * width / 2).mid()


def double_integral(dim: int, a: float, b: float, ratio: float, epsilon: float, n: int = 28) -> float:
    """E[(1 - e^(eps - L))_+] over radius and angle in 30 digits: the definition, with no substitution.

    For each r the angle runs from where L = eps to the pole; r is cut where that point enters or leaves [-1, 1].
    Convergence is for the caller to see: two values of n must agree.
    """
    old, ctx.prec = ctx.prec, 110
    try:
        m, a_, b_, d, eps = arb(dim), arb(a), arb(b), arb(ratio), arb(epsilon)
        slack, k = m - a_, a_ / b_
        log_c = (m / 2).lgamma() - ((m - 1) / 2).lgamma() - arb.pi().log() / 2
        log_norm = b_.log() - k.lgamma()

        def h(r):
            return slack * r.log() + (b_ * r.log()).exp()

        def up(r):
            """Newton in log(up/r), from above: convex."""
            y = (b_ * r.log()).exp()
            first, second = eps / (slack + b_ * y), (1 + eps / y).log() / b_
            eta = first if first < second else second
            for _ in range(60):
                grown = y * (b_ * eta).exp()
                step = ((slack * eta + grown - y - eps) / (slack + b_ * grown)).mid()
                eta = (eta - step).mid()
                if abs(step) < 1e-29 * abs(eta):
                    break
            return r * eta.exp()

        def edge(r):
            u = up(r)
            return ((u * u - r * r - d * d) / (2 * r * d)).mid()

        def inner(r):
            start = edge(r)
            if start >= 1:
                return arb(0)
            start = start if start > -1 else arb(-1)
            base, stop = h(r) + eps, arb(1)
            reach = 14 / m.sqrt()
            far = start if start > 0 else arb(0)
            cuts = [start]
            for share in (0.25, 1.0):
                point = far + reach * share
                if start < point < stop:
                    cuts.append(point.mid())
            if cuts[-1] + reach * 4 > stop or dim < 60:
                cuts.append(stop)

            def value(x):
                weight = 1 - x * x
                if not weight > 0:
                    return arb(0)
                loss = h((r * r + d * d + 2 * r * d * x).sqrt()) - base
                return (log_c + (m - 3) / 2 * weight.log()).exp() * (1 - (-loss).exp())

            total = arb(0)
            for left, right in itertools.pairwise(cuts):
                total += _panel(value, left, right, n)
            return total * (log_norm + (a_ - 1) * r.log() - (b_ * r.log()).exp()).exp()

        mode = ((k.log()) / b_).exp()
        spread = 1 / (b_ * k.sqrt())
        left_reach, right_reach = max((50 + a / b) / a, 13 * float(spread)), 10 * float(spread)
        logs = [-left_reach * (1 - j / 42) ** 1.5 for j in range(42)] + [right_reach * j / 18 for j in range(19)]
        grid = [(mode * arb(x).exp()).mid() for x in logs]
        edges = [edge(r) for r in grid]
        cuts = []
        for level in (-1, 1):
            for i in range(len(grid) - 1):
                if (edges[i] - level) * (edges[i + 1] - level) < 0:
                    low, high = grid[i], grid[i + 1]
                    for _ in range(95):
                        middle = ((low + high) / 2).mid()
                        same = (edge(middle) - level) * (edges[i] - level) > 0
                        low, high = (middle, high) if same else (low, middle)
                    cuts.append(low)
        points = sorted([*cuts, *grid[::2]], key=float)
        total = arb(0)
        for left, right in itertools.pairwise(points):
            if edge(((left + right) / 2).mid()) < 1:
                total += _panel(inner, left, right, n)
        return float(total.mid())
    finally:
        ctx.prec = old


_ODD_CAPS = {
    3: lambda c: (1 - c) / 2,
    5: lambda c: acb(0.5) - acb(3) / 4 * (c - c**3 / 3),
    7: lambda c: acb(0.5) - acb(15) / 16 * (c - 2 * c**3 / 3 + c**5 / 5),
}


def enclosure(dim: int, b: float, ratio: float, epsilon: float, bits: int = 160) -> arb:
    """A rigorous enclosure of delta for a = dim in {3, 5, 7}: both expectations of the text-book formula, each
    integrated by interval arithmetic (the caps are polynomials in these dimensions)."""
    old, ctx.prec = ctx.prec, bits
    try:
        cap, eps, d, bb = _ODD_CAPS[dim], acb(epsilon), acb(ratio), acb(b)
        k = acb(dim) / bb

        def density(r):
            return bb * r ** (dim - 1) * (-(r**bb)).exp() / k.gamma()

        def up(r):
            return (r**bb + eps) ** (1 / bb)

        def first(r, _):
            return density(r) * cap((up(r) ** 2 - r * r - d * d) / (2 * r * d))

        def second(r, _):  # in terms of the inner radius dn = r: the outer one is up(r)
            u = up(r)
            return density(u) * (r / u) ** (bb - 1) * cap((u * u + d * d - r * r) / (2 * u * d))

        total, mass = arb(0), arb(0)
        ends = [arb(0), *_crossings(b, ratio, epsilon), arb(400) ** (arb(1) / arb(b))]
        for left, right in itertools.pairwise(ends):
            middle = (left.mid() + right.mid()) / 2
            u = (middle ** arb(b) + arb(epsilon)) ** (1 / arb(b))
            if u >= middle + arb(ratio):
                continue
            if u + middle <= arb(ratio):
                mass += acb.integral(lambda r, _: density(r), acb(left), acb(right)).real
                continue
            total += acb.integral(first, acb(left), acb(right)).real
            total -= (eps.exp() * acb.integral(second, acb(left), acb(right))).real
        return total + mass
    finally:
        ctx.prec = old


def _crossings(b: float, ratio: float, epsilon: float) -> list[arb]:
    """Radii at which up = r + shift or up + r = shift, to 40 digits."""
    with mp.workdps(45):
        bb, d, eps = mp.mpf(b), mp.mpf(ratio), mp.mpf(epsilon)

        def gap(r, sign):
            return (r**bb + eps) ** (1 / bb) + sign * r - d

        found = []
        for sign in (-1, 1):
            grid = [mp.mpf(10) ** (mp.mpf(j) / 8) for j in range(-64, 24)]
            for low, high in itertools.pairwise(grid):
                if gap(low, sign) * gap(high, sign) < 0:
                    found.append(mp.findroot(lambda r, s=sign: gap(r, s), (low, high), solver="anderson", tol=1e-42))
        return [arb(str(root)) for root in sorted(found)]
