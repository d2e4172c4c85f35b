"""One training of a study: a network, a data set, a noise, a claim and a seed; a dict of what came out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from dl_data import Data
from dl_nets import build
from torch.nn import functional as F
from torch.utils.data import DataLoader

from shapedp.accounting import amplify
from shapedp.noise import Laplace
from shapedp.papers.geodp.training import PublishedGeoDP
from shapedp.sensitivity import L1, Box, Sensitivity
from shapedp.torch import (
    AngleWindows,
    Auto,
    Clip,
    Flat,
    GaussianNoise,
    LaplaceNoise,
    Layout,
    Noise,
    PerLayer,
    PerValue,
    PublishedProductNoise,
    RadialNoise,
    make_private,
)

Tensor = torch.Tensor


@dataclass(frozen=True)
class FlatL1(Clip):
    """The whole gradient scaled down to |g|_1 <= radius: the i.n.i.d. paper's global clip for Laplace noise."""

    radius: float

    def sensitivity(self, layout: Layout) -> L1:
        return L1(self.radius, layout.dim, adjacency="add-remove")

    def rows(self, gradients: Tensor, layout: Layout) -> Tensor:
        norms = torch.linalg.vector_norm(gradients, ord=1, dim=1, keepdim=True)
        return gradients * (self.radius / norms.clamp(min=self.radius))


@dataclass(frozen=True)
class PureLaplace(Noise):
    """Laplace noise with b_i ~ l_i^exponent and a pure epsilon of 1/scale for one step on all the data.

    0 is i.i.d. noise, 1 is SPR, 1/3 has the least energy (i.n.i.d. noise paper, Theorem 5).
    """

    exponent: float

    def law(self, sensitivity: Sensitivity, layout: Layout, scale: float) -> Laplace:
        bounds = sensitivity.profile if isinstance(sensitivity, Box) else np.ones(sensitivity.dim)
        shape = (bounds / bounds.max()) ** self.exponent
        return Laplace(shape * (sensitivity.l1_reach(shape)[1] * scale))


METHODS: dict[str, tuple[Callable[[float], Clip], Noise]] = {
    "flat Gaussian": (Flat, GaussianNoise()),
    "SPR per layer": (PerLayer, GaussianNoise("spr")),
    "optimal per layer": (PerLayer, GaussianNoise("optimal")),
    "SPR per value": (PerValue, GaussianNoise("spr")),
    "optimal per value": (PerValue, GaussianNoise("optimal")),
    "Laplace": (PerValue, LaplaceNoise(0.5)),
    "SPR Laplace": (PerValue, LaplaceNoise(1.0)),
    "pure Laplace, i.i.d.": (FlatL1, PureLaplace(0.0)),
    "pure Laplace, SPR": (partial(PerValue, p=1.0), PureLaplace(1.0)),
    "pure Laplace, i.n.i.d.": (partial(PerValue, p=1.0), PureLaplace(1 / 3)),
    "radial": (Flat, RadialNoise(b=1.0)),
    "angle windows": (AngleWindows, GaussianNoise()),
}
MEASURES = {"MovieLens": "rmse"}  # of a test; accuracy otherwise
NONE, PRODUCT, GEODP, GEODP_AUTO = "no noise", "product noise", "GeoDP", "GeoDP + AUTO-S"
PURE = tuple(name for name in METHODS if name.startswith("pure"))
DP, DP_AUTO = "DP", "DP + AUTO-S"  # flat Gaussian noise of a given multiplier


