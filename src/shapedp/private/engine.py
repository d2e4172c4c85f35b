"""Exact sums in a database: rows of people become whole numbers, at most so many rows of each are kept, and summed.

Guarantee: what is summed of one person depends on that person's rows and the key alone. The rows of a person are put in
the order of what they hold; of n rows, k are kept at even distances, from a start that a keyed hash of the person
gives. Rows that are alike add the same, so their order does not matter. So a person who comes or goes changes the
choice among nobody else's rows, whatever the hash is; a hash that nobody can foresee makes each row as likely to be
kept as any other of that person. All sums are of integers: no order of additions, and no number of cores, changes them.
"""

from __future__ import annotations

import functools
import itertools
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapedp.private.conditions import literal
from shapedp.private.layout import Feature, Layout
from shapedp.private.sources import ID, KINDS, ibis, is_whole
from shapedp.private.table import PrivateTable
from shapedp.workloads import Attribute
from shapedp.workloads.counting import Counted

PERSON = "person"
COUNT = "n"
_ROWS = 1 << 31  # rows of one person that are looked at, so that products of two such numbers are within int64
_DIGITS = 8  # of a start: for n rows each is kept with probability k/n to within 2^-32
_PACKED = 1 << 62
_MOST = 1 << 27  # cells of one table
_FEW = 4  # labels that are compared one after the other
_FINEST = 30  # edges at multiples of 2^-30 are counted off
_EXACT = 2.0**52  # below it floats have halves


def fresh_key() -> str:
    """A secret key for the choice of rows: 128 bits, so that it and an id fill one block of the hash."""
    return secrets.token_hex(16)


def counted(table: PrivateTable, layout: Layout, needed: Sequence[tuple[int, ...]]) -> Counted:
    """The tables that a mechanism needs, without noise."""
    schema = layout.workload.schema
    if table.kept != layout.workload.bounds():
        raise ValueError("the noise was planned for another number of rows or groups per person: plan with this table")
    for axes in needed:
        if math.prod(schema.sizes[k] for k in axes) * (1 + len(schema.measures)) > _MOST:
            raise ValueError("the groups of these questions are too many to count: group by fewer columns together")
    wanted = _wanted(table, layout)
    wide = 1 + len(schema.measures)
    found = {axes: np.zeros((math.prod(schema.sizes[k] for k in axes), wide), np.int64) for axes in needed}
    sums = table.source.computed(wanted, lambda rows: _query(table, layout, wanted, rows), table.memory)
    places = _places(schema.attributes, sums)
    names = [COUNT, *(f"q{i}" for i in range(wide - 1))]
    values = np.stack([sums.column(name).to_numpy().astype(np.int64) for name in names], axis=1)
    for axes, cells in found.items():
        flat = np.zeros(len(values), np.int64)
        for k in axes:
            flat = flat * schema.sizes[k] + places[k]
        np.add.at(cells, flat, values)
    shaped = {axes: cells.reshape([*(schema.sizes[k] for k in axes), -1]) for axes, cells in found.items()}
    return Counted(shaped, schema, table.kept, table.sentence)


def _wanted(table: PrivateTable, layout: Layout) -> dict[str, tuple[str, str]]:
    """The columns that are read and their kinds, under names of our own."""
    names = {*layout.columns.values(), *(one.column for one in layout.features if one.column is not None)}
    names |= {name for condition in layout.conditions.values() for name in condition.columns()}
    found = {f"c{i}": (name, table.kind(name)) for i, name in enumerate(sorted(names))}
    if table.person is not None:
        return {**found, PERSON: (table.person, ID)}
    readable = ((name, kind or "text") for name, kind in table.source.kinds.items() if kind in (*KINDS, ""))
    return found or {"c0": next(readable)}  # rows are counted by one column at least


class _Reduced(NamedTuple):
    """Rows that are counted: whose, in which cell, what they add; and the digits that choose among them."""

    rows: Any
    packed: list[str]
    values: list[str]
    digits: Callable[..., Any]


