"""Principal components of a privately released covariance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateEstimator, checked_rows, read_table
from shapedp.learn.linear import UNITS, intercept_constant
from shapedp.learn.moments import Bounds, Reading
from shapedp.learn.solvers.cd import MOST_RECORDS
from shapedp.learn.solvers.covariance import FAMILIES, RELEASES, SecondMoments, matrix, principal, triangle
from shapedp.learn.solvers.erm.estimator import refuse
from shapedp.mechanisms import Additive, calibrate
from shapedp.noise import Gaussian
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, one_of, positive, real
from shapedp.numerics.gram import gram_error
from shapedp.sensitivity import L2, Adjacency, Sensitivity
from shapedp.tables.blocks import Table, finite_records

_SPENT = 1 - 2.0**-40


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components from one noisy release of X^T X (and one of the mean), under (epsilon, delta).

    `feature_bound` bounds |x|_2 and comes from knowledge about the data, never from the data: rows beyond it are
    pulled in. `n_components` is a number of components, a share in (0, 1) of the released variance, or None for all.
    `center` subtracts the released mean, for `share` of the budget. `release` is "isometric" (entries off the diagonal
    with half the variance: best), "iid" (one scale) or "clipped" (the entries of each x x^T clipped); `noise` is
    "gaussian" or, for delta = 0, "laplace".

    Fitted: `components_` (rows, orthonormal), `explained_variance_`, `explained_variance_ratio_`, `mean_`,
    `covariance_` (the released one), `n_components_`, `n_samples_`, `privacy_`. Released variances carry noise: small
    ones say little, and may be set to 0 because they came out negative. `transform` maps the rows it is given: its
    output is about those rows and is not private.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Dwork, Talwar, Thakurta and Zhang 2014; i.n.i.d. noise paper, section VI.B.
    """

    def __init__(
        self,
        n_components: float | None = None,
        *,
        epsilon: float,
        delta: float,
        feature_bound: float,
        center: bool = True,
        share: float = 0.1,
        release: str = "isometric",
        noise: str = "gaussian",
        adjacency: Adjacency = "zero-out",
        random_state: Any = None,
        unsafe: bool = False,
        progress: bool = False,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.center = center
        self.share = share
        self.release = release
        self.noise = noise
        self.adjacency = adjacency
        self.random_state = random_state
        self.unsafe = unsafe
        self.progress = progress

    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> PCA:
        """Fit to rows X (n, d): whatever `read_table` reads; y is not used."""
        refuse(unsupported)
        self._checked()
        table = read_table(self, X)
        wanted = self._wanted(table.columns)
        bounds = Bounds(self.feature_bound, 0.0, intercept_constant(self.feature_bound) if self.center else 0.0)
        data = Reading(table, bounds, self.progress)
        records, columns = data.records, table.columns
        if self.release == "clipped" and records > MOST_RECORDS:
            raise ValueError(f"release='clipped' takes at most 2^23 records, whose sums are exact, got {records}")
        rounding = gram_error(records, columns + 2) * bounds.row**2 * (1 + 2.0**-48)
        moments = SecondMoments(columns, self.feature_bound, self.adjacency, self.release, self.noise, rounding)
        mechanisms = [self._mechanism(moments.sensitivity(), 1 - self.share if self.center else 1.0)]
        if self.center:
            mechanisms.append(self._mechanism(_sums(columns, bounds, rounding, self.adjacency), self.share))
        certificate = self._certify(mechanisms)
        rng = self._rng()
        squares = (
            moments.clipped(_rows(table, self.feature_bound))
            if self.release == "clipped"
            else triangle(data.moments.gram[:columns, :columns])
        )
        released = matrix(mechanisms[0].release(squares, rng=rng, unsafe=self.unsafe).value) / records
        mean = np.zeros(columns)
        if self.center:
            sums = data.moments.gram[:columns, columns] / bounds.constant
            mean = np.asarray(mechanisms[1].release(sums, rng=rng, unsafe=self.unsafe).value) / records
        self._publish(released - np.outer(mean, mean), records, wanted)
        self.privacy_, self.mean_ = certificate, mean
        return self

    def transform(self, X: Any) -> Floats:
        """The coordinates of rows along the components."""
        check_is_fitted(self)
        rows = checked_rows(self, X, reset=False)
        return np.asarray(rows @ self.components_.T - self.mean_ @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows from their coordinates."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_)

    def _checked(self) -> None:
        self._claim()
        if not UNITS[0] < positive("feature_bound", self.feature_bound) < UNITS[1]:
            raise ValueError(f"feature_bound must lie between {UNITS[0]:g} and {UNITS[1]:g}: use other units")
        one_of("release", self.release, RELEASES)
        one_of("noise", self.noise, FAMILIES)
        if not 0 < positive("share", self.share) < 1:
            raise ValueError(f"share must lie in (0, 1), got {self.share!r}")
        if self.noise == "gaussian" and self.delta == 0:
            raise ValueError("delta must be > 0 for Gaussian noise: use noise='laplace', or allow a delta")
        if self.noise == "laplace" and self.delta > 0:
            raise ValueError("noise='laplace' is for delta = 0.0; with a delta Gaussian noise is smaller")

    def _wanted(self, columns: int) -> float:
        """The components asked for, checked against the columns."""
        if self.n_components is None:
            return columns
        if not isinstance(self.n_components, int | np.integer):
            share = real("n_components", self.n_components)
            if not 0 < share < 1:
                raise ValueError(f"n_components must be an integer or a share in (0, 1), got {self.n_components!r}")
            return share
        wanted = count("n_components", self.n_components)
        if wanted > columns:
            raise ValueError(f"n_components must be at most the number of features {columns}, got {wanted}")
        return wanted

    def _mechanism(self, sensitivity: Sensitivity, share: float) -> Additive:
        """The least-error mechanism that spends `share` of the claim: of mu^2, or of epsilon under Laplace noise."""
        if self.noise == "laplace":
            return calibrate("laplace", sensitivity, epsilon=self.epsilon * share * _SPENT, delta=0.0)
        whole = calibrate("gaussian", sensitivity, epsilon=self.epsilon, delta=self.delta)
        if share == 1:
            return whole
        scales = whole.law.scales / math.sqrt(share) / _SPENT
        law = Gaussian(scales) if scales.size > 1 else Gaussian(float(scales[0]), sensitivity.dim)
        return Additive(law, sensitivity, self.epsilon, self.delta)

    def _publish(self, covariance: Floats, records: int, wanted: float) -> None:
        """Fitted attributes, from what was released."""
        values, rows = principal(covariance)
        variances = np.maximum(values, 0.0)
        total = float(variances.sum())
        ratios = variances / total if total > 0 else np.zeros_like(variances)
        if wanted < 1:
            wanted = int(np.searchsorted(np.cumsum(ratios), wanted) + 1) if total > 0 else 1
        kept = min(int(wanted), len(rows))
        self.covariance_ = covariance
        self.components_ = rows[:kept]
        self.explained_variance_ = variances[:kept]
        self.explained_variance_ratio_ = ratios[:kept]
        self.n_components_ = self._n_features_out = kept
        self.n_samples_ = records

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _sums(columns: int, bounds: Bounds, rounding: float, adjacency: Adjacency) -> L2:
    """What one record can change in the sum of rows: its bound, twice that if replaced; and the rounding."""
    radius = bounds.feature * (2.0 if adjacency == "replace" else 1.0) + 2 * rounding / bounds.constant
    return L2(radius * (1 + 2.0**-48), columns, adjacency=adjacency)


def _rows(table: Table, bound: float) -> Iterator[Floats]:
    """Dense blocks of rows within the bound; rows that are not finite are zeros."""
    ball = L2(bound, dim=table.columns)
    for x, y in table.blocks():
        inside: Any = ball.clip(finite_records(x, y)[0], adjacency="zero-out")[0]
        yield inside.toarray() if hasattr(inside, "toarray") else inside
