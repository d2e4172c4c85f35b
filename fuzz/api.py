"""Every public callable, found by inspection, called with plausible and odd values."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import json
import random
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tests.boundary.booleans import public_objects

from fuzz.pool import each_odd, odd, of_kind, plausible, shown, stock
from fuzz.properties import Outcome, documented, judge
from fuzz.sound import sound

# Not called, and why.
LEFT_OUT = {
    "shapedp.papers.register.harness.reproduce": "minutes by design; runs experiments",
    "shapedp.papers.register.register.verify_all": "recomputes the whole register",
    "shapedp.papers.register.register.check": "runs the callable it is given",
    "shapedp.torch.attacks.canary": "trains",
}
REFUSED = ("partial_fit",)  # by AttributeError, as scikit-learn tells what an estimator lacks
INNER = ("Floats", "Source", "Integers", "Request")  # of protocols between the library's parts: sound values only
COSTS = Path(__file__).with_name("costs.json")  # milliseconds of a call, by target, as `run.py --costs` measured them
_CHEAP = 1.0  # milliseconds: what costs more is called less often, in proportion
_STRIDE = 2**31 - 1  # a prime
_TURN = 200  # one case in so many goes through all targets in turn, so that each is met, whatever it costs


@dataclass(frozen=True)
class Target:
    """A callable, and what it is called on (an object of the stock, or None)."""

    name: str
    function: Callable[..., Any]
    owner: Any = None

    @property
    def known(self) -> str:
        """Its name, whichever object it is called on."""
        return self.name.partition("#")[0].removeprefix("shapedp.")

    @cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...] | None:
        """Those of its signature, if it has one."""
        try:
            return tuple(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):
            return None


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
                    found[f"{where}.{name}"] = Target(f"{where}.{name}", method, thing)
    for index, one in enumerate(stock()):
        kind = type(one)
        for name in dir(kind):
            if name.startswith("_") or isinstance(inspect.getattr_static(kind, name), classmethod | staticmethod):
                continue
            where = f"{kind.__module__}.{kind.__qualname__}.{name}#{index}"
            static = inspect.getattr_static(kind, name)
            if isinstance(static, types.FunctionType):
                if name in REFUSED or not static.__module__.startswith("shapedp"):
                    continue
                found[where] = Target(where, _fresh(one, name), one)
            elif hasattr(one, name) and hasattr(inspect.getattr_static(kind, name), "__get__"):
                found[where] = Target(where, lambda one=one, name=name: getattr(one, name))
    return tuple(found[name] for name in sorted(found))


def _fresh(one: Any, name: str) -> Callable[..., Any]:
    """A method of a sound object; of one that changes, of a copy made for the call."""
    method = getattr(one, name)
    if not hasattr(one, "get_params"):
        return method  # type: ignore[no-any-return]

    @functools.wraps(method)
    def called(*arguments: Any, **named: Any) -> Any:
        return getattr(copy.deepcopy(one), name)(*arguments, **named)

    return called


@cache
def _weights() -> list[float]:
    """How often each target is called, summed up: all that are cheap as often, the others for as much time."""
    costs = json.loads(COSTS.read_text(encoding="utf-8"))
    weights = (min(1.0, _CHEAP / costs.get(target.known, _CHEAP)) for target in targets())
    return list(itertools.accumulate(weights))


def chosen(rng: random.Random, number: int) -> Target:
    """The target of a case."""
    if number % _TURN == 0:
        return targets()[number // _TURN % len(targets())]
    return rng.choices(targets(), cum_weights=_weights())[0]


@cache
def _pairs() -> tuple[tuple[Target, inspect.Parameter], ...]:
    """Every parameter of every target that can be given."""
    return tuple(
        (target, one)
        for target in targets()
        for one in target.parameters or ()
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and str(one.annotation) not in INNER
    )


def one_odd(number: int) -> tuple[Target, str, Any]:
    """The target of a case of `each`, its parameter and that one's odd value; a round meets each with each."""
    whole = len(_pairs()) * len(each_odd())
    pair, value = divmod(number * _STRIDE % whole, len(each_odd()))  # far apart, so that a part of a round meets all
    target, one = _pairs()[pair]
    return target, one.name, each_odd()[value]


def each_case(number: int, folder: Path) -> Outcome:
    """Call one target with one odd argument among plausible ones."""
    rng = random.Random(f"each {number}")
    target, name, value = one_odd(number)
    return _judged(number, target, *_arguments(rng, target, {name: value}))


def case(number: int, folder: Path) -> Outcome:
    """Call one target; everything random follows from the number."""
    rng = random.Random(f"api {number}")
    target = chosen(rng, number)
    return _judged(number, target, *_arguments(rng, target))


