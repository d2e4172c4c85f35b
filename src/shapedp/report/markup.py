"""HTML and SVG elements as text. Whatever is not already markup is escaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = frozenset({"br", "hr", "link", "meta"})
_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNREADABLE = "\ufffd"


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
Attribute: TypeAlias = "str | float | bool | None"


def readable(text: str) -> str:
    """The text with control characters, lone surrogates and marks that turn the writing direction replaced."""

    def kept(character: str) -> str:
        odd = unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"
        return _UNREADABLE if odd or character in _TURNING else character

    return "".join(map(kept, text))


def el(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """One element. `class_` is class, `stroke_width` is stroke-width; None and False leave an attribute out."""
    written = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{_joined(children)}</{name}>")


def many(*children: Child) -> Markup:
    """Several elements, one after the other."""
    return _joined(children)


def _joined(children: Iterable[Child]) -> Markup:
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(readable(child)))
        else:
            parts.append(_joined(child))
    return Markup("".join(parts))


def _attribute(name: str, value: str | float | bool) -> str:
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(readable(text))}"'
