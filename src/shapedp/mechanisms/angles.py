"""Gradients released by norm and direction: noise over a box of angles, with maps before and after.

Two ways that hold what they claim, where one noise per angle of the mean, scaled by 1/B, does not: the angles of the
mean at their full range, and the mean of per-example angles clamped to windows that do not depend on the data.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shapedp.boundary.documents import decode, encode
from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import boolean
from shapedp.mechanisms.additive import Additive
from shapedp.mechanisms.base import Claimed, Release, Rng
from shapedp.mechanisms.calibrate import calibrate
from shapedp.noise import Gaussian, Law
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, finite, laid_out, one_of, positive, probability, vector
from shapedp.numerics.hyperspherical import from_angles, to_angles
from shapedp.numerics.outward import ABOVE_8
from shapedp.privacy import Loss
from shapedp.sensitivity import ADJACENCIES, L2, Adjacency, Box

CELLS = 2**22  # numbers converted at a time
MOST_ROWS = 2**23  # up to here sums of clipped rows are exact
_ROUND = 1 + 2.0**-16  # the norm of a sum of so many rows is off by less than 2^-17 of the clip
_HUGE = 1e150


def windows(dim: int, width: float) -> Floats:
    """Half-widths min(pi/2, width/sqrt(d - z)) for the deviations a_1, ..., a_(d-2), and pi for the last.

    The angles of a direction drawn at random have standard deviation about 1/sqrt(d - z).
    """
    d = laid_out(count("dim", dim, least=2))
    half: Floats = np.minimum(positive("width", width) / np.sqrt(d - np.arange(1.0, d)), np.pi / 2)
    half[-1] = np.pi
    return half


def tail_weights(dim: int) -> Floats:
    """(d - z + 1)/d: the share of a random direction's squared norm that an error in angle z turns."""
    d = laid_out(count("dim", dim, least=2))
    return np.asarray(np.arange(d, 1.0, -1.0) / d)


@dataclass(frozen=True, eq=False)
class Direction(Release[Floats]):
    """A released gradient in rectangular coordinates, and the release of norm and angles behind it."""

    polar: Release[Floats] | None = None

    @classmethod
    def of(cls, value: Floats, polar: Release[Floats]) -> Direction:
        """A gradient computed from a release of norm and angles."""
        return cls(value, None, polar.certificate, polar.spends, polar.unsafe, polar=polar)


@dataclass(frozen=True, eq=False)
class Polar(Claimed):
    """Norm and angles of gradients plus noise; the noisy vector is computed from them afterwards.

    `law` is noise on (norm, a_1, ..., a_(d-1)) of sums, not means; `batch` is the fixed number B that sums are
    divided by after the noise, whatever the number of rows.

    Guarantee: `loss` is that of the noise against `sensitivity`, a box that holds for every pair of neighbours.
    """

    _laws: ClassVar[tuple[str, ...]] = ("law",)
    law: Law
    clip: float
    batch: int
    epsilon: float
    delta: float
    adjacency: Adjacency = "add-remove"

    def __post_init__(self) -> None:
        count("dim", self.law.dim, least=2)
        self._plain(positive, "clip", "epsilon")
        self._plain(count, "batch")
        self._plain(probability, "delta")
        one_of("adjacency", self.adjacency, ADJACENCIES)

    @classmethod
    def _calibrated(
        cls,
        box: Callable[[float, Adjacency], Box],
        *,
        clip: float,
        batch: int,
        epsilon: float,
        delta: float,
        adjacency: Adjacency = "add-remove",
        norm_share: float = 0.1,
        **windows: Any,
    ) -> Self:
        """The least noise that meets the claim on the box of a clip; `norm_share` of mu^2 is spent on the norm."""
        law = _law(box(positive("clip", clip), adjacency), epsilon, delta, norm_share)
        return cls(law, clip, batch, epsilon, delta, adjacency, **windows)

    @property
    @abstractmethod
    def sensitivity(self) -> Box:
        """What one record can change in the norm and in each angle."""

    @abstractmethod
    def query(self, gradients: ArrayLike) -> Floats:
        """(norm, angles) of some gradients, one per row, before noise."""

    @abstractmethod
    def vector(self, answer: Floats) -> Floats:
        """The mean gradient behind (norm, angles)."""

    @property
    def dim(self) -> int:
        """The length of a gradient."""
        return self.law.dim

    @cached_property
    def additive(self) -> Additive:
        """The mechanism on (norm, angles)."""
        return Additive(self.law, self.sensitivity, self.epsilon, self.delta)

    @property
    def loss(self) -> Loss:
        """The privacy loss of one release."""
        return self.additive.loss

    def release(self, gradients: ArrayLike, *, rng: Rng = None, unsafe: bool = False) -> Direction:
        """The noisy mean of per-example gradients, one per row."""
        unsafe = boolean("unsafe", unsafe)
        return self.release_query(self.query(gradients), rng=rng, unsafe=unsafe)

    def release_query(self, answer: ArrayLike, *, rng: Rng = None, unsafe: bool = False) -> Direction:
        """The same from (norm, angles) that `query` gave, or that sums kept elsewhere give."""
        unsafe = boolean("unsafe", unsafe)
        noisy = self.additive.release(answer, rng=rng, unsafe=unsafe)
        return Direction.of(self.vector(np.asarray(noisy.value)), noisy)