def _judged(number: int, target: Target, arguments: list[Any], named: dict[str, Any]) -> Outcome:
    given = (*arguments, *named.values())
    before = [_bytes(one) for one in given]
    np.random.seed(number % 2**32)  # noqa: NPY002
    end, broken = _called(target, arguments, named)
    broken = (*broken, *_changed(before, given))
    words = ""
    if broken:
        words = ", ".join([*(shown(one) for one in arguments), *(f"{key}={shown(one)}" for key, one in named.items())])
    return Outcome(target.known, end, broken, words)


def _called(target: Target, arguments: list[Any], named: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """How the call ended, in a word, and the properties it broke."""
    try:
        result = target.function(*arguments, **named)
        if isinstance(result, types.GeneratorType):
            result = [one for one, _ in zip(result, range(10), strict=False)]
    except documented() as error:
        own = "shapedp" in _raised(error)[0]
        return type(error).__name__ + ("" if own else " (from below)"), ()
    except Warning as error:
        return type(error).__name__, (f"documented: {type(error).__name__}: {error}",)
    except Exception as error:
        file, line = _raised(error)
        if allowed := _allowed(error, file, (*arguments, *named.values())):
            return allowed, ()
        return type(error).__name__, (f"documented: {type(error).__name__} at {Path(file).name}:{line}",)
    x = named.get("x", arguments[0] if arguments else None)
    return "returned", tuple(judge(result, x if isinstance(x, np.ndarray) and _takes_x(target) else None))


def _raised(error: BaseException) -> tuple[str, int]:
    """The file and line that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace is not None else ("", 0)


def _takes_x(target: Target) -> bool:
    parameters = target.parameters or ()
    return any(one.name == "x" and (one.kind is not one.POSITIONAL_ONLY or one is parameters[0]) for one in parameters)


def _allowed(error: Exception, file: str, values: tuple[Any, ...]) -> str | None:
    """What is not the library's fault, in words: see property 1."""
    if Path(file).name == "pool.py":
        return "the value's own error"
    if isinstance(error, AttributeError):
        items = [one for value in values if isinstance(value, list | tuple) for one in value]
        if any(error.obj is one for one in (*values, *items)):
            return "AttributeError of the caller's object"
    return "another library's error" if type(error).__name__ == "OpenDPException" else None


def _arguments(
    rng: random.Random, target: Target, fixed: dict[str, Any] | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments, some of them odd; plausible ones but for those that are fixed, if some are."""
    if target.parameters is None:
        return [odd(rng) for _ in range(rng.randrange(3))], {}
    share = 0.0 if fixed else rng.choice([0.0, 0.1, 0.3, 1.0])  # of odd values in this call
    like = _like(rng, target)
    arguments: list[Any] = []
    named: dict[str, Any] = {}
    for one in target.parameters:
        given = fixed is not None and one.name in fixed
        if not given and one.default is not one.empty and rng.random() < 0.6:
            continue
        if getattr(target.function, "__name__", "") == "<lambda>":
            continue
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            if several := sound(f"{target.known}.{one.name}", target.owner):
                more = rng.choice(several)
                arguments += more if one.kind is one.VAR_POSITIONAL else ()
                named |= more if one.kind is one.VAR_KEYWORD else {}
            continue
        inner = str(one.annotation) in INNER
        if fixed is not None and given:
            value = fixed[one.name]
        elif rng.random() < share and not inner:
            value = odd(rng)
        elif hasattr(like, one.name):
            value = getattr(like, one.name)
        else:
            value = plausible(rng, one.name, one.annotation, target.known, target.owner)
        if isinstance(value, np.ndarray | list | dict | set):
            value = copy.deepcopy(value)
        follows = any(other.kind is one.VAR_POSITIONAL for other in target.parameters)
        if one.kind is one.POSITIONAL_ONLY or (follows and one.kind is one.POSITIONAL_OR_KEYWORD):
            arguments.append(value)
        else:
            named[one.name] = value
    if fixed is None and rng.random() < 0.01:
        named["surprise"] = odd(rng)
    return arguments, named


def _like(rng: random.Random, target: Target) -> Any:
    """A sound object of the class that is called, whose own values serve as arguments; often None."""
    if not inspect.isclass(target.function) or rng.random() < 0.3:
        return None
    return of_kind(rng, target.function)


def _bytes(value: Any) -> bytes | None:
    return np.asarray(value).tobytes() if isinstance(value, np.ndarray) and value.dtype.kind != "O" else None


def _changed(before: list[bytes | None], values: tuple[Any, ...]) -> tuple[str, ...]:
    after = [_bytes(one) for one in values]
    return ("untouched: an argument was changed",) if before != after else ()
