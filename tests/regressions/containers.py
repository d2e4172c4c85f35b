"""Every container that records come in, with cells that each can hold, odd ones among them."""

from __future__ import annotations

import datetime
from collections import UserList, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import parquet
from scipy import sparse

SECRET = "HIV+"


class Hostile:
    """A cell that fails whatever is asked of it."""

    def __float__(self) -> float:
        raise RuntimeError(SECRET)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError(SECRET)

    def __hash__(self) -> int:
        raise RuntimeError(SECRET)


class Own(Sequence):  # type: ignore[type-arg]
    """A sequence that numpy knows nothing about."""

    def __init__(self, cells: Any) -> None:
        self.cells = list(cells)

    def __getitem__(self, at: Any) -> Any:
        return self.cells[at]

    def __len__(self) -> int:
        return len(self.cells)


OBJECTS: list[Any] = [
    0.5, 1, 0, True, None, SECRET, "1", float("nan"), float("inf"), 10**400, 2**53 + 1, 1j, [1, 2], (1, 2), {"a": 1},
    Decimal("sNaN"), Decimal("0.25"), Fraction(1, 3), pd.NA, pd.NaT, np.ma.masked, np.float32(0.5), np.bool_(True),
    np.longdouble("1e4000"), b"\xff", datetime.date(2026, 11, 15), np.array([1, 2]), np.datetime64("NaT"), Hostile(),
]  # fmt: skip
FLOATS: list[Any] = [0.5, 1.0, 0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e300, 5e-324]
WHOLE: list[Any] = [0, 1, 2, 2**53 + 1, -(2**63), 2**63 - 1]
NULLS: list[Any] = [0.5, 1.0, 0.0, None, float("inf")]
WHOLE_NULLS: list[Any] = [0, 1, 2, None, 2**53 + 1]
MASKED: list[Any] = [0.5, 1.0, 0.0, np.ma.masked, float("inf")]
TEXT: list[Any] = [
    "0.5", "1", "0", " 0.5 ", "\x1c0.5", "0.5\x1f", "\x1d1\x1e", SECRET, "", "NA", "nan", "inf", "1e400", "1e-400",
    "1_0", "+1", "1.", ".5", "\u0661", "\udcff", "0x10", "1,5", '"', "a\nb", "9" * 400, "\x00", "\ufeff1",
    "x" * 3_000_000,
]  # fmt: skip


def objects(cells: list[Any]) -> np.ndarray:
    found = np.empty(len(cells), dtype=object)
    for i, one in enumerate(cells):
        found[i] = one
    return found


def masked(cells: list[Any], kind: Any = np.float64) -> np.ma.MaskedArray:
    hidden = [one is np.ma.masked for one in cells]
    if kind is object:
        return np.ma.MaskedArray(objects([1e6 if one is np.ma.masked else one for one in cells]), mask=hidden)
    return np.ma.MaskedArray(np.array([1e6 if h else c for h, c in zip(hidden, cells, strict=True)], kind), mask=hidden)


def coded(cells: list[Any]) -> pa.Array:
    """A dictionary column in which a null stands where another person's value would be read."""
    known = sorted({one for one in cells if one is not None})
    at = pa.array([None if one is None else known.index(one) for one in cells], pa.int32())
    return pa.DictionaryArray.from_arrays(at, pa.array(known, pa.float64()))


def long(cells: list[Any]) -> np.ndarray:
    return np.array([np.longdouble("1e4000") if one == float("inf") else np.longdouble(one) for one in cells])


VECTORS: dict[str, tuple[Callable[[list[Any]], Any], list[Any]]] = {
    "list": (list, OBJECTS),
    "tuple": (tuple, OBJECTS),
    "deque": (deque, OBJECTS),
    "UserList": (UserList, OBJECTS),
    "own sequence": (Own, OBJECTS),
    "values of a dict": (lambda cells: dict(enumerate(cells)).values(), OBJECTS),
    "objects": (objects, OBJECTS),
    "masked objects": (lambda cells: masked(cells, object), OBJECTS),
    "series of objects": (lambda cells: pd.Series(objects(cells), dtype=object), OBJECTS),
    "float64": (np.array, FLOATS),
    "longdouble": (long, FLOATS),
    "int64": (lambda cells: np.array(cells, np.int64), WHOLE),
    "masked": (masked, MASKED),
    "masked int64": (lambda cells: masked(cells, np.int64), [0, 1, 2, np.ma.masked, 2**53 + 1]),
    "series": (pd.Series, FLOATS),
    "Int64": (lambda cells: pd.Series(cells, dtype="Int64"), WHOLE_NULLS),
    "Float64": (lambda cells: pd.Series(cells, dtype="Float64"), NULLS),
    "Sparse": (lambda cells: pd.Series(cells, dtype="Sparse[float64]"), FLOATS),
    "category": (lambda cells: pd.Series(pd.Categorical(cells, categories=[0.0, 0.5, 1.0])), [0.5, 1.0, 0.0, None]),
    "category of integers": (lambda c: pd.Series(pd.Categorical(c, categories=[0, 1, 2, 2**53 + 1])), WHOLE_NULLS),
    "pandas Arrow": (lambda cells: pd.Series(pa.array(cells, pa.int64()), dtype="int64[pyarrow]"), WHOLE_NULLS),
    "pandas Arrow codes": (lambda cells: pd.Series(pd.arrays.ArrowExtensionArray(coded(cells))), NULLS),
    "Arrow": (lambda cells: pa.array(cells, pa.float64()), NULLS),
    "Arrow int64": (lambda cells: pa.array(cells, pa.int64()), WHOLE_NULLS),
    "Arrow decimal": (lambda c: pa.array(c, pa.decimal128(20, 2)), [Decimal(0), Decimal("0.5"), Decimal(1), None]),
    "Arrow codes": (coded, NULLS),
    "Arrow chunks of codes": (lambda cells: pa.chunked_array([coded(cells[:3]), coded(cells[3:])]), NULLS),
    "polars": (lambda cells: pl.Series(cells, dtype=pl.Float64), NULLS),
    "polars int64": (lambda cells: pl.Series(cells, dtype=pl.Int64), WHOLE_NULLS),
}  # fmt: skip


