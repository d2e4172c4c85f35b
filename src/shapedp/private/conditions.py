"""Conditions on rows: comparisons, lists, missing cells, and what and/or/not make of them.

Guarantee: a condition is true or false for every row and never fails. A missing cell compares to false, so `~(x > 1)`
is true for it. What a condition says of a row depends on that row alone.
"""

from __future__ import annotations

import ast
import contextlib
import keyword
import operator
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from shapedp.boundary.values import plainest, whole_text

Kinds = Mapping[str, str]  # "number", "text" or "boolean" by column
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DEEPEST = 64


def kind_of(value: Any) -> str:
    """The kind of a public value: a number, a text or a truth value; raises for any other."""
    value = plainest(value)
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        whole_text("a text that cells are compared with", value)
        return "text"
    if isinstance(value, int | float) and abs(value) <= sys.float_info.max:
        return "number"
    raise TypeError(f"a column is compared with a finite number, a text or a truth value, not {type(value).__name__}")


def literal(value: Any) -> Any:
    """A public value for the database; floats as text in full, so that every database reads the same number."""
    import ibis

    own = plainest(value)
    if isinstance(own, int) and not -(1 << 63) <= own < 1 << 63:
        own = float(own)
    return ibis.literal(repr(own)).cast("float64") if isinstance(own, float) else ibis.literal(own)


class Condition(ABC):
    """A condition on rows; combine several with &, | and ~.

    Example:
        >>> (col("age") >= 18) & ~col("sex").isin(["F", "M"])
        ((age >= 18) & ~(sex in ['F', 'M']))
    """

    def __and__(self, other: Condition) -> Condition:
        return _Joined("&", (self, _condition(other)))

    def __or__(self, other: Condition) -> Condition:
        return _Joined("|", (self, _condition(other)))

    def __invert__(self) -> Condition:
        return _Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a condition on rows is not true or false by itself: combine with &, | and ~, in parentheses")

    def __init_subclass__(cls) -> None:
        if cls.__module__ != __name__:  # what it says could depend on other rows, and nobody would know
            raise TypeError("conditions are made of comparisons of sdp.col(...), and not by classes of one's own")

    @abstractmethod
    def columns(self) -> frozenset[str]:
        """The columns it reads."""

    @abstractmethod
    def check(self, kinds: Kinds) -> None:
        """Refuse a comparison that the types of the columns do not allow."""

    @abstractmethod
    def sql(self, cells: Mapping[str, Any]) -> Any:
        """The condition for the database; `cells` holds its columns."""

    def known(self) -> frozenset[str]:
        """Columns that are not missing in any row for which it is true."""
        return frozenset()

    def conjuncts(self) -> tuple[Condition, ...]:
        """Conditions that all hold where this one does."""
        return (self,)


def _condition(value: Any) -> Condition:
    if not isinstance(value, Condition):
        raise TypeError(f"a condition on rows was expected, such as sdp.col('age') >= 18, got {type(value).__name__}")
    return value


