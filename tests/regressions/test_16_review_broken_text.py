"""A cell whose bytes are no text is missing in every container; no error or warning tells that it is there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shapedp as sdp
from shapedp.boundary.arrays import ids
from shapedp.boundary.columns import pandas_cells, pandas_floats
from shapedp.cli import main
from shapedp.tables.vectors import read_ids

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
BOUNDS = {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 1.0, "target_bound": 1.0}
STORED = pd.StringDtype("pyarrow", na_value=np.nan)  # the text type of pandas 3


def texts(*cells: bytes) -> Any:
    """An Arrow column of texts, whatever the bytes are."""
    plain = pyarrow.array(cells, pyarrow.binary())
    return pyarrow.StringArray.from_buffers(len(plain), plain.buffers()[1], plain.buffers()[2])


def table(middle: bytes) -> Any:
    return pyarrow.table({"id": texts(b"a", middle, b"c"), "v": [1.0, 2.0, 3.0]})


def in_pandas(column: Any) -> pd.Series:
    made: Any = pd.arrays.ArrowStringArray(pyarrow.chunked_array([column]), dtype=STORED)
    return pd.Series(made)


@pytest.mark.parametrize("broken", [b"b\xff\xfe", b"\xed\xa0\x80"])
def test_pandas_text_kept_by_arrow(broken: bytes) -> None:
    column = in_pandas(texts(b"a", broken, b"c"))
    for one in (column, pd.Index(column)):
        assert pandas_cells(one).tolist() == ["a", None, "c"]
        assert np.isnan(pandas_floats(one)).all()
    told = ids(column)
    assert told[1] == -1
    assert told[0] != told[2]
    assert min(told[0], told[2]) >= 0


def test_an_estimator_takes_a_broken_label_for_none() -> None:
    told = []
    for middle in (b"b", b"b\xff\xfe"):
        x, y = np.array([[0.1], [0.2], [0.3]]), in_pandas(texts(b"a", middle, b"a"))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            made = sdp.learn.LogisticRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, classes=["a", "b"])
            made.fit(x, y)
        told.append([str(one.message) for one in seen])
    assert told[0] == told[1]


def test_persons_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = tmp_path / "noise.json"
    box = ["calibrate", "gaussian", "--box", "10", "--epsilon", "1", "--delta", "1e-6", "--adjacency", "add-remove"]
    assert main([*box, "-o", str(noise)]) == 0
    capsys.readouterr()
    said = []
    for number, middle in enumerate((b"b", b"b\xff\xfe")):
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(table(middle), path)
        assert read_ids(path, "id") == ["a", None if number else "b", "c"]
        asked = ["release", str(noise), str(path), "--records", "--columns", "v", "--person", "id"]
        code = main([*asked, "-o", str(tmp_path / f"{number}.csv")])
        said.append((code, *(text.replace(str(tmp_path / str(number)), "FILE") for text in capsys.readouterr())))
    assert said[0] == said[1]
    assert said[0][0] == 0


CONTAINERS: dict[str, Callable[[Any, Path], Any]] = {
    "arrow": lambda rows, _: rows,
    "pandas": lambda rows, _: pd.DataFrame({"id": in_pandas(rows["id"].chunk(0)), "v": [1.0, 2.0, 3.0]}),
    "parquet": lambda rows, path: parquet.write_table(rows, path) or path,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_private_table_answers_and_warns_alike(container: str, tmp_path: Path) -> None:
    told = []
    for middle in (b"b", b"b\xff\xfe"):
        rows = CONTAINERS[container](table(middle), tmp_path / "rows.parquet")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            asked = sdp.table(rows, person="id", bounds={"v": (0, 10)}, rows=1)
            total = asked.sum("v").release(epsilon=1e6, delta=1e-6).frame["sum"][0]
        told.append([(one.category, str(one.message)) for one in seen])
        assert total == pytest.approx(6.0 if middle == b"b" else 4.0, abs=0.1)
    assert told[0] == told[1]


def test_dates_that_python_does_not_have() -> None:
    far = pyarrow.array([1, 2**62, 3], pyarrow.timestamp("us", "Europe/Berlin"))
    column = pyarrow.table({"when": far}).to_pandas()["when"]
    found = pandas_cells(column).tolist()
    assert found[1] is None
    assert found[0].year == 1970
    assert found[2] > found[0]
    assert ids(column).tolist() == [-1, -1, -1], "a date names nobody"


def test_an_error_does_not_tell_the_longest_text() -> None:
    said = set()
    for longest in ("z", "zzzzzzzz"):
        for read in (sdp.Box([1.0]).clip, sdp.learn.LinearRegression(**BOUNDS).fit):
            column = np.array(["a", longest])
            with pytest.raises((TypeError, ValueError)) as error:
                read(np.zeros((2, 1)), column) if "fit" in read.__name__ else read(column[:, None], adjacency="replace")
            said.add(str(error.value))
    assert len(said) == 2
    assert not any("U" in one for one in said)
