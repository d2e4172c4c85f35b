"""Labels as signs, one column per two-class problem."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from shapedp.learn.base import PublicLabelsWarning
from shapedp.learn.tables import labels_of

Floats = NDArray[np.float64]


def class_list(name: str, x: Any, y: Any, given: Any) -> NDArray[Any]:
    """The classes, sorted: as given, or those that occur in y, which are then treated as public."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    if given is None:
        if not isinstance(y, str):
            check_classification_targets(column_or_1d(y))
        found = labels_of(x, y)
        warnings.warn(
            "classes was not given: which labels occur in y is treated as public. Pass classes=[...]",
            PublicLabelsWarning,
            stacklevel=3,
        )
    else:
        found = np.unique(np.asarray(given))
        if found.size != np.size(given):
            raise ValueError(f"classes must be distinct, got {given!r}")
    if found.size < 2:
        raise ValueError(f"{name} needs two classes or more, got one class: {found.tolist()!r}")
    return found


def sign_columns(y: Any, classes: NDArray[Any], records: int) -> Floats:
    """+1 and -1: one column for two classes (+1 for the second), one per class for more; zeros for other labels."""
    labels = column_or_1d(y, warn=True)
    if len(labels) != records:
        raise ValueError(f"X and y must have as many rows as each other, got {records} and {len(labels)}")
    hits = np.stack([np.asarray(labels == label) for label in classes.tolist()], axis=1)
    known = hits.any(axis=1, keepdims=True)
    return np.where(known, np.where(hits[:, 1:] if classes.size == 2 else hits, 1.0, -1.0), 0.0)
