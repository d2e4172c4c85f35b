"""Replacements for methods of recorded modules. They find their recorder by a number and hold nothing of it.

A model refers to its detours: whatever they hold would be written by `torch.save(model)`, copied by `copy.deepcopy`,
and found by anyone who walks the model. So they hold a number and the module itself, and no record.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from torch import nn

P = ParamSpec("P")
R = TypeVar("R")
_LIVE: WeakValueDictionary[int, Any] = WeakValueDictionary()
_NUMBERS = itertools.count(1)


class RecordError(RuntimeError):
    """The gradients of single records cannot be separated; the message says where, and what to do.

    Examples
    --------
    >>> from shapedp.torch import RecordError
    >>> issubclass(RecordError, RuntimeError)
    True
    """


def enrolled(recorder: Any) -> int:
    """A number by which detours find the recorder, as long as something else keeps it alive."""
    number = next(_NUMBERS)
    _LIVE[number] = recorder
    return number


class Detour:
    """Replaces `module.method` by the recorder's `run`; once the recorder is gone, by the class's own method.

    Guarantee: a copy and a pickle of the module hold the class's method, and nothing of the recorder.
    """

    __slots__ = ("method", "module", "number")

    def __init__(self, module: nn.Module, method: str, number: int) -> None:
        self.module, self.method, self.number = module, method, number
        module.__dict__[method] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = _LIVE.get(self.number)
        if recorder is None:
            return getattr(type(self.module), self.method)(self.module, *args, **kwargs)
        try:
            return recorder.run(self.module, self.method, args, kwargs)
        except RecordError as error:
            failure = str(error)  # what was raised holds frames with records
        del args, kwargs
        recorder.forget()
        raise RecordError(failure)

    def __reduce__(self) -> Any:
        return getattr, (self.module, self.method)  # the module is restored before its attributes: this is the class's


def notice(name: str, number: int, parameter: Any) -> None:
    """A hook of a parameter: the recorder's `stray(name, parameter)`."""
    recorder = _LIVE.get(number)
    if recorder is not None:
        recorder.stray(name, parameter)


def without_frames(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, whose errors carry no frames of its own: those hold records and sums without noise."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            found = error.with_traceback(None)
        del args, kwargs
        found.__context__ = found.__cause__ = None
        try:
            raise found
        finally:
            del found  # no cycle of error and frame

    return call
