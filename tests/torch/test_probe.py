"""Models that mix records are refused on their first batch, by both routes; those that do not are left as they were."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from tests.torch.helpers import private, step
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from shapedp.torch import Layout, RecordError, make_private
from shapedp.torch.loader import Part, _Pieces
from shapedp.torch.recorder import Recorder

Tensor = torch.Tensor
ROUTES = pytest.mark.parametrize("route", ["fast", "opacus"])
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


class Before(nn.Module):
    """A linear layer on what `change(self, x)` makes of the batch."""

    def __init__(self, change: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.change = nn.Linear(6, 2), change
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("spread", torch.ones(6))

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.change(self, x))


def batch(n: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(n)
    return torch.randn(n, 6), torch.randint(0, 2, (n,))


MIXING: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "mean": lambda m, x: x - x.mean(0),
    "batch norm as a function": lambda m, x: F.batch_norm(x, m.mean, m.spread, training=m.training),
    "first record": lambda m, x: x - x[0],
    "last record": lambda m, x: x - x[-1],
    "neighbour": lambda m, x: x + 0.01 * x.roll(1, 0),
    "number of records": lambda m, x: x / len(x),
    "largest": lambda m, x: x / x.abs().amax(),
}


@ROUTES
@pytest.mark.parametrize("name", MIXING)
@pytest.mark.parametrize("n", [2, 64, 1024])
def test_mixing_is_refused_at_any_batch_size(name: str, n: int, route: str) -> None:
    model, _, _, training = private(Before(MIXING[name]), records=2048, batch_size=n, gradients=route)
    training.receive(Part(n, True))
    with pytest.raises(RecordError, match="depends on the others"):
        model(batch(n)[0])


@ROUTES
def test_an_empty_first_batch_does_not_end_the_check(route: str) -> None:
    model, optimizer, _, training = private(Before(MIXING["mean"]), gradients=route)
    training.receive(Part(0, True))
    step(model, optimizer, torch.zeros(1, 6), torch.zeros(1, dtype=torch.long))
    training.receive(Part(1, True))
    step(model, optimizer, *batch(1))
    training.receive(Part(12, True))
    with pytest.raises(RecordError, match="what layer gets for one record depends on the others"):
        model(batch(12)[0])


@ROUTES
def test_layers_called_outside_the_models_forward_are_refused(route: str) -> None:
    x, y = batch(12)
    model, optimizer, _, training = private(Before(lambda m, x: x), gradients=route)
    training.receive(Part(12, True))
    with pytest.raises(RecordError, match="layer was called outside the model's own forward"):
        model.layer(x - x.mean(0))
    with torch.no_grad():
        model.layer(x)
    step(model, optimizer, x, y)
    with pytest.raises(RecordError, match="outside the model's own forward"):
        model.forward(x)
    model, optimizer, _, training = private(Before(lambda m, x: x), gradients=route, check_records=False)
    training.receive(Part(12, True))
    F.cross_entropy(model.layer(x), y).backward()
    optimizer.step()


def test_answers_that_the_caller_mixes_inside_the_model_are_found() -> None:
    class After(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 2)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            y = self.layer(x)
            return {"answer": y - 0.1 * y.mean(0)}

    model, _, _, training = private(After())
    training.receive(Part(12, True))
    with pytest.raises(RecordError, match="what the caller gets for one record"):
        model(batch(12)[0])


def test_inputs_in_dicts_are_checked_and_others_refused() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 2)

        def forward(self, given: Any) -> Tensor:
            x = given["x"]
            return self.layer(x - x.mean(0))

    x = batch(12)[0]
    model, _, _, training = private(Named())
    training.receive(Part(12, True))
    with pytest.raises(RecordError, match="depends on the others"):
        model({"x": x})
    with pytest.raises(RecordError, match="without a tensor whose first axis is the record"):
        model(type("Odd", (), {"__getitem__": lambda self, key: x})())


def test_a_table_that_the_forward_renormalises_is_refused() -> None:
    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.layer = nn.Embedding(10, 6).requires_grad_(False), nn.Linear(6, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(F.embedding(x, self.table.weight, max_norm=0.1))

    model, _, _, training = private(Table())
    training.receive(Part(4, True))
    with pytest.raises(RecordError, match=r"the forward pass changes table\.weight in place"):
        model(torch.arange(4))


class Random(nn.Module):
    """Dropout as layer and as function, a running mean, a gate drawn by coin: nothing mixes records."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.second = nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.calls += 1
        h = self.drop(torch.relu(self.first(x)))
        h = F.dropout(h, 0.3, self.training)
        return self.second(h * (1 + float(torch.rand(()) < 0.5) * self.training))


