"""Per-example angle windows as a clip, and hyperspherical coordinates of tensors on any device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from shapedp.mechanisms.angles import window_box, windows
from shapedp.numerics import hyperspherical
from shapedp.numerics.checks import positive
from shapedp.sensitivity import Box
from shapedp.torch.clips import Checks, Clip, moderate
from shapedp.torch.layout import Layout

Tensor = torch.Tensor


def to_angles(x: Tensor) -> tuple[Tensor, Tensor]:
    """Norm and deviations a = pi/2 - theta of vectors along the last axis; see `numerics.hyperspherical`."""
    if x.ndim == 0 or x.shape[-1] < 2 or not x.is_floating_point():
        raise ValueError(f"x must hold floating vectors of length >= 2 along its last axis, got {tuple(x.shape)}")
    norm, angles = hyperspherical.to_angles(_array(x))
    return torch.from_numpy(np.asarray(norm)).to(x), torch.from_numpy(angles).to(x)


def from_angles(norm: Tensor, angles: Tensor) -> Tensor:
    """The vectors that have these norms (of either sign) and deviations, which may lie outside their ranges."""
    if angles.ndim == 0 or not angles.is_floating_point():
        raise ValueError(f"angles must hold floating vectors along its last axis, got {tuple(angles.shape)}")
    return torch.from_numpy(hyperspherical.from_angles(_array(norm.double()), _array(angles))).to(angles)


def _array(values: Tensor) -> Any:
    """The values on the CPU, in float32 unless they are in float64."""
    return (values if values.dtype == torch.float64 else values.float()).numpy(force=True)


def _each_positive(name: str, values: Any) -> tuple[float, ...] | None:
    return None if values is None else tuple(positive(name, one) for one in values)


@dataclass(frozen=True)
class AngleWindows(Clip):
    """Each record adds its norm, at most `radius`, and its angles clamped to windows around pi/2.

    The gradient applied is the vector that has the noisy mean norm and the noisy mean angles.

    Parameters
    ----------
    radius : the largest norm.
    width : the half-width of the windows, in standard deviations of a random direction's angles.
    half_widths : the windows themselves, one per angle; they must not depend on the data.

    Examples
    --------
    >>> from shapedp.torch import AngleWindows, Layout
    >>> AngleWindows(1.0).bounds(Layout.single(4)).size
    3

    Guarantee: the rows lie in the box (radius, h_1, ..., h_(d-2), pi).
    """

    checks: ClassVar[Checks] = {"radius": moderate, "width": positive, "half_widths": _each_positive}
    radius: float
    width: float = 3.0
    half_widths: Sequence[float] | None = None

    def bounds(self, layout: Layout) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """The half-width of each angle."""
        if self.half_widths is None:
            return windows(layout.dim, self.width)
        half = np.array(self.half_widths)
        if half.size != layout.dim - 1:
            raise ValueError(f"half_widths must have {layout.dim - 1} entries, got {half.size}")
        return half

    def sensitivity(self, layout: Layout) -> Box:
        return window_box(self.bounds(layout), self.radius, "add-remove")

    def rows(self, gradients: Tensor, layout: Layout) -> Tensor:
        norm, angles = to_angles(gradients)
        bounds = torch.from_numpy(self.bounds(layout)).to(angles)
        clamped = torch.minimum(torch.maximum(angles, -bounds), bounds)
        return torch.cat([norm.clamp(max=self.radius)[:, None], clamped], dim=1)

    def gradient(self, answer: Tensor, layout: Layout) -> Tensor:
        return from_angles(answer[0], answer[1:])
