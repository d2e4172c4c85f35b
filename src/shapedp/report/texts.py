"""What the pages say: named fragments of HTML in `templates/texts.html`, and the frame of a page."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from string import Template

from shapedp.report.markup import Child, Markup, many

_FRAGMENT = re.compile(r'<template id="([\w-]+)">(.*?)</template>', re.DOTALL)


def text(name: str, **values: Child) -> Markup:
    """The fragment of that name; values that are not markup are escaped."""
    return _filled(fragments()[name], values)


def frame(**values: Child) -> str:
    """The whole page around its parts."""
    return _filled(_read("page.html"), values)


@cache
def fragments() -> dict[str, str]:
    """Every fragment by its name, on one line."""
    return {name: _joined(body) for name, body in _FRAGMENT.findall(_read("texts.html"))}


def _joined(body: str) -> str:
    """Line breaks become spaces; those next to a block's tag go."""
    tight = re.sub(r"\n(?=<(?:p|ul|li|pre)\b|</)|(?<=>)\n", "", body.strip())
    return tight.replace("\n", " ")


def _filled(template: str, values: dict[str, Child]) -> Markup:
    return Markup(Template(template).substitute({name: many(value) for name, value in values.items()}))


@cache
def _read(name: str) -> str:
    return (resources.files("shapedp.report") / "templates" / name).read_text(encoding="utf-8")
