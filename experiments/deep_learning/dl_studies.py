"""Trains everything the pages and items of this folder show, and stores one line of JSON per finished training.

    python dl_studies.py --out runs.jsonl              (a GPU; a few minutes with --workers 12)
    python dl_studies.py --out quick.jsonl --quick     (CPU, seconds)

Laplace and radial noise take minutes to account for: they are trained with 1.01 times the scale that Gaussian noise
needs, and what that certifies is a job of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dl_attacks import attacked
from dl_data import Data, load
from dl_nets import build
from dl_runs import DP, DP_AUTO, GEODP, GEODP_AUTO, METHODS, NONE, PRODUCT, Run, part, train
from torch.utils.data import DataLoader

from shapedp.accounting import compose
from shapedp.accounting.subsample import SubsampledLoss
from shapedp.torch import make_private

SEEDS = (0, 1, 2, 3, 4)
SHAPED = ("flat Gaussian", "SPR per layer", "optimal per layer", "angle windows")
SLOW_PLANS = ("Laplace", "radial")
SLOWLY = (("MNIST", "CNN"), ("Adult", "MLP"))  # where those two are trained
TABLE_12 = {  # data: net, records, batch, epochs, rate, sigma, clip, initial epsilon, k, optimizer
    "MNIST": ("CNN", 60_000, 256, 50, 0.15, 1.3, 1.0, 0.3, 40_000, "SGD"),
    "Adult": ("MLP", 29_305, 256, 30, 0.15, 0.55, 1.0, 0.8, 200_000, "SGD"),
    "IMDb": ("embedding", 25_000, 512, 60, 0.02, 0.56, 1.0, 1.0, 40_000, "Adam"),
    "CIFAR-10": ("ResNet-20", 60_000, 512, 100, 0.25, 0.5, 1.5, 1.8, 300_000, "SGD"),
}
EQUAL = {  # (data, net): batch, epochs, rate, optimizer
    ("MNIST", "CNN"): (1000, 15, 2.0, "SGD"),
    ("Fashion-MNIST", "CNN"): (500, 15, 2.0, "SGD"),
    ("MNIST", "LR"): (1000, 10, 1.0, "SGD"),
    ("Fashion-MNIST", "LR"): (500, 10, 1.0, "SGD"),
    ("Adult", "MLP"): (500, 10, 0.5, "SGD"),
    ("IMDb", "embedding"): (500, 20, 0.02, "Adam"),
}
ROUGH = 1e-2  # accuracy of the composition of Laplace and radial noise; what it returns is an upper end all the same
EPSILONS = (0.5, 1.0, 2.0, 4.0)
GEODP_TABLE = (  # method, B, beta
    (DP, 8192, None), (DP, 16384, None), (DP_AUTO, 16384, None),
    (GEODP, 8192, 0.1), (GEODP, 16384, 0.1), (GEODP, 8192, 0.5), (GEODP_AUTO, 16384, 0.1),
)  # fmt: skip
GEODP_RATES = (5.0, 20.0, 80.0)


def equal() -> Iterator[Run]:
    """Accuracy against certified epsilon; the MNIST CNN first, at every epsilon."""
    for (data, net), (batch, epochs, rate, optimizer) in EQUAL.items():
        every = EPSILONS if (data, net) == ("MNIST", "CNN") else (1.0,)
        for epsilon in every:
            slow = SLOW_PLANS if epsilon == 1.0 and (data, net) in SLOWLY else ()
            for method in (*SHAPED, *slow):
                for seed in SEEDS if method != "angle windows" else SEEDS[:2]:
                    yield Run("equal", data, net, method, batch, epochs, rate, 1.0, epsilon, seed=seed,
                              optimizer=optimizer)  # fmt: skip
        yield Run("equal", data, net, NONE, batch, epochs, 0.1 if optimizer == "SGD" else 0.005, optimizer=optimizer)


def windows() -> Iterator[Run]:
    """Angle windows at smaller learning rates: a step has the mean of the norms as its length, however they cancel."""
    batch, epochs, _, optimizer = EQUAL["Adult", "MLP"]
    for rate in (0.1, 0.02):
        for seed in SEEDS[:2]:
            yield Run("windows", "Adult", "MLP", "angle windows", batch, epochs, rate, 1.0, 1.0, seed=seed,
                      optimizer=optimizer)  # fmt: skip


def published() -> Iterator[Run]:
    """Figures 7, 8, 15 and 16 of the product-noise paper: its settings, our CIFAR-10 subset and Adult split."""
    for data, (net, _, batch, epochs, rate, sigma, clip, epsilon, k, optimizer) in TABLE_12.items():
        epochs = min(epochs, 30 if data == "CIFAR-10" else epochs)
        common = {"study": "product", "data": data, "net": net, "batch": batch, "epochs": epochs, "rate": rate,
                  "clip": clip, "optimizer": optimizer}  # fmt: skip
        yield Run(method=DP, scale=sigma, **common)
        yield Run(method=PRODUCT, epsilon=epsilon, k=k, **common)


def table_4() -> Iterator[tuple[Run, str, int]]:
    """Shadow-model attacks at the settings of table 12, on halves of 20,000 records, five repetitions."""
    for data, (net, _, batch, _, rate, sigma, clip, epsilon, k, optimizer) in TABLE_12.items():
        pool, epochs = (8_000, 10) if data == "CIFAR-10" else (20_000, 20)
        for seed in range(5):
            common = {"study": "table-4", "data": data, "net": net, "batch": batch, "epochs": epochs, "rate": rate,
                      "clip": clip, "seed": seed, "optimizer": optimizer}  # fmt: skip
            yield Run(method=DP, scale=sigma, **common), "shadow", pool
            yield Run(method=PRODUCT, epsilon=epsilon, k=k, **common), "shadow", pool


def membership() -> Iterator[tuple[Run, str, int]]:
    """Both attacks on certified networks at epsilon 2, and on one trained without noise until it overfits."""
    for kind in ("shadow", "likelihood ratio"):
        for method in ("flat Gaussian", "optimal per layer"):
            yield Run("membership", "MNIST", "CNN", method, 500, 10, 1.0, 1.0, 2.0), kind, 20_000
        yield Run("membership", "MNIST", "CNN", NONE, 50, 40, 0.1), kind, 4_000
        yield Run("membership", "Fashion-MNIST", "CNN", NONE, 50, 40, 0.1), kind, 4_000


def table_iv() -> Iterator[Run]:
    """Table IV of the i.n.i.d. paper on the CIFAR-10 subset: sampling rate 0.02."""
    for epsilon in (8.0, 5.0):
        for method in ("flat Gaussian", "SPR per layer", "optimal per layer", "SPR per value", "optimal per value"):
            yield Run("table-iv", "CIFAR-10", "ResNet-20", method, 200, 20, 1.0, 1.0, epsilon)


def geodp_table() -> Iterator[Run]:
    """Table 2 of the GeoDP paper: every row at several learning rates, of which the best is shown."""
    for sigma in (1.0, 10.0):
        for method, batch, beta in GEODP_TABLE:
            for rate in GEODP_RATES:
                yield Run("geodp-table-2", "MNIST", "GeoDP CNN", method, batch, 20, rate, 0.1, scale=sigma, beta=beta)


def jobs() -> list[tuple[Run, str, int]]:
    """Every training, the most wanted first."""
    plain = [(run, "", 0) for run in equal()]
    slow = {(run.data, run.method): (run, "certify", 0) for run in equal() if run.method in SLOW_PLANS}
    wanted = [job for job in plain if job[0].data == "MNIST" and job[0].net == "CNN"]
    more = [(run, "", 0) for run in (*published(), *geodp_table(), *table_iv(), *windows())]
    others = [job for job in plain if job not in wanted]
    return [*slow.values(), *wanted, *membership(), *more[:8], *others, *table_4(), *more[8:]]


def quick() -> list[tuple[Run, str, int]]:
    """One short training of each kind, on 1,000 records."""
    common = {"study": "quick", "data": "MNIST", "net": "CNN", "batch": 100, "epochs": 1, "rate": 0.5}
    plain = [Run(method=method, scale=1.0, **common) for method in (*SHAPED, *SLOW_PLANS)]
    more = [
        Run(method=NONE, **common),
        Run(method=DP, scale=1.3, **common),
        Run(method=PRODUCT, epsilon=0.3, k=40_000, **common),
        Run(method=GEODP, scale=1.0, beta=0.1, **common),
    ]
    return [(run, "", 0) for run in plain + more] + [(more[1], "shadow", 400)]


@cache
def gaussian_scale(epsilon: float, delta: float, batch: int, records: int, steps: int) -> float:
    """The least multiplier of Gaussian noise for a claim: it depends on neither the network nor the clip."""
    model = torch.nn.Linear(1, 1)
    loader = DataLoader(range(records), batch_size=batch)  # type: ignore[arg-type]
    private: Any = make_private(
        model, torch.optim.SGD(model.parameters(), lr=1.0), loader, clip=1.0, epsilon=epsilon, delta=delta, steps=steps
    )[1]
    return float(private.privacy_.scale) * (1 + 1e-4)  # room for rounding


@cache
def _data(name: str, device: str) -> Data:
    return load(name, device)


def certified(run: Run, data: Data) -> dict[str, Any]:
    """The upper end of delta at a run's epsilon, without training: its own composition, which takes minutes."""
    model = build(run.net)
    loader = DataLoader(range(len(data.y)), batch_size=run.batch)  # type: ignore[arg-type]
    make, noise = METHODS[run.method]
    private: Any = make_private(
        model, torch.optim.SGD(model.parameters(), lr=run.rate), loader, clip=make(run.clip), noise=noise,
        noise_multiplier=run.scale, delta=run.delta,
    )[1]  # fmt: skip
    step = private.privacy_.account.step
    loss = SubsampledLoss(step.subject.loss, step.sampling_rate, "poisson")
    found = compose([(loss, run.steps(len(data.y)))], accuracy=ROUGH).delta(run.epsilon)
    return asdict(run) | {"records": len(data.y), "delta_upper": found.upper, "accuracy": None}


