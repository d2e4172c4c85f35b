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


class Direct(nn.Module):
    """Uses a layer's weight without calling the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(torch.tanh(self.layer(x)), self.layer.weight)


def test_a_weight_used_outside_its_layer_is_refused() -> None:
    x, y = data()
    model, _, _, training = private(Direct())
    training.receive(Part(8, True))
    with pytest.raises(RecordError, match=r"the loss reaches layer\.weight other than through"):
        F.cross_entropy(model(x[:8]), y[:8]).backward()


def test_a_penalty_on_weights_in_the_loss_is_refused() -> None:
    x, y = data()
    model, _, _, training = private()
    training.receive(Part(8, True))
    with pytest.raises(RecordError, match="weight_decay"):
        (F.cross_entropy(model(x[:8]), y[:8]) + sum(p.square().sum() for p in model.parameters())).backward()


def test_gradients_of_an_evaluated_model_are_left_alone() -> None:
    """As of an input, in evaluation mode: a private step overwrites them."""
    x, y = data()
    model, optimizer, _, training = private(noise_multiplier=1e-6)
    model.eval()
    F.cross_entropy(model(x), y).backward()
    model.train()
    training.receive(Part(0, True))
    optimizer.step()
    assert all(p.grad is not None and p.grad.abs().max() < 1e-5 for p in model.parameters())


class Changed(nn.Module):
    """Adds to a tensor that a layer has seen already; `copies` adds to a copy."""

    def __init__(self, copies: bool) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2)
        self.copies = copies

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        u = self.second(h)
        if self.copies:
            h = h + u
        else:
            h += u
        return self.third(F.relu_(h))


@pytest.mark.parametrize("copies", [False, True])
def test_an_input_changed_after_its_use_is_refused(copies: bool) -> None:
    x, y = data()
    model, optimizer, _, training = private(Changed(copies))
    training.receive(Part(8, True))
    F.cross_entropy(model(x[:8]), y[:8]).backward()
    if copies:
        optimizer.step()
    else:
        with pytest.raises(RecordError, match="the input of second was changed in place"):
            optimizer.step()
    assert training.steps == int(copies)
