"""HTML and SVG elements as text, and what the pages say: named fragments of HTML in `templates/texts.html`.

Whatever is not already markup is escaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import TypeAlias

_VOID = frozenset({"br", "hr", "link", "meta"})
_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNREADABLE = "\ufffd"
_FRAGMENT = re.compile(r'<template id="([\w-]+)">(.*?)</template>', re.DOTALL)


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
    return Markup(f"<{name}{written}>{many(*children)}</{name}>")


def many(*children: Child) -> Markup:
    """Several elements, one after the other."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(readable(child)))
        else:
            parts.append(many(*child))
    return Markup("".join(parts))


def _attribute(name: str, value: str | float | bool) -> str:
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(readable(text))}"'


def text(name: str, **values: Child) -> Markup:
    """The fragment of that name; values that are not markup are escaped."""
    return _filled(fragments()[name], values)


def frame(**values: Child) -> str:
    """The whole page around its parts."""
    return _filled(_read("page.html"), values)


@cache
def fragments() -> dict[str, str]:
    """Every fragment by its name, on one line."""
    return {name: _one_line(body) for name, body in _FRAGMENT.findall(_read("texts.html"))}


def _one_line(body: str) -> str:
    """Line breaks become spaces; those next to a block's tag go."""
    tight = re.sub(r"\n(?=<(?:p|ul|li|pre)\b|</)|(?<=>)\n", "", body.strip())
    return tight.replace("\n", " ")


def _filled(template: str, values: dict[str, Child]) -> Markup:
    return Markup(Template(template).substitute({name: many(value) for name, value in values.items()}))


@cache
def _read(name: str) -> str:
    return (resources.files("shapedp.report") / "templates" / name).read_text(encoding="utf-8")
