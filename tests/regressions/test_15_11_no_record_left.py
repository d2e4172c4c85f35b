"""torch.save(model) after a forward pass wrote the raw training records: the recorder hung on the model.

A search by bytes over everything a training leaves: pickles and copies of model and optimizer, files, states, what is
printed and logged, errors with their frames, and all that can be reached from the model.
"""

from __future__ import annotations

import copy
import gc
import io
import logging
import pickle
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parameter import is_lazy
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.torch import BudgetError, PrivacyEngine, RecordError

Tensor = torch.Tensor
RECORDS, WIDTH = 24, 6
ROUTES = pytest.mark.parametrize("route", ["fast", "opacus"])


def records() -> Tensor:
    return torch.randn(RECORDS, WIDTH, generator=torch.Generator().manual_seed(3))


def _needles(row: Tensor) -> list[bytes]:
    binary = [form[k : k + 3].tobytes() for form in (row.numpy(), row.double().numpy()) for k in range(WIDTH - 2)]
    return binary + [f"{float(v):.6f}"[:9].encode() for v in row if abs(float(v)) > 1]


NEEDLES = [_needles(row) for row in records()]


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, 5), nn.Dropout(0.2), nn.Tanh(), nn.Linear(5, 2))


def private(route: str, model: nn.Module | None = None, **options: Any) -> tuple[nn.Module, Any, Any]:
    model = network() if model is None else model
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    given = DataLoader(TensorDataset(records(), torch.zeros(RECORDS, dtype=torch.long)), batch_size=8)
    rest: dict[str, Any] = {"clip": 1.0, "delta": 1e-5, "noise_multiplier": 1.0, "gradients": route} | options
    return sdp.torch.make_private(model, optimizer, given, **rest)


def found_in(data: bytes) -> int:
    """How many of the records occur in the data: as three neighbouring values, in float32 or float64."""
    return sum(any(needle in data for needle in needles) for needles in NEEDLES)


def pickles(model: nn.Module, optimizer: Any) -> Iterator[tuple[str, bytes]]:
    def saved(thing: Any) -> bytes:
        buffer = io.BytesIO()
        torch.save(thing, buffer)
        return buffer.getvalue()

    yield "torch.save(model)", saved(model)
    yield "pickle.dumps(model)", pickle.dumps(model)
    yield "state_dict", saved(model.state_dict())
    yield "deepcopy", pickle.dumps(copy.deepcopy(model))
    yield "copy", pickle.dumps(copy.copy(model))
    yield "layer", pickle.dumps(model[0])  # type: ignore[index]
    yield "optimizer", pickle.dumps(optimizer)
    yield "optimizer copied", pickle.dumps(copy.deepcopy(optimizer))
    yield "optimizer state", saved(optimizer.state_dict())
    yield "privacy state", saved(optimizer.privacy_.state_dict())
    yield "repr", repr((model, optimizer, optimizer.privacy_)).encode()


def reached(start: Any) -> Iterator[Tensor]:
    """All tensors that can be reached from something, other than through classes, frames and modules' globals."""
    stop = (type, types.ModuleType, types.BuiltinFunctionType, types.FrameType, types.CodeType)
    seen, waiting = {id(start)}, [start]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Tensor):
            yield one
        if isinstance(one, types.FunctionType):
            others: list[Any] = [cell.cell_contents for cell in one.__closure__ or ()] + list(one.__defaults__ or ())
        else:
            others = gc.get_referents(one) + [getattr(one, "grad", None)] * isinstance(one, Tensor)
        for other in others:
            if id(other) not in seen and not isinstance(other, stop):
                seen.add(id(other))
                waiting.append(other)


def clean(tensors: Iterator[Tensor]) -> bool:
    return not any(found_in(t.detach().contiguous().numpy().tobytes()) for t in tensors if t.device.type == "cpu")


def test_the_search_finds_what_is_there() -> None:
    assert found_in(records().numpy().tobytes()) >= RECORDS
    assert found_in(records()[3:4].double().numpy().tobytes()) >= 1
    assert found_in(repr(records().tolist()).encode()) > 0
    model = network()
    model.kept = {"deep": [records()]}  # type: ignore[assignment]
    assert not clean(reached(model))
    assert found_in(pickle.dumps(model)) >= RECORDS


@ROUTES
def test_nothing_private_is_reached_from_the_model_at_any_moment(route: str) -> None:
    model, optimizer, loader = private(route, rng=np.random.default_rng(1))
    moments = 0
    for x, y in loader:
        optimizer.zero_grad()
        answer = model(x)
        for name, data in pickles(model, optimizer):
            assert found_in(data) == 0, ("after forward", name)
        assert clean(reached(model))
        loss = F.cross_entropy(answer, y)
        loss.backward()
        assert all(p.grad is None for p in model.parameters())  # none for a second optimizer
        assert not any(hasattr(p, "grad_sample") or hasattr(p, "_current_grad_sample") for p in model.parameters())
        for name, data in pickles(model, optimizer):
            assert found_in(data) == 0, ("after backward", name)
        assert clean(reached(model))
        optimizer.step()
        assert clean(reached(optimizer.privacy_.account))
        moments += 1
    assert moments == 3
    del x, y, answer, loss
    assert clean(reached(optimizer.privacy_.model))
    assert clean(reached(optimizer))


