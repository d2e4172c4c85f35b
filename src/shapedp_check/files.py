"""Reading: what a field of the file must be. Nothing is trusted; what does not fit is `NotDescribed`."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable
from typing import Any

ADJACENCIES = ("add-remove", "replace", "zero-out", None)
MOST = 1 << 22  # numbers that are read one by one


class NotDescribed(ValueError):
    """The file does not describe a mechanism that this program can check; the message says what is missing."""


def entry(data: Any, name: str) -> Any:
    """A field that must be there."""
    if not isinstance(data, dict) or name not in data:
        raise NotDescribed(f"the field {name!r} is missing")
    return data[name]


def only(data: Any, names: tuple[str, ...], what: str) -> None:
    """Refuses fields that this program would pass over: they may change the meaning."""
    if not isinstance(data, dict):
        raise NotDescribed(f"{what} must be an object")
    other = sorted(set(data) - set(names))
    if other:
        raise NotDescribed(f"{what} has fields that are not known: {', '.join(map(str, other))}")


def sentences(data: Any, name: str) -> list[str]:
    """A list of strings that may be absent."""
    found = data.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise NotDescribed(f"{name} must be a list of strings")
    return found


def premises(data: Any) -> list[str]:
    """What an object and its parts assume about a query, by name."""
    if isinstance(data, list):
        return [name for part in data for name in premises(part)]
    if not isinstance(data, dict):
        return []
    own = (*sentences(data, "premises"), *sentences(data, "vouched"))
    return [*own, *(name for part in data.values() for name in premises(part))]


def schema(data: Any, name: str) -> None:
    """Version 1 is what this program reads."""
    if entry(data, "schema") != 1 or isinstance(data["schema"], bool):
        raise NotDescribed(f"{name} has schema {data['schema']!r}; this program reads schema 1")


def number(
    value: Any, name: str, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf
) -> float:
    """A finite number in the stated range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotDescribed(f"{name} must be a number")
    try:
        result = float(value)
    except OverflowError:
        raise NotDescribed(f"{name} is out of range") from None
    if not (math.isfinite(result) and result == value and least <= result <= most and result > above):
        raise NotDescribed(f"{name} = {value!r} is out of range")
    return result


def whole(value: Any, name: str, *, least: int = 1) -> int:
    """An integer of at least `least`; a float that is a whole number counts."""
    result = number(value, name, least=least, most=2.0**62)
    if result != math.floor(result):
        raise NotDescribed(f"{name} = {value!r} must be a whole number")
    return int(value)


def numbers(value: Any, name: str, *, least: float = -math.inf) -> list[float]:
    """A list of numbers, written out or as compressed little-endian doubles."""
    if isinstance(value, dict):
        only(value, ("float64", "size"), name)
        value = _decoded(entry(value, "float64"), few(whole(entry(value, "size"), "size")), name)
    if not isinstance(value, list) or not value:
        raise NotDescribed(f"{name} must be a list of numbers")
    few(len(value))
    return [number(item, name, least=least) for item in value]


def _decoded(text: Any, size: int, name: str) -> list[float]:
    """`size` doubles; no more is unpacked than that, however much a small file would unpack to."""
    unpack = zlib.decompressobj()
    try:
        raw = unpack.decompress(base64.b64decode(text, validate=True), 8 * size + 1)
    except (TypeError, ValueError, zlib.error):
        raise NotDescribed(f"{name} is no encoded list of doubles") from None
    if len(raw) != 8 * size or not unpack.eof or unpack.unused_data:
        raise NotDescribed(f"{name} does not hold as many numbers as it says")
    return list(struct.unpack(f"<{size}d", raw))


def few(count: int) -> int:
    """`count`, if so many numbers can be looked at one by one."""
    if count > MOST:
        raise NotDescribed(f"{count} coordinates that are not alike are too many for this program")
    return count


def known(kind: Any, names: Iterable[str], what: str) -> str:
    """One of the names that this program knows."""
    if not isinstance(kind, str) or kind not in names:
        raise NotDescribed(f"{what} {kind!r} is not covered by this checker")
    return kind


def wholes(value: Any, name: str, *, least: int = 1) -> list[int]:
    """A list of integers."""
    return [whole(item, name, least=least) for item in numbers(value, name)]


def adjacency(data: Any) -> str | None:
    """The neighbour relation that an object names, or None."""
    found = data.get("adjacency")
    if found not in ADJACENCIES:
        raise NotDescribed(f"adjacency {found!r} is not known")
    return None if found is None else str(found)
