"""Tails of the gamma law in interval arithmetic: positive sums that share nothing with the library's integrals."""

from __future__ import annotations

from flint import arb, ctx


def mills(k: float, z: float, *, upper: bool, bits: int = 128) -> arb:
    """An enclosure of P(log(Y/k) <= z)/f(z), or with `upper` of P(log(Y/k) >= z)/f(z), Y ~ Gamma(k), f the density.

    Below: sum of y^n/(k (k+1) ... (k+n)). Above: 1/y + (k-1)/y^2 + (k-1)(k-2)/y^3 + ..., positive while n < k, what
    is left being the same ratio of the shape k - n; and directly by Arb for k < 200.
    """
    old, ctx.prec = ctx.prec, bits
    try:
        shape = arb(k)
        y = shape * arb(z).exp()
        if upper and k < 200:
            ctx.prec = 4000
            y = shape * arb(z).exp()
            return y.gamma_upper(shape) / (shape * y.log() - y).exp()
        tiny = arb(2) ** (10 - bits)
        term = total = 1 / y if upper else 1 / shape
        n = 0
        while True:
            n += 1
            ratio = (shape - n) / y if upper else y / (shape + n)
            term = term * ratio
            if not term > 0:
                raise ArithmeticError("the sum has changed its sign")
            total = total + term
            if ratio < 1 and term * ratio / (1 - ratio) < tiny * total:
                rest = term * ratio / (1 - ratio)
                return total + rest * arb(0.5, 0.5)
    finally:
        ctx.prec = old


def log_peak(k: float, bits: int = 200) -> arb:
    """log(k^k e^-k/Gamma(k))."""
    old, ctx.prec = ctx.prec, bits
    try:
        shape = arb(k)
        return shape * shape.log() - shape - shape.lgamma()
    finally:
        ctx.prec = old


def log_tail(k: float, z: float, *, upper: bool, bits: int = 128) -> arb:
    """log P(log(Y/k) <= z), or of the upper tail."""
    old, ctx.prec = ctx.prec, bits
    try:
        shape, at = arb(k), arb(z)
        return mills(k, z, upper=upper, bits=bits).log() + log_peak(k) - shape * (at.exp() - 1 - at)
    finally:
        ctx.prec = old
