"""A support vector machine under differential privacy."""

from __future__ import annotations

from typing import Any, ClassVar

from shapedp.learn.losses import HuberHinge, MarginLoss
from shapedp.learn.solvers.erm.estimator import LinearClassifier
from shapedp.sensitivity import Adjacency


class HuberSVC(LinearClassifier):
    """A linear support vector machine with the Huber hinge loss of width `width`, released under (epsilon, delta).

    Parameters and fitted attributes as those of `LogisticRegression`, with fewer solvers and without probabilities.

    Guarantee: see `PrivateEstimator`.
    Reference: Chaudhuri, Monteleoni and Sarwate 2011, section 3.
    """

    solvers: ClassVar[tuple[str, ...]] = ("output", "bolt-on", "objective")

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
        passes: int = 10,
        batch_size: int = 50,
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
        self.passes = passes
        self.batch_size = batch_size
        self.random_state = random_state
        self.unsafe = unsafe
        self.progress = progress

    def _loss(self) -> MarginLoss:
        return HuberHinge(self.width)
