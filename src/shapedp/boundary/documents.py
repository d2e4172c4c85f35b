"""JSON from outside: limits first, then the text; sizes first, then the arrays.

Guarantee: what is read takes memory in proportion to the file and to `ENTRIES`, whatever the file announces, and what
is refused is refused in words (ValueError), never by a crash of the parser.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.files import Where, write_bytes
from shapedp.boundary.values import whole_text
from shapedp.numerics.checks import count, finite

BYTES = 1 << 28  # of a document
DEPTH = 64  # of nested lists and objects
VALUES = 4_000_000  # numbers, words and names: longer arrays are written as bytes
ENTRIES = 1 << 27  # of one array, and of all packed arrays of a document
DIGITS = 400  # of one number
_READABLE = 256
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_JSON = (Mapping, list, tuple, str, int, float, type, type(None))  # and the class that a classmethod is called on
P = ParamSpec("P")
T = TypeVar("T")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # halves of characters, in pairs or not
_LONG = re.compile(rb"[0-9]{%d}" % (DIGITS + 1))


def read(path: Where, *, constants: bool = False) -> dict[str, Any]:
    """The JSON object in a file; see `parse`."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    with path.open("rb") as stream:
        text = stream.read(min(os.fstat(stream.fileno()).st_size, BYTES) + 1)  # a reader makes room for all it is asked
    try:
        data = parse(text, constants=constants)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path}: not a JSON object")
    return data


def parse(text: str | bytes, *, constants: bool = False) -> Any:
    """The value behind JSON text; too long, too deep, too many values (also packed) and names given twice are refused.

    So are NaN and infinity, unless `constants` allows them (results of our own, never a parameter).
    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    _limits(raw)
    try:
        text = raw.decode("utf-8")
        other = float if constants else _constant
        found = json.loads(text, parse_constant=other, parse_float=_number, object_pairs_hook=_objects())
    except UnicodeDecodeError:
        raise ValueError("not JSON (not text in UTF-8)") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error})") from None
    except RecursionError:
        raise ValueError(f"not readable: lists and objects are nested more than {DEPTH} deep") from None
    if _HALF.search(raw):
        whole_text("not read: a text", json.dumps(found, ensure_ascii=False))
    return found


def _limits(raw: bytes) -> None:
    """What can be counted without building anything."""
    if len(raw) > BYTES:
        raise ValueError(f"not read: more than {BYTES} bytes")
    bare = _STRING.sub(b"0", raw)
    if _LONG.search(bare):
        raise ValueError(f"not read: a number of more than {DIGITS} digits")
    marks = np.frombuffer(bare, dtype=np.uint8)
    if int(np.isin(marks, list(b",:[{")).sum()) > VALUES:
        raise ValueError(f"not read: more than {VALUES} values")
    steps = np.isin(marks, list(b"[{")).astype(np.int32) - np.isin(marks, list(b"]}"))
    if steps.size and int(steps.cumsum().max()) > DEPTH:
        raise ValueError(f"not read: lists and objects are nested more than {DEPTH} deep")


def _constant(word: str) -> float:
    raise ValueError(f"not JSON ({word} is no number)")


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("not read: a number is beyond the range of float64")
    return number


def _objects() -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """What makes the objects of one document, and adds up what its packed arrays announce: a few bytes each."""
    announced = 0

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal announced
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("not read: an object names a field twice")
        entries = found.get("size") if "float64" in found else 0
        announced += max(entries, 0) if isinstance(entries, int) else 0
        if announced > ENTRIES:
            raise ValueError(f"not read: its arrays announce more than {ENTRIES} entries in all")
        return found

    return made


class LacksFieldError(ValueError):
    """A description lacks a field, which is named."""

    def __str__(self) -> str:
        return f"the description lacks the field {self.args[0]!r}"


def described(reader: Callable[P, T]) -> Callable[P, T]:
    """A reader of descriptions that refuses by ValueError (or TypeError) whatever the description lacks or nests."""

    @functools.wraps(reader)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if odd := [one for one in (*args, *kwargs.values()) if not isinstance(one, _JSON)]:
            raise TypeError(f"a description is a JSON object, got {type(odd[0]).__name__}")
        try:
            return reader(*args, **kwargs)
        except KeyError as missing:
            raise LacksFieldError(*missing.args) from None
        except (AttributeError, IndexError, ArithmeticError, RecursionError) as cause:
            raise ValueError(f"the description has a field of a wrong kind or size ({type(cause).__name__})") from None

    return checked


def dumps(data: Any) -> str:
    """Indented JSON; NaN and infinity are refused."""
    return json.dumps(data, indent=2, allow_nan=False)


def write(path: Where, data: Any) -> None:
    """Indented JSON, whole or not at all."""
    write_bytes(path, (dumps(data) + "\n").encode())


def encode(array: NDArray[np.float64]) -> Any:
    """A JSON value from which `decode` restores the same floats: short arrays as numbers, long ones as bytes."""
    if array.size <= _READABLE:
        return array.tolist()
    raw = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return {"float64": base64.b64encode(zlib.compress(raw, 1)).decode("ascii"), "size": int(array.size)}


def decode(name: str, value: Any) -> NDArray[np.float64]:
    """The array behind a JSON value, finite and 1-d; nothing beyond the announced size is ever unpacked."""
    if not isinstance(value, dict):
        return finite(name, value)
    try:
        announced = count(f"the size of {name}", value["size"])
        if announced > ENTRIES:
            raise ValueError(f"more than {ENTRIES} entries were announced")
        unpack = zlib.decompressobj()
        raw = unpack.decompress(base64.b64decode(value["float64"], validate=True), 8 * announced + 1)
    except (KeyError, TypeError, ValueError, zlib.error) as cause:
        raise ValueError(f"{name} is not an encoded array: {cause}") from None
    if len(raw) != 8 * announced or not unpack.eof or unpack.unused_data:
        raise ValueError(f"{name} does not hold the {announced} values that were announced")
    return finite(name, np.frombuffer(raw, dtype="<f8").astype(np.float64))
