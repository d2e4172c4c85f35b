"""Gaussian noise on tensors whose covariance is a Kronecker product: one small matrix per mode."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.documents import described
from shapedp.boundary.values import sizes
from shapedp.noise.base import Law, of_order, registered
from shapedp.noise.gaussian import Gaussian, largest_mu, normal_half_width, normal_moment
from shapedp.noise.request import DoesNotApplyError, Request
from shapedp.noise.rotation import Mode
from shapedp.noise.tensor_reach import tensor_loss
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import finite, nonnegative, numeric
from shapedp.numerics.modes import multiply, outer, replace_mode
from shapedp.numerics.outward import ABOVE_WIDE, ROUNDINGS_8192, WIDER
from shapedp.privacy.losses import GaussianLoss
from shapedp.sampling import Source, grid_for, rounded_sum
from shapedp.sensitivity import L1, L2, Box, Sensitivity, Slices

SLACK = WIDER  # what rounding of the rotated input may add to mu
_UP = 1 + 2.0**-34  # beyond what the loss allows for rounding
_ALIKE = ROUNDINGS_8192
_SLAB = 1 << 20  # entries whose scales are laid out at a time
_SPAN = 400  # scales lie between 2^-400 and 2^400: squares neither overflow nor vanish


@registered(family="tensor", options=("factors",))
@dataclass(frozen=True, eq=False, init=False)
class TensorGaussian(Law):
    """Z = N x_1 U_1 ... x_K U_K, N standard normal: `TensorGaussian([U_1, 28, [1.0, 0.5]])`.

    A factor is a matrix (square or rectangular), a diagonal, or a size (identity). Only U_k U_k^T matters: a
    matrix is kept as its axes and scales, so K small matrices describe any tensor.

    Guarantee: `add_to` releases a function of R x + s z alone, where R is the exact product of the rotations
    kept here and s z independent Gaussian noise, drawn and rounded exactly. R x is computed in fixed-point
    arithmetic; what that rounding adds to mu is at most `slack`, whatever x. Turning back is post-processing.

    Parameters: `factors`, one per mode, and `scale`, which multiplies all.

    Example:
        >>> TensorGaussian([2, [1.0, 0.5]]).variances()
        array([1.  , 0.25, 1.  , 0.25])
    """

    kind: ClassVar[str] = "tensor-gaussian"
    phrase: ClassVar[str] = "Gaussian noise whose covariance is a product of one small matrix per mode of the tensor"
    modes: tuple[Mode, ...]

    def __init__(self, factors: Sequence[Any], *, scale: float = 1.0) -> None:
        modes, scale = [Mode.of(factor) for factor in factors], nonnegative("scale", scale)
        if not modes:
            raise ValueError("factors must name at least one mode")
        sizes("factors", [mode.size for mode in modes])
        first = Mode(frozen(modes[0].scales * scale), modes[0].rotation)
        object.__setattr__(self, "modes", (first, *modes[1:]))
        ends = [mode.exponents() for mode in self.modes]
        ends.append((sum(low for low, _ in ends), sum(high for _, high in ends)))
        if not all(-_SPAN <= low <= high <= _SPAN for low, high in ends):
            raise ValueError("the noise's scales must lie between 2^-400 and 2^400: measure the query in other units")

    def times(self, factor: float) -> TensorGaussian:
        """The same law with every scale multiplied."""
        return TensorGaussian(self.modes, scale=factor)

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return tuple(mode.size for mode in self.modes)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

    @property
    def turned(self) -> bool:
        """Whether any mode has axes of its own."""
        return any(mode.rotation is not None for mode in self.modes)

    @property
    def scales(self) -> Floats:
        """The standard deviation of each coordinate."""
        return outer([mode.deviations() for mode in self.modes]).reshape(-1)

    def variances(self) -> Floats:
        return outer([mode.variances() for mode in self.modes]).reshape(-1)

    def weighted_second_moment(self, weights: Floats | None) -> float:
        """sum_i w_i E n_i^2; without weights prod_k |U_k|_F^2.

        Reference: tensor-valued queries, Theorem B.1.
        """
        sums = [mode.variances() for mode in self.modes]
        if weights is None:
            return math.prod(float(one.sum()) for one in sums)
        total = self._weights(weights).reshape(self.shape)
        for one in reversed(sums):
            total = total @ one
        return float(total)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        return self.scales**p * normal_moment(p)

    def marginal_scales(self) -> Floats:
        return self.scales

    def half_widths(self, confidence: float) -> Floats:
        return self.scales * normal_half_width(confidence)

    def colorize(self, z: ArrayLike) -> Floats:
        """A square root of the covariance times z: turns standard normal noise into this law's."""
        return self.transformed(z, [mode.root for mode in self.modes])

    def whiten(self, x: ArrayLike) -> Floats:
        """The inverse of `colorize`: |whiten(v)|_2 is what privacy sees of a difference v."""
        return self.transformed(x, [mode.whitener for mode in self.modes])

    def transformed(self, x: ArrayLike, matrices: Sequence[Floats]) -> Floats:
        """x times one matrix per mode."""
        work = np.array(finite("x", x), dtype=np.float64, order="C")
        if work.shape[max(work.ndim - len(self.shape), 0) :] != self.shape and work.shape[-1:] != (self.dim,):
            raise ValueError(f"x must end in the shape {self.shape} or in {self.dim} entries, got {work.shape}")
        self._multiply(work, matrices)
        return work

    def _multiply(self, work: Floats, matrices: Sequence[Floats | None]) -> None:
        """One product per mode, in place."""
        for k, matrix in enumerate(matrices):
            if matrix is not None:
                replace_mode(work, self.shape, k, lambda block, matrix=matrix: multiply(matrix, block))  # type: ignore[misc]

    def log_density(self, x: Floats) -> Floats:
        white = self.whiten(x).reshape(*np.shape(x)[:-1], self.dim)
        log_det = 0.0
        for mode in self.modes:
            turn = 0.0 if mode.rotation is None else mode.rotation.log_determinant
            log_det += self.dim // mode.size * (float(np.log(mode.scales).sum()) - turn)
        return np.asarray(-0.5 * np.square(white).sum(-1) - log_det - 0.5 * self.dim * math.log(2 * math.pi))

    @cached_property
    def step(self) -> float:
        """The grid of the rotated input: the largest power of two for which `slack` stays below 2^-20."""
        return 2.0 ** math.floor(math.log2(SLACK / self._steps_to_mu)) if self.turned else 0.0

    @property
    def slack(self) -> float:
        """What rounding of the rotated input can add to mu; 0 without rotations."""
        return self.step * self._steps_to_mu if self.turned else 0.0

    @cached_property
    def _steps_to_mu(self) -> float:
        """A bound on sqrt(sum_i (e_i/s_i)^2) where e is the difference of two rounding errors, in steps.

        Each rounding moves each entry by at most half a step per product it adds up: two inputs differ by twice
        that, in L2 by sqrt(dim) times it, amplified by the norms of the rotations still to come.
        """
        least = math.prod(float(mode.scales[mode.scales > 0].min()) for mode in self.modes)
        rotations = [mode.rotation for mode in self.modes if mode.rotation is not None]
        total, amplified = 0.0, 1.0
        for rotation in reversed(rotations):
            total += rotation.pieces * amplified
            amplified *= rotation.norm
        return (total + amplified) * math.sqrt(self.dim) / least * ABOVE_WIDE

    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        x = numeric("x", x)
        work = np.array(x, dtype=np.float64, order="C")
        if self.turned:
            self._rotate(work)
        self._add_noise(work, source)
        if self.turned:
            self._finish(work)
        return work.astype(np.float32) if x.dtype == np.float32 else work

    def _rotate(self, work: Floats) -> None:
        """R x in whole steps, then back in the query's unit: exact up to the rounding that `slack` counts."""
        reach = 2.0**52 * self.step
        if work.size and not max(float(work.max()), -float(work.min())) <= reach:
            raise ValueError(f"x must be at most {reach:.4g} in magnitude to be turned exactly; clip it first")
        np.multiply(work, 1 / self.step, out=work)
        np.rint(work, out=work)
        for k, mode in enumerate(self.modes):
            if mode.rotation is not None:
                replace_mode(work, self.shape, k, mode.rotation.turn)
        np.multiply(work, self.step, out=work)

    def _add_noise(self, work: Floats, source: Source) -> None:
        for slab, scale in self._slabs(work, [mode.scales for mode in self.modes]):
            slab[...] = rounded_sum(slab, "gaussian", scale, None, source)

    def _finish(self, work: Floats) -> None:
        """Turned back, and rounded to the grid that belongs to each coordinate's scale: post-processing."""
        self._multiply(work, [None if m.rotation is None else m.rotation.inverse for m in self.modes])
        for slab, scale in self._slabs(work, [mode.deviations() for mode in self.modes]):
            grid = grid_for(scale)
            noisy = np.asarray(scale) > 0
            slab[...] = np.where(noisy, np.rint(slab / grid) * grid + 0.0, slab)

    def _slabs(self, work: Floats, scales: Sequence[Floats]) -> Iterator[tuple[Floats, Floats]]:
        """Parts of a batch of tensors with their scales, about 2^20 at a time (one number where all are equal)."""
        batch = work.reshape(-1, *self.shape)
        if all(one.min() == one.max() for one in scales):
            number = np.asarray(math.prod(float(one[0]) for one in scales))
            flat = work.reshape(-1)
            for start in range(0, flat.size, _SLAB):
                yield flat[start : start + _SLAB], number
            return
        split = len(scales) - 1
        while split > 0 and math.prod(self.shape[split - 1 :]) <= _SLAB:
            split -= 1
        base = outer(scales[split:])
        many = max(_SLAB // base.size, 1)
        for index in itertools.product(*map(range, self.shape[:split])):
            lead = math.prod(float(scales[k][i]) for k, i in enumerate(index))
            place: Any = (slice(None), *index)
            part, scale = batch[place], base * lead
            for start in range(0, len(batch), many):
                yield part[start : start + many], scale

    def to_json(self) -> dict[str, Any]:
        return {"law": self.kind, "modes": [mode.to_json() for mode in self.modes]}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> TensorGaussian:
        return cls([Mode.from_json(mode) for mode in data["modes"]])

    def whitened(self, noise: Floats) -> tuple[Law, Floats]:
        if any(mode.singular for mode in self.modes):
            return self, noise
        return Gaussian(1.0, self.dim), self.whiten(noise).reshape(noise.shape)

    def _loss(self, sensitivity: Sensitivity) -> GaussianLoss:
        return tensor_loss(self, sensitivity)

    @classmethod
    def fitted(cls, request: Request) -> TensorGaussian:
        sensitivity, mu = request.sensitivity, largest_mu(request)
        if request.options.get("factors") is not None:
            return cls(request.options["factors"])._within(sensitivity, mu)
        if len(sensitivity.shape) == 1:
            raise DoesNotApplyError("the query is a vector: gaussian noise is the same, without modes")
        return cls(_shape(sensitivity, request))._within(sensitivity, mu)

    def _within(self, sensitivity: Sensitivity, mu: float) -> TensorGaussian:
        """The least multiple that stays within mu; mu scales as 1/multiple, the slack of rotations does not."""
        if self.shape != sensitivity.shape:
            raise DoesNotApplyError(f"factors give the shape {self.shape}, the query has {sensitivity.shape}")
        spent = self._loss(sensitivity).mu
        room = mu - (SLACK if self.turned else 0.0)
        if not (math.isfinite(spent) and room > 0):
            raise DoesNotApplyError("factors leave a direction without noise, or epsilon is too small to turn x")
        return self.times((spent - self.slack) / room * _UP)


@singledispatch
def _shape(sensitivity: Sensitivity, request: Request) -> list[Floats | int]:
    """Factors of the best shape, up to a multiple."""
    raise DoesNotApplyError(f"no Kronecker shape is known for the set {sensitivity.kind!r}: try gaussian noise")


@_shape.register(L2)
@_shape.register(L1)
def _even(sensitivity: L2 | L1, request: Request) -> list[Floats | int]:
    """Isotropic: the set is the same in every direction, and the smallest axis of the noise decides."""
    if isinstance(sensitivity, L2) and sensitivity.scales is not None:
        return _product(sensitivity.scales.reshape(sensitivity.shape))
    return list(sensitivity.shape)


@_shape.register(Box)
def _box(sensitivity: Box, request: Request) -> list[Floats | int]:
    """s_i^2 proportional to l_i/sqrt(w_i), the diagonal optimum, where that is a product over the modes."""
    target = sensitivity.profile / request.root_weights()
    return _product(np.sqrt(target).reshape(sensitivity.shape))


@_shape.register(Slices)
def _slices(sensitivity: Slices, request: Request) -> list[Floats | int]:
    """s_m^2 proportional to C_m/sqrt(W_m), W_m the sum of the weights in slice m; one scale within a slice.

    Guarantee: least weighted error among all Gaussian covariances, not only Kronecker products: the set and the
    error are invariant under sign changes and, within a slice, only the smallest axis counts.
    """
    sums = np.ones(sensitivity.radii.size)
    if request.weights is not None:
        sums = request.weights.reshape(sensitivity.panels).sum(axis=(0, 2))
    factors: list[Floats | int] = list(sensitivity.shape)
    factors[sensitivity.mode] = np.sqrt(sensitivity.radii / sensitivity.radii.max() / np.sqrt(sums / sums.max()))
    return factors


def _product(tensor: Floats) -> list[Floats | int]:
    """Vectors whose outer product is the tensor; refused where there are none."""
    peak = np.unravel_index(int(tensor.argmax()), tensor.shape)
    top = float(tensor[peak])
    vectors = []
    for k in range(tensor.ndim):
        fibre: Any = (*peak[:k], slice(None), *peak[k + 1 :])
        vectors.append(tensor[fibre] / top)
    product = outer(vectors)
    if not np.abs(product * top - tensor).max() <= _ALIKE * top or ((product == 0) != (tensor == 0)).any():
        raise DoesNotApplyError("the best scales are not a product over the modes: gaussian noise serves this set")
    return list(vectors)
