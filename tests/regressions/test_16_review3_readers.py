"""Issue 16, second review by fresh eyes: damaged Arrow data, and tables that showed their rows."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import shapedp as sdp
from shapedp.boundary.columns import arrow_cells, arrow_floats
from shapedp.private.cells import arrow_column
from shapedp.tables.sources import source_of

SECRET = "SECRETHIV"


def people():
    return pd.DataFrame({"id": [f"{SECRET}{i}" for i in range(6)], "hours": [777.25 + i for i in range(6)]})


def private(source):
    return sdp.table(source, person="id", bounds={"hours": (0, 1000)})


@pytest.mark.parametrize("interactive", [False, True])
@pytest.mark.parametrize("make", [ibis.memtable, lambda frame: ibis.memtable(pa.Table.from_pandas(frame))])
def test_a_private_table_of_ibis_shows_no_row(make, interactive):
    """An expression of Ibis prints the rows that it has in memory: so did tables, questions and plans."""
    was, ibis.options.interactive = ibis.options.interactive, interactive
    try:
        table = private(make(people()))
        question = table.mean("hours")
        plan = table.plan(question, epsilon=1.0, delta=1e-6)
        for shown in (table, question, plan):
            assert SECRET not in repr(shown)
            assert "777" not in f"{shown} {vars(shown)}"
    finally:
        ibis.options.interactive = was


@pytest.mark.parametrize("make", [ibis.memtable, lambda frame: frame, pa.Table.from_pandas])
def test_no_pickle_holds_rows(make):
    table = private(make(people()))
    answers = table.ask(table.mean("hours"), epsilon=1.0, delta=1e-6)
    for one in (table, table.mean("hours"), table.plan(table.count(), epsilon=1.0, delta=1e-6), answers):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(one)
    assert copy.deepcopy(table).mean("hours").release(epsilon=1.0, delta=1e-6).certificate.verdict == "certified"


@pytest.mark.parametrize("code", [7, -3, 127, -128])
def test_a_code_beyond_its_dictionary_is_a_missing_cell(code):
    """It stopped every reader, with an error that quoted it."""
    codes = pa.array([0, code, 1], pa.int8())
    assert np.array_equal(
        arrow_floats(pa.DictionaryArray.from_arrays(codes, pa.array([0.5, 1.0]), safe=False)),
        [0.5, np.nan, 1.0],
        equal_nan=True,
    )
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)
    assert arrow_cells(texts).tolist() == ["a", None, "b"]
    assert arrow_column(texts, "id").to_pylist() == ["a", None, "b"]


@pytest.mark.parametrize("scale", [-300, 330, 400])
def test_a_decimal_that_arrow_cannot_write_is_missing_in_every_row(scale):
    """One such cell raised an error of Arrow; a column of nulls did not."""
    cells = pa.Array.from_buffers(pa.decimal128(38, scale), 2, [None, pa.py_buffer((5).to_bytes(16, "little") * 2)])
    assert np.isnan(arrow_floats(cells)).all()


DAMAGED = """
import numpy as np, pyarrow as pa
from shapedp.private.cells import arrow_column
from shapedp.boundary.columns import arrow_cells
ends = np.array([0, 3, {}, 9], np.int32).tobytes()
texts = pa.StringArray.from_buffers(3, pa.py_buffer(ends), pa.py_buffer(b"abcdefghi"))
for read in (arrow_cells, lambda column: arrow_column(column, "id")):
    try:
        read(texts)
    except ValueError as error:
        print(error)
"""


@pytest.mark.parametrize("end", [2, -5, 2**30])
def test_a_text_that_ends_before_it_begins_does_not_end_the_process(end):
    """C++ threw where nothing could catch it, or read memory that was not the file's."""
    done = subprocess.run([sys.executable, "-c", DAMAGED.format(end)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.count("the Arrow data are damaged")) == (0, 2), done.stderr


def test_a_text_that_is_none_is_still_a_cell_and_no_damage():
    ends = np.array([0, 3, 6, 9], np.int32).tobytes()
    texts = pa.StringArray.from_buffers(3, pa.py_buffer(ends), pa.py_buffer(b"abc\xff\xfe\xfdghi"))
    assert arrow_cells(texts).tolist() == ["abc", None, "ghi"]


SCAN = """
import sys
from shapedp.private.sources import rows_of
from shapedp.tables.sources import source_of
for _ in range(20):
    for read in (lambda p: source_of(p).parts(("a",), None), lambda p: rows_of(p).batches([("a", "number")])):
        try:
            list(read(sys.argv[1]))
            print("read")
        except (OSError, ValueError):
            pass
"""


def test_a_damaged_feather_file_is_refused_by_no_crash(tmp_path):
    """Arrow's scanner looks ahead in such files: where one block was damaged, most runs ended by SIGSEGV."""
    path = tmp_path / "rows.feather"
    rows = pa.table({"a": np.linspace(0, 1, 2000), "b": np.arange(2000)})
    feather.write_feather(rows, str(path), compression="lz4", chunksize=20)
    raw = bytearray(path.read_bytes())
    blocks = [at for at in range(8, len(raw) - 8, 8) if raw[at : at + 4] == b"\xff\xff\xff\xff"]
    raw[blocks[1] + 8 : blocks[1] + 24] = b"\xff" * 16  # what the first block of rows says of itself
    path.write_bytes(raw)
    done = subprocess.run([sys.executable, "-c", SCAN, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not done.stdout


def test_feather_files_are_read_in_pieces_and_by_name(tmp_path):
    paths = [tmp_path / f"{name}.feather" for name in "ab"]
    rows = pa.table({"x": np.arange(300) / 300, "name": ["t"] * 300, "y": np.arange(300) / 600})
    feather.write_feather(rows, str(paths[0]), chunksize=70)
    feather.write_feather(rows.select(["y", "name", "x"]), str(paths[1]))
    blocks = list(source_of([str(path) for path in paths]).parts(("x", "y"), "name"))
    assert sum(size for size, _ in blocks) == 600
    read = [np.concatenate(columns) for columns in zip(*(columns for _, columns in blocks), strict=True)]
    assert np.array_equal(read[0], 2 * read[1])
    assert set(read[2]) == {"t"}


@pytest.mark.parametrize("ending", ["feather", "parquet"])
def test_a_column_that_a_file_lacks_is_missing_in_its_rows(tmp_path, ending):
    """Estimators raised a KeyError (of parquet), which the command line calls a fault of its own."""
    paths = [str(tmp_path / f"{name}.{ending}") for name in "ab"]
    write = feather.write_feather if ending == "feather" else parquet.write_table
    write(pa.table({"x": [0.5, 1.0], "y": [1.0, 2.0]}), paths[0])
    write(pa.table({"y": [3.0]}), paths[1])
    parts = [columns for _, columns in source_of(paths).parts(("y", "x"), None)]
    assert [part[1].tolist() for part in parts[:1]] == [[0.5, 1.0]]
    assert np.isnan(parts[1][1]).all()
    table = sdp.table(paths, person=None, bounds={"x": (0, 1), "y": (0, 3)})
    assert [column.to_pylist() for column in next(table.source.batches([("x", "number")]))] == [[0.5, 1.0]]
    assert table.sum("y").release(epsilon=1.0, delta=1e-6).certificate.verdict == "certified"


def test_a_feather_file_of_no_rows_is_read(tmp_path):
    path = tmp_path / "none.feather"
    feather.write_feather(pa.table({"x": pa.array([], pa.float64())}), str(path))
    assert list(source_of(path).parts(("x",), None)) == []
