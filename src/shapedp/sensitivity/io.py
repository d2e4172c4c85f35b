"""Sensitivity sets from JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shapedp.boundary.documents import decode, described
from shapedp.boundary.values import boolean
from shapedp.sensitivity.balls import L1, L2
from shapedp.sensitivity.base import Sensitivity
from shapedp.sensitivity.boxes import Blocks, Box
from shapedp.sensitivity.hull import hull_from_json
from shapedp.sensitivity.slices import Slices


def _array(data: dict[str, Any], name: str) -> Any:
    return decode(name, data[name])


def _shape(data: dict[str, Any]) -> tuple[int, ...]:
    return tuple(data["shape"]) if data.get("shape") is not None else (data["dim"],)


_READERS: dict[str, Callable[[dict[str, Any], Any], Sensitivity]] = {
    "l2": lambda d, a: L2(
        d["radius"], shape=_shape(d), scales=None if d.get("scales") is None else _array(d, "scales"), adjacency=a
    ),
    "l1": lambda d, a: L1(d["radius"], shape=_shape(d), adjacency=a),
    "box": lambda d, a: Box(_array(d, "profile").reshape(d.get("shape") or -1), adjacency=a),
    "blocks": lambda d, a: Blocks(_array(d, "radii"), d["sizes"], adjacency=a),
    "slices": lambda d, a: Slices(_array(d, "radii"), d["shape"], d["mode"], adjacency=a),
    "hull": hull_from_json,
}


def _whole(stated: Sensitivity) -> Sensitivity:
    whole = stated.of_integers()
    if {**whole.to_json(), "whole": None} != {**stated.to_json(), "whole": None}:
        raise ValueError("the bounds of a set of whole numbers must be whole")
    return whole


@described
def sensitivity_from_json(data: Any) -> Sensitivity:
    """The set that `to_json` wrote.

    Parameters: what `to_json` of a set returned.
    Returns: an equal set. ValueError says what is missing or wrong.

    Example:
        >>> sensitivity_from_json(Box([1.0, 0.5]).to_json()).profile
        array([1. , 0.5])
    """
    kind = data.get("set") if isinstance(data, dict) else None
    if kind not in _READERS:
        raise ValueError(f"sensitivity must name one of the sets {', '.join(_READERS)}, got {kind!r}")
    try:
        found = _READERS[kind](data, data.get("adjacency"))
        return _whole(found) if boolean("whole", data.get("whole", False)) else found
    except KeyError as missing:
        raise ValueError(f"sensitivity of set {kind!r} lacks the field {missing}") from None