@dataclass(frozen=True, eq=False)
class MeanAngles(Polar):
    """Variant (i): the angles of the mean gradient, each at its full range: one record may turn the mean at will.

    Guarantee: pi for each angle, 2 pi for the last, the clip (twice the clip under "replace") for the norm of the sum.

    Parameters
    ----------
    law: the noise on (norm, angles) of the sum.
    clip: the bound on the norm of a gradient.
    batch: the number that the sum is divided by.
    epsilon, delta, adjacency: the claim.

    Examples
    --------
    >>> mechanism = MeanAngles.calibrate(dim=3, clip=1.0, batch=8, epsilon=1.0, delta=1e-5)
    >>> mechanism.release(np.ones((8, 3)), rng=np.random.default_rng(0)).value.shape
    (3,)
    """

    kind: ClassVar[str] = "mean-angles"

    @classmethod
    def calibrate(cls, *, dim: int, **claim: Any) -> MeanAngles:
        """The least noise that meets the claim.

        Takes `clip`, `batch`, `epsilon`, `delta` and `adjacency` as the class does, and `norm_share` (0.1): how much of
        mu^2 is spent on the norm.
        """
        return cls._calibrated(partial(_full_range, laid_out(count("dim", dim, least=2))), **claim)

    @property
    def sensitivity(self) -> Box:
        return _full_range(self.dim, self.clip, self.adjacency)

    def query(self, gradients: ArrayLike) -> Floats:
        rows, ball = _rows(gradients, self.dim), L2(self.clip, dim=self.dim)
        total = np.zeros(self.dim)
        for some in _blocks(rows):
            total += ball.clip(some, adjacency="add-remove")[0].sum(axis=0)
        return polar(total)

    def vector(self, answer: Floats) -> Floats:
        return np.asarray(from_angles(answer[0] / self.batch, answer[1:]))