@dataclass(frozen=True, eq=False)
class Column:
    """A column by name: compare it, or ask `isin`, `between` or `is_null`.

    Example:
        >>> Column("age").between(18, 64)
        ((age >= 18) & (age <= 64))
    """

    name: str

    def __post_init__(self) -> None:
        given: Any = self.name
        if not isinstance(given, str) or not given:
            raise TypeError("a column is named by a text that is not empty")
        object.__setattr__(self, "name", whole_text("the name of a column", given))

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return _Compared(self.name, "==", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return _Compared(self.name, "!=", other)

    def __lt__(self, other: Any) -> Condition:
        return _Compared(self.name, "<", other)

    def __le__(self, other: Any) -> Condition:
        return _Compared(self.name, "<=", other)

    def __gt__(self, other: Any) -> Condition:
        return _Compared(self.name, ">", other)

    def __ge__(self, other: Any) -> Condition:
        return _Compared(self.name, ">=", other)

    __hash__ = None  # type: ignore[assignment]

    def isin(self, values: Iterable[Any]) -> Condition:
        """Whether the cell is one of these values."""
        return _Listed(self.name, tuple(values) if not isinstance(values, str) else (values,))

    def between(self, low: Any, high: Any) -> Condition:
        """Whether the cell lies between two values, both included."""
        return _Joined("&", (_Compared(self.name, ">=", low), _Compared(self.name, "<=", high)))

    def is_null(self) -> Condition:
        """Whether the cell is missing: empty, no number in a column of numbers, or NaN."""
        return _Missing(self.name)

    def __repr__(self) -> str:
        return _shown(self.name)


def _shown(name: str) -> str:
    """A name that cannot be taken for a value or for a part of a condition."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"col({name!r})"


def col(name: str) -> Column:
    """A column, for conditions.

    Parameters: the name of the column.
    Returns: a `Column`, which is compared with values or with another column.

    Example:
        >>> col("hours") > 40
        (hours > 40)
    """
    return Column(name)


@dataclass(frozen=True, eq=False)
class _Compared(Condition):
    name: str
    sign: str
    other: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "other", plainest(self.other))
        if not isinstance(self.other, Column):
            kind_of(self.other)

    def columns(self) -> frozenset[str]:
        return frozenset({self.name, *([self.other.name] if isinstance(self.other, Column) else [])})

    def check(self, kinds: Kinds) -> None:
        kind = kinds[self.name]
        other = kinds[self.other.name] if isinstance(self.other, Column) else kind_of(self.other)
        _comparable(self.name, kind, other)
        if kind == "boolean" and self.sign not in ("==", "!="):
            raise ValueError(f"{self.name!r} holds truth values: compare it with == or !=")

    def sql(self, cells: Mapping[str, Any]) -> Any:
        other = cells[self.other.name] if isinstance(self.other, Column) else literal(self.other)
        return _OPERATORS[self.sign](cells[self.name], other).fill_null(False)

    def known(self) -> frozenset[str]:
        return self.columns()

    def __repr__(self) -> str:
        return f"({_shown(self.name)} {self.sign} {self.other!r})"


@dataclass(frozen=True, eq=False)
class _Listed(Condition):
    name: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError(f"isin needs one value at least for {self.name!r}")
        object.__setattr__(self, "values", tuple(map(plainest, self.values)))
        for value in self.values:
            kind_of(value)

    def columns(self) -> frozenset[str]:
        return frozenset({self.name})

    def check(self, kinds: Kinds) -> None:
        for value in self.values:
            _comparable(self.name, kinds[self.name], kind_of(value))

    def sql(self, cells: Mapping[str, Any]) -> Any:
        return cells[self.name].isin([literal(value) for value in self.values]).fill_null(False)

    def known(self) -> frozenset[str]:
        return self.columns()

    def __repr__(self) -> str:
        return f"({_shown(self.name)} in {list(self.values)!r})"


@dataclass(frozen=True, eq=False)
class _Missing(Condition):
    name: str

    def columns(self) -> frozenset[str]:
        return frozenset({self.name})

    def check(self, kinds: Kinds) -> None:
        pass

    def sql(self, cells: Mapping[str, Any]) -> Any:
        return cells[self.name].isnull()

    def __repr__(self) -> str:
        return f"({_shown(self.name)} is None)"


@dataclass(frozen=True, eq=False)
class _Not(Condition):
    one: Condition

    def columns(self) -> frozenset[str]:
        return self.one.columns()

    def check(self, kinds: Kinds) -> None:
        self.one.check(kinds)

    def sql(self, cells: Mapping[str, Any]) -> Any:
        return ~self.one.sql(cells)

    def known(self) -> frozenset[str]:
        return self.one.columns() if isinstance(self.one, _Missing) else frozenset()

    def __repr__(self) -> str:
        return f"~{self.one!r}"


@dataclass(frozen=True, eq=False)
class _Joined(Condition):
    sign: str
    parts: tuple[Condition, ...]

    def columns(self) -> frozenset[str]:
        return frozenset().union(*(part.columns() for part in self.parts))

    def check(self, kinds: Kinds) -> None:
        for part in self.parts:
            part.check(kinds)

    def sql(self, cells: Mapping[str, Any]) -> Any:
        first, *others = (part.sql(cells) for part in self.parts)
        for other in others:
            first = first & other if self.sign == "&" else first | other
        return first

    def known(self) -> frozenset[str]:
        each = [part.known() for part in self.parts]
        return frozenset().union(*each) if self.sign == "&" else frozenset.intersection(*each)

    def conjuncts(self) -> tuple[Condition, ...]:
        return tuple(one for part in self.parts for one in part.conjuncts()) if self.sign == "&" else (self,)

    def __repr__(self) -> str:
        return "(" + f" {self.sign} ".join(map(repr, self.parts)) + ")"


def _comparable(name: str, kind: str, other: str) -> None:
    if kind != other:
        article = {"number": "a number", "text": "a text", "boolean": "a truth value"}
        raise ValueError(
            f"{name!r} is a column of kind {kind} and cannot be compared with {article[other]}: "
            f"compare it with {article[kind]}, or declare its type (types=)"
        )


def parsed(text: str) -> Condition:
    """A condition as a person writes it: `age >= 18 and not sex in ["F"] and hours is not None`.

    A name that is no Python name is written col("hours-per-week").
    """
    found = None
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        found = _read(ast.parse(text.strip(), mode="eval").body, 0)
    if found is None:
        plain = re.sub(r"""("[^"]*"|'[^']*')""", "''", text)
        hint = next((f": {hint}" for sign, hint in _HINTS if re.search(sign, plain)), "")
        raise ValueError(
            "where must compare columns with values, joined by and, or and not, such as age >= 18 and sex in ['F']"
            + hint
        ) from None
    return found


