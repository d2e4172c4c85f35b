"""Loops that numba compiles where it is installed (the extra `fast`), and numpy does elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

PAYS = 1 << 24  # numbers after which loading numba (0.4 s, from its cache on disk) has paid for itself


class Kernel:
    """A loop written for numba. It is loaded when the work asked of it has become worth that.

    `here(size)` answers None while numpy should do the work: without numba, or until calls have asked for
    `PAYS` numbers. So where a kernel takes over depends on what ran before; only loops whose results equal
    those of numpy bit for bit may ask it. `at_once(size)` looks at one call alone: the same call has the same bits,
    whatever ran before, where numba is installed, and may have others where it is not.

    Parameters: `function`, in the subset of Python that numba compiles; `pays`, in numbers.

    Example:
        >>> Kernel(abs).here(10) is None
        True
    """

    def __init__(self, function: Callable[..., Any], pays: int = PAYS) -> None:
        self._function, self._pays = function, pays
        self._asked = 0
        self._lock = Lock()
        self._loaded: Callable[..., Any] | None = None

    def here(self, size: int) -> Callable[..., Any] | None:
        """The compiled loop, or None where numpy is to do this work of so many numbers."""
        self._asked += size
        return self._load() if self._asked >= self._pays else None

    def at_once(self, size: int) -> Callable[..., Any] | None:
        """The same, whatever was asked before."""
        return self._load() if size >= self._pays else None

    def _load(self) -> Callable[..., Any] | None:
        numba = _numba()
        if numba is None:
            return None
        with self._lock:
            if self._loaded is None:
                self._loaded = _compiled(numba, self._function)
        return self._loaded


@cache
def _numba() -> Any:
    """The module, or None where it is missing, does not fit this numpy, or is told not to compile."""
    try:
        import numba
    except ImportError:
        return None
    return None if numba.config.DISABLE_JIT else numba


def _compiled(numba: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled at its first call for each kind of argument and kept on disk where that is possible."""
    options = {"nogil": True, "error_model": "numpy"}
    plain = numba.njit(**options)(function)
    try:
        kept = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep it in: a read-only install without a home
        return plain  # type: ignore[no-any-return]

    def call(*arguments: Any) -> Any:
        try:
            return kept(*arguments)
        except (OSError, EOFError):  # the folder is full, or cannot be read
            return plain(*arguments)

    return call
