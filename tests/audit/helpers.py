"""Mechanisms with known faults, and mechanisms without."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import shapedp as sdp
from shapedp.mechanisms import AdaptiveMixing
from shapedp.noise import FAMILIES


@dataclass(frozen=True)
class ChiOne:
    """x + scale |N| times a uniform direction: the radius has one degree of freedom whatever the dimension."""

    scale: float
    dim: int

    def __call__(self, x, rng, n):
        direction = rng.normal(size=(n, self.dim))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return x + self.scale * np.abs(rng.normal(size=(n, 1))) * direction

    def score(self, first, second):
        return RadialScore(self.scale, self.dim, first, second)


@dataclass(frozen=True)
class RadialScore:
    """The log-likelihood ratio of `ChiOne`: log p = -(dim - 1) log r - r^2/(2 scale^2)."""

    scale: float
    dim: int
    first: np.ndarray
    second: np.ndarray

    def __call__(self, outputs):
        a, b = (np.linalg.norm(outputs - x, axis=1) for x in (self.first, self.second))
        return (self.dim - 1) * np.log(b / a) + (b**2 - a**2) / (2 * self.scale**2)


def product_noise(dim: int, epsilon: float, k: float = 1e5) -> ChiOne:
    """The published scale of product noise for sensitivity 1."""
    growth = k ** (4 / dim) * (dim / 4 + 1.5) ** (1 + 4 / dim) * math.exp(-(1 + 2 / dim))
    return ChiOne(math.sqrt(2 * growth) / epsilon, dim)


def r1smg(dim: int, epsilon: float, delta: float) -> ChiOne:
    """The published scale of R1SMG for sensitivity 1. Reference: Ji and Li 2024, Theorem 5."""
    log_ratio = math.lgamma(dim / 2) - math.lgamma((dim - 1) / 2) - 0.5 * math.log(math.pi)
    psi = math.exp(2 / (dim - 2) * (math.log(delta) + log_ratio))
    return ChiOne(math.sqrt(2 / (epsilon * psi)), dim)


@dataclass(frozen=True)
class Gaussian:
    """x + sigma N, drawn by numpy."""

    sigma: float

    def __call__(self, x, rng, n):
        x = np.asarray(x, dtype=np.float64)
        return x + self.sigma * rng.normal(size=(n, x.size))


def naive_laplace(x, rng, n):
    """The textbook sampler in float64."""
    sign = rng.choice([-1.0, 1.0], n)
    return (x + sign * np.log(rng.integers(1, 2**53, n) * 2.0**-53))[:, None]


def sets(dim: int):
    """A set of each kind in the same dimension (at least 2)."""
    profile = np.geomspace(1.0, 0.05, dim)
    half = dim // 2
    return {
        "l2": sdp.L2(1.0, dim),
        "ellipsoid": sdp.L2(0.7, dim, scales=profile),
        "l1": sdp.L1(1.3, dim),
        "box": sdp.Box(profile),
        "blocks": sdp.Blocks([1.0, 0.3], [half, dim - half]),
    }


def served(dim: int):
    """The sets of `sets`, a box of which one coordinate decides, and two sets of matrices."""
    columns = dim // 2
    steep = np.full(dim, 0.3 / dim)
    steep[0] = 1.0
    more = {
        "steep-box": sdp.Box(steep),
        "matrix": sdp.L2(1.0, shape=(2, columns)),
        "slices": sdp.Slices([1.0, 0.3], (2, columns), 0),
    }
    return {**sets(dim), **more}


def calibrated(family: str, kind: str, dim: int, delta: float, quick: bool = False):
    """What `calibrate` makes, or None where the family does not apply; `quick` fixes what takes long to optimise."""
    options = {"shape": (0.75 * dim, 2.0)} if quick and family == "radial" else {}
    try:
        return sdp.calibrate(family, served(dim)[kind], epsilon=1.0, delta=delta, **options)
    except (sdp.DoesNotApplyError, sdp.NotCertifiedError):
        return None


def members(group: str, dim: int, deltas: tuple[float, ...] = (1e-6, 0.0)):
    """The certified mechanisms of a group with `dim` values: (name, mechanism)."""
    yield from GROUPS[group](group, dim, deltas)


def _family(family: str, dim: int, deltas: tuple[float, ...]):
    for kind in served(dim):
        for delta in deltas:
            if (m := calibrated(family, kind, dim, delta)) is not None:
                yield f"{kind}-{delta:g}", m


def _recipes(_: str, dim: int, deltas: tuple[float, ...]):
    """Published calibrations that hold what they claim."""
    for name, recipe in sdp.recipes.RECIPES.items():
        for delta in deltas:
            for size in ({"dim": dim}, {"shape": (2, dim // 2)}):
                try:
                    m = recipe(sensitivity=1.0, epsilon=1.0, delta=delta, **size)
                except (TypeError, ValueError, sdp.NotCertifiedError):
                    continue
                if m.certificate.verdict == "certified":
                    yield f"{name}-{next(iter(size))}-{delta:g}", m


def _mixing(_: str, dim: int, deltas: tuple[float, ...]):
    """Sketches of `dim` values: k rows of up to ten columns; data rich enough that an adaptive one adds less noise."""
    columns = max(d for d in (1, 2, 5, 10) if (dim % d == 0 and d * d <= dim) or d == 2)
    for make, copies in ((sdp.Mixing, 1), (AdaptiveMixing, 64)):
        for adjacency in ("zero-out", "replace"):
            sizes = {"rows": dim // columns, "records": copies * columns, "dim": columns}
            for delta in deltas:
                if delta > 0:
                    m = make.calibrate(row_bound=1.0, epsilon=1.0, delta=delta, adjacency=adjacency, **sizes)
                    yield f"{make.__name__}-{adjacency}-{delta:g}", m


GROUPS = {**dict.fromkeys(FAMILIES, _family), "recipes": _recipes, "mixing": _mixing}
