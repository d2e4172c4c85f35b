"""A training was certified while its model kept records in a buffer or an attribute, which leave without noise; and a
layer's second input, shared by all records, was taken for one row per record when it was as long as the batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.torch import RecordError
from shapedp.torch.gradients import Dense
from shapedp.torch.rules import UNIT, bare

Tensor = torch.Tensor


class Keeping(nn.Module):
    """Keeps something in each forward pass of the training."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.layer, self.where = nn.Linear(3, 2), where
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("passes", torch.zeros(()))
        self.seen: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.where == "average":
            self.mean = (1 - 1e-6) * self.mean + 1e-6 * x.detach().mean(0)
        if self.training and self.where == "in place":
            self.mean.copy_(x.detach()[-1])
        if self.where == "attribute":
            self.seen = x.detach()
        if self.where == "count":
            self.passes += 1
        return self.layer(x)


def trained(model: nn.Module, x: Tensor, batch: int, gradients: str = "fast") -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x), batch_size=batch)
    _, _, private = sdp.torch.make_private(
        model, optimizer, loader, clip=1.0, noise_multiplier=1.0, gradients=gradients
    )
    for (rows,) in private:
        optimizer.zero_grad()
        model(rows).sum(1).mean().backward()
        optimizer.step()


@pytest.mark.parametrize(("where", "name"), [("average", "mean"), ("in place", "mean"), ("attribute", "seen")])
@pytest.mark.parametrize("gradients", ["fast", "opacus"])
def test_a_model_that_keeps_records_is_refused(where: str, name: str, gradients: str) -> None:
    with pytest.raises(RecordError, match=f"keeps something of its records in {name}"):
        trained(Keeping(where), torch.rand(30, 3), 15, gradients)


@pytest.mark.parametrize("where", ["nothing", "count"])
def test_a_buffer_that_follows_no_record_is_fine(where: str) -> None:
    trained(Keeping(where), torch.rand(30, 3), 15)


def test_power_iterations_follow_the_weights_alone() -> None:
    trained(nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))), torch.rand(30, 3), 15)


class Places(nn.Module):
    """A weight per place, and a factor per place that all records share."""

    def __init__(self, places: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(places))

    def forward(self, x: Tensor, factor: Tensor) -> Tensor:
        return x * self.weight + self.weight * factor


class Model(nn.Module):
    """Passes the factors on, or expands them to the batch."""

    def __init__(self, places: int, expand: bool) -> None:
        super().__init__()
        self.layer, self.expand = Places(places), expand
        self.register_buffer("factor", torch.arange(float(places)))

    def forward(self, x: Tensor) -> Tensor:
        factor: Any = self.factor
        return self.layer(x, factor.expand(len(x), -1) if self.expand else factor)


@pytest.mark.parametrize("records", [5, 6])
@pytest.mark.parametrize("gradients", ["fast", "opacus"])
def test_an_input_shared_by_all_records_is_refused_whatever_its_length(records: int, gradients: str) -> None:
    """Of 6 records each was given one of the 6 factors; of 5 all were given all."""
    with pytest.raises(RecordError, match="layer saw 6 and 6 rows"):
        trained(Model(6, expand=False), torch.zeros(records, 6), records, gradients)
    trained(Model(6, expand=True), torch.zeros(records, 6), records)


@pytest.mark.parametrize("named", [True, False])
def test_a_mask_of_attention_is_shared_by_name_or_by_place(named: bool) -> None:
    """As many records as places: the mask's rows were once given to the records."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.MultiheadAttention(4, 1, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            mask = torch.ones(6, 6).triu(1).bool()
            given = {"attn_mask": mask} if named else {}
            args: tuple[Any, ...] = () if named else (None, True, mask)
            answer: Tensor = self.layer(x, x, x, *args, **given)[0]
            return answer.flatten(1)

    torch.manual_seed(0)
    layer, x = Attention().layer, torch.randn(6, 6, 4)
    mask = torch.ones(6, 6).triu(1).bool()
    grad = torch.randn(6, 6, 4)
    args, kwargs = ((x, x, x), {"attn_mask": mask}) if named else ((x, x, x, None, True, mask), {})
    found = UNIT.pieces(layer, args, kwargs, grad)["in_proj_weight"]
    assert isinstance(found, Dense)
    for i in range(6):
        with bare(layer):
            out = layer(x[i : i + 1], x[i : i + 1], x[i : i + 1], attn_mask=mask)[0]
        (exact,) = torch.autograd.grad(out, layer.in_proj_weight, grad[i : i + 1])
        torch.testing.assert_close(found.values[i].reshape(exact.shape), exact, rtol=1e-4, atol=1e-5)
    trained(Attention(), x, 6)
