"""The tables of a ledger, and the digests that notice a change made by anything else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from shapedp.boundary.refusals import refusal
from shapedp.ledger.errors import RESTORE, LedgerCorruptedError, LedgerError

try:
    import sqlalchemy as sa
except ImportError as missing:
    raise ImportError("a ledger needs SQLAlchemy: pip install 'shapedp[ledger]'") from missing

SCHEMA_VERSION = 3
GENESIS = "0" * 64
"""Where the chain of a dataset begins that was made before schema 2."""
STATES = ("reserved", "released", "abandoned")
Row = dict[str, Any]
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_TYPES: dict[str, Any] = {"text": sa.Text, "integer": sa.Integer, "long": sa.BigInteger}


def _columns(kinds: str) -> list[sa.Column[Any]]:
    """Columns that are never empty, from words "name:type"."""
    words = (word.split(":") for word in kinds.split())
    return [sa.Column(name, _TYPES[kind], nullable=False) for name, kind in words]


metadata = sa.MetaData()
meta = sa.Table(
    "shapedp_ledger",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_columns("schema_version:integer"),
    sa.Column("place", sa.Text),
)
datasets = sa.Table(
    "shapedp_dataset",
    metadata,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    *_columns("created:text adjacency:text filter:text vouching:integer totals:text entries:long events:long"),
    *_columns("unit:text"),
    *_columns("genesis:text chain:text marks:text seal:text"),
)
_DIGEST = sa.Column("digest", sa.Text, primary_key=True)
documents = sa.Table("shapedp_document", metadata, _DIGEST, *_columns("text:text"))
entries = sa.Table(
    "shapedp_entry",
    metadata,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("dataset_id", _ID, sa.ForeignKey("shapedp_dataset.id"), nullable=False),
    *_columns("sequence:long time:text count:long taken:long mechanism:text"),
    sa.Column("certificate", sa.Text, sa.ForeignKey("shapedp_document.digest"), nullable=False),
    *_columns("cost:text state:text ended:text secure:integer digest:text"),
    sa.Index("shapedp_entry_order", "dataset_id", "sequence", unique=True),
)

_FIXED = ("name", "created", "adjacency", "filter", "vouching")
_MOVING = ("totals", "entries", "events", "genesis", "chain", "marks")
_CHAINED = ("sequence", "time", "count", "mechanism", "certificate", "cost")
_MARKED = ("digest", "state", "ended", "secure", "taken")
_MARK_BYTES = 256
_TO_SCHEMA_2 = (
    "ALTER TABLE shapedp_ledger ADD COLUMN place TEXT",
    "ALTER TABLE shapedp_dataset RENAME COLUMN head TO chain",
    "ALTER TABLE shapedp_dataset ADD COLUMN vouching INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE shapedp_dataset ADD COLUMN events BIGINT NOT NULL DEFAULT 0",
    f"ALTER TABLE shapedp_dataset ADD COLUMN genesis TEXT NOT NULL DEFAULT '{GENESIS}'",
    "ALTER TABLE shapedp_dataset ADD COLUMN marks TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE shapedp_entry ADD COLUMN taken BIGINT NOT NULL DEFAULT 0",
    "UPDATE shapedp_entry SET taken = count",
)
_TO_SCHEMA_3 = ("ALTER TABLE shapedp_dataset ADD COLUMN unit TEXT NOT NULL DEFAULT ''",)
_SEALED_1 = ("name", "created", "adjacency", "filter", "totals", "entries", "chain")


def to_text(data: Any) -> str:
    """One spelling of a JSON value; NaN and infinities are refused."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def rows(connection: sa.Connection, query: sa.Select[Any], table: sa.Table, **values: Any) -> Iterator[Row]:
    """Rows of a table, their values checked to be of their columns' types: SQLite stores anything anywhere.

    `values` are those that the query leaves open.
    """
    for found in connection.execute(query, values).mappings():
        row = {str(name): value for name, value in found.items()}
        for name, value in row.items():
            if type(value) is not table.c[name].type.python_type:
                odd = f"{name} of {table.name} holds something else than the ledger wrote"
                raise LedgerCorruptedError(f"the ledger is damaged: {odd}; {RESTORE}")
        yield row


def first(connection: sa.Connection, query: sa.Select[Any], table: sa.Table, **values: Any) -> Row | None:
    """The only row that a query finds, None where it finds none."""
    return next(iter(list(rows(connection, query, table, **values))), None)


def from_text(text: str) -> Any:
    """What `to_text` wrote. Raises ValueError for anything else."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def seal_of(row: Row) -> str:
    """The digest over what a dataset's row holds. A dataset without a unit has the seal that schema 2 gave it."""
    unit = [row["unit"]] if row["unit"] else []
    return fields_digest([*(row[name] for name in (*_FIXED, *_MOVING)), *unit])


def digest_of(previous: str, row: Row) -> str:
    """The digest of an entry and of all entries before it."""
    return fields_digest([previous, *(row[name] for name in _CHAINED)])


