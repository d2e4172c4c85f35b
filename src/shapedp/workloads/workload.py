"""A workload: linear queries on a table of counts, described and never laid out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.documents import decode, encode
from shapedp.boundary.values import plain
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, entries, finite, one_of, positive
from shapedp.sensitivity import ADJACENCIES, Adjacency, Hull
from shapedp.workloads.schema import Schema

if TYPE_CHECKING:
    from shapedp.mechanisms import Advice
    from shapedp.workloads.answers import AnswerMechanism
    from shapedp.workloads.mechanism import WorkloadMechanism

_MOST_TERMS = 2_000_000
_MOST_ROWS = 1 << 26  # entries of a matrix of rows
_MOST_PER_PERSON = 1 << 20
SHAPES = ("cells", "prefixes", "ranges", "hierarchy", "rows")


@dataclass(frozen=True, eq=False)
class Factor:
    """What a group of queries asks along one attribute: each cell, or the rows of a matrix."""

    shape: str
    size: int
    given: Floats | None = None
    branch: int = 2

    def __post_init__(self) -> None:
        plain(self)
        object.__setattr__(self, "given", None if self.given is None else frozen(self.given))

    @property
    def key(self) -> Any:
        """Equal for factors that are the same."""
        return (self.shape, self.size, self.branch, None if self.given is None else self.given.tobytes())

    @cached_property
    def matrix(self) -> Floats:
        """One row per query."""
        return frozen(self._laid_out())

    def _laid_out(self) -> Floats:
        n = self.size
        if self.given is not None:
            return self.given
        if self.shape == "prefixes":
            return np.tril(np.ones((n, n)))
        if self.shape == "ranges":
            first, last = np.triu_indices(n)
            cells = np.arange(n)
            return ((first[:, None] <= cells) & (cells <= last[:, None])).astype(np.float64)
        if self.shape == "hierarchy":
            return _tree(n, self.branch)
        return np.eye(n)

    @property
    def row_squares(self) -> Floats:
        """The squared length of every row."""
        return np.ones(self.size) if self.shape == "cells" else np.asarray(np.square(self.matrix).sum(axis=1))

    @property
    def count(self) -> int:
        """The number of rows."""
        if self.shape == "ranges":
            return self.size * (self.size + 1) // 2
        return self.size if self.shape in ("cells", "prefixes") else len(self.matrix)

    @cached_property
    def gram(self) -> Floats:
        """matrix' matrix."""
        cells, n = np.arange(self.size), self.size
        if self.shape == "ranges":
            return frozen((np.minimum.outer(cells, cells) + 1.0) * (n - np.maximum.outer(cells, cells)))
        if self.shape == "prefixes":
            return frozen(n - np.maximum.outer(cells, cells) + 0.0)
        return frozen(self.matrix.T @ self.matrix)

    def cell_names(self, cells: Sequence[Any]) -> list[str]:
        """A name for every row."""
        named = [str(cell) for cell in cells]
        if self.shape == "cells":
            return named
        if self.shape == "rows":
            return [f"row {k}" for k in range(self.count)]
        places = [np.flatnonzero(row) for row in self.matrix]
        return [f"{named[found[0]]} to {named[found[-1]]}" for found in places]

    def to_json(self) -> dict[str, Any]:
        """For `workload_from_json`."""
        written: dict[str, Any] = {"shape": self.shape}
        if self.shape == "hierarchy":
            written["branch"] = self.branch
        if self.given is not None:
            written["rows"] = encode(self.given.reshape(-1))
        return written


def _tree(n: int, branch: int) -> Floats:
    """Sums over all nodes of a tree over n cells, level by level, the cells last."""
    levels, width = [], 1
    while width < n:
        starts = np.arange(0, n, width)
        cells = np.arange(n)
        levels.append(((starts[:, None] <= cells) & (cells < starts[:, None] + width)).astype(np.float64))
        width *= branch
    return np.vstack([np.ones((1, n)), *reversed(levels)]) if levels else np.ones((1, n))


