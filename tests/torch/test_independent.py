"""`independent=True`: who else is in a batch changes no bit of a record's gradient; by brute force over many models."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from tests.torch.helpers import data, network, private
from tests.torch.models import CASES, PaperCNN, Transformer, images, words
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
import shapedp_check
import shapedp.torch.training as at_work
from shapedp.mechanisms.watch import watching
from shapedp.privacy.assumptions import SENTENCES
from shapedp.sampling import source
from shapedp.torch import Adaptive, Flat, Layout, PerLayer, RecordError, TrainingPlan, make_private
from shapedp.torch.batches import FixedBatches, PlacedBatches, PoissonBatches
from shapedp.torch.gradients import summed_rows
from shapedp.torch.loader import Part
from shapedp.torch.rounding import OTHERS, margin, most_records

PLACES = 22


class Masked(nn.Module):
    """Attention in which the places after the first zero are padding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 8, padding_idx=0)
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h, mask = self.tokens(x), x == 0
        mixed = self.attention(h, h, h, key_padding_mask=mask, need_weights=False)[0]
        return self.head(F.dropout(mixed.masked_fill(mask[..., None], 0.0), 0.2).sum(1))


class Steep(nn.Module):
    """A sigmoid's last bit decides through a ReLU whether a record has a gradient at all."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.first, self.last = nn.Linear(7, 9), nn.Linear(9, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.sigmoid(self.first(x))
        return 1e7 * self.last(torch.relu((h - h.detach().mean(1, keepdim=True)) * 1e6))


class Noisy(nn.Module):
    """Numbers drawn in the forward."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x + torch.rand_like(x))


@dataclass(frozen=True)
class Kind:
    build: Callable[[], nn.Module]
    inputs: Callable[[int], Tensor]
    classes: int = 3
    options: tuple[tuple[str, Any], ...] = ()
    half: bool = False
    equal: bool = False


def rows(*shape: int, size: float = 1.0) -> Callable[[int], Tensor]:
    return lambda n: size * torch.randn(n, *shape)


def net(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers)


SUM = (("loss_reduction", "sum"),)
KINDS: dict[str, Kind] = {
    **{name: Kind(case.build, case.inputs, case.classes) for name, case in CASES.items()},
    "dropout": Kind(lambda: net(nn.Linear(6, 9), nn.Dropout(0.5), nn.ReLU(), nn.Linear(9, 3)), rows(6)),
    "dropout of channels": Kind(
        lambda: net(nn.Conv2d(2, 5, 3), nn.Dropout2d(0.4), nn.Flatten(), nn.Linear(80, 3)), images(2, 6)
    ),
    "random numbers in the forward": Kind(Noisy, rows(6)),
    "sigmoid, then ReLU": Kind(Steep, rows(7)),
    "sigmoid, then ReLU, equal records": Kind(Steep, rows(7), equal=True),
    "padded attention with dropout": Kind(Masked, lambda n: torch.randint(0, 9, (n, 5))),
    "one number, mean": Kind(lambda: net(nn.Linear(1, 1), nn.Flatten()), rows(1), 1),
    "tiny gradients of a mean": Kind(lambda: nn.Linear(5, 3), rows(5, size=1e-38)),
    "huge values": Kind(lambda: net(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), rows(5, size=1e18)),
    "a sum": Kind(lambda: net(nn.Linear(5, 8), nn.ELU(), nn.Linear(8, 3)), rows(5), options=SUM),
    "half precision, sum": Kind(lambda: Transformer(), words(20, 7), options=SUM, half=True),
    "half precision, mean": Kind(lambda: net(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3)), rows(5), half=True),
    "half precision, conv": Kind(PaperCNN, images(1, 28), 10, half=True),
    "per layer": Kind(lambda: Transformer(), words(20, 7), options=(("clip", PerLayer(1.0)),)),
    "adaptive clip": Kind(
        lambda: net(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3)), rows(5), options=(("clip", Adaptive(0.05)),)
    ),
    "float64": Kind(lambda: net(nn.Linear(5, 8), nn.Softplus(), nn.Linear(8, 3)).double(), lambda n: rows(5)(n).double()),
    "Opacus' gradients": Kind(PaperCNN, images(1, 28), 10, options=(("gradients", "opacus"),)),
}


