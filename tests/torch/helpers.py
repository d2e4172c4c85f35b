"""A small private training, and steps of it without a loader."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from shapedp.torch import Training, make_private
from shapedp.torch.loader import Part

RECORDS = 60


def data(records: int = RECORDS) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(records, 6, generator=generator)
    return x, (x[:, 0] > 0).long()


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 5))


def private(
    model: nn.Module | None = None, *, lr: float = 0.1, batch_size: int = 12, records: int = RECORDS, **options: Any
) -> tuple[nn.Module, torch.optim.Optimizer, Any, Training]:
    """A private training with a given noise multiplier, simulated randomness by default."""
    settings: dict[str, Any] = {"clip": 1.0, "delta": 1e-5, "rng": np.random.default_rng(0)} | options
    if "epsilon" not in settings:
        settings.setdefault("noise_multiplier", 1.0)
    model = network() if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loader = DataLoader(TensorDataset(*data(records)), batch_size=batch_size)
    model, optimizer, poisson = make_private(model, optimizer, loader, **settings)
    return model, optimizer, poisson, optimizer.privacy_  # type: ignore[attr-defined]


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> float:
    """One step of the usual loop."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def gradient(model: nn.Module) -> torch.Tensor:
    """The flat gradient that the optimizer saw."""
    return torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None])


def empty_step(training: Training, optimizer: torch.optim.Optimizer) -> torch.Tensor:
    """A step on an empty draw: what leaves is the noise over the expected batch size."""
    training.receive(Part(0, True))
    optimizer.step()
    return gradient(training.model) * training.expected
