"""Regularised empirical risk: what is public about it, the records, and the function to be minimised."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from shapedp.boundary.refusals import refusal
from shapedp.learn.losses import LinearLoss
from shapedp.learn.moments import Bounds, clipped
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8, ABOVE_8192, UNIT, WIDER
from shapedp.sensitivity import L2, Adjacency
from shapedp.tables.blocks import finite_records

BLOCK = 1 << 16  # entries of one matrix product, about what a cache holds: what is summed in working precision
CLIP = 1 << 12
SINGLE = (1e-30, 1e30)  # bounds between which float32 rounds relatively and does not overflow
PRECONDITIONED = 3000  # variables up to which a Gram matrix is factored to speed up the search
ONE = Bounds(1.0, 1.0)


@dataclass(frozen=True)
class Problem:
    """The public side of private classification, or of a generalised linear model: sizes, bounds, loss and the claim.

    `order` counts the columns of [x, c], `problems` the two-class problems that are solved together, `row_bound`
    bounds |[x, c]|_2. The objective of each is the mean loss plus (regularization/2) |w|_2^2. What follows `sparse` is
    for some of the solvers only: the bounds that `row_bound` came from, the kind of noise, the passes and batches of a
    descent, the rows of a sketch.
    """

    loss: LinearLoss
    records: int
    order: int
    problems: int
    row_bound: float
    regularization: float
    epsilon: float
    delta: float
    adjacency: Adjacency = "zero-out"
    sparse: bool = False
    bounds: Bounds = ONE
    noise: str = "auto"
    passes: int = 10
    batch: int = 50
    sketch_rows: int | None = None

    @property
    def dim(self) -> int:
        """The number of weights in all."""
        return self.order * self.problems

    @property
    def lipschitz(self) -> float:
        """L: the gradient slope x of one record is at most as long as the record, |slope| <= 1."""
        return self.row_bound * ABOVE_8

    @property
    def gradient_change(self) -> float:
        """The most one record changes the sum of one problem's gradients: L for zero-out, 2 L for replace."""
        return self.lipschitz * (2.0 if self.adjacency == "replace" else 1.0)

    @property
    def smoothness(self) -> float:
        """beta: the Hessian curvature x x^T of one record is at most this large."""
        return self.loss.curvature_bound * self.row_bound**2 * ABOVE_8**2


def two_classes(problem: Problem, solver: str) -> None:
    """Refuse more than two classes."""
    if problem.problems > 1:
        raise ValueError(refusal("learn", "binary-only", solver=solver))


@dataclass(frozen=True, eq=False)
class Records:
    """Rows [x, c] within the row bound, a dense array or a CSR matrix, and a sign (or a target) per record and problem.

    Whatever held a NaN, an infinity or an unknown label is a row of zeros: it adds a constant to every objective.
    """

    x: Any
    signs: Floats

    @property
    def count(self) -> int:
        return int(self.x.shape[0])

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        """Rows and signs, a block of records at a time (sparse rows all at once); float32 rows as float64."""
        if sparse.issparse(self.x):
            yield self.x, self.signs
            return
        step = block_rows(self.x.shape[1])
        for start in range(0, self.count, step):
            part = slice(start, start + step)
            yield self.x[part].astype(np.float64, copy=False), self.signs[part]


