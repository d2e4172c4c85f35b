"""The profile of Gaussian mixing in high precision: sums and integrals written another way than the library's."""

from __future__ import annotations

import mpmath as mp

DIGITS = 50


def zero_out(k: int, t: float, epsilon: float, *, reverse: bool = False, digits: int = DIGITS) -> mp.mpf:
    """delta_1 (delta_2 in reverse) from incomplete gamma functions, with 40 digits to spare for cancellation."""
    with mp.workdps(digits + 40):
        t, e, m = mp.mpf(t), mp.mpf(epsilon), mp.mpf(k) / 2
        log_kept = mp.log1p(-t)
        if not reverse:
            x = (e - m * log_kept) * (1 - t) / t
            return _upper(m, x) - mp.exp(e) * _upper(m, x / (1 - t))
        x = (-e - m * log_kept) / t
        if x <= 0:
            return mp.mpf(0)
        return _lower(m, x) - mp.exp(e) * _lower(m, x * (1 - t))


def _series(m: mp.mpf, x: mp.mpf) -> mp.mpf:
    """P(m, x) = x^m e^-x/Gamma(m + 1) (1 + x/(m+1) + ...): positive terms."""
    term = total = mp.mpf(1)
    j = m
    while True:
        j += 1
        term *= x / j
        total += term
        if term < total * mp.eps and j > x:
            break
    return mp.exp(m * mp.log(x) - x - mp.loggamma(m + 1)) * total


def _fraction(m: mp.mpf, x: mp.mpf) -> mp.mpf:
    """Q(m, x) by Legendre's continued fraction (modified Lentz), for x > m + 1."""
    tiny = mp.mpf(10) ** (-4 * mp.mp.dps)
    b = x + 1 - m
    c, d = 1 / tiny, 1 / b
    h = d
    n = 0
    while True:
        n += 1
        a = -n * (n - m)
        b += 2
        d = 1 / (a * d + b)
        c = b + a / c
        change = c * d
        h *= change
        if abs(change - 1) < mp.eps * 4:
            break
    return mp.exp(m * mp.log(x) - x - mp.loggamma(m)) * h


def _upper(m: mp.mpf, x: mp.mpf) -> mp.mpf:
    return _fraction(m, x) if x > m + 2 else 1 - _series(m, x)


def _lower(m: mp.mpf, x: mp.mpf) -> mp.mpf:
    return _series(m, x) if x <= m + 2 else 1 - _fraction(m, x)


def composed(k: int, t: float, epsilon: float, parts: str, mu: float = 0.0, digits: int = 30) -> mp.mpf:
    """delta of forward ("f") and reverse ("r") zero-out parts and a Gaussian of mu, by quadrature over one of them.

    Two of the three components at most: "fr", "f" or "r" with mu > 0.
    """
    with mp.workdps(digits):
        t, e, m = mp.mpf(t), mp.mpf(epsilon), mp.mpf(k) / 2
        log_kept = mp.log1p(-t)

        def stick(at: mp.mpf, part: str) -> mp.mpf:
            if at >= 0:
                return zero_out(k, t, at, reverse=part == "r", digits=digits)
            other = zero_out(k, t, -at, reverse=part == "f", digits=digits)
            return 1 - mp.exp(at) + mp.exp(at) * other

        if mu == 0:  # over Z of the reverse part: L = -m log(1-t) - t Z/2

            def inside(z: mp.mpf) -> mp.mpf:
                density = mp.exp((m - 1) * mp.log(z / 2) - z / 2 - mp.loggamma(m)) / 2
                return density * stick(e + m * log_kept + t * z / 2, "f")

            centre, spread = 2 * m, mp.sqrt(4 * m)
            points = [max(centre + spread * s, mp.mpf(0)) for s in range(-14, 15, 2)]
            points = sorted(set(points) | {mp.mpf(0), centre + 40 * spread})
            return mp.quad(inside, points)
        mu = mp.mpf(mu)

        def over_normal(z: mp.mpf) -> mp.mpf:
            return mp.npdf(z) * stick(e - mu * z - mu * mu / 2, parts)

        return mp.quad(over_normal, list(range(-16, 17, 2)))
