"""Several processes, one sum and one draw of noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import distributed as dist
from torch import nn

Tensor = torch.Tensor


@dataclass(frozen=True)
class Processes:
    """The processes of a training; alone where torch.distributed is not initialised."""

    rank: int = 0
    count: int = 1

    @classmethod
    def current(cls) -> Processes:
        """Those of the default group, if there is one."""
        if not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def first(self) -> bool:
        """Whether this one draws the noise."""
        return self.rank == 0

    def sum_at_first(self, values: Tensor) -> Tensor:
        """The sum over all processes; meaningful in the first only."""
        if self.count > 1:
            dist.reduce(values, dst=0)
        return values

    def from_first(self, values: Tensor) -> Tensor:
        """What the first process holds."""
        if self.count > 1:
            dist.broadcast(values, src=0)
        return values

    def largest(self, value: int) -> int:
        """The largest of a number over all processes."""
        if self.count == 1:
            return value
        held = torch.tensor([value], device="cuda" if dist.get_backend() == "nccl" else "cpu")
        dist.all_reduce(held, op=dist.ReduceOp.MAX)
        return int(held)

    def share_model(self, model: nn.Module) -> None:
        """Parameters and buffers as the first process has them."""
        if self.count > 1:
            with torch.no_grad():
                for value in (*model.parameters(), *model.buffers()):
                    dist.broadcast(value, src=0)