def remarked(marks: str, old: Row | None, new: Row) -> str:
    """The sum of the digests of all entries' marks once one of them has changed.

    What changes about an entry (units taken, state, end) is outside the chain. In a sum modulo 2^2048 of hashes an
    entry is exchanged without reading the others, and to meet it with other entries takes about 2^90 steps.
    Reference: Bellare and Micciancio 1997 (AdHash); Wagner 2002 (the number of steps).
    """
    return marks_text(int(marks, 16) - (0 if old is None else mark_of(old)) + mark_of(new))


def mark_of(row: Row) -> int:
    """The digest of what changes about an entry, bound to the entry."""
    return int.from_bytes(hashlib.shake_256(to_text([row[name] for name in _MARKED]).encode()).digest(_MARK_BYTES))


def marks_text(total: int) -> str:
    """A sum of marks, always of one length."""
    return f"{total % (1 << 8 * _MARK_BYTES):0{2 * _MARK_BYTES}x}"


def marks_sum(connection: sa.Connection, dataset_id: int) -> tuple[int, int]:
    """The number of a dataset's entries and the sum of their marks."""
    number = total = 0
    query = sa.select(*(entries.c[name] for name in _MARKED)).where(entries.c.dataset_id == dataset_id)
    for row in rows(connection, query, entries):
        number, total = number + 1, total + mark_of(row)
    return number, total


def document_digest(text: str) -> str:
    """The name under which a certificate is kept: once, however many entries share it."""
    return hashlib.sha256(text.encode()).hexdigest()


def fields_digest(fields: list[Any]) -> str:
    """The digest of a list of values."""
    return document_digest(to_text(fields))


def bring_to_this(connection: sa.Connection) -> bool:
    """Brings tables of an earlier schema to this one; whether the file has yet to be told its place (schema 1).

    Nothing that was counted changes; units of entries of schema 1 count as taken, and no earlier dataset declares a
    unit of privacy. What was damaged is not sealed anew. Any other schema is refused.
    """
    version = connection.execute(sa.select(meta.c.schema_version)).scalar()
    if version not in (1, 2, SCHEMA_VERSION):
        raise LedgerError(refusal("ledger", "other-schema", version=version, known=SCHEMA_VERSION))
    if version == SCHEMA_VERSION:
        return False
    if _known_columns(connection, "place" if version == 1 else "unit"):
        raise LedgerCorruptedError(refusal("ledger", "schema-changed", version=version, remedy=RESTORE))
    for statement in (*(_TO_SCHEMA_2 if version == 1 else ()), *_TO_SCHEMA_3):
        connection.exec_driver_sql(statement)
    if version == 1:
        _seal_anew(connection)
    connection.execute(meta.update().values(schema_version=SCHEMA_VERSION))
    return bool(version == 1)


def _known_columns(connection: sa.Connection, name: str) -> bool:
    """Whether a table has a column already that a later schema brings."""
    inspected = sa.inspect(connection)
    return any(column["name"] == name for table in (meta, datasets) for column in inspected.get_columns(table.name))


FOREIGN = {
    "sqlite": "SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')",
    "postgresql": f"""SELECT count(*) FROM pg_class AS c WHERE c.oid IN (
        {", ".join(f"to_regclass('{name}')" for name in metadata.tables)}
    ) AND (c.relkind <> 'r' OR c.relrowsecurity
        OR EXISTS (SELECT 1 FROM pg_rewrite AS r WHERE r.ev_class = c.oid)
        OR EXISTS (SELECT 1 FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal))""",
}
NO_FOREIGN = f"""DO $$ BEGIN IF ({FOREIGN["postgresql"]}) > 0 THEN
    RAISE EXCEPTION 'it holds a trigger, a rule, a view or a policy' USING ERRCODE = '23000';
END IF; END $$"""
"""The same as a statement that fails: on a server it travels with others, and no write waits for one more answer."""


def foreign(connection: sa.Connection) -> int:
    """How many triggers, rules, views and policies there are: each changes what the ledger writes, or what it reads."""
    return int(connection.exec_driver_sql(FOREIGN[connection.dialect.name]).scalar_one())


def refuse_foreign(number: int) -> None:
    """Refuses a database with any."""
    if number:
        raise LedgerCorruptedError(refusal("ledger", "foreign-parts", remedy=RESTORE))


def refuse_orphans(connection: sa.Connection) -> None:
    """Entries of a dataset that is not there: its row was removed, and what was spent from it is no longer counted."""
    if connection.execute(sa.select(entries.c.id).where(entries.c.dataset_id.not_in(sa.select(datasets.c.id)))).first():
        raise LedgerCorruptedError(refusal("ledger", "dataset-removed", remedy=RESTORE))


def _seal_anew(connection: sa.Connection) -> None:
    """Seals datasets of schema 1 as this schema does, once their seals and numbers of entries are found right."""
    for row in list(rows(connection, sa.select(datasets), datasets)):
        number, marks = marks_sum(connection, row["id"])
        if fields_digest([row[name] for name in _SEALED_1]) != row["seal"] or number != row["entries"]:
            raise LedgerCorruptedError(refusal("ledger", "row-changed", dataset=row["name"], remedy=RESTORE))
        new = {"events": number, "marks": marks_text(marks)}
        new["seal"] = seal_of(row | new)
        connection.execute(datasets.update().where(datasets.c.id == row["id"]).values(**new))
