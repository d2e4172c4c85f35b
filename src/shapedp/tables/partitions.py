"""Dask and Spark collections: their records stay where they are, only sums leave the workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from shapedp.boundary.columns import of_package
from shapedp.tables.dask import dask_table
from shapedp.tables.pieces import RECORDS, Distributed, PieceError
from shapedp.tables.spark import spark_table

__all__ = ["Distributed", "Partitioned", "PieceError"]


class Partitioned:
    """A Dask array, a Dask data frame or a Spark data frame in the form that estimators read.

    Parameters
    ----------
    x: a two-dimensional Dask array, a Dask data frame or a Spark data frame.

    Examples
    --------
    >>> import dask.array
    >>> Partitioned(dask.array.ones((10, 3), chunks=(5, 3))).shape  # partitions (Spark: not known, None), columns
    (2, 3)
    """

    def __init__(self, x: Any) -> None:
        self._x, self._spark = x, of_package(x, "pyspark") and hasattr(x, "mapInArrow")
        self.shape: tuple[Any, ...]
        if self._spark:
            self.shape = (None, len(x.columns))
            return
        if getattr(x, "ndim", 0) != 2 or not hasattr(x, "to_delayed"):
            known = "a two-dimensional Dask array, a Dask data frame or a Spark data frame"
            raise TypeError(f"x must be {known}, got {type(x).__name__}")
        self.shape = (len(x.chunks[0]) if hasattr(x, "chunks") else x.npartitions, x.shape[1])

    def refuse_target(self, y: Any) -> None:
        """Refuse a target that the collection cannot have; None is left to the estimator."""
        if self._spark and not (y is None or isinstance(y, str)):
            raise TypeError("y must be the name of a column: the rows of a Spark data frame have no order")

    def as_table(self, y: Any, classes: Sequence[Any] | None) -> Distributed:
        """The collection with the target y; what `open_table` asks for."""
        return (spark_table if self._spark else dask_table)(self._x, y, classes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        raise TypeError(RECORDS)
