"""Noise for a workload: tables turned into contrasts, block by block.

Along an attribute of n cells the contrasts are the rows (1, ..., 1, -k, 0, ...), k = 1 ... n - 1, and the noise in
each is sqrt(k (k + 1)) times that of a block: over their lengths they are orthonormal, and all of them are orthogonal
to (1, ..., 1). A record in cell j moves the vector of their j-th entries, of squared norm 1 - 1/n; two of different
cells have the inner product -1/n. In the block of some attributes it moves the product of such vectors, times, along
the special attributes and the measures, W s with W = diag(1/scales) R and s = e_cell x (1, values), each value in a
unit of its own, the power of two above its bounds; all over the block's sigma. All blocks together are one Gaussian
release: mu^2 is the largest sum of squares. A person with k rows moves the sum of k such vectors, or of k differences
of two: k times the longest at most, and k rows that are alike move so much. With rows in at most g different cells, k
in each, it moves k times a sum of g vectors of different cells, or a difference of two such sums: their lengths follow
from inner products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb_mat

from shapedp_check.additive import Bounds
from shapedp_check.balls import Ball, ball, exact, tick
from shapedp_check.files import NotDescribed, adjacency, entry, few, number, numbers, only, whole
from shapedp_check.pairs import Gaussian
from shapedp_check.rotations import rotation_rows

_TURN = 1 << 24
_STEPS = 30  # bits of a measure's grid below its bound
_PAIRS = 1 << 16  # patterns times pairs of vertices that are looked at
_NOTE = "turned tables: their rounding to the grid of the release is not part of the file"


def inner_products(n: int) -> tuple[Fraction, Fraction]:
    """The squared norm of what a record moves in the contrasts, and the inner product of two in different cells."""
    return 1 - Fraction(1, n), -Fraction(1, n)


@dataclass(frozen=True)
class Table:
    """The sizes of the attributes, and the extremes of what a record adds to the count and the measures."""

    sizes: list[int]
    ends: list[tuple[int, int]]  # of each measure, in whole steps

    @property
    def corners(self) -> list[list[Fraction]]:
        """(1, values) at the extremes, each value in its unit."""
        return [[Fraction(1), *(Fraction(end, 1 << _STEPS) for end in row)] for row in product(*self.ends)]


def read_table(data: Any) -> Table:
    """The domains and bounds of a workload."""
    only(data, ("attributes", "measures", "terms", "max_rows", "max_groups"), "a workload")
    attributes, measures = entry(data, "attributes"), entry(data, "measures")
    if not isinstance(attributes, dict) or not attributes or not isinstance(measures, dict):
        raise NotDescribed("attributes and measures must be objects")
    sizes = [_size(domain) for domain in attributes.values()]
    ends = []
    for bounds in measures.values():
        pair = numbers(bounds, "the bounds of a measure")
        if len(pair) != 2 or not pair[0] < pair[1]:
            raise NotDescribed("a measure has two bounds, the first below the second")
        step = Fraction(2) ** (math.frexp(max(map(abs, pair)))[1] - _STEPS)
        ends.append((int(exact(pair[0]) // step), int(-(-exact(pair[1]) // step))))
    return Table(sizes, ends)


def _size(domain: Any) -> int:
    only(domain, ("size", "labels", "edges", "other"), "a domain")
    other = domain.get("other", False)
    kinds = [name for name in ("size", "labels", "edges") if name in domain]
    if len(kinds) != 1 or not isinstance(other, bool):
        raise NotDescribed("a domain has a size, labels or edges, and may have an other cell")
    if kinds == ["size"]:
        return whole(domain["size"], "size") + other
    listed = domain[kinds[0]]
    if not isinstance(listed, list) or len(listed) <= (kinds == ["edges"]):
        raise NotDescribed("labels and edges must be lists")
    return len(listed) - (kinds == ["edges"]) + other


@dataclass(frozen=True)
class Blocks:
    """A family: the plain attributes of each block, 1/sigma^2, the number of its mode, and (W s) for every mode."""

    attributes: list[tuple[int, ...]]
    precision: list[Ball]
    mode: list[int]
    images: list[list[list[Ball]]]  # mode, vertex, coordinate
    axes: tuple[int, ...]
    several: bool = False  # parts: `images` then holds the length of the longest alone


def _family(data: Any, table: Table) -> Blocks:
    only(data, ("parts", "lengths", "attributes", "sigma", "mode"), "a family")
    parts = entry(data, "parts")
    if not isinstance(parts, list) or not parts:
        raise NotDescribed("a family has parts")
    read = [_part(part, table) for part in parts]
    axes = tuple(axis for part in read for axis in part[0])
    images = read[0][1]
    if len(read) > 1:  # the longest of a product is the product of the longest
        if any(len(part[1]) > 1 or part[2] for part in read):
            raise NotDescribed("parts beside others have one mode each, and no values")
        squares = [_largest([_dot(image, image) for image in part[1][0]]) for part in read]
        images = [[[math.prod(squares, start=ball(1)).sqrt()]]]
    lengths = [int(one) for one in _whole(entry(data, "lengths"))]
    flat = _whole(data["attributes"]) if entry(data, "attributes") else []
    sigma = numbers(entry(data, "sigma"), "sigma", least=0.0)
    mode = _whole(entry(data, "mode"))
    if not len(lengths) == len(sigma) == len(mode) or sum(lengths) != len(flat):
        raise NotDescribed("the blocks of a family do not fit together")
    blocks, start = [], 0
    for length in lengths:
        blocks.append(tuple(flat[start : start + length]))
        start += length
    plain = [k for block in blocks for k in block]
    wrong = any(k >= len(table.sizes) for k in (*plain, *axes)) or set(plain) & set(axes)
    if wrong or any(len(set(one)) < len(one) for one in (axes, *blocks)) or max(mode) >= len(images) or min(sigma) == 0:
        raise NotDescribed("a family names an attribute or a mode that does not exist, or twice")
    if len(set(blocks)) < len(blocks):
        raise NotDescribed("a family names a block twice")
    return Blocks(blocks, [1 / ball(one) ** 2 for one in sigma], mode, images, axes, len(read) > 1)


def _part(part: Any, table: Table) -> tuple[tuple[int, ...], list[list[list[Ball]]], bool]:
    """The attributes of a part, W s for every mode and vertex, and whether it has values."""
    only(part, ("axes", "values", "modes"), "a part")
    axes = tuple(whole(axis, "an axis", least=0) for axis in entry(part, "axes"))
    values, modes = entry(part, "values"), entry(part, "modes")
    if not isinstance(values, bool) or not isinstance(modes, list) or not modes:
        raise NotDescribed("values must be true or false, modes a list")
    if any(axis >= len(table.sizes) for axis in axes):
        raise NotDescribed("a part names an attribute that does not exist")
    cells = math.prod(table.sizes[k] for k in axes)
    corners = table.corners if values else [[Fraction(1)]]
    return axes, [_images(one, cells, corners) for one in modes], values


def _whole(value: Any) -> list[int]:
    return [whole(one, "a place", least=0) for one in numbers(value, "places", least=0.0)]


def _images(mode: Any, cells: int, corners: list[list[Fraction]]) -> list[list[Ball]]:
    """diag(1/s) R (e_cell x corner) for every cell and corner."""
    only(mode, ("scales", "rotation"), "a mode")
    scales, wide = numbers(entry(mode, "scales"), "scales", least=0.0), len(corners[0])
    n = len(scales)
    if n != cells * wide or min(scales) == 0:
        raise NotDescribed("a mode has another size than its part, or no noise")
    if mode.get("rotation") is None:
        rows = [[_TURN if i == j else 0 for j in range(n)] for i in range(n)]
    else:
        rows = rotation_rows(mode["rotation"], n)
    few(n * cells * len(corners))
    columns = [
        [corner[i % wide] if i // wide == cell else Fraction(0) for i in range(n)]
        for cell in range(cells)
        for corner in corners
    ]
    turned = arb_mat(rows) * arb_mat([[ball(column[i]) for column in columns] for i in range(n)])
    return [[turned[i, k] / _TURN / ball(scales[i]) for i in range(n)] for k in range(len(columns))]


def _dot(one: Sequence[Ball], other: Sequence[Ball]) -> Ball:
    return sum((a * b for a, b in zip(one, other, strict=True)), ball(0))


def _sums(blocks: Blocks, parts: list[Ball]) -> list[Ball]:
    """sum part_B/sigma_B^2 over the blocks of each mode."""
    sums = [ball(0)] * len(blocks.images)
    for place, (mode, precision) in enumerate(zip(blocks.mode, blocks.precision, strict=True)):
        sums[mode] = sums[mode] + parts[place] * precision
    return sums


def _largest(values: list[Ball]) -> Ball:
    found = ball(0)
    for value in values:
        tick()
        found = found.max(value)
    return found


def _single(blocks: Blocks, table: Table) -> Ball:
    """The largest squared length of one record."""
    tops = {k: ball(inner_products(table.sizes[k])[0]) for block in blocks.attributes for k in block}
    sums = _sums(blocks, [math.prod((tops[k] for k in block), start=ball(1)) for block in blocks.attributes])
    vertices = range(len(blocks.images[0]))
    squares = [sum((s * _dot(i[v], i[v]) for s, i in zip(sums, blocks.images, strict=True)), ball(0)) for v in vertices]
    return _largest(squares)


def _exchanged(blocks: Blocks, table: Table) -> Ball | None:
    """A ball around the largest squared length of the difference of two records; None where there are too many.

    In each block |a|^2 |Ws|^2 + |b|^2 |Wt|^2 - 2 (a, b) (Ws, Wt); (a, b) is a product over the attributes, in which
    two records agree or differ.
    """
    used = sorted({k for block in blocks.attributes for k in block})
    vertices = len(blocks.images[0])
    if blocks.several or 2 ** len(used) * vertices**2 > _PAIRS:
        return None
    ends = {k: [ball(one) for one in inner_products(table.sizes[k])] for k in used}
    norms = _sums(blocks, [math.prod((ends[k][0] for k in block), start=ball(1)) for block in blocks.attributes])
    found = []
    for pattern in product((0, 1), repeat=len(used)):
        differs = dict(zip(used, pattern, strict=True))
        parts = [math.prod((ends[k][differs[k]] for k in block), start=ball(1)) for block in blocks.attributes]
        crosses = _sums(blocks, parts)
        for one in range(vertices):
            for other in range(one + 1):
                tick()
                if one == other and not any(pattern):
                    continue  # the same cell: nothing moves
                found.append(_pair(blocks, norms, crosses, one, other))
    return _largest(found)


def _inner_products(blocks: Blocks, table: Table) -> tuple[Ball, Ball] | None:
    """The largest inner product of two records in different cells, and the least of any two; None: too many."""
    used = sorted({k for block in blocks.attributes for k in block})
    vertices = len(blocks.images[0])
    if blocks.several or 2 ** len(used) * vertices**2 > _PAIRS:
        return None
    ends = {k: [ball(one) for one in inner_products(table.sizes[k])] for k in used}
    every = {k for k, size in enumerate(table.sizes) if size > 1} <= {*used, *blocks.axes}
    corners = vertices // math.prod(table.sizes[k] for k in blocks.axes)
    different, lowest = [], []
    for pattern in product((0, 1), repeat=len(used)):
        differs = dict(zip(used, pattern, strict=True))
        parts = [math.prod((ends[k][differs[k]] for k in block), start=ball(1)) for block in blocks.attributes]
        crosses = _sums(blocks, parts)
        for one, other in product(range(vertices), repeat=2):
            tick()
            images = zip(crosses, blocks.images, strict=True)
            inner = sum((cross * _dot(image[one], image[other]) for cross, image in images), ball(0))
            lowest.append(-inner)
            if any(pattern) or not every or one // corners != other // corners:
                different.append(inner)
    return _largest(different), -_largest(lowest)


def _several(blocks: Blocks, table: Table, alone: Ball, cells: int, exchange: bool) -> Ball:
    """The largest squared length of a sum of records in so many different cells, or of a difference of two sums."""
    found = _inner_products(blocks, table)
    if found is None:
        return (4 if exchange else 1) * cells**2 * alone
    most, least = found
    one = cells * alone + cells * (cells - 1) * most.max(ball(0))
    return 2 * one + 2 * cells**2 * (-least).max(ball(0)) if exchange else one


def _pair(blocks: Blocks, norms: list[Ball], crosses: list[Ball], one: int, other: int) -> Ball:
    square = ball(0)
    for norm, cross, image in zip(norms, crosses, blocks.images, strict=True):
        square += norm * (_dot(image[one], image[one]) + _dot(image[other], image[other]))
        square -= 2 * cross * _dot(image[one], image[other])
    return square


def per_person(data: Any, table: Table) -> tuple[int, int]:
    """How many rows a person has in a cell at most, and in how many cells."""
    groups = whole(data.get("max_groups", 1), "max_groups")
    return whole(data.get("max_rows", 1), "max_rows"), min(groups, math.prod(table.sizes))


def workload(data: Any) -> tuple[str | None, Bounds]:
    """The neighbour relation and the worst pair of a workload's mechanism."""
    table, families = read_table(entry(data, "workload")), entry(data, "families")
    rows, groups = per_person(data["workload"], table)
    relation = adjacency(data)
    number(entry(data, "least"), "least", least=0.0)
    whole(entry(data, "records"), "records")
    if not isinstance(families, list) or not families or relation is None:
        raise NotDescribed("a workload has families of blocks, and a neighbour relation")
    read = [_family(one, table) for one in families]
    singles = [_single(one, table) for one in read]
    above, below = sum(singles, ball(0)), _largest(singles)
    if relation == "replace":  # also one record for none: a value outside the domain is counted nowhere
        pairs = [_exchanged(one, table) for one in read]
        both = [4 * alone if pair is None else pair for pair, alone in zip(pairs, singles, strict=True)]
        above = above.max(sum(both, ball(0)))
        below = _largest([below, *(pair for pair in pairs if pair is not None)])
    if groups > 1:
        each = zip(read, singles, strict=True)
        above = above.max(sum((_several(b, table, s, groups, relation == "replace") for b, s in each), ball(0)))
    worst, reached = Gaussian(rows * above.sqrt()), Gaussian(rows * below.lower().sqrt())
    return relation, Bounds(((worst, 1),), (((reached, 1),),), (_NOTE,))
