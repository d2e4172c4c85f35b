"""What mixed records, or showed something of one, unseen: padding in collate_fn, the number of pieces of a draw, an
error of the check that depended on the records of the first batch, raw gradients in p.grad under gradients="opacus"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.torch import RecordError
from shapedp.torch.loader import Part, PoissonBatches

Tensor = torch.Tensor


class Sequences(torch.utils.data.Dataset[Any]):
    """Records of 2 to 7 positions."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        generator = torch.Generator().manual_seed(index)
        return torch.rand(2 + index % 6, 3, generator=generator), index % 2


def padded(records: list[Any]) -> Any:
    x = nn.utils.rnn.pad_sequence([x for x, _ in records], batch_first=True)
    return x, torch.tensor([y for _, y in records])


def masked(records: list[Any]) -> Any:
    x, y = padded(records)
    sizes = torch.tensor([len(x) for x, _ in records])
    return x, (torch.arange(x.shape[1]) < sizes[:, None]).float(), y


def left(records: list[Any]) -> Any:
    x = nn.utils.rnn.pad_sequence([x.flip(0) for x, _ in records], batch_first=True).flip(1)
    return x, torch.tensor([y for _, y in records])


def sorted_by_length(records: list[Any]) -> Any:
    return masked(sorted(records, key=lambda one: -len(one[0])))


def centred(records: list[Any]) -> Any:
    x = torch.stack([x.mean(0) for x, _ in records])
    return x - x.mean(0), torch.tensor([y for _, y in records])


def fixed(records: list[Any]) -> Any:
    x = torch.stack([F.pad(x[:14], (0, 0, 0, 14 - len(x[:14]))) for x, _ in records])
    return x, torch.tensor([y for _, y in records])


class Mean(nn.Module):
    """The mean over positions of a layer, over those that are not masked if a mask is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = torch.tanh(self.layer(x))
        if mask is not None:
            return self.head((h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))
        return self.head(h.mean(1) if h.ndim == 3 else h)


class Last(nn.Module):
    """What stands at the last position."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x[:, -1])


class Tagged(nn.Module):
    """An answer for each position."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


CASES: list[tuple[str, Callable[[], nn.Module], Callable[[list[Any]], Any], bool]] = [
    ("mean over padding", Mean, padded, False),
    ("last position of padding", Last, padded, False),
    ("centred by the collate function", Mean, centred, False),
    ("masked", Mean, masked, True),
    ("masked and sorted", Mean, sorted_by_length, True),
    ("padded to a fixed length", Mean, fixed, True),
    ("an answer for each position", Tagged, padded, True),
    ("an answer for each position, padded on the left", Tagged, left, True),
    ("last position, padded on the left", Last, left, True),
]


@pytest.mark.parametrize("route", ["fast", "opacus"])
@pytest.mark.parametrize(("name", "build", "collate", "allowed"), CASES, ids=[case[0] for case in CASES])
def test_the_check_goes_through_the_collate_function(
    name: str, build: Any, collate: Any, allowed: bool, route: str
) -> None:
    torch.manual_seed(0)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = DataLoader(Sequences(), batch_size=20, collate_fn=collate)
    _, _, loader = sdp.torch.make_private(
        model, optimizer, given, clip=1.0, noise_multiplier=1.0, delta=1e-5, gradients=route,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    *inputs, _ = next(iter(loader))
    if allowed:
        model(*inputs)
    else:
        with pytest.raises(RecordError, match=r"collate_fn puts beside it|depends on the others"):
            model(*inputs)


class NullSpace(nn.Module):
    """Mixes records, but for records whose first value is zero."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x - x[:, :1].mean(0))


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_whether_the_check_fails_depends_on_no_record(first: float) -> None:
    x = torch.ones(8, 3)
    x[:, 0] = 0.0
    x[0, 0] = first
    model = NullSpace()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = DataLoader(TensorDataset(x), batch_size=8)
    sdp.torch.make_private(model, optimizer, given, clip=1.0, noise_multiplier=1.0, delta=1e-5)
    optimizer.privacy_.receive(Part(8, True))  # type: ignore[attr-defined]
    with pytest.raises(RecordError, match="depends on the others") as caught:
        model(x)
    assert "8" not in str(caught.value)


def test_every_draw_has_as_many_pieces() -> None:
    counts: list[int] = []
    parts: list[Part] = []
    for rate, most in ((0.1, 3), (0.5, 16), (1.0, 7), (0.02, 1)):
        batches = PoissonBatches(range(100), rate, 200, sdp.sampling.source(), most, parts.append)
        parts.clear()
        drawn = [[k for k in piece if k >= 0] for piece in batches]
        ends = [k for k, part in enumerate(parts) if part.last]
        counts = np.diff([-1, *ends]).tolist()
        assert len(ends) == 200
        assert len(set(counts)) == 1, (rate, most, set(counts))
        assert [part.first for part in parts] == [k % counts[0] == 0 for k in range(len(parts))]
        assert max(map(len, drawn)) <= most
        assert [part.records for part in parts] == [len(piece) for piece in drawn]


def test_a_scheduler_ends_where_it_does_for_every_draw() -> None:
    rates = set()
    for seed in range(6):
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        given = DataLoader(TensorDataset(torch.ones(60, 3)), batch_size=12)
        _, _, loader = sdp.torch.make_private(
            model, optimizer, given, clip=1.0, noise_multiplier=1.0, delta=1e-5, physical_batch_size=4,
            rng=np.random.default_rng(seed),
        )  # fmt: skip
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for (x,) in loader:
            model(x).square().sum(1).mean().backward()
            optimizer.step()
            scheduler.step()
        rates.add(optimizer.param_groups[0]["lr"])
        assert optimizer.privacy_.steps == 5  # type: ignore[attr-defined]
    assert len(rates) == 1


@pytest.mark.parametrize("route", ["fast", "opacus"])
def test_a_second_optimizer_finds_no_raw_gradient(route: str) -> None:
    model = nn.Linear(3, 2)
    optimizer, other = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    given = DataLoader(TensorDataset(torch.ones(8, 3)), batch_size=8)
    sdp.torch.make_private(model, optimizer, given, clip=1.0, noise_multiplier=1.0, delta=1e-5, gradients=route)
    before = [p.detach().clone() for p in model.parameters()]
    optimizer.privacy_.receive(Part(8, True))  # type: ignore[attr-defined]
    model(torch.ones(8, 3)).square().sum(1).mean().backward()
    other.step()
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
