"""What a loader returns, and the errors of loading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


class MissingDataError(FileNotFoundError):
    """A data file is not at hand; the message names the file, its official source and its licence.

    >>> from shapedp.papers.datasets import load_mnist
    >>> load_mnist("no-such-folder")
    Traceback (most recent call last):
    shapedp.papers.datasets.base.MissingDataError: MNIST: file mnist/train-images-idx3-ubyte.gz not found: ...
    """


class ChecksumError(ValueError):
    """A data file differs from the one the loader was written for.

    >>> issubclass(ChecksumError, ValueError)
    True
    """


class DataFormatError(ValueError):
    """A file is not in the format it should be in: cut short, malformed, or of unexpected content.

    >>> from shapedp.papers.datasets.formats import read_idx
    >>> read_idx(b"")
    Traceback (most recent call last):
    shapedp.papers.datasets.base.DataFormatError: not an IDX file: it begins with nothing
    """


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows, targets and what is publicly known about them.

    Parameters
    ----------
    x: one row (or image) per record, an array or a scipy.sparse CSR array.
    y: one target per record; class codes index `classes` where that is given.
    splits: named parts of the rows, as slices; the official ones where they exist.
    bounds: (lower, upper), each broadcastable to one record of x; infinite where nothing is documented, None where
        nothing at all is. They come from the documentation of the data set and are never measured.
    target_bounds: the same for y.
    extra: further columns, aligned with the rows unless the loader says otherwise.

    Guarantee: neither the encoding nor the bounds depend on the records.

    >>> Dataset("toy", np.zeros((4, 2)), np.zeros(4), splits={"train": slice(0, 3)}).split("train")[0].shape
    (3, 2)
    """

    name: str
    x: Any
    y: NDArray[Any]
    feature_names: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    splits: Mapping[str, slice] = field(default_factory=dict)
    bounds: Bounds | None = None
    target_bounds: tuple[float, float] | None = None
    description: str = ""
    citation: str = ""
    licence: str = ""
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.x.shape) == 0:
            raise ValueError("x must hold one row per record, got a single number")
        rows, width = self.x.shape[0], self.x.shape[1:]
        if self.y.shape != (rows,):
            raise ValueError(f"y must hold one target per row, {rows} in all, got shape {self.y.shape}")
        if self.feature_names is not None and (len(self.feature_names),) != width:
            raise ValueError(f"feature_names must name {width} columns, got {len(self.feature_names)} names")
        object.__setattr__(self, "splits", MappingProxyType(dict(self.splits)))
        object.__setattr__(self, "extra", MappingProxyType(dict(self.extra)))

    @property
    def data(self) -> Any:
        """The rows: another name of x."""
        return self.x

    @property
    def target(self) -> NDArray[Any]:
        """The targets: another name of y."""
        return self.y

    def split(self, name: str) -> tuple[Any, NDArray[Any]]:
        """(x, y) of one named part, as views."""
        if name not in self.splits:
            known = ", ".join(map(repr, self.splits)) or "none"
            raise KeyError(f"{self.name} has no part {name!r}; its parts: {known}")
        part = self.splits[name]
        return self.x[part], self.y[part]

    def __repr__(self) -> str:
        parts = f", parts {', '.join(self.splits)}" if self.splits else ""
        return f"Dataset({self.name}: x {self.x.shape} {self.x.dtype}, y {self.y.dtype}{parts})"


def parts(sizes: Iterable[int], names: Iterable[str] = ("train", "test")) -> dict[str, slice]:
    """Consecutive parts of the rows, of these sizes."""
    ends = list(accumulate(sizes, initial=0))
    return {name: slice(*pair) for name, pair in zip(names, pairwise(ends), strict=True)}


def limits(lower: ArrayLike, upper: ArrayLike) -> Bounds:
    """Bounds as read-only float64 arrays."""
    low, high = np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)
    if not np.all(low <= high):
        raise ValueError("lower bounds must not exceed upper bounds")
    low.flags.writeable = high.flags.writeable = False
    return low, high
