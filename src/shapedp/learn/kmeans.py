"""k-means: a few rounds of Lloyd's algorithm on noisy counts and sums."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateEstimator, refuse
from shapedp.learn.groups import GroupSums
from shapedp.learn.public import dense_rows, ranges, within
from shapedp.learn.register import counted
from shapedp.learn.solvers.base import Draws
from shapedp.mechanisms import certify
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count

CANDIDATES = 512
SEEN = 2.0  # a group is moved where its noisy count is this many standard deviations of the noise


@dataclass(kw_only=True, eq=False, repr=False)
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """k-means under (epsilon, delta): each round releases the count and the sum of the rows nearest each centre.

    Parameters
    ----------
    n_clusters: the number of centres.
    epsilon, delta: the claim of all rounds together.
    low, high: the ends of the range of each column (a number, or one per column), from public knowledge. Cells beyond
        are clipped. Distances are measured after each range is brought to the same length.
    rounds: how often the centres are moved; None: 3 to 15 times, by the sizes and the claim. They start far from each
        other, at places that no record has a part in.
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.

    Fitted: `cluster_centers_`, `cluster_counts_` (of the last round), `n_iter_`, `privacy_` (the certificate). There
    are no `labels_`: `predict` maps the rows it is given, and its output is about them and not private.

    Guarantee: see `PrivateEstimator`. A record with a missing cell counts as none.
    Reference: Blum, Dwork, McSherry and Nissim 2005; Su, Cao, Li, Bertino and Jin 2016.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(10_000, 1)) + 10 * rng.integers(0, 2, (10_000, 1))
    >>> model = KMeans(2, epsilon=1.0, delta=1e-6, low=-5, high=15, random_state=0).fit(x)
    >>> np.sort(model.cluster_centers_[:, 0]).round() + 0.0
    array([ 0., 10.])
    """

    n_clusters: int = field(default=8, kw_only=False)
    low: ArrayLike
    high: ArrayLike
    rounds: int | None = None

    @counted
    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> KMeans:
        """Fit to rows X (n, d); y is not used."""
        refuse(unsupported)
        claim = self._claim()
        groups = count("n_clusters", self.n_clusters)
        rounds = None if self.rounds is None else count("rounds", self.rounds)
        rows = dense_rows(self, X)
        ends = ranges(self.low, self.high, rows.shape[1])
        sums = GroupSums(*claim, groups=groups, columns=rows.shape[1], squares=False)
        rounds = often(sums, len(rows)) if rounds is None else rounds
        sums = replace(sums, times=rounds)
        certificate = self._required(certify(sums.subject, epsilon=self.epsilon, delta=self.delta))
        mechanism, draws = sums.mechanism, Draws(self._rng(), self.unsafe)
        u = 2 * within(rows, ends) - 1
        there = np.asarray(~np.isnan(u).any(axis=1))
        u = np.where(there[:, None], u, 0.0)
        centres, counts = apart(groups, rows.shape[1]), np.zeros(groups)
        for _ in range(rounds):
            group = np.where(there, nearest(u, centres), -1)
            value = draws.release(mechanism, sums.query(u, group))
            counts, means, _ = sums.read(value)
            seen = counts > SEEN * float(mechanism.law.marginal_scales()[0])
            centres = np.where(seen[:, None], means, centres)
        self._ends, self._centres = ends, centres
        self.cluster_centers_ = ends[0] + (ends[1] - ends[0]) * (1 + centres) / 2
        self.cluster_counts_, self.n_iter_, self._n_features_out = counts, rounds, groups
        self.privacy_ = certificate
        return self

    def _places(self, x: Any) -> Floats:
        check_is_fitted(self, "cluster_centers_")
        u = 2 * within(dense_rows(self, x, reset=False), self._ends) - 1
        return np.where(np.isnan(u), 0.0, u)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The nearest centre of each row; a missing cell counts as the middle of its range."""
        return nearest(self._places(X), self._centres)

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """`fit`, then `predict` of the same rows, which is not private."""
        return self.fit(X).predict(X)

    def transform(self, X: Any) -> Floats:
        """The distance of each row to each centre, in half ranges."""
        return np.sqrt(np.maximum(_squares(self._places(X), self._centres), 0.0))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances of rows to their centres, in half ranges; not private."""
        return -float(np.square(self.transform(X).min(axis=1)).sum())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def often(sums: GroupSums, records: int) -> int:
    """Rounds: as many as leave the count of a group of average size 30 standard deviations of noise, 3 to 15."""
    noise = float(sums.mechanism.law.marginal_scales()[0])
    return int(np.clip((records / (30 * sums.groups * noise)) ** 2, 3, 15))


def _squares(u: Floats, centres: Floats) -> Floats:
    return np.asarray(sum(np.square(u[:, [j]] - centres[:, j]) for j in range(u.shape[1])))


def nearest(u: Floats, centres: Floats) -> NDArray[np.int64]:
    """The nearest centre of each row, from that row alone."""
    return np.asarray(_squares(u, centres).argmin(axis=1), dtype=np.int64)


def apart(groups: int, columns: int) -> Floats:
    """Places in the box [-1, 1]^d far from each other and from its sides; the same for all data."""
    rng = np.random.default_rng(0)
    candidates = rng.uniform(-0.8, 0.8, (max(CANDIDATES, 4 * groups), columns))
    chosen = [int(np.square(candidates).sum(axis=1).argmax())] if groups > 1 else [0]
    if groups == 1:
        return np.zeros((1, columns))
    while len(chosen) < groups:
        gaps = np.min([np.square(candidates - candidates[i]).sum(axis=1) for i in chosen], axis=0)
        chosen.append(int(gaps.argmax()))
    return np.asarray(candidates[chosen])
