"""Training in which a person owns several records: persons are drawn, and what is theirs is clipped together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.sampling import Source
from shapedp.torch.loader import Part, PoissonBatches
from shapedp.torch.people import People
from shapedp.torch.refusals import refusal


@dataclass(frozen=True, eq=False, repr=False)
class Owners:
    """Which records are whose, and how many of a person's records one step may use.

    `records` holds the numbers of each person's records; `most` is public.
    """

    records: tuple[NDArray[np.int64], ...]
    most: int

    @classmethod
    def of(cls, ids: Any, records: int, most: int) -> Owners:
        """From one id per record, in the order of the data set; no message quotes an id."""
        listed = ids.tolist() if hasattr(ids, "tolist") else ids
        if isinstance(listed, str | bytes) or not isinstance(listed, Sequence):
            raise TypeError(refusal("owner-no-sequence", kind=type(ids).__name__))
        if len(listed) != records:
            raise ValueError(refusal("owner-another-length", ids=len(listed), records=records))
        held: dict[Any, list[int]] = {}
        for place, one in enumerate(listed):
            if one is None or one != one or isinstance(one, float):
                raise ValueError(refusal("owner-missing"))
            try:
                held.setdefault(one, []).append(place)
            except TypeError:
                raise TypeError(refusal("owner-no-name")) from None
        return cls(tuple(np.array(places, dtype=np.int64) for places in held.values()), most)

    def __len__(self) -> int:
        return len(self.records)

    def drawn_by(
        self, people: Callable[[Callable[[Part], None]], PoissonBatches], source: Source, most: int | None
    ) -> Callable[[Callable[[Part], None]], OwnerBatches]:
        """From what draws persons to what hands out their records, in pieces of at most `most` of them."""
        if most is not None and most < self.most:
            raise ValueError(refusal("owner-pieces", most=most, cap=self.most))
        return lambda announce: OwnerBatches(people(announce), self, source, most, announce)

    def chosen(self, person: int, source: Source) -> list[int]:
        """The records of a person for one step: all of them, or `most` at random, each choice as likely."""
        records = self.records[person]
        if len(records) > self.most:
            records = records[np.sort(np.argsort(source.words(len(records)), kind="stable")[: self.most])]
        return [int(one) for one in records]


@dataclass(eq=False)
class OwnerBatches:
    """Draws of persons, handed out as the records of each; pieces hold whole persons.

    `people` draws the persons; `most` bounds the records of a piece.
    Guarantee: who is drawn does not depend on how many records anybody has.
    """

    people: PoissonBatches
    owners: Owners
    source: Source
    most: int | None
    announce: Callable[[Part], None]

    def __post_init__(self) -> None:
        if self.most is not None and self.most < self.owners.most:
            raise ValueError(refusal("owner-pieces", most=self.most, cap=self.owners.most))

    def __iter__(self) -> Iterator[list[int]]:
        parts: deque[Part] = deque()
        few = None if self.most is None else self.most // self.owners.most
        for persons in replace(self.people, announce=parts.append, most=few):
            chosen = [self.owners.chosen(person, self.source) for person in persons]
            people = People(tuple(map(len, chosen)), self.owners.most)
            rows = [row for records in chosen for row in records]
            self.announce(replace(parts.popleft(), records=len(rows), people=people))
            yield rows
