"""Private proximal coordinate descent: clipped partial derivatives, one noisy sum per coordinate and pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from shapedp.accounting import Step, compose
from shapedp.boundary.progress import bar
from shapedp.learn.losses import LinearLoss
from shapedp.learn.moments import in_units
from shapedp.learn.solvers.base import Draws, Solution, Solver
from shapedp.learn.solvers.erm.problem import Problem, Risk, two_classes
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.noise.request import optimal_scales
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, one_of, positive, vector
from shapedp.numerics.outward import ABOVE_512, BELOW_8192
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import Adjacency, Box

Released = Callable[[Additive, Floats], Floats]
NOISES = ("objective", "parameter", "equal")
UNITS = (1e-60, 1e60)
MOST_RECORDS = 2**23
_SPENT = BELOW_8192  # of mu, so that the rounding of scales and sums stays within the claim


@dataclass(frozen=True)
class Response:
    """A loss of the prediction x.w and the target, by its derivative in the prediction and a bound on the second."""

    curvature_bound: float
    derivative: Callable[[Floats, Floats], Floats]


SQUARED = Response(1.0, lambda prediction, target: prediction - target)  # of (prediction - target)^2/2


def of_margin(loss: LinearLoss) -> Response:
    """A loss of the margin target * prediction, targets +1 and -1 (0: a record without influence)."""
    return Response(loss.curvature_bound, loss.slope_at)


@dataclass(frozen=True)
class Penalty:
    """l1 |w|_1 + (l2/2) |w|_2^2, the intercept left out."""

    l1: float = 0.0
    l2: float = 0.0

    def proximal(self, value: float, step: float) -> float:
        """The minimiser of (w - value)^2/2 + step (l1 |w| + l2 w^2/2)."""
        shrunk = math.copysign(max(abs(value) - step * self.l1, 0.0), value)
        return shrunk / (1 + step * self.l2)


@dataclass(frozen=True, eq=False)
class Columns:
    """Features by column, |x_ni| <= bounds_i, and a last column of ones where there is an intercept.

    Guarantee: what a record adds to a derivative depends on that record and the weights only.
    """

    x: Any  # an array in column order, or a CSC matrix
    y: Floats
    bounds: Floats
    intercept: bool

    @classmethod
    def of(cls, x: Any, y: Floats, bounds: Floats, *, intercept: bool) -> Columns:
        """Finite rows, dense or CSR, pulled within the bounds."""
        if x.shape[0] > MOST_RECORDS:
            raise ValueError(f"coordinate descent takes at most 2^23 records, whose sums are exact, got {x.shape[0]}")
        inside = Box(bounds).clip(x, adjacency="zero-out")[0]
        return cls(inside.tocsc() if hasattr(inside, "tocsc") else np.asfortranarray(inside), y, bounds, intercept)

    @property
    def records(self) -> int:
        return int(self.x.shape[0])

    @property
    def count(self) -> int:
        return int(self.x.shape[1]) + self.intercept

    def squares(self) -> Floats:
        """The sum of the squares of each feature, exactly as a set of clipped rows adds up."""
        bounds = np.square(self.bounds)
        squared = self.x.power(2).tocsr() if hasattr(self.x, "tocsr") else np.square(self.x)
        return np.asarray(Box(bounds).clip(squared, adjacency="zero-out")[0].sum(axis=0)).reshape(-1)

    def column(self, i: int) -> tuple[Any, Any]:
        """The entries of column i that may differ from 0, and their rows."""
        if i == self.x.shape[1]:
            return 1.0, slice(None)
        if not hasattr(self.x, "indptr"):
            return self.x[:, i], slice(None)
        part = slice(self.x.indptr[i], self.x.indptr[i + 1])
        return self.x.data[part], self.x.indices[part]


@dataclass(frozen=True)
class Descent:
    """Coordinate descent of `passes` passes under (epsilon, delta), fixed before any data are read.

    Coordinate i has the smoothness M_i = curvature * mean of x_i^2, the step `step`/M_i and the clip
    C_i = `clip` * `unit` * sqrt(mean of x_i^2), `unit` the size of a derivative in the prediction. `noise` is what
    the noise of a pass minimises: the expected rise of the objective ("objective", weights M_i step_i^2), the
    expected squared error of the weights ("parameter", weights step_i^2: improved DP-CD), or nothing, every
    coordinate spending the same ("equal": DP-CD). `moments` are the means of x_i^2 where they are public;
    otherwise they are released first, for `share` of mu^2.

    Guarantee: every pass spends the same mu, whatever was released before; mu^2 adds up to that of the claim.
    Reference: Mangold, Bellet, Salmon and Tommasi 2022, Algorithm 1; i.n.i.d. noise paper, Algorithm 2.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    passes: int = 20
    step: float = 1.0
    clip: float = 1.0
    unit: float = 1.0
    noise: str = "objective"
    share: float = 0.1
    moments: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        count("passes", self.passes)
        for name in ("step", "clip", "unit"):
            in_units(name, getattr(self, name), UNITS)
        one_of("noise", self.noise, NOISES)
        if self.delta == 0:
            raise ValueError("delta must be > 0: coordinate descent adds Gaussian noise, which cannot meet delta = 0")
        if self.moments is not None:
            vector("moments", np.array(self.moments), least=0.0, strict=True)
        elif not 0 < positive("share", self.share) < 1:
            raise ValueError(f"share must lie in (0, 1), got {self.share!r}")

    @property
    def estimated(self) -> float:
        """The mu spent on the means of squares."""
        return 0.0 if self.moments is not None else math.sqrt(self.share) * _total(self.epsilon, self.delta)

    @property
    def per_pass(self) -> float:
        """The mu spent on one pass."""
        left = 1.0 if self.moments is not None else 1 - self.share
        return math.sqrt(left / self.passes) * _total(self.epsilon, self.delta)

    def estimate(self, bounds: Floats) -> Additive:
        """The release of sums of squares: x_i^2 lies in [0, bounds_i^2], so that is all anybody can change."""
        squares = np.square(bounds)
        scales = optimal_scales(squares, 1 / np.square(squares), 2, 2, self.estimated) * ABOVE_512
        return Additive(Gaussian(scales), Box(squares, adjacency=self.adjacency), self.epsilon, self.delta)

    def means(self, columns: Columns, release: Released) -> tuple[Floats, list[Step]]:
        """The mean square of each coordinate, released or public, and the step that released it.

        A released mean is at least its own standard error: a smaller one would only make the step longer.
        """
        if self.moments is not None:
            if len(self.moments) != len(columns.bounds):
                raise ValueError(f"moments must have one entry per feature ({len(columns.bounds)})")
            found, steps = np.array(self.moments, dtype=np.float64), []
        else:
            mechanism = self.estimate(columns.bounds)
            value = release(mechanism, columns.squares())
            found = np.maximum(value, mechanism.law.scales) / columns.records
            steps = [Step(mechanism)]
        return (np.append(found, 1.0) if columns.intercept else found), steps

    def schedule(self, means: Floats, records: int, curvature: float, *, intercept: bool) -> Schedule:
        """Steps, clips and the mechanism of each coordinate."""
        smoothness = curvature * means
        clips = self.clip * self.unit * np.sqrt(means)
        reach = clips * (2.0 if self.adjacency == "replace" else 1.0)
        if intercept:
            reach[-1] = 2 * clips[-1]  # the derivative of a record of zeros is not 0 there
        steps = self.step / smoothness
        weights = {
            "objective": smoothness * np.square(steps),
            "parameter": np.square(steps),
            "equal": 1 / np.square(reach),
        }
        scales = optimal_scales(reach, weights[self.noise], 2, 2, self.per_pass) * ABOVE_512
        return Schedule(self, steps, clips, reach, scales, records)


