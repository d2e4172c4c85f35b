"""What one record moves the computed sum by, on inputs made to defeat the arithmetic, against the certified set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from shapedp.mechanisms.watch import watching
from shapedp.torch import Adaptive, Auto, Flat, PerLayer, Training, make_private
from shapedp.torch.geodp import AngleWindows
from shapedp.torch.loader import Part

Tensor = torch.Tensor


def private(model: nn.Module, x: Tensor, y: Tensor, **options: Any) -> tuple[torch.optim.Optimizer, Training]:
    """A training of the model whose expected batch is all but one of the records."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    loader: Any = DataLoader(TensorDataset(x, y), batch_size=max(len(x) - 1, 1))
    settings: dict[str, Any] = {"clip": 1.0, "delta": 1e-5, "noise_multiplier": 1.0} | options
    make_private(model, optimizer, loader, check_records=False, **settings)
    return optimizer, optimizer.privacy_  # type: ignore[attr-defined]


def squared(answer: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(answer, target, reduction="sum")


def sum_of(
    model: nn.Module, optimizer: Any, training: Training, x: Tensor, y: Tensor, loss: Callable[..., Tensor]
) -> np.ndarray:
    """What reaches the noise for a draw of exactly these records."""
    seen: list[np.ndarray] = []

    def keep(mechanism: Any, query: Any, draw: Any) -> Any:
        seen.append(np.array(query, dtype=np.float64))
        return query

    with watching(keep):
        training.receive(Part(len(x), True))
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    return seen[-1]


def moved(model: nn.Module, x: Tensor, y: Tensor, *, loss: Any = squared, **options: Any) -> tuple[float, float]:
    """How far the first record moves the sum, and the radius of the certified set."""
    if loss is squared:
        options.setdefault("loss_reduction", "sum")
    optimizer, training = private(model, x, y, **options)
    found = [sum_of(model, optimizer, training, x[k:], y[k:], loss) for k in (0, 1)]
    radius: Any = training.mechanism.sensitivity
    return float(np.linalg.norm(found[0] - found[1])), float(radius.radius)


def line(inputs: int = 1, outputs: int = 1) -> nn.Linear:
    """A linear map without offset, zero at first: a record's gradient is -2 y x^T."""
    model = nn.Linear(inputs, outputs, bias=False)
    nn.init.zeros_(model.weight)
    return model


@pytest.mark.parametrize("bound", [1e-30, 1e-13, 1e13, 1e30, 0.0, float("nan"), float("inf")])
def test_bounds_that_float32_cannot_hold_are_refused(bound: float) -> None:
    makers: list[Callable[[float], Any]] = [
        Flat,
        Auto,
        lambda b: Auto(1.0, gamma=b),
        PerLayer,
        lambda b: PerLayer([1.0, b]),
        lambda b: Adaptive(1.0, least=b),
        AngleWindows,
        lambda b: private(line(), torch.ones(2, 1), torch.ones(2, 1), clip=b),
    ]
    for make in makers:
        with pytest.raises(ValueError, match="must"):
            make(bound)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_parameters_in_half_precision_are_refused(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1).to(dtype))
    with pytest.raises(ValueError, match=r"1\.weight is .*float16: keep trainable parameters in float32"):
        private(model, torch.ones(2, 3), torch.ones(2, 1))
    model[1].requires_grad_(False)
    private(model, torch.ones(2, 3), torch.ones(2, 1))
