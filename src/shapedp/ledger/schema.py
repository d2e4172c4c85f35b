"""The tables of a ledger, and the digests that notice a change made by anything else."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from shapedp.ledger.errors import LedgerCorruptedError, LedgerError

try:
    from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, RowMapping, Table, Text
except ImportError as missing:
    raise ImportError("a ledger needs SQLAlchemy: pip install 'shapedp[ledger]'") from missing

SCHEMA_VERSION = 2
GENESIS = "0" * 64
"""Where the chain of a dataset begins that was made before schema 2."""
STATES = ("reserved", "released", "abandoned")
_ID = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()
meta = Table(
    "shapedp_ledger",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("schema_version", Integer, nullable=False),
    Column("place", Text),
)
datasets = Table(
    "shapedp_dataset",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created", Text, nullable=False),
    Column("adjacency", Text, nullable=False),
    Column("filter", Text, nullable=False),
    Column("vouching", Integer, nullable=False),
    Column("totals", Text, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("genesis", Text, nullable=False),
    Column("chain", Text, nullable=False),
    Column("marks", Text, nullable=False),
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
    Column("taken", BigInteger, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column("certificate", Text, ForeignKey("shapedp_document.digest"), nullable=False),
    Column("cost", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("ended", Text, nullable=False),
    Column("secure", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Index("shapedp_entry_order", "dataset_id", "sequence", unique=True),
)

_FIXED = ("name", "created", "adjacency", "filter", "vouching")
_MOVING = ("totals", "entries", "events", "genesis", "chain", "marks")
_CHAINED = ("sequence", "time", "count", "mechanism", "certificate", "cost")
_MARKED = ("digest", "state", "ended", "secure", "taken")
_MARK_BYTES = 256


def to_text(data: Any) -> str:
    """One spelling of a JSON value; NaN and infinities are refused."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def typed(found: RowMapping, table: Table) -> dict[str, Any]:
    """A row whose values are of their columns' types. SQLite stores anything anywhere."""
    row = {str(name): value for name, value in found.items()}
    for name, value in row.items():
        if type(value) is not table.c[name].type.python_type:
            raise LedgerCorruptedError(
                f"the ledger is damaged: {name} of {table.name} holds something else than the ledger wrote; restore it "
                "from a backup and treat what is missing as spent"
            )
    return row


def from_text(text: str) -> Any:
    """What `to_text` wrote. Raises ValueError for anything else."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def sealed(row: dict[str, Any]) -> bool:
    """Whether a dataset's row is as the ledger left it."""
    try:
        return bool(seal_of(row) == row["seal"])
    except (TypeError, ValueError):
        return False


def seal_of(row: dict[str, Any]) -> str:
    """The digest over what a dataset's row holds."""
    return fields_digest([row[name] for name in (*_FIXED, *_MOVING)])


def digest_of(previous: str, row: dict[str, Any]) -> str:
    """The digest of an entry and of all entries before it."""
    return fields_digest([previous, *(row[name] for name in _CHAINED)])


def remarked(marks: str, old: dict[str, Any] | None, new: dict[str, Any]) -> str:
    """The sum of the digests of all entries' marks once one of them has changed.

    What changes about an entry (units taken, state, end) is outside the chain. In a sum modulo 2^2048 of hashes an
    entry is exchanged without reading the others, and to meet it with other entries takes about 2^90 steps.
    Reference: Bellare and Micciancio 1997 (AdHash); Wagner 2002 (the number of steps).
    """
    total = int(marks, 16) - (0 if old is None else mark_of(old)) + mark_of(new)
    return marks_text(total)


def mark_of(row: dict[str, Any]) -> int:
    """The digest of what changes about an entry, bound to the entry."""
    return int.from_bytes(hashlib.shake_256(to_text([row[name] for name in _MARKED]).encode()).digest(_MARK_BYTES))


def marks_text(total: int) -> str:
    """A sum of marks, always of one length."""
    return f"{total % (1 << 8 * _MARK_BYTES):0{2 * _MARK_BYTES}x}"


def document_digest(text: str) -> str:
    """The name under which a certificate is kept: once, however many entries share it."""
    return hashlib.sha256(text.encode()).hexdigest()


def fields_digest(fields: list[Any]) -> str:
    """The digest of a list of values."""
    return document_digest(to_text(fields))


def check_version(version: object) -> None:
    """Refuses a database written by another schema than this one and those that are upgraded."""
    if version != SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger has schema version {version!r}, this library reads {SCHEMA_VERSION}: "
            "use the release that wrote it"
        )