@dataclass(frozen=True, eq=False)
class Term:
    """One group of queries: the product of what it asks along its attributes, of the count or of a measure.

    `measure` is 0 for counts, k for the sums of the k-th measure; `weight` multiplies the squared error of each query.
    """

    name: str
    factors: tuple[tuple[int, Factor], ...]
    measure: int = 0
    weight: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple((place, factor) for place, factor in self.factors))
        plain(self)

    @property
    def attributes(self) -> tuple[int, ...]:
        """Where its attributes stand in the schema."""
        return tuple(place for place, _ in self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its answers."""
        return tuple(factor.count for _, factor in self.factors)

    def to_json(self) -> dict[str, Any]:
        """For `workload_from_json`."""
        factors = [[place, factor.to_json()] for place, factor in self.factors]
        return {"name": self.name, "factors": factors, "measure": self.measure, "weight": self.weight}


@dataclass(frozen=True, eq=False)
class Workload:
    """Linear queries on a table whose attributes have public domains; each method returns a larger workload.

    Parameters
    ----------
    schema: attributes by name: a size (values 0, 1, ...), a list of labels, or a table such as
        {"edges": [0, 18, 65, 120], "other": True}.
    measures: bounds by name, of columns whose sums or means are asked.
    max_rows: how many rows one person has at most. The caller sees to it; `sdp.table` does.
    max_groups: in how many different cells a person has rows at most; `max_rows` then bounds the rows in each of them.

    Examples
    --------
    >>> w = Workload({"age": 100, "sex": ["F", "M"]}).marginals(0, 1, 2)
    >>> len(w)
    303
    """

    schema: Schema
    terms: tuple[Term, ...] = ()
    max_rows: int = 1
    max_groups: int | None = None
    _names: frozenset[str] = field(default=frozenset(), repr=False)

    def __init__(
        self,
        schema: Any,
        *,
        measures: Mapping[str, Any] | None = None,
        terms: Iterable[Term] = (),
        max_rows: int = 1,
        max_groups: int | None = None,
    ) -> None:
        found = schema if isinstance(schema, Schema) else Schema.of(schema, measures)
        asked = entries("terms", terms)
        if not all(isinstance(term, Term) for term in asked):
            raise TypeError("terms must be groups of queries (Term): the verbs of a workload make them")
        names = frozenset(term.name for term in asked)
        if len(names) < len(asked):
            raise ValueError("a workload asks each group of queries once: give the second a name of its own (name=)")
        if len(asked) > _MOST_TERMS:
            raise ValueError(f"a workload has at most {_MOST_TERMS} groups of queries")
        bounds = {
            "max_rows": count("max_rows", max_rows, most=_MOST_PER_PERSON),
            "max_groups": None if max_groups is None else count("max_groups", max_groups, most=_MOST_PER_PERSON),
        }
        for name, value in {"schema": found, "terms": asked, "_names": names, **bounds}.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return sum(math.prod(term.shape) for term in self.terms)

    def __add__(self, other: Workload) -> Workload:
        """The union of two workloads on one schema; what both ask is asked once, with the weights added."""
        if not isinstance(other, Workload):
            return NotImplemented
        if other.schema.to_json() != self.schema.to_json():
            raise ValueError("workloads on different schemas have no union")
        if other.bounds() != self.bounds():
            raise ValueError("workloads for different numbers of rows per person have no union: give both one max_rows")
        merged = {term.name: term for term in self.terms}
        for term in other.terms:
            known = merged.get(term.name)
            if known is not None and {**known.to_json(), "weight": 0} != {**term.to_json(), "weight": 0}:
                raise ValueError(f"both workloads have a group {term.name!r}, of different queries: rename one")
            merged[term.name] = term if known is None else replace(known, weight=known.weight + term.weight)
        return Workload(self.schema, terms=merged.values(), **self.bounds())

    def _with(self, terms: Iterable[Term]) -> Workload:
        return Workload(self.schema, terms=(*self.terms, *terms), **self.bounds())

    def bounds(self) -> dict[str, Any]:
        """How much one person has, where that is not one row."""
        several = {"max_rows": self.max_rows} if self.max_rows != 1 else {}
        return several if self.max_groups is None else {**several, "max_groups": self.max_groups}

    @property
    def most(self) -> int:
        """How many rows a person has at most, in all cells."""
        return self.max_rows * min(self.max_groups or 1, math.prod(self.schema.sizes))

    def _term(
        self, factors: Mapping[int, Factor], measure: int, weight: float, name: str | None, word: str = ""
    ) -> Term:
        ordered = tuple(sorted(factors.items()))
        weight = positive("weight", weight)
        usual = " x ".join(self.schema.attributes[place].name for place, _ in ordered) or "total"
        usual = f"{word} {usual}".strip()
        if measure:
            one = self.schema.measures[measure - 1]
            usual, weight = f"{one.name} by {usual}" if ordered else one.name, weight / one.bound**2
        return Term(usual if name is None else name, ordered, measure, positive("weight", weight))

    def _cells(self, names: Sequence[Any]) -> dict[int, Factor]:
        places = [self.schema.index(name) for name in names]
        if len(set(places)) < len(places):
            raise ValueError(f"an attribute is named twice: {', '.join(map(str, names))}")
        return {place: Factor("cells", self.schema.sizes[place]) for place in places}

    def marginal(self, *names: str, weight: float = 1.0, name: str | None = None) -> Workload:
        """The table of counts by these attributes."""
        return self._with([self._term(self._cells(names), 0, weight, name)])

    def total(self, *, weight: float = 1.0) -> Workload:
        """The number of records."""
        return self.marginal(weight=weight)

    def marginals(self, *orders: int, weight: float = 1.0) -> Workload:
        """All tables of counts by so many attributes."""
        number = len(self.schema.attributes)
        chosen = sorted({count("an order", order, least=0) for order in orders})
        if not chosen or chosen[-1] > number:
            raise ValueError(f"orders must be numbers of attributes, at most {number}")
        if sum(math.comb(number, order) for order in chosen) > _MOST_TERMS:
            raise ValueError(f"a workload has at most {_MOST_TERMS} groups of queries")
        cells = [Factor("cells", size) for size in self.schema.sizes]
        groups = itertools.chain.from_iterable(itertools.combinations(range(number), order) for order in chosen)
        return self._with(self._term({k: cells[k] for k in group}, 0, weight, None) for group in groups)

    def _shaped(
        self, shape: str, along: str | Sequence[str], by: Sequence[str], weight: float, name: str | None, **extra: Any
    ) -> Workload:
        if not isinstance(by, list | tuple):
            raise TypeError(f"by must be a list of attributes, got {type(by).__name__}")
        ordered = list(along) if isinstance(along, list | tuple) else [along]
        factors = self._cells((*by, *ordered))
        for place in (self.schema.index(one) for one in ordered):
            factors[place] = Factor(shape, self.schema.sizes[place], **extra)
        return self._with([self._term(factors, 0, weight, name, shape)])

    def ranges(
        self, along: str | Sequence[str], *, by: Sequence[str] = (), weight: float = 1.0, name: str | None = None
    ) -> Workload:
        """All sums over intervals of an ordered attribute, or over products of intervals of several."""
        for one in along if isinstance(along, list | tuple) else [along]:
            size = self.schema.sizes[self.schema.index(one)]
            if size * size * (size + 1) // 2 > _MOST_ROWS:
                raise ValueError(
                    f"all ranges over {size} cells are too many: ask for prefixes, or for rows of your own"
                )
        return self._shaped("ranges", along, by, weight, name)

    def prefixes(
        self, along: str | Sequence[str], *, by: Sequence[str] = (), weight: float = 1.0, name: str | None = None
    ) -> Workload:
        """All sums from the first cell on of an ordered attribute."""
        return self._shaped("prefixes", along, by, weight, name)

    def hierarchy(
        self,
        along: str | Sequence[str],
        *,
        branch: int = 2,
        by: Sequence[str] = (),
        weight: float = 1.0,
        name: str | None = None,
    ) -> Workload:
        """The sums over all nodes of a tree over an ordered attribute."""
        return self._shaped("hierarchy", along, by, weight, name, branch=count("branch", branch, least=2))

    def rows(
        self,
        matrix: Any,
        along: str | None = None,
        *,
        by: Sequence[str] = (),
        weight: float = 1.0,
        name: str | None = None,
    ) -> Workload:
        """Any rows over the cells of one attribute, `along`, which may be left out where the schema has only one."""
        if along is None and len(self.schema.attributes) > 1:
            raise ValueError("name the attribute that the rows go along")
        place = 0 if along is None else self.schema.index(along)
        given = finite("matrix", matrix)
        size = self.schema.sizes[place]
        if given.ndim != 2 or given.shape[1] != size or not given.any() or given.size > _MOST_ROWS:
            raise ValueError(f"matrix must have {size} columns and a row that asks something, got shape {given.shape}")
        chosen = self.schema.attributes[place].name
        return self._shaped("rows", chosen, by, weight, name, given=given)

    def sums(self, measure: str, *by: str, weight: float = 1.0) -> Workload:
        """The sums of a measure by these attributes; a weight of 1 is one over the square of its bound."""
        return self._with([self._term(self._cells(by), 1 + self.schema.measure(measure), weight, None)])

    def means(self, measure: str, *by: str, weight: float = 1.0) -> Workload:
        """Counts and sums of a measure by these attributes: what `release.means` divides."""
        counts = self._term(self._cells(by), 0, weight, None)
        asked = [term for term in self.terms if not term.measure and term.attributes == counts.attributes]
        known = any(all(factor.shape == "cells" for _, factor in term.factors) for term in asked)
        return (self if known else self._with([counts])).sums(measure, *by, weight=weight)

    def term(self, name: Any) -> Term:
        """A group of queries by name."""
        for term in self.terms:
            if isinstance(name, str) and term.name == name:
                return term
        shown = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
        raise ValueError(f"the workload has no group {shown}")

    def table(self, measure: int, by: Sequence[str]) -> Term:
        """The group that asks for each cell of these attributes: counts (0), or sums of the k-th measure."""
        measure = count("measure", measure, least=0)
        places = tuple(sorted(self.schema.index(name) for name in by))
        for term in self.terms:
            plain = all(factor.shape == "cells" for _, factor in term.factors)
            if plain and term.attributes == places and term.measure == measure:
                return term
        raise ValueError(
            "the workload does not ask counts and sums of that measure by these attributes: use means(...)"
        )

    def calibrate(self, *, epsilon: float, delta: float, **options: Any) -> WorkloadMechanism | AnswerMechanism:
        """The least-error mechanism for the workload; see `workloads.calibrate`."""
        from shapedp.workloads.calibration import calibrate

        return calibrate(self, epsilon=epsilon, delta=delta, **options)

    def hull(self, adjacency: Adjacency) -> Hull:
        """What one person can change of all answers in a row: a set for `calibrate` and `advise`; small workloads only.

        A record outside the domains adds nothing: under "replace" a record may also come or go. A person with k rows
        changes k times as much, no less: all k may be alike (see `WorkloadMechanism`).
        """
        one_of("adjacency", adjacency, ADJACENCIES)
        if self.max_groups is not None:
            raise ValueError("what a person with rows in several groups changes is not listed: leave max_groups out")
        cells = math.prod(self.schema.sizes)
        corners = self.schema.corners() * self.schema.steps()
        if not self.terms or cells * len(corners) * len(self) > _MOST_ROWS:
            raise ValueError("the workload is empty, or too large to list what a record changes of each answer")
        rows = []
        for cell in itertools.product(*map(range, self.schema.sizes)):
            parts = []
            for term in self.terms:
                one: Any = np.ones(1)
                for place, factor in term.factors:
                    one = np.kron(one, factor.matrix[:, cell[place]])
                parts.append(np.multiply.outer(corners[:, term.measure], one))
            rows.append(np.hstack(parts))
        listed = np.vstack(rows) * self.max_rows
        if adjacency == "replace":
            listed = np.vstack([listed, np.zeros((1, listed.shape[1]))])
        return Hull(listed, differences=adjacency == "replace", adjacency=adjacency)

    def exact(self, x: Any) -> NDArray[Any]:
        """All answers in a row WITHOUT noise, in the order of `hull`: what a mechanism on that set releases.

        x is a table, as for `WorkloadMechanism.release`.
        """
        from shapedp.workloads.counting import exact_answers

        return exact_answers(self, x)

    def advise(self, *, epsilon: float, delta: float, adjacency: Adjacency = "add-remove") -> list[Advice]:
        """Every kind of noise for all answers together, ranked by weighted error; see `workloads.calibrate`.

        Where the workload is small, other families of noise on its hull are ranked with them.
        """
        from shapedp.workloads.calibration import advice

        return advice(self, epsilon=epsilon, delta=delta, adjacency=adjacency)

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `workload_from_json` restores an equal workload."""
        return {**self.schema.to_json(), "terms": [term.to_json() for term in self.terms], **self.bounds()}


def workload_from_json(data: Any) -> Workload:
    """What `Workload.to_json` wrote."""
    if not isinstance(data, Mapping) or not isinstance(data.get("terms"), list):
        raise ValueError("not a workload: a JSON object with attributes, measures and terms is expected")
    schema = Schema.of(data["attributes"], data.get("measures"))
    bounds = {name: data[name] for name in ("max_rows", "max_groups") if name in data}
    if None in bounds.values():
        raise ValueError("max_rows and max_groups must be whole numbers")
    return Workload(schema, terms=[_term(schema, one) for one in data["terms"]], **bounds)


def _term(schema: Schema, data: Any) -> Term:
    factors = []
    for place, written in data["factors"]:
        at = count("an attribute's place", place, least=0)
        if at >= len(schema.sizes) or written.get("shape") not in SHAPES:
            raise ValueError("a term names an attribute or a shape that does not exist")
        size, given = schema.sizes[at], None
        if written["shape"] == "rows":
            given = decode("rows", written["rows"]).reshape(-1, size)
        factors.append((at, Factor(written["shape"], size, given, count("branch", written.get("branch", 2), least=2))))
    places = [place for place, _ in factors]
    measure = count("measure", data["measure"], least=0)
    if places != sorted(set(places)) or measure > len(schema.measures) or not isinstance(data["name"], str):
        raise ValueError("a term names an attribute twice, or a measure that does not exist")
    return Term(data["name"], tuple(factors), measure, positive("weight", data["weight"]))
