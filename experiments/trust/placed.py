"""Laws of a pass in which each record is placed in one of t runs, by enumeration and by one integral.

With R_i = dP/dQ of run i and S = (R_1 + .. + R_t)/t, Q' is Q in all runs and dP'/dQ' = S. Where R has few values all
multisets of values are listed: exact. Of any other base the outcomes are put into cells first: what is told apart
less is a lower bound on every delta (data processing), and moving each cell's ratios to its two ends, means kept, an
upper one (a larger law in convex order). Two runs of Gaussian noise are one integral. Nothing here imports the library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from scipy import special

from laws import Atoms, Floats, Law

MOST = 40_000  # multisets that are listed
_ROUNDED = 2.0**-50  # a sum's rounding, by its number of terms
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def room(values: int) -> int:
    """The most runs at which the multisets of so many values can be listed."""
    runs = 1
    while runs < 64 and math.comb(values + runs, runs + 1) <= MOST:
        runs += 1
    return runs


def listed(ratios: Floats, masses: Floats, runs: int, infinity: float = 0.0) -> tuple[Atoms, Atoms]:
    """Both directions of `runs` runs, from the values of R and their masses under Q; P has `infinity` beyond."""
    keep = masses > 0
    ratios, masses = ratios[keep], masses[keep]
    chosen = np.array(list(combinations_with_replacement(range(ratios.size), runs)))
    sums = ratios[chosen].sum(axis=1) / runs
    times = (chosen[:, :, None] == np.arange(ratios.size)).sum(axis=1)
    ways = special.gammaln(runs + 1) - special.gammaln(times + 1).sum(axis=1)
    under = np.exp(ways + times @ np.log(masses))
    empty = sums == 0
    order = np.argsort(sums[~empty])
    losses, mass = np.log(sums[~empty][order]), under[~empty][order]
    there = _atoms(losses, mass * sums[~empty][order], infinity)
    return there, _atoms(-losses[::-1], mass[::-1], float(under[empty].sum()))


def _atoms(values: Floats, masses: Floats, infinity: float) -> Atoms:
    """Masses scaled to what is finite: they sum to it but for rounding."""
    keep = masses > 0
    masses = masses[keep] * ((1 - infinity) / math.fsum(masses[keep]))
    return Atoms(tuple(values[keep].tolist()), tuple(masses.tolist()), infinity)


def of_atoms(base: Atoms, runs: int) -> list[tuple[Law, Law]]:
    """A base pair with finitely many losses that mirrors itself: where it has mass at infinity, Q has as much at 0.

    Its losses are logarithms of rounded sums: one pair with each a little less, and one with each a little more.
    """
    ratios, masses = np.exp(base.values), np.array(base.masses) * np.exp(-np.array(base.values))
    if base.infinity:
        ratios, masses = np.append(0.0, ratios), np.append(base.infinity, masses)
    there, back = listed(ratios, masses, runs, base.infinity)
    return [(_moved(there, by), _moved(back, by)) for by in (-_ROUNDED * runs, _ROUNDED * runs)]


def _moved(law: Atoms, by: float) -> Atoms:
    return Atoms(tuple(value + by for value in law.values), law.masses, law.infinity)


def convolved(base: Atoms, times: int) -> Atoms:
    """Several runs at one place: the sums of `times` losses of a law of two atoms without mass at infinity."""
    (low, high), (less, more) = base.values, base.masses
    count = np.arange(times + 1)
    masses = special.binom(times, count) * more**count * less ** (times - count)
    return _atoms(high * count + low * (times - count), masses, 0.0)


def two(a: float, b: float) -> Atoms:
    """Two randomised responses at one place."""
    values = [-a - b, -abs(a - b), abs(a - b), a + b]
    high, less = 1 / (1 + math.exp(-max(a, b))), 1 / (1 + math.exp(-min(a, b)))
    masses = [(1 - high) * (1 - less), (1 - high) * less, high * (1 - less), high * less]
    return _atoms(np.array(values), np.array(masses), 0.0)


@lru_cache(maxsize=32)
def _cells(mu: float, runs: int) -> tuple[Floats, Floats, Floats]:
    """Cuts of the outcomes z of Gaussian noise, evenly in z, and the cells' masses under P and Q."""
    cells = 3
    while room(cells + 3) >= runs and cells < 400:  # the upper law has two values more
        cells += 1
    cuts = np.linspace(-6.0, mu + 8.0, cells - 1)
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    return cuts, _between(ends - mu), _between(ends)


