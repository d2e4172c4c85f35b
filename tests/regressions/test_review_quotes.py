"""Errors that quoted a cell or told where it stands: Dask's own when a partition could not be read, Arrow's on a column
of text in a partition that was declared as one of numbers, and that of a query that is not finite."""

from __future__ import annotations

import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shapedp as sdp
from shapedp.boundary.columns import arrow_floats, pandas_floats
from shapedp.learn import LinearRegression
from shapedp.learn.partitions import fit

frames = pytest.importorskip("dask.dataframe")
SECRET = "HIV+"


def model() -> LinearRegression:
    return LinearRegression(epsilon=1.0, delta=1e-5, feature_bound=1.0, target_bound=1.0, random_state=0)


def test_a_partition_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,y\n" + "0.5,0.5\n" * 5000 + f"{SECRET},0.5\n")
    with pytest.raises(ValueError, match="could not be computed") as caught:
        fit(model(), frames.read_csv(path, sample=1000, blocksize=10_000), "y")
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert caught.value.__context__ is None


def test_errors_of_the_reader_stay() -> None:
    x = frames.from_pandas(pd.DataFrame({"a": [0.5] * 8}), npartitions=2)
    with pytest.raises(ValueError, match="as many rows as each other"):
        fit(model(), x, frames.from_pandas(pd.Series([0.5] * 10), npartitions=2))


def _part(number: int) -> pd.DataFrame:
    kind = pd.ArrowDtype(pa.string())
    a = pd.Series([0.5] * 9) if number == 0 else pd.Series([SECRET, "1", *["x"] * 7], dtype=kind)
    return pd.DataFrame({"a": a, "y": [0.5] * 9})


def test_text_in_a_partition_declared_as_numbers() -> None:
    declared = pd.DataFrame({"a": [0.5], "y": [0.5]})
    x = frames.from_map(_part, [0, 1], meta=declared, enforce_metadata=False)
    assert np.isfinite(fit(model(), x, "y").coef_).all()


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.date32(), pa.list_(pa.int64())])
def test_a_column_of_another_type_is_missing_throughout(kind: pa.DataType) -> None:
    cells = {pa.string(): ["1", SECRET], pa.binary(): [b"1", b"x"], pa.date32(): [1, 2]}.get(kind, [[1], [2]])
    column = pa.array(cells, kind)
    assert np.isnan(arrow_floats(column)).all()
    assert np.isnan(arrow_floats(column.dictionary_encode() if kind == pa.string() else column)).all()
    assert np.isnan(pandas_floats(pd.Series(column, dtype=pd.ArrowDtype(kind)))).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_query_that_is_not_finite(bad: float) -> None:
    """The message named the coordinate and the value."""
    mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, dim=5), epsilon=1, delta=1e-6)
    texts = []
    for place in (1, 3):
        query = np.zeros(5)
        query[place] = bad
        with pytest.raises(ValueError, match="must be finite") as caught:
            mechanism.release(query)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "index" not in texts[0]
    assert f"{bad}" not in texts[0].replace("infinity", "")
