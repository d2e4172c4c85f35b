"""Noise on whole numbers for a workload: on every answer, or on the cells of the whole table (K-norm noise).

Answers of whole queries are integers, so noise is added to integers: pure privacy without a grid to explain, and
integers out. Noise on the cells, of which all answers are computed, is the K-norm noise of the workload's hull where
its vertices are independent: the body is then the image of the cross-polytope, the noise that of Laplace noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.documents import decode, encode
from shapedp.boundary.values import boolean, plain
from shapedp.mechanisms.base import Rng
from shapedp.noise.request import DoesNotApplyError
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, entries, one_of
from shapedp.numerics.outward import ABOVE_16, BELOW_16
from shapedp.privacy import Bracket, GaussianLoss, Loss
from shapedp.privacy.losses import LaplaceLoss
from shapedp.sampling import Source
from shapedp.sensitivity import Adjacency
from shapedp.workloads.answered import AnsweredWorkload
from shapedp.workloads.base import WorkloadClaim
from shapedp.workloads.blocks import outermost, table_by
from shapedp.workloads.reach import Moved, moved
from shapedp.workloads.whole import LAWS, WholeNoise
from shapedp.workloads.workload import Factor, Term, Workload

_LARGEST = 1 << 22  # what one record may add to an answer
_ORDERED = 4096  # cells of an ordered attribute
_LISTED = ("cells", "rows")  # shapes whose rows are not laid out, or were given
_SHOWN = 4096  # answers that move, of which the lower end of a bracket is computed


@dataclass(frozen=True, eq=False)
class AnswerMechanism(WorkloadClaim):
    """The answers of a workload with noise on whole numbers, for the claim (epsilon, delta).

    Guarantee: `loss` is computed from the groups that get noise, for every difference of two neighbours. Exact counts
    and sums, in whole steps, get noise that is drawn in integer arithmetic (Laplace) or rounded exactly (Gaussian).

    Parameters
    ----------
    workload: the queries.
    noise: the noise of each group: those of the workload, or one for the table of all cells if `cells`.
    cells: whether noise is on the cells of the whole table, from which all answers are computed.
    epsilon, delta, adjacency: the claim.
    records: a public bound on the number of records.

    Examples
    --------
    >>> asked = Workload({"age": 3, "sex": ["F", "M"]}).marginals(1)
    >>> m = asked.calibrate(epsilon=1.0, delta=0.0, noise="discrete")
    >>> m.certificate.verdict, [round(one.scale, 3) for one in m.noise]
    ('certified', [1.874, 2.145])
    """

    kind: ClassVar[str] = "workload-answers"
    workload: Workload
    noise: tuple[WholeNoise, ...]
    cells: bool
    epsilon: float
    delta: float
    adjacency: Adjacency
    records: int

    def __post_init__(self) -> None:
        plain(self)
        super().__post_init__()
        given: object = self.workload
        if not isinstance(given, Workload):
            raise TypeError(f"workload must be a Workload, got {type(given).__name__}")
        object.__setattr__(self, "noise", entries("noise", self.noise))
        if not all(isinstance(one, WholeNoise) for one in self.noise):
            raise TypeError("noise must hold a WholeNoise for every group")
        if len(self.noise) != len(self.groups) or len({(one.law, one.whole) for one in self.noise}) != 1:
            raise ValueError("every group that gets noise has a scale, all of one law")
        if self.cells and any(term.measure for term in self.workload.terms):
            raise DoesNotApplyError("noise on the cells is for counts: ask for noise='laplace' with measures")
        check_sizes(self.workload)
        for term, noise in zip(self.groups, self.noise, strict=True):
            _check(term, noise, self.workload, self.records)

    @cached_property
    def groups(self) -> tuple[Term, ...]:
        """What noise is added to."""
        return (whole_table(self.workload),) if self.cells else self.workload.terms

    @property
    def phrase(self) -> str:
        """The noise in words."""
        first = self.noise[0]
        law = "Gaussian, rounded to integers" if first.law == "gaussian" else "Laplace"
        grid = ", on the integers" if first.law == "laplace" and first.whole else ""
        place = "every cell of the whole table; answers agree" if self.cells else "every answer of its own"
        return f"{law}{grid}; on {place}"

    @cached_property
    def _moved(self) -> Moved:
        """What a person changes: so many times what a row does, which rows that are alike reach."""
        scales = np.array([one.scale for one in self.noise])
        order = 1 if self.noise[0].law == "laplace" else 2
        one = moved(self.groups, scales**-order, self.workload.schema, self.adjacency == "replace", order)
        low, high = float(self.workload.max_rows) ** order, float(self.workload.most) ** order
        return Moved(one.low * low * BELOW_16, one.high * high * ABOVE_16, one.shown)

    @cached_property
    def loss(self) -> Loss:
        """Pure for Laplace noise: the largest sum of |d|/scale; mu for Gaussian noise.

        Gaussian noise is rounded to integers, which may hide much of what it shows: no lower end is known.
        """
        found = self._moved
        if self.noise[0].law == "gaussian":
            return GaussianLoss(math.sqrt(found.high) * ABOVE_16, 0.0).under(self.adjacency)
        return LaplaceLoss(found.high, self._ratios(), continuous=False).under(self.adjacency)

    def _ratios(self) -> Floats:
        """1/scale of answers that move by one or more at a difference of two neighbours."""
        if not self._moved.shown or self.workload.schema.measures:
            least = min(one.scale for one in self.noise)
            return np.array([BELOW_16 / least]) if self.cells else np.zeros(1)
        entries: list[float] = []
        for number, noise, term in zip(self._moved.shown, self.noise, self.groups, strict=True):
            several = any(factor.shape == "rows" for _, factor in term.factors)  # one answer may move by more
            entries += [BELOW_16 / noise.scale] * (min(int(number), 1) if several else int(min(number, _SHOWN)))
        return np.array(entries[:_SHOWN] or [0.0])

    def unit(self, place: int) -> float:
        """What one is worth in the answers of a group."""
        return unit(self.groups[count("place", place, least=0, most=len(self.groups) - 1)], self.workload)

    def variances(self, term: Term) -> Floats:
        """The variance of every answer of a group."""
        if not self.cells:
            place = self.workload.terms.index(term)
            return np.full(term.shape, self.noise[place].variance * self.unit(place) ** 2)
        asked, total = dict(term.factors), np.ones(())
        left = 1
        for place, factor in self.groups[0].factors:
            if place in asked:
                total = np.multiply.outer(total, asked[place].row_squares)
            else:
                left *= factor.size
        return np.asarray(total * left * self.noise[0].variance)

    def covariances(self, term: Term, other: Term | None = None) -> Floats:
        """The variance of every answer of a group, or its covariance with that of another: 0, noise of its own."""
        if self.cells and other is not None:
            raise DoesNotApplyError("answers from noisy cells share noise: ask for noise='gaussian' to know how much")
        return self.variances(term) if other is None else np.zeros(term.shape)

    def _total(self, term: Term) -> float:
        return float(self.variances(term).sum())

    @property
    def optimality(self) -> Bracket | None:
        """No lower bound is known for noise on whole numbers."""
        return None

    def needed(self) -> list[tuple[int, ...]]:
        """The attributes of the tables that must be counted."""
        return outermost(term.attributes for term in self.groups)

    def release(self, x: Any, *, rng: Rng = None, unsafe: bool = False) -> AnsweredWorkload:
        """The answers with noise. x is a table: a frame, Arrow data, the path of a file, or tables counted before."""
        from shapedp.workloads.counting import counted_within, whole_answers

        if not boolean("unsafe", unsafe):
            self.certificate.require()
        counted = counted_within(self, x)
        exact = [whole_answers(term, table_by(counted.tables, term.attributes)) for term in self.groups]
        ends = np.cumsum([one.size for one in exact])[:-1]
        flat = np.concatenate([one.reshape(-1) for one in exact])

        def draw(source: Source) -> NDArray[Any]:
            parts = zip(self.noise, np.split(flat, ends), strict=True)
            return np.concatenate([noise.add_to(part, source) for noise, part in parts])

        drawn = self._drawn(flat, draw, rng, unsafe)
        noisy = [part.reshape(one.shape) for part, one in zip(np.split(drawn.value, ends), exact, strict=True)]
        return AnsweredWorkload(self, noisy, counted.stated(drawn.certificate), drawn.unsafe)

    def _described(self) -> dict[str, Any]:
        return {
            **self._claim(),
            "law": self.noise[0].law,
            "whole": self.noise[0].whole,
            "cells": self.cells,
            "scales": encode(np.array([one.scale for one in self.noise])),
            "bits": encode(np.array([one.bits for one in self.noise], dtype=np.float64)),
        }

    @classmethod
    def _read(cls, data: dict[str, Any]) -> dict[str, Any]:
        law = one_of("law", data["law"], LAWS)
        scales, bits = decode("scales", data["scales"]), decode("bits", data["bits"])
        if scales.shape != bits.shape or (bits % 1).any():
            raise ValueError("bits must hold a whole number for every scale")
        whole = boolean("whole", data["whole"])
        noise = tuple(WholeNoise(law, float(s), int(b), whole) for s, b in zip(scales, bits, strict=True))
        return {**cls._claim_from(data), "noise": noise, "cells": boolean("cells", data["cells"])}


def unit(term: Term, workload: Workload) -> float:
    """What one is worth in the answers of a group."""
    return workload.schema.measures[term.measure - 1].step if term.measure else 1.0


def whole_table(workload: Workload) -> Term:
    """The table of all cells of the attributes that are asked for."""
    used = sorted({k for term in workload.terms for k in term.attributes})
    return Term("all cells", tuple((k, Factor("cells", workload.schema.sizes[k])) for k in used))


def _check(term: Term, noise: WholeNoise, workload: Workload, records: int) -> None:
    """Refuses groups whose exact answers are no integers, or could leave the range of exact sums."""
    most = most_of(term, workload) * records
    if term.measure and noise.whole:
        raise DoesNotApplyError("whole numbers are for counts: sums of measures have none; ask for noise='laplace'")
    if most > 1 << (53 if noise.law == "gaussian" else 61 - (0 if noise.whole else noise.bits)):
        raise ValueError(f"answers of {records} records may leave the range of exact sums: plan for fewer (records=)")


def check_sizes(workload: Workload) -> None:
    """Refuses queries whose rows would not fit into memory."""
    for size in {factor.size for term in workload.terms for _, factor in term.factors if factor.shape not in _LISTED}:
        if size > _ORDERED:
            raise DoesNotApplyError(
                f"noise on whole numbers is planned for ordered attributes of at most {_ORDERED} cells, not {size}"
            )


def most_of(term: Term, workload: Workload) -> int:
    """The most that one record adds to an answer, in whole steps."""
    total = 1
    for _, factor in term.factors:
        if factor.shape == "rows":
            largest = float(np.abs(factor.matrix).max())
            if (factor.matrix % 1).any() or largest > _LARGEST:
                raise DoesNotApplyError(
                    "noise on each answer is for whole queries: rows of whole numbers, at most 2^22; "
                    "claim a delta above 0, or ask for noise='cells'"
                )
            total *= int(largest)
    ends = workload.schema.measures[term.measure - 1].ends if term.measure else (1,)
    return total * max(abs(end) for end in ends)
