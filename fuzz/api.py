"""Every public callable, found by inspection, called with plausible and odd values."""

from __future__ import annotations

import copy
import inspect
import random
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.boundary.booleans import public_objects

from fuzz.pool import odd, plausible, shown, stock
from fuzz.properties import Outcome, documented, judge

# Not called, and why.
LEFT_OUT = {
    "shapedp.papers.register.harness.reproduce": "minutes by design; runs experiments",
    "shapedp.papers.register.register.verify_all": "recomputes the whole register",
    "shapedp.papers.register.register.check": "runs the callable it is given",
    "shapedp.torch.attacks.canary": "trains",
}
INNER = ("Floats", "Source", "Integers")  # of protocols between the library's parts: sound values only
# One call in a hundred: they read files or compute tables.
_HEAVY = ("shapedp.papers.datasets", "shapedp.papers.register")


@dataclass(frozen=True)
class Target:
    """A callable, and what it is called on (an object of the stock, or None)."""

    name: str
    function: Callable[..., Any]


@cache
def targets() -> tuple[Target, ...]:
    """Functions, classes, class methods, and the methods and properties of every kind of object in the stock."""
    found: dict[str, Target] = {}
    for where, thing in sorted(public_objects().items()):
        if where in LEFT_OUT or getattr(thing, "_is_protocol", False):
            continue
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            continue
        found[where] = Target(where, thing)
        if inspect.isclass(thing):
            for name, method in inspect.getmembers(thing, inspect.ismethod):
                if not name.startswith("_"):
                    found[f"{where}.{name}"] = Target(f"{where}.{name}", method)
    for index, one in enumerate(stock()):
        kind = type(one)
        for name in dir(kind):
            if name.startswith("_") or isinstance(inspect.getattr_static(kind, name), classmethod | staticmethod):
                continue
            where = f"{kind.__module__}.{kind.__qualname__}.{name}#{index}"
            if isinstance(inspect.getattr_static(kind, name), types.FunctionType):
                found[where] = Target(where, getattr(one, name))
            elif hasattr(inspect.getattr_static(kind, name), "__get__"):
                found[where] = Target(where, lambda one=one, name=name: getattr(one, name))
    return tuple(found[name] for name in sorted(found))


def chosen(rng: random.Random) -> Target:
    """A target; the heavy ones seldom."""
    while True:
        target = rng.choice(targets())
        if not target.name.startswith(_HEAVY) or rng.random() < 0.01:
            return target


def case(number: int, folder: Path) -> Outcome:
    """Call one target; everything random follows from the number."""
    rng = random.Random(f"api {number}")
    target = chosen(rng)
    name = target.name.partition("#")[0].removeprefix("shapedp.")
    arguments, named = _arguments(rng, target.function)
    words = ", ".join([*(shown(one) for one in arguments), *(f"{key}={shown(one)}" for key, one in named.items())])
    before = [_bytes(one) for one in (*arguments, *named.values())]
    np.random.seed(number % 2**32)  # noqa: NPY002
    try:
        result = target.function(*arguments, **named)
        if isinstance(result, types.GeneratorType):
            result = [one for one, _ in zip(result, range(10), strict=False)]
    except documented() as error:
        own = "shapedp" in str(traceback.extract_tb(error.__traceback__)[-1].filename)
        broken = _changed(before, (*arguments, *named.values()))
        return Outcome(name, type(error).__name__ + ("" if own else " (from below)"), broken, words)
    except Warning as error:
        return Outcome(name, type(error).__name__, (f"documented: {type(error).__name__}: {error}",), words)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        if allowed := _allowed(error, where.filename, (*arguments, *named.values())):
            return Outcome(name, allowed, _changed(before, (*arguments, *named.values())), words)
        place = f"{Path(where.filename).name}:{where.lineno}"
        return Outcome(name, type(error).__name__, (f"documented: {type(error).__name__} at {place}",), words)
    given = next((one for key, one in _bound(target.function, arguments, named) if key == "x"), None)
    broken = judge(result, given if isinstance(given, np.ndarray) else None)
    return Outcome(name, "returned", (*broken, *_changed(before, (*arguments, *named.values()))), words)


def _allowed(error: Exception, file: str, values: tuple[Any, ...]) -> str | None:
    """What is not the library's fault, in words: see property 1."""
    if Path(file).name == "pool.py":
        return "the value's own error"
    if isinstance(error, AttributeError):
        items = [one for value in values if isinstance(value, list | tuple) for one in value]
        if any(error.obj is one for one in (*values, *items)):
            return "AttributeError of the caller's object"
    return "another library's error" if type(error).__name__ == "OpenDPException" else None


def _bound(function: Callable[..., Any], arguments: list[Any], named: dict[str, Any]) -> list[tuple[str, Any]]:
    try:
        return list(inspect.signature(function).bind(*arguments, **named).arguments.items())
    except (TypeError, ValueError):
        return []


def _arguments(rng: random.Random, function: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [odd(rng) for _ in range(rng.randrange(3))], {}
    share = rng.choice([0.0, 0.1, 0.3, 1.0])  # of odd values in this call
    arguments: list[Any] = []
    named: dict[str, Any] = {}
    for one in parameters:
        if one.default is not one.empty and rng.random() < 0.6:
            continue
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) or getattr(function, "__name__", "") == "<lambda>":
            continue
        inner = str(one.annotation) in INNER
        value = odd(rng) if rng.random() < share and not inner else plausible(rng, one.name, one.annotation)
        if isinstance(value, np.ndarray | list | dict | set):
            value = copy.deepcopy(value)
        if one.kind is one.POSITIONAL_ONLY:
            arguments.append(value)
        else:
            named[one.name] = value
    if rng.random() < 0.01:
        named["surprise"] = odd(rng)
    return arguments, named


def _bytes(value: Any) -> bytes | None:
    return np.asarray(value).tobytes() if isinstance(value, np.ndarray) and value.dtype.kind != "O" else None


def _changed(before: list[bytes | None], values: tuple[Any, ...]) -> tuple[str, ...]:
    after = [_bytes(one) for one in values]
    return ("untouched: an argument was changed",) if before != after else ()
