"""What the results of all audits share: a line in words and a JSON object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, ClassVar


class Result(ABC):
    """What an audit found. A subclass is a dataclass; `kind` names it in JSON, beside the property `stated`."""

    kind: ClassVar[str]
    stated: ClassVar[str]

    def __init_subclass__(cls, *, kind: str, stated: str) -> None:
        super().__init_subclass__()
        cls.kind, cls.stated = kind, stated

    @abstractmethod
    def explain(self) -> str:
        """The finding in words."""

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        found = asdict(self)  # type: ignore[call-overload]
        return {"kind": self.kind, self.stated: getattr(self, self.stated), **found}
