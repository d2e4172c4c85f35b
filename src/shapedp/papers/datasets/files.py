"""Finding files under SHAPEDP_DATA and checking them before anything is parsed."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
import zlib
from pathlib import Path
from typing import NamedTuple

from shapedp.boundary.refusals import refusal
from shapedp.papers.datasets.base import ChecksumError, DataFormatError, MissingDataError
from shapedp.papers.datasets.cards import CARDS
from shapedp.papers.values import read_toml

VARIABLE = "SHAPEDP_DATA"
Folder = str | os.PathLike[str] | None


class Stored(NamedTuple):
    """What a file must be: its sha256, and the size and sha256 of what it unpacks to."""

    sha256: str
    size: int
    content_sha256: str


FILES = {name: Stored(*sums) for name, sums in read_toml("shapedp.papers.datasets", "checksums.toml").items()}


def read(name: str, folder: Folder) -> bytes:
    """The unpacked content of a file with a known checksum, for instance "mnist/train-labels-idx1-ubyte.gz".

    The name begins with that of the data set. The file may also lie there unpacked, or packed anew: its content is
    compared then.

    Guarantee: the bytes returned are those the loader was written for, or ChecksumError is raised.
    """
    expected, data = FILES[name], name.partition("/")[0]
    path = locate(data, (name, name.removesuffix(".gz")), folder)
    raw = path.read_bytes()
    own = hashlib.sha256(raw).hexdigest()
    found = f"sha256 {own}, expected {expected.sha256}"
    try:
        content = unpacked(raw, path, expected.size)
    except DataFormatError as problem:
        raise _mismatch(data, path, f"{found}; {problem}") from problem
    if own != expected.sha256 and hashlib.sha256(content).hexdigest() != expected.content_sha256:
        raise _mismatch(data, path, f"{found}; its content differs too")
    return content


def read_unlisted(data: str, names: tuple[str, ...], folder: Folder) -> tuple[bytes, Path]:
    """The unpacked content of the first of `names` that exists (plain, .gz or .bz2), with its path; no checksum."""
    path = locate(data, tuple(name + suffix for name in names for suffix in ("", ".gz", ".bz2")), folder)
    return unpacked(path.read_bytes(), path), path


def check_md5(data: str, path: Path, content: bytes, expected: str) -> bytes:
    """The content, if it has the md5 sum under which it was published; ChecksumError otherwise."""
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != expected:
        raise _mismatch(data, path, f"md5 {found}, expected {expected}")
    return content


def locate(data: str, names: tuple[str, ...], folder: Folder) -> Path:
    """The first of the relative paths that is a file."""
    root = os.environ.get(VARIABLE) if folder is None else os.fspath(folder)
    base = Path(root or "").expanduser()
    if not root:
        reason = f"the environment variable {VARIABLE} is not set"
    elif not base.is_dir():
        reason = f"{base} is not a folder"
    else:
        for name in names:
            if (base / name).is_file():
                return base / name
        reason = f"{base / names[0]} does not exist"
        if any((base / Path(name).name).is_file() for name in names):
            reason += f"; {base} holds the file itself: give the folder above it"
    raise MissingDataError(refusal("papers.datasets", "missing", card=CARDS[data], name=names[0], reason=reason))


def unpacked(raw: bytes, path: Path, size: int | None = None) -> bytes:
    """The content of packed data (.gz or .bz2); cut short, damaged or more than `size` bytes is an error."""
    if path.suffix not in (".gz", ".bz2"):
        return raw
    try:
        with (gzip if path.suffix == ".gz" else bz2).open(io.BytesIO(raw)) as stream:
            content: bytes = stream.read(-1 if size is None else size + 1)
            stream.read(1)  # past the last byte, where the trailer is checked
    except (EOFError, OSError, ValueError, zlib.error) as problem:
        raise DataFormatError(f"{path} is cut short or damaged ({problem}); fetch it again") from problem
    if size is not None and len(content) > size:
        raise DataFormatError(f"{path} unpacks to more than the expected {size} bytes")
    return content


def _mismatch(data: str, path: Path, detail: str) -> ChecksumError:
    return ChecksumError(refusal("papers.datasets", "another-file", card=CARDS[data], path=path, detail=detail))