@dataclass
class Pass:
    """What reached the noise, and of each record the gradients and norms that were clipped."""

    query: np.ndarray
    single: list[tuple[bytes, ...]]


def one_pass(kind: Kind, x: Tensor, y: Tensor, kept: Tensor, **more: Any) -> tuple[Pass, Any]:
    """A step of a fresh training, always with the same weights and random numbers, on a batch of places."""
    torch.manual_seed(3)
    model = kind.build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    options = {"clip": 1.0, "independent": True} | dict(kind.options) | more
    loader: Any = DataLoader(TensorDataset(x, y), batch_size=len(x) - 1)
    make_private(
        model, optimizer, loader, noise_multiplier=1.0, delta=1e-5, check_records=False,
        rng=np.random.default_rng(5), **options,
    )  # fmt: skip
    training: Any = optimizer.privacy_  # type: ignore[attr-defined]
    found = Pass(np.zeros(0), [])

    def keep(mechanism: Any, query: Any, draw: Any) -> Any:
        found.query = np.array(query, dtype=np.float64)
        return query

    def listed(clip: Any, layout: Any, records: int, gradients: Any, scale: float, kept: Any) -> Tensor:
        tables = [piece.dense().reshape(records, -1) for piece in gradients.values()]
        norms = [piece.squared_norms().reshape(records, 1) for piece in gradients.values()]
        found.single = [tuple(one[j].numpy().tobytes() for one in tables + norms) for j in range(records)]
        return summed_rows(clip, layout, records, gradients, scale, kept)

    patch = pytest.MonkeyPatch()
    patch.setattr(at_work, "summed_rows", listed)
    reduction = options.get("loss_reduction", "mean")
    try:
        with watching(keep):
            training.receive(Part(len(x), True, kept=kept))
            with torch.autocast("cpu", dtype=torch.bfloat16) if kind.half else nullcontext():
                answer = model(x)
                if kind.classes == 1:
                    loss = F.mse_loss(answer[:, 0], y.to(answer.dtype), reduction=reduction)
                else:
                    loss = F.cross_entropy(answer, y, reduction=reduction)
            loss.backward()
            optimizer.step()
    finally:
        patch.undo()
    return found, training


def batch(kind: Kind) -> tuple[Tensor, Tensor, Tensor]:
    """Records at 15 of the places, the others empty."""
    torch.manual_seed(11)
    x, y = kind.inputs(PLACES), torch.randint(0, max(kind.classes, 2), (PLACES,))
    if kind.equal:
        x, y = x[:1].repeat(PLACES, *(1,) * (x.ndim - 1)), y[:1].repeat(PLACES)
    kept = torch.zeros(PLACES, dtype=torch.bool)
    kept[torch.randperm(PLACES)[:15]] = True
    x = x.masked_fill(~kept.reshape(-1, *(1,) * (x.ndim - 1)), 0)
    return x, y.masked_fill(~kept, 0), kept


@pytest.mark.filterwarnings("ignore:Full backward hook", "ignore:There is a performance drop")
@pytest.mark.parametrize("name", KINDS)
def test_no_bit_of_a_record_depends_on_who_else_is_there(name: str) -> None:
    """Each record leaves, and becomes another one: the others keep all bits, the sum moves within the certified set."""
    kind = KINDS[name]
    x, y, kept = batch(kind)
    whole, training = one_pass(kind, x, y, kept)
    certified = training.mechanism.sensitivity
    radius = certified.radius if hasattr(certified, "radius") else float(np.linalg.norm(certified.radii))
    moves = []
    for leaving, other in itertools.product(torch.nonzero(kept).flatten().tolist(), (None, 0.0, torch.inf)):
        fewer, there = x.clone(), kept.clone()
        if other is None:
            fewer[leaving], there[leaving] = 0, False
        else:
            fewer[leaving] = 1 if not x.is_floating_point() else other or 1e3 * torch.rand_like(x[0])
        found, _ = one_pass(kind, fewer, y, there)
        assert all(found.single[k] == whole.single[k] for k in range(PLACES) if k != leaving)
        if other is None:
            moves.append(float(np.linalg.norm(found.query - whole.query)))
    assert max(moves) <= radius
    assert max(moves) > 0
