"""Fits on Dask collections."""

from __future__ import annotations

from typing import Any

from shapedp.tables.partitions import Partitioned

__all__ = ["Partitioned", "fit"]


def fit(estimator: Any, x: Any, y: Any = None) -> Any:
    """`estimator.fit(x, y)` for a Dask array or data frame.

    The sums are computed where Dask runs: in threads, or on the workers of the current `distributed.Client`.

    Parameters
    ----------
    estimator: one that needs sums only: `LinearRegression`, `ElasticNet`, `PCA`, `LogisticRegression(solver="descent")`
        (or "mixing").
    x: a two-dimensional Dask array, or a Dask data frame.
    y: a Dask array, an array in memory, or the name of a column of x.

    Returns
    -------
    The estimator, fitted.

    Guarantee: noise is drawn once, here, after the sums have arrived: a worker that is lost and computed again adds
    nothing to what is released. The sums are exact integers: where the chunks are multiples of 4096 rows (the last
    one free) the result has the bits of a local fit, otherwise it differs within `Moments.error`.

    Examples
    --------
    >>> import dask.array
    >>> from shapedp.learn import PCA
    >>> x = dask.array.ones((1000, 2), chunks=(500, 2))
    >>> fit(PCA(1, epsilon=1.0, delta=1e-6, feature_bound=2.0), x).components_.shape
    (1, 2)
    """
    if getattr(estimator, "classes", ()) is None:
        raise ValueError("classes must be given: labels are not collected from the workers")
    return estimator.fit(Partitioned(x), y)
