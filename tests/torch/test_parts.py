"""The life of a draw: it begins, each of its records adds one row, it ends in one step, and nothing is left over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.torch.helpers import data, gradient, network, private, step
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from shapedp.mechanisms.watch import watching
from shapedp.torch import RecordError, make_private
from shapedp.torch.loader import Part


class Sums:
    """Keeps the sums that reach the noise."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, mechanism: Any, x: Any, draw: Any) -> Any:
        self.seen.append(np.array(x, dtype=np.float64))
        return draw()


def test_a_draw_left_between_its_pieces_is_dropped() -> None:
    """Every record is in every draw: what is released after a break is one draw, not one and a half."""
    x, y = data()
    model, optimizer, loader, training = private(lr=0.0, batch_size=60, physical_batch_size=32)
    sums = Sums()
    with watching(sums):
        for a, b in loader:
            step(model, optimizer, a, b)
            break
        for a, b in loader:
            step(model, optimizer, a, b)
        training.receive(Part(60, True))
        step(model, optimizer, x, y)
    assert training.steps == len(sums.seen) == 2
    assert np.abs(sums.seen[0] - sums.seen[1]).max() < 1e-5


def test_a_piece_without_its_beginning_is_refused() -> None:
    *_, training = private()
    with pytest.raises(RuntimeError, match="without those before it"):
        training.receive(Part(4, True, False))


def test_a_refused_draw_leaves_nothing_behind() -> None:
    x, y = data()
    model, optimizer, _, training = private(noise_multiplier=1e-6)
    training.receive(Part(4, True))
    F.cross_entropy(model(x[:4]), y[:4]).backward()
    F.cross_entropy(model(x[:4]), y[:4]).backward()
    with pytest.raises(RecordError, match="once a step"):
        optimizer.step()
    training.receive(Part(0, True))
    step(model, optimizer, x[:1], y[:1])
    assert gradient(model).abs().max() < 1e-5
    assert torch.isfinite(gradient(model)).all()


def test_a_row_must_be_one_record() -> None:
    """Two records packed into one row would share one clip."""
    x, y = data()
    for options, refused in (({}, True), ({"check_records": False}, False)):
        model, optimizer, _, training = private(**options)
        training.receive(Part(8, True))
        F.cross_entropy(model(x[:8:2] + x[1:8:2]), y[:8:2]).backward()
        if refused:
            with pytest.raises(RecordError, match="fewer rows were run backward than the batch has records"):
                optimizer.step()
            assert training.steps == 0
        else:
            optimizer.step()
            assert training.steps == 1


def test_every_piece_must_be_whole() -> None:
    x, y = data()
    model, _, _, training = private()
    training.receive(Part(8, False))
    F.cross_entropy(model(x[:4]), y[:4]).backward()
    with pytest.raises(RecordError, match="fewer rows were run backward than the batch has records"):
        training.receive(Part(8, True, False))


def test_a_step_without_gradients_is_not_charged() -> None:
    """A model left in evaluation mode would take steps of noise alone."""
    x, y = data()
    model, optimizer, _, training = private()
    model.eval()
    training.receive(Part(8, True))
    with pytest.raises(RecordError, match=r"call model\.train\(\)"):
        step(model, optimizer, x[:8], y[:8])
    assert training.steps == 0


def test_iterations_of_a_loader_inside_each_other_keep_their_own_pieces() -> None:
    """Workers draw ahead: the inner loop's draws are not those of the outer one."""
    x, y = data()
    model: torch.nn.Module = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = DataLoader(TensorDataset(x, y), batch_size=10, num_workers=1)
    rest: dict[str, Any] = {"clip": 1.0, "delta": 1e-5, "noise_multiplier": 1.0, "rng": np.random.default_rng(0)}
    model, optimizer, loader = make_private(model, optimizer, given, **rest)
    training = optimizer.privacy_  # type: ignore[attr-defined]
    for k, (a, b) in enumerate(loader):
        assert len(a) == max(training.part.records, 1)
        step(model, optimizer, a, b)
        if k == 0:
            with torch.no_grad():
                assert sum(len(model(inner)) for inner, _ in loader) > 0
    assert training.steps == len(loader) == 6
