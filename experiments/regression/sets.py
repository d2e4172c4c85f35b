"""Sets for the regression table: the real ones at hand, in two scalings, and twelve generated ones, with their records.

Solvers that clip residuals read the records again; the rest needs second moments only. The authors' sets of iterative
Hessian mixing (github.com/omrilev1/HessianMix) are read where a user has them: see `authors_sets`.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "gaussian_mixing"))

from mixing_data import LOADERS, RANGES, parts

from shapedp.learn.moments import Bounds, Moments, moments
from shapedp.tables import InMemory

TEST = 2000
DESIGNS = ("isotropic", "decaying", "positive", "low rank", "heavy", "skewed")
GENERATED = tuple((design, n, d) for design in DESIGNS for n, d in ((1000, 5), (10_000, 20)))
CHECKSUMS = {  # sha256, the first 16 digits, of the authors' *_train.txt at their commit 3765136
    "autos": "cc8b46f80771eec9",
    "concreteslump": "02d656757c818802",
    "elevators": "f9c478c8660cc924",
    "fertility": "ff63b39ac0a39038",
    "forest": "5e93f58feeeee7d1",
    "kin40k": "72ad383c3281a7c8",
    "machine": "9b8a1ff9269f024f",
    "pendulum": "6cf3dbfadf9edfae",
    "pol": "1f4370e9c9448dc5",
    "pumadyn32nm": "bd823e5e87867b41",
    "servo": "fbd529b3214f51f6",
    "sml": "99779d3b2243216c",
    "solar": "2257aa48f6fdb826",
    "yacht": "dc2871f60f28086c",
}


@dataclass(frozen=True, eq=False)
class Set:
    """Training moments with their records, and test rows [x, c, y]."""

    name: str
    moments: Moments
    rows: Any
    test: Any

    @property
    def order(self) -> int:
        """Columns of [x, c]."""
        return len(self.moments.cross)

    def error(self, weights: Any) -> float:
        """The mean squared error on the test rows, in units of the target bound squared."""
        return float(np.mean(np.square(self.test @ np.append(weights, -1.0)))) / self.moments.bounds.target**2

    def baseline(self) -> float:
        """The error of least squares without privacy."""
        return self.error(np.linalg.lstsq(self.rows[:, :-1], self.rows[:, -1], rcond=1e-10)[0])


def made(name: str, x: Any, y: Any, x_test: Any, y_test: Any, *, intercept: bool) -> Set:
    """A set whose rows are within the unit ball and whose targets are within [-1, 1]."""
    bounds = Bounds.of(1.0, 1.0, intercept=intercept)
    beside = [np.full((len(part), 1), bounds.constant) for part in (x, x_test)] if intercept else [np.empty((0, 0))] * 2
    table = InMemory(np.ascontiguousarray(x), y)
    whole = [np.hstack([a, b]) if intercept else a for a, b in zip((x, x_test), beside, strict=True)]
    found = moments(table, bounds)
    return Set(name, found, np.column_stack([whole[0], np.clip(y, -1, 1)]), np.column_stack([whole[1], y_test]))


def unit_rows(x: Any) -> Any:
    """Rows longer than 1 pulled in."""
    return x / np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True) * (1 + 1e-12))


def generated(design: str, n: int, d: int, seed: int) -> Set:
    """One synthetic regression; about one record in a thousand is clipped. "heavy" and "skewed" name its residuals."""
    rng = np.random.default_rng([seed, DESIGNS.index(design), n, d])
    rows = n + TEST
    x = {
        "decaying": lambda: rng.standard_normal((rows, d)) / np.arange(1, d + 1),
        "positive": lambda: rng.uniform(0, 1, (rows, d)),
        "low rank": lambda: (
            rng.standard_normal((rows, 3)) @ rng.standard_normal((3, d)) + 0.05 * rng.standard_normal((rows, d))
        ),
    }.get(design, lambda: rng.standard_normal((rows, d)))()
    signal = x @ rng.standard_normal(d)
    residual = {
        "heavy": lambda: rng.standard_t(3, rows) / math.sqrt(3),
        "skewed": lambda: rng.exponential(1.0, rows) - 1,
    }.get(design, lambda: rng.standard_normal(rows))()
    y = signal / signal.std() + 0.5 * residual
    x, y = x / np.quantile(np.linalg.norm(x, axis=1), 0.999), y / np.quantile(np.abs(y), 0.999)
    x, y = unit_rows(x), np.clip(y, -1, 1)
    return made(f"{design} {n} x {d}", x[:n], y[:n], x[n:], y[n:], intercept=False)


def real(name: str, scaling: str) -> Set:
    """One real set; "paper": divided by the largest norm and magnitude; "public": columns in public ranges."""
    x, y, x_test, y_test = parts(name, 0, False)
    if scaling == "paper":
        length, height = np.linalg.norm(x, axis=1).max() * (1 + 1e-12), np.abs(y).max()
        return made(f"{name}, paper", x / length, y / height, x_test / length, y_test / height, intercept=False)
    (lower, upper), (bottom, top) = RANGES[name]
    middle, half = (lower + upper) / 2, (upper - lower) / 2 * math.sqrt(len(lower)) * (1 + 1e-12)
    x, x_test = ((np.clip(part, lower, upper) - middle) / half for part in (x, x_test))
    y, y_test = ((2 * part - top - bottom) / (top - bottom) for part in (y, y_test))
    return made(f"{name}, public", x, y, x_test, y_test, intercept=True)


def real_sets(quick: bool = False) -> Iterator[Set]:
    """All real sets in both scalings."""
    for name in ("boston",) if quick else LOADERS:
        for scaling in ("paper", "public"):
            yield real(name, scaling)


def generated_sets(seed: int, quick: bool = False) -> Iterator[Set]:
    """The twelve generated sets of one seed."""
    for design, n, d in GENERATED[:2] if quick else GENERATED:
        yield generated(design, n, d, seed)


def authors_sets(folder: Path, quick: bool = False) -> Iterator[Set]:
    """The authors' sets in that folder (their `datasets`), each file checked against its checksum, as they scale them.

    Columns are standardised, rows divided by the largest norm and y by its largest magnitude: this touches private
    data. The first of their ten splits.
    """
    for name, wanted in list(CHECKSUMS.items())[: 1 if quick else None]:
        content = (folder / f"{name}_train.txt").read_bytes()
        if hashlib.sha256(content).hexdigest()[:16] != wanted:
            raise ValueError(f"{name}_train.txt is not the file of the authors' commit 3765136")
        data = np.loadtxt(folder / f"{name}_train.txt", delimiter=",", ndmin=2)
        held_out = np.loadtxt(folder / f"{name}_mask.txt", delimiter=",", usecols=0).astype(bool)
        x, y = data[:, :-1], data[:, -1] / np.abs(data[~held_out, -1]).max()
        spread = x[~held_out].std(axis=0)
        x = (x - x[~held_out].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        x = x / (np.linalg.norm(x[~held_out], axis=1).max() * (1 + 1e-12))
        yield made(name, x[~held_out], y[~held_out], x[held_out], y[held_out], intercept=False)
