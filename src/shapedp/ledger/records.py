"""What a ledger answers with, and how its rows are read."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from shapedp.boundary.documents import described
from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import plain
from shapedp.ledger import schema
from shapedp.ledger.about import About, is_unit
from shapedp.ledger.errors import LedgerCorruptedError
from shapedp.ledger.filters import Filter, filter_from_json
from shapedp.ledger.fixed import Charge

T = TypeVar("T")
KEY_BYTES = 16
_SAID = frozenset(field.name for field in fields(About))


@dataclass(frozen=True)
class Terms:
    """What never changes about a dataset."""

    adjacency: str
    text: str
    vouching: bool
    filter: Filter
    unit: str = ""

    @property
    def frozen(self) -> tuple[str, str, bool]:
        """As the dataset's row holds them."""
        return self.adjacency, self.text, self.vouching


@dataclass(frozen=True)
class Status:
    """Where a dataset stands, as `Ledger.status` answers. `spent` is the used share of the cap.

    Parameters
    ----------
    dataset, adjacency
        Its name and neighbour relation.
    filter, totals
        The cap, and what is counted against it.
    entries, states
        The number of entries, and of those in each state.
    vouching
        Whether certificates are taken for which only a person answers.
    unit
        Whose privacy is counted: "person:id" the values of the column id, "row" each row another person, "" nobody
        declared it.

    Examples
    --------
    >>> from shapedp.ledger import Charge, Status, make_filter
    >>> cap = make_filter(epsilon=1.0, delta=0.0)
    >>> half = Charge((cap.capacities[0] // 2,))
    >>> Status("visits", "replace", cap, half, entries=1, states={"released": 1}).spent
    0.5
    """

    dataset: str
    adjacency: str
    filter: Filter
    totals: Charge
    entries: int
    states: dict[str, int]
    vouching: bool = False
    unit: str = ""

    def __post_init__(self) -> None:
        plain(self)

    @property
    def spent(self) -> float:
        return self.filter.spent(self.totals)

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "epsilon": self.filter.epsilon,
            "delta": self.filter.delta,
            "adjacency": self.adjacency,
            "rule": self.filter.rule,
            "spent": self.spent,
            "currency": self.filter.describe(self.totals),
            "entries": self.entries,
            "states": self.states,
            "vouching": self.vouching,
            "unit": self.unit,
        }


@dataclass(frozen=True)
class Entry:
    """One reservation. It counts whatever its state: reserved, released or abandoned.

    `taken` is the number of its `count` releases that were asked of the ledger. `certificate` is the mechanism's; its
    `secure` is True once the block has ended with a release taken, None where none was. `mechanism` names who vouched
    for a certificate that could not be computed again (`vouched_by`). `unit` says whose privacy it protects, as in
    `Status`; `label`, `author` and `note` are the spender's words.

    Examples
    --------
    `Ledger.history` hands them out, in order of reservation.

    >>> from shapedp.ledger import Charge, Entry
    >>> when, certificate = "2026-01-01T12:00:00+00:00", {"epsilon": 0.1, "delta": 0.0}
    >>> entry = Entry(7, "visits", 1, when, 1, 1, {"type": "Additive"}, certificate, Charge((5,)), "released", when)
    >>> entry.to_json()["cost"]
    {'amounts': ['5'], 'failure': '0'}
    """

    id: int
    dataset: str
    sequence: int
    time: str
    count: int
    taken: int
    mechanism: dict[str, Any]
    certificate: dict[str, Any]
    cost: Charge
    state: str
    ended: str | None
    unit: str = ""
    label: str = ""
    author: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**{k: v for k, v in vars(self).items() if k != "cost"}, "cost": self.cost.to_json()}


