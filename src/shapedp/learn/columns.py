"""Steps before a model that learn a little from the records, by releases with a certificate of their own."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from shapedp.learn.base import PrivateEstimator, refuse
from shapedp.learn.public import dense_rows, ranges
from shapedp.learn.register import counted
from shapedp.learn.solvers.base import Draws
from shapedp.learn.statistics import CELLS, Claim, ColumnQuantiles, Ends, Sums
from shapedp.mechanisms import certify
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import one_of

QUARTILES = (0.25, 0.5, 0.75)
TO_DEVIATION = 1.349  # the distance of the quartiles of a normal law, in standard deviations


@dataclass(kw_only=True, eq=False, repr=False)
class ColumnStatistics(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator, ABC):  # type: ignore[misc]
    """What `PrivateScaler` and `PrivateImputer` share: public ranges, and releases about columns."""

    low: ArrayLike
    high: ArrayLike

    def _read(self, x: Any, options: dict[str, Any], choice: str, *known: str) -> tuple[Floats, Ends, Claim]:
        """Rows, ranges and the claim, checked; so is the option that names one of a few ways."""
        refuse(options)
        one_of(choice, getattr(self, choice), known)
        claim = self._claim()
        rows = dense_rows(self, x)
        ends = ranges(self.low, self.high, rows.shape[1])
        return rows, ends, Claim(*claim, rows.shape[1])

    def _sums(self, rows: Floats, ends: Ends, sums: Sums) -> tuple[Floats, Floats]:
        """Released means and standard deviations; leaves the certificate in `privacy_`."""
        mechanism = sums.mechanism
        certificate = self._required(certify(mechanism, epsilon=self.epsilon, delta=self.delta))
        value = Draws(self._rng(), self.unsafe).release(mechanism, sums.query(rows, ends))
        self.privacy_ = certificate
        return sums.means(value, len(rows), ends)

    def _quantiles(self, rows: Floats, ends: Ends, wanted: ColumnQuantiles) -> Floats:
        """Released quantiles, one row each; leaves the certificate in `privacy_`."""
        plan = wanted.plan
        subject = plan if wanted.claim.columns > 1 else wanted.mechanism
        certificate = self._required(certify(subject, epsilon=self.epsilon, delta=self.delta))
        found = wanted.release(rows, ends, Draws(self._rng(), self.unsafe))
        self.privacy_ = certificate
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateScaler(ColumnStatistics):
    """Columns less a released centre, over a released scale, under (epsilon, delta).

    Parameters
    ----------
    epsilon, delta: the claim of all columns together.
    low, high: the ends of the range of each column (a number, or one per column), from public knowledge. Cells beyond
        are clipped, here and in `transform`.
    by: "moments": mean and standard deviation, one Gaussian release. "quantiles": the median, and the distance of the
        quartiles over 1.349, drawn exactly (also with delta=0.0), on a grid of 1024 cells.
    missing: whether many cells may be missing: how many are there is then released too. If False, the moments count a
        missing cell as the middle of the range. Quantiles never count one.
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.

    Fitted: `center_`, `scale_` (at least what can be told from noise), `privacy_` (the certificate).

    Guarantee: see `PrivateEstimator`. What `transform` gives for a row depends on that row and on what was released; a
    missing cell stays missing.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).normal(40.0, 10.0, (20_000, 1))
    >>> scaler = PrivateScaler(epsilon=0.5, delta=1e-6, low=0, high=100, random_state=0).fit(ages)
    >>> scaler.center_.round(), scaler.scale_.round(), scaler.privacy_.verdict
    (array([40.]), array([10.]), 'certified')
    """

    by: str = "moments"
    missing: bool = False

    @counted
    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> PrivateScaler:
        """Fit to rows X (n, d): an array or a frame; y is not used."""
        rows, ends, claim = self._read(X, unsupported, "by", "moments", "quantiles")
        if self.by == "moments":
            self.center_, self.scale_ = self._sums(rows, ends, Sums(claim, True, bool(self.missing)))
            return self
        first, self.center_, third = self._quantiles(rows, ends, ColumnQuantiles(claim, QUARTILES))
        self.scale_ = np.maximum(third - first, (ends[1] - ends[0]) / CELLS) / TO_DEVIATION
        return self

    def transform(self, X: Any) -> Floats:
        """Cells clipped to their range, less the centre, over the scale."""
        check_is_fitted(self, "scale_")
        ends = ranges(self.low, self.high, self.n_features_in_)
        return np.asarray((np.clip(dense_rows(self, X, reset=False), *ends) - self.center_) / self.scale_)

    def inverse_transform(self, X: Any) -> Floats:
        """Values from what `transform` gave."""
        check_is_fitted(self, "scale_")
        return np.asarray(np.asarray(X, dtype=np.float64) * self.scale_ + self.center_)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateImputer(ColumnStatistics):
    """Missing cells filled with a released mean or median of their column, under (epsilon, delta).

    Where a public value will do, `PublicScaler(low, high, missing=...)` costs nothing.

    Parameters
    ----------
    epsilon, delta: the claim of all columns together.
    low, high: the ends of the range of each column (a number, or one per column), from public knowledge. Cells beyond
        are clipped, here and in `transform`.
    strategy: "mean" (sums and counts of the cells that are there, one Gaussian release) or "median" (drawn exactly,
        also with delta=0.0, on a grid of 1024 cells).
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.

    Fitted: `fill_` (one value per column), `privacy_` (the certificate).

    Guarantee: see `PrivateEstimator`. What `transform` gives for a row depends on that row and on what was released. A
    cell that is infinite or no number is missing.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.full((10_000, 1), 40.0)
    >>> ages[::4] = np.nan
    >>> imputer = PrivateImputer(epsilon=0.5, delta=1e-6, low=0, high=100, random_state=0).fit(ages)
    >>> imputer.transform([[np.nan], [18.0]]).round()
    array([[40.],
           [18.]])
    """

    strategy: str = "mean"

    @counted
    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> PrivateImputer:
        """Fit to rows X (n, d): an array or a frame; y is not used."""
        rows, ends, claim = self._read(X, unsupported, "strategy", "mean", "median")
        if self.strategy == "mean":
            self.fill_ = self._sums(rows, ends, Sums(claim, False, True))[0]
        else:
            self.fill_ = self._quantiles(rows, ends, ColumnQuantiles(claim, (0.5,)))[0]
        return self

    def transform(self, X: Any) -> Floats:
        """Cells clipped to their range, missing ones filled."""
        check_is_fitted(self, "fill_")
        ends = ranges(self.low, self.high, self.n_features_in_)
        rows = np.clip(dense_rows(self, X, reset=False), *ends)
        return np.asarray(np.where(np.isnan(rows), self.fill_, rows))
