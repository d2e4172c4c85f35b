"""Features of two classes of images for the mixing study: fixed random ones, and those of a network trained with DP.

    python experiments/erm/erm_features.py Fashion-MNIST MNIST     (trains the networks, on a GPU if there is one)

The network is the mixing paper's (appendix J.2): two convolutions with pooling down to 64 maps, a layer of 128 units,
the logits; clip 4, 20 epochs, batches of 500, Adam at 0.001 (as in Guo et al. 2020, whose setting the paper takes).
As there it is trained on the records that the regression is fitted to afterwards; its cost is composed with that of
the regression, which the paper leaves out. Its epsilon is ours: the paper prints none.

Trained features are kept in `.cache` beside this file, with the plan of the training.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shapedp import datasets
from shapedp.accounting import Plan

FEATURES, PAIR = 128, (3, 8)
EPSILON, DELTA = 1.0, 1e-5
CACHE = Path(__file__).resolve().parent / ".cache"
SETS: dict[str, Callable[[], Any]] = {
    "Fashion-MNIST": datasets.load_fashion_mnist,
    "CIFAR-100": datasets.load_cifar100,
    "MNIST": datasets.load_mnist,
    "CIFAR-10": datasets.load_cifar10,
}


@dataclass(frozen=True, eq=False)
class Part:
    """Rows with labels 0 and 1: images (n, channels, side, side) in [-1, 1], or features of unit length."""

    x: np.ndarray
    y: np.ndarray


def images(name: str) -> tuple[Part, Part]:
    """Training and test images of classes 3 and 8; CIFAR-100 has its two classes here and no split: 80/20, fixed."""
    data = SETS[name]()
    first, second = np.unique(data.y) if name == "CIFAR-100" else PAIR
    if data.splits:
        whole = [data.split("train"), data.split("test")]
    else:
        order = np.random.default_rng(0).permutation(len(data.y))
        cut = int(0.8 * len(order))
        whole = [(data.x[order[:cut]], data.y[order[:cut]]), (data.x[order[cut:]], data.y[order[cut:]])]
    parts = []
    for x, y in whole:
        keep = np.flatnonzero((y == first) | (y == second))
        pixels = np.asarray(x)[keep].astype(np.float32) / 127.5 - 1
        pixels = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
        parts.append(Part(np.ascontiguousarray(pixels), (np.asarray(y)[keep] == second).astype(int)))
    return parts[0], parts[1]


def unit(z: np.ndarray) -> np.ndarray:
    """Every row over its own length."""
    z = z.astype(np.float64)
    return z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)


def random_features(name: str) -> tuple[Part, Part]:
    """128 rectified projections, drawn without the data."""
    train, test = images(name)
    width = int(np.prod(train.x.shape[1:]))
    weights = np.random.default_rng(0).normal(size=(width, FEATURES)) / np.sqrt(4 * width)
    return tuple(Part(unit(np.maximum(part.x.reshape(-1, width) @ weights, 0.0)), part.y) for part in (train, test))


def network(channels: int, side: int) -> tuple[Any, Any]:
    """The layers up to the 128 units, and the whole network."""
    from torch import nn

    body = nn.Sequential(
        nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * (side // 4) ** 2, FEATURES), nn.ReLU(),
    )  # fmt: skip
    return body, nn.Sequential(body, nn.Linear(FEATURES, 2))


def trained_features(name: str, epochs: int = 20, seed: int = 0) -> tuple[Part, Part, Plan]:
    """Features of the network after (EPSILON, DELTA)-DP training, and the plan of its steps."""
    import torch
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, TensorDataset

    from shapedp.torch import make_private

    train, test = images(name)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(seed)
    body, model = network(train.x.shape[1], train.x.shape[2])
    model = model.to(device)
    records = TensorDataset(torch.from_numpy(train.x), torch.from_numpy(train.y))
    batches = DataLoader(records, batch_size=min(500, len(train.y)))
    model, optimizer, loader = make_private(
        model, torch.optim.Adam(model.parameters(), lr=0.001), batches, clip=4.0, epsilon=EPSILON, delta=DELTA,
        epochs=epochs,
    )  # fmt: skip
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
    certificate = optimizer.privacy_.certificate.require()
    print(f"{name}: network of {sum(p.numel() for p in model.parameters())} parameters, {len(train.y)} records, "
          f"{optimizer.privacy_.steps} steps, {certificate.explain()}", flush=True)  # fmt: skip
    model.eval()
    parts = []
    with torch.no_grad():
        for part in (train, test):
            rows = [body(torch.from_numpy(part.x[k : k + 1000]).to(device)).cpu() for k in range(0, len(part.y), 1000)]
            parts.append(Part(unit(torch.cat(rows).numpy()), part.y))
    return parts[0], parts[1], optimizer.privacy_.plan


def kept_features(name: str) -> tuple[Part, Part, Plan]:
    """Trained features from the cache; trained now where it has none."""
    path = CACHE / f"{name}.npz"
    if not path.is_file():
        train, test, plan = trained_features(name)
        CACHE.mkdir(exist_ok=True)
        temporary = path.with_name(f".{path.name}")
        np.savez(temporary, x=train.x.astype(np.float32), y=train.y, test_x=test.x.astype(np.float32), test_y=test.y,
                 plan=json.dumps(plan.to_json()))  # fmt: skip
        temporary.replace(path)
    with np.load(path, allow_pickle=False) as held:
        train, test = Part(unit(held["x"]), held["y"]), Part(unit(held["test_x"]), held["test_y"])
        return train, test, Plan.from_json(json.loads(str(held["plan"])))


if __name__ == "__main__":
    for one in sys.argv[1:]:
        kept_features(one)