def _reduced(
    table: PrivateTable, layout: Layout, wanted: Mapping[str, tuple[str, str]], rows: Any, valued: bool = True
) -> _Reduced:
    """The rows that all questions look at, as whole numbers; without `valued` only whose and in which cell."""
    cells = {column: rows[name] for name, (column, kind) in wanted.items() if kind != ID}
    attributes = layout.workload.schema.attributes
    foreign = table.source.table is not None
    places = [cells[layout.columns[one.name]] if one.name in layout.columns else None for one in attributes]
    keys = [_key(*pair, foreign) for pair in zip(attributes, places, strict=True)]
    holds = {name: condition.sql(cells) for name, condition in layout.conditions.items()}
    features = layout.features if valued else ()
    values = {f"q{i}": _steps(one, cells, holds) for i, one in enumerate(features)}
    kept = [holds[name] for name in sorted(layout.base)]
    kept += [key.notnull() for key, one in zip(keys, attributes, strict=True) if not one.other]
    kept += [rows[PERSON].notnull()] if table.person is not None else []
    summed = {one.column for one in layout.features if one.column is not None}
    kept += [cells[name].notnull() for name in sorted(summed & table.source.complete)]  # a type may promise too much
    packed = _packed(attributes, keys)
    key = fresh_key()
    person = {} if table.person is None else {PERSON: _person(rows[PERSON], key, foreign)}
    made = (rows.filter(*kept) if kept else rows).select(**person, **packed, **values)
    return _Reduced(made, list(packed), list(values), functools.partial(_digits, key=key, foreign=foreign))


def _query(table: PrivateTable, layout: Layout, wanted: Mapping[str, tuple[str, str]], rows: Any) -> Any:
    """The sums of every cell as a query: packed keys k0, ..., the count n, and the sums q0, ..."""
    reduced, packed, values, digits = _reduced(table, layout, wanted, rows)
    count = reduced.count()
    if table.person is not None:
        within = [] if table.groups_touched is None else packed
        reduced = _chosen(reduced, [*packed, *values], table.rows, within, functools.partial(digits, first=0))
        count = reduced.count()
    if table.groups_touched is not None:
        reduced = _summed(reduced, [PERSON, *packed], values, count)
        reduced = _chosen(reduced, packed, table.groups_touched, [], functools.partial(digits, first=_DIGITS))
        count = reduced[COUNT].sum()
    return _summed(reduced, packed, values, count)


def dropped_rows(table: PrivateTable, layout: Layout, most: int) -> NDArray[np.int64]:
    """How many rows the bounds per person keep and drop, of at most so many of each person; WITHOUT noise."""
    wanted = _wanted(table, layout)
    found = table.source.computed(
        wanted, lambda rows: _kept_and_dropped(table, layout, wanted, rows, most), table.memory
    )
    kept, seen = (sum(int(one or 0) for one in found.column(name).to_pylist()) for name in ("kept", "seen"))
    return np.array([kept, seen - kept], np.int64)


def _kept_and_dropped(table: PrivateTable, layout: Layout, wanted: Any, rows: Any, most: int) -> Any:
    """Of each person: n rows, of which so many are kept; summed over all persons."""
    library = ibis()
    reduced, packed, _, digits = _reduced(table, layout, wanted, rows, valued=False)
    bound = _whole(table.rows)
    if table.groups_touched is None:
        own = _summed(reduced, [PERSON], [], reduced.count())
        own = own.mutate(kept=library.least(own[COUNT], bound))
    else:
        cells = _summed(reduced, [PERSON, *packed], [], reduced.count())
        start = functools.partial(digits, first=_DIGITS)
        cells, taken = _marked(cells, packed, table.groups_touched, [], start)
        kept = taken.ifelse(library.least(cells[COUNT], bound), _whole(0))
        own = cells.group_by(PERSON).agg(**{COUNT: cells[COUNT].sum().cast("int64"), "kept": kept.sum().cast("int64")})
    seen = library.least(own[COUNT], _whole(most))
    return own.agg(kept=own.kept.sum(), seen=seen.sum())


def _summed(rows: Any, keys: list[str], values: list[str], count: Any) -> Any:
    return rows.group_by(keys).agg(**{COUNT: count}, **{name: rows[name].sum() for name in values})


def _chosen(rows: Any, held: Sequence[str], most: int, within: Iterable[str], digits: Callable[[Any], Any]) -> Any:
    """At most so many rows of each person, or of each person and what `within` holds."""
    placed, taken = _marked(rows, held, most, within, digits)
    return placed.filter(taken)


