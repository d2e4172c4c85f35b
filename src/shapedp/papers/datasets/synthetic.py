"""The papers' synthetic sets, drawn block by block from an explicit generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.checks import LAID_OUT, count, nonnegative, probability
from shapedp.papers.datasets.base import Bounds, Dataset, limits, parts

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, int], tuple[Array, Array]]

MIXING = "O. Lev, V. Srinivasan, M. Shenfeld, K. Ligett, A. Sekhari, A. C. Wilson, The Gaussian Mixing Mechanism (2025)"
PRODUCT = (
    "S. Liu, T. Ji et al., Privacy Loss of Noise Perturbation via Concentration Analysis of A Product Measure; "
    "R. Iyengar et al., Towards Practical Differentially Private Convex Optimization, IEEE S&P 2019"
)


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows of a synthetic set that are drawn when asked for.

    Parameters
    ----------
    name, description, citation, extra: what a `Dataset` of the same name carries.
    rows, dim, dtype: the size and the type of x.
    block_rows: the rows of a block; the last one may be shorter.
    entropy: the numbers that decide every draw.
    draw: (generator, rows) to (x, y) of a block.
    bounds: public bounds on the entries of x.

    Guarantee: block i is the same whenever and in whatever order it is drawn, so that a set larger than memory can be
    passed over several times or in parallel.

    >>> stream = stream_uniform(np.random.default_rng(0), rows=100, dim=5, block_rows=40)
    >>> [len(y) for _, y in stream]
    [40, 40, 20]
    """

    name: str
    rows: int
    dim: int
    block_rows: int
    entropy: tuple[int, ...]
    draw: Draw
    dtype: Any = np.float32
    bounds: Bounds | None = None
    extra: Mapping[str, Array] = field(default_factory=dict)
    description: str = ""
    citation: str = ""

    def __post_init__(self) -> None:
        count("rows", self.rows), count("block_rows", self.block_rows, most=LAID_OUT)

    def __len__(self) -> int:
        """The number of blocks."""
        return -(-self.rows // self.block_rows)

    def block(self, index: int) -> tuple[Array, Array]:
        """(x, y) of one block."""
        if not 0 <= index < len(self):
            raise IndexError(f"block {index} does not exist; there are {len(self)}")
        seed = np.random.SeedSequence(self.entropy, spawn_key=(index,))
        rows = min(self.block_rows, self.rows - index * self.block_rows)
        return self.draw(np.random.Generator(np.random.PCG64(seed)), rows)

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        return (self.block(index) for index in range(len(self)))

    def dataset(self, train: int | None = None) -> Dataset:
        """All rows in memory, the first `train` of them as the part 'train', the others as 'test'."""
        x = np.empty((self.rows, self.dim), dtype=self.dtype)
        y = []
        for index in range(len(self)):
            begin = index * self.block_rows
            x[begin : begin + self.block_rows], block = self.block(index)
            y.append(block)
        splits = {} if train is None else parts((train, self.rows - train))
        texts = {"citation": self.citation, "source": "drawn by shapedp", "licence": "none needed"}
        known: dict[str, Any] = {"bounds": self.bounds, "description": self.description, "extra": self.extra, **texts}
        return Dataset(self.name, x, np.concatenate(y), splits=splits, **known)


def stream_gaussian(rng: np.random.Generator, *, dim: int = 512, rank: int = 4, **options: Any) -> Stream:
    """The Gaussian set: x ~ N(0, Q Q^T) on a random subspace of dimension `rank`, y = x.theta + noise * Unif(-1, 1).

    Reference: Lev et al. 2025, appendix J.1.

    Parameters
    ----------
    rng: a numpy generator; the same seed gives the same set.
    dim: the number of columns.
    rank: the dimension of the subspace.
    options: rows (8192), the size of the set; noise (0.1), the size of the uniform noise on y; dtype (float32), of x
        and y; block_rows (1024), the rows of a block.

    Returns
    -------
    The set, block by block.

    >>> len(stream_gaussian(np.random.default_rng(0), rows=100, dim=20, block_rows=30))
    4
    """
    _generator(rng)
    count("dim", dim, most=LAID_OUT >> 4), count("rank", rank, most=LAID_OUT >> 4)
    if rank > dim:
        raise ValueError(f"rank must be at most dim ({dim}), got {rank}")
    basis = np.linalg.qr(rng.standard_normal((dim, rank)))[0]

    def covariates(draw: np.random.Generator, n: int) -> Array:
        return np.asarray(draw.standard_normal((n, rank)) @ basis.T)

    return _linear("gaussian", rng, dim, covariates, **options)


def stream_mlp(rng: np.random.Generator, *, dim: int = 512, **options: Any) -> Stream:
    """The MLP set: x = s(W2 s(W1 z + b1) + b2), s the sigmoid, z ~ N(0, I_2), 100 hidden units.

    y = x.theta + noise * Unif(-1, 1), as in the Gaussian set.

    Reference: Lev et al. 2025, appendix J.1.

    Parameters: as for `stream_gaussian`, without `rank`. Returns: the set, block by block.

    >>> len(stream_mlp(np.random.default_rng(0), rows=100, dim=20, block_rows=30))
    4
    """
    from scipy.special import expit

    _generator(rng)
    count("dim", dim, most=LAID_OUT >> 4)
    inner, outer = rng.standard_normal((100, 2)), rng.standard_normal((dim, 100))
    inner_bias, outer_bias = 1e-3 * rng.standard_normal(100), 1e-3 * rng.standard_normal(dim)

    def covariates(draw: np.random.Generator, n: int) -> Array:
        hidden = expit(draw.standard_normal((n, 2)) @ inner.T + inner_bias)
        return np.asarray(expit(hidden @ outer.T + outer_bias))

    return _linear("mlp", rng, dim, covariates, limits(0, 1), **options)


def stream_uniform(rng: np.random.Generator, *, dim: int = 512, **options: Any) -> Stream:
    """The uniform set: independent entries Unif(-1, 1), y as in the Gaussian set.

    Reference: Lev et al. 2025, appendix K.1.

    Parameters: as for `stream_gaussian`, without `rank`. Returns: the set, block by block.

    >>> len(stream_uniform(np.random.default_rng(0), rows=100, dim=20, block_rows=30))
    4
    """
    _generator(rng)
    count("dim", dim, most=LAID_OUT >> 4)

    def covariates(draw: np.random.Generator, n: int) -> Array:
        return draw.uniform(-1, 1, (n, dim))

    return _linear("uniform", rng, dim, covariates, limits(-1, 1), **options)


def stream_synthetic_h(
    rng: np.random.Generator,
    *,
    rows: int = 70_000,
    dim: int = 20_000,
    informative: int = 10,
    separation: float = 2.0,
    flip: float = 0.01,
    dtype: Any = np.float32,
    block_rows: int = 1024,
) -> Stream:
    """Synthetic-H: two classes (y = +1 or -1) told apart by a few of many columns; the others are N(0, 1).

    Each class has two clusters N(v, A A^T), v a vertex of the cube [-separation, separation]^informative and A a
    matrix of entries Unif(-1, 1); a share `flip` of the labels is drawn anew. extra["informative"] holds the columns.
    The paper prints the size only; the other values are those of the script it names.

    Reference: Iyengar et al. 2019 (scikit-learn's make_classification, after Guyon 2003).

    Parameters
    ----------
    rng: a numpy generator; the same seed gives the same set.
    rows, dim: the size of the set.
    informative: the number of columns that the labels depend on.
    separation: half the distance of the clusters along each of them.
    flip: the probability that a label is drawn at random.
    dtype: of x.
    block_rows: the rows of a block.

    Returns
    -------
    The set, block by block.

    >>> len(stream_synthetic_h(np.random.default_rng(0), rows=100, dim=20, block_rows=30))
    4
    """
    _generator(rng)
    count("dim", dim, most=LAID_OUT >> 4), count("informative", informative, least=2)
    nonnegative("separation", separation), probability("flip", flip)
    if informative > dim:
        raise ValueError(f"informative must be at most dim ({dim}), got {informative}")
    centres, mixing = _clusters(rng, informative, separation)
    columns = np.sort(rng.choice(dim, informative, replace=False))

    def draw_block(draw: np.random.Generator, n: int) -> tuple[Array, Array]:
        kind = np.dtype(dtype)
        x = draw.standard_normal((n, dim), dtype=kind.type)
        cluster = draw.integers(4, size=n)
        x[:, columns] = np.einsum("ni,nij->nj", x[:, columns].astype(np.float64), mixing[cluster]) + centres[cluster]
        y = 2 * (cluster % 2) - 1
        return x, np.where(draw.random(n) < flip, 2 * draw.integers(2, size=n) - 1, y)

    text = "Synthetic-H: high dimension, two classes. Settings beyond the size are ours."
    known: dict[str, Any] = {"extra": {"informative": columns}, "description": text, "citation": PRODUCT}
    return Stream("synthetic_h", rows, dim, block_rows, _entropy(rng), draw_block, dtype, **known)


def _clusters(rng: np.random.Generator, dim: int, separation: float) -> tuple[Array, Array]:
    """Centres of four clusters, at vertices of the cube, and the matrices that spread them."""
    vertices = rng.choice(2 ** min(dim, 62), 4, replace=False)
    signs = (vertices[:, None] >> np.arange(min(dim, 62))) & 1
    centres = np.zeros((4, dim))
    centres[:, : signs.shape[1]] = separation * (2.0 * signs - 1)
    return centres, rng.uniform(-1, 1, (4, dim, dim))


def _in_memory(stream: Callable[..., Stream], rng: Any, rows: int, test_rows: int, options: dict[str, Any]) -> Dataset:
    """The two parts of a stream as one data set."""
    train = count("rows", rows, most=LAID_OUT >> 4)
    more = count("test_rows", test_rows, least=0, most=LAID_OUT >> 4)
    return stream(rng, rows=train + more, **options).dataset(train=train)


def make_gaussian(rng: np.random.Generator, *, rows: int = 8192, test_rows: int = 2048, **options: Any) -> Dataset:
    """The Gaussian set in memory, parts 'train' and 'test'; options: stream_gaussian. extra["theta"]: the truth.

    Parameters: `rng` and the options of `stream_gaussian`; `rows` and `test_rows` are the sizes of the two parts.
    Returns: the data set.

    >>> make_gaussian(np.random.default_rng(0), rows=100, dim=20, test_rows=20).x.shape
    (120, 20)
    """
    return _in_memory(stream_gaussian, rng, rows, test_rows, options)


def make_mlp(rng: np.random.Generator, *, rows: int = 8192, test_rows: int = 2048, **options: Any) -> Dataset:
    """The MLP set in memory, parts 'train' and 'test'; options: stream_mlp. extra["theta"]: the truth.

    Parameters and result are those of `make_gaussian`, the options those of `stream_mlp`.

    >>> data = make_mlp(np.random.default_rng(0), rows=8, dim=3, test_rows=2)
    >>> [len(data.split(part)[1]) for part in ("train", "test")]
    [8, 2]
    """
    return _in_memory(stream_mlp, rng, rows, test_rows, options)


def make_uniform(rng: np.random.Generator, *, rows: int = 8192, test_rows: int = 2048, **options: Any) -> Dataset:
    """The uniform set in memory, parts 'train' and 'test'; options: stream_uniform. extra["theta"]: the truth.

    Takes `rng`, the sizes of both parts and the options of `stream_uniform`; every entry of x lies in [-1, 1].

    >>> bool(abs(make_uniform(np.random.default_rng(0), rows=9, dim=2).x).max() <= 1)
    True
    """
    return _in_memory(stream_uniform, rng, rows, test_rows, options)


def make_synthetic_h(rng: np.random.Generator, **options: Any) -> Dataset:
    """Synthetic-H in memory (5.6 GB at its published size); options as in stream_synthetic_h.

    Parameters: those of `stream_synthetic_h`. Returns: the data set.

    >>> make_synthetic_h(np.random.default_rng(0), rows=100, dim=20).x.shape
    (100, 20)
    """
    return stream_synthetic_h(rng, **options).dataset()


def _linear(
    name: str,
    rng: np.random.Generator,
    dim: int,
    covariates: Callable[[np.random.Generator, int], Array],
    bounds: Bounds | None = None,
    *,
    rows: int = 8192,
    noise: float = 0.1,
    dtype: Any = np.float32,
    block_rows: int = 1024,
) -> Stream:
    """y = x.theta + noise * Unif(-1, 1), theta uniform on the unit sphere."""
    nonnegative("noise", noise)
    direction = rng.standard_normal(dim)
    theta = direction / np.linalg.norm(direction)

    def draw_block(draw: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = covariates(draw, n).astype(dtype)
        y = x.astype(np.float64) @ theta + noise * draw.uniform(-1, 1, n)
        return x, y.astype(dtype)

    text = f"Synthetic regression ({name}). Rows are not normalised."
    known: dict[str, Any] = {"bounds": bounds, "extra": {"theta": theta}, "description": text, "citation": MIXING}
    return Stream(name, rows, dim, block_rows, _entropy(rng), draw_block, dtype, **known)


def _generator(rng: object) -> None:
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, for instance numpy.random.default_rng(0), got {rng!r}")


def _entropy(rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(word) for word in rng.integers(2**32, size=4))
