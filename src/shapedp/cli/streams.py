"""Standard output and error that no text can misuse and no closed pipe can break."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from shapedp.boundary.values import printable


class Shown:
    """A text stream that writes control characters as escapes, and goes quiet when its reader has left.

    A command then ends as it would have: with its files written and its own exit code.
    """

    def __init__(self, stream: TextIO, kept: str) -> None:
        self._stream, self._kept, self._gone = stream, kept, False

    def write(self, text: str) -> int:
        """Write, and say how much was asked for."""
        shown = "".join(c if c.isprintable() or c in self._kept else printable(c) for c in text)
        code = getattr(self._stream, "encoding", None) or "utf-8"
        self._try(self._stream.write, shown.encode(code, "backslashreplace").decode(code))
        return len(text)

    def flush(self) -> None:
        """Flush."""
        self._try(self._stream.flush)

    def _try(self, action: Any, *arguments: Any) -> None:
        if self._gone:
            return
        try:
            action(*arguments)
        except OSError as error:
            self._gone = True
            _discard(self._stream)
            if not isinstance(error, BrokenPipeError):
                raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _discard(stream: TextIO) -> None:
    """Send what a broken stream still holds to nowhere, so that the interpreter's own last flush succeeds."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _or_nowhere(stream: TextIO | None) -> TextIO:
    """The stream; where the caller closed it (>&-) Python has none, and the text goes nowhere.

    The null device then takes the free handle too, so that no file of a command is ever open as standard output.
    """
    return open(os.devnull, "w", encoding="utf-8") if stream is None else stream


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Both streams shown safely."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    out, err = Shown(_or_nowhere(sys.stdout), "\n\t"), Shown(_or_nowhere(sys.stderr), "\n\t\r")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
