"""When a claim holds: a comparison of computed values, written as text in the data of the register."""

from __future__ import annotations

import ast
import operator
from typing import Any

from shapedp.papers.values import Values

_ARITHMETIC: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: dict[type[ast.cmpop], Any] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}
_FUNCTIONS: dict[str, Any] = {"min": min, "max": max, "abs": abs}


def holds(condition: str, values: Values) -> bool:
    """Whether a condition is true of the values.

    Parameters
    ----------
    condition: comparisons of sums, products, min, max and abs of numbers and value names, joined by `and`. The name
        `values` stands for all values.
    values: the numbers by name.

    Returns
    -------
    The truth of the condition. Raises ValueError for anything else than the above, KeyError for a name without value.

    >>> holds("exact <= claimed * (1 + 1e-9)", {"exact": 0.2, "claimed": 0.1})
    False
    """
    found = _value(ast.parse(condition, mode="eval").body, values)
    if not isinstance(found, bool):
        raise ValueError(f"a condition must compare values, got {condition!r}")
    return found


def _value(node: ast.expr, values: Values) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return tuple(values.values()) if name == "values" else values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _ARITHMETIC[type(op)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(one, values) for one in args))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
            sides = [_value(one, values) for one in (left, *others)]
            return all(_COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, sides[:-1], sides[1:], strict=True))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(one, values) for one in parts)
    raise ValueError(f"a condition cannot hold {ast.unparse(node)!r}")
