"""Release of x + noise on a grid: the real-valued sum, rounded exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import numeric
from shapedp.numerics.outward import ROUNDINGS_8, ROUNDINGS_8192, WIDER
from shapedp.numerics.threads import each

from .exact import nearest
from .normals import ADD_NORMALS, table
from .quantile import GAUSSIAN, QUANTILES, Quantile
from .sources import Source

Block = tuple[slice, slice]

GRID_BITS = 16  # default grid: the power of two 2^16 to 2^17 times finer than the scale
_BLOCK = 1 << 15
_SMALL_WORD = 1 << 40  # u below 2^-24: decided exactly
_MARGIN = ROUNDINGS_8192  # error of the float64 noise, in scales, for u of at least 2^-24
_LIMIT = 2.0**1000
_SEEN = 2.0**-19  # a margin above it leaves some doubtful sum in most blocks
_SINGLE_LIMIT = 2.0**100
_REACH = 2.0**62
_FINEST, _COARSEST = 2.0**30, WIDER  # admitted scale / grid


def grid_for(scale: ArrayLike) -> Floats:
    """Return the default grid, 2^(floor(log2 scale) - 16), and 1 where the scale is 0.

    Guarantee: a power of two, a function of the scale alone.

    Parameters: the scale of the noise, a number or an array.
    Returns: the grid, in the same shape.

    Example:
        >>> float(grid_for(1.0)) == 2.0**-16
        True
    """
    scales = _scales(scale)
    return _default_grid(scales.reshape(-1)).reshape(scales.shape)


def rounded_sum(
    x: NDArray[Any], quantile: str | Quantile, scale: ArrayLike, grid: ArrayLike | None, source: Source
) -> NDArray[Any]:
    """Return grid * round((x + scale * noise) / grid), coordinate by coordinate.

    `scale` and `grid` are numbers or arrays of x's trailing shape; `grid=None` means `grid_for(scale)`.
    Where the scale is 0, x is returned as it is. float32 gives float32, other real types float64.

    Guarantee: each value is a post-processing of the real-valued x + scale * noise (total-variation error 0
    given uniform bits and the accuracy of `Quantile.magnitude`), so rounding costs no privacy. For
    u >= 2^-24 the float64 sum errs by less than 2^-40 scale/grid + 2^-50 grid steps: u is off by a
    relative 2^-41 + 2^-52, hence the quantile by 1.27 (2^-41 + 2^-52) + 2^-44, product and sum by 2^-48.
    Sums that close to a rounding boundary, and all smaller u, are decided in exact arithmetic. So every route that
    keeps to these errors gives the same values: numpy's, and for many Gaussian numbers the one of `normals`.
    Reference: Mironov (2012), on the least significant bits of floating-point releases.

    Returns: the noisy values, in the shape of x.

    Example:
        >>> from shapedp.sampling import SecureSource
        >>> noisy = rounded_sum(np.zeros(3), "gaussian", 1.0, None, SecureSource())
        >>> bool((noisy / grid_for(1.0) % 1 == 0).all())
        True
    """
    return _prepare(x, quantile, scale, grid, source).run()


@dataclass(frozen=True)
class _Job:
    """A validated release: x as rows by columns; scale and grid of one element or one per column."""

    x: NDArray[Any]
    shape: tuple[int, ...]
    law: Quantile
    scale: Floats
    grid: Floats | None
    source: Source
    margin: float
    small_word: int = _SMALL_WORD

    def run(self) -> NDArray[Any]:
        """Check every block of x, then release every block: in threads when there are many; a simulation in order."""
        out = np.empty_like(self.x)
        if out.size:
            blocks, threads = self._blocks(), out.size // (8 * _BLOCK)
            each(blocks, lambda: self._check, threads)
            fused = self._fused()
            each(blocks, lambda: self._release(out, fused), threads if self.source.secure else 1)
        return out.reshape(self.shape)

    def _fused(self) -> Callable[..., Any] | None:
        """The compiled loop that adds Gaussian noise, where it is there and worth it."""
        return ADD_NORMALS.here(self.x.size) if self.law == GAUSSIAN and self.margin < _SEEN else None

    def _blocks(self) -> list[Block]:
        """Cut x into blocks of about _BLOCK elements."""
        rows, columns = self.x.shape
        width = min(columns, _BLOCK)
        height = max(1, _BLOCK // width)
        places = itertools.product(range(0, rows, height), range(0, columns, width))
        return [(slice(top, top + height), slice(left, left + width)) for top, left in places]

    def _columns(self, columns: slice) -> tuple[Floats, Floats]:
        """Return scale and grid of these columns; the grid is 1 where the scale is 0."""
        scale = self.scale if self.scale.size == 1 else self.scale[columns]
        if self.grid is None:
            return scale, _default_grid(scale)
        grid = self.grid if self.grid.size == 1 else self.grid[columns]
        return scale, np.where(scale == 0, 1.0, grid)

    @np.errstate(all="ignore")
    def _check(self, block: Block) -> None:
        """Raise unless x is finite and within reach of the grid."""
        x = self.x[block]
        limit = _LIMIT if x.dtype == np.float64 else 2.0**127
        low, high = float(x.min()), float(x.max())
        if not (-limit <= low and high <= limit):
            raise ValueError(f"x must be finite and at most {limit:.4g} in magnitude; clip it first")
        scale, grid = self._columns(block[1])
        if max(-low, high) < _REACH * float(grid.min()):
            return
        if np.any((np.abs(x) >= _REACH * grid) & (scale > 0)):
            raise ValueError("x must be below 2^62 grid steps in magnitude; clip it, or pass a coarser grid")

    def _release(self, out: NDArray[Any], fused: Callable[..., Any] | None) -> Callable[[Block], None]:
        """Return the function that fills one block of out, with scratch of its own."""
        scratch = np.empty((4, min(_BLOCK, self.x.size)))
        edge, least = 0.5 - self.margin, self.small_word * 2.0**-63

        @np.errstate(all="ignore")
        def release(block: Block) -> None:
            x = self.x[block]
            scale, grid = self._columns(block[1])
            noise, part, whole, step = (a[: x.size].reshape(x.shape) for a in scratch)
            words = self.source.words(x.size).view(np.int64)
            if fused is not None:
                flat = x.reshape(-1), scale / grid, grid, table(), out[block].reshape(-1)
                if fused(words, *flat, edge, least):
                    return
            words = words.reshape(x.shape)
            np.add(words, 0.5, out=part)
            np.multiply(part, 2.0**-64, out=part)
            np.abs(part, out=noise)
            small = float(noise.min()) * 2.0**64 < 2 * self.small_word
            self.law.magnitude(noise)
            np.copysign(noise, part, out=noise)
            np.multiply(noise, scale / grid, out=noise)
            np.divide(x, grid, out=part)
            np.rint(part, out=whole)
            np.subtract(part, whole, out=part)
            np.add(noise, part, out=noise)
            np.rint(noise, out=step)
            np.add(whole, step, out=whole)
            np.subtract(noise, step, out=noise)
            if small or float(noise.max()) > edge or float(noise.min()) < -edge:
                doubtful = (np.abs(noise) > edge) | ((words < self.small_word) & (words >= -self.small_word))
                self._decide(doubtful & (scale > 0), x, scale, grid, words, whole)
            np.add(whole, 0.0, out=whole)  # no negative zero: its sign would tell about x
            np.multiply(whole, grid, out=out[block], casting="same_kind")
            if not scale.all():
                np.copyto(out[block], x, where=scale == 0)

        return release

    def _decide(
        self,
        doubtful: NDArray[np.bool_],
        x: NDArray[Any],
        scale: Floats,
        grid: Floats,
        words: NDArray[np.int64],
        whole: Floats,
    ) -> None:
        """Replace the doubtful entries of `whole` by exact ones."""
        scales, grids = np.broadcast_to(scale, x.shape), np.broadcast_to(grid, x.shape)
        for at in zip(*np.nonzero(doubtful), strict=True):
            lane = float(x[at]), float(scales[at]), float(grids[at])
            whole[at] = nearest(*lane, int(words[at]), int(whole[at]), self.law, self.source)


def _prepare(
    x: NDArray[Any], quantile: str | Quantile, scale: ArrayLike, grid: ArrayLike | None, source: Source
) -> _Job:
    """Validate everything but the entries of x, which the job checks before it draws."""
    values = numeric("x", x)
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64, copy=values.dtype.kind != "f")
    law = QUANTILES.get(quantile) if isinstance(quantile, str) else quantile
    if law is None:
        raise ValueError(f"quantile must be one of {sorted(QUANTILES)} or a Quantile, got {quantile!r}")
    if not hasattr(source, "words") or not hasattr(source, "secure"):
        raise TypeError(f"source must be a Source such as SecureSource(), got {type(source).__name__}")
    scales = _scales(scale)
    if values.dtype == np.float32 and scales.size and scales.max() > _SINGLE_LIMIT:
        raise ValueError(f"scale must be at most 2^100 for float32 values, got {scales.max()!r}; use float64")
    grids = None if grid is None else _grids(grid)
    ratio = 2.0 ** (GRID_BITS + 1) if grids is None else _ratio(scales, grids)
    trailing: tuple[int, ...] = ()
    for name, part in (("scale", scales), ("grid", grids)):
        if part is not None and part.ndim:
            trailing = part.shape
            if part.ndim > values.ndim or trailing != values.shape[values.ndim - part.ndim :]:
                raise ValueError(f"{name} must be a number or match x's trailing shape {values.shape}, got {trailing}")
    columns = int(np.prod(trailing, dtype=np.int64)) if trailing else values.size
    rows = values.size // columns if columns else 0
    table, steps = np.ascontiguousarray(values).reshape(rows, columns), None if grids is None else grids.reshape(-1)
    margin = ratio * _MARGIN + ROUNDINGS_8
    return _Job(table, values.shape, law, scales.reshape(-1), steps, source, margin)


def _scales(scale: ArrayLike) -> Floats:
    scales = np.asarray(numeric("scale", scale), dtype=np.float64, order="C")
    if scales.size and not (scales.min() >= 0 and scales.max() <= _LIMIT):
        raise ValueError("scale must be finite, >= 0 and at most 2^1000")
    if scales.size and scales.min() < 1 / _LIMIT and np.any((scales > 0) & (scales < 1 / _LIMIT)):
        raise ValueError("scale must be 0 or at least 2^-1000")
    return scales


def _grids(grid: ArrayLike) -> Floats:
    grids = np.asarray(numeric("grid", grid), dtype=np.float64, order="C")
    fraction = np.atleast_1d(grids).view(np.uint64) & np.uint64((1 << 52) - 1)
    if grids.size and not (grids.min() >= 2.0**-1020 and grids.max() <= 2.0**1020 and not fraction.any()):
        raise ValueError("grid must hold powers of two between 2^-1020 and 2^1020, such as grid_for(scale)")
    return grids


def _default_grid(scales: Floats) -> Floats:
    exponents = scales.view(np.uint64) & np.uint64(0x7FF << 52)
    grid = exponents.view(np.float64)
    np.multiply(grid, 2.0**-GRID_BITS, out=grid)
    grid[scales == 0] = 1.0
    return grid


def _ratio(scales: Floats, grids: Floats) -> float:
    """Return the largest scale / grid, checked."""
    if scales.ndim and grids.ndim and scales.shape != grids.shape:
        raise ValueError(f"grid must be a number or have the shape of scale {scales.shape}, got {grids.shape}")
    with np.errstate(all="ignore"):
        ratios = (scales / grids)[np.broadcast_to(scales > 0, np.broadcast_shapes(scales.shape, grids.shape))]
    if ratios.size and not (ratios.min() >= _COARSEST and ratios.max() <= _FINEST):
        raise ValueError("grid must lie between scale / 2^30 and scale * 2^20; grid_for(scale) is the default")
    return float(ratios.max()) if ratios.size else 0.0