@dataclass(frozen=True, eq=False)
class Schedule:
    """The steps, clips, sensitivities and noise scales of the coordinates."""

    descent: Descent
    steps: Floats
    clips: Floats
    reach: Floats
    scales: Floats
    records: int

    @cached_property
    def mechanisms(self) -> tuple[Additive, ...]:
        """One mechanism per coordinate.

        Guarantee: together they spend at most the mu of a pass, which was fixed before the first release.
        """
        one = self.descent
        found = tuple(
            Additive(Gaussian(scale, 1), Box([reach], adjacency=one.adjacency), one.epsilon, one.delta)
            for scale, reach in zip(self.scales, self.reach, strict=True)
        )
        spent = compose(list(found))
        if not isinstance(spent, GaussianLoss) or spent.mu > one.per_pass / _SPENT:
            raise RuntimeError("a pass would spend more than its share: please report this")
        return found

    def plan(self) -> list[Step]:
        """Every coordinate once a pass."""
        return [Step(mechanism, count=self.descent.passes) for mechanism in self.mechanisms]

    def run(
        self, columns: Columns, response: Response, penalty: Penalty, release: Released, advance: Any = lambda n: None
    ) -> Floats:
        """The weights after each pass, one row per pass; everything that leaves went through `release`."""
        weights = np.zeros(columns.count)
        prediction = np.zeros(columns.records)
        path = np.empty((self.descent.passes, columns.count))
        boxes = [Box([clip]) for clip in self.clips]
        for number in range(self.descent.passes):
            for i, mechanism in enumerate(self.mechanisms):
                entries, rows = columns.column(i)
                with np.errstate(all="ignore"):
                    slopes = entries * response.derivative(prediction[rows], columns.y[rows])
                    np.nan_to_num(slopes, copy=False, nan=0.0)
                clipped = boxes[i].clip(slopes[:, None], adjacency="zero-out")[0]
                mean = float(release(mechanism, clipped.sum(axis=0))[0]) / self.records
                moved = float(weights[i] - self.steps[i] * mean)
                if not (columns.intercept and i == columns.count - 1):
                    moved = penalty.proximal(moved, float(self.steps[i]))
                with np.errstate(all="ignore"):
                    prediction[rows] += (moved - weights[i]) * entries
                weights[i] = moved
            path[number] = weights
            advance(1)
        return path

    def settled(self, path: Floats) -> bool:
        """Whether the last pass moved no weight by more than its noise explains (six standard deviations)."""
        before = path[-2] if len(path) > 1 else np.zeros(path.shape[1])
        return bool((np.abs(path[-1] - before) <= 6 * self.steps * self.scales / self.records).all())


