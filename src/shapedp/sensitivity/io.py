"""Sensitivity sets from JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shapedp.boundary.documents import decode, described
from shapedp.boundary.values import boolean
from shapedp.sensitivity.balls import L1, L2
from shapedp.sensitivity.base import Sensitivity
from shapedp.sensitivity.boxes import Blocks, Box
from shapedp.sensitivity.slices import Slices


def _l2(data: dict[str, Any]) -> L2:
    scales = None if data.get("scales") is None else decode("scales", data["scales"])
    return L2(data["radius"], shape=_shape(data), scales=scales, adjacency=data.get("adjacency"))


def _shape(data: dict[str, Any]) -> tuple[int, ...]:
    return tuple(data["shape"]) if data.get("shape") is not None else (data["dim"],)


def _box(data: dict[str, Any]) -> Box:
    profile = decode("profile", data["profile"])
    shape = tuple(data["shape"]) if data.get("shape") is not None else profile.shape
    return Box(profile.reshape(shape), adjacency=data.get("adjacency"))


_READERS: dict[str, Callable[[dict[str, Any]], Sensitivity]] = {
    "l2": _l2,
    "l1": lambda d: L1(d["radius"], shape=_shape(d), adjacency=d.get("adjacency")),
    "box": _box,
    "blocks": lambda d: Blocks(decode("radii", d["radii"]), d["sizes"], adjacency=d.get("adjacency")),
    "slices": lambda d: Slices(decode("radii", d["radii"]), d["shape"], d["mode"], adjacency=d.get("adjacency")),
}


def _whole(stated: Sensitivity) -> Sensitivity:
    whole = stated.of_integers()
    if {**whole.to_json(), "whole": None} != {**stated.to_json(), "whole": None}:
        raise ValueError("the bounds of a set of whole numbers must be whole")
    return whole


@described
def sensitivity_from_json(data: Any) -> Sensitivity:
    """The set that `to_json` wrote."""
    kind = data.get("set") if isinstance(data, dict) else None
    if kind not in _READERS:
        raise ValueError(f"sensitivity must name one of the sets {', '.join(_READERS)}, got {kind!r}")
    try:
        found = _READERS[kind](data)
        return _whole(found) if boolean("whole", data.get("whole", False)) else found
    except KeyError as missing:
        raise ValueError(f"sensitivity of set {kind!r} lacks the field {missing}") from None
