"""The least-error Laplace noise of a box for delta > 0, alone or mixed with Gaussian coordinates.

At the tilt c of the inversion the log of delta changes with the ratio a = l/b of a Laplace coordinate as
g(a) = c (c + 1) tanh(s a)/(s + tanh(s a)/2), s = c + 1/2, and with the ratio of a Gaussian one as c (c + 1) mu. So the
least sum w_i E |n_i|^p has a^(p+1) g(a) = p K_L y/lambda and mu^(p+2) = p K_G y/(lambda c (c + 1)), where y = w l^p and
E |n|^p = K b^p. From pure DP's shape (c large) to the Gaussian's (c small): c is searched, lambda solves the claim, and
the exact loss certifies the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shapedp.noise.base import Law
from shapedp.noise.gaussian import normal_moment
from shapedp.noise.request import Request
from shapedp.numerics import SearchError, first_true
from shapedp.numerics.arrays import Floats
from shapedp.numerics.inversion import best_tilt, estimate
from shapedp.numerics.laplace_sums import LaplaceSum
from shapedp.numerics.roots import between, increasing_root
from shapedp.privacy.losses.sums import SumLoss
from shapedp.sensitivity import Box, Sensitivity

_GUIDE = 2**9
_FINE = 2**10
_FAINT = 20.0  # as far below the claim as an estimate says
_NEAR = 0.5  # of the log of delta: the tilt of one sum serves the next
_THIN = 16
_ALONE = 6
_TABLE = np.linspace(math.log(1e-14), math.log(1e4), 6000)
_FARTHEST = 800.0
_SECANTS = 8
_FAR = 2.0  # of log lambda: a secant that reaches further is not trusted
_STEEPEST = 1e6
_STEEP = 1e3  # epsilon times a tilt from which on ratios are as for pure differential privacy
Maker = Callable[[Floats, NDArray[np.bool_]], Law]  # a law from scales, and which coordinates are Gaussian
_CLOSE = 2e-6  # how close, in log delta, the certified claim comes to the one asked for


@dataclass(frozen=True, eq=False)
class Problem:
    """Importances y_i = w_i l_i^p, ascending and thinned to a few values with counts; `power` infinite: y = w l^2."""

    y: Floats
    counts: Floats
    power: float
    epsilon: float
    delta: float

    def ratios(self, y: Floats, c: float, log_lambda: float, gaussian: bool) -> Floats:
        """l/b or l/sigma of coordinates of importance y."""
        p = self.power
        if math.isinf(p):
            return np.sqrt(y * ((1.0 if gaussian else 2.0) * math.exp(-log_lambda)))
        log_y = np.log(y) + math.log(p) - log_lambda
        if gaussian:
            return np.exp((log_y + math.log(normal_moment(p)) - math.log(c * (c + 1))) / (p + 2))
        s = c + 0.5
        slope = np.tanh(s * np.exp(_TABLE))
        known = (p + 1) * _TABLE + np.log(slope * c * (c + 1) / (s + slope / 2))
        return np.exp(np.interp(log_y + math.lgamma(p + 1), known, _TABLE))

    def loss(self, c: float, log_lambda: float, split: int) -> LaplaceSum:
        """The loss of the thinned problem, values below `split` Gaussian, the others Laplace."""
        mu = self.ratios(self.y[:split], c, log_lambda, gaussian=True)
        a = self.ratios(self.y[split:], c, log_lambda, gaussian=False)
        return LaplaceSum.grouped(a, self.counts[split:], math.sqrt(float(self.counts[:split] @ (mu * mu))))

    def error(self, c: float, log_lambda: float, split: int) -> float:
        """The error of the thinned problem."""
        p = self.power
        if math.isinf(p):
            return math.exp(log_lambda)
        mu = self.ratios(self.y[:split], c, log_lambda, gaussian=True)
        a = self.ratios(self.y[split:], c, log_lambda, gaussian=False)
        return float(
            normal_moment(p) * (self.counts[:split] @ (self.y[:split] / mu**p))
            + math.gamma(p + 1) * (self.counts[split:] @ (self.y[split:] / a**p))
        )

    def excess(self, total: LaplaceSum, tilt: float | None = None) -> float:
        """log(delta/target), estimated."""
        if total.deviation == 0 and float(total.counts @ total.values) <= self.epsilon:
            return -math.inf
        return estimate(total, self.epsilon, tilt=tilt, nodes=_GUIDE, refined=False) - math.log(self.delta)

    def slope(self, total: LaplaceSum) -> float:
        """d log delta/d log t when every ratio is multiplied by t, estimated."""
        t = 1 + 2.0**-12
        more = LaplaceSum.grouped(total.values * t, total.counts, total.deviation * t)
        low, high = self.excess(total), self.excess(more)
        slope = (high - low) / math.log(t)
        return slope if 0.1 < slope < 1e7 else 20.0

    def solve(
        self, c: float, split: int, guess: float, slope: float | None = None, *, close: float = 1e-5
    ) -> tuple[float, float | None]:
        """The log lambda at which the claim is just met, and the slope of log delta there, if it was met.

        Secants where the slope is known from before, a bracket where it is not or where they do not come near.
        """

        tilt, near = 1.0, False  # that of the last sum, and whether it serves the next

        def excess(value: float) -> float:
            nonlocal tilt, near
            total = self.loss(c, value, split)
            if not near and (total.deviation or float(total.counts @ total.values) > self.epsilon):
                tilt = best_tilt(total, self.epsilon, tilt)
            found = self.excess(total, tilt)
            near = abs(found) < _NEAR
            return min(max(found, -60.0), 60.0)

        at = excess(guess)
        if slope is not None:
            for _ in range(_SECANTS):
                step = -at / slope
                if not abs(step) < _FAR:
                    break
                if abs(step) <= close / 4:
                    return guess + step, slope
                before, guess = at, guess + step
                at = excess(guess)
                slope = (at - before) / step
                if not -_STEEPEST < slope < -1 / _STEEPEST:
                    break
        low = high = guess
        at_low = at_high = at
        step = 0.1
        while at_low < 0:
            _within(low)
            high, at_high, low = low, at_low, low - step
            at_low, step = excess(low), 2 * step
        step = 0.1
        while at_high > 0:
            _within(high)
            low, at_low, high = high, at_high, high + step
            at_high, step = excess(high), 2 * step
        slope = (at_high - at_low) / (high - low) if low < high else None
        usable = slope is not None and -_STEEPEST < slope < -1 / _STEEPEST and max(at_low, -at_high) < 60
        return between(excess, (low, at_low), (high, at_high), close), slope if usable else None

    def start(self, c: float, split: int) -> float:
        """A log lambda at which the claim is met by far: ratios that add up to epsilon/2, mu below epsilon/8."""

        def tame(value: float) -> bool:
            total = self.loss(c, value, split)
            return float(total.counts @ total.values) <= self.epsilon / 2 and total.deviation <= self.epsilon / 8

        return first_true(tame, -400.0, 400.0, relative=1e-3)

    def best(self, split: int, *, search: bool = True) -> tuple[float, float, float]:
        """(error, c, log lambda): c at the tilt of its own solution first, then searched around it."""
        c = 2 * math.log(1 / self.delta) / self.epsilon
        log_lambda, slope = self.start(c, split), None
        for _ in range(4 if search else 2):
            log_lambda, slope = self.solve(c, split, log_lambda, slope, close=1e-3)
            new = best_tilt(self.loss(c, log_lambda, split), self.epsilon, c)
            done = abs(math.log(new / c)) < 0.02
            if self._pure(c, slope):
                break
            c = new
            if done or math.isinf(self.power):
                break
        log_lambda, slope = self.solve(c, split, log_lambda, slope, close=1e-5 if search else 1e-3)
        found = (self.error(c, log_lambda, split), c, log_lambda)
        if math.isinf(self.power) or self.y.size == 1 or not search or self._pure(c, slope):
            return found
        step = 0.8
        while step > 0.15:
            for sign in (-1.0, 1.0):
                tried = found[1] * math.exp(sign * step)
                value, slope = self.solve(tried, split, found[2], slope)
                found = min(found, (self.error(tried, value, split), tried, value))
            step /= 2
        return found

    def _pure(self, c: float, slope: float | None) -> bool:
        """Whether the claim is met where the ratios add up to epsilon, by noise shaped for that: no tilt betters it."""
        return slope is None and c * self.epsilon > _STEEP


def problem_of(sensitivity: Box, request: Request) -> tuple[Problem, Floats]:
    """The thinned problem, and the importance of every coordinate (bounds divided by their largest)."""
    power = request.measure.power
    weights = request.plain_weights()
    relative = sensitivity.profile / float(sensitivity.profile.max())
    y = weights / float(weights.max()) * relative ** (2.0 if math.isinf(power) else power)
    ordered = np.sort(y[y > 0])
    values, counts = np.unique(ordered, return_counts=True)
    if values.size > _THIN:
        edges = np.concatenate([[0], _edges(ordered.size)])
        counts = np.diff(edges)
        values, back = np.unique(np.exp(np.add.reduceat(np.log(ordered), edges[:-1]) / counts), return_inverse=True)
        counts = np.bincount(back, weights=counts)
    return Problem(values, counts.astype(np.float64), power, request.epsilon, request.delta), y


def _edges(size: int) -> NDArray[np.int64]:
    """Ends of groups of an ascending list: the largest entries one by one, then groups that double in pairs."""
    ends, width = [size], 1
    while ends[-1] > 0:
        ends += [max(ends[-1] - width, 0), max(ends[-1] - 2 * width, 0)]
        width = width * 2 if len(ends) > _ALONE else width
    return np.unique(np.array(ends, dtype=np.int64))[1:]


def least_error(sensitivity: Box, request: Request, pure: Law, make: Maker, *, mixed: bool = False) -> Law | None:
    """The least-error law found that is certified on the exact loss; None if nothing beats the law `pure`.

    `mixed` lets coordinates below a threshold of importance carry Gaussian noise: all splits of a doubling grid are
    tried, all-Gaussian and all-Laplace included.
    """
    problem, y = problem_of(sensitivity, request)
    size = problem.y.size
    splits = sorted({0, size, *(size - 2**k for k in range(12) if 2**k < size)}) if mixed else [0]
    rough = sorted((found[0], split) for split in splits if (found := _tried(problem, split, search=False)))
    outcomes = [(*found, split) for _, split in rough[:2] if (found := _tried(problem, split))]
    if mixed and outcomes and min(outcomes)[3] in (0, size):
        return None  # one kind of noise for all: what the other families calibrate
    for _, c, log_lambda, split in sorted(outcomes)[:3]:
        slope = problem.slope(problem.loss(c, log_lambda, split))
        law = certified(sensitivity, request, _scaled(problem, y, sensitivity, make, (c, log_lambda, split)), slope)
        if law is not None:
            own, other = (one.expected_error(request.error, request.weights) for one in (law, pure))
            return law if own < other else None
    return None


def _within(log_lambda: float) -> None:
    """Raises SearchError where the search for a multiplier leaves what float64 can tell apart."""
    if not abs(log_lambda) < _FARTHEST:
        raise SearchError(f"no multiplier up to e^{_FARTHEST:g} meets the claim")


def _tried(problem: Problem, split: int, *, search: bool = True) -> tuple[float, float, float] | None:
    """`Problem.best`, or None where the claim is so extreme that the guide finds nothing; the last answers are kept."""
    parts = (problem.y.tobytes(), problem.counts.tobytes(), problem.power, problem.epsilon, problem.delta)
    return _solved(*parts, split, search)


@lru_cache(maxsize=64)
def _solved(
    y: bytes, counts: bytes, power: float, epsilon: float, delta: float, split: int, search: bool
) -> tuple[float, float, float] | None:
    problem = Problem(np.frombuffer(y), np.frombuffer(counts), power, epsilon, delta)
    with np.errstate(all="ignore"):
        try:
            found = problem.best(split, search=search)
        except (ArithmeticError, ValueError):
            return None
    return found if all(map(math.isfinite, found)) else None


def _scaled(
    problem: Problem, y: Floats, sensitivity: Box, make: Maker, found: tuple[float, float, int]
) -> Callable[[float], Law]:
    """The law whose ratios are the solution's times a factor."""
    c, log_lambda, split = found
    below = 0.0 if split == 0 else math.inf if split == problem.y.size else float(problem.y[split])
    moving = sensitivity.profile > 0
    gaussian = moving & (y < below * (1 - 1e-12))
    ratios = np.ones(sensitivity.dim)
    for kind in (True, False):
        chosen = moving & (gaussian == kind)
        if chosen.any():
            ratios[chosen] = problem.ratios(y[chosen], c, log_lambda, kind)
    scales = sensitivity.profile / ratios
    return lambda factor: make(scales / factor, gaussian)