def do(job: tuple[Run, str, int], device: str, few: int | None = None) -> dict[str, Any]:
    """One training or attack as a row; an error becomes a row too."""
    run, attack, pool = job
    try:
        data = _data(run.data, device)
        if few is not None:
            data = part(data, torch.arange(few), torch.arange(few))
        rng = None if few is None else np.random.default_rng(run.seed)
        records = pool // 2 if pool else len(data.y)
        if run.method in METHODS and run.epsilon:
            slow = 1.01 if run.method in SLOW_PLANS else 1.0  # their least scale is within this of the Gaussian one
            run = replace(
                run, scale=slow * gaussian_scale(run.epsilon, run.delta, run.batch, records, run.steps(records))
            )
        if attack == "certify":
            return certified(run, data)
        if attack:
            return attacked(run, data, attack, pool)
        checkpoints = 10 if run.study == "product" else 1
        account = few is None and run.method not in SLOW_PLANS
        return train(run, data, checkpoints=checkpoints, rng=rng, account=account)[1]
    except Exception as problem:
        return asdict(run) | {"error": f"{type(problem).__name__}: {problem}", "trace": traceback.format_exc()[-600:]}


def _worker(job: tuple[Run, str, int]) -> dict[str, Any]:
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    start = time.perf_counter()
    row = do(job, device)
    if row.get("attack") is None:
        row["attack"] = job[1]
    return row | {"wall_s": time.perf_counter() - start}


def main(argv: list[str]) -> None:
    """Train what is missing from the file, until `--seconds` have passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--only", default="", help="a word of the study, or: certify")
    options = parser.parse_args(argv)
    begin = time.perf_counter()
    wanted = quick() if options.quick else [job for job in jobs() if options.only in f"{job[0].study} {job[1]}"]
    with open(options.out, "a", encoding="utf-8") as file:

        def keep(row: dict[str, Any]) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
            told = row.get("error") or f"{row['accuracy']} {row.get('auc', '')} {row.get('delta_upper', '')}"
            print(f"{time.perf_counter() - begin:6.1f}s {row['study']} {row['data']} {row['method']} "
                  f"{row['epsilon']} {row['seed']}: {told} ({row.get('wall_s', 0):.1f}s)", flush=True)  # fmt: skip

        if options.quick:
            for job in wanted:
                keep(do(job, "cpu", 1_000))
            return
        with multiprocessing.get_context("fork").Pool(options.workers, maxtasksperchild=None) as pool:
            for row in pool.imap_unordered(_worker, wanted):
                keep(row)
                if time.perf_counter() - begin > options.seconds:
                    pool.terminate()
                    break


if __name__ == "__main__":
    main(sys.argv[1:])
