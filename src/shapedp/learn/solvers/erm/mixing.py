"""Least squares on a sketch of [x, c, y_1 .. y_K]: the quadratic surrogate of logistic regression."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from shapedp.learn.moments import Bounds
from shapedp.learn.solvers.erm.problem import Problem, Records
from shapedp.learn.solvers.linear.mixing import MIXING, RICH
from shapedp.learn.solvers.linear.problem import Draws
from shapedp.mechanisms import AdaptiveMixing, Mixing
from shapedp.numerics.arrays import Floats
from shapedp.numerics.gram import BLOCK, gram_sum


def unit(bounds: Bounds, problems: int) -> float:
    """The power of two that labels are multiplied by, so that all of a record's are about as long as its features."""
    return float(2.0 ** round(math.log2(bounds.design / math.sqrt(problems))))


def row_bound(bounds: Bounds, problems: int) -> float:
    """The bound on a row [x, c, unit y_1 .. unit y_K]."""
    return math.hypot(bounds.design, unit(bounds, problems) * math.sqrt(problems)) * (1 + 2.0**-50)


@lru_cache(maxsize=64)
def mechanism(problem: Problem, bounds: Bounds, sketch_rows: int | None) -> Any:
    """`AdaptiveMixing` where releasing the least eigenvalue is thought to pay, else `Mixing`; from public sizes."""
    wide = problem.order + problem.problems
    options: dict[str, Any] = {
        "rows": sketch_rows or 10 * wide,
        "row_bound": row_bound(bounds, problem.problems),
        "epsilon": problem.epsilon,
        "delta": problem.delta,
        "adjacency": problem.adjacency,
        "records": problem.records,
        "dim": wide,
    }
    plain = Mixing.calibrate(**options)
    least = RICH * problem.records / wide
    if least <= plain.gamma / 4:
        return plain
    adaptive = AdaptiveMixing.calibrate(**options)
    return adaptive if least > adaptive.reach - plain.gamma + 1 else plain


sketching = lru_cache(maxsize=64)(MIXING.mechanisms)


def solve(problem: Problem, records: Records, mechanism: Any, bounds: Bounds, draws: Draws) -> Floats:
    """Least-squares weights (order, problems) for targets +1 and -1, to be scaled by the surrogate's."""
    one = unit(bounds, problem.problems)
    wide = problem.order + problem.problems
    sketch = mechanism.release_gram(
        lambda: gram_sum(_rows(records, one), column_bounds(problem, bounds)),
        problem.records,
        wide,
        rng=draws.rng,
        unsafe=draws.unsafe,
    )
    x, y = sketch.value[:, : problem.order], sketch.value[:, problem.order :]
    return np.asarray(np.linalg.pinv(x.T @ x, hermitian=True) @ (x.T @ y) / one)


def column_bounds(problem: Problem, bounds: Bounds) -> Floats:
    """A bound on every column of [x, c, unit y_1 .. unit y_K]."""
    each = np.full(problem.order + problem.problems, unit(bounds, problem.problems))
    each[: problem.order] = bounds.feature
    if bounds.constant > 0:
        each[problem.order - 1] = bounds.constant
    return each


def _rows(records: Records, one: float) -> Iterator[Floats]:
    """Rows of the sketched matrix; the labels of a record of zeros are zeros too."""
    step = 8 * BLOCK
    for start in range(0, records.count, step):
        part = records.x[start : start + step]
        dense = part if isinstance(part, np.ndarray) else part.toarray()
        labels = one * records.signs[start : start + step]
        yield np.column_stack([dense, labels])
