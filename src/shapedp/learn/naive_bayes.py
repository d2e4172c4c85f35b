"""Gaussian naive Bayes from one release of counts, sums and sums of squares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.boundary.arrays import equal
from shapedp.learn.base import PrivateEstimator, refuse
from shapedp.learn.classifiers import class_list
from shapedp.learn.groups import GroupSums
from shapedp.learn.public import dense_rows, ranges, within
from shapedp.learn.register import counted
from shapedp.learn.solvers.base import Draws
from shapedp.mechanisms import certify
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import real
from shapedp.tables.blocks import entries, same_length


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianNB(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Gaussian naive Bayes under (epsilon, delta): one release of each class's count, sums and sums of squares.

    Parameters
    ----------
    epsilon, delta: the claim of all classes and columns together.
    low, high: the ends of the range of each column (a number, or one per column), from public knowledge. Cells beyond
        are clipped, here and in `predict`.
    classes: the labels. Where it is None, those that occur are treated as public, with a warning.
    var_smoothing: added to every variance, in units of the largest one that its range allows, after the release:
        it costs nothing. Columns that are no bell curves often want some.
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.

    Fitted: `classes_`, `class_count_`, `class_prior_`, `theta_` (means), `var_` (variances, at least what can be told
    from noise, with `var_smoothing`), `privacy_` (the certificate).

    Guarantee: see `PrivateEstimator`. A record with a missing cell or an unknown label counts as none.
    Reference: Vaidya et al. 2013, without its split of the budget: a record touches one class only.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 5000)
    >>> model = GaussianNB(epsilon=1.0, delta=1e-6, low=-5, high=5, classes=[0, 1], random_state=0)
    >>> model.fit(rng.normal(size=(5000, 1)) + 2 * y[:, None], y).theta_.round()
    array([[0.],
           [2.]])
    """

    low: ArrayLike
    high: ArrayLike
    classes: Any = None
    var_smoothing: float = 0.0

    @counted
    def fit(self, X: Any, y: Any, **unsupported: Any) -> GaussianNB:
        """Fit to rows X (n, d) and labels y (n,)."""
        refuse(unsupported)
        claim = self._claim()
        if not 0 <= real("var_smoothing", self.var_smoothing) < math.inf:
            raise ValueError(f"var_smoothing must be finite and >= 0, got {self.var_smoothing!r}")
        rows = dense_rows(self, X)
        ends = ranges(self.low, self.high, rows.shape[1])
        classes = class_list(type(self).__name__, X, y, self.classes)
        labels = entries(y)
        same_length(len(rows), len(labels))
        sums = GroupSums(*claim, groups=len(classes), columns=rows.shape[1], squares=True)
        certificate = self._required(certify(sums.subject, epsilon=self.epsilon, delta=self.delta))
        hits = np.stack([equal(labels, label) for label in classes.tolist()], axis=1)
        u = 2 * within(rows, ends) - 1
        there = np.asarray(hits.any(axis=1) & ~np.isnan(u).any(axis=1))
        group = np.where(there, hits.argmax(axis=1), -1)
        query = sums.query(np.where(there[:, None], u, 0.0), group)
        self._publish(Draws(self._rng(), self.unsafe).release(sums.mechanism, query), sums, ends, classes)
        self.privacy_ = certificate
        return self

    def _publish(self, value: Floats, sums: GroupSums, ends: tuple[Floats, Floats], classes: NDArray[Any]) -> None:
        """Fitted attributes, from what was released."""
        counts, means, squares = sums.read(value)
        noise = float(sums.mechanism.law.marginal_scales()[0])
        least = np.clip(noise / counts, 1e-9, 1.0)[:, None]
        half = (ends[1] - ends[0]) / 2
        self.classes_, self.class_count_ = classes, counts
        self.class_prior_ = counts / counts.sum()
        self.theta_ = ends[0] + half * (1 + means)
        self.var_ = half**2 * (np.clip(squares - means**2, least, 1.0) + float(self.var_smoothing))
        self._ends = ends

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(class) + log density of the row given the class; a missing cell says nothing."""
        check_is_fitted(self, "theta_")
        rows = np.clip(dense_rows(self, X, reset=False), *self._ends)
        found = np.empty((len(rows), len(self.classes_)))
        for k, (mean, variance) in enumerate(zip(self.theta_, self.var_, strict=True)):
            terms = -0.5 * (np.log(2 * np.pi * variance) + np.square(rows - mean) / variance)
            found[:, k] = np.log(self.class_prior_[k]) + np.nansum(terms, axis=1)
        return found

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of `predict_proba`."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.classifier_tags.poor_score = True  # with few records noise is all there is
        return tags
