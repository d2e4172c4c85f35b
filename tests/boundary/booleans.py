"""Every boolean of the public API, found by inspection."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import shapedp

KINDS = ("bool", "bool | None", bool)


@dataclass(frozen=True)
class Boolean:
    """A parameter annotated as a boolean, and how to call what has it."""

    where: str
    owner: Any  # the class, or None for a function
    function: Any
    name: str
    annotation: str

    def __str__(self) -> str:
        return f"{self.where}({self.name})"


def public_modules() -> Iterator[Any]:
    """Every module of the library that exports names."""
    yield shapedp
    for found in pkgutil.walk_packages(shapedp.__path__, "shapedp."):
        if any(part.startswith("_") for part in found.name.split(".")) or found.name.startswith("shapedp.cli"):
            continue
        if found.ispkg and hasattr(module := importlib.import_module(found.name), "__all__"):
            yield module


def public_objects() -> dict[str, Any]:
    """Every class and function that some package exports, once, by where it is defined."""
    found = {}
    for module in public_modules():
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and getattr(thing, "__module__", "").startswith("shapedp"):
                found[f"{thing.__module__}.{getattr(thing, '__qualname__', name)}"] = thing
    return found


def booleans() -> list[Boolean]:
    """Every parameter annotated as a boolean of the exported functions, classes and their public methods."""
    found: dict[str, Boolean] = {}
    for where, thing in sorted(public_objects().items()):
        functions = [(where, None, thing)]
        if inspect.isclass(thing):
            if getattr(thing, "_is_protocol", False):
                continue
            functions = [(where, thing, thing)]
            for name, method in inspect.getmembers(thing, callable):
                if not name.startswith("_") and getattr(method, "__module__", "").startswith("shapedp"):
                    functions.append((f"{method.__module__}.{method.__qualname__}", thing, method))
        for place, owner, function in functions:
            if getattr(function, "__isabstractmethod__", False):
                continue
            for name, kind in _annotated(function):
                found.setdefault(f"{place}({name})", Boolean(place, owner, function, name, kind))
    return list(found.values())


def _annotated(function: Any) -> Iterator[tuple[str, str]]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    for parameter in signature.parameters.values():
        if parameter.annotation in KINDS:
            yield parameter.name, str(parameter.annotation)
