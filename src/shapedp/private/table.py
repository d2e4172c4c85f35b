"""A private table: rows of people, with public bounds and domains, that answers questions with noise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from shapedp.boundary.values import boolean, plainest, printable, whole_text
from shapedp.numerics.checks import count as whole
from shapedp.numerics.checks import one_of
from shapedp.private import hints
from shapedp.private.conditions import Condition, kind_of, parsed
from shapedp.private.questions import DRAWN, Aggregate, Question
from shapedp.private.sources import KINDS, Rows, names_persons, rows_of
from shapedp.workloads import Attribute, Measure

if TYPE_CHECKING:
    from shapedp.private.answers import Answers
    from shapedp.private.mixed import MixedPlan
    from shapedp.private.plans import TablePlan

NOBODY = "Each row is another person: several rows of one person cost several times as much."
_OWN = ("conditions", "groups")  # of a table that was filtered or grouped
PRIVATE = "private"  # instead of bounds or a domain
_MISSING: Any = object()
_MEMORY = re.compile(r"\A([0-9]{1,6}(?:\.[0-9]{1,3})?)([KMGT])i?B\Z")
_LEAST_MEMORY = 0.1  # GB: with less the database fails on a million rows, once the budget is spent


@dataclass(frozen=True, eq=False)
class PrivateTable:
    """Rows of people that are never shown: `group_by`, `where`, and the verbs make questions, `ask` answers them.

    Made by `sdp.table`. Nothing is read before a question is released.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> frame = pd.DataFrame({"id": [1, 1, 2], "hours": [10.0, 20.0, 30.0]})
        >>> t = sdp.table(frame, person="id", rows=2, bounds={"hours": (0, 80)})
        >>> t.mean("hours").release(epsilon=1.0, delta=1e-6).certificate.verdict
        'certified'
    """

    source: Rows
    person: str | None
    rows: int
    measures: Mapping[str, Measure]
    attributes: Mapping[str, Attribute]
    kinds: Mapping[str, str]
    conditions: tuple[Condition, ...] = ()
    groups: tuple[Attribute, ...] = ()
    memory: str | None = None
    groups_touched: int | None = None
    unknown_bounds: frozenset[str] = frozenset()
    unknown_keys: frozenset[str] = frozenset()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hints.refused(self, hints.TABLE, name)

    def __post_init__(self) -> None:
        touched = None if self.groups_touched is None else whole("groups", self.groups_touched)
        made = {"rows": whole("rows", self.rows), "groups_touched": touched, "person": plainest(self.person)}
        for name, value in made.items():
            object.__setattr__(self, name, value)
        person, kinds = self.person, self.source.kinds
        if person is None:
            if self.rows != 1 or touched is not None:
                raise ValueError("rows= and groups= bound what one person has: name the column of persons with person=")
            return
        if person not in kinds:
            self.kind(person)
        if not names_persons(kinds[person]):
            raise ValueError(
                f"persons are told apart by whole numbers or texts; {person!r} is a column of type {kinds[person]}: "
                "turn it into texts"
            )

    def __repr__(self) -> str:
        columns = ", ".join(f"{printable(name)} ({kind or 'not declared'})" for name, kind in self.source.kinds.items())
        limits = f" where {' & '.join(map(repr, self.conditions))}" if self.conditions else ""
        return f"PrivateTable of {columns}{limits}. {self.sentence}"

    def where(self, condition: Condition | str) -> PrivateTable:
        """Only the rows for which a condition holds: `sdp.col("age") >= 18`, or the text "age >= 18".

        A row filter costs nothing. A missing cell compares to false.
        """
        found = parsed(condition) if isinstance(condition, str) else condition
        if not isinstance(found, Condition):
            raise TypeError("where takes a condition such as sdp.col('age') >= 18, or a text such as 'age >= 18'")
        for name in sorted(found.columns()):
            self.kind(name)
        found.check({name: self.kind(name) for name in found.columns()})
        return replace(self, conditions=(*self.conditions, *found.conjuncts()))

    def group_by(self, *columns: str | Sequence[str]) -> PrivateTable:
        """The same table by groups: one for each combination of the values in the domains of these columns."""
        listed = [name for one in columns for name in (one if isinstance(one, list | tuple) else [one])]
        if not listed:
            raise ValueError("group_by needs one column at least, whose domain was given in domains=")
        return replace(self, groups=(*self.groups, *(self._attribute(name) for name in listed)))

    def agg(self, *unnamed: Aggregate, **asked: Aggregate) -> Question:
        """Several aggregates of each group; the names are those of the columns of the answer.

        One without a name is called after what it computes: `count`, `mean_hours`.
        """
        if not all(isinstance(one, Aggregate) for one in (*unnamed, *asked.values())):
            raise TypeError(
                "agg takes sdp.count(), sdp.sum(...), sdp.mean(...), sdp.variance(...), sdp.median(...) and "
                "sdp.quantile(...), named or not"
            )
        for one in unnamed:
            if asked.setdefault(one.name, one) is not one:
                raise ValueError(f"two aggregates are called {one.name}: name one of them")
        for one in asked.values():
            if one.column is not None:
                self._answers(one)
        if len(asked) > 1 and any(one.verb == "top_k" for one in asked.values()):
            raise ValueError("top_k has rows of its own: make it a question of its own, and ask both together")
        for name in asked:
            whole_text("the name of an aggregate", name)
        if not asked:
            raise ValueError("agg needs one aggregate at least, such as people=sdp.count()")
        made = Question(replace(self, groups=()), self.groups, dict(asked))
        made.check()
        return made

    def count(self) -> Question:
        """The number of rows of each group."""
        return self.agg(count=Aggregate("count"))

    def sum(self, column: str) -> Question:
        """The sum of a column in each group."""
        return self.agg(sum=Aggregate("sum", column))

    def mean(self, column: str) -> Question:
        """The mean of a column in each group."""
        return self.agg(mean=Aggregate("mean", column))

    def variance(self, column: str) -> Question:
        """The variance of a column in each group."""
        return self.agg(variance=Aggregate("variance", column))

    def median(self, column: str, *, grid: Any = None, interval: bool = True) -> Question:
        """The median of a column in each group; see `sdp.quantile`."""
        return self.agg(median=Aggregate("median", column, grid=grid, interval=interval))

    def quantile(self, column: str, level: float, *, grid: Any = None, interval: bool = True) -> Question:
        """A quantile of a column in each group; see `sdp.quantile`."""
        return self.agg(quantile=Aggregate("quantile", column, level, grid=grid, interval=interval))

    def quantiles(self, column: str, levels: Sequence[float], *, grid: Any = None, interval: bool = True) -> Question:
        """Several quantiles of a column in each group; the columns of the answer are called q0.25 and so on."""
        interval = boolean("interval", interval)
        asked = [Aggregate("quantile", column, level, grid=grid, interval=interval) for level in levels]
        named = {f"q{float(one.fraction):g}": one for one in asked}
        if len(named) < len(asked):
            raise ValueError("a quantile is asked twice: name each level once")
        return self.agg(**named)

    def top_k(self, column: str, k: int) -> Question:
        """The k values of a column's domain that most rows have, in each group, the most frequent first."""
        return self.agg(top=Aggregate("top_k", column, k=k))

    def histogram(self, column: str, edges: Sequence[float] | None = None) -> Question:
        """The number of rows in each interval between `edges`, or in each cell of the column's domain."""
        column = plainest(column)
        if edges is None:
            if column in self.source.kinds and column not in self.attributes and self.kind(column) == "number":
                raise ValueError(f"a histogram of numbers needs edges, such as histogram({column!r}, [0, 20, 40, 60])")
            return self.group_by(column).count()
        self._numbers(column, "a histogram between edges")
        given: Any = edges
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError("the edges of a histogram are rising numbers, such as [0, 20, 40, 60]")
        made = Attribute.of(column, {"edges": list(given)})
        return replace(self, groups=(*self.groups, made)).count()

    def drop_missing(self, *columns: str) -> PrivateTable:
        """Only the rows in which none of these columns is missing."""
        from shapedp.private.conditions import col

        found = self
        for name in columns:
            found = found.where(~col(name).is_null())
        return found

    def plan(self, *questions: Question, epsilon: float, delta: float, **options: Any) -> TablePlan | MixedPlan:
        """The noise for these questions together, and every standard error of counts and sums; reads no row.

        Parameters: the questions, the claim, `adjacency` ("add-remove" unless told), `records`, a public bound on the
        number of rows (2^31 unless told), `first`, the share of epsilon for private keys and bounds (0.2 unless told),
        `dropped`, the share of epsilon spent on how many rows the bounds per person drop (nothing unless told),
        `confidence`, that of the intervals (0.95 unless told), and `noise`: "least" unless told, the kind of least
        error at this claim; "gaussian" errs more where few answers are asked, and a ledger fits more releases of it.

        Returns: a `TablePlan`, or a `MixedPlan` where quantiles, unknown keys and bounds or rows dropped are asked for.
        """
        from shapedp.private.plans import planned

        return planned(self, questions, epsilon=epsilon, delta=delta, **options)

    def ask(
        self,
        *questions: Question,
        epsilon: float,
        delta: float,
        ledger: Any = None,
        dataset: str | None = None,
        rng: Any = None,
        **options: Any,
    ) -> Answers:
        """Answer several questions together: they share the noise and the budget, and have one certificate.

        Parameters
        ----------
        questions: what `count`, `sum`, `mean`, `variance`, `histogram`, `median`, `quantile`, `quantiles`, `top_k` and
            `agg` return.
        epsilon, delta: the claim for all of them together.
        ledger, dataset: a `Ledger` and the dataset in it whose budget is spent.
        options: as for `plan`. `rng` replaces secure randomness in tests.
        """
        plan = self.plan(*questions, epsilon=epsilon, delta=delta, **options)
        return plan.release(ledger=ledger, dataset=dataset, rng=rng)

    @property
    def sentence(self) -> str:
        """Who a person is, in words that the certificate repeats."""
        if self.person is None:
            return NOBODY
        most = f"at most {self.rows} row(s) of each"
        if self.groups_touched is not None:
            most += f" in each of at most {self.groups_touched} group(s)"
        return (
            f"A person is a value of the column {self.person!r}; {most} are counted, chosen by a keyed hash. "
            "Rows without one are left out."
        )

    @property
    def kept(self) -> dict[str, int]:
        """How much is kept of one person, in the words of a workload's bounds."""
        several = {"max_rows": self.rows} if self.rows != 1 else {}
        return several if self.groups_touched is None else {**several, "max_groups": self.groups_touched}

    def like(self, other: PrivateTable) -> bool:
        """Whether both are one table, possibly under different conditions."""
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(self) if one.name not in _OWN)

    def kind(self, name: Any) -> str:
        """The kind of a column: number, text or boolean."""
        name = plainest(name)
        if not isinstance(name, str) or name not in self.source.kinds:
            shown = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
            raise ValueError(f"the table has no column {shown}; it has {', '.join(map(printable, self.source.kinds))}")
        kind = self.kinds.get(name) or self.source.kinds[name]
        if not kind:
            raise ValueError(
                f"the type of {name!r} is not known: declare it as 'number', 'text' or 'boolean', such as "
                f"types={{{name!r}: 'text'}} (--type {name}=text)"
            )
        if kind not in KINDS:
            raise ValueError(f"{name!r} is a column of type {kind}, which is not read: turn it into numbers or texts")
        return kind

    def _numbers(self, name: str, what: str) -> None:
        if self.kind(name) == "text":
            raise ValueError(f"{name!r} is a column of text: {what} needs numbers. Name another column")

    def _measure(self, one: Aggregate) -> None:
        name: Any = one.column
        if self.kinds.get(name) or self.source.kinds.get(name) != "":  # bounds say that it holds numbers
            self._numbers(name, one.verb)
        if name not in self.measures and name not in self.unknown_bounds:
            raise ValueError(
                f"{one!r} needs public bounds: pass bounds={{{name!r}: (low, high)}} to sdp.table, or 'private' "
                "instead of a pair, which spends a part of the budget on them"
            )

    def _answers(self, one: Aggregate) -> None:
        """Refuse an aggregate that the types and what was declared do not allow."""
        if one.verb == "top_k":
            candidates = self._attribute(one.column)
            if one.column in self.unknown_keys:
                raise ValueError("top_k chooses among public values: list them in domains=")
            if any(group.name == one.column for group in self.groups):
                raise ValueError(f"top_k({one.column}) cannot be grouped by {one.column!r} itself")
            if (one.k or 0) >= candidates.size:
                raise ValueError(f"{one!r} chooses among {candidates.size} values: k must be below that")
        elif one.verb in DRAWN and isinstance(one.grid, tuple):
            self.kind(one.column)
            self._numbers(str(one.column), one.verb)
        else:
            self._measure(one)

    def _attribute(self, name: Any) -> Attribute:
        name = plainest(name)
        if not isinstance(name, str) or name not in self.source.kinds or name in self.attributes:
            self.kind(name)
        if name not in self.attributes:
            raise ValueError(
                f"the groups of {name!r} must be public: pass domains={{{name!r}: [...]}} with all values to sdp.table"
                f" (--domain {name}=A,B,...), or 'private' instead of a list, which spends a part of the budget on "
                "their names"
            )
        return self.attributes[name]


