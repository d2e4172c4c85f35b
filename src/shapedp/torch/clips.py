"""Clips: what one record may add to a step's sum, and the sensitivity that follows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from shapedp.numerics.checks import numeric, positive, probability
from shapedp.sensitivity import L2, Blocks, Box, Sensitivity
from shapedp.torch.layout import Layout
from shapedp.torch.refusals import refusal

Tensor = torch.Tensor
Checks = Mapping[str, Callable[[str, Any], Any]]  # of fields by name; each returns the value to keep
LEAST, MOST = 1e-12, 1e12  # bounds within which float32 gradients meet no underflow and no overflow


def moderate(name: str, value: Any) -> float:
    """A bound between 1e-12 and 1e12."""
    found = positive(name, value)
    if not LEAST <= found <= MOST:
        raise ValueError(f"{name} must lie in [{LEAST:g}, {MOST:g}], got {found!r}: measure the loss in other units")
    return found


def _bounds(name: str, radii: Any) -> float | tuple[float, ...]:
    if np.ndim(numeric(name, radii)) == 0:
        return moderate(name, radii)
    return tuple(moderate(name, one) for one in radii)


class Clip(ABC):
    """What bounds one record's gradient. A step releases the noisy sum of the clipped gradients (rows).

    A clip of your own defines two methods. `rows` maps gradients of shape (n, dim) to rows of shape (n, k), each
    record on its own. `sensitivity` returns the set that holds every row (adjacency "add-remove", dimension k).
    It may define two more: `gradient` turns the noisy mean into the flat gradient (post-processing), and `updated`
    returns the clip of the next step, chosen from that released mean only.

    `steepness` bounds how much a row can change, relative to the set, when a gradient changes by a small share:
    rounding may change the gradients of other records when one leaves. `checks` names a check for each field.

    Examples
    --------
    >>> import torch
    >>> from shapedp.torch import Flat, Layout
    >>> Flat(1.0).rows(torch.tensor([[3.0, 4.0]]), Layout.single(2))
    tensor([[0.6000, 0.8000]])
    """

    steepness: ClassVar[float] = 1.0
    checks: ClassVar[Checks] = {}

    def __post_init__(self) -> None:
        for name, check in self.checks.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    @abstractmethod
    def sensitivity(self, layout: Layout) -> Sensitivity:
        """The set in which every row lies, whatever the gradient."""

    @abstractmethod
    def rows(self, gradients: Tensor, layout: Layout) -> Tensor:
        """The rows of some records; gradients are finite."""

    def gradient(self, answer: Tensor, layout: Layout) -> Tensor:
        """The flat gradient behind a released mean."""
        return answer

    def updated(self, answer: Tensor, layout: Layout) -> Clip:
        """The clip of the next step."""
        return self

    def state(self) -> dict[str, Any]:
        """What changes during training, for a checkpoint."""
        return {}

    def with_state(self, state: dict[str, Any]) -> Clip:
        """This clip as `state` left it."""
        return self


class NormClip(Clip):
    """A clip that multiplies each block of a gradient by a factor that depends on the block's norm.

    Such clips are fast: the gradients of single records need not be laid out. `blocks` returns the block of each
    parameter, in ascending order; `factors` returns the factors; `statistics` may release columns beside the gradient.

    Examples
    --------
    >>> from shapedp.torch import Layout, NormClip, PerLayer
    >>> clip = PerLayer(1.0)
    >>> isinstance(clip, NormClip), clip.blocks(Layout(("a", "b"), ((2,), (3,)), (0, 1)))
    (True, (0, 1))
    """

    def blocks(self, layout: Layout) -> tuple[int, ...]:
        """The block of each parameter: all in one, unless a subclass says otherwise."""
        return (0,) * len(layout.names)

    @abstractmethod
    def factors(self, norms: Tensor) -> Tensor:
        """Factors of shape (n, blocks) from the norms of that shape, float64."""

    def statistics(self, norms: Tensor) -> Tensor | None:
        """Columns (n, k) that are released beside the gradient, or None."""
        return None

    def rows(self, gradients: Tensor, layout: Layout) -> Tensor:
        sizes = layout.added_up(self.blocks(layout))
        parts = torch.split(gradients.double(), sizes, dim=1)
        norms = torch.stack([torch.linalg.vector_norm(part, dim=1) for part in parts], dim=1)
        rows = gradients * self.factors(norms).repeat_interleave(torch.tensor(sizes, device=norms.device), dim=1)
        extra = self.statistics(norms)
        return (rows if extra is None else torch.cat([rows, extra], dim=1)).to(gradients.dtype)


class _Whole(NormClip):
    """A clip of the whole gradient, within a ball."""

    radius: float

    def sensitivity(self, layout: Layout) -> L2:
        return L2(self.radius, layout.dim, adjacency="add-remove")


@dataclass(frozen=True)
class Flat(_Whole):
    """The whole gradient scaled down to |g|_2 <= radius.

    Parameters
    ----------
    radius : the largest norm, between 1e-12 and 1e12.

    Examples
    --------
    >>> from shapedp.torch import Flat, Layout
    >>> Flat(0.5).sensitivity(Layout.single(10)).radius
    0.5
    """

    checks: ClassVar[Checks] = {"radius": moderate}
    radius: float

    def factors(self, norms: Tensor) -> Tensor:
        return _scaled_down(norms, (self.radius,))


@dataclass(frozen=True)
class Auto(_Whole):
    """AUTO-S: g radius/(|g|_2 + gamma), which needs no tuned bound.

    Parameters
    ----------
    radius, gamma : bounds between 1e-12 and 1e12.

    Examples
    --------
    >>> from shapedp.torch import Auto, Layout
    >>> Auto(gamma=0.1).sensitivity(Layout.single(10)).radius
    1.0

    Reference: Bu, Wang, Zha and Karypis 2023, Automatic clipping, eq. (4).
    """

    checks: ClassVar[Checks] = {"radius": moderate, "gamma": moderate}
    radius: float = 1.0
    gamma: float = 0.01

    def factors(self, norms: Tensor) -> Tensor:
        return self.radius / (norms + self.gamma)


@dataclass(frozen=True)
class PerLayer(NormClip):
    """Each layer scaled down to its own |g_m|_2 <= radii_m.

    Parameters
    ----------
    radii : one norm per layer, or one number that all layers share alike: radius/sqrt(layers) each.

    Examples
    --------
    >>> from shapedp.torch import Layout, PerLayer
    >>> PerLayer(1.0).bounds(Layout(("a", "b", "c", "d"), ((2,), (3,), (4,), (5,)), (0, 1, 2, 3)))
    (0.5, 0.5, 0.5, 0.5)
    """

    checks: ClassVar[Checks] = {"radii": _bounds}
    radii: float | Sequence[float]

    def bounds(self, layout: Layout) -> tuple[float, ...]:
        """One radius per layer."""
        return _shared(self.radii, len(layout.layer_sizes), 2.0)

    def blocks(self, layout: Layout) -> tuple[int, ...]:
        return layout.layers

    def sensitivity(self, layout: Layout) -> Blocks:
        return Blocks(self.bounds(layout), layout.layer_sizes, adjacency="add-remove")

    def factors(self, norms: Tensor) -> Tensor:
        return _scaled_down(norms, _shared(self.radii, norms.shape[1], 2.0))


@dataclass(frozen=True)
class PerValue(Clip):
    """Each entry of layer m clamped to radii_m/K_m^(1/p), K_m the layer's size: the set is a box.

    Parameters
    ----------
    radii : the p-norm of each layer, or one number that all layers share.
    p : which norm.

    Examples
    --------
    >>> from shapedp.torch import Layout, PerValue
    >>> PerValue(1.0).bounds(Layout.single(4))
    array([0.5, 0.5, 0.5, 0.5])

    Reference: i.n.i.d. noise paper, section VI.C.
    """

    checks: ClassVar[Checks] = {"radii": _bounds, "p": positive}
    radii: float | Sequence[float]
    p: float = 2.0

    def bounds(self, layout: Layout) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The bound of each entry."""
        sizes = np.array(layout.layer_sizes)
        radii = np.array(_shared(self.radii, sizes.size, self.p))
        return np.repeat(radii / sizes ** (1 / self.p), sizes)

    def sensitivity(self, layout: Layout) -> Box:
        return Box(self.bounds(layout), adjacency="add-remove")

    def rows(self, gradients: Tensor, layout: Layout) -> Tensor:
        exact = torch.from_numpy(self.bounds(layout)).to(gradients.device)
        near = exact.to(gradients.dtype)
        bounds = torch.where(near > exact, torch.nextafter(near, torch.zeros_like(near)), near)
        return torch.minimum(torch.maximum(gradients, -bounds), bounds)


