"""The head of a dataset, to be kept elsewhere: a ledger set back or rewritten no longer agrees with it."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from shapedp.boundary.documents import described
from shapedp.ledger import schema
from shapedp.ledger.errors import LedgerCorruptedError

KEY_BYTES = 16


@dataclass(frozen=True)
class Head:
    """Where a dataset stood: its entries and changes so far, the digest of all entries, the seal over its row.

    `signature` is an HMAC-SHA256 over the rest; who lacks the key cannot write another head that passes.
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
        raise LedgerCorruptedError(
            f"the ledger of {name!r} was set back: {kept.entries} entries ({kept.events} changes) were kept, "
            f"{now.entries} ({now.events}) are here; treat what is missing as spent"
        )
    if digest != kept.chain or (now.events == kept.events and now.seal != kept.seal):
        raise LedgerCorruptedError(f"the ledger of {name!r} does not continue the kept head: it was rewritten")