def table(column: Any, others: list[float]) -> pa.Table:
    """A table of two columns."""
    return pa.table({"a": pa.array(others), "b": column})


def csr(cells: list[Any], others: list[float]) -> Any:
    return sparse.csr_array(np.column_stack([others, np.array(cells, dtype=np.float64)]))


def dense(cells: Any, others: list[float]) -> Any:
    """Two columns side by side, of the type of the cells."""
    stack = np.ma.column_stack if isinstance(cells, np.ma.MaskedArray) else np.column_stack
    found = stack([np.array(others).astype(cells.dtype), np.zeros(len(others), cells.dtype)])
    found[:, 1] = cells
    return found


def nested(outer: Callable[[Any], Any], inner: Callable[[Any], Any]) -> Any:
    return lambda cells, others: outer([inner([one, cell]) for one, cell in zip(others, cells, strict=True)])


@dataclass(frozen=True)
class Rows:
    """A container of rows [other, cell]; `file` where it is written to a folder."""

    make: Callable[..., Any]
    cells: list[Any]
    file: bool = False


def _csv(cells: list[Any], others: list[float], folder: Path) -> Path:
    path = folder / "rows.csv"
    quoted = ['"' + one.replace('"', '""') + '"' if set(one) & set('",\n\r') else one for one in cells]
    text = "\n".join(["a,b", *(f"{a},{b}" for a, b in zip(others, quoted, strict=True)), ""])
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path


def _parquet(cells: list[Any], others: list[float], folder: Path) -> Path:
    path = folder / "rows.parquet"
    parquet.write_table(table(coded(cells), others), path)
    return path


def _feather(cells: list[Any], others: list[float], folder: Path) -> Path:
    from pyarrow import feather

    path = folder / "rows.feather"
    feather.write_feather(table(pa.array(cells, pa.float64()), others), str(path))
    return path


ROWS: dict[str, Rows] = {
    "lists": Rows(nested(list, list), OBJECTS),
    "tuples in a deque": Rows(nested(deque, tuple), OBJECTS),
    "deques": Rows(nested(list, deque), OBJECTS),
    "UserLists": Rows(nested(UserList, UserList), OBJECTS),
    "own sequences": Rows(nested(Own, Own), OBJECTS),
    "arrays of objects": Rows(nested(list, objects), OBJECTS),
    "masked rows": Rows(nested(list, masked), MASKED),
    "objects": Rows(lambda cells, others: dense(objects(cells), others), OBJECTS),
    "frame of objects": Rows(lambda c, o: pd.DataFrame({"a": o, "b": pd.Series(objects(c), dtype=object)}), OBJECTS),
    "float64": Rows(lambda c, o: dense(np.array(c), o), FLOATS),
    "longdouble": Rows(lambda c, o: dense(long(c), o), FLOATS),
    "int64": Rows(lambda c, o: dense(np.array(c, np.int64), o), WHOLE),
    "masked": Rows(lambda c, o: dense(masked(c), o), MASKED),
    "masked objects": Rows(lambda c, o: dense(masked(c, object), o), OBJECTS),
    "sparse": Rows(csr, FLOATS),
    "sparse longdouble": Rows(lambda c, o: sparse.coo_array(dense(long(c), o)), FLOATS),
    "table": Rows(lambda c, o: table(pa.array(c, pa.float64()), o), NULLS),
    "table of codes": Rows(lambda c, o: table(pa.chunked_array([coded(c[:3]), coded(c[3:])]), o), NULLS),
    "polars frame": Rows(lambda c, o: pl.DataFrame({"a": o, "b": pl.Series(c, dtype=pl.Float64)}), NULLS),
    "csv": Rows(_csv, TEXT, file=True),
    "parquet": Rows(_parquet, NULLS, file=True),
    "feather": Rows(_feather, NULLS, file=True),
}
for _name in ("Int64", "Float64", "Sparse", "category", "category of integers", "pandas Arrow", "pandas Arrow codes"):
    _make, _cells = VECTORS[_name]
    ROWS[f"frame of {_name}"] = Rows(lambda c, o, make=_make: pd.DataFrame({"a": o, "b": make(c)}), _cells)
