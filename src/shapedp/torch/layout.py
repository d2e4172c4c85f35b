"""The order of a model's trainable parameters in the flat gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from shapedp.numerics.checks import count, entries


@dataclass(frozen=True)
class Layout:
    """The order of the trainable parameters in the flat gradient; those of a layer stand side by side.

    Parameters
    ----------
    names, shapes : of each parameter.
    layers : for each parameter, the number of the layer (the module that owns it) it belongs to.

    Examples
    --------
    >>> import torch
    >>> from shapedp.torch import Layout
    >>> layout = Layout.of(torch.nn.Linear(3, 2))
    >>> layout.names, layout.dim, layout.layer_sizes
    (('weight', 'bias'), 8, (8,))
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    layers: tuple[int, ...]

    def __post_init__(self) -> None:
        shapes = [entries("shapes", shape) for shape in entries("shapes", self.shapes)]
        checked = tuple(tuple(count("shapes", n, least=0) for n in shape) for shape in shapes)
        object.__setattr__(self, "shapes", checked)
        object.__setattr__(self, "names", entries("names", self.names))
        layers = tuple(count("layers", one, least=0) for one in entries("layers", self.layers))
        object.__setattr__(self, "layers", layers)
        if not self.names:
            raise ValueError("the model has no trainable parameter: nothing would be learned")
        if list(self.layers) != sorted(self.layers):
            raise ValueError("parameters of one layer must stand side by side")

    @classmethod
    def of(cls, model: nn.Module) -> Layout:
        """The layout of the parameters with `requires_grad`; one that several modules share counts once."""
        seen: dict[int, tuple[str, tuple[int, ...], int]] = {}
        layer = 0
        for prefix, module in model.named_modules():
            own = [(name, p) for name, p in module.named_parameters(recurse=False) if p.requires_grad]
            fresh = [(name, p) for name, p in own if id(p) not in seen]
            for name, p in fresh:
                seen[id(p)] = (f"{prefix}.{name}" if prefix else name, tuple(p.shape), layer)
            layer += bool(fresh)
        names, shapes, layers = zip(*seen.values(), strict=True) if seen else ((), (), ())
        return cls(names, shapes, layers)

    @classmethod
    def single(cls, dim: int) -> Layout:
        """One parameter with so many entries, for plans in which layers do not matter."""
        return cls(("all",), ((count("dim", dim),),), (0,))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of entries of each parameter."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def dim(self) -> int:
        """The number of entries of the flat gradient."""
        return sum(self.sizes)

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """The number of entries of each layer."""
        return tuple(self.added_up(self.layers))

    def added_up(self, blocks: Sequence[int]) -> list[int]:
        """The number of entries of each block, where parameter i is in block `blocks[i]`; blocks ascend."""
        totals = [0] * (blocks[-1] + 1)
        for block, size in zip(blocks, self.sizes, strict=True):
            totals[block] += size
        return totals

    def split(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """A flat gradient (or rows of them) as views in the parameters' shapes."""
        parts = torch.split(flat[..., : self.dim], list(self.sizes), dim=-1)
        return [part.reshape((*flat.shape[:-1], *shape)) for part, shape in zip(parts, self.shapes, strict=True)]
