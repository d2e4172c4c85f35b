"""A support vector machine under differential privacy."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shapedp.learn.losses import HuberHinge, MarginLoss
from shapedp.learn.moments import Bounds
from shapedp.learn.solvers.erm import output
from shapedp.learn.solvers.erm.estimator import LinearClassifier
from shapedp.sensitivity import Adjacency

Floats = NDArray[np.float64]


class HuberSVC(LinearClassifier):
    """A linear support vector machine with the Huber hinge loss of width `width`, released under (epsilon, delta).

    Parameters and fitted attributes as those of `LogisticRegression`, without probabilities and without mixing.

    Guarantee: see `PrivateEstimator`.
    Reference: Chaudhuri, Monteleoni and Sarwate 2011, section 3.
    """

    solvers: ClassVar[tuple[str, ...]] = ("output",)

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        feature_bound: float,
        classes: Any = None,
        solver: str = "auto",
        regularization: float | None = None,
        noise: str = "auto",
        width: float = 0.1,
        fit_intercept: bool = True,
        adjacency: Adjacency = "zero-out",
        random_state: Any = None,
        unsafe: bool = False,
        progress: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.classes = classes
        self.solver = solver
        self.regularization = regularization
        self.noise = noise
        self.width = width
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.random_state = random_state
        self.unsafe = unsafe
        self.progress = progress

    def _loss(self) -> MarginLoss:
        return HuberHinge(self.width)

    def _weights(self, name: str, x: Any, y: Any, classes: NDArray[Any], bounds: Bounds) -> Floats:
        problem, records = self._read(x, y, classes, bounds)
        mechanism = output.mechanism(problem, self.noise)
        self.privacy_ = self._certify([mechanism])
        with self._bar() as progress:
            return output.solve(problem, records(), mechanism, self._draws(), progress)
