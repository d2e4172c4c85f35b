"""Answers with noise on whole numbers: tables, errors, intervals, and anything linear in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.values import boolean
from shapedp.noise.base import confidence_level
from shapedp.noise.gaussian import normal_half_width
from shapedp.noise.request import DoesNotApplyError
from shapedp.numerics.arrays import Floats
from shapedp.numerics.modes import outer
from shapedp.numerics.outward import WIDE
from shapedp.privacy import Certificate
from shapedp.workloads.base import ReleasedWorkload
from shapedp.workloads.workload import Term

if TYPE_CHECKING:
    from shapedp.workloads.answers import AnswerMechanism

_TILTS = 400  # of the exponential bound on sums of Laplace noise
_ALIKE = 1e-3  # scales of Laplace noise that are nearer, relatively, are taken for equal: that widens intervals
_HALVINGS = 60
_ROUNDS = 4  # of bounds on a mean from bounds on it


@dataclass(frozen=True)
class Linear:
    """A linear function of released answers: its value, its standard error, and a bound on its noise.

    `spread` is sqrt(sum w^2 scale^2); `largest` is the largest |w| scale for Laplace noise, and what rounding can add,
    sum |w|/2, for Gaussian noise.
    """

    value: float
    standard_error: float
    spread: float
    largest: float
    law: str

    def interval(self, confidence: float) -> tuple[float, float]:
        """Ends that hold the truth with at least this probability."""
        half = float(sum_half_width(self.law, self.spread, self.largest, confidence))
        return self.value - half, self.value + half


def sum_half_width(law: str, spread: Any, largest: Any, confidence: float) -> Floats:
    """c with P(|sum w_i n_i| <= c) >= confidence for independent noise; see `Linear` for its spread.

    Guarantee: Laplace noise has E e^(t n) = 1/(1 - t^2 b^2), on a grid no more, and -log(1 - u) <= u/(1 - top) for
    u <= top: with V = sum w^2 b^2 and M the largest |w| b the tail is at most 2 e^(-t c + V t^2/(1 - t^2 M^2)) for
    every t < 1/M. Rounded Gaussian noise is Gaussian, and at most 1/2 more.
    """
    level = confidence_level(confidence)
    total, top = np.asarray(spread, dtype=np.float64)[..., None], np.asarray(largest, dtype=np.float64)[..., None]
    if law == "gaussian":
        return np.asarray((total * normal_half_width(level) + top)[..., 0])
    moving = np.where(top > 0, top, 1.0)
    tilt = np.arange(1, _TILTS) / _TILTS / moving
    found = (math.log(2 / (1 - level)) + np.square(tilt * total) / (1 - np.square(tilt * moving))) / tilt
    return np.where(top[..., 0] > 0, found.min(axis=-1), 0.0)


def pair_half_width(first: Any, second: Any, confidence: float) -> Floats:
    """c with P(|x + y| <= c) >= confidence for independent Laplace noise x and y of these scales.

    Guarantee: with scales 1 and r < 1 the tail is (e^-c - r^2 e^(-c/r))/(1 - r^2), which grows with r, and
    (1 + c/2) e^-c for r = 1. The end returned is the upper one of a bisection.
    """
    a, b = (np.abs(np.asarray(one, dtype=np.float64)) for one in (first, second))
    most = np.maximum(a, b)
    share = np.minimum(a, b) / np.where(most > 0, most, 1.0)
    alike = share > 1 - _ALIKE
    r = np.where(alike | (share <= 0), 0.5, share)  # 0.5 is not used
    left = 1 - confidence_level(confidence)

    def tail(c: Floats) -> Floats:
        apart = (np.exp(-c) - np.square(r) * np.exp(-c / r)) / (1 - np.square(r))
        return np.where(alike, (1 + c / 2) * np.exp(-c), np.where(share > 0, apart, np.exp(-c)))

    low, high = np.zeros(most.shape), np.full(most.shape, 4.0 - 2 * math.log(left))  # (1 + c/2) e^-c <= 2 e^(-c/2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = tail(middle) <= left * (1 - WIDE)
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    return np.asarray(high * most)


@dataclass(frozen=True, eq=False)
class AnsweredWorkload(ReleasedWorkload):
    """The answers of a workload with noise on whole numbers, with the certificate they were released under.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> m = sdp.Workload({"sex": ["F", "M"]}).marginals(1).calibrate(epsilon=1.0, delta=0.0)
        >>> released = m.release(pd.DataFrame({"sex": ["F", "M", "F"]}))
        >>> released["sex"].dtype.kind, released.certificate.verdict
        ('i', 'certified')
    """

    mechanism: AnswerMechanism
    noisy: list[NDArray[Any]]
    certificate: Certificate
    unsafe: bool = False
    spends: int = 1  # of the mechanism's budget, for a ledger

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The answers of a group of queries, in its shape: integers where noise is on integers and rows are whole."""
        term = self.mechanism.term(name)
        if self.mechanism.cells:
            return _applied(self.noisy[0], self._matrices(term)).reshape(term.shape)
        place = self._place(term)
        return self.noisy[place] if not term.measure else self.noisy[place] * self.mechanism.unit(place)

    def _place(self, term: Term) -> int:
        return self.mechanism.workload.terms.index(term)

    def _matrices(self, term: Term) -> list[NDArray[Any] | None]:
        """What the group asks along every attribute of the table of all cells; None for each cell alone."""
        asked, found = dict(term.factors), list[NDArray[Any] | None]()
        for place, factor in self.mechanism.groups[0].factors:
            if place in asked and asked[place].shape == "cells":
                found.append(None)
                continue
            rows = asked[place].matrix if place in asked else np.ones((1, factor.size))
            whole = not (rows % 1).any() and np.abs(rows).max() < 2.0**53
            found.append(rows.astype(np.int64) if whole else rows)
        return found

    def interval(self, name: str, confidence: float, *, joint: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper ends; with `joint` all answers of the group lie inside together with that probability.

        Guarantee: at least the stated probability: from the law of a number's noise where an answer has noise of its
        own, by an exponential bound where it is a sum of noisy cells (joint: each with its share of what may fail).
        """
        joint, answers, level = boolean("joint", joint), self[name], confidence_level(confidence)
        many = answers.size if joint else 1
        term = self.mechanism.term(name)
        if not self.mechanism.cells:
            place = self._place(term)
            half: Any = self.mechanism.noise[place].half_width(level ** (1 / many)) * self.mechanism.unit(place)
        else:
            noise, alone = self.mechanism.noise[0], np.ones((1, 1))  # a cell alone: one row stands for all
            rows = [alone if one is None else np.abs(one.astype(np.float64)) for one in self._matrices(term)]
            spread = np.sqrt(outer([np.square(one).sum(axis=1) for one in rows])) * noise.scale
            top = outer([one.max(axis=1) for one in rows]) * noise.scale
            shape = [1 if factor.shape == "cells" else factor.count for _, factor in term.factors]
            half = sum_half_width(noise.law, spread, top, 1 - (1 - level) / many).reshape(shape)
        return answers - half, answers + half

    def of(self, query: Mapping[str, Any]) -> Linear:
        """A linear function of the answers: weights by group, each in the shape of the group's answers."""
        value = 0.0
        pulled: list[Floats] = [np.zeros(one.shape) for one in self.noisy]
        for term, weights in self._weights(query):
            value += float((weights * self[term.name]).sum())
            if self.mechanism.cells:
                rows = self._matrices(term)
                shape = [n if one is None else len(one) for n, one in zip(pulled[0].shape, rows, strict=True)]
                pulled[0] += _applied(weights.reshape(shape), [None if one is None else one.T for one in rows])
            else:
                place = self._place(term)
                pulled[place] += weights * self.mechanism.unit(place)
        squares = [float(np.square(one).sum()) for one in pulled]
        noises = self.mechanism.noise
        error = math.sqrt(sum(s * noise.variance for s, noise in zip(squares, noises, strict=True)))
        spread = math.sqrt(sum(s * noise.scale**2 for s, noise in zip(squares, noises, strict=True)))
        sizes = [np.abs(one) for one in pulled]
        if noises[0].law == "gaussian":
            return Linear(value, error, spread, sum(float(one.sum()) for one in sizes) / 2, "gaussian")
        top = max(float(one.max()) * noise.scale for one, noise in zip(sizes, noises, strict=True))
        return Linear(value, error, spread, top, "laplace")

    def means(self, measure: str, *by: str, confidence: float | None = None) -> tuple[Floats, ...]:
        """The mean of a measure by these attributes; with `confidence` also lower and upper ends.

        Guarantee: as `quotient` says.
        """
        workload = self.mechanism.workload
        asked = [workload.table(k, by) for k in (0, 1 + workload.schema.measure(measure))]
        bounds = workload.schema.measures[workload.schema.measure(measure)]
        counts, sums = (self[term.name] for term in asked)
        middle = (bounds.low + bounds.high) / 2
        mean = np.clip(np.where(counts > 0, sums / np.where(counts > 0, counts, 1), middle), bounds.low, bounds.high)
        if confidence is None:
            return (mean,)
        return mean, *self.quotient(asked[0], asked[1], (bounds.low, bounds.high), confidence)

    def quotient(self, below: Term, above: Term, ends: tuple[float, float], confidence: float) -> tuple[Floats, Floats]:
        """Ends of sum/count, which lies within `ends`, for two groups by the same attributes.

        Guarantee: for the true quotient m, sum - m count is x - m y for the noise x, y of both. Laplace noise on a grid
        is the difference of two rounded exponential draws, so it is less than a step from Laplace noise. m is therefore
        within c(|m|) = (half width of x and m y) + (step of x) + |m| (step of y) of sum/count with at least the
        stated probability. c rises with |m|, of which every bound gives a nearer one.
        """
        places = [self._place(term) for term in (below, above)]
        if self.mechanism.cells or any(self.mechanism.noise[k].law != "laplace" for k in places):
            raise DoesNotApplyError("intervals of quotients are for Laplace noise on each answer")
        units = [self.mechanism.unit(k) for k in places]
        scales = [self.mechanism.noise[k].scale * one for k, one in zip(places, units, strict=True)]
        steps = [self.mechanism.noise[k].grid * one for k, one in zip(places, units, strict=True)]
        counts, sums = (np.asarray(self[term.name], dtype=np.float64) for term in (below, above))
        some = counts > 0
        number, far = np.where(some, counts, 1.0), np.full(counts.shape, max(abs(end) for end in ends))
        for _ in range(_ROUNDS):
            half = pair_half_width(scales[1], far * scales[0], confidence) + steps[1] + far * steps[0]
            low, high = ((np.clip((sums + side * half) / number, *ends)) for side in (-1, 1))
            far = np.maximum(np.abs(low), np.abs(high))
        return np.where(some, low, ends[0]), np.where(some, high, ends[1])


def _applied(table: NDArray[Any], matrices: list[NDArray[Any] | None]) -> NDArray[Any]:
    """A matrix times every axis, None leaving it as it is; in floats where integers could leave their range."""
    found = [(axis, matrix) for axis, matrix in enumerate(matrices) if matrix is not None]
    most = float(np.abs(table).max(initial=0)) * math.prod(float(np.abs(one).sum(axis=1).max()) for _, one in found)
    if not most < 2.0**62:
        table = table.astype(np.float64)
    for axis, matrix in found:
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return table
