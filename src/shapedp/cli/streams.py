"""Standard output and error that no text can misuse and no closed pipe can break; signals that leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO


@contextlib.contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """A request to end the process is an interrupt, so that files which are being written are removed on the way."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    names = ("SIGTERM", "SIGHUP") if ours else ()  # other threads may not set these; SIGHUP is not known everywhere
    held = [getattr(signal, name) for name in names if hasattr(signal, name)]
    held = [one for one in held if signal.getsignal(one) is signal.SIG_DFL]
    try:
        for one in held:
            signal.signal(one, interrupt)
        yield
    finally:
        for one in held:
            signal.signal(one, signal.SIG_DFL)


class Shown:
    """A text stream that writes control characters as escapes, and goes quiet when it cannot be written to.

    A command then goes on as it would have: what it writes and spends does not depend on who reads its words. `lost`
    says why words were lost; a reader that has left wanted no more, so that nothing is lost then.
    """

    def __init__(self, stream: TextIO, kept: str) -> None:
        self._stream, self._kept, self._gone = stream, kept, False
        self.lost = ""

    def write(self, text: str) -> int:
        """Write, and say how much was asked for."""
        shown = "".join(c if c.isprintable() or c in self._kept else _escaped(c) for c in text)
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
                self.lost = error.strerror or type(error).__name__

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _escaped(character: str) -> str:
    from shapedp.boundary.values import printable  # loads numpy: `shapedp --help` must not wait for it

    return printable(character)


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
def guarded() -> Iterator[Shown]:
    """Both streams shown safely; that of the output."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    out, err = Shown(_or_nowhere(sys.stdout), "\n\t"), Shown(_or_nowhere(sys.stderr), "\n\t\r")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out


def progress(text: str, *, last: bool = False) -> None:
    """A line on a terminal that the next one overwrites; nothing where standard error is no terminal."""
    if sys.stderr.isatty():
        print(f"\r{text:<100}", end="\n" if last else "\r", file=sys.stderr, flush=True)
