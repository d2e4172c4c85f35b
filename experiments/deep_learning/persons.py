"""Persons with five reviews each: a training on IMDb certified per person, and canary persons in its noisy sums.

    python experiments/deep_learning/persons.py            # results/persons.json

Reads SHAPEDP_DATA. Word vectors and their mean on the first 64 words of a review, clip 1 for all reviews of a person
together. The audit puts an extra person with a loud gradient into half of the steps; its bound on epsilon holds with
99% confidence. It is repeated with half of the noise that is accounted for: then the bound must exceed the certificate.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dl_nets import Words
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.papers.datasets import load_imdb
from shapedp.torch import canary, make_private

RESULTS = Path(__file__).resolve().parents[1] / "results" / "persons.json"
TEXTS, LENGTH, WORDS = 5, 64, 1_000
DELTA, CONFIDENCE = 0.1, 0.99


def reviews(persons: int) -> tuple[torch.Tensor, ...]:
    """Training reviews of so many persons, and as many test reviews."""
    imdb, rows = load_imdb(length=LENGTH, words=WORDS), []
    order = np.random.default_rng(0).permutation(25_000)[: persons * TEXTS]
    for at in (order, 25_000 + order):
        rows += [torch.from_numpy(imdb.x[at].astype(np.int64)), torch.from_numpy(imdb.y[at].astype(np.int64))]
    return tuple(rows)


def private(persons: int, batch: int, **options: Any) -> tuple[Any, ...]:
    """Model, optimizer, loader, test data."""
    x, y, *test = reviews(persons)
    torch.manual_seed(0)
    model = Words(WORDS + 1)
    owner = [k // TEXTS for k in range(len(x))]
    made = make_private(
        model, torch.optim.SGD(model.parameters(), lr=options.pop("lr")),
        DataLoader(TensorDataset(x, y), batch_size=batch), clip=1.0, owner=owner, per_owner=TEXTS,
        rng=np.random.default_rng(0), **options,
    )  # fmt: skip
    return (*made, *test)


def epoch(model: nn.Module, optimizer: Any, loader: Any) -> None:
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def trained(persons: int = 2_000, batch: int = 100, epochs: int = 10) -> dict[str, Any]:
    """A training at (8, 1e-5) per person."""
    model, optimizer, loader, x, y = private(persons, batch, lr=2.0, epsilon=8.0, delta=1e-5, epochs=epochs)
    for _ in range(epochs):
        epoch(model, optimizer, loader)
    with torch.no_grad():
        right = float((model(x).argmax(1) == y).float().mean())
    made = optimizer.privacy_.certificate
    return {"persons": persons, "texts": TEXTS, "accuracy": right, "verdict": made.verdict, "scope": made.scope}


def audited(half: bool, steps: int = 800) -> dict[str, Any]:
    """The bound on epsilon of a step on all of 20 persons from canary persons, beside what is certified."""
    model, optimizer, loader, *_ = private(20, 20, lr=0.0, noise_multiplier=1.0)
    training = optimizer.privacy_
    if half:
        m = training.mechanism
        training.mechanism = Additive(
            Gaussian(np.broadcast_to(m.law.scales, (m.law.dim,)) / 2), m.sensitivity, m.epsilon, m.delta
        )

    def loop() -> None:
        while training.steps < steps:
            epoch(model, optimizer, loader)

    found = canary(training, loop, delta=DELTA, confidence=CONFIDENCE, rng=np.random.default_rng(1))
    return {
        "half the noise": half, "bound": found.epsilon_lower, "certified": found.certified, "runs": found.runs,
        "violation": found.violation,
    }  # fmt: skip


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    results: dict[str, Any] = {"audits": [audited(half) for half in (False, True)]}
    print(json.dumps(results), flush=True)
    results["training"] = trained()
    print(json.dumps(results["training"]))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    held, caught = results["audits"]
    return 0 if not held["violation"] and caught["violation"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
