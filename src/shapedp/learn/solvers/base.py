"""The one shape of a solver, and what each of them hands back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from shapedp.accounting.plan import Step
from shapedp.boundary.values import plain
from shapedp.mechanisms import Sketch
from shapedp.numerics.arrays import Floats
from shapedp.sensitivity import Adjacency

Problem = TypeVar("Problem")
Data = TypeVar("Data")


@dataclass(frozen=True)
class Draws:
    """How a solver releases.

    Parameters
    ----------
    rng: the source of randomness; None: secure.
    unsafe: release even if the claim is refuted.
    progress: show a progress bar where its length is public.

    Examples
    --------
    >>> Draws(np.random.default_rng(0)).unsafe
    False
    """

    rng: np.random.Generator | None = None
    unsafe: bool = False
    progress: bool = False

    def __post_init__(self) -> None:
        plain(self)

    def release(self, mechanism: Any, query: Any) -> Floats:
        """The query with the mechanism's noise."""
        return np.asarray(mechanism.release(query, rng=self.rng, unsafe=self.unsafe).value)

    def sketch(self, mechanism: Any, gram: Any, records: int, dim: int) -> Sketch:
        """The mechanism's sketch of rows given by their Gram matrix."""
        released: Sketch = mechanism.release_gram(gram, records, dim, rng=self.rng, unsafe=self.unsafe)
        return released


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found.

    `weights` are those of the columns [x, c]; of several problems at once, one column each. `covariance` is that of
    the weights where it follows from what was released: privacy noise and sampling together, at first order, without
    the bias of shrinking; `resolved` is the least eigenvalue of the released X^T X over the noise's spectral norm, 0
    where intervals must not rest on that covariance. `released` lists the releases of a solver that chooses them on its
    way. `moments` are released second moments of so many `records`, where other models may be made of them.

    Examples
    --------
    >>> Solution(np.zeros(2)).covariance is None
    True
    """

    weights: Floats
    covariance: Floats | None = None
    resolved: float = 0.0
    released: tuple[Step, ...] = ()
    moments: Any = None
    records: int = 0


@dataclass(frozen=True)
class Solver(Generic[Problem, Data]):
    """A private solver, as plain functions.

    `mechanisms(problem)` says what will be released, from public quantities alone; it is empty where a solver chooses
    its releases on its way and lists them in `Solution.released`. `solve(data, mechanisms, draws)` releases through
    them and computes the rest from what was released. `completed(problem)` fills in what the user left open.
    `passes` is how often the records are read.

    Examples
    --------
    >>> from shapedp.learn.moments import Bounds
    >>> from shapedp.learn.solvers.linear import SOLVERS, Problem
    >>> (mechanism,) = SOLVERS["suffstats"].mechanisms(Problem(1000, 2, Bounds(1.0, 1.0), epsilon=1.0, delta=1e-6))
    >>> mechanism.certificate.verdict
    'certified'
    """

    mechanisms: Callable[[Problem], tuple[Any, ...]]
    solve: Callable[[Data, tuple[Any, ...], Draws], Solution]
    adjacencies: tuple[Adjacency, ...] = ("zero-out", "replace")
    completed: Callable[[Problem], Problem] = lambda problem: problem
    passes: int = 1
