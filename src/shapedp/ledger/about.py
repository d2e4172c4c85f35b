"""What a spend says of itself: whose privacy it protects, and a label, an author and a note."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import is_text, words
from shapedp.ledger.errors import SpendRefusedError

UNSTATED: Any = object()
"""A `person` that was not given; None says that each row is another person."""
ROW = "row"
_PERSON = "person:"
_NAME = 200


@dataclass(frozen=True)
class About:
    """`unit` is whose privacy a spend protects, as `unit_of` writes it; "" where nobody stated it."""

    unit: str = ""
    label: str = ""
    author: str = ""
    note: str = ""

    @classmethod
    def of(cls, person: Any, label: object, author: object, note: object) -> About:
        """The checked words of a caller."""
        given = {"label": label, "author": author, "note": note}
        return cls(unit_of(person), **{name: words(name, text) for name, text in given.items()})

    def over(self, usual: About) -> About:
        """These words, and the usual ones for what was left out."""
        return About(**{**usual.kept(), **self.kept()})

    def kept(self) -> dict[str, str]:
        """What is kept of it: everything that was said."""
        return {name: text for name, text in vars(self).items() if text}


def unit_of(person: Any) -> str:
    """The unit of privacy: "" not stated, "row" each row another person, "person:id" the values of the column id."""
    if person is UNSTATED:
        return ""
    if person is None:
        return ROW
    if not isinstance(person, str) or not person.strip() or len(person) > _NAME or not is_text(person):
        raise ValueError(
            f"person must be the name of a column, of 1 to {_NAME} characters, or None: each row is another person"
        )
    return _PERSON + person


def unit_words(unit: str) -> str:
    """The unit in words."""
    if unit.startswith(_PERSON):
        return f"a person is a value of the column {unit.removeprefix(_PERSON)!r}"
    return "each row is another person" if unit == ROW else "not declared"


def is_unit(unit: object) -> bool:
    """Whether this is what `unit_of` writes."""
    return isinstance(unit, str) and (unit in ("", ROW) or unit.startswith(_PERSON))


def settled(dataset: str, declared: str, stated: str) -> str:
    """The unit of a spend: what it states, else what the dataset declares.

    Raises SpendRefusedError where the two differ. A dataset that declares none takes that of the first spend that
    states one.
    """
    if declared and stated and declared != stated:
        person = "None" if declared == ROW else repr(declared.removeprefix(_PERSON))
        wanted, made = unit_words(declared), unit_words(stated)
        raise SpendRefusedError(
            refusal("ledger", "another-unit", dataset=dataset, wanted=wanted, made=made, person=person)
        )
    return stated or declared
