"""Finding files under SHAPEDP_DATA and checking them before anything is parsed."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
import zlib
from pathlib import Path

from shapedp.papers.datasets.base import Card, ChecksumError, DataFormatError, MissingDataError
from shapedp.papers.datasets.checksums import FILES

VARIABLE = "SHAPEDP_DATA"
Folder = str | os.PathLike[str] | None


def read(card: Card, name: str, folder: Folder) -> bytes:
    """The unpacked content of a file with a known checksum, for instance "mnist/train-labels-idx1-ubyte.gz".

    The file may also lie there unpacked, or packed anew: its content is compared then.

    Guarantee: the bytes returned are those the loader was written for, or ChecksumError is raised.
    """
    expected = FILES[name]
    path = locate(card, (name, name.removesuffix(".gz")), folder)
    raw = path.read_bytes()
    own = hashlib.sha256(raw).hexdigest()
    if own == expected.sha256:
        return gunzip(raw, path, expected.size) if name.endswith(".gz") else raw
    content = raw
    if path.suffix == ".gz":
        try:
            content = gunzip(raw, path, expected.size)
        except DataFormatError as problem:
            raise _mismatch(card, path, own, expected.sha256, str(problem)) from problem
    if hashlib.sha256(content).hexdigest() != expected.content_sha256:
        raise _mismatch(card, path, own, expected.sha256, "its content differs too")
    return content


def read_unlisted(card: Card, names: tuple[str, ...], folder: Folder) -> tuple[bytes, Path]:
    """The unpacked content of the first of `names` that exists (plain, .gz or .bz2), with its path; no checksum."""
    path = locate(card, tuple(name + suffix for name in names for suffix in ("", ".gz", ".bz2")), folder)
    raw = path.read_bytes()
    if path.suffix == ".gz":
        return gunzip(raw, path), path
    return (bunzip(raw, path) if path.suffix == ".bz2" else raw), path


def check_md5(card: Card, path: Path, content: bytes, expected: str) -> bytes:
    """The content, if it has the md5 sum under which it was published; ChecksumError otherwise."""
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != expected:
        raise ChecksumError(
            f"{card.title}: {path} is not the expected file: md5 {found}, expected {expected}. "
            f"Fetch it again from its official source: {card.source}"
        )
    return content


def locate(card: Card, names: tuple[str, ...], folder: Folder) -> Path:
    """The first of the relative paths that is a file."""
    root = os.environ.get(VARIABLE) if folder is None else os.fspath(folder)
    if not root:
        raise _missing(card, names[0], f"the environment variable {VARIABLE} is not set")
    base = Path(root).expanduser()
    if not base.is_dir():
        raise _missing(card, names[0], f"{base} is not a folder")
    for name in names:
        if (base / name).is_file():
            return base / name
    reason = f"{base / names[0]} does not exist"
    if any((base / Path(name).name).is_file() for name in names):
        reason += f"; {base} holds the file itself: give the folder above it"
    raise _missing(card, names[0], reason)


def gunzip(raw: bytes, path: Path | str = "the data", size: int | None = None) -> bytes:
    """Unpacked gzip data; cut short, damaged or more than `size` bytes is an error."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            content = stream.read() if size is None else stream.read(size + 1)
            if size is not None and len(content) <= size:
                stream.read(1)  # past the last byte, where the trailer is checked
    except (EOFError, OSError, zlib.error) as problem:
        raise DataFormatError(f"{path} is cut short or damaged ({problem}); fetch it again") from problem
    if size is not None and len(content) > size:
        raise DataFormatError(f"{path} unpacks to more than the expected {size} bytes")
    return content


def bunzip(raw: bytes, path: Path | str = "the data") -> bytes:
    """Unpacked bzip2 data; cut short or damaged is an error."""
    try:
        return bz2.decompress(raw)
    except (OSError, ValueError, EOFError) as problem:
        raise DataFormatError(f"{path} is cut short or damaged ({problem}); fetch it again") from problem


def _missing(card: Card, name: str, reason: str) -> MissingDataError:
    return MissingDataError(
        f"{card.title}: file {name} not found: {reason}. Set {VARIABLE} (or folder=) to the folder that holds {name}. "
        f"Official source: {card.source}. Licence: {card.licence}"
    )


def _mismatch(card: Card, path: Path, found: str, expected: str, detail: str) -> ChecksumError:
    return ChecksumError(
        f"{card.title}: {path} is not the expected file: sha256 {found}, expected {expected}; {detail}. "
        f"Fetch it again from its official source: {card.source}"
    )
