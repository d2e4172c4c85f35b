"""Bounds on delta(epsilon) of a composition from the laws of its parts, independent of the library under test.

delta(e) = P(sum = infinity) + E (1 - e^(e - sum))_+ grows with every loss. So losses rounded down to a lattice give a
lower bound and losses rounded up an upper bound; the convolution is done by Fourier transforms of exponentially tilted
masses, the error of which is added outward. Beside it: the event that every loss is at its top, tests on one part
(binomial counts), addition of tops, moments, and the closed form of Gaussians.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import mpmath as mp
import numpy as np
from scipy import special

from laws import DEEP, Atoms, Floats, Law, Normal

Parts = Sequence[tuple[Law, int]]
MARGIN = 1e-6  # relative: what rounding in this file may cost
_SLIP = 1e-9  # of a step: atoms that sit on the lattice stay there
_LOG_SLACK = 4e-15
_GONE = 28.0  # minus log of the tilted mass that may lie outside the window
_COARSE = 400


def gaussian(epsilon: float, mu: float) -> float:
    """delta of Gaussian noise, in 40 digits and more."""
    if mu == 0:
        return 0.0
    a = epsilon / mu - mu / 2
    with mp.workdps(40 + int(max(0.0, -2 * math.log10(mu)))):
        a, b = mp.mpf(epsilon) / mu - mp.mpf(mu) / 2, mp.mpf(epsilon) / mu + mp.mpf(mu) / 2
        root = mp.sqrt(2)
        return float((mp.erfc(a / root) - mp.exp(epsilon) * mp.erfc(b / root)) / 2)


def merged(parts: Parts) -> list[tuple[Law, int]]:
    """Equal laws together, all Gaussians as one."""
    square, counts = 0.0, {}
    for law, n in parts:
        if isinstance(law, Normal):
            square += n * law.mu * law.mu
        else:
            counts[law] = counts.get(law, 0) + n
    whole = [(Normal(math.sqrt(square)), 1)] if square else []
    return whole + list(counts.items())


def certain(parts: Parts) -> float:
    """P(sum = infinity)."""
    return -math.expm1(math.fsum(n * math.log1p(-min(law.infinity, 1 - 1e-16)) for law, n in parts))


@dataclass(frozen=True)
class _Coarse:
    """Every law on a few hundred points: guides the choice of tilt and window, never an answer."""

    values: list[Floats]
    logs: list[Floats]
    counts: list[int]

    @classmethod
    def of(cls, parts: Parts, cuts: list[float]) -> _Coarse:
        values, logs = [], []
        for (law, _), cut in zip(parts, cuts, strict=True):
            if isinstance(law, Atoms):
                at, mass = np.array(law.values), np.array(law.masses)
            else:
                at, tails = points(law, cut)
                mass = np.append(max(1 - law.infinity - tails[0], 0.0), np.maximum(tails[:-1] - tails[1:], 0.0))
                if not law.top_mass:
                    at = np.append(at[0], (at[1:] + at[:-1]) / 2)
            keep = mass > 0
            if not keep.any():
                at, mass, keep = at[-1:], np.array([1.0]), np.array([True])
            values.append(at[keep])
            logs.append(np.log(mass[keep]))
        return cls(values, logs, [n for _, n in parts])

    def cgf(self, t: float) -> float:
        total = 0.0
        for value, log, n in zip(self.values, self.logs, self.counts, strict=True):
            raised = log + t * value
            peak = raised.max()
            total += n * (peak + math.log(np.exp(raised - peak).sum()))
        return total

    def mean(self, t: float) -> float:
        total = 0.0
        for value, log, n in zip(self.values, self.logs, self.counts, strict=True):
            raised = log + t * value
            weights = np.exp(raised - raised.max())
            total += n * float(weights @ value) / float(weights.sum())
        return total

    def tilt(self, epsilon: float) -> float:
        """About the t >= 0 at which the tilted mean is epsilon."""
        if self.mean(0.0) >= epsilon:
            return 0.0
        unit = 1 / max(max(float(np.abs(value).max()) for value in self.values), 1e-300)
        low, high = 0.0, unit
        while self.mean(high) < epsilon and high < 1e9 * unit:
            low, high = high, high * 4
        for _ in range(24):
            middle = (low + high) / 2
            low, high = (middle, high) if self.mean(middle) < epsilon else (low, middle)
        return high

    def window(self, t: float, pure: float) -> tuple[float, float, float, float]:
        """(low, high, s, s'): ends that the tilted sum passes with probability about e^-28, and the orders used."""
        base = self.cgf(t)
        unit = 1 / max(max(float(np.abs(value).max()) for value in self.values), 1e-300)
        orders = unit * np.geomspace(1e-5, 1e3, 25)
        highs = [(self.cgf(t + s) - base + _GONE) / s for s in orders]
        lows = [(base - self.cgf(t - s) - _GONE) / s for s in orders]
        i, j = int(np.argmin(highs)), int(np.argmax(lows))
        low, high = lows[j], min(highs[i], pure)
        room = 0.03 * (high - low)  # the coarse laws are a little off
        return low - room, high + room, orders[i], orders[j]


def points(law: Law, cut: float = math.inf) -> tuple[Floats, Floats]:
    """Some ascending places of a law, dense near 0 and evenly over its span up to a cut, and its tails there."""
    low, high = law.span()
    high = min(high, cut)
    widths = np.geomspace(1e-7, 1.0, _COARSE // 4)
    at = np.concatenate([np.linspace(low, high, _COARSE // 2), high * widths, low * widths, [0.0]])
    at = np.unique(at[(at >= low) & (at <= high)])
    return at, law.tail(at)


def _lattice(law: Law, step: float, cut: float, up: bool) -> tuple[int, Floats]:
    """First index and masses of the law rounded to the lattice (values index * step, less or plus the slip).

    What lies above the cut counts as infinite (up) or is moved down to it.
    """
    low, high = law.span()
    high = min(high, cut)
    slip = _SLIP * step
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    index = np.arange(first, last + 1, dtype=np.float64)
    tails = law.tail(index * step + (slip if up else -slip))
    drops = np.maximum(tails[:-1] - tails[1:], 0.0)
    if up:  # (i - 1, i] goes to i; what lies below the first to the first
        return first, np.append(max(1 - law.infinity - float(tails[0]), 0.0), drops)
    return first, np.append(drops, tails[-1])  # (i, i + 1] goes to i; what lies below is dropped


class Composition:
    """One direction of a composition."""

    def __init__(self, parts: Parts, nodes: int = 2**11) -> None:
        self.parts = merged(parts)
        self.count = sum(n for _, n in self.parts)
        self.nodes = min(nodes * 2 ** max(math.ceil(math.log2(max(self.count, 1) / 32)), 0), 2**6 * nodes)
        self.certain = certain(self.parts)
        self.pure = math.fsum(n * law.top for law, n in self.parts)
        self._kept: dict[tuple[float, bool], float] = {}
        self._guides: dict[tuple[float, ...], _Coarse] = {}

    def _cuts(self, epsilon: float, least: float) -> list[float]:
        """Where each law may be cut: so far out that nothing can bring the sum back, or where 1e-5 of delta is left."""
        depth = math.fsum(n * max(-law.span()[0], 0.0) for law, n in self.parts)
        cuts = []
        for law, n in self.parts:
            cut = epsilon + depth + 30
            if least > 1e-295 and not law.top_mass:
                at, tails = points(law)
                cut = min(cut, float(at[np.argmax(n * tails <= 1e-5 * least)]))
            cuts.append(max(cut, law.span()[0]) if cut < law.span()[1] else math.inf)
        return cuts

    def _guide(self, cuts: list[float]) -> _Coarse:
        return self._guides.setdefault(tuple(cuts), _Coarse.of(self.parts, cuts))

    def _normal(self) -> float | None:
        """mu where every part is Gaussian."""
        if not self.parts:
            return 0.0
        law = self.parts[0][0]
        return law.mu if len(self.parts) == 1 and isinstance(law, Normal) else None

    def lower(self, epsilon: float) -> float:
        """A proved lower bound on delta(epsilon)."""
        return self._once(epsilon, False)

    def upper(self, epsilon: float) -> float:
        """A proved upper bound on delta(epsilon)."""
        return self._once(epsilon, True)

    def _once(self, epsilon: float, up: bool) -> float:
        if (epsilon, up) not in self._kept:
            found = self._above(epsilon) if up else self._below(epsilon)
            self._kept[epsilon, up] = min(found * (1 + MARGIN) + DEEP, 1.0) if up else max(found, 0.0) * (1 - MARGIN)
        return self._kept[epsilon, up]

    def _below(self, epsilon: float) -> float:
        mu = self._normal()
        if mu is not None:
            return gaussian(epsilon, mu)
        if epsilon >= self.pure:
            return self.certain
        simple = self._simple(epsilon)
        return max(simple, self._convolved(epsilon, self._cuts(epsilon, simple), up=False))

    def _above(self, epsilon: float) -> float:
        mu = self._normal()
        if mu is not None:
            return gaussian(epsilon, mu)
        if epsilon > self.pure * (1 + 1e-12):
            return self.certain
        return self._convolved(epsilon, self._cuts(epsilon, self._simple(epsilon)), up=True)

    def _simple(self, epsilon: float) -> float:
        return max(self.at_top(epsilon), *(self.counted(law, n, epsilon) for law, n in self.parts))

    def at_top(self, epsilon: float) -> float:
        """All losses maximal at once."""
        if not math.isfinite(self.pure) or any(law.top_mass == 0 for law, _ in self.parts):
            return self.certain
        log = math.fsum(n * math.log(law.top_mass) for law, n in self.parts)
        found = math.exp(max(log, -745.0)) if log > -744 else 0.0
        return self.certain + found * -math.expm1(min(epsilon - self.pure, 0.0)) * (1 - 1e-9)

    def counted(self, law: Law, n: int, epsilon: float) -> float:
        """How often L > x in n runs of one part, for the best of some x: an exact binomial test."""
        at, tails = points(law)
        share = np.log(np.maximum(tails, 1e-300)) + np.log1p(-np.minimum(tails, 1 - 1e-16))
        wanted = [-1.4, -2, -4, -8, -16, -100] if n > 2000 else [-1.4, -2, -3, -5, -8, -12, -20, -40, -80, -160, -320]
        ends = np.unique([at[np.argmin(np.abs(share - level))] for level in wanted])
        if law.top_mass:
            ends = np.append(ends, np.nextafter(law.top, -np.inf))
        best = 0.0
        count = np.arange(n + 1, dtype=np.float64)
        log_choose = special.gammaln(n + 1) - special.gammaln(count + 1) - special.gammaln(n - count + 1)
        whole = 1 - law.infinity
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            for p, q in zip(law.tail(ends), law.qtail(ends), strict=True):
                if not (p > q > 0 and whole - p > 1e-8 and q < 1):  # what is left of 1 must keep its digits
                    continue
                up, down = math.log(p / q), math.log((whole - p) / (1 - q))
                slack = n * _LOG_SLACK  # p and q are rounded: their logarithms too, by as much in absolute terms
                gap = -np.expm1(np.minimum(epsilon + slack - count * up - (n - count) * down, 0.0))
                log = log_choose + count * math.log(p) + (n - count) * math.log(whole - p)
                best = max(best, float(np.exp(log) @ gap))
        return (best + -math.expm1(n * math.log1p(-law.infinity))) * (1 - 1e-8)

    def _convolved(self, epsilon: float, cuts: list[float], *, up: bool) -> float:
        guide = self._guide(cuts)
        t = guide.tilt(epsilon)
        low, high, s_up, s_down = guide.window(t, self.pure)
        spans = [law.span() for law, _ in self.parts]
        widest = max(min(end, cut) - start for (start, end), cut in zip(spans, cuts, strict=True))
        step = max((high - low) / (0.9 * self.nodes), widest / (4 * self.nodes), 1e-290)
        size = self._step_to(step)
        found = self._one(epsilon, t, size, (low, high, s_up, s_down), cuts, up=up)
        if not up:
            return found
        lost = [
            n * float(law.tail(np.array([min(law.span()[1], cut)]))[0])
            for (law, n), cut in zip(self.parts, cuts, strict=True)
            if cut < math.inf or math.isinf(law.top)  # a law that ends has no mass beyond its end
        ]
        return min(found + math.fsum(lost), 1.0)

    def _step_to(self, step: float) -> float:
        """A step that divides the top of the part with most atoms."""
        atoms = [(n * law.top, law.top) for law, n in self.parts if law.top_mass and 0 < law.top < math.inf]
        if not atoms:
            return step
        top = max(atoms)[1]
        return top / math.floor(top / step) if top > step else step

    def _one(
        self,
        epsilon: float,
        t: float,
        step: float,
        window: tuple[float, float, float, float],
        cuts: list[float],
        *,
        up: bool,
    ) -> float:
        low, high, s_up, s_down = window
        nodes = 2 ** math.ceil(math.log2((high - low) / step + 16))
        start = math.floor(low / step) - 4
        transform = np.ones(nodes // 2 + 1, dtype=np.complex128)
        total, above, below = 0.0, 0.0, 0.0
        for (law, n), cut in zip(self.parts, cuts, strict=True):
            first, masses = _lattice(law, step, cut, up)
            keep = np.flatnonzero(masses > 0)
            if not keep.size:
                return self.certain if not up else 1.0
            value, log = (first + keep) * step, np.log(masses[keep])
            sums = [_log_sum(log + order * value) for order in (t, t + s_up, t - s_down)]
            total += n * sums[0]
            above += n * (sums[1] - sums[0])
            below += n * (sums[2] - sums[0])
            tilted = np.bincount((first + keep) % nodes, np.exp(log + t * value - sums[0]), nodes)
            transform *= np.fft.rfft(tilted) ** n
        found = np.fft.irfft(transform, nodes)
        index = start + (np.arange(nodes) - start) % nodes
        slip = self.count * _SLIP * step * (1 if up else -1)
        gap = index * step + slip - epsilon
        inside = gap > 0
        with np.errstate(under="ignore"):
            weights = np.exp(-t * gap[inside]) * -np.expm1(-gap[inside])
        outside = math.exp(min(above - s_up * (start + nodes) * step, 0.0))
        outside += math.exp(min(below + s_down * start * step, 0.0))
        error = outside + 1e-16 * (40 + self.count) * float(weights.sum())
        kept = float(found[inside] @ weights) + (error if up else -error)
        log = total - t * (epsilon - slip)
        if kept <= 0 or (not up and log < -744):
            return self.certain if not up else min(self.certain + DEEP, 1.0)
        most = t * math.log(t) - (1 + t) * math.log1p(t) if t else 0.0  # moments: E e^(t (sum - e)) t^t/(1 + t)^(1 + t)
        log += min(math.log(kept), most) if up else math.log(kept)
        finite = math.exp(min(log, 0.0))
        return self.certain + finite * (1 - 1e-9) if not up else min(self.certain + finite + DEEP, 1.0)


def _log_sum(values: Floats) -> float:
    peak = float(values.max())
    return peak + math.log(float(np.exp(values - peak).sum()))


class Both:
    """The larger of two directions."""

    def __init__(self, forward: Parts, reverse: Parts | None = None, nodes: int = 2**11) -> None:
        self.sides = [Composition(parts, nodes) for parts in ([forward] if reverse is None else [forward, reverse])]

    def lower(self, epsilon: float) -> float:
        return max(side.lower(epsilon) for side in self.sides)

    def upper(self, epsilon: float) -> float:
        return max(side.upper(epsilon) for side in self.sides)
