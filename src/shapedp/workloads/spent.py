"""What a strategy costs in privacy: bounds on mu, rounding included, from its own numbers alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shapedp.noise.rotation import Mode
from shapedp.noise.tensor import steps_to_mu
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_512, ABOVE_WIDE, BELOW_512, ROUNDINGS_4, UNIT
from shapedp.numerics.sums import sum_bounds
from shapedp.workloads.blocks import Block, Family, Part, moved
from shapedp.workloads.schema import Schema

if TYPE_CHECKING:
    from shapedp.workloads.workload import Workload

_PATTERNS = 1 << 26  # patterns times pairs that are looked at one by one
_CELLS = 512  # cells times vertices, of which all pairs are

Ends = tuple[float, float]


def norms_of(blocks: Sequence[Block], sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """Bounds on p_B = prod (1 - 1/n) of every block: the squared norm of what a record moves in its contrasts."""
    found = np.array([moved(block, sizes)[1] for block in blocks])
    return found * BELOW_512, found * ABOVE_512


def whitened(mode: Mode, vertices: Floats, wide: int) -> tuple[Floats, Floats]:
    """W s for every vertex s, one per column, and a bound on the length of each error.

    Vertices are e_k x u: `vertices` holds the u, one per row, of `wide` entries.
    """
    matrix = mode.whitener.reshape(mode.size, -1, wide)
    image = np.einsum("rkv,cv->rkc", matrix, vertices).reshape(mode.size, -1)
    room = np.einsum("rkv,cv->rkc", np.abs(matrix), np.abs(vertices)).reshape(mode.size, -1)
    return image, np.sqrt(np.square(room).sum(axis=0)) * ((wide + 6) * 2 * UNIT)


def part_vertices(part: Part, schema: Schema) -> Floats:
    """What a record adds along the values of a part."""
    return schema.corners() * schema.units() if part.values else np.ones((1, 1))


def _squares(part: Part, schema: Schema) -> list[tuple[Floats, Floats]]:
    """Bounds on |W s|^2 of every vertex, by mode."""
    vertices, found = part_vertices(part, schema), []
    for mode in part.modes:
        image, error = whitened(mode, vertices, vertices.shape[1])
        norm, slack = np.sqrt(np.square(image).sum(axis=0)), (mode.size + 8) * UNIT
        found.append((np.square(np.maximum(norm * (1 - slack) - error, 0.0)), np.square(norm * (1 + slack) + error)))
    return found


def _weights(family: Family, terms: Floats, modes: int) -> list[Ends]:
    """Bounds on sum terms_B/sigma_B^2 over the blocks of each mode."""
    return [sum_bounds((terms / np.square(family.sigma))[family.mode == k], 16 * UNIT) for k in range(modes)]


def single(family: Family, schema: Schema) -> Ends:
    """Bounds on the largest squared length that one record has in the blocks of a family."""
    low, high = norms_of(family.blocks, schema.sizes)
    if len(family.parts) > 1:
        ends = [[float(end.max()) for end in _squares(part, schema)[0]] for part in family.parts]
        least, most = _weights(family, low, 1)[0][0], _weights(family, high, 1)[0][1]
        return least * math.prod(e[0] for e in ends) * BELOW_512, most * math.prod(e[1] for e in ends) * ABOVE_512
    squares = _squares(family.parts[0], schema)
    lows, highs = (_weights(family, one, len(squares)) for one in (low, high))
    least = np.sum([w[0] * s[0] for w, s in zip(lows, squares, strict=True)], axis=0)
    most = np.sum([w[1] * s[1] for w, s in zip(highs, squares, strict=True)], axis=0)
    slack = (len(squares) + 8) * 2 * UNIT
    return float(np.max(least)) * (1 - slack), float(np.max(most)) * (1 + slack)


def exchanged(family: Family, schema: Schema) -> Ends:
    """Bounds on the largest squared length of the difference of two records."""
    one = single(family, schema)
    used = sorted({k for block in family.blocks for k in block})
    part = family.parts[0]
    vertices = part.size * len(part_vertices(part, schema)) // (1 + len(schema.measures) * part.values)
    if len(family.parts) > 1 or 2 ** len(used) * len(part.modes) * vertices**2 > _PATTERNS:
        if len(family.parts) == 1 and part.size == 1:
            return one[0], _apart(family, schema)
        return one[0], 4 * one[1]
    if math.prod(schema.sizes[k] for k in used) * vertices <= _CELLS:
        return _by_cell(family, schema, used)
    return _by_pattern(family, schema, used)


def _by_cell(family: Family, schema: Schema, used: list[int]) -> Ends:
    """Every pair of cells, one by one: |x|^2 + |y|^2 - 2 xy, the products of blocks known entry by entry."""
    part, sizes = family.parts[0], schema.sizes
    vertices = part_vertices(part, schema)
    products = [_inners(*whitened(mode, vertices, vertices.shape[1])) for mode in part.modes]
    grams = {k: np.eye(sizes[k]) - 1 / sizes[k] for k in used}
    total: Floats = np.zeros((1, 1))
    room: Floats = np.zeros((1, 1))
    for block, sigma, mode in zip(family.blocks, family.sigma, family.mode, strict=True):
        plain: Any = np.ones((1, 1))
        doubt: Any = np.ones((1, 1))
        for k in used:
            one = grams[k] if k in block else np.ones((sizes[k], sizes[k]))
            plain, doubt = (
                np.kron(plain, one),
                np.kron(doubt, np.abs(one) + (2 * UNIT if k in block else 0.0)),
            )
        product, error = products[mode]
        total = total + np.kron(plain, product) / sigma**2
        wide = np.kron(doubt - np.abs(plain), np.abs(product)) + np.kron(doubt, error)
        room = room + (wide + 32 * UNIT * np.kron(doubt, np.abs(product))) / sigma**2
    norms, doubts = total.diagonal(), room.diagonal()
    squares = norms[:, None] + norms - 2 * total
    wide = doubts[:, None] + doubts + 2 * room + 8 * len(family.blocks) * UNIT * (norms[:, None] + norms)
    return max(float((squares - wide).max()), 0.0) * BELOW_512, float((squares + wide).max()) * ABOVE_512


def _apart(family: Family, schema: Schema) -> float:
    """2 p_B (1 + 1/(n - 1)) in every block, n its smallest attribute: no two records differ by more."""
    high = norms_of(family.blocks, schema.sizes)[1]
    least = [min((schema.sizes[k] for k in block), default=0) for block in family.blocks]
    squares = np.array([float(one[1].max()) for one in _squares(family.parts[0], schema)])[family.mode]
    terms = [2 * p * (1 + 1 / (n - 1)) if n else 0.0 for p, n in zip(high, least, strict=True)]
    return sum_bounds(np.array(terms) * squares / np.square(family.sigma), 32 * UNIT)[1]


def _by_pattern(family: Family, schema: Schema, used: list[int]) -> Ends:
    """All patterns of agreement, and all pairs of vertices: p (|s|^2 + |s'|^2) - 2 c (s, s') in every block."""
    part, sizes = family.parts[0], schema.sizes
    ends = {k: _inner(sizes[k]) for k in used}
    images = [whitened(mode, part_vertices(part, schema), part_vertices(part, schema).shape[1]) for mode in part.modes]
    products = [_inners(*one) for one in images]
    squares = _squares(part, schema)
    low, high = norms_of(family.blocks, sizes)
    lows, highs = (_weights(family, one, len(squares)) for one in (low, high))
    best = np.zeros(2)
    for agree in itertools.product((True, False), repeat=len(used)):
        same = dict(zip(used, agree, strict=True))
        crosses = [_times([ends[k][0 if same[k] else 1] for k in block]) for block in family.blocks]
        middle = np.array([one[0] for one in crosses])
        doubt = np.array([one[1] for one in crosses])
        least: Any = 0.0
        most: Any = 0.0
        for k, (product, error) in enumerate(products):
            chosen = (family.mode == k) / np.square(family.sigma)
            centre, room = float(middle @ chosen), float(doubt @ chosen) + 64 * UNIT * float(np.abs(middle) @ chosen)
            wide = 2 * (room * np.abs(product) + (abs(centre) + room) * error)
            least = least + lows[k][0] * (squares[k][0][:, None] + squares[k][0]) - 2 * centre * product - wide
            most = most + highs[k][1] * (squares[k][1][:, None] + squares[k][1]) - 2 * centre * product + wide
        best = np.maximum(best, [np.max(least), np.max(most)])  # a NaN stays one
    return float(best[0]) * BELOW_512, float(best[1]) * ABOVE_512


def _inners(image: Floats, error: Floats) -> tuple[Floats, Floats]:
    """(W s)'(W s') for all pairs, and a bound on the error of each."""
    lengths = np.sqrt(np.square(image).sum(axis=0)) * ABOVE_512
    room = (len(image) + 8) * UNIT * np.multiply.outer(lengths, lengths)
    return image.T @ image, room + np.add.outer(error, error) * (lengths.max() + error.max())


def _inner(size: int) -> tuple[Ends, Ends]:
    """Middle and half-width of the inner products of what two records move: in one cell, and in two different ones."""
    return (1 - 1 / size, 2 * UNIT), (-1 / size, 2 * UNIT)


def _times(ends: list[Ends]) -> Ends:
    """The product of intervals, as a middle and a half-width."""
    middle = math.prod(one[0] for one in ends)
    return middle, math.prod(abs(one[0]) + one[1] for one in ends) * ABOVE_512 - abs(middle)


def grid_of(family: Family, place: int, schema: Schema, records: int) -> float:
    """The grid, a power of two, of the table of a block before its contrasts are taken.

    Counts that are not turned are whole, so 1 will do. Otherwise so many records, each at its longest, are at most
    2^51 steps in the table, and 2^62 in its contrasts.
    """
    grown = math.prod(schema.sizes[k] - 1 for k in family.blocks[place])
    if not _turned(family, place):
        if records * grown > 1 << 62:
            raise ValueError(f"the contrasts of a table of counts of {records} records are beyond 2^62: plan for fewer")
        return 1.0
    bits = math.ceil(math.log2(records * _longest(family, schema)))
    return 2.0 ** (bits + max(math.ceil(math.log2(grown)) - 62, -51))


def _rounded(family: Family, schema: Schema, records: int) -> bool:
    """Whether any table of a family is: not where all are counts whose contrasts are below 2^52."""
    if any(part.values or any(mode.rotation is not None for mode in part.modes) for part in family.parts):
        return True
    less = [size - 1 for size in schema.sizes]
    return records * max(math.prod(less[k] for k in block) for block in family.blocks) > 1 << 52


def _turned(family: Family, place: int) -> bool:
    """Whether the tables of a block are other numbers than counts."""
    return any(part.values for part in family.parts) or any(
        mode.rotation is not None for mode in family.modes_of(place)
    )


def _longest(family: Family, schema: Schema) -> float:
    """The largest norm of what a record adds along the values of a family."""
    vertices = np.vstack([part_vertices(part, schema) for part in family.parts if part.values] or [np.ones((1, 1))])
    return math.sqrt(float(np.square(vertices).sum(axis=1).max()))


def slack(families: Sequence[Family], schema: Schema, records: int) -> float:
    """What rounding of the turned tables can add to mu."""
    rounded = [family for family in families if _rounded(family, schema, records)]
    reach = [block_slack(family, k, schema, records) for family in rounded for k in range(len(family.blocks))]
    return math.sqrt(float(np.square(reach).sum())) * ABOVE_WIDE


def block_slack(family: Family, place: int, schema: Schema, records: int) -> float:
    """What rounding can add to mu in a block: none where counts and their contrasts are whole and below 2^53.

    Sums of measures may have more than 53 bits: rounded to floats, then to steps, they err by 5/8 of a step, not 1/2.
    Contrasts are exact in integers, and over their lengths no longer than the table. Those of more than 53 bits are
    rounded to floats before noise is added: by a relative 2^-53, which two neighbours may do in opposite ways.
    """
    modes, grid, longest = family.modes_of(place), grid_of(family, place, schema, records), _longest(family, schema)
    least = float(family.sigma[place]) * math.prod(float(mode.scales.min()) for mode in modes)
    cells = math.prod(schema.sizes[k] for k in family.blocks[place]) * math.prod(mode.size for mode in modes)
    found = 0.0
    if _turned(family, place):
        rotations = [mode.rotation for mode in modes if mode.rotation is not None]
        found = grid * steps_to_mu(rotations, cells, least) * (1.25 if schema.measures else 1.0)
    if records * longest / grid * math.prod(schema.sizes[k] - 1 for k in family.blocks[place]) > 2.0**52:
        found += ROUNDINGS_4 * records * longest * math.sqrt(cells) / least
    return found


def several_cells(family: Family, schema: Schema, cells: int, exchange: bool) -> float:
    """A bound on the squared length of a sum of records in so many different cells; with `exchange` of a difference.

    The sum of v_1, ..., v_g has |v_1|^2 + ... + |v_g|^2 and g (g - 1) inner products of records in different cells. A
    difference of two such sums has both and, twice, at most g^2 inner products of any two records, subtracted.
    """
    alone, pairs = single(family, schema)[1], cells * (cells - 1)
    most, least = _inner_products(family, schema)
    one = min(cells * alone + pairs * max(most, 0.0), cells**2 * alone)
    apart = 2 * one + 2 * cells**2 * max(-least, 0.0)
    return (min(apart, 4 * one) if exchange else one) * ABOVE_512


def _inner_products(family: Family, schema: Schema) -> Ends:
    """The largest inner product of two records in different cells, and the least of any two: bounds on both."""
    one = single(family, schema)[1]
    used = sorted({k for block in family.blocks for k in block})
    part = family.parts[0]
    vertices = part_vertices(part, schema)
    number = part.size * len(vertices) // vertices.shape[1]
    if len(family.parts) > 1 or 2 ** len(used) * len(part.modes) * number**2 > _PATTERNS:
        return one, -one
    every = {k for k, size in enumerate(schema.sizes) if size > 1} <= {*used, *part.axes}
    products = [_inners(*whitened(mode, vertices, vertices.shape[1])) for mode in part.modes]
    ends = {k: _inner(schema.sizes[k]) for k in used}
    cell = np.arange(number) // len(vertices)  # of the special attributes
    most, least = -math.inf, math.inf
    for agree in itertools.product((True, False), repeat=len(used)):
        same = dict(zip(used, agree, strict=True))
        crosses = [_times([ends[k][0 if same[k] else 1] for k in block]) for block in family.blocks]
        total: Any = 0.0
        room: Any = 0.0
        for k, (product, error) in enumerate(products):
            chosen = (family.mode == k) / np.square(family.sigma)
            middle, doubt = (np.array([one[place] for one in crosses]) for place in (0, 1))
            centre, wide = float(middle @ chosen), float(doubt @ chosen) + 64 * UNIT * float(np.abs(middle) @ chosen)
            total = total + centre * product
            room = (
                room + wide * np.abs(product) + (abs(centre) + wide) * error + 8 * UNIT * abs(centre) * np.abs(product)
            )
        above = np.where(np.equal.outer(cell, cell), -math.inf, total + room) if every and all(agree) else total + room
        most, least = np.maximum(most, np.max(above)), np.minimum(least, np.min(total - room))  # a NaN stays one
    return (float(most), float(least)) if most < math.inf and least > -math.inf else (one, -one)


def mu_bounds(families: Sequence[Family], schema: Schema, exchange: bool, person: Workload | None = None) -> Ends:
    """Bounds on mu of a person with the rows that a workload allows, or with one, without rounding of turned tables.

    A record outside the domains adds nothing at all. Rounding is bounded by table and does not grow with the rows.
    """
    ends = np.array([single(family, schema) for family in families])
    low, high = ends[:, 0].max(), ends[:, 1].sum()
    if exchange:
        pairs = np.array([exchanged(family, schema) for family in families])
        low, high = max(low, pairs[:, 0].max()), np.maximum(high, pairs[:, 1].sum())
    groups = 1 if person is None else min(person.max_groups or 1, math.prod(schema.sizes))
    if groups > 1:
        high = np.maximum(high, np.sum([several_cells(family, schema, groups, exchange) for family in families]))
    if not high < math.inf:  # beyond floats: nothing is certified
        return 0.0, math.inf
    most = 1 if person is None else person.max_rows
    return most * math.sqrt(low) * BELOW_512, most * math.sqrt(high) * ABOVE_512
