"""Labels as signs, one column per two-class problem."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.arrays import distinct, equal
from shapedp.learn.base import PublicLabelsWarning
from shapedp.numerics.arrays import Floats
from shapedp.tables.blocks import entries, labels_of, same_length


def class_list(name: str, x: Any, y: Any, given: Any) -> NDArray[Any]:
    """The classes, sorted: as given, or those that occur in y, which are then treated as public."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    if given is None:
        found = labels_of(x, y)
        if found.dtype.kind == "f" and (found != np.trunc(found)).any():
            raise ValueError("Unknown label type: continuous. A classifier needs labels; name them by classes=[...]")
        warnings.warn(
            "classes was not given: which labels occur in y is treated as public. Pass classes=[...]",
            PublicLabelsWarning,
            stacklevel=3,
        )
    else:
        named = entries(given)
        found = distinct(named)
        if found.size != named.size:
            raise ValueError(f"classes must be distinct and none of them missing, got {given!r}")
    if found.size < 2:
        raise ValueError(f"{name} needs two classes or more, got one class: {found.tolist()!r}")
    return found


def sign_columns(y: Any, classes: NDArray[Any], records: int) -> Floats:
    """+1 and -1: one column for two classes (+1 for the second), one per class for more; zeros for other labels."""
    labels = entries(y)
    same_length(records, len(labels))
    hits = np.stack([equal(labels, label) for label in classes.tolist()], axis=1)
    known = hits.any(axis=1, keepdims=True)
    return np.where(known, np.where(hits[:, 1:] if classes.size == 2 else hits, 1.0, -1.0), 0.0)