@dataclass(frozen=True, eq=False)
class AngleWindows(Polar):
    """Variant (ii): per-example norms and angles, clamped to the clip and to windows around pi/2, then averaged.

    Parameters
    ----------
    windows: d - 1 half-widths, at most pi/2 each and pi for the last; they must not depend on the data.
    Others as for `MeanAngles`.

    Guarantee: h_z per angle under "add-remove" and "zero-out", 2 h_z under "replace"; the clip for the norm, which is
    never negative. A record without gradient adds nothing.

    Examples
    --------
    >>> AngleWindows.calibrate(dim=3, clip=1.0, batch=8, epsilon=1.0, delta=1e-5).certificate.verdict
    'certified'
    """

    kind: ClassVar[str] = "angle-windows"
    windows: Floats = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "windows", _windows(self.windows, self.dim))

    @classmethod
    def calibrate(cls, *, dim: int, width: float = 3.0, half_widths: Any = None, **claim: Any) -> AngleWindows:
        """The least noise that meets the claim; windows of `width` standard deviations of a random direction.

        Or windows of the `half_widths` given. The other arguments are those of `MeanAngles.calibrate`.
        """
        d = count("dim", dim, least=2)
        half = _windows(windows(d, width) if half_widths is None else half_widths, d)
        return cls._calibrated(partial(window_box, half), windows=half, **claim)

    @property
    def sensitivity(self) -> Box:
        return window_box(self.windows, self.clip, self.adjacency)

    def query(self, gradients: ArrayLike) -> Floats:
        box = Box(np.concatenate([[self.clip], self.windows]))
        total = np.zeros(self.dim)
        for some in _blocks(_rows(gradients, self.dim)):
            total += box.clip(polar(some), adjacency="add-remove")[0].sum(axis=0)
        return total

    def vector(self, answer: Floats) -> Floats:
        return np.asarray(from_angles(answer[0] / self.batch, answer[1:] / self.batch))

    def _described(self) -> dict[str, Any]:
        return {**super()._described(), "windows": encode(self.windows)}

    @classmethod
    def _read(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {**super()._read(data), "windows": decode("windows", data["windows"])}


def polar(x: ArrayLike) -> Floats:
    """(norm, a_1, ..., a_(d-1)) of each vector along the last axis, in float64; norms beyond 1e300 read 1e300."""
    vectors = np.asarray(x, dtype=np.float64)
    huge = np.abs(vectors).max(axis=-1, initial=0.0, keepdims=True) > _HUGE
    if huge.any():
        vectors = np.where(huge, vectors * 2.0**-600, vectors)
    norm, angles = to_angles(vectors)
    if huge.any():
        norm = np.where(huge[..., 0], np.minimum(norm, 1e300 * 2.0**-600) * 2.0**600, norm)
    return np.concatenate([norm[..., None], angles], axis=-1)


def window_box(half: Floats, clip: float, adjacency: Adjacency) -> Box:
    """What one record can change in the sums of per-example norms and of angles clamped to windows."""
    factor = 2.0 if adjacency == "replace" else 1.0
    return Box(np.concatenate([[clip], factor * half]), adjacency=adjacency)


def _full_range(dim: int, clip: float, adjacency: Adjacency) -> Box:
    profile = np.full(dim, np.pi * ABOVE_8)
    profile[-1] *= 2
    profile[0] = (2.0 if adjacency == "replace" else 1.0) * clip * _ROUND
    return Box(profile, adjacency=adjacency)


def _law(box: Box, epsilon: float, delta: float, norm_share: float) -> Gaussian:
    """Gaussian scales that spend `norm_share` of mu^2 on the norm, and the rest for the least turn of the gradient."""
    share = probability("norm_share", norm_share)
    if not share > 0:
        raise ValueError(f"norm_share must lie in (0, 1), got {norm_share!r}")
    weights = np.concatenate([[1.0], tail_weights(box.dim)])
    angles = float(box.profile[1:] @ np.sqrt(weights[1:]))
    weights[0] = (share / (1 - share) * angles / float(box.profile[0])) ** 2
    law = calibrate("gaussian", box, epsilon=epsilon, delta=delta, weights=weights).law
    assert isinstance(law, Gaussian)
    return law


def _windows(half: Any, dim: int) -> Floats:
    values = vector("windows", half, least=0.0, strict=True)
    if values.size != dim - 1 or values[:-1].max(initial=0.0) > math.pi / 2 or values[-1] > math.pi:
        raise ValueError(refusal("mechanisms", "windows", number=dim - 1, size=values.size, most=values.max()))
    return frozen(values)


def _rows(gradients: ArrayLike, dim: int) -> Floats:
    rows = finite("gradients", gradients)
    if rows.ndim != 2 or rows.shape[1] != dim or len(rows) > MOST_ROWS:
        raise ValueError(f"gradients must have shape (n, {dim}) with n up to {MOST_ROWS}, got {rows.shape}")
    return rows


def _blocks(rows: Floats) -> list[Floats]:
    step = max(1, CELLS // rows.shape[1])
    return [rows[i : i + step] for i in range(0, len(rows), step)]
