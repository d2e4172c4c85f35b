"""A workload as a person writes it: a table of attributes, measures and queries, as TOML gives it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shapedp.boundary.files import check_input
from shapedp.workloads.schema import Schema
from shapedp.workloads.workload import Workload

_LARGEST = 1 << 24  # bytes of a description
_EXAMPLE = 'such as marginals = [1, 2], marginal = ["age", "sex"], ranges = "age" or means = "hours"'
_BOUNDS = ("max_rows", "max_groups")
_OPTIONS = {
    "marginals": ("weight",),
    "marginal": ("weight", "name"),
    "total": ("weight",),
    "ranges": ("by", "weight", "name"),
    "prefixes": ("by", "weight", "name"),
    "hierarchy": ("branch", "by", "weight", "name"),
    "rows": ("along", "by", "weight", "name"),
    "sums": ("by", "weight"),
    "means": ("by", "weight"),
}


def read_workload(path: Path) -> Workload:
    """The workload that a TOML file describes: tables `attributes` and `measures`, a list `queries`, and `max_rows`."""
    check_input(path)
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{path}: more than {_LARGEST} bytes")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not TOML ({error})") from None
    try:
        return described_workload(data)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def described_workload(data: Mapping[str, Any]) -> Workload:
    """The workload of a mapping with the keys `attributes`, `measures`, `queries` and `max_rows`.

    Example:
        >>> queries = [{"marginals": [0, 1]}, {"ranges": "age"}]
        >>> len(described_workload({"attributes": {"age": 4, "sex": ["F", "M"]}, "queries": queries}))
        17
    """
    if unknown := sorted(set(data) - {"attributes", "measures", "queries", *_BOUNDS}):
        raise ValueError(
            f"a workload has attributes, measures, queries, max_rows and max_groups, not {', '.join(unknown)}"
        )
    queries, attributes = data.get("queries"), data.get("attributes")
    if not isinstance(queries, list) or not queries or not isinstance(attributes, Mapping):
        raise ValueError("a workload needs a table of attributes and a list of queries")
    bounds = {name: data[name] for name in _BOUNDS if name in data}
    made = Workload(Schema.of(attributes, data.get("measures")), **bounds)
    for query in queries:
        made = _added(made, query)
    return made


def _added(made: Workload, query: Any) -> Workload:
    kinds = [name for name in _OPTIONS if isinstance(query, Mapping) and name in query]
    if len(kinds) != 1:
        raise ValueError(f"a query names one kind, {_EXAMPLE}")
    kind = kinds[0]
    given, options = query[kind], {name: value for name, value in query.items() if name != kind}
    if unknown := sorted(set(options) - set(_OPTIONS[kind])):
        raise ValueError(f"a query of kind {kind!r} has no field {', '.join(unknown)}")
    if "by" in options and not isinstance(options["by"], list):
        raise TypeError(f"by must be a list of attributes in a query of kind {kind!r}")
    if kind in ("marginals", "marginal"):
        if not isinstance(given, list):
            raise TypeError(f"{kind} must be a list")
        return Workload.marginals(made, *given, **options) if kind == "marginals" else made.marginal(*given, **options)
    if kind == "total":
        return made.total(**options)
    if kind in ("sums", "means"):
        return getattr(made, kind)(given, *options.pop("by", []), **options)  # type: ignore[no-any-return]
    return getattr(made, kind)(given, **options)  # type: ignore[no-any-return]
