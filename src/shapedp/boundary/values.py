"""Values of a caller: booleans, sizes, text. Every check names the argument it refuses.

The checks of numbers and arrays are those of `numerics.checks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from shapedp.numerics.checks import count


def boolean(name: str, value: object) -> bool:
    """True or False, Python's or numpy's; words, numbers and None are refused: "false" is not consent."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise TypeError(f"{name} must be True or False, got {type(value).__name__} {printable(repr(value))[:80]}")


def plain(record: Any) -> None:
    """Check every boolean field of a dataclass, and keep Python's own numbers and words in all fields.

    Called from `__post_init__`, so that a record cannot say "no" and mean yes, a numpy integer cannot wrap in what is
    computed later, and an object that answers differently each time is asked once.
    """
    for field in fields(record):
        if not field.init:
            continue
        value = getattr(record, field.name)
        if field.type in ("bool", bool) or (field.type == "bool | None" and value is not None):
            found: object = boolean(field.name, value)
        else:
            found = plainest(value)
        if found is not value:
            object.__setattr__(record, field.name, found)


def plainest(value: Any) -> Any:
    """Python's own truth value, text or number, of a subclass (such as an enumeration) or of numpy; tuples of them too.

    Others as they are. What a subclass prints, or answers to a comparison, need not be its value. Refused: a long
    double that no float holds.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, np.integer) and value.dtype.kind in "iu":  # a span of time is none
        return int(value)
    if isinstance(value, np.floating):
        with np.errstate(all="ignore"):
            found = float(value)
        if found != value and value == value:
            raise ValueError("a long double that no float holds exactly: write it as a float")
        return found
    if type(value) is tuple:
        several = tuple(map(plainest, value))
        return value if all(one is other for one, other in zip(several, value, strict=True)) else several
    return value


def sizes(name: str, values: Iterable[object]) -> tuple[int, ...]:
    """Whole numbers >= 1 as Python integers, whose product counts the coordinates and is limited as one is."""
    found = tuple(count(name, value) for value in values)
    count(name, math.prod(found))
    return found


_PLAIN = (int, float, str, bool, type(None))
WORDS = {"label": 200, "author": 200, "note": 2000}
"""What may be said about a release, and in how many characters."""


def words(name: str, text: object) -> str:
    """A label, an author or a note: text of a limited length, which every page and terminal shows escaped."""
    most = WORDS[name]
    if not isinstance(text, str) or len(text) > most or not is_text(text):
        raise ValueError(f"{name} must be text of at most {most} characters, without NUL and broken characters")
    return text.strip()


def is_text(text: str) -> bool:
    """Whether a string is one that every file and database holds: no NUL, no lone surrogate."""
    return "\0" not in text and not is_broken(text)


def is_broken(text: str) -> bool:
    """Whether a string holds a lone surrogate: half a character, which no file, database or page can hold."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def whole_text(name: str, text: str) -> str:
    """The text as Python's own; refused, unquoted, where it holds a broken character."""
    text = plainest(text)
    if is_broken(text):
        raise ValueError(f"{name} holds a broken character (a lone surrogate): write it as text in UTF-8")
    return text


def printable(text: str) -> str:
    """The text with every control character, direction mark and lone surrogate written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
