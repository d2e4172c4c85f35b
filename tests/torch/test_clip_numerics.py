"""What one record moves the computed sum by, on inputs made to defeat the arithmetic, against the certified set."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.torch.models import CASES
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from shapedp.mechanisms.watch import watching
from shapedp.torch import Adaptive, Auto, Flat, Layout, PerLayer, PerValue, Training, make_private
from shapedp.torch.geodp import AngleWindows
from shapedp.torch.loader import Part
from shapedp.torch.recorder import RecordError
from shapedp.torch.rounding import OTHERS, most_records

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
    certified: Any = training.mechanism.sensitivity
    radius = certified.radius if hasattr(certified, "radius") else np.linalg.norm(certified.radii)
    return float(np.linalg.norm(found[0] - found[1])), float(radius)


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


def uneven(half: int) -> tuple[Tensor, Tensor]:
    """Records whose float32 sum, taken in order, loses all rows below half its last place once it passes `half`."""
    rows = torch.tensor([1.0] * half + [0.5] + [-half * 2.0**-24 * 0.999999] * half)
    return torch.ones(len(rows), 1), -rows[:, None] / 2


def test_a_gradient_whose_factors_underflow_in_float32_is_clipped() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    for small, large in ((1e-25, 1e30), (1e-30, 1e38), (1e-44, 1e38)):
        x[0], y[0] = small, large
        for model in (nn.Linear(4, 1, bias=False), nn.Linear(4, 1)):
            move, radius = moved(model, x, y)
            assert move <= radius
    tall = torch.full((2, 4), 1e-200, dtype=torch.float64)
    for target in (1e200, 1e290):
        move, radius = moved(line(4).double(), tall, torch.full((2, 1), target, dtype=torch.float64))
        assert move <= radius


@pytest.mark.parametrize("half", [256, 1024, 4096, 16384])
def test_a_sum_of_many_small_rows_loses_none(half: int) -> None:
    move, radius = moved(line(), *uneven(half))
    assert abs(move - 1) < 1e-9
    assert move <= radius


def test_a_sum_in_float32_would_leave_the_set() -> None:
    """The same rows added in float32 move by more than any set certified here: the test above can fail."""
    rows = -2 * uneven(4096)[1]
    with_, without = (torch.ones(len(part)) @ part.repeat(1, 8) for part in (rows, rows[1:]))
    assert float((with_ - without)[0]) > 1.5


@pytest.mark.parametrize("inputs", [2**14, 2**16, 2**18, 2**20])
def test_long_gradients_are_clipped(inputs: int) -> None:
    for value in np.linspace(1, 2, 4):
        move, radius = moved(line(inputs), torch.full((2, inputs), float(value)), torch.full((2, 1), -1000.0))
        assert 1 - 1e-9 < move <= 1 < radius


@pytest.mark.parametrize("clip", [Flat(1.0), Auto(1.0), PerLayer(1.0)], ids=lambda clip: type(clip).__name__)
@pytest.mark.parametrize("kind", ["sequence", "wide sequence", "table", "convolution"])
def test_gradients_that_are_sums_over_positions(kind: str, clip: Any) -> None:
    """Terms of size 1e3 that cancel to a thousandth of that in every record, 40 records."""
    torch.manual_seed(0)
    records, positions = 40, 8
    signs = torch.tensor([1.0, -1.0]).repeat(positions // 2)
    model: nn.Module
    if kind == "table":
        model = nn.Embedding(3, 5)
        x = torch.randint(0, 3, (records, 1)).expand(-1, positions).clone()
        shape: tuple[int, ...] = (positions, 5)
    elif kind == "convolution":
        model, shape = nn.Conv1d(2, 3, 1), (3, positions)
        x = torch.ones(records, 2, positions) + 1e-3 * torch.randn(records, 2, positions)
    else:
        model = nn.Linear(300, 300) if kind == "wide sequence" else nn.Linear(6, 4)
        shape = (positions, model.out_features)
        x = torch.ones(records, positions, model.in_features)
        x += 1e-3 * torch.randn_like(x)
    pull = 1e3 * (torch.ones(shape) * (signs if kind == "convolution" else signs[:, None]))
    pull = pull + torch.randn(records, *shape)

    def loss(answer: Tensor, target: Tensor) -> Tensor:
        return (answer * target).sum()

    move, radius = moved(model, x, pull, loss=loss, clip=clip, loss_reduction="sum")
    assert 0 < move <= radius


def test_a_parameter_that_is_one_number() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.tensor(0.5))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.factor

    x, y = torch.full((3, 1), 2.0), torch.full((3, 1), 100.0)
    for clip in (Flat(1.0), PerLayer(1.0)):
        move, radius = moved(Scaled(), x, y, clip=clip)
        assert abs(move - 1) < 1e-9
        assert move <= radius


def half_precision(where: str) -> Callable[..., Tensor]:
    """A training step of `line` under autocast: only the forward pass, the whole loop, or a batch in two passes."""

    def run(optimizer: Any, model: nn.Module, x: Tensor, y: Tensor, reduction: str) -> None:
        for part in [slice(0, len(x) - 1), slice(len(x) - 1, None)] if where == "two passes" else [slice(None)]:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.mse_loss(model(x[part]).float(), y[part], reduction=reduction)
                if where == "loop":
                    loss.backward()
                    optimizer.step()
            if where != "loop":
                loss.backward()
        if where != "loop":
            optimizer.step()

    return run


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("where", ["forward", "loop", "two passes"])
@pytest.mark.parametrize("gradients", ["fast", "opacus"])
def test_sums_under_autocast_stay_within_the_certified_set(where: str, gradients: str) -> None:
    """Rows of the clip's length, and shorter ones, in batches around powers of two."""
    step = half_precision(where)
    for target in (1000.0, 0.3):
        x, y = torch.zeros(1031, 8), torch.full((1031, 1), -target)
        x[:, 0] = 1.0
        model = line(8)
        optimizer, training = private(model, x, y, loss_reduction="sum", gradients=gradients)
        seen: list[np.ndarray] = []

        def keep(mechanism: Any, query: Any, draw: Any, seen: Any = seen) -> Any:
            seen.append(np.array(query))
            return query

        for records in (257, 258, 259, 1026, 1027, 1028):
            training.receive(Part(records, True))
            with watching(keep):
                step(optimizer, model, x[:records], y[:records], "sum")
        moves = [float(np.linalg.norm(seen[k] - seen[k + 1])) for k in (0, 1, 3, 4)]
        assert min(moves) > 0.5
        assert max(moves) <= training.mechanism.sensitivity.radius  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("where", ["forward", "loop", "two passes"])
