"""L = sum_i |T_i + a_i| - |T_i| + N, with T_i standard Laplace and N normal: the transform that `inversion` needs.

One term has E e^(theta L) = e^(-a/2) (cosh(s a) + sinh(s a)/(2 s)) with s = theta + 1/2. Terms are grouped by value;
where there are very many values and s a is small they are replaced by a few interpolation nodes with weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.arrays import Floats
from shapedp.numerics.chisquare import log_fair_binomial
from shapedp.numerics.inversion import Complexes
from shapedp.numerics.outward import ABOVE_8192, UNIT

_FEW = 64  # up to this many distinct values are taken one by one
_POINTS = 10  # interpolation nodes per bucket
_BUCKET = 0.25  # log2 width of a bucket
_LARGEST = 0.25  # values above it are never interpolated
_ATOMS = 2**13  # the most atoms that are counted one by one
_SQUARED = 16
_TOGETHER = 2**12  # frequencies times values that are taken at once: arrays that stay in the cache
_LEBESGUE = 3.0  # of 10 Chebyshev points: 2.4
_DEAD = 1e-22  # a product this small no longer counts
_EVEN = 64  # frequencies from which on an even grid is worth looking for


@dataclass(frozen=True, eq=False)
class LaplaceSum:
    """Distinct values a_g > 0 with multiplicities n_g, and the deviation of the normal part.

    Where `bare`, `spectrum` leaves out the event that every term is at one of its ends +-a: see `split`.
    """

    values: Floats
    counts: Floats
    deviation: float
    nodes: Floats
    weights: Floats
    bucket_tops: Floats
    bucket_ends: NDArray[np.int64]
    bare: bool = False

    @classmethod
    def of(cls, terms: Floats, deviation: float = 0.0) -> LaplaceSum:
        """From the terms a_i, in any order; zeros are dropped."""
        values, counts = np.unique(terms[terms > 0], return_counts=True)
        return cls.grouped(values, counts.astype(np.float64), deviation)

    @classmethod
    def grouped(cls, values: Floats, n: Floats, deviation: float = 0.0) -> LaplaceSum:
        """From distinct ascending values > 0 and their multiplicities."""
        if values.size <= _FEW:
            empty = np.empty(0)
            return cls(values, n, deviation, empty, empty, empty, np.empty(0, dtype=np.int64))
        return cls(values, n, deviation, *_compress(values, n))

    def split(self) -> tuple[LaplaceSum, Floats, Floats] | None:
        """The sum without its atoms, the atoms' places and their masses (to 2^-38); None if they are too many.

        All terms at their ends: (2 j - n) a with mass C(n, j) 2^-n e^(-a (n - j)) for n terms of value a.
        """
        if self.deviation > 0 or math.fsum(np.log1p(self.counts)) > math.log(_ATOMS):
            return None
        places, logs = np.zeros(1), np.zeros(1)
        for a, n in zip(self.values, self.counts, strict=True):
            j = np.arange(n + 1)
            places = np.add.outer(places, (2 * j - n) * a).reshape(-1)
            logs = np.add.outer(logs, log_fair_binomial(int(n)) - a * (n - j)).reshape(-1)
        return replace(self, bare=True), places, np.exp(logs)

    def _small(self, s: float) -> tuple[int, int]:
        """How many buckets, and how many values in them, may be replaced by their nodes for |theta + 1/2| <= s."""
        buckets = int(np.searchsorted(self.bucket_tops, min(1 / s, _LARGEST), side="right"))
        return buckets, int(self.bucket_ends[buckets - 1]) if buckets else 0

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        buckets, begin = self._small(abs(theta) + 0.5)
        values = np.concatenate([self.nodes[: _POINTS * buckets], self.values[begin:]])
        weights = np.concatenate([self.weights[: _POINTS * buckets], self.counts[begin:]])
        value, first, second = _real_cumulants(values, theta)
        half = self.deviation * self.deviation / 2
        return (
            float(weights @ value) + half * theta * (theta + 1),
            float(weights @ first) + half * (2 * theta + 1),
            float(weights @ second) + 2 * half,
        )

    def log_mgf_error(self, theta: float) -> float:
        s = abs(theta) + 0.5
        magnitude = 2 * s * float(self.counts @ self.values) + self.deviation**2 * s * s
        return 256 * UNIT * (magnitude + 1) + self._interpolation(s)

    def spectrum(self, tilt: float, frequencies: Floats) -> tuple[Complexes, Floats]:
        s = abs(tilt + 0.5) + frequencies
        total = float(self.counts @ self.values)
        with np.errstate(under="ignore"):
            normal = self.deviation**2 * s * s * np.exp(-0.5 * np.square(self.deviation * frequencies))
        squared = float(self.counts[self.counts <= self._squared].sum())
        error = 256 * UNIT * (1 + total * s + normal) + 64 * UNIT * squared
        theta = tilt + 1j * frequencies
        half = self.deviation * self.deviation / 2
        log = np.asarray(half * (theta * (theta + 1) - tilt * (tilt + 1)), dtype=np.complex128)
        buckets, begin = self._small(float(s[-1]))
        for a, n in zip(self.nodes[: _POINTS * buckets], self.weights[: _POINTS * buckets], strict=True):
            log += n * _log_factor(float(a), tilt, frequencies)
        slip = math.expm1(min(2 * self._interpolation(float(s[-1])), 100.0))
        values, bound = self._one_by_one(tilt, frequencies, log, begin)
        return values, error + bound + slip * (np.abs(values) + bound)

    def _one_by_one(self, tilt: float, frequencies: Floats, log: Complexes, begin: int) -> tuple[Complexes, Floats]:
        """e^log times the factors of the values from `begin` on, and what was left out, by blocks of frequencies."""
        many = self.values.size - begin > _FEW
        values, bound, left = np.zeros_like(log), 2 * _DEAD * (1 + np.square(frequencies)), 0.0
        kept = np.arange(frequencies.size)
        if many:
            kept = kept[2 * self._faintness(tilt, frequencies, begin) >= bound]
            left = (4e6 / frequencies.size + _FEW) * (frequencies.size - kept.size)
        together = _TOGETHER // 8 if many else _TOGETHER
        for start in range(0, kept.size, together):
            part = kept[start : start + together]
            left += (4e6 / frequencies.size + _FEW) * part.size if many else math.inf
            values[part], bound[part], left = self._block(tilt, frequencies[part], log[part], begin, left)
        return values, bound

    def _faintness(self, tilt: float, frequencies: Floats, begin: int) -> Floats:
        """A bound on the modulus of the product of the values from `begin` on, the largest of them: see `decay`.

        Its log is the sum of -2 n p q sin^2(t a) = -n p q (1 - cos(2 t a)), on an even grid a product of matrices.
        """
        grid = _even(2 * frequencies)
        s = tilt + 0.5
        a = self.values[begin : int(np.searchsorted(self.values, 300 / s))][::-1]
        if grid is None or not a.size:
            return np.ones(frequencies.size)
        pq = 0.25 / np.square(np.cosh(s * a) + np.sinh(s * a) / (2 * s))
        weights = self.counts[begin : begin + a.size][::-1] * pq
        many = 1 + int(np.searchsorted(np.cumsum(weights), -2 * math.log(_DEAD)))
        a, weights = a[:many], weights[:many]
        coarse, fine = (_turns(a, part, None) for part in grid)
        moving = ((weights * coarse.T) @ fine).real.reshape(-1)[: frequencies.size]
        slip = UNIT * (64 * (1 + float(a[0]) * frequencies) + 8 * a.size)
        return np.exp(np.clip(moving - float(weights.sum()) * (1 - slip), -700.0, 0.0))

    def _block(
        self, tilt: float, frequencies: Floats, log: Complexes, begin: int, budget: float
    ) -> tuple[Complexes, Floats, float]:
        """The same for a few frequencies, the largest values first, and what is left of the budget.

        Frequencies where the product has died leave. Where there are too many values the product is cut short: it
        then bounds the modulus, nothing more.
        """
        size = self.values.size - begin
        alive = np.arange(frequencies.size)
        dead = _DEAD * (1 + np.square(frequencies))  # what is divided by t^2 later may be larger
        values = np.zeros(frequencies.size, dtype=np.complex128)
        product: Complexes = np.asarray(np.exp(log), dtype=np.complex128)
        ends = product.copy() if self.bare else np.zeros(0, dtype=np.complex128)
        inner = np.asarray(0.25 / (tilt + 0.5 + 1j * frequencies), dtype=np.complex128)
        grid = _even(frequencies)
        done = 0
        while done < size:
            if budget < 0:
                bound = dead.copy()
                bound[alive] = 2 * np.abs(product)
                return values, bound, 0.0
            stop = min(done + max(_TOGETHER // alive.size, 1), size)
            at = self.values.size - 1 - np.arange(done, stop)
            often = np.flatnonzero(self.counts[at] > self._squared)
            for one in at[often]:
                logs = _log_factor(float(self.values[one]), tilt, frequencies[alive])
                product = np.multiply(product, np.exp(self.counts[one] * logs))
            if often.size < at.size:
                few = np.delete(at, often) if often.size else at
                if alive.size == frequencies.size:
                    turns = _turns(self.values[few], frequencies, grid)
                else:
                    turns = _turns(self.values[few], frequencies[alive], None)
                factors, tips = _factor(self.values[few], tilt, turns, inner[alive], self.bare)
                product = np.multiply(product, _powers(factors, self.counts[few]))
                if tips is not None:
                    ends = np.multiply(ends, _powers(tips, self.counts[few]))
            budget -= alive.size * at.size
            done = stop
            left = np.abs(product) > dead[alive]
            if self.bare:
                left |= np.abs(ends) > dead[alive]
            if not left.all():
                alive, product, ends = alive[left], product[left], ends[left] if self.bare else ends
                if not alive.size:
                    break
        values[alive] = product - ends if self.bare else product
        return values, 2 * dead, budget

    @property
    def _squared(self) -> float:
        """Up to this many equal terms are a product, each off by units of 1; the logarithm's error is that of n t a."""
        return math.inf if self.bare else _SQUARED

    def decay(self, tilt: float, low: float, high: float) -> float:
        """|factor|^2 <= 1 - 4 p q sin^2(t a), p and q its masses at +-a; the terms with t a <= 1 are counted.

        Twice the product bounds the sum without its atoms too.
        """
        if not low < high:
            return 1.0
        log = -0.5 * (self.deviation * low) ** 2
        stop = int(np.searchsorted(self.values, 1 / high, side="right"))
        s = tilt + 0.5
        if stop and s * self.values[stop - 1] < 300:
            a = float(self.values[stop - 1])
            pq = 0.25 / (math.cosh(s * a) + math.sinh(s * a) / (2 * s)) ** 2
            log -= 1.4 * low * low * pq * float(self._squares[stop - 1]) * (1 - 1e-9)
        return 2 * math.exp(max(log, -700.0))

    @cached_property
    def _squares(self) -> Floats:
        return np.cumsum(self.counts * np.square(self.values))

    def _interpolation(self, s: float) -> float:
        """A bound on the error that the interpolation nodes make in log M wherever |theta + 1/2| <= s.

        In z = s a the function is analytic and at most 5.4 in modulus for |z| <= 1.2 and |a| <= 0.3, where cosh z +
        (a/2) sinh(z)/z stays away from 0. Ellipses about a bucket of half-width h centre reach to
        centre + h (rho + 1/rho)/2 <= 1.2/s. Reference: Trefethen 2013, Theorem 8.2.
        """
        buckets, _ = self._small(s)
        if not buckets:
            return 0.0
        tops, starts = self.bucket_tops[:buckets], np.append(0, self.bucket_ends[: buckets - 1])
        narrow = 2.0**-_BUCKET
        half, centre = tops * (1 - narrow) / 2, tops * (1 + narrow) / 2
        axis = (np.minimum(1.2 / s, 0.3) - centre) / half
        rho = axis + np.sqrt(axis * axis - 1)
        with np.errstate(under="ignore"):
            each = 4 * 5.4 * rho ** -(_POINTS - 1.0) / (rho - 1)
        terms = np.add.reduceat(self.counts[: int(self.bucket_ends[buckets - 1])], starts)
        return float(terms @ each) * (1 + _LEBESGUE)


