"""Noise on the integers of a grid: the input is rounded to the grid, the noise is drawn in integer arithmetic."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.noise.base import Law, Traits
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import numeric, vector
from shapedp.sampling import Source

_REACH = 2.0**62
_MOST = 2**50
_FINE = 1000  # grid steps per scale from which on even and odd points are equally likely


class GridLaw(Law):
    """Independent coordinates, each a whole number of steps of `grid`."""

    grid: Floats

    def _fill(self, **values: ArrayLike) -> None:
        """Sets numbers per coordinate: whole ones, and powers of two for the grid."""
        for name, value in values.items():
            array = vector(name, np.atleast_1d(numeric(name, value)), least=0.0)
            if name == "grid" and (np.frexp(array)[0] != 0.5).any():
                raise ValueError("grid must hold powers of two")
            if name != "grid" and ((array != np.rint(array)).any() or array.max() > _MOST):
                raise ValueError(f"{name} must hold whole numbers of at most 2^50")
            object.__setattr__(self, name, frozen(array))

    @property
    @abstractmethod
    def steps_per_scale(self) -> Floats:
        """The scale of each coordinate in grid steps."""

    @abstractmethod
    def _draw(self, shape: tuple[int, ...], source: Source) -> NDArray[np.int64]:
        """The noise in grid steps, for an array whose last axis has length dim."""

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        x = numeric("x", x)
        multiple = np.asarray(x, dtype=np.float64) / self.grid
        if not (np.abs(multiple) < _REACH).all():
            raise ValueError("x must be finite and below 2^62 grid steps of the mechanism")
        total = (np.rint(multiple).astype(np.int64) + self._draw(x.shape, source)).astype(np.float64) * self.grid
        return np.where(self.noisy(), total, x).astype(np.float32 if x.dtype == np.float32 else np.float64)

    def noisy(self) -> NDArray[np.bool_]:
        return np.broadcast_to(self.steps_per_scale > 0, self.dim)

    def traits(self) -> Traits:
        fine = bool(self.steps_per_scale.min() > _FINE)
        return Traits(independent=True, fair=True, grid=self.grid, parity=fine)

    def centre(self, x: Floats) -> Floats:
        return np.asarray(np.rint(x / self.grid) * self.grid)