def guided(
    sensitivity: Sensitivity, request: Request, make: Callable[[float], Law], slope: float
) -> tuple[float, float] | None:
    """The factor at which estimates of delta come to the claim, just below it, and d log delta/d log factor there.

    None where the loss is no sum or where it cannot be estimated. A start of a search, never an answer.
    """
    goal = math.log(request.delta) - 0.75 * _CLOSE  # the exact upper end is a little more than an estimate
    seen: list[tuple[float, float]] = []

    def gap(x: float) -> float:
        loss = make(math.exp(x)).loss(sensitivity)
        if not (isinstance(loss, SumLoss) and loss.slow and getattr(loss, "worst", True)):
            raise SearchError("the loss is no sum")
        value = -_FAINT if loss.pure <= request.epsilon else estimate(loss.total, request.epsilon, nodes=_FINE) - goal
        if math.isnan(value):
            raise SearchError("the sum's delta cannot be estimated")
        seen.append((x, min(max(value, -_FAINT), _FAINT)))
        return seen[-1][1]

    try:
        with np.errstate(all="ignore"):
            found = increasing_root(gap, 0.0, _CLOSE / 2**10, slope)
    except (ArithmeticError, ValueError):
        return None
    near = [(x, value) for x, value in seen if abs(value) < 1]
    if len(near) > 1 and near[-1][0] != near[-2][0]:
        measured = (near[-1][1] - near[-2][1]) / (near[-1][0] - near[-2][0])
        slope = measured if 1e-3 < measured < 1e6 else slope
    return math.exp(found), slope


def certified(
    sensitivity: Sensitivity,
    request: Request,
    make: Callable[[float], Law],
    slope: float,
    start: tuple[float, float] | None = None,
) -> Law | None:
    """The law of the largest factor found near 1 whose exact upper delta meets the claim: secant in log delta.

    `start`: what `guided` found, if it was asked before.
    """
    target = math.log(request.delta)
    previous = None
    factor, slope = start or guided(sensitivity, request, make, slope) or (1.0, slope)
    best: tuple[float, Law] | None = None
    margin = _CLOSE / 2
    for _ in range(12):
        law = make(factor)
        upper = law.loss(sensitivity).delta(request.epsilon).upper
        value = math.log(upper) if upper > 0 else target - 1.0
        if value <= target and (best is None or factor > best[0]):
            best = (factor, law)
            if target - value <= _CLOSE:
                break
        if previous is not None and factor != previous[0]:
            measured = (value - previous[1]) / math.log(factor / previous[0])
            slope = measured if 1e-3 < measured < 1e6 else slope
        previous = (factor, value)
        step = (target - margin - value) / slope
        factor *= math.exp(min(max(step, -0.5), 0.5))
        if best is not None and factor <= best[0]:
            margin *= 4
    return None if best is None else best[1]
