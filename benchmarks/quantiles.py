"""Rank errors of m quantiles of two columns of Adult, beside the published recursions.

Peers, written anew from their papers: the recursion of Kaplan, Schnapp and Stemmer 2022 (pure, and in zCDP with the
better constant), and slices around quantiles that continual counting has shifted (Imola et al. 2025, arXiv 2505.13662).
As in the latter, every record is taken twelve times. The error of a value is the distance of the rank asked for from
the ranks of that value. Neighbours: one record more or fewer.

Ours are held against the best peer at (1, 1e-6), and ours with delta = 0 against the best of those peers that are pure.
Which peer is best is only seen with noise: a bar leaves room for four standard errors of the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq

from _harness import Result
from shapedp.mechanisms import quantiles
from shapedp.papers.datasets import load_adult

EPSILON, DELTA = 1.0, 1e-6
COPIES, FINE = 12, 1000
ROOM = 4  # standard errors
PURE = ("ours, pure", "Kaplan et al., pure", "Imola et al.")
COLUMNS = {"age": ("age", 17, 90), "hours": ("hours-per-week", 1, 99)}
Values = np.ndarray


def exponential(
    inside: Values, low: float, high: float, q: float, epsilon: float, sens: float, rng: Generator
) -> float:
    """A point near the q-quantile by the exponential mechanism over the gaps between sorted records."""
    ends = np.concatenate([[low], np.clip(inside, low, high), [high]])
    with np.errstate(divide="ignore"):
        score = np.log(np.diff(ends)) - epsilon / (2 * sens) * np.abs(np.arange(inside.size + 1) - q * inside.size)
    place = int(np.argmax(score + rng.gumbel(size=score.size)))
    return float(rng.uniform(ends[place], ends[place + 1]))


def recursion(inside: Values, q: Values, bounds: tuple[float, float], epsilon: float, rng: Generator) -> list[float]:
    """Kaplan, Schnapp and Stemmer 2022, Algorithm 1; `epsilon` is that of a level."""
    if not q.size:
        return []
    middle = q.size // 2
    target = float(q[middle])
    z = exponential(inside, *bounds, target, epsilon, max(target, 1 - target), rng)
    split = int(np.searchsorted(inside, z))
    below = recursion(inside[:split], q[:middle] / target, (bounds[0], z), epsilon, rng)
    above = recursion(inside[split:], (q[middle + 1 :] - target) / (1 - target), (z, bounds[1]), epsilon, rng)
    return [*below, z, *above]


def zcdp(epsilon: float, delta: float) -> float:
    """The rho that Bun and Steinke's conversion turns into (epsilon, delta)."""
    return float(
        brentq(lambda r: r + math.sqrt(4 * r * math.log(max(math.sqrt(math.pi * r), delta) / delta)) - epsilon, 1e-9, 9)
    )


