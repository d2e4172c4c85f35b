"""The one list of laws that every law test runs over: a new law adds one row.

Laws whose density, moments or widths are known to a stated accuracy only are in `ELSEWHERE`, with the tests that run
over them. A test asserts that every registered law is in one of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from shapedp.noise import DiscreteLaplace, Gaussian, Laplace, Law, Logistic, Mixed, TensorGaussian
from shapedp.sampling import grid_for


@dataclass(frozen=True)
class Lattice:
    """A distribution on the multiples of `grid`, from one on the integers."""

    integers: Any
    grid: float

    def cdf(self, x):
        return self.integers.cdf(np.floor(np.asarray(x) / self.grid))

    def ppf(self, q):
        return self.integers.ppf(q) * self.grid

    def var(self) -> float:
        return float(self.integers.var() * self.grid**2)


@dataclass(frozen=True)
class Row:
    """A law to test.

    `make(factor)` builds it with every scale times a factor near 1; `marginal(law, i)` is the reference
    distribution of its i-th coordinate (cdf, ppf, var); `grid(law)` is where its draws lie; `independent` says
    whether its coordinates are.
    """

    name: str
    make: Callable[[float], Law]
    marginal: Callable[[Law, int], Any]
    grid: Callable[[Law], np.ndarray]
    discrete: bool = False
    independent: bool = True


def _normal(law: Law, i: int) -> Any:
    return stats.norm(scale=np.broadcast_to(law.scales, law.dim)[i])


def _laplace(law: Law, i: int) -> Any:
    return stats.laplace(scale=np.broadcast_to(law.scales, law.dim)[i])


def _logistic(law: Law, i: int) -> Any:
    return stats.logistic(scale=np.broadcast_to(law.scales, law.dim)[i])


def _lattice(law: Law, i: int) -> Any:
    steps, grid = np.broadcast_to(law.steps, law.dim)[i], np.broadcast_to(law.grid, law.dim)[i]
    return Lattice(stats.dlaplace(1 / steps), float(grid))


def _default(law: Law) -> np.ndarray:
    return np.broadcast_to(grid_for(law.scales), law.dim)


LAWS = [
    Row("gaussian-1", lambda t: Gaussian(0.37 * t, 1), _normal, _default),
    Row("gaussian-2", lambda t: Gaussian(2.5 * t, 2), _normal, _default),
    Row("gaussian-diagonal", lambda t: Gaussian(np.array([0.01, 30.0]) * t), _normal, _default),
    Row("gaussian-block", lambda t: Gaussian(np.array([5.0, 0.2]) * t, sizes=[2, 1]), _normal, _default),
    Row("gaussian-huge", lambda t: Gaussian(1e120 * t, 2), _normal, _default),
    Row("tensor-diagonal", lambda t: TensorGaussian([[0.5, 3.0], 1], scale=t), _normal, _default),
    Row(
        "tensor-rotated",
        lambda t: TensorGaussian([[[1.0, 0.5], [0.2, 2.0]], [1.5]], scale=t),
        _normal,
        _default,
        independent=False,
    ),
    Row("laplace-1", lambda t: Laplace(1.3 * t, 1), _laplace, _default),
    Row("laplace-2", lambda t: Laplace(0.6 * t, 2), _laplace, _default),
    Row("laplace-diagonal", lambda t: Laplace(np.array([3.0, 0.05]) * t), _laplace, _default),
    Row("laplace-block", lambda t: Laplace(np.array([0.4, 7.0]) * t, sizes=[1, 2]), _laplace, _default),
    Row("laplace-tiny", lambda t: Laplace(1e-120 * t, 2), _laplace, _default),
    Row("logistic-1", lambda t: Logistic(0.7 * t, 1), _logistic, _default),
    Row("logistic-diagonal", lambda t: Logistic(np.array([20.0, 0.3]) * t), _logistic, _default),
    Row(
        "mixed",
        lambda t: Mixed(np.array([3.0, 0.05, 1.0]) * t, [True, False, False]),
        lambda law, i: (_normal if law.gaussian[i] else _laplace)(law, i),
        _default,
    ),
    Row(
        "discrete-laplace-1",
        lambda t: DiscreteLaplace(round(100 * t), 0.25, 1),
        _lattice,
        lambda law: np.broadcast_to(law.grid, law.dim),
        discrete=True,
    ),
    Row(
        "discrete-laplace-2",
        lambda t: DiscreteLaplace([round(50 * t), round(50 * t)], [2.0**-20, 8.0], 2),
        _lattice,
        lambda law: law.grid,
        discrete=True,
    ),
]

ELSEWHERE = {
    "radial": "noise/test_radial.py",
    "staircase": "noise/test_staircase.py",
    "l1-staircase": "noise/test_staircase.py",
    "stack": "torch/test_noise.py",
}
