"""The hull of finitely many differences: what one person can change of any linear query."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.arrays import is_sparse
from shapedp.boundary.documents import decode, encode
from shapedp.boundary.values import boolean
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, finite, laid_out, nonnegative, one_of
from shapedp.numerics.outward import UNIT
from shapedp.sensitivity.balls import outward, quotient
from shapedp.sensitivity.base import ADJACENCIES, Adjacency, Sensitivity, layout
from shapedp.sensitivity.rows import Rows

_CHUNK = 1 << 22  # entries laid out at a time
_PARTS = ("data", "indices", "indptr")  # of a sparse matrix by rows
_MOST = 1 << 27  # entries of all vertices


def _csr(*parts: Any, **shape: Any) -> Any:
    """A CSR array."""
    from scipy import sparse  # slow to load

    return sparse.csr_array(*parts, **shape)


def _laid(matrix: Any) -> Floats:
    """A matrix as an array."""
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix)


def _matrix(vertices: Any) -> Any:
    """The vertices as a read-only array or a CSR matrix, finite, one of them not zero."""
    if not is_sparse(vertices):
        array = finite("vertices", vertices)
        if array.ndim != 2 or not array.size:
            raise ValueError(f"vertices must be one per row, in a 2-d array that is not empty, got shape {array.shape}")
        kept: Any = frozen(array)
        entries = array
    else:
        kept = _csr(vertices.astype(np.float64))
        kept.sum_duplicates()
        if 0 in kept.shape:
            raise ValueError(f"vertices must be one per row, not empty, got shape {kept.shape}")
        entries = kept.data = finite("vertices", kept.data)
    if entries.size > _MOST:
        raise ValueError(f"vertices must have at most {_MOST} entries: describe the set in another way")
    top = float(np.abs(entries).max(initial=0.0))
    if not 1e-140 < top < 1e140:
        raise ValueError(
            "vertices must have an entry that is not zero, and squares within floats: nobody could change "
            "such a query, or measure it in other units"
        )
    return kept


@dataclass(frozen=True, eq=False)
class Hull(Sensitivity):
    """The convex hull of `vertices`, one per row, and of their negatives; or of the differences of any two rows.

    Guarantee: for a norm of the difference its largest value over the set is that of a vertex, so the privacy of
    Gaussian noise of any covariance is known exactly.

    Parameters: `vertices`, dense or scipy sparse; `differences=True` for a set of all v_j - v_k, which are never
    formed; `shape` of the answer where it is a tensor; `adjacency`, the neighbour relation.

    Example:
        >>> Hull([[1.0, 1.0], [0.0, 1.0]]).extreme()
        array([1., 1.])
    """

    kind: ClassVar[str] = "hull"
    vertices: Any
    shape: tuple[int, ...]
    differences: bool = False
    adjacency: Adjacency | None = None

    def __init__(
        self,
        vertices: Any,
        *,
        differences: bool = False,
        shape: Sequence[int] | None = None,
        adjacency: Adjacency | None = None,
    ) -> None:
        differences, matrix = boolean("differences", differences), _matrix(vertices)
        entries = layout(matrix.shape[1], None) if shape is None else layout(None, shape)
        if math.prod(entries) != matrix.shape[1]:
            raise ValueError(f"vertices must have {math.prod(entries)} entries each, got {matrix.shape[1]}")
        self._fill(adjacency, vertices=matrix, shape=entries, differences=differences)
        if not self._widths().max() > 0:
            raise ValueError("vertices must differ: a query nobody can change needs no noise")

    @classmethod
    def of_people(cls, contributions: Any, *, adjacency: Adjacency, max_rows: int = 1, distinct: bool = False) -> Hull:
        """The set of a sum over people, each of whom adds one of the `contributions`, or up to `max_rows` of them.

        With `distinct` a person adds no contribution twice: fewer vertices than `max_rows` times the set, all of which
        are listed. A replaced person exchanges what they add ("replace"); otherwise it comes, goes or turns to zero.

        Example:
            >>> Hull.of_people([[1.0, 0.0], [0.0, 1.0]], adjacency="replace").extreme()
            array([ 1., -1.])
        """
        distinct = boolean("distinct", distinct)
        one_of("adjacency", adjacency, ADJACENCIES)
        most, matrix = count("max_rows", max_rows), _matrix(contributions)
        exchange = adjacency == "replace"
        if distinct and most > 1:
            matrix = _sums(matrix, min(most, matrix.shape[0]), empty=exchange)
        elif most > 1:
            matrix = matrix * float(most)
            if exchange:  # up to max_rows: a person may have had no row at all
                matrix = _stacked(matrix, _csr((1, matrix.shape[1])))
        return cls(matrix, differences=exchange, adjacency=adjacency)

    def of_integers(self) -> Hull:
        entries = self.vertices.data if is_sparse(self.vertices) else self.vertices
        if (entries % 1).any():
            raise ValueError("vertices must be whole for whole numbers")
        copy = Hull(self.vertices, differences=self.differences, shape=self.shape, adjacency=self.adjacency)
        return copy._declared_whole()

    @property
    def count(self) -> int:
        """The number of rows in `vertices`."""
        return int(self.vertices.shape[0])

    def dense(self) -> Floats:
        """The vertices as an array."""
        laid_out(self.count * self.dim)
        return _laid(self.vertices)

    def _ratios(self, scales: Floats) -> Iterator[Floats]:
        """The rows over the scales, in the coordinates that move: others may hold numbers that all rows share."""
        moving = ~self.fixed()
        chosen = scales if scales.size == 1 else scales[moving]
        for rows in self.blocks():
            yield quotient(rows[:, moving], chosen)

    def blocks(self) -> Iterator[Floats]:
        """The rows of `vertices`, dense, some at a time."""
        step = max(_CHUNK // self.dim, 1)
        for start in range(0, self.count, step):
            yield _laid(self.vertices[start : start + step])

    def reach(self, parts: Iterable[tuple[Floats, Floats]]) -> tuple[float, float]:
        """Bounds on the largest |v|_2 from images of the rows, each with a bound on the length of its error."""
        if not self.differences:
            norms = [(lengths(image), error) for image, error in parts]
            if not all(np.isfinite(norm).all() and np.isfinite(error).all() for norm, error in norms):
                return 0.0, math.inf
            slack = (self.dim + 8) * UNIT
            low = max(float((norm * (1 - slack) - error).max()) for norm, error in norms)
            return outward(max(low, 0.0), max(float((norm * (1 + slack) + error).max()) for norm, error in norms))
        images, errors = (np.concatenate(one) for one in zip(*parts, strict=True))
        unit = _unit(images)
        images, errors = images / unit, errors / unit
        if not (np.isfinite(images).all() and np.isfinite(errors).all()):
            return 0.0, math.inf
        low, high = _farthest(images, errors)
        return outward(low * unit, high * unit)

    def l2_reach(self, scales: Floats) -> tuple[float, float]:
        def images() -> Iterator[tuple[Floats, Floats]]:
            for image in self._ratios(scales):
                yield image, np.abs(image).sum(axis=1) * (2 * UNIT)

        if (np.broadcast_to(scales, self.dim)[~self.fixed()] == 0).any():
            return math.inf, math.inf
        return self.reach(images())

    def l1_reach(self, scales: Floats) -> tuple[float, float]:
        if (np.broadcast_to(scales, self.dim)[~self.fixed()] == 0).any():
            return math.inf, math.inf
        top, slack = 0.0, (self.dim + 8) * UNIT
        for ratio in self._ratios(scales):
            if not self.differences:
                top = max(top, float(np.abs(ratio).sum(axis=1).max()))
                continue
            for moved in self._ratios(scales):
                top = max([top, *(float(np.abs(moved - one).sum(axis=1).max()) for one in ratio)])
        # a difference of two quotients errs by the roundings of both, each at most its coordinate's width
        extents = [np.abs(ratio).max(axis=0) for ratio in self._ratios(scales)] if self.differences else [np.zeros(1)]
        wide = float(np.max(extents, axis=0).sum()) * 4 * UNIT
        return outward(max(top * (1 - slack) - wide, 0.0), top * (1 + slack) + wide)

    def extreme(self) -> Floats:
        rows = self.dense()
        if not self.differences:
            return np.array(rows[int(np.square(rows).sum(axis=1).argmax())])
        first, second = _pair(rows)
        return np.asarray(rows[first] - rows[second])

    def scaled(self, factor: float, adjacency: Adjacency | None) -> Hull:
        times = nonnegative("factor", factor)
        return Hull(self.vertices * times, differences=self.differences, shape=self.shape, adjacency=adjacency)

    def fixed(self) -> NDArray[np.bool_]:
        return np.asarray(self._widths() == 0)

    def _extents(self) -> Floats:
        """The largest entry of any row, by coordinate."""
        return np.asarray(np.max([np.abs(rows).max(axis=0) for rows in self.blocks()], axis=0))

    def _widths(self) -> Floats:
        if not self.differences:
            return self._extents()
        ends = [(rows.min(axis=0), rows.max(axis=0)) for rows in self.blocks()]
        return np.asarray(np.max([high for _, high in ends], axis=0) - np.min([low for low, _ in ends], axis=0))

    def to_json(self) -> dict[str, Any]:
        rows: Any = self.vertices
        if is_sparse(rows):
            written = {name: encode(getattr(rows, name).astype(np.float64)) for name in _PARTS}
        else:
            written = encode(rows.reshape(-1))
        return {
            "set": self.kind,
            "vertices": written,
            "count": self.count,
            **self._extent(),
            "differences": self.differences,
            "adjacency": self.adjacency,
            **({"whole": True} if self.whole else {}),
        }

    def _clip(self, rows: Rows) -> Rows:
        """Where every vertex lies on an axis: a weighted L1 ball."""
        if self.differences or any((np.count_nonzero(part, axis=1) > 1).any() for part in self.blocks()):
            raise ValueError(
                "no clip is known for a hull with vertices off the axes: let every person add one of the vertices"
            )
        return rows.pulled_into(self._widths(), 1)


def hull_from_json(data: dict[str, Any], adjacency: Any) -> Hull:
    """What `Hull.to_json` wrote."""
    written, number = data["vertices"], count("count", data["count"])
    shape = tuple(data["shape"]) if data.get("shape") is not None else (data["dim"],)
    dim = math.prod(layout(None, shape))
    if isinstance(written, dict) and "indptr" in written:
        rows: Any = _compressed({name: decode(name, written[name]) for name in _PARTS}, (number, dim))
    else:
        rows = decode("vertices", written)
        if rows.size != number * dim:
            raise ValueError(f"vertices must have {number} x {dim} entries, got {rows.size}")
        rows = rows.reshape(number, dim)
    return Hull(rows, differences=data.get("differences", False), shape=shape, adjacency=adjacency)


def _compressed(parts: dict[str, Floats], shape: tuple[int, int]) -> Any:
    """A CSR matrix from its parts, each checked."""
    data, indices, indptr = (parts[name] for name in _PARTS)
    ends = indptr.size == shape[0] + 1 and indptr[0] == 0 and indptr[-1] == data.size == indices.size
    inside = not indices.size or (indices.min() >= 0 and indices.max() < shape[1])
    if not (ends and inside and (np.diff(indptr) >= 0).all() and (indices % 1 == 0).all() and (indptr % 1 == 0).all()):
        raise ValueError("vertices is not a sparse matrix by rows: its data, indices and indptr do not fit")
    return _csr((data, indices.astype(np.int64), indptr.astype(np.int64)), shape=shape)


def _unit(images: Floats) -> float:
    """The power of two below the largest entry: squares of entries over it neither overflow nor all vanish."""
    top = float(np.abs(images).max(initial=0.0))
    return 2.0 ** max(math.frexp(top)[1] - 1, -1022) if 0 < top < math.inf else 1.0


def lengths(rows: Floats) -> Floats:
    """|row|_2 of every row that is not tiny beside the longest, whatever the unit."""
    unit = _unit(rows)
    return np.asarray(np.sqrt(np.square(rows / unit).sum(axis=1)) * unit)


def _stacked(*parts: Any) -> Any:
    """Rows below rows, dense where the first are."""
    if is_sparse(parts[0]):
        from scipy import sparse

        return sparse.vstack(parts, format="csr")
    return np.vstack([_laid(part) for part in parts])


def _sums(matrix: Any, most: int, *, empty: bool) -> Any:
    """The sums of up to `most` different rows, none (`empty`) included."""
    rows = int(matrix.shape[0])
    number = sum(math.comb(rows, k) for k in range(1, most + 1))
    if number * matrix.shape[1] > _MOST:
        raise ValueError(
            f"{number} sums of up to {most} different rows are too many: bound max_rows without distinct, a larger set"
        )
    steps = np.abs(matrix.data if is_sparse(matrix) else matrix)
    steps = steps * 2.0 ** (30 - math.frexp(float(steps.max()))[1])
    if (steps % 1).any():
        raise ValueError("contributions must be multiples of 2^-30 of their largest entry, so that sums are exact")
    chosen = [part for k in range(0 if empty else 1, most + 1) for part in itertools.combinations(range(rows), k)]
    places = np.repeat(np.arange(len(chosen)), [len(part) for part in chosen])
    columns = np.array([k for part in chosen for k in part], dtype=np.int64)
    choice = _csr((np.ones(columns.size), (places, columns)), shape=(len(chosen), rows))
    return choice @ matrix


def _farthest(images: Floats, errors: Floats) -> tuple[float, float]:
    """Bounds on the largest distance of two points, each known up to the length of its error.

    |a - b|^2 = |a|^2 + |b|^2 - 2ab, about the centre; rounding of the three terms is at most
    (2 dim + 16) UNIT (|a| + |b|)^2, that of the centre's subtraction counts as an error of the points.
    """
    centre = images.mean(axis=0)
    moved = images - centre
    lengths = np.sqrt(np.square(moved).sum(axis=1))
    errors = errors + 2 * UNIT * (lengths + math.sqrt(float(np.square(centre).sum())) + float(np.abs(images).max()))
    low, high, step = 0.0, 0.0, max(_CHUNK // len(moved), 1)
    for start in range(0, len(moved), step):
        part = slice(start, start + step)
        room = np.square(lengths[part, None] + lengths[None, :])
        squares = np.square(lengths[part, None]) + np.square(lengths[None, :]) - 2 * (moved[part] @ moved.T)
        doubt = (2 * images.shape[1] + 16) * UNIT * room
        apart = errors[part, None] + errors[None, :]
        high = max(high, float((np.sqrt(np.maximum(squares + doubt, 0.0)) + apart).max()))
        low = max(low, float((np.sqrt(np.maximum(squares - doubt, 0.0)) - apart).max()))
    return low, high


def _pair(rows: Floats) -> tuple[int, int]:
    """Two rows that lie far apart: the farthest from the one farthest from the centre."""
    first = int(np.square(rows - rows.mean(axis=0)).sum(axis=1).argmax())
    return first, int(np.square(rows - rows[first]).sum(axis=1).argmax())
