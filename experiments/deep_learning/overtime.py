"""Accuracy of DP-SGD and of noise over time, chosen at the claim, with the same seeds of model and data order.

    python experiments/deep_learning/overtime.py mnist imdb cifar10       # results are added to the stored ones
    python experiments/deep_learning/overtime.py mnist --epsilons 8 --seeds 1 --quick    # prints, stores nothing

Reads SHAPEDP_DATA. MNIST: logistic regression on the first 20,000 images; IMDb: word vectors and their mean, 10,000
reviews; CIFAR-10: logistic regression on the first 10,000 images. 10 epochs of batches of 500, momentum 0.9, delta
1e-5, one learning rate per task, the same for both. An interval holds the mean over seeds with 95% by Student's t.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from dl_data import LENGTH, WORDS, Data
from dl_nets import Words
from scipy.stats import t
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.papers.datasets import load_cifar10, load_imdb, load_mnist

RESULTS = Path(__file__).resolve().parents[1] / "results" / "noise-over-time-training.json"
EPSILONS, SEEDS = (0.5, 1.0, 2.0, 8.0), 5
BATCH, EPOCHS, DELTA = 500, 10, 1e-5
RATES = {"mnist": 0.1, "imdb": 0.5, "cifar10": 0.02}


@dataclass(frozen=True)
class Run:
    """One training and what it reached."""

    task: str
    epsilon: float
    seed: int
    noise: str
    groups: int
    scale: float
    certified: str
    accuracy: float
    seconds: float


def data_of(task: str) -> Data:
    """The records of a task, in public numbers."""
    kept = (slice(0, 20_000 if task == "mnist" else 10_000), slice(0, 5_000))
    if task == "mnist":
        return Data.of(load_mnist(), lambda x: torch.from_numpy(np.array(x)).float().flatten(1) / 255, kept, "cpu")
    if task == "cifar10":
        return Data.of(
            load_cifar10(), lambda x: torch.from_numpy(np.array(x)).float().flatten(1) / 127.5 - 1, kept, "cpu"
        )
    step = slice(None, None, 5)  # reviews come sorted by label
    return Data.of(
        load_imdb(length=LENGTH, words=WORDS),
        lambda x: torch.from_numpy(np.array(x)).long(),
        (slice(None, None, 2), step),
        "cpu",
    )


def model_of(task: str, data: Data) -> nn.Module:
    """A fresh model."""
    return Words() if task == "imdb" else nn.Linear(data.x.shape[1], 10)


def trained(task: str, data: Data, epsilon: float, seed: int, noise: str, epochs: int) -> Run:
    """Train once; test accuracy at the end."""
    torch.manual_seed(seed)
    model, begun = model_of(task, data), time.perf_counter()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATES[task], momentum=0.9)
    loader = DataLoader(TensorDataset(data.x, data.y), batch_size=BATCH)
    model, optimizer, loader = sdp.torch.make_private(
        model, optimizer, loader, clip=1.0, epsilon=epsilon, delta=DELTA, epochs=epochs,
        correlated=None if noise == "none" else noise, rng=np.random.default_rng(seed), check_records=True,
    )  # fmt: skip
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    with torch.no_grad():
        accuracy = float((model(data.test_x).argmax(1) == data.test_y).float().mean())
    plan = optimizer.privacy_.planned
    groups = 1 if plan.correlated is None else plan.correlated.separation
    verdict = plan.certificate.verdict
    return Run(task, epsilon, seed, noise, groups, plan.scale, verdict, accuracy, time.perf_counter() - begun)


def half_width(values: np.ndarray) -> float:
    """Of the 95% interval of a mean, by Student's t."""
    n = len(values)
    return float(t.ppf(0.975, n - 1) * values.std(ddof=1) / n**0.5) if n > 1 else float("nan")


def table(runs: list[Run]) -> list[str]:
    """A line per task, epsilon and noise."""
    lines = []
    for key in sorted({(one.task, one.epsilon, one.noise) for one in runs}):
        found = [one for one in runs if (one.task, one.epsilon, one.noise) == key]
        values = np.array([one.accuracy for one in found])
        error = half_width(values)
        groups = sorted({one.groups for one in found})
        lines.append(f"{key[0]} epsilon {key[1]:g} {key[2]} (groups {groups}): {values.mean():.4f} +- {error:.4f}")
    return lines


def main() -> None:
    """Train what is asked for, add it to the stored results, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", choices=tuple(RATES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--quick", action="store_true", help="one epoch; nothing is stored")
    options = parser.parse_args()
    runs = [] if options.quick or not RESULTS.exists() else [Run(**one) for one in json.loads(RESULTS.read_text())]
    done = {(one.task, one.epsilon, one.seed, one.noise) for one in runs}
    held = {task: data_of(task) for task in options.tasks}
    for seed in range(options.seeds):  # what is left when this is stopped are whole seeds of every task
        for task, data in held.items():
            for epsilon in options.epsilons:
                for noise in ("none", "auto"):
                    if (task, epsilon, seed, noise) in done:
                        continue
                    runs.append(trained(task, data, epsilon, seed, noise, 1 if options.quick else EPOCHS))
                    print(runs[-1], flush=True)
                    if not options.quick:
                        RESULTS.write_text(json.dumps([asdict(one) for one in runs], indent=0) + "\n")
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
