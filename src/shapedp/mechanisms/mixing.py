"""Gaussian mixing: a random sketch of the rows, S X + sigma xi, drawn from its exact distribution."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import boolean
from shapedp.mechanisms.base import Claimed, Release, Rng
from shapedp.numerics import gram as grams
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, finite, numeric, one_of, positive, probability
from shapedp.numerics.outward import ABOVE_512, ABOVE_8192, BELOW_1, BELOW_512, BELOW_8192, ROUNDINGS_1024, UNIT, WIDER
from shapedp.privacy import Certificate, Loss
from shapedp.privacy.losses.mixing import NEIGHBOURS, MixingLoss, Neighbours
from shapedp.sampling import GAUSSIAN, Source, rounded_sum
from shapedp.sensitivity import L2

ROOM = 2.0**-10  # of delta, left for floating point where the sizes are not known yet
MOST_EPSILON = 700.0
CHUNK = grams.GROUP * grams.BLOCK


@dataclass(frozen=True, eq=False)
class Sketch(Release[Floats]):
    """k released rows, each distributed as N(0, X^T X + noise_variance I), and the certificate they carry.

    A sketch has no error bars of its own: what is read from it has. `noise_variance` is that of the noise in the rows.

    Examples
    --------
    >>> mechanism = Mixing.calibrate(rows=50, row_bound=1.0, epsilon=1.0, delta=1e-6)
    >>> mechanism.release(np.zeros((100, 2)), rng=np.random.default_rng(0)).gram().shape
    (2, 2)
    """

    noise_variance: float = 0.0

    def gram(self) -> Floats:
        """An unbiased estimate of X^T X (not always positive semidefinite)."""
        k, d = self.value.shape
        return np.asarray(self.value.T @ self.value / k - self.noise_variance * np.eye(d))


class Sketching(Claimed):
    """What the mixing mechanisms share: sizes, certificate, release and description. A subclass has the fields."""

    rows: int
    row_bound: float
    adjacency: Neighbours
    records: int | None
    dim: int | None

    def __post_init__(self) -> None:
        self._plain(count, "rows")
        numbers = [one.name for one in fields(self) if one.type == "float"]  # type: ignore[arg-type]
        self._plain(positive, *(name for name in numbers if name != "delta"))
        if not 1e-100 < self.row_bound < 1e100:
            raise ValueError(f"row_bound must lie between 1e-100 and 1e100, got {self.row_bound!r}: use other units")
        self._plain(probability, "delta")
        one_of("adjacency", self.adjacency, NEIGHBOURS)
        if (self.records is None) != (self.dim is None):
            raise ValueError("records and dim go together: give both sizes of the data, or neither")
        if self.records is not None:
            self._plain(count, "records", "dim")

    def release(self, x: Any, *, rng: Rng = None, unsafe: bool = False) -> Sketch:
        """The sketch of the rows of x, clipped to the row bound; `rng` replaces secure randomness in simulations."""
        unsafe = boolean("unsafe", unsafe)
        table = x.tocsr() if hasattr(x, "tocsr") else numeric("x", x)
        if len(table.shape) != 2 or 0 in table.shape:
            raise ValueError(f"x must be a non-empty 2-d array, one row per record, got shape {table.shape}")
        n, d = (int(size) for size in table.shape)
        return self.release_gram(lambda: clipped_gram(table, self.row_bound), n, d, rng=rng, unsafe=unsafe)

    def release_gram(
        self, gram: Floats | Callable[[], Floats], records: int, dim: int, *, rng: Rng = None, unsafe: bool = False
    ) -> Sketch:
        """The sketch of rows given by their Gram matrix (or a function that computes it once all is checked).

        The caller vouches that every row was within the row bound and that the matrix is as exact as `gram_sum`'s.
        """
        unsafe = boolean("unsafe", unsafe)
        sized = self._sized(records, dim)
        certificate = sized.certificate if unsafe else required(sized)
        moments = finite("gram", gram() if callable(gram) else gram)
        drawn = self._drawn(  # the variance comes last
            moments, lambda randomness: np.append(*self._draw(moments, randomness)), rng, unsafe, certificate
        )
        rows, variance = drawn.value[:-1].reshape(self.rows, dim), float(drawn.value[-1])
        return Sketch(rows, None, drawn.certificate, unsafe=drawn.unsafe, noise_variance=variance)

    def _sized(self, records: int, dim: int) -> Any:
        """The mechanism with the sizes of the data, which are public."""
        if self.records is None:
            return replace(self, records=records, dim=dim)  # type: ignore[type-var]
        if records > self.records or dim != self.dim:
            raise ValueError(f"x must have at most {self.records} rows and {self.dim} columns, got {(records, dim)}")
        return self

    @staticmethod
    def too_large(rows: int, records: int, dim: int, delta: float) -> str:
        """Why floating point does not let a claim be certified."""
        return refusal("mechanisms", "too-large", rows=rows, records=records, dim=dim, delta=delta)

    @abstractmethod
    def _draw(self, moments: Floats, randomness: Source) -> tuple[Floats, float]:
        """The sketch and the noise variance in it."""


@dataclass(frozen=True)
class EigenvalueSketching(Sketching):
    """A sketch whose noise follows a released eigenvalue: gamma, eta and tau as in `AdaptiveMixing`."""

    rows: int
    row_bound: float
    gamma: float
    eta: float
    tau: float
    epsilon: float
    delta: float
    adjacency: Neighbours = "zero-out"
    records: int | None = None
    dim: int | None = None


@dataclass(frozen=True)
class Mixing(Sketching):
    """Y = S X + sigma xi with S, xi standard normal, k = `rows` rows, records of L2 norm at most `row_bound` C.

    Parameters
    ----------
    rows: the rows k of the sketch.
    row_bound: C, the bound on a record.
    gamma: sigma^2 = (gamma - 1) C^2: a record is part of the covariance it hides in, which is worth C^2.
    epsilon, delta, adjacency: the claim.
    records, dim: the public sizes (n, d) of X, for which floating point is then accounted; `release` fills them in.
    recipe: the name of the published calibration that chose gamma, if one did.

    Guarantee: `loss` holds for every pair of neighbours, whatever the data: one row set to zero, or exchanged.
    Reference: Lev et al. 2025, The Gaussian mixing mechanism; Sheffet 2019, Theorem 2.

    Examples
    --------
    >>> Mixing.calibrate(rows=50, row_bound=1.0, epsilon=1.0, delta=1e-6).certificate.verdict
    'certified'
    """

    kind: ClassVar[str] = "mixing"
    rows: int
    row_bound: float
    gamma: float
    epsilon: float
    delta: float
    adjacency: Neighbours = "zero-out"
    records: int | None = None
    dim: int | None = None
    recipe: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 < self.gamma < 1e90:
            raise ValueError(f"gamma must lie above 1 and below 1e90, got {self.gamma!r}")

    @property
    def noise_variance(self) -> float:
        """sigma^2 = (gamma - 1) C^2."""
        return (self.gamma - 1) * self.row_bound**2

    @cached_property
    def loss(self) -> Loss:
        """The privacy loss of one release; with the sizes given, that of the floats released.

        A lone row attains it, and two orthogonal ones do under replacement (nothing is known from below if dim = 1).
        """
        least = 0.0 if self.dim == 1 and self.adjacency == "replace" else BELOW_512 / self.gamma
        base = MixingLoss(self.rows, float_share(self.gamma, self.records, self.dim), self.adjacency, least=least)
        if self.records is None:
            return base
        return base.with_failure(0.0, total_variation=rounding(self.rows, self.gamma, self.records, self.dim))

    @classmethod
    def calibrate(
        cls,
        *,
        rows: int,
        row_bound: float,
        epsilon: float,
        delta: float,
        adjacency: Neighbours = "zero-out",
        records: int | None = None,
        dim: int | None = None,
    ) -> Mixing:
        """The least gamma that meets (epsilon, delta), on the private side.

        Without the sizes 2^-10 of delta is left for floating point, enough for small data; with `records` and `dim`
        exactly what is needed.
        """
        epsilon, delta = calibratable(epsilon, delta, adjacency)
        aim, tolerance = (delta * (1 - ROOM), 1e-14) if records is None else (delta * BELOW_8192, 1e-6)
        near = MixingLoss.calibrate(rows, epsilon, aim, neighbours=adjacency, tolerance=tolerance)
        gamma = near.gamma
        if records is not None and dim is not None:
            rows, records, dim = count("rows", rows), count("records", records), count("dim", dim)
            missed = rounding(rows, gamma, records, dim)
            aim -= (1 + math.exp(epsilon)) * missed * ABOVE_512
            if not aim > 0:
                raise ValueError(cls.too_large(rows, records, dim, delta))
            gamma = MixingLoss.calibrate(rows, epsilon, aim, neighbours=adjacency, near=near).gamma
            gamma *= 1 + 2 * grams.gram_error(records, dim) / (gamma - 1)
        made = cls(rows, row_bound, gamma * ABOVE_8192, epsilon, delta, adjacency, records, dim)
        made.certificate.require()
        return made

    def _draw(self, moments: Floats, randomness: Source) -> tuple[Floats, float]:
        variance = self.noise_variance
        return draw_sketch(moments, self.rows, variance, variance / 2, randomness), variance


def calibratable(epsilon: float, delta: float, adjacency: Neighbours) -> tuple[float, float]:
    """A claim, checked: an epsilon whose exponential times the rounding of floats can stay below a delta."""
    one_of("adjacency", adjacency, NEIGHBOURS)
    if not positive("epsilon", epsilon) <= MOST_EPSILON:
        raise ValueError(f"epsilon must be at most {MOST_EPSILON:g} for a sketch, got {epsilon!r}: rounding would show")
    return float(epsilon), probability("delta", delta)


def clipped_gram(table: Any, row_bound: float) -> Floats:
    """X^T X of the rows pulled into the row bound, a few thousand rows at a time."""
    n, d = table.shape
    ball = L2(row_bound, dim=d)
    parts = (ball.clip(table[i : i + CHUNK], adjacency="zero-out")[0] for i in range(0, n, CHUNK))
    return grams.gram_sum(parts, np.full(d, row_bound))


def required(sized: Any) -> Certificate:
    """The certificate of a mechanism with its sizes; says so where only floating point stands in the way."""
    certificate: Certificate = sized.certificate
    if certificate.verdict == "undecided" and replace(sized, records=None, dim=None).certificate.verdict == "certified":
        raise ValueError(sized.too_large(sized.rows, sized.records, sized.dim, sized.delta))
    return certificate.require()


def draw_sketch(moments: Floats, rows: int, variance: float, last: float, randomness: Source) -> Floats:
    """k rows of N(0, moments + variance I), the part `last` of the variance added at the end, by the exact sampler."""
    d = len(moments)
    root = grams.factor(moments + (variance - last) * np.eye(d))
    mixed = normals(rows * d, randomness).reshape(rows, d) @ root
    return np.asarray(rounded_sum(mixed, "gaussian", math.sqrt(last), None, randomness))


def normals(n: int, randomness: Source) -> Floats:
    """Standard normals as floats, within 2^-43 of the real draw: 64 random bits each, 128 in the tails."""
    words = randomness.words(n).view(np.int64)
    u = np.abs((words + 0.5) * 2.0**-64)
    small = np.flatnonzero(u < WIDER)
    if small.size:
        w = words[small]
        whole = np.where(w >= 0, w, ~w).astype(np.float64)
        u[small] = (whole + (randomness.words(small.size).astype(np.float64) + 0.5) * 2.0**-64) * 2.0**-64
    GAUSSIAN.magnitude(u)
    return np.asarray(np.copysign(u, words))


def float_share(gamma: float, records: int | None, dim: int | None) -> float:
    """t = 1/gamma, and more by what rounding may take from the eigenvalues of the other records' covariance."""
    if records is None or dim is None:
        return ABOVE_512 / gamma
    return min(ABOVE_512 / gamma * (1 + 2 * grams.gram_error(records, dim) / (gamma - 1)), BELOW_1)


