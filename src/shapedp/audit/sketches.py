"""Mixing mechanisms as subjects of an audit: sketches of two neighbouring tables, scored by their densities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from shapedp.audit.subjects import BLOCK, CALLS, Score, Subject, own_score, pair_of, subject_of
from shapedp.mechanisms import AdaptiveMixing, Mixing
from shapedp.mechanisms.mixing import Sketching, clipped_gram
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import finite
from shapedp.numerics.outward import BELOW_8192

__all__ = ["AdaptiveSubject", "MixingSubject", "subject_of"]


@dataclass(frozen=True, eq=False)
class MixingSubject(Subject):
    """Sketches through `release`. Their rows are independent: n sketches are one with n times the rows."""

    mechanism: Any
    inputs: tuple[Floats, Floats]
    method: str = "likelihood ratio"

    def draw(self, side: int, n: int, rng: np.random.Generator | None) -> Floats:
        many = replace(self.mechanism, rows=self.mechanism.rows * n)
        return np.asarray(many.release(self.inputs[side], rng=rng, unsafe=True)).reshape(n, -1)

    def score(self, outputs: Floats) -> Floats:
        return self._sketches(outputs, np.array([self.mechanism.noise_variance]))

    def _sketches(self, outputs: Floats, variance: Floats) -> Floats:
        """The log-likelihood ratio of rows of N(0, gram + variance I), with the variance of each output."""
        rows = outputs.reshape(len(outputs), self.mechanism.rows, -1)
        total = np.zeros(len(outputs))
        for sign, (values, axes) in zip((-0.5, 0.5), self.spectra, strict=True):
            spread = values + variance[:, None]
            squares = np.square(rows @ axes).sum(axis=1)
            total += sign * ((squares / spread).sum(axis=1) + self.mechanism.rows * np.log(spread).sum(axis=1))
        return total

    @cached_property
    def grams(self) -> list[Floats]:
        """The Gram matrix of either input's clipped rows."""
        return [clipped_gram(table, self.mechanism.row_bound) for table in self.inputs]

    @cached_property
    def spectra(self) -> list[tuple[Floats, Floats]]:
        """Eigenvalues and eigenvectors of either Gram matrix."""
        return [(np.maximum(values, 0.0), axes) for values, axes in map(np.linalg.eigh, self.grams)]

    @property
    def block(self) -> int:
        return max(1, min(BLOCK // int(self.mechanism.rows * self.inputs[0].shape[1]), 1 << 15))


@dataclass(frozen=True, eq=False)
class AdaptiveSubject(MixingSubject):
    """Sketches and their noise variances, each by a release of its own."""

    def draw(self, side: int, n: int, rng: np.random.Generator | None) -> Floats:
        gram, sizes = self.grams[side], self.inputs[side].shape
        sketches = (self.mechanism.release_gram(gram, *sizes, rng=rng, unsafe=True) for _ in range(n))
        return np.array([np.append(sketch.value, sketch.noise_variance) for sketch in sketches])

    def score(self, outputs: Floats) -> Floats:
        return self._variances(outputs[:, -1]) + self._sketches(outputs[:, :-1], outputs[:, -1])

    def _variances(self, variance: Floats) -> Floats:
        """The log-likelihood ratio of the noise variance: a normal variable cut off at both ends."""
        m = self.mechanism
        share = variance / m.row_bound**2
        none, most = variance <= 0, share >= (m.gamma - 1) * BELOW_8192
        logs = []
        for values, _ in self.spectra:
            z = (m.gamma - share - values.min() / m.row_bound**2) / m.eta + m.tau
            inside = -0.5 * z * z
            logs.append(np.where(none, special.log_ndtr(-z), np.where(most, special.log_ndtr(z), inside)))
        return np.asarray(logs[0] - logs[1])

    @property
    def block(self) -> int:
        return CALLS


@subject_of.register
def _(mechanism: Mixing, neighbours: Any, score: Score | None, vectorized: bool) -> Subject:
    """By default a lone row, set to zero or exchanged for one at a right angle: what attains the loss."""
    lone = np.zeros((mechanism.records or 2, mechanism.dim or 2))
    lone[0, 0] = mechanism.row_bound
    return MixingSubject(mechanism, _tables(mechanism, neighbours, lone, score))


@subject_of.register
def _(mechanism: AdaptiveMixing, neighbours: Any, score: Score | None, vectorized: bool) -> Subject:
    """By default rows along every axis alike, one of them set to zero or exchanged: the least eigenvalue falls."""
    n, d = mechanism.records or 2, mechanism.dim or 2
    even = mechanism.row_bound * np.eye(d)[np.arange(n) % d]
    return AdaptiveSubject(mechanism, _tables(mechanism, neighbours, even, score))


def _tables(mechanism: Sketching, neighbours: Any, worst: Floats, score: Score | None) -> tuple[Floats, Floats]:
    """The neighbours; where none are given, the worst table and itself with another first row."""
    own_score(score)
    if neighbours is None:
        changed = worst.copy()
        changed[0] = 0.0
        if mechanism.adjacency == "replace" and worst.shape[1] > 1:
            changed[0, -1] = mechanism.row_bound
        neighbours = worst, changed
    first, second = (finite("neighbours", side) for side in pair_of(neighbours))
    if first.ndim != 2 or first.shape != second.shape:
        raise ValueError(f"neighbours must be two tables of one shape, got {first.shape} and {second.shape}")
    return first, second