def table(
    source: Any,
    *,
    person: str | None = _MISSING,
    rows: int = 1,
    groups: int | None = None,
    bounds: Mapping[str, Any] | str | None = None,
    domains: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
    memory: str | None = None,
) -> PrivateTable:
    """A private table: rows of people that answer questions with noise.

    Parameters
    ----------
    source: a pandas or polars frame, Arrow data, the path of a csv, parquet or feather file (or several of one kind),
        or a table of Ibis.
    person: the column that says whose row it is; None says that each row is another person.
    rows: how many rows of one person count at most; the others are dropped.
    groups: in how many groups one person counts at most; `rows` then bounds the rows in each of them. Gaussian
        noise grows with the root of `groups`, for one question by group, but in proportion to `rows`.
    bounds: (low, high) by column: values beyond are clipped. Known before the data are seen. "private" instead of a
        pair, or of the mapping, spends a share of the budget on bounds between powers of two.
    domains: the values of the columns that are grouped by: a list, a size, {"edges": [...]}, or {"labels": [...],
        "other": True}, with which all other values are one more group. Without it they are in no group. "private" for
        one column spends a share of the budget on the names that may be published.
    types: "number", "text" or "boolean" by column, for csv files and pandas columns of objects. A column with bounds
        holds numbers, one with a domain what the domain holds.
    memory: how much of it DuckDB takes, such as "4GB" (80% of the machine's unless told), 100MB at least; the rest goes
        to disk.

    Returns: a `PrivateTable`. Nothing is read but names and types.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sex": ["F", "M", "F"], "hours": [40, 38, 20]})
    >>> t = table(frame, person=None, bounds={"hours": (0, 100)}, domains={"sex": ["F", "M"]})
    >>> answer = t.group_by("sex").mean("hours").release(epsilon=1.0, delta=1e-6)
    >>> list(answer.columns)
    ['sex', 'mean', 'mean_error', 'mean_low', 'mean_high']
    """
    if person is _MISSING:
        raise TypeError(
            "say who a person is: person='id' names the column that holds a person's id; "
            "person=None says that each row is another person"
        )
    found = rows_of(source)
    ends, hidden = _split(_named("bounds", _all_numbers(found, types) if _is_private(bounds) else bounds))
    listed, keys = _split(_named("domains", domains))
    measures = {name: Measure.of(name, pair) for name, pair in ends.items()}
    attributes = {name: Attribute.of(name, domain) for name, domain in listed.items()}
    kinds = _declared(found, measures, attributes, _named("types", types))
    if not any(kind in (*KINDS, "") for kind in found.kinds.values()):
        raise ValueError("the table has no column of numbers, texts or truth values")
    if memory is not None and (found.table is not None or not _enough(memory)):
        raise ValueError(
            "memory= is written such as '4GB', of 100MB at least; a table of Ibis has the limits of its own database"
        )
    kinds |= {name: "number" for name in hidden if found.kinds.get(name) == "" and name not in kinds}
    made = PrivateTable(
        found,
        person,
        rows,
        measures,
        attributes | {name: Attribute.of(name, [PRIVATE]) for name in keys},
        kinds,
        memory=memory,
        groups_touched=groups,
        unknown_bounds=hidden,
        unknown_keys=keys,
    )
    for name in (*measures, *attributes, *sorted(hidden | keys)):
        made.kind(name)
    for name in (*measures, *sorted(hidden)):
        made._numbers(name, "a pair of bounds")
    for name, attribute in attributes.items():
        _fits(made, name, attribute)
    return made


