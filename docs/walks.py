"""Four walks through the library: how many files they touch and how many functions they call.

    python docs/walks.py            # a table
    python docs/walks.py --json     # the same as JSON, to be compared

Imports are done before a walk begins; only functions of shapedp count.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import shapedp as sdp

HOME = str(Path(sdp.__file__).parent)


def gaussian_query() -> Callable[[], object]:
    """Calibrate Gaussian noise for an L2 ball and release a vector."""

    def walk() -> object:
        mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, dim=3), epsilon=1.0, delta=1e-6)
        return mechanism.release(np.zeros(3))

    return walk


def regression() -> Callable[[], object]:
    """Fit a linear regression on arrays."""
    from shapedp.learn import LinearRegression

    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (200, 3)), rng.uniform(-1, 1, 200)
    model = LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0)
    return lambda: model.fit(x, y)


def training_step() -> Callable[[], object]:
    """One step of private training, all set up."""
    import torch

    from shapedp.torch import make_private

    data = torch.utils.data.TensorDataset(torch.zeros(64, 4), torch.zeros(64, dtype=torch.long))
    net = torch.nn.Linear(4, 2)
    private = make_private(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        torch.utils.data.DataLoader(data, batch_size=16),
        epsilon=4.0,
        delta=1e-5,
        epochs=1,
        clip=1.0,
    )
    model, optimizer, loader = private[:3]
    x, y = next(iter(loader))

    def walk() -> object:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y, reduction="mean").backward()
        return optimizer.step()

    return walk


def composition() -> Callable[[], object]:
    """Compose a hundred sampled Gaussian steps and ask for epsilon."""
    step = sdp.subsample(sdp.GaussianLoss(1.0, adjacency="add-remove"), 0.01)
    return lambda: sdp.compose([(step, 100)]).epsilon(1e-6)


WALKS = {
    "a Gaussian query": gaussian_query,
    "`LinearRegression.fit`": regression,
    "a training step": training_step,
    "`compose(...).epsilon`": composition,
}


def traced(walk: Callable[[], object]) -> dict[str, int]:
    """Files touched, different functions, and calls."""
    functions: dict[tuple[str, str, int], int] = {}

    def seen(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME) and not code.co_name.startswith("<"):
            key = (code.co_filename, code.co_name, code.co_firstlineno)
            functions[key] = functions.get(key, 0) + 1

    sys.setprofile(seen)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return {"files": len({key[0] for key in functions}), "functions": len(functions), "calls": sum(functions.values())}


def main() -> None:
    """Print what the walks touch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for prepare in WALKS.values():
        prepare()()  # loads what is imported late
    found = {name: traced(prepare()) for name, prepare in WALKS.items()}
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print("| walk | files | functions | calls |\n|---|---|---|---|")
    for name, counts in found.items():
        print(f"| {name} | {counts['files']} | {counts['functions']} | {counts['calls']} |")


if __name__ == "__main__":
    main()
