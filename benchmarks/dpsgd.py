"""A private step of the papers' MNIST network (26,010 parameters), batch 256, one thread, against Opacus' hooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import opacus
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from _harness import Result, measure, ratio
from shapedp.torch import PerLayer, make_private
from shapedp.torch.loader import Part

BATCH, RECORDS = 256, 60_000


class PaperCNN(nn.Module):
    """The network of the papers' MNIST studies."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 8, 2, padding=3), nn.Conv2d(16, 32, 4, 2)
        self.fc1, self.fc2 = nn.Linear(512, 32), nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2, 1)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2, 1)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def plain(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """A step without privacy."""
    model = PaperCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def ours(x: torch.Tensor, y: torch.Tensor, **options: Any) -> Callable[[], None]:
    """A step of `make_private`: secure noise, the batch given."""
    model = PaperCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader: Any = DataLoader(TensorDataset(torch.zeros(RECORDS, 1)), batch_size=BATCH)
    settings: dict[str, Any] = {"clip": 1.0} | options
    make_private(model, optimizer, loader, noise_multiplier=1.3, delta=1e-5, check_records=False, **settings)
    training: Any = optimizer.privacy_  # type: ignore[attr-defined]

    def step() -> None:
        training.receive(Part(BATCH, True))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def theirs(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """A step of Opacus: hooks, its own (not secure) noise, the batch given."""
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model = GradSampleModule(PaperCNN())
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=1.3,
        max_grad_norm=1.0,
        expected_batch_size=BATCH,
    )

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def run(quick: bool) -> Result:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(0)
        x, y = torch.randn(BATCH, 1, 28, 28), torch.randint(0, 10, (BATCH,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            timings = measure(
                {
                    "not private": plain(x, y),
                    "shapedp, flat clip": ours(x, y),
                    "shapedp, per-layer clip and noise": ours(x, y, clip=PerLayer(1.0)),
                    "shapedp over Opacus' hooks": ours(x, y, gradients="opacus"),
                    "opacus": theirs(x, y),
                },
                rounds=5 if quick else 40,
            )
    finally:
        torch.set_num_threads(threads)
    size = sum(p.numel() for p in PaperCNN().parameters())
    result = Result(
        "dpsgd",
        what=f"one step, {size} parameters, batch {BATCH}, one thread",
        peers={"torch": torch.__version__, "opacus": opacus.__version__},
        timings=timings,
    )
    result.ratio("shapedp, flat clip / not private", ratio(timings, "shapedp, flat clip", "not private"), at_most=1.6)
    per_layer = ratio(timings, "shapedp, per-layer clip and noise", "not private")
    result.ratio("shapedp, per-layer clip and noise / not private", per_layer, at_most=1.6)
    result.ratio("opacus / not private", ratio(timings, "opacus", "not private"))
    result.ratio("opacus / shapedp, flat clip", ratio(timings, "opacus", "shapedp, flat clip"))
    result.notes.append("shapedp draws secure, float-safe noise; Opacus' default generator is not secure.")
    return result