def _marked(
    rows: Any, held: Sequence[str], most: int, within: Iterable[str], digits: Callable[[Any], Any]
) -> tuple[Any, Any]:
    """The rows with their places, and which of them are kept.

    Of n rows in the order of what they hold, n > k = `most`, the i-th is kept where (start + i k) mod n < k: where its
    step of length k meets a multiple of n. All n steps together have length n k, so k rows are kept, and with a start
    that is uniform each of them with probability k/n.
    """
    library, parts = ibis(), [PERSON, *within]
    place = library.row_number().over(group_by=parts, order_by=list(held)) + _whole(1)
    number = rows.count().over(library.window(group_by=parts, order_by=list(held), preceding=None, following=None))
    placed = rows.mutate(place=place, number=library.least(number, _whole(_ROWS)))
    bound = _whole(min(most, _ROWS))
    start = digits(placed[PERSON]) % placed.number
    chosen = (start + library.least(placed.place, placed.number) * bound) % placed.number < bound
    few = placed.number <= bound  # for most people there is nothing to choose
    return placed, (placed.place <= placed.number) & (few | chosen)


def _digits(person: Any, key: str, foreign: bool, first: int) -> Any:
    """A whole number below 2^32 that nobody can foresee without the key: digits of a keyed hash of the person."""
    hashed = person if foreign and person.type().is_string() else _hash(person, key)
    digits = hashed.substr(first, _DIGITS)
    if not foreign:
        return (ibis().literal("0x") + digits).cast("int64")  # as DuckDB reads it
    found: Any = _whole(0)
    for k in range(_DIGITS):
        found = found * _whole(16) + ibis().literal("0123456789abcdef").find(digits.substr(k, 1))
    return found


def _whole(value: int) -> Any:
    """A public whole number of 64 bits. As a mere number it has 32 in Spark, and so have products of such."""
    return ibis().literal(str(value)).cast("int64")


def _person(person: Any, key: str, foreign: bool) -> Any:
    """Whose row it is: a database not our own may take two texts for one, but no two hashes."""
    return _hash(person, key) if foreign and person.type().is_string() else person


def _hash(person: Any, key: str) -> Any:
    return (ibis().literal(f"{key}|") + person.cast("string")).hexdigest("sha256").lower()


def _packed(attributes: Sequence[Attribute], keys: Sequence[Any]) -> dict[str, Any]:
    """The places of a row in all domains as few whole numbers: what is sorted and grouped by is short."""
    found = {}
    for name, run in zip((f"k{i}" for i in itertools.count()), _runs(attributes), strict=False):
        number = _whole(0)
        for k in run:
            place = keys[k].fill_null(attributes[k].size - 1) if attributes[k].other else keys[k]
            number = number * _whole(attributes[k].size) + place
        found[name] = number
    return found


def _runs(attributes: Sequence[Attribute]) -> list[list[int]]:
    """Attributes that are packed into one number each."""
    runs: list[list[int]] = [[]]
    for k, one in enumerate(attributes):
        if math.prod(attributes[j].size for j in runs[-1]) * one.size > _PACKED:
            runs.append([])
        runs[-1].append(k)
    return runs


def _places(attributes: Sequence[Attribute], sums: Any) -> list[NDArray[np.int64]]:
    """The places of each group that the database returned, by attribute."""
    found: list[NDArray[np.int64]] = []
    for i, run in enumerate(_runs(attributes)):
        left, backwards = sums.column(f"k{i}").to_numpy().astype(np.int64), []
        for k in reversed(run):
            left, place = np.divmod(left, attributes[k].size)
            backwards.append(place)
        found += reversed(backwards)
    return found


def _steps(feature: Feature, cells: Mapping[str, Any], holds: Mapping[str, Any]) -> Any:
    """What a row adds, in whole steps of the feature's grid, never beyond its ends."""
    library, (least, most) = ibis(), feature.measure.ends
    value: Any = library.literal(round(1 / feature.measure.step), "int64")
    counts = [holds[name] for name in sorted(feature.needs)]
    if feature.column is not None:
        cell = _number(cells[feature.column])
        low, high = (literal(float(end)) for end in feature.bounds)
        number = library.least(library.greatest(cell, low), high) - literal(feature.centre)
        if feature.power == 2:
            number = number * number - literal(feature.shift)
        steps = (number / literal(feature.measure.step) + literal(0.5)).floor().try_cast("int64")
        value = library.least(library.greatest(steps, least), most)
        counts.append(cell.notnull())
    for one in counts:
        value = one.ifelse(value, library.literal(0, "int64"))
    return value


