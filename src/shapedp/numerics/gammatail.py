"""Tails of log(Y/k), Y ~ Gamma(k), relatively accurate at any depth and for every k: library functions are not."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_128, UNIT
from shapedp.numerics.quadrature import legendre

MILLS_ERROR = ROUNDINGS_128
_SERIES_BELOW = 50.0  # the shape up to which the lower tail is summed as a series
_DEPTH = 40.0  # e^-40 of the integrand is cut off
_POINTS = 32
_PANEL = 1.5
_CHUNK = 1 << 13


def deviance(x: Floats) -> Floats:
    """e^x - 1 - x, relatively accurate at 0 too (8 units)."""
    x = np.asarray(x, dtype=np.float64)
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest < 0.5:
        return _small_deviance(x, largest)
    small = np.abs(x) < 0.25
    with np.errstate(over="ignore"):
        out = np.asarray(np.expm1(x) - x)
    if small.any():
        out[small] = _small_deviance(x[small], 0.25)
    return out


def _small_deviance(x: Floats, largest: float) -> Floats:
    """The Taylor series of e^x - 1 - x, as many terms as |x| <= largest needs."""
    terms = next(n for n in range(2, 20) if largest ** (n - 1) < 2.0**-56 * math.factorial(n + 1) or n == 19)
    series = np.full_like(x, 1 / math.factorial(terms))
    for n in range(terms - 1, 1, -1):
        series *= x
        series += 1 / math.factorial(n)
    return np.asarray(series * x * x)


def log_peak(k: float) -> float:
    """log(k^k e^-k/Gamma(k)): the log density of log(Y/k) at 0, its largest value. Stirling's series from k = 12."""
    if k < 12:
        return math.log(k**k * math.exp(-k) / math.gamma(k)) if k > 1e-300 else math.log(k)
    s = 1 / k**2
    series = 1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360))))
    return 0.5 * math.log(k / (2 * math.pi)) - series / k


def log_radii(k: float, levels: Floats) -> Floats:
    """z with k (e^z - 1 - z) = level^2 and the sign of the level: a grid in standard deviations."""
    target = levels * levels / k
    root = np.sqrt(2 * target)
    z = np.where(levels > 0, np.minimum(root, np.log1p(target + root)), -root - target)
    for _ in range(60):
        slope = np.expm1(z)
        step = np.divide(deviance(z) - target, slope, out=np.zeros_like(z), where=slope != 0)
        z = z - step
        if np.all(np.abs(step) <= 1e-9 * np.abs(z)):
            break
    return z


def lower_mills(k: float, z: Floats) -> Floats:
    """P(log(Y/k) <= z)/f(z) for z <= 0, f the density of log(Y/k).

    Guarantee: relative error at most 2^-46. The ratio is sum over n of y^n/(k (k+1) ... (k+n)), y = k e^z, a positive
    series whose ratios fall; and for k >= 50 it is the integral of exp(-k g), see `_integral`.
    Reference: Olver et al., DLMF 8.7.1.
    """
    z = np.asarray(z, dtype=np.float64)
    if k >= _SERIES_BELOW:
        slope, bend = -k * np.expm1(z), k * np.exp(z)
        half = slope - _DEPTH / 2  # deviance(-s) >= s^2/(2 + s): a quadratic equation for the end
        root = np.sqrt(half * half + 2 * _DEPTH * (slope + bend))
        end = np.where(half > 0, 2 * _DEPTH / (half + root), (root - half) / (slope + bend))
        return _integral(slope, bend, end, -1.0, 1)
    y = k * np.exp(z)
    total, term, n = np.full_like(y, 1 / k), np.full_like(y, 1 / k), 0
    while np.any(term > 2.0**-60 * total):
        n += 1
        term = term * (y / (k + n))
        total = total + term
    return total


def upper_mills(k: float, z: Floats) -> Floats:
    """P(log(Y/k) >= z)/f(z) for z >= 0. Guarantee: relative error at most 2^-46."""
    z = np.asarray(z, dtype=np.float64)
    slope, bend = k * np.expm1(z), k * np.exp(z)
    end = 2 * _DEPTH / (slope + np.sqrt(slope * slope + 2 * _DEPTH * bend))  # deviance(s) >= s^2/2
    for _ in range(4):  # from above: never falls below the root
        end = np.log1p((_DEPTH + k * end) / bend)
    panels = 1 if k >= _SERIES_BELOW else math.ceil(float(np.max(end, initial=0.0)) / _PANEL)
    return _integral(slope, bend, end, 1.0, max(panels, 1))