_HINTS = (  # what people write who know SQL, and what to write instead
    (r"(?<![=<>!])=(?!=)", "'equal' is written =="),
    (r"<>", "'not equal' is written !="),
    (r"\b(AND|OR|NOT|IN|IS)\b", "these words are written in small letters"),
    (r"(?i)\bnull\b", "'missing' is written hours is None, 'known' hours is not None"),
    (r"(?i)\bbetween\b", "two comparisons are joined, as in age >= 18 and age <= 65"),
    (r"(?i)\blike\b", "there are no patterns: list the values, as in sex in ['F', 'M']"),
    (r"(?i)\bby\b", "'by' comes before 'where', as in count by sex where age >= 18"),
    (r"[&|~]", "these are written and, or, not"),
    (r"[<>]=?\s*\w+\s*[<>]", "each comparison has two sides, as in age >= 18 and age <= 65"),
    (
        r"\w\s*[-+*/%]\s*\w|\b(?!(?:and|or|not|in|col)\b)\w+\(",
        "there is no arithmetic and no function, and a name that is no word is written col('hours-per-week')",
    ),
    (r"\A\s*(not\s+)?\w+\s*\Z|\b(and|or)\s+(not\s+)?\w+\s*\Z", "a truth value is compared too: member == True"),
)


def _read(node: ast.expr, depth: int) -> Condition | None:
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _read(node.operand, depth + 1)
        return None if inner is None else ~inner
    if isinstance(node, ast.BoolOp):
        parts = [_read(value, depth + 1) for value in node.values]
        whole = tuple(part for part in parts if part is not None)
        return _Joined("&" if isinstance(node.op, ast.And) else "|", whole) if len(whole) == len(parts) else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _comparison(node.left, node.ops[0], node.comparators[0])
    return None


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def _comparison(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Condition | None:
    name, other = _column(left), _column(right)
    if name is None:
        return None
    if isinstance(sign, ast.Is | ast.IsNot):
        missing = isinstance(right, ast.Constant) and right.value is None
        return None if not missing else _Missing(name) if isinstance(sign, ast.Is) else ~_Missing(name)
    if other is not None:
        return _Compared(name, _SIGNS[type(sign)], Column(other)) if type(sign) in _SIGNS else None
    try:
        value = ast.literal_eval(right)
    except (ValueError, TypeError, SyntaxError):
        return None
    if isinstance(sign, ast.In | ast.NotIn):
        listed = _Listed(name, tuple(value)) if isinstance(value, list | tuple) else None
        return listed if listed is None or isinstance(sign, ast.In) else ~listed
    return _Compared(name, _SIGNS[type(sign)], value)


def _column(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "col"
    if called and isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
        name = node.args[0].value
        return name if isinstance(name, str) and name else None
    return None