def tree_noise(m: int, epsilon: float, rng: Generator) -> Values:
    """Noise of binary-tree prefix sums over m steps, discrete Laplace in every node."""
    height = math.ceil(math.log2(m))
    fall = math.exp(-2 * epsilon / (height + 1))
    noise = [rng.geometric(1 - fall, 2**k) - rng.geometric(1 - fall, 2**k) for k in range(height + 1)]
    found = np.zeros(m)
    for t in range(1, m + 1):
        start = 0
        for k in range(height + 1):
            size = 2 ** (height - k)
            if t - start >= size:
                found[t - 1] += noise[k][start // size]
                start += size
    return found


def slices(inside: Values, q: Values, bounds: tuple[float, float], gap: float, rng: Generator) -> list[float]:
    """Imola et al. 2025: half of epsilon shifts the ranks, half goes to draws within disjoint slices."""
    counting, drawing = EPSILON / 2, EPSILON / 4
    reach = math.ceil(2 / drawing * math.log(2 * q.size * (bounds[1] - bounds[0]) / (gap * 0.05)))
    ranks = np.floor(q * inside.size).astype(int) + tree_noise(q.size, counting, rng).astype(int)

    def descend(first: int, last: int, low: float, high: float) -> list[float]:
        if first == last:
            return []
        middle = (first + last) // 2
        part = inside[max(ranks[middle] - reach, 0) : max(ranks[middle] + reach + 1, 0)]
        z = exponential(part, low, high, 0.5, drawing, 1.0, rng)
        return [*descend(first, middle, low, z), z, *descend(middle + 1, last, z, high)]

    return descend(0, q.size, *bounds)


def missed(data: Values, found: Values, q: Values) -> Values:
    """The distance of the rank asked for from the ranks of each value, ties included."""
    low, high = (np.searchsorted(data, found, side=side) for side in ("left", "right"))
    return np.maximum(0, np.maximum(low - q * data.size, q * data.size - high))


def study(data: Values, low: int, high: int, m: int, rounds: int, rng: Generator) -> dict[str, Values]:
    """Mean and largest rank error of each method for sorted whole numbers: two columns, a row for each round."""
    q, grid = (np.arange(m) + 1) / (m + 1), np.arange(low, high + 1)
    counts, apart = np.bincount(data - low, minlength=grid.size), 1 / (FINE * data.size)
    claim = {"epsilon": EPSILON, "adjacency": "add-remove", "rng": rng}
    levels, rho = math.log2(m) + 1, zcdp(EPSILON, DELTA)
    ends = (float(low), high + 1.0)

    def spread() -> Values:  # the peers need records that differ
        return np.sort(data + rng.uniform(0, 1 - 1e-9, data.size))

    ways: dict[str, Callable[[], Values]] = {
        "ours": lambda: quantiles(counts, grid, q, delta=DELTA, **claim).value,
        "ours, pure": lambda: quantiles(counts, grid, q, delta=0.0, **claim).value,
        "Kaplan et al., pure": lambda: np.floor(recursion(spread(), q, ends, EPSILON / levels, rng)),
        "Kaplan et al., zCDP": lambda: np.floor(recursion(spread(), q, ends, math.sqrt(8 * rho / levels), rng)),
        "Imola et al.": lambda: np.floor(slices(spread(), q, ends, apart, rng)),
    }
    errors = {name: [missed(data, way(), q) for _ in range(rounds)] for name, way in ways.items()}
    return {name: np.array([(one.mean(), one.max()) for one in found]) for name, found in errors.items()}


def compared(result: Result, what: str, found: dict[str, Values], own: str, others: list[str]) -> None:
    """Our mean error less that of the best peer, and the same of the largest errors."""
    best = min(others, key=lambda name: found[name][:, 0].mean())
    pair = found[own], found[best]
    room = ROOM * math.hypot(*(one[:, 0].std(ddof=1) / math.sqrt(len(one)) for one in pair))
    apart = [float(one.mean()) for one in (pair[0] - pair[1]).T]
    result.figure(f"{what}: {own} less the best peer ({best}), mean", apart[0], at_most=max(room, 1e-9))
    result.figure(f"{what}: {own} less the best peer ({best}), largest", apart[1])


def run(quick: bool) -> Result:
    """Every m and column, as it is and with places of a thousandth within each whole number."""
    rng, rounds = np.random.default_rng(21), 4 if quick else 8
    result = Result("quantiles", what=f"rank errors of m quantiles at ({EPSILON:g}, {DELTA:g}), Adult times {COPIES}")
    adult = load_adult()
    for name, (feature, low, high) in COLUMNS.items():
        column = np.repeat(np.rint(adult.x[:, adult.feature_names.index(feature)]).astype(int), COPIES)
        fine = column * FINE + rng.integers(0, FINE, column.size)
        for m in (10, 50) if quick else (10, 50, 200):
            for kind, data, scale in (("whole numbers", column, 1), ("thousandths", fine, FINE)):
                times = rounds if scale == 1 else (12 if m == 10 else 3) * rounds  # whole numbers: hardly an error
                found = study(np.sort(data), low * scale, (high + 1) * scale - 1, m, times, rng)
                what = f"{name}, {kind}, m = {m}"
                for way, errors in found.items():
                    result.figure(f"{what}: {way}, mean", float(errors[:, 0].mean()))
                    result.figure(f"{what}: {way}, largest", float(errors[:, 1].mean()))
                compared(result, what, found, "ours", [way for way in found if "ours" not in way])
                compared(result, what, found, "ours, pure", [way for way in PURE if "ours" not in way])
    result.notes.append("peers written anew from their papers; error 0: the rank asked for is one of the value's own")
    return result
