"""What commands read and write: JSON documents, vectors and tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shapedp.boundary.documents import dumps
from shapedp.boundary.documents import read as read_json
from shapedp.boundary.documents import write as write_json
from shapedp.boundary.files import atomic
from shapedp.tables.vectors import (
    SUFFIXES,
    Vector,
    read_records,
    read_vector,
    suffix,
    write_columns,
    write_vector,
)

__all__ = ["SUFFIXES", "Vector", "read_json", "read_records", "read_vector", "suffix", "write_columns", "write_json"]
__all__ += ["beside_certificate", "write_vector"]


@contextmanager
def beside_certificate(path: Path, record: dict[str, Any]) -> Iterator[None]:
    """A block that writes what the certificate is of: where it fails, no certificate appears or changes."""
    with atomic(path) as stream:
        stream.write((dumps(record) + "\n").encode())
        yield
