"""A window on releases: what reached a mechanism, seen (and answered) by an audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from numpy.typing import NDArray

Draw = Callable[[], NDArray[Any]]
Watcher = Callable[[Any, NDArray[Any], Draw], NDArray[Any]]

_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def watched(mechanism: Any, x: NDArray[Any], draw: Draw) -> NDArray[Any]:
    """draw(), unless a watcher is set: then what it answers to (mechanism, x, draw)."""
    watcher = _WATCHER.get()
    return draw() if watcher is None else watcher(mechanism, x, draw)


def is_watched() -> bool:
    """Whether a watcher answers releases here: such a release is not secure, and its certificate says so."""
    return _WATCHER.get() is not None


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Hand every release of this context (thread or task) to a watcher.

    A watcher sees true answers: audits use it on test data, nothing in the library sets one.
    """
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)
