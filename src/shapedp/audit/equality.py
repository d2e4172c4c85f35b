"""Whether two things are equal, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def same(one: Any, two: Any) -> bool:
    """Equal containers, arrays and numbers; NaN equals NaN. False where a comparison gives no answer."""
    if one is two:
        return True
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if hasattr(one, "tocsr") and hasattr(two, "tocsr"):
        return bool(one.shape == two.shape and (one != two).nnz == 0)
    if hasattr(one, "__array__") or hasattr(two, "__array__"):
        a, b = np.asarray(one), np.asarray(two)
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc"))
    try:
        return bool(one == two) or bool(one != one and two != two)
    except (TypeError, ValueError):
        return False