@ROUTES
def test_random_layers_are_no_mixing_and_the_check_leaves_no_trace(route: str) -> None:
    x, y = batch(12)
    model, optimizer, _, training = private(Random(), gradients=route)
    training.receive(Part(12, True))
    torch.manual_seed(7)
    expected = float(torch.rand(()))
    torch.manual_seed(7)
    step(model, optimizer, x, y)
    assert float(torch.rand(())) == expected
    assert float(model.calls) == 1
    assert all(module.training for module in model.modules())
    assert training.steps == 1


def test_the_check_runs_once() -> None:
    runs = []

    class Counted(Before):
        def forward(self, x: Tensor) -> Tensor:
            runs.append(len(x))
            return super().forward(x)

    model, optimizer, _, training = private(Counted(lambda m, x: x))
    for n, seen in ((1, [2, 1, 1]), (1, [1]), (5, [4, 1, 4, 4, 4, 4, 5]), (5, [5])):
        runs.clear()
        training.receive(Part(n, True))
        step(model, optimizer, *batch(n))
        assert runs == seen


def test_half_precision_is_no_mixing() -> None:
    torch.manual_seed(0)
    layers = [layer for _ in range(12) for layer in (nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU())]
    model = nn.Sequential(*layers)
    recorder = Recorder(model, Layout.of(model), False, lambda n, gradients, scale: None)
    recorder.attach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(torch.randn(100, 64))


class Mean(nn.Module):
    """The mean of the words of a text, over those that count or, without a mask, over all places."""

    def __init__(self, masked: bool) -> None:
        super().__init__()
        self.table, self.head, self.masked = nn.Embedding(20, 8), nn.Linear(8, 2), masked

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kept = mask[..., None].float() if self.masked else torch.ones_like(mask)[..., None].float()
        out: torch.Tensor = self.head((self.table(words) * kept).sum(1) / kept.sum(1))
        return out


@pytest.mark.parametrize("kind", [dict, UserDict])
@pytest.mark.parametrize("masked", [True, False])
def test_batches_of_any_mapping_are_looked_into(kind: Any, masked: bool) -> None:
    """Tokenizers return a mapping that is no dict; an empty draw holds zeros there, too, and no record."""
    texts = [[3 + k % 5] * (9 - k % 7) for k in range(40)]

    def collate(records: list[list[int]]) -> Any:
        longest = max(map(len, records))
        rows = [one + [0] * (longest - len(one)) for one in records]
        return kind({"words": torch.tensor(rows), "mask": torch.tensor(rows) > 0})

    torch.manual_seed(0)
    model: nn.Module = Mean(masked)
    loader = DataLoader(cast(Any, texts), batch_size=8, collate_fn=collate)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, batches = make_private(model, optimizer, loader, clip=1.0, noise_multiplier=1.0)

    def run() -> None:
        for batch in batches:
            model(batch["words"], batch["mask"]).square().sum(1).mean().backward()
            optimizer.step()

    if masked:
        run()
    else:
        with pytest.raises(RecordError, match="collate_fn"):
            run()
    empty = _Pieces(texts, collate)[[]]
    assert not empty["words"].any()
