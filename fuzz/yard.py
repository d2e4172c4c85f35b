"""The folder in which command lines are run: sound, broken and special files, a ledger, and a watch over all of them.

It is kept from case to case and put back where a case changed it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import shapedp as sdp
from shapedp.accounting import Step
from shapedp.ledger import Ledger

SECRET = "HIV+7731"  # in cells; must never be quoted
FILES = [
    *("m.json", "c.json", "l.json", "p.json", "x.csv", "t.csv", "b.csv", "x.npy", "t.parquet", "bad.json", "empty"),
    *("bytes.csv", "link", "gone", "hard.json", "fifo", "dir", "dir/in.csv", "d.db"),
]
Kept = dict[str, tuple[Any, ...]]
_built: dict[Path, tuple[Kept, dict[str, bytes]]] = {}  # how a folder looks when nothing was changed in it


@cache
def _contents() -> dict[str, bytes]:
    """Sound and broken files of every kind, made once."""
    mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, 3, adjacency="replace"), epsilon=1.0, delta=1e-6)
    laplace = sdp.calibrate("laplace", sdp.L1(1.0, 3), epsilon=1.0, delta=0.0)
    plan = sdp.Plan((Step(sdp.GaussianLoss(1.0), 0.1, 5),))
    documents = {"m": mechanism, "c": mechanism.certificate, "l": laplace, "p": plan}
    found = {f"{name}.json": json.dumps(one.to_json()).encode() for name, one in documents.items()}
    rows = "".join(f"{i % 3},{i % 5},{i % 2}\n" for i in range(40))
    found["x.csv"] = b"v\n1\n2\n3\n"
    found["t.csv"] = f"a,b,c\n{rows}{SECRET},1,0\n".encode()
    found["b.csv"] = b"v\n1\n0.5\n2\n"
    found["dir/in.csv"] = b"v\n1\n"
    found["bad.json"] = b'{"kind": "additive", "law": [[['
    found["empty"] = b""
    found["bytes.csv"] = bytes(range(256))
    return found


def _build(place: Path, ledger: bool) -> None:
    shutil.rmtree(place, ignore_errors=True)
    (place / "dir").mkdir(parents=True)
    for name, content in _contents().items():
        (place / name).write_bytes(content)
    np.save(place / "x.npy", np.array([1.0, 2.0, 3.0]))
    with contextlib.suppress(ImportError):
        import pandas

        pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0]}).to_parquet(place / "t.parquet")
    (place / "link").symlink_to("x.csv")
    (place / "gone").symlink_to("nowhere")
    os.link(place / "m.json", place / "hard.json")
    os.mkfifo(place / "fifo")
    if ledger:
        Ledger.create(place / "d.db", dataset="d", epsilon=3.0, delta=1e-5, adjacency="replace")


def _put_back(place: Path) -> bool:
    """Whether the folder is as it was built, after what changed was written anew and what is new was removed."""
    wanted, contents = _built[place]
    found = watch(place)
    for name in [name for name in found if name not in wanted]:
        with contextlib.suppress(OSError):
            (place / name).unlink()
    for name, content in contents.items():
        if found.get(name) not in (wanted[name], None) and found[name][:2] == wanted[name][:2]:
            (place / name).write_bytes(content)  # in place: a ledger knows its file by the inode
    return found == wanted or watch(place) == wanted


@contextlib.contextmanager
def yard(folder: Path, *, ledger: bool) -> Iterator[Path]:
    """The folder, as it was built; the process stands in it."""
    place = folder / ("ledger" if ledger else "yard")
    if place not in _built or not _put_back(place):
        _build(place, ledger)
        kept = watch(place)
        plain = [name for name, one in kept.items() if one[0] == stat.S_IFREG]
        _built[place] = kept, {name: (place / name).read_bytes() for name in plain}
    here = Path.cwd()
    os.chdir(place)
    try:
        yield place
    finally:
        os.chdir(here)


def watch(place: Path) -> Kept:
    """Kind, inode and content of every file."""
    found: Kept = {}
    _look(str(place), "", found)
    return found


def _look(folder: str, prefix: str, found: Kept) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            seen = entry.stat(follow_symlinks=False)
            kind = stat.S_IFMT(seen.st_mode)
            content: str | None = None
            if kind == stat.S_IFREG:
                with open(entry.path, "rb", buffering=0) as stream:
                    content = hashlib.blake2b(stream.read()).hexdigest()
            elif kind == stat.S_IFLNK:
                content = os.readlink(entry.path)
            found[prefix + entry.name] = (kind, seen.st_ino, content)
            if kind == stat.S_IFDIR:
                _look(entry.path, f"{prefix}{entry.name}/", found)
