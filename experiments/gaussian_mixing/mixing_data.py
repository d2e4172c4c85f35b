"""The regression sets of the mixing paper's figures 2 and 4, and California housing, as second moments.

Two scalings. "paper": rows of x divided by the largest norm, y by the largest magnitude in the training part, no
intercept: this touches private data and is here for comparison only. "public": every column mapped to
[-1, 1]/sqrt(d) by a public range (documented, or a round number chosen once), y to [-1, 1], clipped, with an intercept;
for the real sets. Either way both bounds are 1, in which units the published sketches mix x and y.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from shapedp import datasets
from shapedp.learn.moments import Bounds, Moments, moments
from shapedp.numerics.gram import gram
from shapedp.tables import InMemory

SCALINGS = ("paper", "public")


@dataclass(frozen=True, eq=False)
class Case:
    """Training moments, and the Gram matrix of test rows [x, c, y] with their number."""

    name: str
    scaling: str
    train: Moments
    test: Any
    test_rows: int

    @property
    def order(self) -> int:
        """Columns of [x, c]."""
        return len(self.train.cross)

    def error(self, weights: Any) -> float:
        """The mean squared error on the test rows, in units of the target bound squared."""
        full = np.append(weights, -1.0)
        return float(full @ self.test @ full) / self.test_rows / self.train.bounds.target**2

    @property
    def baseline(self) -> float:
        """The error of the non-private ridge estimate with the paper's ridge of 1e-6."""
        ridge = 1e-6 * self.train.bounds.design**2
        return self.error(np.linalg.solve(self.train.design + ridge * np.eye(self.order), self.train.cross))

    @property
    def zero(self) -> float:
        """The error of predicting 0."""
        return self.error(np.zeros(self.order))


def _range(lower: Any, upper: Any) -> Any:
    return np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)


# Public ranges of the columns and of the target: documented, or round numbers.
RANGES: dict[str, tuple[Any, tuple[float, float]]] = {
    "communities-crime": (_range([0.0] * 99, [1.0] * 99), (0.0, 1.0)),
    "tecator": (_range([1.5] * 100, [6.0] * 100), (0.0, 100.0)),
    "wine": (
        _range([0, 0, 0, 0, 0, 0, 0, 0.95, 2.5, 0, 5], [16, 2, 2, 50, 1, 150, 400, 1.05, 4.5, 2, 15]),
        (0.0, 10.0),
    ),
    "bike": (_range([1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0], [4, 1, 12, 23, 1, 6, 1, 4, 1, 1, 1, 1]), (0.0, 1000.0)),
    "boston": (
        _range([0, 0, 0, 0, 0.3, 3, 0, 0, 0, 100, 10, 0, 0], [100, 100, 30, 1, 1, 9, 100, 12, 24, 800, 25, 400, 40]),
        (0.0, 50.0),
    ),
    "california": (_range([0, 0, 0, 0, 0, 0, 32, -125], [15, 52, 15, 5, 5000, 10, 42, -114]), (0.0, 5.0)),
}

LOADERS: dict[str, Callable[[], Any]] = {
    "communities-crime": datasets.load_communities_crime,
    "tecator": datasets.load_tecator,
    "wine": datasets.load_wine_quality,
    "bike": datasets.load_bike_sharing,
    "boston": datasets.load_boston_housing,
    "california": datasets.load_california_housing,
}
MAKERS: dict[str, Callable[..., Any]] = {
    "gaussian": datasets.make_gaussian,
    "mlp": datasets.make_mlp,
    "uniform": datasets.make_uniform,
}
NAMES = (*LOADERS, *MAKERS)


def parts(name: str, seed: int, small: bool) -> tuple[Any, Any, Any, Any]:
    """Training and test rows: 80 % and 20 % of a real set by a random split, or a synthetic set (small: for CI)."""
    rng = np.random.default_rng(seed)
    if name in MAKERS:
        sizes = {"rows": 1024, "test_rows": 512, "dim": 32} if small else {"rows": 8192, "test_rows": 2048}
        data = MAKERS[name](rng, **sizes, dtype=np.float64)
        return (*data.split("train"), *data.split("test"))
    data = LOADERS[name]()
    x, y = data.split("usual") if name == "tecator" else (data.x, data.y)
    order = rng.permutation(len(y))
    cut = round(0.8 * len(y))
    return x[order[:cut]], y[order[:cut]], x[order[cut:]], y[order[cut:]]


@cache
def case(name: str, scaling: str, *, seed: int = 0, small: bool = False) -> Case:
    """One data set under one scaling."""
    x, y, x_test, y_test = parts(name, seed, small)
    bounds = Bounds.of(1.0, 1.0, intercept=scaling != "paper")
    if scaling == "paper":
        length, height = np.linalg.norm(x, axis=1).max(), np.abs(y).max()
        x, y, x_test, y_test = x / length, y / height, x_test / length, y_test / height
    else:
        (lower, upper), (bottom, top) = RANGES[name]
        middle, half = (lower + upper) / 2, (upper - lower) / 2 * math.sqrt(len(lower))
        x, x_test = (np.clip(part, lower, upper) - middle for part in (x, x_test))
        x, x_test = x / half, x_test / half
        y, y_test = (2 * part - top - bottom for part in (y, y_test))
        y, y_test = y / (top - bottom), y_test / (top - bottom)
        x_test = np.column_stack([x_test, np.full(len(x_test), bounds.constant)])
    train = moments(InMemory(np.ascontiguousarray(x), y), bounds)
    return Case(name, scaling, train, gram(np.column_stack([x_test, y_test])), len(y_test))