@ROUTES
def test_no_holder_of_a_record_is_held_by_the_model(route: str) -> None:
    """The other way round: from the records by gc.get_referrers."""
    model, _, loader = private(route)
    x, _ = next(iter(loader))
    model(x)
    mine = {id(module.__dict__) for module in model.modules()} | {id(module) for module in model.modules()}
    kept = [
        one
        for one in gc.get_objects()
        if issubclass(type(one), Tensor) and not is_lazy(one) and one.data_ptr() == x.data_ptr() != 0
    ]
    seen: set[int] = set()
    waiting: list[Any] = list(kept)
    for _ in range(4):
        holders = [h for h in gc.get_referrers(*waiting) if id(h) not in seen and not isinstance(h, types.FrameType)]
        holders = [h for h in holders if h is not waiting and h is not kept and not isinstance(h, types.ModuleType)]
        assert not mine & {id(h) for h in holders}
        seen |= {id(h) for h in holders}
        waiting = [h for h in holders if not isinstance(h, dict) or "__builtins__" not in h]
        if not waiting:
            break


@ROUTES
def test_a_copy_is_a_plain_model_and_needs_no_recorder(route: str) -> None:
    model, optimizer, loader = private(route)
    x, y = next(iter(loader))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.eval()
        model.eval()
        assert torch.equal(other(x), model(x))
        other.train()
        F.cross_entropy(other(x), y).backward()
        assert all(p.grad is not None for p in other.parameters())
    model.train()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    assert optimizer.privacy_.steps == 1
    with pytest.raises(TypeError, match="state_dict"):
        pickle.dumps(optimizer.privacy_)


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x - x.mean(0))


def errors(route: str) -> dict[str, Callable[[], None]]:
    """Mistakes that end in an error of ours, each with records at hand."""

    def mixing() -> None:
        model, _, loader = private(route, Mixing())
        model(next(iter(loader))[0])

    def outside() -> None:
        model, _, loader = private(route)
        model[0](next(iter(loader))[0])  # type: ignore[index]

    def twice() -> None:
        model, optimizer, loader = private(route)
        x, y = next(iter(loader))
        F.cross_entropy(model(x), y).backward()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    def late() -> None:
        model, optimizer, loader = private(route)
        x, y = next(iter(loader))
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)
        optimizer.step()
        loss.backward()

    def unstepped() -> None:
        model, _, loader = private(route)
        batches = iter(loader)
        x, y = next(batches)
        F.cross_entropy(model(x), y).backward()
        next(batches)

    def spent() -> None:
        model, optimizer, loader = private(route)
        optimizer.privacy_.account.limit, optimizer.privacy_.account.epsilon = 0, 1.0
        x, y = next(iter(loader))
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    def penalty() -> None:
        model, _, loader = private(route)
        x, y = next(iter(loader))
        (F.cross_entropy(model(x), y) + model[0].weight.square().sum()).backward()  # type: ignore[index]

    return {f.__name__: f for f in (mixing, outside, twice, late, unstepped, spent, penalty)}


@ROUTES
@pytest.mark.parametrize("name", errors("fast"))
def test_errors_hold_and_quote_no_record(name: str, route: str) -> None:
    """Of the frames those of this library; the user's own loop, and torch's, hold the batch they were given."""
    with pytest.raises((RecordError, BudgetError, RuntimeError)) as caught:
        errors(route)[name]()
    error: BaseException | None = caught.value
    while error is not None:
        assert found_in("".join(traceback.format_exception(error)).encode()) == 0
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if "/shapedp/" in frame.f_code.co_filename:
                held = {key: value for key, value in frame.f_locals.items() if key not in ("loader", "loss")}
                tensors = [t for t in reached(held) if t.shape[:1] != (RECORDS,)]  # the data set is the loader's
                assert clean(iter(tensors)), (frame.f_code.co_qualname, list(held))
        error = error.__context__


@ROUTES
def test_a_whole_training_leaves_no_record(
    route: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    engine = PrivacyEngine()
    model = network()
    given = DataLoader(TensorDataset(records(), torch.zeros(RECORDS, dtype=torch.long)), batch_size=8)
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters()), data_loader=given, noise_multiplier=1.0,
        max_grad_norm=1.0, journal=tmp_path / "run.steps", progress=True, delta=1e-5, gradients=route,
        physical_batch_size=4, rng=np.random.default_rng(0),
    )  # fmt: skip
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        torch.save(model, tmp_path / "model.pt")
        torch.save(optimizer, tmp_path / "optimizer.pt")
        optimizer.step()
        scheduler.step()
        engine.save_checkpoint(path=tmp_path / "checkpoint.pt", module=model, optimizer=optimizer)
    torch.save(scheduler.state_dict(), tmp_path / "scheduler.pt")
    (tmp_path / "certificate.json").write_text(str(optimizer.privacy_.certificate.to_json()))
    for file in tmp_path.iterdir():
        assert found_in(file.read_bytes()) == 0, file.name
    shown = capsys.readouterr()
    assert "step 3" in shown.err
    assert found_in((shown.out + shown.err + caplog.text).encode()) == 0
    assert {file.name for file in tmp_path.iterdir()} >= {"run.steps", "model.pt", "optimizer.pt", "checkpoint.pt"}
