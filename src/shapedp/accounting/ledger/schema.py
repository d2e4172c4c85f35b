"""The tables of a ledger, and the digests that notice a change made by anything else."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from shapedp.accounting.ledger.errors import LedgerError

try:
    from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, Table, Text
except ImportError as missing:
    raise ImportError("a ledger needs SQLAlchemy: pip install 'shapedp[ledger]'") from missing

SCHEMA_VERSION = 1
STATES = ("reserved", "released", "abandoned")
_ID = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()
meta = Table(
    "shapedp_ledger",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("schema_version", Integer, nullable=False),
)
datasets = Table(
    "shapedp_dataset",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created", Text, nullable=False),
    Column("adjacency", Text, nullable=False),
    Column("filter", Text, nullable=False),
    Column("totals", Text, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("head", Text, nullable=False),
    Column("seal", Text, nullable=False),
)
documents = Table(
    "shapedp_document",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("text", Text, nullable=False),
)
entries = Table(
    "shapedp_entry",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("dataset_id", _ID, ForeignKey("shapedp_dataset.id"), nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("time", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column("certificate", Text, ForeignKey("shapedp_document.digest"), nullable=False),
    Column("cost", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("ended", Text, nullable=False),
    Column("secure", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Index("shapedp_entry_order", "dataset_id", "sequence", unique=True),
)

_SEALED = ("name", "created", "adjacency", "filter", "totals", "entries", "head")
_CHAINED = ("sequence", "time", "count", "mechanism", "certificate", "cost")


def to_text(data: Any) -> str:
    """One spelling of a JSON value; NaN and infinities are refused."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sealed(row: dict[str, Any]) -> bool:
    """Whether a dataset's row is as the ledger left it."""
    try:
        return bool(seal_of(row) == row["seal"])
    except (TypeError, ValueError):
        return False


def seal_of(row: dict[str, Any]) -> str:
    """The digest over what a dataset's row holds."""
    return _sha256([row[name] for name in _SEALED])


def digest_of(previous: str, row: dict[str, Any]) -> str:
    """The digest of an entry and of all entries before it."""
    return _sha256([previous, *(row[name] for name in _CHAINED)])


def document_digest(text: str) -> str:
    """The name under which a certificate is kept: once, however many entries share it."""
    return hashlib.sha256(text.encode()).hexdigest()


def _sha256(fields: list[Any]) -> str:
    return document_digest(to_text(fields))


def check_version(version: object) -> None:
    """Refuses a database written by another schema."""
    if version != SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger has schema version {version!r}, this library reads {SCHEMA_VERSION}: "
            "use the release that wrote it"
        )
