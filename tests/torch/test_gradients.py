"""Clipped and summed gradients equal a naive loop over records, by our route and by Opacus'."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import pytest
import torch
from tests.torch.models import CASES, Transformer, naive_rows
from torch import nn
from torch.nn import functional as F

from shapedp.torch import Auto, Flat, Layout, PerLayer, PerValue
from shapedp.torch.gradients import summed_rows
from shapedp.torch.recorder import Recorder, RecordError
from shapedp.torch.rules import opacus_rule

RECORDS = 7


def setting(name: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    case = CASES[name]
    torch.manual_seed(3)
    return case.build(), case.inputs(RECORDS), torch.randint(0, case.classes, (RECORDS,))


def by_route(route: Any, clip: Any, model: nn.Module, x: torch.Tensor, y: torch.Tensor, mean: bool) -> torch.Tensor:
    found: list[Any] = []
    layout = Layout.of(model)
    recorder = route(model, layout, mean, lambda n, gradients, scale: found.append((n, gradients, scale)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus registers backward hooks that torch warns about
        recorder.attach()
        F.cross_entropy(model(x), y, reduction="mean" if mean else "sum").backward()
    recorder.flush()
    assert all(p.grad is None for p in model.parameters())
    ((n, gradients, scale),) = found
    assert n == len(x)
    return summed_rows(clip, layout, n, gradients, scale)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of normalised weights, record by record
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("clip", [Flat(0.7), Auto(0.7), PerLayer(0.7), PerValue(0.7)], ids=lambda c: type(c).__name__)
def test_sum_equals_the_naive_loop(name: str, clip: Any) -> None:
    model, x, y = setting(name)
    layout = Layout.of(model)
    expected = clip.rows(naive_rows(model, x, y), layout).sum(0)
    routes: list[Any] = [Recorder, partial(Recorder, rule=opacus_rule)] if CASES[name].opacus else [Recorder]
    for route in routes:
        for mean in (True, False):
            total = by_route(route, clip, model, x, y, mean)
            assert (total - expected).abs().max() < 1e-6, (route, mean)


def test_the_comparison_notices_a_clip_that_is_one_percent_off() -> None:
    model, x, y = setting("conv")
    expected = Flat(0.7).rows(naive_rows(model, x, y), Layout.of(model)).sum(0)
    assert (by_route(Recorder, Flat(0.707), model, x, y, True) - expected).abs().max() > 1e-5


@pytest.mark.parametrize("rest", [1e-3, 10.0])
def test_norms_where_the_terms_of_a_sequence_cancel(rest: float) -> None:
    """Position terms that nearly cancel: never too small, near the truth unless terms are 128 times as long as it."""
    from shapedp.torch.gradients import CANCEL, Products

    torch.manual_seed(0)
    left = torch.randn(3, 1, 8) * 100
    right = torch.randn(3, 1, 8) * 100
    piece = Products(torch.cat([left, -left], 1), torch.cat([right, right + rest * torch.randn(3, 1, 8)], 1))
    exact = torch.bmm(piece.left.double().transpose(1, 2), piece.right.double()).flatten(1).norm(dim=1)
    reach = (piece.left.double().norm(dim=2) * piece.right.double().norm(dim=2)).sum(1)
    expected = torch.maximum(exact, reach / CANCEL)
    assert bool((exact < reach / CANCEL).all()) == (rest < 1)
    ratio = piece.squared_norms().sqrt() / expected
    assert (ratio >= 1 - 1e-13).all()
    assert (ratio < 1 + 2.0**-24).all()


def test_shared_positions_are_found_even_where_the_length_is_the_batch_size() -> None:
    torch.manual_seed(0)
    model = Transformer(length=RECORDS, expand=False)
    x, y = torch.randint(0, 20, (RECORDS, RECORDS)), torch.randint(0, 3, (RECORDS,))
    recorder = Recorder(model, Layout.of(model), True, lambda n, gradients, scale: None)
    recorder.attach()
    with pytest.raises(RecordError, match="positions saw 7 and 7 rows"):
        F.cross_entropy(model(x), y)


def test_folded_axes_are_found() -> None:
    class Folded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(5, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x.flatten(0, 1)).reshape(*x.shape[:2], -1).mean(1)

    model = Folded()
    recorder = Recorder(model, Layout.of(model), True, lambda n, gradients, scale: None)
    recorder.attach()
    with pytest.raises(RecordError, match="layer saw 12 and 3 rows for batches of 4 and 1"):
        model(torch.randn(7, 3, 5))


def test_mixed_records_are_found() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(5, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x - x.mean(0))

    model = Mixed()
    recorder = Recorder(model, Layout.of(model), True, lambda n, gradients, scale: None)
    recorder.attach()
    with pytest.raises(RecordError, match="depends on the others"):
        model(torch.randn(7, 5))


def test_records_that_are_not_finite_add_nothing() -> None:
    model, x, y = setting("conv")
    clip, layout = Flat(0.7), Layout.of(model)
    rows = clip.rows(naive_rows(model, x, y), layout)
    x[2, 0, 3, 3], x[5, 0, 0, 0] = float("nan"), float("inf")
    expected = rows[[0, 1, 3, 4, 6]].sum(0)
    for kind in (clip, PerValue(0.7), PerLayer(0.7)):
        total = by_route(Recorder, kind, model, x, y, True)
        assert torch.isfinite(total).all()
        if kind is clip:
            assert (total - expected).abs().max() < 1e-6


def test_a_model_trained_privately_answers_as_before_in_evaluation() -> None:
    model, x, _ = setting("two-block transformer")
    before = model(x)
    recorder = Recorder(model, Layout.of(model), True, lambda n, gradients, scale: None)
    recorder.attach()
    with torch.no_grad():
        assert torch.equal(model(x), before)
    model.eval()
    assert torch.equal(model(x), before)
    assert not recorder.calls
    del recorder
    model.train()
    assert torch.equal(model(x), before)


def test_a_linear_layer_on_sequences_of_another_precision_is_refused_as_torch_does() -> None:
    model = nn.Linear(4, 3)
    Recorder(model, Layout.of(model), False, lambda n, gradients, scale: None).attach()
    with pytest.raises(RuntimeError, match="dtype"):
        model(torch.randn(2, 5, 4, dtype=torch.float64))


def test_a_linear_layer_on_sequences_may_be_followed_by_a_change_in_place() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(30, 3))
    x, y = torch.randn(RECORDS, 5, 4, requires_grad=True), torch.randint(0, 3, (RECORDS,))
    expected = Flat(0.7).rows(naive_rows(model, x, y), Layout.of(model)).sum(0)
    x.grad = None
    F.cross_entropy(model(x), y).backward()
    slope, x.grad = x.grad, None
    model.zero_grad(set_to_none=True)
    assert (by_route(Recorder, Flat(0.7), model, x, y, True) - expected).abs().max() < 1e-6
    assert slope is not None
    assert torch.allclose(x.grad, slope, atol=1e-7)
