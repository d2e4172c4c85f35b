"""Principal components of a privately released covariance."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateModel, checked_rows, read_table, refuse
from shapedp.learn.moments import Bounds, Reading, in_units
from shapedp.learn.register import counted
from shapedp.learn.solvers.cd import MOST_RECORDS
from shapedp.learn.solvers.covariance import COVARIANCE, Covariance, Problem, SecondMoments, principal
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, finite, positive, real
from shapedp.numerics.gram import gram_error
from shapedp.numerics.outward import ABOVE_32


@dataclass(kw_only=True, eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateModel):  # type: ignore[misc]
    """Principal components from one noisy release of X^T X (and one of the mean), under (epsilon, delta).

    `transform` maps the rows it is given: its output is about those rows and is not private.

    Parameters
    ----------
    n_components: a number of components, a share in (0, 1) of the released variance, or None for all.
    epsilon, delta: the claim.
    feature_bound: a bound on |x|_2, from knowledge about the data, never from the data. Rows beyond it are scaled
        down to it.
    center: subtract the released mean, for `share` of the budget.
    release: "isometric" (entries off the diagonal with half the variance: best), "iid" (one scale) or "clipped" (the
        entries of each x x^T clipped).
    noise: "gaussian" or, for delta = 0, "laplace".
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.
    progress: show a progress bar.

    Fitted: `components_` (rows, orthonormal), `explained_variance_`, `explained_variance_ratio_`, `mean_`,
    `covariance_` (the released one), `n_components_`, `n_samples_`, `privacy_` (the certificate). Released variances
    carry noise: small ones say little, and negative ones are set to 0.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Dwork, Talwar, Thakurta and Zhang 2014; i.n.i.d. noise paper, section VI.B.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.outer(np.linspace(-1, 1, 10_000), [0.6, 0.8])
    >>> model = PCA(1, epsilon=1.0, delta=1e-6, feature_bound=1.0, random_state=0).fit(x)
    >>> model.components_.round(1)
    array([[0.6, 0.8]])
    """

    n_components: float | None = field(default=None, kw_only=False)
    feature_bound: float
    center: bool = True
    share: float = 0.1
    release: str = "isometric"
    noise: str = "gaussian"

    @counted
    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> PCA:
        """Fit to rows X (n, d): whatever `read_table` reads; y is not used."""
        refuse(unsupported)
        self._checked()
        table = read_table(self, X)
        columns, wanted = table.columns, self._wanted(table.columns)
        bounds = replace(Bounds.of(self.feature_bound, 1.0, intercept=self.center), target=0.0)
        data = Reading(table, bounds, self.progress)
        if self.release == "clipped" and data.records > MOST_RECORDS:
            raise ValueError(f"release='clipped' takes at most 2^23 records, whose sums are exact, got {data.records}")
        rounding = gram_error(data.records, columns + 2) * bounds.row**2 * ABOVE_32
        moments = SecondMoments(columns, self.feature_bound, self.adjacency, self.release, self.noise, rounding)
        share = self.share if self.center else 0.0
        problem = Problem(moments, bounds, data.records, self.epsilon, self.delta, share)
        found = self._solved({"moments": COVARIANCE}, "moments", problem, lambda: (problem, data))
        assert isinstance(found, Covariance)
        self.mean_ = found.mean
        self._publish(found.weights, data.records, wanted)
        return self

    def transform(self, X: Any) -> Floats:
        """The coordinates of rows along the components."""
        check_is_fitted(self)
        rows = checked_rows(self, X, reset=False)
        return np.asarray(rows @ self.components_.T - self.mean_ @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows from their coordinates."""
        check_is_fitted(self)
        return np.asarray(finite("X", X) @ self.components_ + self.mean_)

    def _checked(self) -> None:
        self._claim()
        in_units("feature_bound", self.feature_bound)
        SecondMoments(1, self.feature_bound, self.adjacency, self.release, self.noise)  # checks the two names
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