def _enough(memory: Any) -> bool:
    """Whether this says how much memory the database takes, and it can work with that."""
    found = _MEMORY.match(memory) if isinstance(memory, str) else None
    return found is not None and float(found[1]) * 1000.0 ** ("KMGT".index(found[2]) - 2) >= _LEAST_MEMORY


def _named(what: str, given: Any) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a mapping from names of columns, got {type(given).__name__}")
    return {plainest(name): one for name, one in (given or {}).items()}


def _is_private(one: Any) -> bool:
    return isinstance(one, str) and one == PRIVATE


def _split(given: Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """What is declared, and the names of what is private."""
    hidden = frozenset(name for name, one in given.items() if _is_private(one))
    return {name: one for name, one in given.items() if name not in hidden}, hidden


def _all_numbers(found: Rows, types: Mapping[str, str] | None) -> dict[str, str]:
    kinds = {**found.kinds, **_named("types", types)}
    return {name: PRIVATE for name, kind in kinds.items() if kind == "number"}


def _declared(
    found: Rows, measures: Mapping[str, Measure], attributes: Mapping[str, Attribute], types: Mapping[str, Any]
) -> dict[str, str]:
    """Kinds of the columns whose type does not tell: declared, or those of their bounds and domains."""
    for name, kind in types.items():
        one_of(f"the type of {name!r}", kind, tuple(KINDS))
        own = found.kinds.get(name, "")
        if name not in found.kinds or (own and own != kind):
            raise ValueError(
                f"types= declares {name!r}, which the table "
                + (f"holds as {own}: leave it out, or convert it before" if own else "does not have")
            )
    said = {name: _domain_kind(one) for name, one in attributes.items()} | dict.fromkeys(measures, "number")
    return {name: kind for name, kind in {**said, **types}.items() if found.kinds.get(name) == ""}


def _domain_kind(attribute: Attribute) -> str:
    kinds = {kind_of(label) for label in attribute.labels} if attribute.labels is not None else {"number"}
    if len(kinds) > 1:
        raise ValueError(f"the labels of {attribute.name!r} must be of one kind: all texts, or all numbers")
    if kinds == {"number"} and any(float(label) != label for label in attribute.labels or ()):
        raise ValueError(f"the labels of {attribute.name!r} are beyond the whole numbers that floats hold: use texts")
    return kinds.pop()


def _fits(made: PrivateTable, name: str, attribute: Attribute) -> None:
    kind, domain = made.kind(name), _domain_kind(attribute)
    if kind != domain:
        raise ValueError(f"{name!r} is a column of kind {kind}, its domain one of kind {domain}: give values of {kind}")
