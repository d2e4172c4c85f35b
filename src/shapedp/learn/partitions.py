"""Fits on Dask and Spark collections."""

from __future__ import annotations

from typing import Any

from shapedp.tables.partitions import Partitioned

__all__ = ["Partitioned", "fit"]


def fit(estimator: Any, x: Any, y: Any = None) -> Any:
    """`estimator.fit(x, y)` for a Dask array, a Dask data frame or a Spark data frame.

    The sums are computed where the records are: by Dask in threads or on the workers of the current
    `distributed.Client`, by Spark in the executors of the frame's session.

    Parameters
    ----------
    estimator: one that needs sums only: `LinearRegression`, `ElasticNet`, `PCA`, `LogisticRegression(solver="descent")`
        (or "mixing").
    x: a two-dimensional Dask array, a Dask data frame, or a Spark data frame at rest.
    y: the name of a column of x; for Dask also an array, of Dask or in memory.

    Returns
    -------
    The estimator, fitted.

    Guarantee: noise is drawn once, here, after the sums have arrived: a worker that is lost and computed again adds
    nothing to what is released. The sums are exact integers: where the partitions are multiples of 4096 rows (the last
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
    given = Partitioned(x)
    given.refuse_target(y)
    return estimator.fit(given, y)
