"""What commands read and write: JSON documents, vectors and tables."""

from shapedp.boundary.documents import read as read_json
from shapedp.boundary.documents import write as write_json
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
__all__ += ["write_vector"]