@pytest.mark.parametrize("gradients", ["fast", "opacus"])
def test_a_mean_in_half_precision_is_refused(where: str, gradients: str) -> None:
    """Each record's gradient is divided by the size of the batch and rounded to 8 bits: all change when one leaves."""
    x, y = torch.randn(9, 8), torch.randn(9, 1)
    model = line(8)
    optimizer, training = private(model, x, y, gradients=gradients)
    training.receive(Part(9, True))
    with pytest.raises(RecordError, match="pass loss_reduction='sum'"):
        half_precision(where)(optimizer, model, x, y, "mean")
    assert training.steps == 0


def change_of_others(model: nn.Module, one: Tensor, reduction: str) -> list[tuple[float, float]]:
    """How much the rows of n - 1 equal records change when another one leaves, and the length of their sum."""
    x, y = one.repeat(130, *(1,) * (one.ndim - 1)), torch.ones(130, dtype=torch.int64, device=one.device)
    optimizer, training = private(model, x, y, clip=100.0, loss_reduction=reduction)

    def loss(answer: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(answer, target, reduction=reduction)

    sums = {n: sum_of(model, optimizer, training, x[:n], y[:n], loss) for n in (127, 128, 129, 130)}
    return [
        (float(np.linalg.norm(sums[n] - sums[n - 1] * n / (n - 1))), float(np.linalg.norm(sums[n])))
        for n in (128, 129, 130)
    ]


@pytest.mark.parametrize("name", ["linear", "conv", "two-block transformer"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_records_beside_the_one_that_leaves_keep_their_rows(name: str, reduction: str) -> None:
    """Equal records, one leaves: what the rows of the others differ by fits the room that is left for it."""
    case = CASES[name]
    torch.manual_seed(0)
    for change, size in change_of_others(case.build(), case.inputs(1), reduction):
        assert change <= OTHERS * size


@pytest.mark.parametrize("target", [1.0, 1.0 + 2.0**-23, 1.5, 0.1])
def test_counts_of_norms_at_the_radius_do_not_turn_together(target: float) -> None:
    """A mean over 300 records whose norm is the radius to the last bit: one leaves, the others count as before."""
    x = torch.ones(300, 3) / 3**0.5
    y = torch.full((300, 1), -target / 2)
    model = line(3)
    optimizer, training = private(model, x, y, clip=Adaptive(1.0, rate=1e-13))
    blocks: Any = training.mechanism.sensitivity
    sums = [sum_of(model, optimizer, training, x[:n], y[:n], F.mse_loss) for n in range(290, 300)]
    for more, less in itertools.pairwise(sums):
        assert np.linalg.norm((more - less)[:3]) <= blocks.radii[0]
        assert abs((more - less)[3]) <= blocks.radii[1]


def test_draws_stay_below_the_number_that_is_counted_with() -> None:
    """The exact tails of binomial draws, and of those with one record more; a tenth less would not do."""
    from scipy import stats

    for expected, records in ((1, 1000), (12, 60), (256, 60_000), (10_000, 800_167)):
        most = most_records(float(expected))
        for more in (0, 1):
            tail = stats.binom.logsf(most - 1, records + more, expected / records) if most <= records else -np.inf
            assert tail < -128 * np.log(2)
    assert stats.binom.logsf(0.9 * most_records(256.0), 60_000, 256 / 60_000) > -128 * np.log(2)


@pytest.mark.parametrize("p", [2.0, 0.5, 0.1])
def test_bounds_of_single_values_are_rounded_down(p: float) -> None:
    """p = 0.1 gives bounds down to 1e-33."""
    clip = PerValue([1.0, 0.7, 1e-12], p=p)
    layout = Layout(("a", "b", "c"), ((2000,), (17,), (3,)), (0, 1, 2))
    rows = clip.rows(torch.full((1, layout.dim), 5.0), layout)
    assert (rows[0].double().numpy() <= clip.bounds(layout)).all()