def _key(attribute: Attribute, cell: Any, foreign: bool) -> Any:
    """The number of the cell that a row is in, null where it is in none.

    A label would not do: a database may take two texts for one, and then shows either of them for both.
    """
    library = ibis()
    if cell is None:  # no groups
        return library.literal(0, "int64")
    if attribute.labels is not None:
        ordered = not foreign or not cell.type().is_string()  # the order of texts is a database's own
        places = sorted(range(len(attribute.labels)), key=attribute.labels.__getitem__)
        return _labelled(cell, [(attribute.labels[place], place) for place in places], ordered)
    cell = _number(cell)
    if attribute.edges is None:
        inside = (cell >= 0) & (cell < attribute.whole) & is_whole(cell, attribute.whole)
        return inside.fill_null(False).ifelse(cell, library.null("float64")).try_cast("int64")
    edges = attribute.edges
    inside = ((cell >= literal(edges[0])) & (cell < literal(edges[-1]))).fill_null(False)
    inner = edges[1:-1]  # the outermost may be anywhere
    even = _even(inner) if len(inner) > _FEW else None
    place = _interval(cell, edges, 0, len(edges) - 2) if even is None else _counted_off(cell, inner, *even)
    return inside.ifelse(place, library.null("int64"))


def _number(cell: Any) -> Any:
    """A cell as a number; a truth value is 0 or 1."""
    return cell.cast("int8").cast("float64") if cell.type().is_boolean() else cell


def _labelled(cell: Any, labels: Sequence[tuple[Any, int]], ordered: bool) -> Any:
    """The number of the label that a cell equals: by halving, a few one after the other."""
    if ordered and len(labels) > _FEW:
        middle = len(labels) // 2
        low, high = (_labelled(cell, half, ordered) for half in (labels[:middle], labels[middle:]))
        return (cell < literal(labels[middle][0])).ifelse(low, high)
    number = [(cell == literal(label), ibis().literal(place, "int64")) for label, place in labels]
    return ibis().cases(*number, else_=ibis().null("int64"))  # where a cell is missing no case holds


def _even(edges: Sequence[float]) -> tuple[float, int] | None:
    """A power of two u <= 1 and a whole k where all edges are k u apart, and whole multiples of u below 2^52."""
    unit = math.ldexp(1.0, -_FINEST)
    while unit < 1 and all(edge % (2 * unit) == 0 for edge in edges[:2]):
        unit *= 2
    parts = [edge / unit for edge in edges]
    if max(map(abs, parts)) >= _EXACT / 2 or any(one % 1 for one in parts):
        return None
    gaps = {int(after) - int(before) for before, after in itertools.pairwise(parts)}
    return (unit, gaps.pop()) if len(gaps) == 1 else None


def _counted_off(cell: Any, edges: Sequence[float], unit: float, gap: int) -> Any:
    """How many of these edges a cell has reached, where they are even: cell / u is exact, as u is a power of two <= 1.

    A cell beyond is pulled in first: a floor may not fit into an integer.
    """
    library, before = ibis(), edges[0] - gap * unit
    near = library.least(library.greatest(cell, literal(before)), literal(edges[-1]))
    steps = (near / literal(unit)).floor().try_cast("int64") - _whole(int(before / unit))
    return steps if gap == 1 else ((steps - steps % _whole(gap)) / _whole(gap)).try_cast("int64")


def _interval(cell: Any, edges: Sequence[float], first: int, last: int) -> Any:
    """The interval that holds a cell, by halving."""
    if first == last:
        return ibis().literal(first, "int64")
    middle = (first + last + 1) // 2
    low, high = _interval(cell, edges, first, middle - 1), _interval(cell, edges, middle, last)
    return (cell < literal(edges[middle])).ifelse(low, high)
