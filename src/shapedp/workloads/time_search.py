"""The search for noise over time of least error: it guides; what it finds is checked, never believed.

With X = C'C, tr(A'A X^-1) is to be small subject to X_jj = 1 and X_ij = 0 beyond the bands: a convex programme. For
L >= 0 that is 0 within the bands but for its diagonal, (sum of singular values of A L^(1/2))^2/tr L bounds the error
of all such C from below; at the optimum L = X^-1 A'A X^-1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.ellipsoid import nuclear_below
from shapedp.numerics.outward import BELOW_8, UNIT

_ROUNDS = 1000


def best_bands(workload: Floats, bands: int) -> Floats:
    """The lower triangular matrix with unit columns and so many bands that makes |A C^-1| least."""
    from scipy import linalg

    steps = len(workload)
    if bands == 1:
        return np.eye(steps)
    rows, columns = np.indices((steps, steps), sparse=True)
    inside = (rows >= columns) & (rows - columns < bands)
    first = np.where(inside, _roots(steps)[np.maximum(rows - columns, 0)], 0.0)

    def error(entries: Floats) -> tuple[float, Floats]:
        plain = np.zeros((steps, steps))
        plain[inside] = entries
        norms = np.linalg.norm(plain, axis=0)
        lower = plain / norms
        seen = linalg.solve_triangular(lower, workload.T, lower=True, trans="T", check_finite=False)
        slope = -2 * linalg.solve_triangular(lower, seen @ seen.T, lower=True, check_finite=False).T
        slope = np.where(inside, slope, 0.0)
        slope = (slope - lower * (lower * slope).sum(axis=0)) / norms
        return float(np.square(seen).sum()), slope[inside]

    found = np.zeros((steps, steps))
    found[inside] = _least(error, first[inside], 1e-10)
    found *= np.where(found.diagonal() < 0, -1.0, 1.0)[:, None]  # a row's sign changes neither error nor norms
    return np.asarray(found / np.linalg.norm(found, axis=0))


def best_coefficients(workload: Floats, bands: int) -> Floats:
    """The unit vector c for which the Toeplitz matrix of c makes |A C^-1| least, A Toeplitz as well."""
    from scipy import signal

    steps = len(workload)
    if bands == 1:
        return np.ones(1)
    weights = np.arange(steps, 0, -1, dtype=np.float64)

    def error(entries: Floats) -> tuple[float, Floats]:
        norm = float(np.linalg.norm(entries))
        unit = entries / norm
        inverse = reciprocal(unit, steps)
        seen = signal.fftconvolve(workload, inverse)[:steps]
        moved = signal.fftconvolve(seen, inverse)[:steps]
        slope = -2 * signal.fftconvolve((weights * seen)[::-1], moved)[:steps][::-1][:bands]
        return float(np.square(seen) @ weights), (slope - unit * (unit @ slope)) / norm

    found = _least(error, _roots(steps)[:bands], 1e-12)
    return np.asarray(found / np.linalg.norm(found))


def reciprocal(coefficients: Floats, steps: int) -> Floats:
    """The first `steps` coefficients of 1/(c_0 + c_1 x + ...)."""
    from scipy import signal

    impulse = np.zeros(steps)
    impulse[0] = 1.0
    return np.asarray(signal.lfilter([1.0], coefficients, impulse))


def least_error(workload: Floats, lower: Floats, bands: int) -> float:
    """A proved lower bound on |A C^-1|^2 of all C with unit columns and so many bands, best near C = `lower`.

    Guarantee: K is any lower triangular matrix, L = KK'. Every feasible X has |X_ij| <= 1, so that
    tr(L X) <= tr L + sum of |L_ij| within the bands, where L_ij should be 0; the rounding of L is counted.
    """
    from scipy import linalg

    steps = len(workload)
    seen = linalg.solve_triangular(lower, workload.T, lower=True, trans="T", check_finite=False)
    weight = linalg.solve_triangular(lower, seen @ seen.T, lower=True, check_finite=False)
    weight = linalg.solve_triangular(lower, weight.T, lower=True, check_finite=False)
    apart = np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))
    far = (apart == 0) | (apart >= bands)
    weight = np.where(far, (weight + weight.T) / 2, 0.0)
    least = float(linalg.eigvalsh(weight)[0])
    top = float(weight.diagonal().max())
    weight += np.eye(steps) * (max(-least, 0.0) + 1e-13 * steps * top)
    root = np.linalg.cholesky(weight)
    whole, size = root @ root.T, np.abs(root) @ np.abs(root).T
    doubt = 2 * (steps + 8) * UNIT
    trace = float(size.diagonal().sum()) * (1 + doubt)
    stray = float(np.where((apart > 0) & (apart < bands), np.abs(whole) + doubt * size, 0.0).sum())
    return nuclear_below(workload @ root, (2 * steps + 64) * UNIT) ** 2 / ((trace + stray) * (1 + doubt)) * BELOW_8


def _roots(steps: int) -> Floats:
    """The coefficients of (1 - x)^(-1/2): where searches begin."""
    k = np.arange(1, steps)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


def _least(function: Callable[[Floats], tuple[float, Floats]], start: Floats, tolerance: float) -> Floats:
    from scipy import optimize

    options: Any = {"maxiter": _ROUNDS, "maxfun": 2 * _ROUNDS, "maxcor": 20, "ftol": tolerance, "gtol": 0.0}
    return np.asarray(optimize.minimize(function, start, jac=True, method="L-BFGS-B", options=options).x)
