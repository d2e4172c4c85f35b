"""What one person can change: a set of difference vectors, and the clip that enforces it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.documents import encode
from shapedp.boundary.values import sizes
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, numeric, one_of
from shapedp.sensitivity.rows import Rows, owner_mask

Adjacency = Literal["add-remove", "replace", "zero-out"]
ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace", "zero-out")


def layout(dim: int | None, shape: Sequence[int] | None) -> tuple[int, ...]:
    """The shape of a query given as `dim` (a vector) or as `shape` (a tensor)."""
    if (dim is None) == (shape is None):
        raise ValueError("give either dim (the query is a vector) or shape (it is a tensor)")
    if shape is None:
        return (count("dim", dim),)
    if not np.iterable(shape):
        raise TypeError(f"shape must be a sequence of integers >= 1, got {shape!r}")
    modes = sizes("shape", shape)
    if not modes:
        raise ValueError("shape must have at least one mode")
    return modes


def moving(name: str, bounds: Floats) -> Floats:
    """Bounds of which one is above 0 at least, read-only."""
    if not bounds.max() > 0:
        raise ValueError(f"{name} must have an entry > 0: a query nobody can change needs no noise")
    return frozen(bounds)


def flattened(name: str, values: ArrayLike) -> tuple[NDArray[Any], tuple[int, ...]]:
    """An array as a vector in C order, and its shape; a number stays one, to be refused as a vector."""
    array = numeric(name, values)
    return array.reshape(-1) if array.ndim else array, array.shape


class Sensitivity(ABC):
    """A symmetric convex set of differences v = f(D) - f(D') over neighbours D, D'.

    `shape` is that of the query's answer; differences are its entries in C order, `dim` of them.
    `adjacency` is the neighbour relation under which it was derived, or None where the user vouches for it.
    `whole` says that the answers are whole numbers; see `of_integers`.

    Example:
        >>> from shapedp import Box
        >>> rows, summed = Box([1.0, 1.0]).clip([[3.0, -0.5]], adjacency="replace")
        >>> rows, summed.profile
        (array([[ 1. , -0.5]]), array([2., 2.]))
    """

    kind: ClassVar[str]
    shape: tuple[int, ...]
    adjacency: Adjacency | None
    whole: bool = False

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return math.prod(self.shape)

    @abstractmethod
    def l2_reach(self, scales: Floats) -> tuple[float, float]:
        """Bounds on the largest |v/scales|_2 over the set; scales has one entry, or one per coordinate."""

    @abstractmethod
    def l1_reach(self, scales: Floats) -> tuple[float, float]:
        """Bounds on the largest |v/scales|_1 over the set."""

    @abstractmethod
    def extreme(self) -> Floats:
        """One difference vector on the boundary of the set, worst for noise that treats coordinates alike."""

    @abstractmethod
    def scaled(self, factor: float, adjacency: Adjacency | None) -> Sensitivity:
        """The set times a factor, under another neighbour relation."""

    @abstractmethod
    def fixed(self) -> NDArray[np.bool_]:
        """The coordinates no person can change."""

    @property
    def has_fixed(self) -> bool:
        """Whether there are any, told without laying the coordinates out."""
        return bool((self._widths() == 0).any())

    @abstractmethod
    def _widths(self) -> Floats:
        """The bounds that the set is made of, in its own order: a coordinate of bound 0 is fixed."""

    def of_integers(self) -> Sensitivity:
        """The same set for a query whose answers are whole numbers, such as counts; its bounds become whole, too.

        Noise on a grid then pays nothing for rounding its input: `L1(1.0, dim=8).of_integers()`. `release` takes
        arrays of integers only.
        """
        raise ValueError(f"whole numbers are known to L1 balls and boxes, not to the set {self.kind!r}")

    def _declared_whole(self) -> Self:
        object.__setattr__(self, "whole", True)
        return self

    def _fill(self, adjacency: Adjacency | None, **values: Any) -> None:
        """Sets the fields of a frozen set, the neighbour relation checked."""
        values["adjacency"] = one_of("adjacency", adjacency, (*ADJACENCIES, None))
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def unrounded(self, grid: Floats) -> bool:
        """Whether every answer lies on the grid (powers of two) already."""
        return self.whole and bool((grid <= 1).all())

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` restores an equal set."""
        data: dict[str, Any] = {"set": self.kind}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value = encode(value) if value.dtype.kind == "f" else value.tolist()
            data |= self._extent() if field.name == "shape" else {field.name: value}
        return {**data, "whole": True} if self.whole else data

    def _extent(self) -> dict[str, Any]:
        """`dim`, and `shape` where the query is a tensor, for `to_json`."""
        return {"dim": self.dim} if len(self.shape) == 1 else {"dim": self.dim, "shape": list(self.shape)}

    @abstractmethod
    def _clip(self, rows: Rows) -> Rows:
        """The rows moved into the set."""

    def clip(
        self, rows: Any, *, adjacency: Adjacency, owner: ArrayLike | None = None, max_rows: int | None = None
    ) -> tuple[Any, Sensitivity]:
        """Rows moved into this set, and the sensitivity of their sum.

        Dense (n, dim) or (n, *shape) arrays, and scipy sparse matrices (CSR out); float64 out. With `owner=` (an
        id per row) a person may own several rows: the first `max_rows` of each person are kept, the others become
        zero, and the sensitivity counts all that a person owns. A neighbour adds or removes a person ("add-remove"),
        turns their rows into zeros ("zero-out"), or exchanges them ("replace": twice the set).

        Guarantee: each clipped row lies in the set exactly, not up to rounding; entries are multiples of a
        power of two near 2^-30 of their bound, so that float64 sums of up to 2^23 rows are exact in any order.
        """
        one_of("adjacency", adjacency, ADJACENCIES)
        stacked = isinstance(rows, np.ndarray) and rows.shape[1:] == self.shape and len(self.shape) > 1
        with np.errstate(all="ignore"):  # an error of arithmetic would tell of a row
            table = Rows.read("rows", rows.reshape(len(rows), self.dim) if stacked else rows, self.dim)
            keep = owner_mask(owner, max_rows, table.count)
            clipped = self._clip(table)
            value = (clipped if keep is None else clipped.kept(keep)).value()
        factor = (2.0 if adjacency == "replace" else 1.0) * (1 if max_rows is None else max_rows)
        return value.reshape(-1, *self.shape) if stacked else value, self.scaled(factor, adjacency)