@dataclass(frozen=True, eq=False)
class Penalized:
    """A descent with its records: what `CD` is given."""

    descent: Descent
    columns: Columns
    response: Response
    penalty: Penalty


@dataclass(frozen=True, eq=False)
class Descended(Solution):
    """Also the weights after each pass, the mean squares, and whether the last pass moved no weight by much."""

    path: Floats = field(kw_only=True)
    means: Floats = field(kw_only=True)
    settled: bool = field(kw_only=True)


def solve(data: Penalized, mechanisms: tuple[Any, ...], draws: Draws) -> Descended:
    """Release the mean squares, then run the passes they lead to."""
    descent, columns = data.descent, data.columns
    means, first = descent.means(columns, draws.release)
    curvature = data.response.curvature_bound
    schedule = descent.schedule(means, columns.records, curvature, intercept=columns.intercept)
    with bar(descent.passes, " passes", draws.progress) as advance:
        path = schedule.run(columns, data.response, data.penalty, draws.release, advance)
    released = (*first, *schedule.plan())
    return Descended(path[-1], released=released, path=path, means=means, settled=schedule.settled(path))


CD: Solver[Descent, Penalized] = Solver(lambda descent: (), solve)


def classify(risk: Risk, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Weights for a loss of margins, on the records [x, c] with every entry within its bound; as a column."""
    problem, bounds = risk.problem, risk.problem.bounds
    descent = Descent(problem.epsilon, problem.delta, problem.adjacency, passes=problem.passes)
    each = np.full(problem.order, bounds.feature)
    if bounds.constant:
        each[-1] = bounds.constant
    columns = Columns.of(risk.data.x, risk.data.signs[:, 0], each, intercept=False)
    data = Penalized(descent, columns, of_margin(problem.loss), Penalty(l2=problem.regularization))
    found = solve(data, (), draws)
    return replace(found, weights=found.weights[:, None])


def _later(problem: Problem) -> tuple[Any, ...]:
    """None beforehand: the mechanisms of later passes depend on what the first release said."""
    two_classes(problem, "cd")
    return ()


CLASSIFIER = Solver(_later, classify, completed=lambda problem: replace(problem, regularization=0.0))


@cache
def _total(epsilon: float, delta: float) -> float:
    """The mu of the claim, less what rounding may take."""
    return GaussianLoss.calibrate(epsilon, delta).mu * _SPENT