@dataclass(frozen=True)
class Head:
    """Where a dataset stood: its entries and changes so far, the digest of all entries, the seal over its row.

    `signature` is an HMAC-SHA256 over the rest; who lacks the key cannot write another head that passes.

    Parameters
    ----------
    dataset
        Its name.
    entries, events
        How many entries it had, and how many changes.
    chain, seal
        The digests of all entries and of the dataset's row.
    signature
        Made by `signed`; None: not signed.

    Examples
    --------
    >>> head = Head("d", 0, 0, "0" * 64, "0" * 64)
    >>> Head.from_json(head.to_json()) == head
    True
    >>> head.signed(b"a key of 16 bytes or more").require_signature(b"a key of 16 bytes or more")
    """

    dataset: str
    entries: int
    events: int
    chain: str
    seal: str
    signature: str | None = None

    @classmethod
    @described
    def of(cls, row: dict[str, Any]) -> Head:
        """The head in a dataset's row."""
        return cls(row["name"], row["entries"], row["events"], row["chain"], row["seal"])

    def signed(self, key: bytes) -> Head:
        """This head with a signature."""
        return replace(self, signature=self._signature(key))

    def require_signature(self, key: bytes) -> None:
        """Raises LedgerCorruptedError unless the head was signed with the key."""
        if self.signature is None or not hmac.compare_digest(self._signature(key).encode(), self.signature.encode()):
            raise LedgerCorruptedError(f"the kept head of {self.dataset!r} was not signed with this key or was changed")

    def _signature(self, key: bytes) -> str:
        if len(key) < KEY_BYTES:
            raise ValueError(f"the key must be at least {KEY_BYTES} bytes long, got {len(key)}")
        text = schema.to_text(asdict(replace(self, signature=None)))
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {"kind": "ledger-head", **asdict(self)}

    @classmethod
    @described
    def from_json(cls, data: Any) -> Head:
        """The head that `to_json` wrote."""
        if not isinstance(data, dict) or data.get("kind") != "ledger-head":
            raise ValueError("not a ledger's head: the field kind must read 'ledger-head'")
        kinds = {"entries": int, "events": int, "signature": str | None}
        values: dict[str, Any] = {field.name: data.get(field.name) for field in fields(cls)}
        for name, value in values.items():
            if not isinstance(value, kinds.get(name, str)) or isinstance(value, bool):
                raise ValueError(f"the field {name} of a ledger's head is missing or of the wrong type")
        return cls(**values)


def check_continues(kept: Head, row: dict[str, Any], digest: str | None) -> None:
    """Raises LedgerCorruptedError unless a dataset's row continues the kept head.

    `digest` is the chain after as many entries as the head counts, None where there are fewer.
    """
    name, now = row["name"], Head.of(row)
    if kept.dataset != name:
        raise ValueError(f"the kept head is of dataset {kept.dataset!r}, not of {name!r}")
    if now.entries < kept.entries or now.events < kept.events:
        raise LedgerCorruptedError(refusal("ledger", "set-back", dataset=name, kept=kept, now=now))
    if digest != kept.chain or (now.events == kept.events and now.seal != kept.seal):
        raise LedgerCorruptedError(f"the ledger of {name!r} does not continue the kept head: it was rewritten")


def entry_of(dataset: str, raw: dict[str, Any], texts: dict[str, str]) -> Entry:
    """The entry of a row; `texts` holds the certificates by digest."""
    name, text = f"entry {raw['sequence']} of {dataset!r}", texts.get(raw["certificate"])
    if text is None or schema.document_digest(text) != raw["certificate"]:
        raise LedgerCorruptedError(f"the certificate of {name} is missing or was changed")
    try:
        mechanism = schema.from_text(raw["mechanism"])
        about = About(**{name: mechanism.pop(name) for name in tuple(mechanism) if name in _SAID})
        if not is_unit(about.unit) or not all(isinstance(said, str) for said in vars(about).values()):
            raise ValueError("its unit or its words are none")
        return Entry(
            **{name: raw[name] for name in ("id", "sequence", "time", "count", "taken", "state")},
            dataset=dataset,
            mechanism=mechanism,
            certificate=schema.from_text(text) | {"secure": True if raw["secure"] else None},
            cost=Charge.from_json(schema.from_text(raw["cost"])),
            ended=None if raw["state"] == "reserved" else raw["ended"],
            **vars(about),
        )
    except (AttributeError, KeyError, ValueError, TypeError) as error:
        raise LedgerCorruptedError(f"{name} cannot be read: {error}") from error


def filter_of(row: dict[str, Any]) -> Filter:
    return _kept(row, "filter", filter_from_json)


def totals_of(row: dict[str, Any]) -> Charge:
    return _kept(row, "totals", Charge.from_json)


def _kept(row: dict[str, Any], what: str, reader: Callable[[dict[str, Any]], T]) -> T:
    """What a dataset's row keeps as text."""
    try:
        return reader(schema.from_text(row[what]))
    except (KeyError, ValueError, TypeError) as error:
        raise LedgerCorruptedError(f"the {what} of dataset {row['name']!r} cannot be read: {error}") from error
