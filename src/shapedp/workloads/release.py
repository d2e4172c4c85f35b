"""What a workload's mechanism releases: answers, their errors, and anything linear in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shapedp.boundary.values import boolean
from shapedp.mechanisms.base import Rng
from shapedp.noise.gaussian import normal_half_width
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count
from shapedp.privacy import Certificate
from shapedp.workloads.base import ReleasedWorkload
from shapedp.workloads.blocks import Family, contrast_lengths, contrasted, restored
from shapedp.workloads.variances import family_of, special_rows
from shapedp.workloads.workload import Term

if TYPE_CHECKING:
    from shapedp.workloads.mechanism import WorkloadMechanism


@dataclass(frozen=True)
class Estimate:
    """A released number and its standard error."""

    value: float
    standard_error: float

    def interval(self, confidence: float) -> tuple[float, float]:
        """Ends that hold the truth with this probability."""
        half = normal_half_width(confidence) * self.standard_error
        return self.value - half, self.value + half


@dataclass(frozen=True, eq=False)
class Adjusted:
    """Answers after post-processing, labelled: `error` is their simulated root mean square error, `before` without."""

    value: Floats
    error: Floats
    before: Floats
    label: str


def _along(table: Floats, matrix: Floats, axis: int) -> Floats:
    """A matrix times one axis."""
    return np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)


@dataclass(frozen=True, eq=False)
class WorkloadRelease(ReleasedWorkload):
    """The answers of a workload with noise, with the certificate they were released under.

    `release["age x sex"]` is a table of answers, `standard_error` its errors, `interval` its intervals, `of` anything
    linear in the answers. All are computed from the same noisy numbers: nothing more is spent.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> m = sdp.Workload({"sex": ["F", "M"]}).marginals(1).calibrate(epsilon=1.0, delta=1e-6)
        >>> released = m.release(pd.DataFrame({"sex": ["F", "M", "F"]}))
        >>> released["sex"].shape, released.certificate.verdict
        ((2,), 'certified')
    """

    mechanism: WorkloadMechanism
    coefficients: list[list[Floats]]
    certificate: Certificate
    unsafe: bool = False
    spends: int = 1  # of the mechanism's budget, for a ledger

    def __getitem__(self, name: str) -> Floats:
        """The answers of a group of queries, in its shape."""
        return self._answers(self.mechanism.term(name))

    def interval(self, name: str, confidence: float, *, joint: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper ends; with `joint` all answers of the group lie inside together with that probability.

        Guarantee: Gaussian noise of any covariance is within all of k symmetric intervals with at least the product
        of their probabilities (Sidak 1967), so joint intervals have the level confidence^(1/k) each.
        """
        joint, answers = boolean("joint", joint), self[name]
        level = confidence ** (1 / answers.size) if joint else confidence
        half = normal_half_width(level) * self.standard_error(name)
        return answers - half, answers + half

    def of(self, query: Mapping[str, Any]) -> Estimate:
        """A linear function of the answers: weights by group, each in the shape of the group's answers.

        The error is exact: answers that share noise are counted together.
        """
        value = 0.0
        pulled: dict[tuple[int, int], Any] = {}
        for term, weights in self._weights(query):
            value += float((weights * self._answers(term)).sum())
            for place, part in self._pulled(term, weights).items():
                pulled[place] = pulled.get(place, 0.0) + part
        return Estimate(value, math.sqrt(sum(self._variance(*place, part) for place, part in pulled.items())))

    def means(self, measure: str, *by: str, confidence: float | None = None) -> tuple[Floats, ...]:
        """The mean of a measure by these attributes; with `confidence` also lower and upper ends.

        Guarantee: the ends are Fieller's: m is inside where |sum - m count| is within the noise of sum - m count, so
        the truth is inside with exactly that probability. Where the noisy count is near zero no bounded interval has
        it; the ends are then those of the measure, which are never exceeded.
        """
        schema = self.mechanism.workload.schema
        asked = [self.mechanism.workload.table(k, by) for k in (0, 1 + schema.measure(measure))]
        bounds = schema.measures[schema.measure(measure)]
        counts, sums = (self._answers(term) for term in asked)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.clip(np.where(counts > 0, sums / counts, (bounds.low + bounds.high) / 2), bounds.low, bounds.high)
        if confidence is None:
            return (mean,)
        return mean, *self.quotient(asked[0], asked[1], (bounds.low, bounds.high), confidence)

    def quotient(self, below: Term, above: Term, ends: tuple[float, float], confidence: float) -> tuple[Floats, Floats]:
        """Fieller's ends of sum/count, which lies within `ends`, for two groups by the same attributes."""
        half = normal_half_width(confidence)
        pairs = ((below, None), (below, above), (above, None))
        a, b, c = (half**2 * self.mechanism.covariances(*pair) for pair in pairs)
        lower, upper = fieller(self._answers(below), self._answers(above), a, b, c)
        return np.clip(lower, *ends), np.clip(upper, *ends)

    def adjusted(
        self, name: str, *, nonnegative: bool = False, whole: bool = False, draws: int = 200, rng: Rng = None
    ) -> Adjusted:
        """The answers of a group without negative ones, rounded to whole numbers, or both: post-processing, free.

        It is biased, so `error` is measured: noise drawn anew `draws` times around the adjusted answers.
        """
        if not (boolean("nonnegative", nonnegative) or boolean("whole", whole)):
            raise ValueError("say what to adjust: nonnegative=True, whole=True or both")

        def adjust(table: Floats) -> Floats:
            bounded = np.maximum(table, 0.0) if nonnegative else table
            return np.rint(bounded) + 0.0 if whole else bounded

        stand_in, random = adjust(self[name]), np.random.default_rng() if rng is None else rng
        total = np.zeros(stand_in.shape)
        for _ in range(count("draws", draws, most=1_000_000)):
            noise = [
                [self._redrawn(k, j, one.shape, random) for j, one in enumerate(rows)]
                for k, rows in enumerate(self.coefficients)
            ]
            total += np.square(adjust(stand_in + replace(self, coefficients=noise)[name]) - stand_in)
        words = [word for word, chosen in (("nonnegative", nonnegative), ("whole numbers", whole)) if chosen]
        return Adjusted(stand_in, np.sqrt(total / draws), self.standard_error(name), f"adjusted: {', '.join(words)}")

    def _redrawn(self, number: int, place: int, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
        """Noise of the law of one block."""
        family, draw = self.mechanism.families[number], random.standard_normal(shape)
        for axis, mode in enumerate(family.modes_of(place), start=len(family.blocks[place])):
            draw *= mode.scales.reshape([-1 if k == axis else 1 for k in range(len(shape))])
        return np.asarray(draw * float(family.sigma[place]))

    def _place(self, term: Term) -> tuple[int, Family]:
        family = family_of(self.mechanism._plan, term)
        return self.mechanism.families.index(family), family

    def _answers(self, term: Term) -> Floats:
        """Rebuilt from the blocks below the term: contrasts turned back, sums spread evenly."""
        number, family = self._place(term)
        sizes = self.mechanism.workload.schema.sizes
        plain = [k for k in term.attributes if k not in family.axes]
        total: Any = 0.0
        for block in _blocks_below(plain, family):
            place = family.index[block]
            table = self.coefficients[number][place]
            for axis in range(len(block)):
                table = restored(table, axis)
            for axis, (part, mode) in enumerate(
                zip(family.parts, family.modes_of(place), strict=True), start=len(block)
            ):
                rows = special_rows(term, part, self.mechanism.workload)
                inverse = rows if mode.rotation is None else rows @ mode.rotation.inverse
                table = _along(table, inverse, axis)
            rest = math.prod(sizes[k] for k in plain if k not in block)
            shape = [sizes[k] if k in block else 1 for k in plain] + list(table.shape[len(block) :])
            total = total + table.reshape(shape) / rest
        shape = [sizes[k] for k in plain] + list(np.shape(total)[len(plain) :])
        return self._ordered(np.broadcast_to(total, shape), term, family, plain)

    def _ordered(self, table: Floats, term: Term, family: Family, plain: list[int]) -> Floats:
        """From (plain attributes, rows of the parts) to the order of the term."""
        asked = dict(term.factors)
        special = [k for part in family.parts for k in part.axes if k in asked]
        cells = table.reshape([*(table.shape[: len(plain)]), *(asked[k].count for k in special)])
        order = [*plain, *special]
        return np.ascontiguousarray(cells.transpose([order.index(k) for k in term.attributes]))

    def _pulled(self, term: Term, weights: Floats) -> dict[tuple[int, int], Any]:
        """The weights of each released coefficient in a sum of answers."""
        number, family = self._place(term)
        sizes, asked = self.mechanism.workload.schema.sizes, dict(term.factors)
        plain = [k for k in term.attributes if k not in family.axes]
        special = [k for part in family.parts for k in part.axes if k in asked]
        found: dict[tuple[int, int], Any] = {}
        sorted_ = weights.transpose([term.attributes.index(k) for k in (*plain, *special)])
        for block in _blocks_below(plain, family):
            place = family.index[block]
            table = sorted_.sum(axis=tuple(axis for axis, k in enumerate(plain) if k not in block))
            table = table / math.prod(sizes[k] for k in plain if k not in block)
            table = table.reshape([sizes[k] for k in block] + self._counts(term, family))
            for axis, k in enumerate(block):
                lengths = contrast_lengths(sizes[k]).reshape(-1, *[1] * (table.ndim - axis - 1))
                table = contrasted(table, axis) / lengths
            for axis, (part, mode) in enumerate(
                zip(family.parts, family.modes_of(place), strict=True), start=len(block)
            ):
                rows = special_rows(term, part, self.mechanism.workload)
                inverse = rows if mode.rotation is None else rows @ mode.rotation.inverse
                table = _along(table, inverse.T, axis)
            found[number, place] = table
        return found

    def _counts(self, term: Term, family: Family) -> list[int]:
        asked = dict(term.factors)
        return [math.prod(asked[k].count for k in part.axes if k in asked) for part in family.parts]

    def _variance(self, number: int, place: int, weights: Any) -> float:
        family = self.mechanism.families[number]
        for axis, mode in enumerate(family.modes_of(place), start=len(family.blocks[place])):
            shape = [1] * weights.ndim
            shape[axis] = -1
            weights = weights * mode.scales.reshape(shape)
        return float(np.square(weights).sum()) * float(family.sigma[place]) ** 2


def _blocks_below(plain: list[int], family: Family) -> list[tuple[int, ...]]:
    chosen = (block for order in range(len(plain) + 1) for block in itertools.combinations(plain, order))
    return [block for block in chosen if block in family.index]


def fieller(counts: Floats, sums: Floats, a: Floats, b: Floats, c: Floats) -> tuple[Floats, Floats]:
    """The m with (sum - m count)^2 <= c - 2 m b + m^2 a; everything where that set is not an interval."""
    lead, middle, last = np.square(counts) - a, sums * counts - b, np.square(sums) - c
    root = np.sqrt(np.maximum(np.square(middle) - lead * last, 0.0))
    bounded = (lead > 0) & (counts > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (middle - root) / lead, (middle + root) / lead
    return np.where(bounded, low, -math.inf), np.where(bounded, high, math.inf)
