"""Files: written whole or not at all, never over an input, never through a link that is not the user's own.

Guarantee: `atomic` replaces a plain file in one step and leaves nothing behind when it fails. A directory, a block
device, a socket, a link that dangles or leads to anything but a plain file of this user is refused. A FIFO or a
character device (a terminal, the null device) is written to in place and stays what it is.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.values import printable

COMPANIONS = ("", "-journal", "-wal", "-shm")  # of a SQLite file: to overwrite one is to lose the file
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
Where = str | os.PathLike[str]


@contextlib.contextmanager
def atomic(path: Where) -> Iterator[IO[bytes]]:
    """A stream whose bytes appear under the name only once they are complete.

    A file that exists keeps its permissions; a new one gets those of the process. Nothing else changes: the name of
    a link stays a link, and a file with several names is replaced under this one only.
    """
    target, found = _target(Path(path))
    if found is not None and not stat.S_ISREG(found.st_mode):
        with _in_place(target, found) as stream:
            yield stream
        return
    temporary = target.with_name(f".shapedp-{secrets.token_hex(8)}")
    mode = 0o666 if found is None else stat.S_IMODE(found.st_mode)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flag("O_NOFOLLOW") | _flag("O_BINARY"), mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            if found is not None and hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
            yield stream
            stream.flush()
            os.fsync(handle)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if os.name == "posix":
        with contextlib.suppress(OSError):  # where a file system cannot, the file itself is there all the same
            sync_folder(target.parent)


def write_bytes(path: Where, data: bytes) -> None:
    """The bytes, whole or not at all."""
    with atomic(path) as stream:
        stream.write(data)


def check_output(path: Where) -> None:
    """Raises, before any work or spending, what `atomic` would raise about the name."""
    _target(Path(path))


def check_input(path: Path, *, folder: bool = False) -> None:
    """Raises unless the path is a plain file (or a folder): a pipe may never end, a device never does."""
    if not path.is_file() and not (folder and path.is_dir()):
        raise FileNotFoundError(f"{path}: not a plain file" if path.exists() else f"{path}: no such file")


def _target(path: Path) -> tuple[Path, os.stat_result | None]:
    """Where the bytes go, and what is there now (None: nothing)."""
    if "\0" in os.fspath(path):
        raise ValueError("a file name must not hold a null character")
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{path.parent}: no such folder") from None
        return path, None
    except NotADirectoryError:
        raise FileNotFoundError(f"{path.parent}: no such folder") from None
    if stat.S_ISLNK(found.st_mode):
        try:
            end = Path(os.path.realpath(path, strict=True))
            found = os.lstat(end)
        except OSError:
            raise ValueError(f"{path} is a link that leads nowhere: name the file itself") from None
        own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
        if not stat.S_ISREG(found.st_mode) or not own:
            raise ValueError(f"{path} is a link to what is not a plain file of yours: name the file itself")
        path = end
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{path} is a directory")
    if stat.S_ISREG(found.st_mode) and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} must not be written to: change its permissions or choose another name")
    if not any(kind(found.st_mode) for kind in (stat.S_ISREG, stat.S_ISFIFO, stat.S_ISCHR)):
        raise ValueError(f"{path} is a device or a socket, not a file to write to")
    return path, found


@contextlib.contextmanager
def _in_place(path: Path, expected: os.stat_result) -> Iterator[IO[bytes]]:
    """A FIFO or character device: all bytes at the end, into what was looked at, which must have a reader."""
    buffer = io.BytesIO()
    yield buffer
    try:
        handle = os.open(path, os.O_WRONLY | _flag("O_NOFOLLOW") | _flag("O_NONBLOCK") | _flag("O_NOCTTY"))
    except OSError as error:
        raise OSError(f"{path} cannot be written to now ({error.strerror}): does anything read it?") from None
    with os.fdopen(handle, "wb") as stream:
        found = os.fstat(handle)
        if any(getattr(found, what) != getattr(expected, what) for what in ("st_dev", "st_ino", "st_mode")):
            raise OSError(f"{path} has been exchanged for something else")
        os.set_blocking(handle, True)
        stream.write(buffer.getvalue())


def sync_folder(folder: Path) -> None:
    """The names in a folder, on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _flag(name: str) -> int:
    return int(getattr(os, name, 0))


def guard(inputs: Iterable[Where], outputs: Iterable[Where]) -> None:
    """Raises ValueError if an output is an input, lies in a folder that is one, or is another output.

    Files are compared by device and inode, so links, other spellings and mounts do not hide one; a name that does not
    exist yet by its folder. Standard input, output and error count too where they are files. A database counts with
    the files SQLite keeps beside it, a folder with all that it reaches through links.
    """
    every = [(path, Path(f"{os.fspath(path)}{end}")) for path in inputs for end in COMPANIONS]
    every += [(path, one) for path in inputs for one in _reached(Path(path))]
    read = {key: str(path) for path, one in every for key in _keys(one)}
    read.update((key, "standard input or output") for key in _standard())
    taken: set[object] = set()
    for path in outputs:
        check_output(path)
        if _discards(Path(path)):
            continue
        keys = _keys(Path(path))
        folders = [("inside", _inode(folder)) for folder in Path(os.path.realpath(path)).parents]
        used = next((read[key] for key in (*keys, *folders) if key in read), None)
        if used is not None:
            raise ValueError(f"{path} is an input of this command ({used}): choose another name")
        if not taken.isdisjoint(keys):
            raise ValueError(f"{path} is named for two outputs: choose another file for one of them")
        taken.update(keys)


def _reached(folder: Path) -> Iterator[Path]:
    """What a folder leads to, folders and files, through links of both; nothing where it is not a folder."""
    known = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        inode = _inode(Path(place))
        if inode in known:  # a link back
            folders.clear()
            continue
        known.add(inode)
        yield Path(place)
        yield from (Path(place, name) for name in names)


def _keys(path: Path) -> list[object]:
    """What identifies a file: its inode if it exists, and its name in its folder."""
    real = Path(os.path.realpath(path))
    keys: list[object] = [("name", _inode(real.parent), real.name.casefold())]
    inode = _inode(path)
    if inode is not None:
        keys.append(("inode", inode))
        if path.is_dir():
            keys.append(("inside", inode))
    return keys


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _standard() -> Iterator[object]:
    for handle in (0, 1, 2):
        with contextlib.suppress(OSError):
            found = os.fstat(handle)
            if stat.S_ISREG(found.st_mode):
                yield "inode", (found.st_dev, found.st_ino)


def _discards(path: Path) -> bool:
    """A FIFO or character device keeps nothing, so two outputs may share it."""
    with contextlib.suppress(OSError):
        mode = os.lstat(path).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)
    return False


def read_array(path: Where) -> NDArray[Any]:
    """The array in an npy file; anything else, pickled objects included, is refused."""
    path = Path(path)
    check_input(path)
    with path.open("rb") as stream:
        try:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
        except OSError:
            raise
        except Exception:  # its header is read as Python text: damage shows as any error of a tokenizer or parser
            raise ValueError(f"{path}: not a whole npy file of plain numbers") from None


def csv_bytes(rows: Iterable[Iterable[Any]]) -> bytes:
    """Rows as csv: quoted where needed, numbers exactly, text that a spreadsheet would run made harmless by a quote.

    Control characters in text are written as escapes, so that to show the file does nothing to a terminal.
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def _cell(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    shown = printable(cell)
    return f"'{shown}" if cell.lstrip(" ").startswith(_FORMULA) else shown