@dataclass(frozen=True)
class Adaptive(NormClip):
    """Clipping whose radii follow a quantile of the gradient norms, estimated by noisy counts.

    Beside the gradient each record adds, per radius, 1/2 to a count if its norm is within the radius and -1/2 if not.
    After a step the radius is multiplied by exp(-rate (share within - quantile)). The sensitivity set has a block per
    radius and one of radius 1/2 per count. The noise follows the set, so that the privacy loss of a step does not
    depend on the radii. Between 0.78 and 1.28 radii the count falls evenly with the logarithm of the norm: with a
    jump at the radius, rounding could change the counts of all records at once.

    Parameters
    ----------
    radii : the first radius for the whole gradient, or one per layer.
    quantile : the share of records whose norm shall be within the radius.
    rate : how fast the radius follows.
    least, most : bounds of the radii.

    Examples
    --------
    >>> from shapedp.torch import Adaptive, Layout
    >>> Adaptive(2.0).sensitivity(Layout.single(3)).radii
    array([2. , 0.5])

    Reference: Andrew, Thakkar, McMahan and Ramaswamy 2021, Algorithm 1.
    """

    steepness = 4.0
    checks: ClassVar[Checks] = {
        "radii": _bounds, "quantile": probability, "rate": positive, "least": moderate, "most": moderate
    }  # fmt: skip
    radii: float | Sequence[float]
    quantile: float = 0.5
    rate: float = 0.2
    least: float = 1e-6
    most: float = 1e6

    @property
    def each(self) -> tuple[float, ...]:
        """The radii as a tuple."""
        return tuple(self.radii) if isinstance(self.radii, Sequence) else (self.radii,)

    def blocks(self, layout: Layout) -> tuple[int, ...]:
        if not isinstance(self.radii, Sequence):
            return (0,) * len(layout.names)
        _shared(self.radii, len(layout.layer_sizes), 2.0)
        return layout.layers

    def sensitivity(self, layout: Layout) -> Blocks:
        sizes = layout.added_up(self.blocks(layout))
        counts = len(sizes)
        return Blocks([*self.each, *[0.5] * counts], [*sizes, *[1] * counts], adjacency="add-remove")

    def factors(self, norms: Tensor) -> Tensor:
        return _scaled_down(norms, self.each)

    def statistics(self, norms: Tensor) -> Tensor:
        return (self.steepness / 2 * torch.log(_beside(norms, self.each) / norms)).clamp(-0.5, 0.5)

    def gradient(self, answer: Tensor, layout: Layout) -> Tensor:
        return answer[: layout.dim]

    def updated(self, answer: Tensor, layout: Layout) -> Adaptive:
        shares = (min(max(float(share) + 0.5, 0.0), 1.0) for share in answer[layout.dim :])
        moved = [
            min(max(radius * math.exp(-self.rate * (share - self.quantile)), self.least), self.most)
            for radius, share in zip(self.each, shares, strict=True)
        ]
        return replace(self, radii=moved if isinstance(self.radii, Sequence) else moved[0])

    def state(self) -> dict[str, Any]:
        return {"radii": self.radii}

    def with_state(self, state: dict[str, Any]) -> Adaptive:
        return replace(self, radii=state["radii"])


def _scaled_down(norms: Tensor, radii: Sequence[float]) -> Tensor:
    """The factors that bring each norm down to its radius, where it is longer."""
    bounds = _beside(norms, radii)
    return bounds / torch.maximum(norms, bounds)


def _beside(norms: Tensor, radii: Sequence[float]) -> Tensor:
    """The radii where the norms are; a GPU is not waited for."""
    if len(radii) == 1:
        return norms.new_full((1,), radii[0])
    held = torch.tensor(radii, dtype=norms.dtype)
    return held.pin_memory().to(norms.device, non_blocking=True) if norms.is_cuda else held


def _shared(radii: float | Sequence[float], layers: int, p: float) -> tuple[float, ...]:
    if isinstance(radii, Sequence):
        if len(radii) != layers:
            raise ValueError(f"radii must have one entry per layer ({layers}), got {len(radii)}")
        return tuple(radii)
    return (radii * layers ** (-1 / p),) * layers


def clip_from(clip: Any) -> Clip:
    """A clip, or a number: the radius of a flat clip."""
    if isinstance(clip, Clip):
        return clip
    if isinstance(clip, str):
        raise TypeError(refusal("clip-is-text", clip=clip))
    return Flat(moderate("clip", clip))
