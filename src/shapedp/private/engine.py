"""Exact sums in a database: rows of people become whole numbers, at most so many rows of each are kept, and summed.

Guarantee: what is summed of one person depends on that person's rows and the key alone. Rows of a person that are alike
are numbered, and every row gets a keyed hash of the person, what it holds and its number; those with the smallest are
kept. So a person who comes or goes changes the choice among nobody else's rows. All sums are of integers: no order of
additions, and no number of cores, changes them.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.private.conditions import literal
from shapedp.private.layout import Feature, Layout
from shapedp.private.sources import ID, KINDS, ibis, is_whole
from shapedp.private.table import PrivateTable
from shapedp.workloads import Attribute
from shapedp.workloads.counting import Counted

_COPIES = 1 << 16  # rows of one person that are alike are told apart up to here, or up to the bound
PERSON = "person"
_MOST = 1 << 27  # cells of one table
_FEW = 4  # labels that are compared one after the other


def fresh_key() -> str:
    """A secret key for the choice of rows."""
    return secrets.token_hex(32)


def counted(table: PrivateTable, layout: Layout, needed: Sequence[tuple[int, ...]]) -> Counted:
    """The tables that a mechanism needs, without noise."""
    schema = layout.workload.schema
    for axes in needed:
        if math.prod(schema.sizes[k] for k in axes) * (1 + len(schema.measures)) > _MOST:
            raise ValueError("the groups of these questions are too many to count: group by fewer columns together")
    wanted = _wanted(table, layout)
    wide = 1 + len(schema.measures)
    found = {axes: np.zeros((math.prod(schema.sizes[k] for k in axes), wide), np.int64) for axes in needed}
    sums = table.source.computed(wanted, lambda rows: _query(table, layout, wanted, rows), table.memory)
    codes = [_codes(one, sums.column(f"k{i}")) for i, one in enumerate(schema.attributes)]
    names = ["n", *(f"q{i}" for i in range(wide - 1))]
    values = np.stack([sums.column(name).to_numpy().astype(np.int64) for name in names], axis=1)
    inside = np.all([one >= 0 for one in codes], axis=0)
    for axes, cells in found.items():
        flat = np.zeros(len(values), np.int64)
        for k in axes:
            flat = flat * schema.sizes[k] + codes[k]
        np.add.at(cells, flat[inside], values[inside])
    shaped = {axes: cells.reshape([*(schema.sizes[k] for k in axes), -1]) for axes, cells in found.items()}
    return Counted(shaped, schema, layout.workload.bounds())


def _wanted(table: PrivateTable, layout: Layout) -> dict[str, tuple[str, str]]:
    """The columns that are read and their kinds, under names of our own."""
    names = {*layout.columns.values(), *(one.column for one in layout.features if one.column is not None)}
    names |= {name for condition in layout.conditions.values() for name in condition.columns()}
    found = {f"c{i}": (name, table.kind(name)) for i, name in enumerate(sorted(names))}
    if table.person is not None:
        return {**found, PERSON: (table.person, ID)}
    readable = ((name, kind or "text") for name, kind in table.source.kinds.items() if kind in (*KINDS, ""))
    return found or {"c0": next(readable)}  # rows are counted by one column at least


def _query(table: PrivateTable, layout: Layout, wanted: Mapping[str, tuple[str, str]], rows: Any) -> Any:
    """The sums of every cell as a query: keys k0, ..., the count n, and the sums q0, ..."""
    cells = {column: rows[name] for name, (column, kind) in wanted.items() if kind != ID}
    attributes = layout.workload.schema.attributes
    foreign = table.source.table is not None
    keys = {
        f"k{i}": _key(one, cells.get(layout.columns.get(one.name, "")), foreign) for i, one in enumerate(attributes)
    }
    holds = {name: condition.sql(cells) for name, condition in layout.conditions.items()}
    values = {f"q{i}": _steps(one, cells, holds) for i, one in enumerate(layout.features)}
    kept = [holds[name] for name in sorted(layout.base)]
    kept += [keys[f"k{i}"].notnull() for i, one in enumerate(attributes) if not one.other]
    kept += [rows[PERSON].notnull()] if table.person is not None else []
    summed = {one.column for one in layout.features if one.column is not None}
    kept += [cells[name].notnull() for name in sorted(summed & table.source.complete)]  # a type may promise too much
    reduced = (rows.filter(*kept) if kept else rows).select(
        **({} if table.person is None else {PERSON: rows[PERSON]}), **keys, **values
    )
    if table.person is not None:
        reduced = _bounded(reduced, list(keys), table, fresh_key())
    sums = {name: reduced[name].sum() for name in values}
    return reduced.group_by(list(keys)).agg(n=reduced.count(), **sums)


def _bounded(rows: Any, keys: list[str], table: PrivateTable, key: str) -> Any:
    """At most so many rows of each person, or so many in each of so many groups."""
    library, held, most = ibis(), [name for name in rows.columns if name != PERSON], table.rows
    alike = rows.group_by([PERSON, *held]).agg(copies=rows.count())
    each = alike.mutate(copy=library.range(0, library.least(alike.copies, max(_COPIES, most))).unnest())
    hashed = each.mutate(hash=_hash(each, key, (*held, "copy")))
    within = [PERSON, *keys] if table.groups_touched is not None else [PERSON]
    order = library.window(group_by=within, order_by="hash")
    kept = hashed.mutate(rank=library.row_number().over(order)).filter(library._.rank < most)
    if table.groups_touched is None:
        return kept
    grouped = kept.mutate(group=_hash(kept, f"{key} groups", keys))
    groups = library.window(group_by=PERSON, order_by=["group", *keys])
    return grouped.mutate(place=library.dense_rank().over(groups)).filter(library._.place < table.groups_touched)


def _hash(rows: Any, key: str, names: Sequence[str]) -> Any:
    """A keyed hash of a person and these columns: 128 bits, so that no two are alike."""
    said = ibis().literal(key) + "|" + rows[PERSON]
    for name in names:
        said = said + "|" + rows[name].cast("string").fill_null("")
    return said.hexdigest("sha256").left(32)


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
        return library.literal(0)
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
    return inside.ifelse(_interval(cell, edges, 0, len(edges) - 2), library.null("int64"))


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


def _interval(cell: Any, edges: Sequence[float], first: int, last: int) -> Any:
    """The interval that holds a cell, by halving."""
    if first == last:
        return ibis().literal(first, "int64")
    middle = (first + last + 1) // 2
    low, high = _interval(cell, edges, first, middle - 1), _interval(cell, edges, middle, last)
    return (cell < literal(edges[middle])).ifelse(low, high)


def _codes(attribute: Attribute, keys: Any) -> NDArray[np.int64]:
    """The cell of each key that the database returned; -1 where it is in none."""
    outside = attribute.size - 1 if attribute.other else -1
    return np.array([outside if key is None else key for key in keys.to_pylist()], np.int64)
