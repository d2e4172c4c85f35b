"""KDD Cup 1999, the 10 % file, with fixed lists of protocols, services, flags and attacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.numerics.checks import one_of
from shapedp.papers.datasets.base import DataFormatError, Dataset, build
from shapedp.papers.datasets.cards import CARDS
from shapedp.papers.datasets.columns import CHOICES, NAMES, bounds_of, one_hot_names
from shapedp.papers.datasets.files import Folder, read
from shapedp.papers.datasets.formats import set_one_hot

Index = NDArray[np.int64]
COLUMNS, LABELS = NAMES["kddcup99"], NAMES["kddcup99_labels"]
CATEGORIES = CHOICES["kddcup99"]
SYMBOLIC = (1, 2, 3)
NUMERIC = tuple(k for k in range(41) if k not in SYMBOLIC)
RATES = [k for k, column in enumerate(NUMERIC) if COLUMNS[column].endswith("_rate")]
WHOLE = [k for k in range(len(NUMERIC)) if k not in RATES]
RATE_COLUMNS, WHOLE_COLUMNS = [NUMERIC[k] for k in RATES], [NUMERIC[k] for k in WHOLE]
BINARY = ("land", "logged_in", "root_shell", "is_host_login", "is_guest_login")

BLOCK = 1 << 22
WIDTH = 18
DIGITS = 15


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
    card = CARDS["kddcup99"]
    values, codes, labels = parse(read(card, "kddcup99/kddcup.data_10_percent.gz", folder), dtype)
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
    classes = LABELS if target == "label" else ("normal", "attack")
    return build(
        card,
        x,
        labels if target == "label" else (labels != LABELS.index("normal")).astype(np.int64),
        feature_names=names,
        classes=classes,
        bounds=bounds_of(
            (0.0, 1.0 if name in BINARY or "=" in name or name.endswith("_rate") else math.inf) for name in names
        ),
    )


def parse(content: bytes, dtype: Any = np.float64) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Numbers (n, 38), codes of protocol, service and flag (n, 3), and labels (n,) of the text, block by block."""
    content = content if content.endswith(b"\n") else content + b"\n"
    rows = content.count(b"\n")
    values = np.empty((rows, len(NUMERIC)), dtype=dtype)
    codes, labels = np.empty((rows, 3), dtype=np.int64), np.empty(rows, dtype=np.int64)
    begin = row = 0
    while begin < len(content):
        end = content.rfind(b"\n", begin, begin + BLOCK) + 1 or content.index(b"\n", begin) + 1
        text = content[begin:end]
        marks = np.frombuffer(text, np.uint8)
        lines = np.flatnonzero(marks == ord("\n"))
        part = slice(row, row + len(lines))
        places = np.flatnonzero(marks == ord(","))
        if not np.array_equal(np.searchsorted(places, lines), 41 * np.arange(1, lines.size + 1)):
            raise DataFormatError("KDD Cup 1999: every line must have 42 fields")
        commas: Index = places.reshape(-1, 41)
        for k, names in enumerate(CATEGORIES.values()):
            codes[part, k] = _lookup(marks, commas[:, k] + 1, commas[:, k + 1], names)
        labels[part] = _lookup(marks, commas[:, 40] + 1, lines - 1, LABELS)
        starts = np.concatenate([np.concatenate(([0], lines[:-1] + 1))[:, None], commas[:, :40] + 1], axis=1)
        values[part, WHOLE] = _whole(marks, starts[:, WHOLE_COLUMNS], commas[:, WHOLE_COLUMNS])
        values[part, RATES] = _rates(marks, starts[:, RATE_COLUMNS], commas[:, RATE_COLUMNS])
        begin, row = end, part.stop
    return values, codes, labels


def _whole(marks: NDArray[np.uint8], start: Index, stop: Index) -> NDArray[np.float64]:
    """Whole numbers of at most 15 digits, digit by digit; float64 holds them all."""
    length = stop - start
    if length.min(initial=1) < 1 or length.max(initial=1) > DIGITS:
        raise DataFormatError(f"KDD Cup 1999: a count must have 1 to {DIGITS} digits")
    values = _digit(marks[start]).astype(np.float64)
    for place in range(1, int(length.max(initial=1))):
        more = np.nonzero(length > place)
        values[more] = 10 * values[more] + _digit(marks[start[more] + place])
    return values


def _rates(marks: NDArray[np.uint8], start: Index, stop: Index) -> NDArray[np.float64]:
    """Numbers written as d.dd; the quotient by 100 is the float64 nearest to the decimal."""
    if np.any(stop - start != 4) or np.any(marks[start + 1] != ord(".")):
        raise DataFormatError("KDD Cup 1999: a rate must have two decimals")
    units, tenths, hundredths = (_digit(marks[start + place]).astype(np.int16) for place in (0, 2, 3))
    return (100 * units + 10 * tenths + hundredths) / 100


def _digit(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    digits = letters - np.uint8(ord("0"))
    if digits.max(initial=0) > 9:
        raise DataFormatError("KDD Cup 1999: a number holds something else than digits")
    return digits


def _lookup(marks: NDArray[np.uint8], start: Index, stop: Index, names: tuple[str, ...]) -> Index:
    """Positions in the sorted list `names` of the strings between start and stop."""
    sorted_names = np.array(names, dtype=f"S{WIDTH}")
    if (stop - start).max(initial=1) > WIDTH:
        raise DataFormatError(f"KDD Cup 1999: a symbolic field is longer than {WIDTH} characters")
    place = start[:, None] + np.arange(WIDTH)
    letters = np.where(place < stop[:, None], marks[np.minimum(place, marks.size - 1)], 0).astype(np.uint8)
    words = np.ascontiguousarray(letters).view(f"S{WIDTH}")[:, 0]
    found = np.minimum(np.searchsorted(sorted_names, words), len(names) - 1)
    wrong = np.flatnonzero(sorted_names[found] != words)
    if wrong.size:
        raise DataFormatError(f"KDD Cup 1999: {words[wrong[0]].decode('latin-1')!r} is none of the documented values")
    return found