def eigenvalue_slip(records: int | None, dim: int | None) -> float:
    """How far the computed least eigenvalue of X^T X may be off, in units of the squared row bound; 0 without sizes."""
    if records is None or dim is None:
        return 0.0
    return grams.gram_error(records, dim) + grams.eigenvalue_error(dim) * records


def rounding(rows: int, gamma: float, records: int | None, dim: int | None) -> float:
    """A bound on the total variation between the floats released and an exact rounding of the real-valued sketch.

    0 without the sizes: that is then the loss in real arithmetic.

    In units of the row bound: half of the noise, v = (gamma - 1)/2, is in the factored covariance A >= v I of trace
    at most n + d v, half is added last, exactly. A is the computed Gram matrix of the other records, which neighbours
    share, and x x^T up to `block_error`: only the group of 4096 rows that holds x rounds differently, the groups are
    added exactly. The factor R^ has R^T R = A + E, so that |R^ - U R|_F <= |E|_F/sqrt(v)
    for a rotation U (Higham 2008, Theorem 6.2); with the float normals G^ and product, what is added to noise of
    standard deviation sqrt(v) is off by at most

        |G|_2 |E|_F/sqrt(v) + 2^-43 sqrt(k d) |R|_2 + (d + 8) u |G|_F |R|_F

    and a shift of length s costs s/sqrt(2 pi v). |G|_2 <= sqrt k + sqrt d + 9 but for probability e^-40.5.
    """
    if records is None or dim is None:
        return 0.0
    n, d, k, v = float(records), float(dim), float(rows), (gamma - 1) / 2
    trace = n + d * v
    error = (grams.factor_error(dim) * trace + grams.block_error(records, dim)) * 1.01
    if not error < v / 4:
        return 1 - UNIT
    spectral, frobenius = math.sqrt(k) + math.sqrt(d) + 9, math.sqrt(k * d) + 9
    shift = spectral * error / math.sqrt(v) + ROUNDINGS_1024 * math.sqrt(k * d * (n + 2 * v))
    shift += (d + 8) * UNIT * 1.01 * frobenius * math.sqrt(trace * 1.01)
    return min(shift / math.sqrt(2 * math.pi * v) * 1.01 + 2.0**-56, BELOW_1)