def _integral(slope: Floats, bend: Floats, end: Floats, sign: float, panels: int) -> Floats:
    """The integral over s >= 0 of exp(-G), G(s) = slope s + bend (e^(sign s) - 1 - sign s), by 32 Gauss points a panel.

    Guarantee: G is convex with G(0) = 0, so that the integral up to `end` is at least end (1 - e^-D)/D and the rest
    at most end e^-D/D, D = G(end) >= 40. On the Bernstein ellipse of parameter 3 about [0, end] (k >= 50) the
    integrand stays below e^22 and the rule errs by 12 e^22 3^-64 in units of end/40; likewise for panels of 1.5.
    """
    t, w = legendre(_POINTS)
    half = end / (2 * panels)
    total = np.zeros_like(end)
    for j in range(panels):
        s = half[..., None] * (t + (1 + 2 * j))
        depth = slope[..., None] * s + bend[..., None] * deviance(sign * s)
        total += np.exp(-depth) @ w
    return half * total


def gamma_below(k: float, z: Floats) -> tuple[Floats, Floats]:
    """P(log(Y/k) <= z), and a bound on its error; relatively accurate for z <= 0, absolutely beyond."""
    z = np.asarray(z, dtype=np.float64)
    fall = k * deviance(z)
    density = np.exp(log_peak(k) - fall)
    near = density * np.where(z <= 0, lower_mills(k, np.minimum(z, 0.0)), upper_mills(k, np.maximum(z, 0.0)))
    error = near * (MILLS_ERROR + UNIT * (64 + 10 * fall)) + np.where(z <= 0, 1e-307, UNIT)
    return np.where(z <= 0, near, 1 - near), error


def log_quantile(k: float, below: Floats, above: Floats) -> Floats:
    """z with P(log(Y/k) <= z) = below = 1 - above, the smaller of the two being relatively accurate.

    Newton steps on the log of the nearer tail, which is concave, from scipy's quantile where that is close, and
    from the leading term of Temme's uniform expansion (k >= 1) or of the lower tail, y^k/Gamma(k + 1), where not.
    Guarantee: the last step squared over Mills' ratio was below max(2^-46, 2^-90/k): ArithmeticError otherwise.
    """
    below, above = np.asarray(below, dtype=np.float64), np.asarray(above, dtype=np.float64)
    out = np.empty_like(below)
    for start in range(0, below.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = _log_quantile(k, below[part], above[part])
    return out


def _log_quantile(k: float, below: Floats, above: Floats) -> Floats:
    log_below, log_above = np.log(below), np.log(above)
    z = _guess(k, below, above)
    todo, top = np.arange(below.size), log_peak(k)
    for _ in range(60):
        at = z[todo]
        left = at <= 0
        mills = np.empty_like(at)
        mills[left], mills[~left] = lower_mills(k, at[left]), upper_mills(k, at[~left])
        log_tail = top - k * deviance(at) + np.log(mills)
        gap = np.where(left, log_below[todo] - log_tail, log_tail - log_above[todo])
        step = gap * mills
        z[todo] = at + np.minimum(step, 2.0)
        todo = todo[~((step <= 2.0) & (gap * step <= max(ROUNDINGS_128, 2.0**-90 / k)))]
        if not todo.size:
            return z
    raise ArithmeticError("the quantile of a gamma law was not found")


def _guess(k: float, below: Floats, above: Floats) -> Floats:
    """About the quantile; nothing rests on it."""
    if k < 1:
        return np.minimum((np.log(below) + math.lgamma(k + 1)) / k - math.log(k), 0.0)
    if k > 1e5:
        return log_radii(k, math.sqrt(0.5) * np.where(below < 0.5, special.ndtri(below), -special.ndtri(above)))
    y = np.where(below < 0.5, special.gammaincinv(k, below), special.gammainccinv(k, above))
    return np.log(np.maximum(y, 1e-300) / k)
