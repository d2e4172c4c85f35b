"""Hyperspherical coordinates in 128-bit interval arithmetic, element by element."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from flint import arb, ctx

BITS = 128


def elements(norm: float, angles: np.ndarray) -> Iterator[arb]:
    """x_1, x_2, ... of the deviations, one after the other."""
    before, ctx.prec = ctx.prec, BITS
    try:
        radius = arb(norm)
        for angle in angles.tolist():
            sine, cosine = arb(angle).sin_cos()
            yield radius * sine
            radius = radius * cosine
        yield radius
    finally:
        ctx.prec = before


def worst(norm: float, angles: np.ndarray, x: np.ndarray) -> tuple[float, float, int]:
    """The largest relative error of normal floats, the largest absolute one below, and how many were compared.

    Comparison ends where all that follows lies below 1e-330; there x must be zero.
    """
    relative = absolute = 0.0
    seen, log_radius = 0, np.log(abs(norm))
    for value, got, angle in zip(elements(norm, angles), x.tolist(), np.append(angles, 0.0).tolist(), strict=True):
        exact = float(value.mid())
        if abs(exact) >= 2.3e-308:
            relative = max(relative, abs(float(((arb(got) - value) / value).mid())))
        else:
            absolute = max(absolute, abs(got - exact))
        seen += 1
        log_radius += np.log(abs(np.cos(angle)))
        if log_radius < np.log(10) * -330:
            break
    assert not x[seen:].any()
    return relative, absolute, seen
