"""Trains everything the pages and items of this folder show, and stores one line of JSON per finished training.

    python dl_studies.py --out runs.jsonl              (a GPU; a few minutes with --workers 12)
    python dl_studies.py --out quick.jsonl --quick     (CPU, seconds)
    python dl_studies.py --out runs.jsonl --store      (what is in the file goes into runs.json, nothing is trained)

Laplace and radial noise take longer to account for: they are trained with 1.01 times the scale that Gaussian noise
needs, and what that certifies is a job of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dl_attacks import attacked
from dl_data import Data, load
from dl_nets import build
from dl_runs import DP, DP_AUTO, GEODP, GEODP_AUTO, METHODS, NONE, PRODUCT, PURE, Run, part, train
from torch.utils.data import DataLoader

from shapedp.accounting import compose
from shapedp.accounting.subsample import SubsampledLoss
from shapedp.papers.datasets import MissingDataError
from shapedp.torch import make_private

STORE = Path(__file__).resolve().parent / "runs.json"
SEEDS = (0, 1, 2, 3, 4)
SHAPED = ("flat Gaussian", "SPR per layer", "optimal per layer", "angle windows")
SLOW_PLANS = ("Laplace", "radial", "SPR Laplace")
SLOWLY = (("MNIST", "CNN"), ("MNIST", "LR"), ("Adult", "MLP"))  # where the first two are trained
TABLE_12 = {  # data: net, records, batch, epochs, rate, sigma, clip, initial epsilon, k, optimizer
    "MNIST": ("CNN", 60_000, 256, 50, 0.15, 1.3, 1.0, 0.3, 40_000, "SGD"),
    "Adult": ("MLP", 29_305, 256, 30, 0.15, 0.55, 1.0, 0.8, 200_000, "SGD"),
    "IMDb": ("embedding", 25_000, 512, 60, 0.02, 0.56, 1.0, 1.0, 40_000, "Adam"),
    "CIFAR-10": ("ResNet-20", 60_000, 512, 100, 0.25, 0.5, 1.5, 1.8, 300_000, "SGD"),
    "MovieLens": ("ratings", 800_167, 10_000, 20, 0.01, 0.6, 5.0, 0.8, 20_000, "Adam"),
}
EQUAL = {  # (data, net): batch, epochs, rate, optimizer
    ("MNIST", "CNN"): (1000, 15, 2.0, "SGD"),
    ("Fashion-MNIST", "CNN"): (500, 15, 2.0, "SGD"),
    ("MNIST", "LR"): (1000, 10, 1.0, "SGD"),
    ("Fashion-MNIST", "LR"): (500, 10, 1.0, "SGD"),
    ("Adult", "MLP"): (500, 10, 0.5, "SGD"),
    ("IMDb", "embedding"): (500, 20, 0.02, "Adam"),
}
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
            slow = SLOW_PLANS[:2] if (data, net) in SLOWLY else ()
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


def at_hand(data: str) -> bool:
    """Whether a set can be trained on here: MovieLens comes from its users, who may not pass it on."""
    try:
        return data != "MovieLens" or load(data) is not None
    except MissingDataError:
        return False


def published(data: str) -> Iterator[Run]:
    """Figures 7, 8 and 15-17 of the product-noise paper: its settings, our CIFAR-10 subset and Adult split."""
    net, _, batch, epochs, rate, sigma, clip, epsilon, k, optimizer = TABLE_12[data]
    epochs = min(epochs, 30 if data == "CIFAR-10" else epochs)
    common = {"study": "product", "data": data, "net": net, "batch": batch, "epochs": epochs, "rate": rate,
              "clip": clip, "optimizer": optimizer}  # fmt: skip
    yield Run(method=DP, scale=sigma, **common)
    yield Run(method=PRODUCT, epsilon=epsilon, k=k, **common)


def table_4(data: str) -> Iterator[tuple[Run, str, int]]:
    """Shadow-model attacks at the settings of table 12, on halves of 20,000 records, five repetitions."""
    net, _, batch, _, rate, sigma, clip, epsilon, k, optimizer = TABLE_12[data]
    pool, epochs = (8_000, 10) if data == "CIFAR-10" else (20_000, 20)
    for seed in range(5):
        common = {"study": "table-4", "data": data, "net": net, "batch": min(batch, pool // 2), "epochs": epochs,
                  "rate": rate, "clip": clip, "seed": seed, "optimizer": optimizer}  # fmt: skip
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
    """Table IV of the i.n.i.d. paper on the CIFAR-10 subset: sampling rate 0.02, 100 epochs, two learning rates."""
    common = {"study": "table-iv", "data": "CIFAR-10", "net": "ResNet-20", "batch": 200, "epochs": 100}
    paper, ours = ("flat Gaussian", "optimal per value", "SPR per value"), ("optimal per layer", "SPR per layer")
    laplace = ("Laplace", "SPR Laplace")
    for method in (*ours, *laplace):
        yield Run(method=method, epsilon=8.0, rate=1.0, **common)
    for method in PURE:
        yield Run(method=method, epsilon=8.0, rate=1.0, delta=0.0, **common)
    for seed in (0, 1, 2):
        for method in paper:
            yield Run(method=method, epsilon=8.0, rate=1.0, seed=seed, **common)
    for method in (*paper, ours[0], laplace[0]):
        yield Run(method=method, epsilon=8.0, rate=0.25, **common)
    for method in (*ours, *laplace):
        yield Run(method=method, epsilon=5.0, rate=1.0, **common)
    for seed in (0, 1, 2):
        for method in paper:
            yield Run(method=method, epsilon=5.0, rate=1.0, seed=seed, **common)


def geodp_table() -> Iterator[Run]:
    """Table 2 of the GeoDP paper: every row at several learning rates, of which the best is shown."""
    for sigma in (1.0, 10.0):
        for method, batch, beta in GEODP_TABLE:
            for rate in GEODP_RATES:
                yield Run("geodp-table-2", "MNIST", "GeoDP CNN", method, batch, 20, rate, 0.1, scale=sigma, beta=beta)


def jobs() -> list[tuple[Run, str, int]]:
    """Every training, the most wanted first."""
    sets = [data for data in TABLE_12 if at_hand(data)]
    plain = [(run, "", 0) for run in equal()]
    slow: dict[tuple[Any, ...], Run] = {}
    for run in (*equal(), *table_iv()):
        if run.method in SLOW_PLANS:
            slow.setdefault((run.data, run.net, run.method, run.epsilon), run)
    wanted = [job for job in plain if job[0].data == "MNIST" and job[0].net == "CNN"]
    figures = [(run, "", 0) for data in sets for run in published(data)]
    more = [(run, "", 0) for run in (*geodp_table(), *table_iv(), *windows())]
    others = [job for job in plain if job not in wanted]
    attacks = [job for data in sets for job in table_4(data)]
    return [*((run, "certify", 0) for run in slow.values()), *wanted, *membership(), *figures, *others, *attacks, *more]


def quick() -> list[tuple[Run, str, int]]:
    """One short training of each kind, on 1,000 records."""
    common = {"study": "quick", "data": "MNIST", "net": "CNN", "batch": 100, "epochs": 1, "rate": 0.5}
    plain = [Run(method=method, scale=1.0, **common) for method in (*SHAPED, *SLOW_PLANS, *PURE)]
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


def pure_scale(epsilon: float, rate: float, steps: int) -> float:
    """The noise, in units of the l1 clip, at which the pure epsilons of all steps add up to the claim."""
    return (1 + 1e-9) / math.log1p(math.expm1(epsilon / steps) / rate)  # room for rounding


def certified(run: Run, data: Data) -> dict[str, Any]:
    """What the noise of a run is worth, without training: the upper ends of delta at its epsilon, and of epsilon at
    its delta, by the composition of its own loss."""
    model = build(run.net)
    loader = DataLoader(range(len(data.y)), batch_size=run.batch)  # type: ignore[arg-type]
    make, noise = METHODS[run.method]
    private: Any = make_private(
        model, torch.optim.SGD(model.parameters(), lr=run.rate), loader, clip=make(run.clip), noise=noise,
        noise_multiplier=run.scale, delta=run.delta,
    )[1]  # fmt: skip
    step = private.privacy_.account.step
    loss = SubsampledLoss(step.subject.loss, step.sampling_rate, "poisson")
    spent = compose([(loss, run.steps(len(data.y)))])
    proved = {"delta_upper": spent.delta(run.epsilon).upper, "certified": spent.epsilon(run.delta).upper}
    return asdict(run) | {"records": len(data.y)} | proved


def do(job: tuple[Run, str, int], device: str, few: int | None = None) -> dict[str, Any]:
    """One training or attack as a row; an error becomes a row too."""
    run, attack, pool = job
    try:
        data = _data(run.data, device)
        if few is not None:
            data = part(data, torch.arange(few), torch.arange(few))
        rng = None if few is None else np.random.default_rng(run.seed)
        records = pool // 2 if pool else len(data.y)
        if run.method in PURE and run.epsilon:
            run = replace(run, scale=pure_scale(run.epsilon, run.batch / records, run.steps(records)))
        elif run.method in METHODS and run.epsilon:
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


def _key(run: Run, attack: str) -> tuple[str, str]:
    """What names a job; what a noise certifies is the same for every seed."""
    return (replace(run, seed=0) if attack == "certify" else run).key(), attack


def stored_keys(path: Path = STORE) -> set[tuple[str, str]]:
    """The jobs in runs.json."""
    return {_row_key(row) for row in json.loads(path.read_text(encoding="utf-8"))}


def _row_key(row: dict[str, Any]) -> tuple[str, str]:
    given = {field.name: row[field.name] for field in fields(Run) if row.get(field.name) is not None}
    return _key(Run(**given), row.get("attack") or "")


def store(rows: list[dict[str, Any]], path: Path = STORE) -> None:
    """Put finished rows into the stored ones, each in the place of the row of the same run."""
    found = {_row_key(row): row for row in json.loads(path.read_text(encoding="utf-8"))}
    for row in rows:
        if "error" not in row:
            kept = {name: value for name, value in row.items() if value is not None and not name.endswith("_s")}
            found[_row_key(row)] = {name: value for name, value in kept.items() if (name, value) != ("attack", "")}
    lines = ",\n".join(json.dumps(row) for row in found.values())
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    temporary.replace(path)


def main(argv: list[str]) -> None:
    """Train what is wanted, until `--seconds` have passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--only", default="", help="studies, separated by commas; certify: what Laplace noise gives")
    parser.add_argument("--missing", action="store_true", help="leave out what runs.json holds")
    parser.add_argument("--store", action="store_true", help="the file's rows into runs.json")
    options = parser.parse_args(argv)
    if options.store:
        store([json.loads(line) for line in options.out.read_text(encoding="utf-8").splitlines()])
        return
    begin = time.perf_counter()
    wanted = quick() if options.quick else jobs()
    if options.only:
        kinds = options.only.split(",")
        wanted = [job for job in wanted if ("certify" if job[1] == "certify" else job[0].study) in kinds]
    if options.missing:
        held = stored_keys()
        wanted = [job for job in wanted if _key(job[0], job[1]) not in held]
    with open(options.out, "a", encoding="utf-8") as file:

        def keep(row: dict[str, Any]) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
            shown = (row.get(name) for name in ("accuracy", "rmse", "auc", "delta_upper", "certified"))
            told = row.get("error") or " ".join(f"{value:.5g}" for value in shown if value is not None)
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
