"""The share of rows that the bounds per person drop, as a private answer of its own: asked for, and paid for.

A person with n rows (those that the questions look at) has m of them kept, and min(n, c) - m dropped, c = 8 times what
is kept at most. Nobody knows how many rows a person may have, so those beyond c are not looked at; the share is then
too small. Both numbers depend on that person's rows and the key of the choice alone. So a person who comes, goes, is
exchanged or blanked moves their sums over all persons by at most the largest m and the largest c - m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from shapedp.mechanisms import Additive, calibrate
from shapedp.mechanisms.base import Rng
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import probability
from shapedp.numerics.outward import BELOW_8192
from shapedp.private.drawn import rows_of_a_person
from shapedp.private.engine import dropped_rows
from shapedp.private.layout import Layout
from shapedp.private.table import PrivateTable
from shapedp.sensitivity import L1, Adjacency

LOOKED_AT = 8  # times what is kept of a person at most
_KEPT = 0.2  # of the share, for the rows that are kept: they move by less


@dataclass(frozen=True, eq=False)
class Dropped:
    """The share of rows that the bounds per person dropped, with noise.

    `share` is the value, `interval(confidence)` its ends, `kept` and `dropped` the noisy numbers of rows. Of each
    person at most 8 times as many rows are looked at as are kept: with more the share is larger than stated.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> frame = pd.DataFrame({"id": [n % 500 for n in range(2000)]})
        >>> t = sdp.table(frame, person="id", rows=2)
        >>> found = t.count().release(epsilon=5.0, delta=1e-6, dropped=0.2).dropped
        >>> 0.3 < found.share < 0.7
        True
    """

    noisy: Floats  # rows kept, rows dropped
    mechanisms: tuple[Additive, ...]

    @property
    def kept(self) -> float:
        """How many rows were kept, with noise."""
        return float(self.noisy[0])

    @property
    def dropped(self) -> float:
        """How many rows were dropped, with noise."""
        return float(self.noisy[1])

    @property
    def share(self) -> float:
        """The share of rows dropped."""
        return _share(self.dropped, self.kept, 0.0)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Ends of the share. Both numbers are within their own ends with at least that probability (Bonferroni)."""
        level = 1 - (1 - probability("confidence", confidence)) / 2
        half = np.array([np.max(one.law.half_widths(level)) for one in self.mechanisms])
        low, high = self.noisy - half, self.noisy + half
        return _share(low[1], high[0], 0.0), _share(high[1], low[0], 1.0)

    def sentence(self, confidence: float) -> str:
        """In words."""
        low, high = self.interval(confidence)
        return (
            f"The bounds per person dropped {self.share:.2%} of the rows ({low:.2%} to {high:.2%}, confidence "
            f"{confidence:g}); rows of a person beyond {LOOKED_AT} times the bound are not counted here."
        )


def _share(dropped: float, kept: float, otherwise: float) -> float:
    dropped, kept = max(float(dropped), 0.0), max(float(kept), 0.0)
    return dropped / (dropped + kept) if dropped + kept > 0 else otherwise


@dataclass(frozen=True, eq=False)
class DroppedRows:
    """The noise of the numbers of rows that are kept and dropped."""

    what: ClassVar[str] = "rows dropped"
    mechanisms: tuple[Additive, ...]
    most: int  # rows of a person that are looked at

    @classmethod
    def of(cls, table: PrivateTable, epsilon: float, adjacency: Adjacency) -> Self:
        """Noise that costs epsilon."""
        kept = rows_of_a_person(table)
        most = LOOKED_AT * kept
        left = most - (kept if table.groups_touched is None else 1)
        made = (
            calibrate(
                "laplace",
                L1(float(reach), dim=1, adjacency=adjacency).of_integers(),
                epsilon=epsilon * share * BELOW_8192,
                delta=0.0,
            )
            for reach, share in ((kept, _KEPT), (left, 1 - _KEPT))
        )
        return cls(tuple(made), most)

    def released(self, table: PrivateTable, layout: Layout | None, rng: Rng) -> Dropped:
        """The numbers with noise; without a layout there is no group, and nothing to keep."""
        exact = np.zeros(2, np.int64) if layout is None else dropped_rows(table, layout, self.most)
        noisy = [one.release(exact[k : k + 1], rng=rng).value[0] for k, one in enumerate(self.mechanisms)]
        return Dropped(np.array(noisy, dtype=np.float64), self.mechanisms)
