"""Readers of the official file formats, from bytes to arrays; malformed input is a DataFormatError."""

from __future__ import annotations

import csv
import io
import warnings
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shapedp.papers.datasets.base import DataFormatError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
CIFAR_RECORD = 1 + 3 * 32 * 32
DIGITS = b"0123456789"


def read_idx(content: bytes) -> NDArray[Any]:
    """An array in IDX format: two zero bytes, a type, the number of axes, big-endian sizes, the values."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise DataFormatError(f"not an IDX file: it begins with {content[:4].hex(' ') or 'nothing'}")
    dtype, axes = np.dtype(IDX_TYPES[content[2]]), content[3]
    start = 4 + 4 * axes
    if len(content) < start:
        raise DataFormatError("IDX file is cut short within its header")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", axes, 4))
    expected = start + dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(content) != expected:
        raise DataFormatError(f"IDX file of shape {shape} must have {expected} bytes, got {len(content)}")
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def read_npz(content: bytes, keys: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The named arrays of an npz file; pickled objects are refused."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files if key in keys}
    except (ValueError, OSError, EOFError, TypeError, zipfile.BadZipFile) as problem:
        raise DataFormatError(f"not a readable npz file of plain arrays (pickle is refused): {problem}") from problem
    if absent := sorted(set(keys) - set(arrays)):
        raise DataFormatError(f"npz file lacks {', '.join(absent)}")
    return arrays


def read_rows(content: bytes, columns: int, *, delimiter: str = ",", comment: str = "|") -> list[list[str]]:
    """Text fields of a delimited file, blanks stripped; empty lines and comment lines are passed over."""
    text = io.StringIO(content.decode("latin-1"), newline="")
    rows: list[list[str]] = []
    for fields in csv.reader(text, delimiter=delimiter, skipinitialspace=True):
        if not fields or fields[0].startswith(comment):
            continue
        if len(fields) != columns:
            raise DataFormatError(f"record {len(rows) + 1} has {len(fields)} fields, expected {columns}")
        rows.append([value.strip() for value in fields])
    return rows


def read_columns(content: bytes, *, delimiter: str = ",") -> dict[str, list[str]]:
    """Columns of a delimited file by the names in its first line."""
    first = content.partition(b"\n")[0].decode("latin-1")
    names = next(csv.reader([first], delimiter=delimiter), [])
    header, *rows = read_rows(content, len(names), delimiter=delimiter) or [[]]
    if len(set(header)) != len(header):
        raise DataFormatError("the first line names a column twice")
    return {name: [row[k] for row in rows] for k, name in enumerate(header)}


def numbers(columns: dict[str, list[str]], names: Sequence[str]) -> NDArray[np.float64]:
    """Named columns as a float64 matrix."""
    absent = [name for name in names if name not in columns]
    if absent:
        raise DataFormatError(f"the file lacks the columns {', '.join(absent)}")
    try:
        return np.array([columns[name] for name in names], dtype=np.float64).T.copy()
    except ValueError as problem:
        raise DataFormatError(f"a value is not a number: {problem}") from problem


def parse_numbers(text: bytes, dtype: Any = np.float64) -> NDArray[Any]:
    """Numbers separated by white space; anything else is an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.fromstring(text, dtype=dtype, sep=" ")
    except (ValueError, DeprecationWarning) as problem:
        raise DataFormatError(f"a value is not a number: {problem}") from problem


def read_svmlight(content: bytes, features: int) -> tuple[csr_array, NDArray[np.float64]]:
    """Rows "label index:value ..." with indices 1 to `features`, ascending; comments after "#" are dropped."""
    from scipy.sparse import csr_array

    tidy = (b" ".join(line.partition(b"#")[0].split()) for line in content.splitlines())
    lines = [line for line in tidy if line]
    if not lines:
        raise DataFormatError("svmlight file holds no rows")
    text, rows = b"\n".join(lines), np.arange(len(lines))
    if text.translate(None, DIGITS + b"+-.eE").replace(b" :", b"") != b"\n" * (len(lines) - 1):
        raise DataFormatError("svmlight rows must read: label index:value index:value ...")
    values = parse_numbers(text.replace(b":", b" "))
    sizes = np.array([line.count(b":") for line in lines])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    if values.size != len(lines) + 2 * int(offsets[-1]):
        raise DataFormatError("svmlight file: a label, an index or a value is missing")
    labels = 2 * offsets[:-1] + rows
    pairs = np.delete(values, labels).reshape(-1, 2)
    columns = pairs[:, 0].astype(np.int64) - 1
    if np.any(columns + 1 != pairs[:, 0]) or np.any(columns < 0) or np.any(columns >= features):
        raise DataFormatError(f"svmlight indices must be whole numbers from 1 to {features}")
    if np.any(np.diff(np.repeat(rows, sizes) * features + columns) <= 0):
        raise DataFormatError("svmlight indices must ascend within a row")
    parts = (pairs[:, 1].copy(), columns.astype(np.int32), offsets.astype(np.int32))
    return csr_array(parts, shape=(len(lines), features)), values[labels]


def read_ratings(content: bytes) -> NDArray[np.int64]:
    """Rows "user::movie::rating::time" of whole numbers, one matrix row each."""
    text = content.replace(b"\r\n", b"\n").rstrip(b"\n") + b"\n"
    rows = text.count(b"\n")
    if text.translate(None, DIGITS) != b"::::::\n" * rows:
        raise DataFormatError("ratings must read user::movie::rating::time, whole numbers, one rating a line")
    values: NDArray[np.int64] = parse_numbers(text.replace(b"::", b" "), np.int64)
    if values.size != 4 * rows:
        raise DataFormatError("ratings: a field is empty")
    return values.reshape(rows, 4)


def read_cifar_binary(content: bytes) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images (n, 32, 32, 3) and labels from records of one label byte and 3 x 1024 bytes, one plane per colour."""
    if not content or len(content) % CIFAR_RECORD:
        raise DataFormatError(f"CIFAR batch must hold whole records of {CIFAR_RECORD} bytes, got {len(content)} bytes")
    records = np.frombuffer(content, np.uint8).reshape(-1, CIFAR_RECORD)
    labels = records[:, 0].copy()
    if np.any(labels > 9):
        raise DataFormatError(f"CIFAR-10 labels must lie in 0..9, got {int(labels.max())}")
    return np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), labels


def encode(values: Sequence[str], categories: Sequence[str], *, missing: str | None = None) -> NDArray[np.int64]:
    """Positions of the values in a fixed list of categories; -1 where a value is missing."""
    code = {name: k for k, name in enumerate(categories)}
    if missing is not None:
        code[missing] = -1
    try:
        return np.array([code[value] for value in values], dtype=np.int64)
    except KeyError as problem:
        raise DataFormatError(f"{problem} is none of the documented categories {', '.join(categories)}") from None


def set_one_hot(out: NDArray[Any], codes: NDArray[Any]) -> None:
    """Write 1 into column codes[i] of row i of a zero matrix; code -1 leaves the row zero."""
    present = np.flatnonzero(codes >= 0)
    out[present, codes[present]] = 1
