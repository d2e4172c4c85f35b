"""Sensitivity sets: all differences v = f(D) - f(D') that one person can make.

A set answers three questions about scales s, one per coordinate, and derives each answer from its own fields:
the largest |v/s|_2, the largest |v/s|_1, and the largest |v_i| of each coordinate. A box is the product of intervals,
blocks and slices are products of L2 balls, so that their worst differences are taken part by part. A hull is listed:
norms are convex, so the worst difference is a vertex.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from typing import Any

from flint import arb

from shapedp_check.balls import Ball, ball, exact, tick, total
from shapedp_check.files import NotDescribed, adjacency, entry, few, known, number, numbers, only, whole, wholes

Scales = list[float]  # one entry for all coordinates, or one per coordinate
Widths = list[float] | list[Fraction] | list[float | Fraction]  # likewise


@dataclass(frozen=True)
class Part:
    """An L2 ball of some coordinates: {v : |v/axes|_2 <= radius}; `where` lists them, None stands for all."""

    radius: float
    where: Sequence[int] | None = None
    axes: Scales | None = None


@dataclass(frozen=True)
class Set:
    """A product of L2 balls (`parts`), a box (`profile`), an L1 ball (`l1`, a radius) or a hull (`vertices`).

    The hull is that of the vertices and their negatives, or (`differences`) of the differences of any two vertices.
    """

    dim: int
    adjacency: str | None
    parts: tuple[Part, ...] = ()
    profile: Scales | None = None
    l1: float | None = None
    whole: bool = False  # answers are whole numbers, so only integer differences occur
    vertices: tuple[tuple[float, ...], ...] = ()
    differences: bool = False

    def l2_reach(self, scales: Scales) -> Ball:
        """max |v/s|_2: corner of the box, best vertex of the L1 ball, best axis of every ball."""
        if self.profile is not None:
            return total(zip(self.profile, _spread(scales, self.dim), strict=True), 2).sqrt()
        if self.l1 is not None:
            return total([(self.l1, min(scales))], 1)
        if self.vertices:
            return self._longest(scales, 2).sqrt()
        squares = [_axis(part, scales, self.dim) ** 2 for part in self.parts]
        return sum(squares, ball(0)).sqrt()

    def l1_reach(self, scales: Scales) -> Ball:
        """max |v/s|_1: by Cauchy-Schwarz radius |axes/s|_2 for a ball, and the parts add up."""
        if self.profile is not None:
            return total(zip(self.profile, _spread(scales, self.dim), strict=True), 1)
        if self.l1 is not None:
            return total([(self.l1, min(scales))], 1)
        if self.vertices:
            return self._longest(scales, 1)
        return sum((_length(part, scales, self.dim) for part in self.parts), ball(0))

    def listed(self) -> Iterator[Sequence[float | Fraction]]:
        """The vertices of a hull, exactly; of a vertex and its negative one."""
        if not self.differences:
            yield from self.vertices
        for one, other in combinations(self.vertices, 2) if self.differences else ():
            tick()
            yield [exact(a) - exact(b) for a, b in zip(one, other, strict=True)]

    def _longest(self, scales: Scales, power: int) -> Ball:
        """max sum |v_i/s_i|^power over the vertices."""
        spread, longest = _spread(scales, self.dim), ball(0)
        for vertex in self.listed():
            tick()
            terms: list[tuple[Any, float]] = [(abs(v), s) for v, s in zip(vertex, spread, strict=True)]
            longest = longest.max(total(terms, power))
        return longest

    def widths(self) -> Widths:
        """max |v_i|, exactly: one for all coordinates, or one per coordinate."""
        if self.vertices:
            columns = list(zip(*self.vertices, strict=True))
            if self.differences:
                return [exact(max(column)) - exact(min(column)) for column in columns]
            return [max(map(abs, column)) for column in columns]
        if self.profile is not None:
            return self.profile
        if self.l1 is not None:
            return [self.l1]
        if self.parts[0].where is None:
            radius, axes = self.parts[0].radius, self.parts[0].axes
            return [radius] if axes is None else [exact(radius) * exact(axis) for axis in axes]
        result = [0.0] * few(self.dim)
        for part in self.parts:
            for i in part.where or ():
                result[i] = part.radius
        return result

    @property
    def is_box(self) -> bool:
        """Whether the set is a product of intervals."""
        return self.box is not None

    @property
    def box(self) -> Widths | None:
        """The half-widths, where the set is a product of intervals: also balls of one coordinate each."""
        if self.profile is not None:
            return self.profile
        if self.dim == 1 and (self.l1 is not None or self.vertices):
            return self.widths()
        if self.parts and (self.dim == 1 or all(len(part.where or "  ") == 1 for part in self.parts)):
            return self.widths()
        return None


def alike(dim: int, *columns: Sequence[Any]) -> Counter[tuple[Any, ...]]:
    """How many coordinates have which entries, where each column has one for all or one per coordinate."""
    if all(len(column) == 1 for column in columns):
        return Counter({tuple(column[0] for column in columns): dim})
    return Counter(zip(*(_spread(column, dim) for column in columns), strict=True))


def _spread(column: Sequence[Any], dim: int) -> Sequence[Any]:
    return list(column) * few(dim) if len(column) == 1 else column


def _axis(part: Part, scales: Scales, dim: int) -> Ball:
    """radius max_i axes_i/s_i."""
    if part.radius == 0:
        return ball(0)
    inside = scales if len(scales) == 1 or part.where is None else [scales[i] for i in part.where]
    if part.axes is None:
        return total([(part.radius, min(inside))], 1)
    longest = ball(0)
    for axis, scale in alike(dim, part.axes, inside):
        if axis and not scale:
            return arb.pos_inf()
        longest = longest.max(ball(axis) / ball(scale)) if axis else longest
    return longest * ball(part.radius)


def _length(part: Part, scales: Scales, dim: int) -> Ball:
    """radius |axes/s|_2."""
    if part.radius == 0:
        return ball(0)
    size = dim if part.where is None else len(part.where)
    inside = scales if len(scales) == 1 or part.where is None else [scales[i] for i in part.where]
    if part.axes is None and len(inside) == 1:
        return total([(part.radius, inside[0])], 1) * ball(size).sqrt()
    axes = _spread(part.axes or [1.0], size)
    return ball(part.radius) * total(zip(axes, _spread(inside, size), strict=True), 2).sqrt()


_FIELDS = {
    "box": ("profile", "dim", "shape", "whole"),
    "l1": ("radius", "dim", "shape", "whole"),
    "l2": ("radius", "dim", "shape", "scales", "whole"),
    "blocks": ("radii", "sizes", "whole"),
    "slices": ("radii", "shape", "mode", "whole"),
    "hull": ("vertices", "count", "dim", "shape", "differences", "whole"),
}


def read_set(data: Any) -> Set:
    """The set that a file describes."""
    found, stated = _read_set(data), data.get("whole", False)
    if not isinstance(stated, bool):
        raise NotDescribed("whole must be true or false")
    bounds: Any = [found.l1] if found.profile is None else found.profile
    if found.vertices:
        bounds = [entry for vertex in found.vertices for entry in vertex]
    if stated and any(bound is None or bound != int(bound) for bound in bounds):
        raise NotDescribed("a set of whole numbers must be a box, an L1 ball or a hull with whole bounds")
    return replace(found, whole=stated)


def _read_set(data: Any) -> Set:
    kind, relation = known(entry(data, "set"), _FIELDS, "the set"), adjacency(data)
    stated = {name: value for name, value in data.items() if value is not None}
    only(stated, ("set", "adjacency", *_FIELDS[kind]), "a set")
    if kind == "box":
        profile = numbers(entry(data, "profile"), "profile", least=0.0)
        return Set(_dim(data, len(profile)), relation, profile=profile)
    if kind == "hull":
        return _hull(data, relation)
    if kind in ("l1", "l2"):
        radius, dim = number(entry(data, "radius"), "radius", above=0.0), _dim(data, None)
        if kind == "l1":
            return Set(dim, relation, l1=radius)
        axes = None if data.get("scales") is None else numbers(data["scales"], "scales", least=0.0)
        if axes is not None and len(axes) != dim:
            raise NotDescribed(f"the set has dim {dim} and {len(axes)} scales")
        return Set(dim, relation, parts=(Part(radius, None, axes),))
    radii = numbers(entry(data, "radii"), "radii", least=0.0)
    places = _slices(data, len(radii)) if kind == "slices" else _blocks(data, len(radii))
    parts = tuple(Part(radius, where) for radius, where in zip(radii, places, strict=True))
    return Set(sum(map(len, places)), relation, parts=parts)


def _hull(data: Any, relation: str | None) -> Set:
    dim, count, written = _dim(data, None), whole(entry(data, "count"), "count"), entry(data, "vertices")
    few(dim * count)
    if isinstance(written, dict) and "indptr" in written:
        rows = _by_rows(written, count, dim)
    else:
        values = numbers(written, "vertices")
        if len(values) != dim * count:
            raise NotDescribed(f"{count} vertices of {dim} entries, and {len(values)} numbers")
        rows = [tuple(values[k * dim : (k + 1) * dim]) for k in range(count)]
    differences = data.get("differences", False)
    if not isinstance(differences, bool):
        raise NotDescribed("differences must be true or false")
    return Set(dim, relation, vertices=tuple(rows), differences=differences)


def _by_rows(written: Any, count: int, dim: int) -> list[tuple[float, ...]]:
    """Rows of a sparse matrix: the entries of row k are those from indptr[k] to indptr[k + 1]."""
    only(written, ("data", "indices", "indptr"), "vertices")
    values, ends = numbers(written["data"], "data"), wholes(entry(written, "indptr"), "indptr", least=0)
    columns = wholes(entry(written, "indices"), "indices", least=0)
    if len(ends) != count + 1 or [ends[0], ends[-1]] != [0, len(values)] or len(columns) != len(values):
        raise NotDescribed("the parts of the sparse vertices do not fit")
    rows = []
    for begin, end in pairwise(ends):
        row = [0.0] * dim
        if begin > end or len(set(columns[begin:end])) != end - begin or max(columns[begin:end], default=0) >= dim:
            raise NotDescribed("the parts of the sparse vertices do not fit")
        for column, value in zip(columns[begin:end], values[begin:end], strict=True):
            row[column] = value
        rows.append(tuple(row))
    return rows


def _dim(data: Any, found: int | None) -> int:
    shape = data.get("shape")
    sizes = None if shape is None else math.prod(wholes(shape, "shape"))
    stated = data.get("dim")
    dims = {size for size in (found, sizes, None if stated is None else whole(stated, "dim")) if size is not None}
    if len(dims) != 1:
        raise NotDescribed("dim, shape and the number of entries of the set disagree")
    return dims.pop()


def _blocks(data: Any, count: int) -> Sequence[Sequence[int]]:
    sizes = wholes(entry(data, "sizes"), "sizes")
    if len(sizes) != count:
        raise NotDescribed(f"{count} radii and {len(sizes)} sizes")
    ends = list(accumulate(sizes))
    return [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def _slices(data: Any, count: int) -> Sequence[Sequence[int]]:
    shape, mode = wholes(entry(data, "shape"), "shape"), whole(entry(data, "mode"), "mode", least=0)
    if mode >= len(shape) or shape[mode] != count:
        raise NotDescribed("mode and shape do not give one slice per radius")
    after = math.prod(shape[mode + 1 :])
    places: list[list[int]] = [[] for _ in range(count)]
    for i in range(few(math.prod(shape))):
        places[i // after % count].append(i)
    return places
