"""A support vector machine under differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shapedp.learn.classifier import LinearClassifier
from shapedp.learn.losses import HuberHinge, MarginLoss


@dataclass(kw_only=True, eq=False, repr=False)
class HuberSVC(LinearClassifier):
    """A linear support vector machine with the Huber hinge loss, released under (epsilon, delta).

    Parameters
    ----------
    width: the width of the bend of the Huber hinge.
    Others, and fitted attributes, as those of `LogisticRegression`, with fewer solvers and without probabilities.

    Guarantee: see `PrivateEstimator`.
    Reference: Chaudhuri, Monteleoni and Sarwate 2011, section 3.

    Example
    -------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 2_000)[:, None]
    >>> model = HuberSVC(epsilon=1.0, delta=1e-6, feature_bound=1.0, classes=[0, 1], random_state=0)
    >>> model.fit(x, x[:, 0] > 0).predict([[-0.9], [0.9]])
    array([0, 1])
    """

    solvers: ClassVar[tuple[str, ...]] = ("output", "bolt-on", "objective")
    width: float = 0.1

    def _loss(self) -> MarginLoss:
        return HuberHinge(self.width)
