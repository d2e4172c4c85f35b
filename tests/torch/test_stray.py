"""Gradients that arrive where none is expected, or that cannot be computed, are refused, never dropped."""

from __future__ import annotations

import pytest
import torch
from tests.torch.helpers import data, private
from torch import nn
from torch.nn import functional as F

from shapedp.torch import RecordError
from shapedp.torch.loader import Part

Tensor = torch.Tensor


def test_two_passes_before_one_backward_are_refused() -> None:
    x, _ = data()
    model, _, _, training = private()
    training.receive(Part(8, True))
    first, second = model(x[:8]), model(x[8:16])
    with pytest.raises(RecordError, match="after its pass was over"):
        (first - second).square().sum().backward()


def test_a_backward_after_the_step_is_refused() -> None:
    x, y = data()
    model, optimizer, _, training = private()
    training.receive(Part(8, True))
    loss = F.cross_entropy(model(x[:8]), y[:8])
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RecordError, match="after its pass was over"):
        loss.backward()


def test_several_passes_in_one_forward_are_served() -> None:
    """The remedy of the message: a module whose forward runs the network twice on each record."""

    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            return (self.net(x[:, :3]) - 2 * self.net(x[:, 3:])).square().sum(1)

    x, _ = data()
    torch.manual_seed(0)
    plain = Pair()
    plain(x[:8]).mean().backward()
    expected = torch.cat([p.grad.reshape(-1) for p in plain.parameters() if p.grad is not None])
    plain.zero_grad()
    model, optimizer, _, training = private(plain, clip=1e3, noise_multiplier=1e-9)
    training.receive(Part(8, True))
    model(x[:8]).mean().backward()
    optimizer.step()
    found = torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None])
    assert (found * training.expected / 8 - expected).abs().max() < 1e-4 * expected.abs().max()