def _compress(values: Floats, counts: Floats) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Buckets of equal log width; in each, Chebyshev nodes whose weights reproduce polynomials of degree 9."""
    top = float(values[-1]) * ABOVE_8192
    bucket = np.floor(np.log2(top / values) / _BUCKET).astype(np.int64)
    ends = np.append(np.flatnonzero(np.diff(bucket)) + 1, values.size)  # values ascend, buckets descend along them
    x = np.cos((2 * np.arange(_POINTS) + 1) * math.pi / (2 * _POINTS))
    basis = np.cos(np.outer(np.arange(_POINTS), np.arccos(x)))
    nodes, weights, tops = [], [], []
    begin = 0
    for stop in ends:
        high = top * 2.0 ** (-_BUCKET * float(bucket[begin]))
        low = high * 2.0**-_BUCKET
        t = np.clip((2 * values[begin:stop] - high - low) / (high - low), -1.0, 1.0)
        chebyshev = np.cos(np.outer(np.arange(_POINTS), np.arccos(t))) @ counts[begin:stop]
        weights.append((2 * chebyshev @ basis - chebyshev[0]) / _POINTS)
        nodes.append((high + low) / 2 + (high - low) / 2 * x)
        tops.append(high)
        begin = stop
    return np.concatenate(nodes), np.concatenate(weights), np.array(tops), ends.astype(np.int64)


def _even(t: Floats) -> tuple[Floats, Floats] | None:
    """Every m-th of sorted frequencies, and the first m less the first, where their sums are all frequencies.

    To within 4 units in the last place; None where they are not, or where frequencies are few. m is about a root.
    """
    if t.size < _EVEN:
        return None
    size = 1 << t.size.bit_length() // 2
    coarse, fine = t[::size], t[:size] - t[0]
    gap = np.add.outer(coarse, fine).reshape(-1)[: t.size] - t
    return (coarse, fine) if (np.abs(gap) <= 4 * UNIT * t).all() else None


def _turns(a: Floats, t: Floats, grid: tuple[Floats, Floats] | None) -> Complexes:
    """e^(i t a), a row for each value; on an even grid as products. Off by at most 16 UNIT (1 + t a)."""
    if grid is not None:
        coarse, fine = (_turns(a, part, None) for part in grid)
        whole = coarse[:, :, None] * fine[:, None, :]
        return np.asarray(whole.reshape(a.size, -1)[:, : t.size])
    angle = np.multiply.outer(a, t)
    turns = np.empty(angle.shape, dtype=np.complex128)
    turns.real, turns.imag = np.cos(angle), np.sin(angle)
    return turns


def _factor(
    a: Floats, tilt: float, turns: Complexes, inner: Complexes, tips: bool
) -> tuple[Complexes, Complexes | None]:
    """E e^((tilt + i t) L)/E e^(tilt L) of some terms, a row each, and, if asked, the part that the two ends give.

    With turns e^(i t a) and inner = 1/(4 s) it is e^(i t a) A/A0, A = 1/2 + inner + e^(-2 s a) (1/2 - inner), see
    `_log_factor`; without inner the ends are left.
    """
    s0 = tilt + 0.5
    level = 1 / (1 + np.expm1(-2 * s0 * a) * (0.5 - 0.25 / s0))[:, None]
    there = turns * level
    back = np.conj(there)
    back *= np.exp(-2 * s0 * a)[:, None]
    ends = np.asarray((there + back) * 0.5) if tips else None
    there *= 0.5 + inner
    back *= 0.5 - inner
    there += back
    return there, ends


def _powers(factors: Complexes, counts: Floats) -> Complexes:
    """The product of rows, each to its whole power."""
    if (counts > 1).any():
        factors = np.stack([whole_power(row, float(n)) for row, n in zip(factors, counts, strict=True)])
    return np.asarray(np.multiply.reduce(factors, axis=0))


def whole_power(base: Complexes, exponent: float) -> Complexes:
    """base^exponent for a whole exponent, by squaring."""
    n = int(exponent)
    result: Complexes | None = None
    with np.errstate(under="ignore"):
        while True:
            if n & 1:
                result = base if result is None else result * base
            n >>= 1
            if not n:
                return base if result is None else result
            base = base * base


def _log_factor(a: float, tilt: float, t: Floats) -> Complexes:
    """log of E e^((tilt + i t) L)/E e^(tilt L) for one term.

    It is i t a + log(A/A0) with A = 1 + (e^(-2 s a) - 1)(1 - 1/(2 s))/2, without cancellation for small a.
    """
    s0 = tilt + 0.5
    s = s0 + 1j * t
    damp = math.exp(-2 * s0 * a)
    angle = 2 * a * t
    sine = np.sin(angle / 2)
    real = math.expm1(-2 * s0 * a) - 2 * damp * sine * sine
    shift = (real - 1j * damp * np.sin(angle)) * (0.5 - 0.25 / s)
    x, y = shift.real, shift.imag
    x0 = math.expm1(-2 * s0 * a) * (0.5 - 0.25 / s0)
    with np.errstate(divide="ignore"):
        modulus = 0.5 * np.log1p(np.maximum(x * (2 + x) + y * y, -1.0)) - math.log1p(x0)
    out = np.empty(t.shape, dtype=np.complex128)
    out.real = np.maximum(modulus, -1e4)
    out.imag = a * t + np.arctan2(y, 1 + x)
    return out


def _real_cumulants(a: Floats, theta: float) -> tuple[Floats, Floats, Floats]:
    """log M of each term and its derivatives in theta, for theta > -1/2."""
    s = theta + 0.5
    z = s * a
    damp = np.exp(-2 * z)
    fall = np.expm1(-2 * z)
    r = 0.5 / s
    # M = e^(theta a) A, A = 1 + fall (1 - r)/2
    level = 1 + 0.5 * fall * (1 - r)
    first = 0.5 * (-2 * a * damp * (1 - r) + fall * 2 * r * r)
    second = 0.5 * (4 * a * a * damp * (1 - r) - 8 * a * damp * r * r - fall * 8 * r**3)
    ratio = first / level
    return theta * a + np.log1p(0.5 * fall * (1 - r)), a + ratio, np.maximum(second / level - ratio * ratio, 0.0)