def block_rows(order: int) -> int:
    """How many records make a block."""
    return min(max(BLOCK // order, 32), 8192)


def read_records(x: Any, signs: Floats, bounds: Bounds) -> Records:
    """Records [x, c] with x pulled into the feature bound, a few thousand at a time.

    float32 rows stay float32, a little inside the bound so that rounding does not leave it; where the bound is near
    the ends of that type, rows become float64.
    """
    kept = signs[:, 0] != 0
    if not isinstance(x, np.ndarray):
        return _sparse_records(x.tocsr(), signs, kept, bounds)
    n, d = x.shape
    wide = d + (bounds.constant > 0)
    kind = x.dtype if SINGLE[0] < bounds.feature < SINGLE[1] else np.dtype(np.float64)
    rows, buffer = np.empty((n, wide), dtype=kind), np.empty((min(n, CLIP), wide + 1))
    shrink = 1.0 if kind == np.float64 else 1 - WIDER
    for start in range(0, n, CLIP):
        some = slice(start, start + CLIP)
        kept[some] &= np.isfinite(x[some]).all(axis=1)
        with np.errstate(all="ignore"):
            part = clipped(x[some], np.where(kept[some], 0.0, np.nan), bounds, buffer)[:, :wide]
        part[:, :d] *= shrink
        rows[some] = part
    return Records(rows, np.where(kept[:, None], signs, 0.0))


def _sparse_records(x: Any, signs: Floats, kept: NDArray[np.bool_], bounds: Bounds) -> Records:
    """As `read_records`, from a CSR matrix."""
    finite, mark = finite_records(x, np.where(kept, 1.0, np.nan))
    kept = mark != 0
    inside = L2(bounds.feature, dim=x.shape[1]).clip(finite, adjacency="zero-out")[0]
    if bounds.constant > 0:
        column = sparse.csr_array(np.where(kept, bounds.constant, 0.0)[:, None])
        inside = sparse.hstack([inside, column])
    return Records(sparse.csr_array(inside), np.where(kept[:, None], signs, 0.0))


@dataclass(eq=False)
class Risk:
    """(1/n) sum of losses + (regularization/2) |w|^2 + linear . w, one function per problem.

    This is what solvers are given as their data; it satisfies `numerics.convex.Objective`. `tilt` bounds |linear|_2
    of each problem. The constants need no records.
    """

    problem: Problem
    records: Records | None = None
    linear: Floats | None = None
    tilt: float = 0.0

    def __post_init__(self) -> None:
        self.order, self.columns = self.problem.order, self.problem.problems
        self.modulus = self.problem.regularization
        self.smoothness = (self.problem.smoothness + self.modulus) * ABOVE_8
        self.radius = (self.problem.lipschitz + self.tilt) / self.modulus * ABOVE_8192 if self.modulus else math.inf

    @property
    def data(self) -> Records:
        """The records, where there are any."""
        if self.records is None:
            raise ValueError("a risk without records has constants only")
        return self.records

    def evaluate(self, w: Floats) -> tuple[Floats, Floats]:
        loss, n = self.problem.loss, self.problem.records
        value = 0.5 * self.modulus * np.einsum("ij,ij->j", w, w)
        total: Any = 0.0
        for x, signs in self.data.blocks():
            score = x @ w
            value += loss.value_at(score, signs).sum(axis=0) / n
            total = total + x.T @ loss.slope_at(score, signs)
        gradient = total / n + self.modulus * w
        if self.linear is not None:
            value += np.einsum("ij,ij->j", self.linear, w)
            gradient += self.linear
        return value, np.asarray(gradient)

    def hessian(self, w: Floats, column: int) -> Floats:
        loss = self.problem.loss
        total = np.zeros((self.order, self.order))
        for x, signs in self.data.blocks():
            bend = loss.curvature_at(x @ w, signs[:, column])
            if isinstance(x, np.ndarray):
                bent = bend > 0  # few records, where the loss is flat on both sides of its bend
                root = x[bent] * np.sqrt(bend[bent])[:, None]
                total += root.T @ root
            else:
                total += (x.T @ (sparse.diags_array(bend) @ x)).toarray()
        total /= self.problem.records
        total[np.diag_indices(self.order)] += self.modulus
        return total

    def gradient_error(self, size: float) -> float:
        """Rounding of x.w (order + 2 units of |x| |w|), of the slope, of the sums over records, and of the rest."""
        bound, n = self.problem.row_bound, self.problem.records
        slope = self.problem.loss.slope_error
        slope += self.problem.loss.curvature_bound * (self.order + 2) * UNIT * bound * size * 1.01
        step = block_rows(self.order)
        summed = n if self.problem.sparse else min(n, step) + n / step
        return (bound * (slope + (summed + 4) * UNIT) + 6 * UNIT * (self.modulus * size + self.tilt)) * 1.01

    def preconditioner(self) -> Callable[[Floats], Floats] | None:
        """The inverse of the Hessian at a typical curvature, where the Gram matrix is affordable."""
        if self.order > PRECONDITIONED or self.problem.sparse:
            return None
        total = np.zeros((self.order, self.order))
        for x, _ in self.data.blocks():
            total += x.T @ x
        total *= 0.2 * self.problem.loss.curvature_bound / self.problem.records
        total[np.diag_indices(self.order)] += self.modulus
        try:
            root = linalg.cho_factor(total, check_finite=False)
        except linalg.LinAlgError:
            return None
        return lambda vectors: np.asarray(linalg.cho_solve(root, vectors, check_finite=False))
