"""Disagreements settled in ball arithmetic: losses on a lattice, every number an Arb ball.

Lower bounds round losses down. Upper bounds move the mass of a cell to its two ends so that P and Q keep their masses
("connect the dots", Doroshenko et al. 2022): the profile then lies on chords above the true, convex one.

`delta` returns a ball whose lower end is a proved lower bound on delta(epsilon) (up=False), or whose upper end is a
proved upper bound (up=True), of the laws in `laws.py`. Slow; for the few answers that contradict a float bound.
"""

from __future__ import annotations

import math
from functools import singledispatch
from itertools import pairwise

from bounds import Parts, merged
from flint import arb, arb_poly, ctx

from laws import Atoms, ChiSquare, Laplacian, Law, Moved, Normal, Sampled

BITS = 160


@singledispatch
def tail(law: Law, x: arb) -> tuple[arb, arb]:
    """Balls around P(x < L < infinity) and Q(L > x)."""
    raise TypeError(f"{type(law).__name__} is not known in ball arithmetic")


@tail.register
def _(law: Normal, x: arb) -> tuple[arb, arb]:
    root, mu = arb(2).sqrt(), arb(law.mu)
    return ((x / mu - mu / 2) / root).erfc() / 2, ((x / mu + mu / 2) / root).erfc() / 2


@tail.register
def _(law: Laplacian, x: arb) -> tuple[arb, arb]:
    a = arb(law.a)
    if x >= a:
        return arb(0), arb(0)
    if x < -a:
        return arb(1), arb(1)
    return 1 - ((x - a) / 2).exp() / 2, (-(x + a) / 2).exp() / 2


@tail.register
def _(law: Atoms, x: arb) -> tuple[arb, arb]:
    beyond = [(arb(v), arb(m)) for v, m in zip(law.values, law.masses, strict=True) if arb(v) > x]
    return sum((m for _, m in beyond), arb(0)), sum((m * (-v).exp() for v, m in beyond), arb(0))


@tail.register
def _(law: ChiSquare, x: arb) -> tuple[arb, arb]:
    t, shift = arb(law.t), -arb(law.k) / 2 * (1 - arb(law.t)).log()
    rate = t / (1 - t) if law.forward else t
    z = (x + shift) / rate if law.forward else (shift - x) / rate
    half = arb(law.k) / 2
    if z <= 0:
        return (arb(1), arb(1)) if law.forward else (arb(0), arb(0))
    ends = (z, z / (1 - t)) if law.forward else (z, z * (1 - t))
    upper = [end.gamma_upper(half, regularized=1) for end in ends]
    return (upper[0], upper[1]) if law.forward else (1 - upper[0], 1 - upper[1])


@tail.register
def _(law: Sampled, x: arb) -> tuple[arb, arb]:
    q = arb(law.rate)
    if law.forward:
        inside = (x.exp() - 1 + q) / q
        p, r = (arb(1 - law.base.infinity), arb(1)) if not inside > 0 else tail(law.base, inside.log())
        return q * p + (1 - q) * r, r
    inside = ((-x).exp() - 1 + q) / q
    if not inside > 0:
        return arb(0), arb(0)
    p, r = tail(law.base, -inside.log())
    lost = arb(law.base.infinity)
    return p + lost, q * r + (1 - q) * (p + lost)


@tail.register
def _(law: Moved, x: arb) -> tuple[arb, arb]:
    p, q = tail(law.base, x - arb(law.shift))
    return (1 - arb(law.lost)) * p, (1 - arb(law.lost)) * q * (-arb(law.shift)).exp()


def delta(parts: Parts, epsilon: float, *, up: bool, nodes: int = 3000, cut: float = math.inf) -> arb:
    """A proved bound on delta(epsilon) of one direction. Losses above the cut are infinite (up) or moved down to it."""
    kept, ctx.prec = ctx.prec, BITS
    try:
        return _delta(merged(parts), epsilon, up, nodes, cut)
    finally:
        ctx.prec = kept


def _delta(parts: Parts, epsilon: float, up: bool, nodes: int, cut: float) -> arb:
    if len(parts) == 1 and parts[0][1] == 1:
        p, q = tail(parts[0][0], arb(epsilon))
        return p - arb(epsilon).exp() * q + arb(parts[0][0].infinity)
    width = math.fsum(n * (min(law.span()[1], cut) - law.span()[0]) for law, n in parts)
    tops = [law.top for law, _ in parts if law.top_mass]
    step = width / nodes
    if tops and max(tops) > step:
        step = max(tops) / math.floor(max(tops) / step)
    whole, first, lost, kept = arb_poly([arb(1)]), 0, arb(0), arb(1)
    slip = step * 1e-9
    for law, n in parts:
        start, masses, beyond = _masses(law, arb(step), arb(slip), up, cut)
        whole, first = whole * arb_poly(masses) ** n, first + n * start
        lost, kept = lost + n * beyond, kept * (1 - arb(law.infinity)) ** n
    count = sum(n for _, n in parts)
    total, at = arb(0), arb(epsilon)
    for i, mass in enumerate(whole.coeffs()):
        value = arb(step) * (first + i) + arb(slip) * (count if up else -count)
        if value > at:
            total += mass * (1 - (at - value).exp())
    return 1 - kept + total + (lost if up else 0)


def _masses(law: Law, step: arb, slip: arb, up: bool, cut: float) -> tuple[int, list[arb], arb]:
    low, high = law.span()
    width, high = float(step.mid()), min(high, cut)
    start, last = math.floor(low / width) - 1, math.ceil(high / width) + 1
    places = [step * i + (slip if up else -slip) for i in range(start, last + 1)]
    tails = [tail(law, place) for place in places]
    drops = [a[0] - b[0] for a, b in pairwise(tails)]
    if not up:
        return start, [*drops, tails[-1][0]], arb(0)
    masses = [1 - arb(law.infinity) - tails[0][0], *(arb(0) for _ in drops)]
    shrink = 1 - (-step).exp()
    for i, mass in enumerate(drops):
        right = (mass - (tails[i][1] - tails[i + 1][1]) * places[i].exp()) / shrink
        right = right.min(mass).max(arb(0))
        masses[i], masses[i + 1] = masses[i] + mass - right, masses[i + 1] + right
    return start, masses, tails[-1][0]