@dataclass(frozen=True)
class Run:
    """What is trained. `scale` is the noise multiplier; without it the least one for the claim is solved for."""

    study: str
    data: str
    net: str
    method: str
    batch: int
    epochs: int
    rate: float
    clip: float = 1.0
    epsilon: float | None = None
    delta: float = 1e-5
    seed: int = 0
    scale: float | None = None
    beta: float | None = None
    k: float | None = None
    optimizer: str = "SGD"

    def key(self) -> str:
        """What names the run among stored ones."""
        return " | ".join(str(value) for name, value in asdict(self).items() if name != "scale" or not self.epsilon)

    def steps(self, records: int) -> int:
        """Optimizer steps in all."""
        return self.epochs * max(-(-records // self.batch), 1)


class Gather:
    """Turns the indices of a Poisson batch into tensors with one look-up on the device."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def __call__(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        at = torch.tensor(indices, device=self.data.y.device)
        return self.data.x[at], self.data.y[at]


def train(
    run: Run, data: Data, *, checkpoints: int = 1, rng: np.random.Generator | None = None, account: bool = False
) -> tuple[torch.nn.Module, dict[str, Any]]:
    """The trained network and the run's row.

    Weights start from `seed`; batches and noise are fresh, unless `rng` is given (the row then says secure: false).
    With `account` the row holds the certified epsilon of the steps taken, and the verdict on a published claim.
    """
    start = time.perf_counter()
    torch.manual_seed(run.seed)
    model = build(run.net).to(data.x.device)
    optimizer: Any = getattr(torch.optim, run.optimizer)(model.parameters(), lr=run.rate)
    loader = DataLoader(range(len(data.y)), batch_size=run.batch, shuffle=True, collate_fn=Gather(data))  # type: ignore[arg-type]
    row: dict[str, Any] = asdict(run) | {"records": len(data.y), "steps": run.steps(len(data.y))}
    batches: Any = loader
    if run.method != NONE:
        model, optimizer, batches = make_private(model, optimizer, loader, rng=rng, **_options(run, data))
        row["dim"] = Layout.of(model).dim
    measure = MEASURES.get(run.data, "accuracy")
    score = rmse if measure == "rmse" else accuracy
    curve: list[dict[str, float]] = []
    seen = {round(run.epochs * (k + 1) / checkpoints) for k in range(checkpoints)}
    ready = time.perf_counter()
    for epoch in range(run.epochs):
        model.train()
        for x, y in batches:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        if epoch + 1 in seen:
            curve.append({"epoch": epoch + 1, "test": score(model, data.test_x, data.test_y),
                          "train": score(model, data.x[:10_000], data.y[:10_000])})  # fmt: skip
    done = time.perf_counter()
    row |= {measure: curve[-1]["test"], f"train_{measure}": curve[-1]["train"], "curve": curve,
            "prepared_s": ready - start, "trained_s": done - ready, "device": str(data.x.device)}  # fmt: skip
    if run.method != NONE:
        row |= {"secure": optimizer.privacy_.account.secure, "scale": optimizer.privacy_.scale}
        row |= {"taken": optimizer.privacy_.steps}
        if account and run.method == PRODUCT:
            found = optimizer.privacy_.certificate
            row |= {"claimed": (found.epsilon, found.delta), "verdict": found.verdict}
            row |= {"delta_at_least": found.bracket.lower}
        elif account and run.method in PURE:
            step = optimizer.privacy_.account.step
            row["pure"] = optimizer.privacy_.steps * amplify(step.subject.loss.pure, 0.0, step.sampling_rate)[0]
        elif account and run.method not in (GEODP, GEODP_AUTO):
            row["certified"] = optimizer.privacy_.epsilon(run.delta).upper
    return model, row


def _options(run: Run, data: Data) -> dict[str, Any]:
    steps = run.steps(len(data.y))
    if run.method == PRODUCT:
        noise = PublishedProductNoise(step_epsilon=_given(run.epsilon), k=_given(run.k))
        return {"clip": Flat(run.clip), "noise": noise, "steps": steps, "unsafe": True}
    clip = Auto(run.clip) if run.method in (DP_AUTO, GEODP_AUTO) else Flat(run.clip)
    if run.method in (GEODP, GEODP_AUTO):
        turned = PublishedGeoDP(_given(run.scale), _given(run.beta), run.batch, run.delta)
        return {"clip": clip, "noise": turned, "steps": steps, "unsafe": True}
    if run.method in (DP, DP_AUTO):
        return {"clip": clip, "noise_multiplier": _given(run.scale), "delta": run.delta}
    make, shaped = METHODS[run.method]
    planned = {"noise_multiplier": run.scale} if run.scale else {"epsilon": run.epsilon, "steps": steps}
    return {"clip": make(run.clip), "noise": shaped, "delta": run.delta, **planned}


def _given(value: float | None) -> float:
    if value is None:
        raise ValueError("this method needs a setting that the run leaves out: scale, beta, or epsilon and k")
    return value


def accuracy(model: torch.nn.Module, x: Tensor, y: Tensor, at_once: int = 5_000) -> float:
    """The share of records classified as labelled."""
    model.eval()
    with torch.no_grad():
        right = [(model(x[k : k + at_once]).argmax(1) == y[k : k + at_once]).sum() for k in range(0, len(y), at_once)]
    return float(torch.stack(right).sum()) / len(y)


def rmse(model: torch.nn.Module, x: Tensor, y: Tensor, at_once: int = 50_000) -> float:
    """The root of the mean squared error of the expected class, as of a rating in stars."""
    model.eval()
    total = 0.0
    with torch.no_grad():
        for k in range(0, len(y), at_once):
            odds = F.softmax(model(x[k : k + at_once]), 1)
            expected = odds @ torch.arange(odds.shape[1], device=odds.device, dtype=odds.dtype)
            total += float(((expected - y[k : k + at_once]) ** 2).sum())
    return float(np.sqrt(total / len(y)))


def log_probabilities(model: torch.nn.Module, x: Tensor, at_once: int = 5_000) -> np.ndarray[Any, Any]:
    """log-probabilities of all classes, record by record, in float64."""
    model.eval()
    with torch.no_grad():
        parts = [F.log_softmax(model(x[k : k + at_once]).double(), 1) for k in range(0, len(x), at_once)]
    return torch.cat(parts).cpu().numpy()


def part(data: Data, train: Tensor, test: Tensor) -> Data:
    """Some of the records."""
    return replace(data, x=data.x[train], y=data.y[train], test_x=data.test_x[test], test_y=data.test_y[test])
