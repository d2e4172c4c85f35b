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
_BLOCK = 1024


def to_angles(x: Tensor) -> tuple[Tensor, Tensor]:
    """Norm and deviations a = pi/2 - theta of vectors along the last axis; see `numerics.hyperspherical`.

    On the CPU in cached pieces, elsewhere by tensor operations in float64.
    """
    if x.ndim == 0 or x.shape[-1] < 2 or not x.is_floating_point():
        raise ValueError(f"x must hold floating vectors of length >= 2 along its last axis, got {tuple(x.shape)}")
    if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64):
        arrays = hyperspherical.to_angles(x.detach().numpy())
        return torch.from_numpy(np.asarray(arrays[0])), torch.from_numpy(arrays[1])
    norm, angles = device_to_angles(x)
    return norm.to(x.dtype), angles.to(x.dtype)


def from_angles(norm: Tensor, angles: Tensor) -> Tensor:
    """The vectors that have these norms (of either sign) and deviations, which may lie outside their ranges."""
    if angles.ndim == 0 or not angles.is_floating_point():
        raise ValueError(f"angles must hold floating vectors along its last axis, got {tuple(angles.shape)}")
    if angles.device.type == "cpu" and angles.dtype in (torch.float32, torch.float64):
        return torch.from_numpy(hyperspherical.from_angles(norm.detach().double().numpy(), angles.detach().numpy()))
    return device_from_angles(norm, angles).to(angles.dtype)


def device_to_angles(x: Tensor) -> tuple[Tensor, Tensor]:
    """The conversion by tensor operations, in float64."""
    wide = x.detach().double()
    if not bool(torch.isfinite(wide).all()):
        raise ValueError("x must be finite")
    top = wide.abs().amax(-1, keepdim=True)
    scale = torch.exp2(torch.floor(torch.log2(torch.where(top > 0, top, 1.0))))
    scaled = wide / scale
    squares = scaled[..., 1:].square()
    tails = _running(squares.flip(-1)).flip(-1).sqrt()  # |x_(z+1), ..., x_d| for z = 1, ..., d - 1
    angles = torch.atan2(scaled[..., :-1], tails)
    angles[..., -1] = torch.atan2(wide[..., -2] + 0.0, wide[..., -1] + 0.0)
    norm = torch.hypot(scaled[..., 0], tails[..., 0]) * scale[..., 0]
    return norm, angles


def device_from_angles(norm: Tensor, angles: Tensor) -> Tensor:
    """The conversion back by tensor operations, in float64: log |R| is summed, signs are counted apart."""
    wide = angles.detach().double()
    lengths = norm.detach().double().to(wide.device).expand(wide.shape[:-1])
    if not bool(torch.isfinite(wide).all() & torch.isfinite(lengths).all()):
        raise ValueError("norm and angles must be finite")
    half = torch.pi / 2
    for exact in (half, torch.pi):  # the narrower type's nearest float stands for the angle itself
        wide = torch.where(
            angles.detach().abs() == torch.tensor(exact, dtype=torch.float64).to(angles), exact * wide.sign(), wide
        )
    slopes = torch.tan(wide)
    slopes = torch.where(wide.abs() == torch.pi, 0.0, slopes)
    logs = _running(-0.5 * torch.log1p(slopes.square()))
    negative = (torch.cos(wide) < 0).to(torch.int32)
    signs = 1.0 - 2.0 * (negative.cumsum(-1) % 2)
    pole = (wide.abs() == half).to(torch.int32)
    dead = (pole.cumsum(-1) - pole) > 0  # a cosine vanished before
    start = lengths.abs().log()[..., None]
    radius = torch.exp(logs + start) * signs * torch.sign(lengths)[..., None]
    head = torch.where(dead, 0.0, radius * slopes)
    last = torch.where(pole.sum(-1) > 0, 0.0, radius[..., -1])
    return torch.cat([head, last[..., None]], dim=-1)


def _running(values: Tensor) -> Tensor:
    """Running sums by blocks, so that rounding does not grow with the length."""
    size = values.shape[-1]
    blocks = -(-size // _BLOCK)
    if blocks == 1:
        return values.cumsum(-1)
    padded = torch.nn.functional.pad(values, (0, blocks * _BLOCK - size))
    inner = padded.reshape(*values.shape[:-1], blocks, _BLOCK).cumsum(-1)
    totals = inner[..., -1]
    before = _running(totals) - totals
    whole: Tensor = (inner + before[..., None]).flatten(-2)
    return whole[..., :size]


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