def _between(z: Floats) -> Floats:
    """The mass of N(0, 1) in each cell, from the nearer tail."""
    low, high = z[:-1], z[1:]
    right = low > 0
    return np.where(right, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low))


@lru_cache(maxsize=32)
def normal_below(mu: float, runs: int) -> tuple[Law, Law]:
    """Gaussian noise of which only the cells are seen."""
    _, p, q = _cells(mu, runs)
    return listed(p / q, q, runs)


@lru_cache(maxsize=32)
def normal_above(mu: float, runs: int) -> tuple[Law, Law]:
    """Gaussian noise with the ratios of each cell at the cell's ends."""
    cuts, p, q = _cells(mu, runs)
    ends = np.concatenate([[0.0], np.exp(mu * cuts - mu * mu / 2)])
    masses, beyond = np.zeros(ends.size), 0.0
    for index in range(q.size):
        low = ends[index]
        if index + 1 < ends.size:
            high = ends[index + 1]
            share = min(max((p[index] - low * q[index]) / (high - low), 0.0), q[index])
            masses[index] += q[index] - share
            masses[index + 1] += share
        else:
            masses[index] += q[index]
            beyond += max(p[index] - low * q[index], 0.0)
    return listed(ends, masses, runs, beyond)


@dataclass(frozen=True)
class TwoPlaces(Law):
    """Gaussian noise, two runs: with k = 2 e^x, R_1 + R_2 > k is R_1 > k, or R_2 > k - R_1 (one integral over z_1)."""

    mu: float
    forward: bool = True

    @property
    def top(self) -> float:
        return math.inf

    def span(self) -> tuple[float, float]:
        mu = self.mu
        low = mu * (mu / 2 - 9.6)
        return (low - math.log(2) if self.forward else low), mu * (mu / 2 + 37.6)

    def tail(self, x: Floats) -> Floats:
        return self._sum(x, self.mu, True) if self.forward else self._sum(-x, 0.0, False)

    def qtail(self, x: Floats) -> Floats:
        return self._sum(x, 0.0, True) if self.forward else self._sum(-x, self.mu, False)

    def _sum(self, x: Floats, centre: float, above: bool) -> Floats:
        """The probability that R_1 + R_2 is above (or below) 2 e^x, z_1 with mean `centre` and z_2 with mean 0."""
        x = np.atleast_1d(np.asarray(x, dtype=np.float64))
        found = [self._some(part, centre, above) for part in np.array_split(x, max(x.size // 256, 1))]
        return np.concatenate(found)

    def _some(self, x: Floats, centre: float, above: bool) -> Floats:
        mu, log = self.mu, x + math.log(2)
        cut = log / mu + mu / 2  # R_1 = 2 e^x
        near = np.exp(np.linspace(-25.0, 0.0, 26))  # distances from the cut, then steps of 1
        far = np.arange(2.0, math.ceil(max(float(cut.max()) - centre, 0.0)) + 12.0)
        edges = np.concatenate([[0.0], near, far])
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        away = (middle[:, None] + half[:, None] * _NODES).ravel()
        weight = (half[:, None] * _WEIGHTS).ravel()
        z = cut[:, None] - away
        with np.errstate(divide="ignore"):
            rest = (log[:, None] + np.log(-np.expm1(-mu * away))) / mu + mu / 2  # R_2 = 2 e^x - R_1
        density = np.exp(-((z - centre) ** 2) / 2) / math.sqrt(2 * math.pi)
        inside = (density * special.ndtr(-rest if above else rest)) @ weight
        return inside + special.ndtr(centre - cut) if above else inside


def shuffled(mu: float, runs: int) -> tuple[Law, Law]:
    """Less than an adversary sees of a shuffled pass whose other records each move their batch by -mu: the largest z.

    The record's batch has mean 2 mu if it is in, mu if it is blank; the sums of the others are moved to 0.
    """
    cuts = np.linspace(-4.0, 2 * mu + 6.0, 400)
    below = [special.ndtr(cuts) ** (runs - 1) * special.ndtr(cuts - shift) for shift in (2 * mu, mu)]
    kept = (np.minimum(*below) > 1e-6) & (np.maximum(*below) < 1 - 1e-6)
    chosen = np.flatnonzero(kept)[:: max(int(kept.sum()) // 16, 1)]
    p, q = (np.diff(np.concatenate([[0.0], one[chosen], [1.0]])) for one in below)
    return listed(p / q, q, 1)
