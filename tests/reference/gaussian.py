"""The Gaussian privacy profile and its calibration in interval arithmetic: every answer is an enclosure."""

from __future__ import annotations

import numpy as np
from flint import arb, ctx

DIGITS = 50
_BITS = 400


class precision:
    """Interval arithmetic with `bits` bits inside a with block."""

    def __init__(self, bits: int = _BITS) -> None:
        self.bits = bits

    def __enter__(self) -> None:
        self.before, ctx.prec = ctx.prec, self.bits

    def __exit__(self, *_: object) -> None:
        ctx.prec = self.before


def mills(x: arb) -> arb:
    """P(N >= x)/phi(x) for x >= 0: from erfc, and beyond 1000 from the asymptotic series, which envelops."""
    if x < 1000:
        return (x * x / 2).exp() * (x / arb(2).sqrt()).erfc() * (arb.pi() / 2).sqrt()
    total, term = arb(0), 1 / x
    for n in range(1, 22):
        total, term = total + term, -term * (2 * n - 1) / (x * x)
    return total.union(total + term)


def delta(epsilon: float | arb, mu: float | arb, bits: int = _BITS) -> arb:
    """Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu), enclosed: phi(a) (M(a) - M(b)), M the Mills ratio."""
    with precision(bits):
        e, m = arb(epsilon), arb(mu)
        a, b = e / m - m / 2, e / m + m / 2
        density = (-a * a / 2).exp() / (2 * arb.pi()).sqrt()
        if a >= 0:
            return density * (mills(a) - mills(b))
        return 1 - density * (mills(-a) + mills(b))


def inside(value: arb, lower: float, upper: float) -> bool:
    """Whether lower <= value <= upper is proven for a probability enclosed by `value`."""
    return (lower <= 0 or bool(arb(lower) <= value)) and (upper >= 1 or bool(value <= arb(upper)))


def slope(epsilon: float, mu: arb, bits: int = _BITS) -> arb:
    """The derivative of delta in mu: phi(e/mu - mu/2)."""
    with precision(bits):
        a = arb(epsilon) / mu - mu / 2
        return (-a * a / 2).exp() / (2 * arb.pi()).sqrt()


def mu_for(epsilon: float, target: float) -> arb:
    """The root mu of delta(epsilon; mu) = target, enclosed to 50 digits (a sign change proves it)."""
    low, high = arb(2) ** -60, arb(2) ** 60
    for _ in range(60):
        with precision(128):
            middle = arb((low * high).sqrt().mid())
        if delta(epsilon, middle, 256) > arb(target):
            high = middle
        else:
            low = middle
        if high / low < 1.01:
            break
    mu = low
    with precision():
        for _ in range(9):
            mu = arb((mu - (delta(epsilon, mu) - arb(target)) / slope(epsilon, mu)).mid())
        margin = arb(10) ** -(DIGITS + 1)
        below, above = mu * (1 - margin), mu * (1 + margin)
        if not (delta(epsilon, below) < arb(target) < delta(epsilon, above)):
            raise ArithmeticError(f"no enclosed root at epsilon = {epsilon!r}, delta = {target!r}")
        return below.union(above)


def epsilon_excess(epsilon: float, mu: float, target: float) -> arb:
    """delta(epsilon) - target, enclosed: negative where (epsilon, target) holds."""
    with precision():
        return delta(epsilon, mu) - arb(target)


def log_delta(epsilon: float, mu: float) -> arb:
    """log delta, at any depth."""
    with precision():
        return delta(epsilon, mu).log()


def random_claims(n: int, seed: int) -> list[tuple[float, float]]:
    """(epsilon, delta) log-uniform in [1e-3, 50] x [1e-30, 0.5]."""
    rng = np.random.default_rng(seed)
    epsilon = np.exp(rng.uniform(np.log(1e-3), np.log(50), n))
    target = np.exp(rng.uniform(np.log(1e-30), np.log(0.5), n))
    return list(zip(epsilon.tolist(), target.tolist(), strict=True))


def random_points(n: int, seed: int) -> list[tuple[float, float]]:
    """(epsilon, mu): mu log-uniform in [1e-4, 40]; epsilon uniform in [0, 700], at a given depth, near a = 0, or 0."""
    rng = np.random.default_rng(seed)
    points = []
    for _ in range(n):
        mu = float(np.exp(rng.uniform(np.log(1e-4), np.log(40))))
        depth = (rng.uniform(-9, 39), rng.choice([-1, 1]) * 10 ** rng.uniform(-17, 0))
        epsilon = (rng.uniform(0, 700), mu * (mu / 2 + depth[0]), mu * (mu / 2 + depth[1]), 0.0)
        points.append((float(np.clip(epsilon[rng.choice(4, p=[0.3, 0.4, 0.28, 0.02])], 0, 700)), mu))
    return points
