"""KDD Cup 1999, the 10 % file, with fixed lists of protocols, services, flags and attacks."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.numerics.checks import one_of
from shapedp.papers.datasets.base import DataFormatError, Dataset
from shapedp.papers.datasets.cards import CHOICES, NAMES, bounds_of, build, one_hot_names
from shapedp.papers.datasets.files import Folder, read
from shapedp.papers.datasets.formats import set_one_hot

COLUMNS, LABELS = NAMES["kddcup99"], NAMES["kddcup99_labels"]
CATEGORIES = CHOICES["kddcup99"]
SYMBOLIC = (1, 2, 3)
NUMERIC = tuple(k for k in range(41) if k not in SYMBOLIC)
BINARY = ("land", "logged_in", "root_shell", "is_host_login", "is_guest_login")
TEXT = "S24"  # longer than any name


def load_kddcup99(
    folder: Folder = None, *, target: str = "label", rows: ArrayLike | None = None, dtype: Any = np.float32
) -> Dataset:
    """Network connections: x (494021, 122), y one of 23 labels (target="label") or 1 for an attack (target="attack").

    Columns: 38 numbers as published, then one 0/1 column per protocol, service and flag. float32 rounds byte counts
    above 2^24; dtype=numpy.float64 keeps them all.

    Parameters: `folder`, as for `load_mnist`; `target`, "label" or "attack"; `rows`, the positions of the rows to
    keep, in that order (default: all); `dtype`, of x. Returns: the data set.

    >>> load_kddcup99().x.shape  # doctest: +SKIP
    (494021, 122)
    """
    one_of("target", target, ("label", "attack"))
    values, codes, labels = parse(read("kddcup99/kddcup.data_10_percent.gz", folder), dtype)
    if rows is not None:
        keep = np.asarray(rows)
        try:
            values, codes, labels = values[keep], codes[keep], labels[keep]
        except IndexError:
            raise ValueError(f"rows must be positions, integers from 0 to {len(labels) - 1}") from None
    widths = [len(names) for names in CATEGORIES.values()]
    x = np.zeros((len(labels), len(NUMERIC) + sum(widths)), dtype=dtype)
    x[:, : len(NUMERIC)] = values
    start = len(NUMERIC)
    for k, width in enumerate(widths):
        set_one_hot(x[:, start : start + width], codes[:, k])
        start += width
    names = (*(COLUMNS[k] for k in NUMERIC), *one_hot_names(CATEGORIES))
    ones = (*BINARY, *(name for name in names if "=" in name or name.endswith("_rate")))
    bounds = bounds_of((0.0, 1.0 if name in ones else math.inf) for name in names)
    classes, y = LABELS, labels
    if target == "attack":
        classes, y = ("normal", "attack"), (labels != LABELS.index("normal")).astype(np.int64)
    return build("kddcup99", x, y, feature_names=names, classes=classes, bounds=bounds)


def parse(content: bytes, dtype: Any = np.float64) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Numbers (n, 38), codes of protocol, service and flag (n, 3), and labels (n,) of the text."""
    kinds = [(f"f{k}", np.dtype(dtype if k in NUMERIC else TEXT)) for k in range(42)]
    try:
        table = np.atleast_1d(np.loadtxt(io.BytesIO(content), delimiter=",", dtype=kinds))
    except ValueError as problem:
        raise DataFormatError(f"KDD Cup 1999: a line needs 42 fields of the documented kinds: {problem}") from None
    codes = [_lookup(table[f"f{k}"], names) for k, names in zip(SYMBOLIC, CATEGORIES.values(), strict=True)]
    labels = _lookup(table["f41"], tuple(f"{name}." for name in LABELS))
    return np.stack([table[f"f{k}"] for k in NUMERIC], axis=1), np.stack(codes, axis=1), labels


def _lookup(words: NDArray[np.bytes_], names: tuple[str, ...]) -> NDArray[np.int64]:
    """Positions of the words in the sorted list `names`."""
    known = np.array(names, dtype=TEXT)
    found = np.minimum(np.searchsorted(known, words), len(names) - 1)
    wrong = np.flatnonzero(known[found] != words)
    if wrong.size:
        raise DataFormatError(f"KDD Cup 1999: {words[wrong[0]].decode('latin-1')!r} is none of the documented values")
    return found
