"""Keys that nobody listed before: each is published with the largest probability that the claim allows.

A key that n persons have is published with probability p(n): p(0) = 0 and

    p(n + 1) = min(e^e p(n) + d, 1 - e^-e (1 - p(n) - d), 1),

e and d the epsilon and delta of one key. No (e, d)-DP rule publishes a key with a larger probability, for any n.
Reference: Desfontaines, Voss, Gipson and Mandayam 2022, Theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shapedp.boundary.values import boolean
from shapedp.mechanisms.base import Claimed, Release, Rng
from shapedp.mechanisms.selection.choose import Integers, whole_numbers
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, one_of, positive, probability
from shapedp.numerics.outward import BELOW_8192
from shapedp.privacy.losses.selected import KeysLoss, responses
from shapedp.sampling import Source
from shapedp.sampling.choice import Bits, decided_from, exponential_ends
from shapedp.sensitivity import ADJACENCIES, Adjacency

_WORD = 64
_SPARE = 64  # bits beyond those asked for: errors grow with the number of steps and with 1/delta
_MOST_STEPS = 1 << 20
_SPLITS = 200
_KEYS = 1 << 14
_LEAST, _LARGEST = 1 / (1 << 40), 700.0  # epsilon of a key


@lru_cache(maxsize=64)
def keep_ends(epsilon: float, delta: float, bits: int) -> tuple[list[int], list[int]]:
    """Integers around 2^bits p(n), n = 0, 1, ... up to the first n at which p is 1."""
    work = bits + _SPARE + math.ceil(2 * epsilon - math.log2(delta))
    one = 1 << work
    fall = exponential_ends(Fraction(epsilon), work)
    rise = one * one // fall[1], -(-one * one // fall[0])
    exact = Fraction(delta) * one
    new = math.floor(exact), math.ceil(exact)
    lows, highs = [0], [0]
    while lows[-1] < one and len(lows) < _MOST_STEPS:
        low, high = lows[-1], highs[-1]
        first = (low * rise[0] >> work) + new[0]
        second = one - (-(-fall[1] * max(one - low - new[0], 0) >> work))
        lows.append(min(first, second, one))
        first = -(-high * rise[1] >> work) + new[1]
        second = one - (fall[0] * max(one - high - new[1], 0) >> work)
        highs.append(min(first, second, one))
    spare = work - bits
    return [low >> spare for low in lows], [-(-high >> spare) for high in highs]


@dataclass(frozen=True, eq=False)
class Published(Release[Integers]):
    """The keys that are published: `names`, in an order that they alone decide.

    `value` holds their places. Without names these are places in the list of counts that was given, and that list
    must be public: the place of one key shows how many others stand before it, published or not.

    Examples
    --------
    >>> m = KeySelection.calibrate(keys=1, epsilon=1.0, delta=1e-6, adjacency="add-remove")
    >>> m.release({"Ulm": 500, "Aal": 1, "Bonn": 1000}).names
    ('Bonn', 'Ulm')
    """

    names: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False)
class KeySelection(Claimed):
    """Which keys of a table are published, where the list of keys is private itself.

    Guarantee: a person has at most `keys` different keys, each counted once; a key with no person is never published.
    The decisions are independent, with exactly the probabilities above for `key_epsilon` and `key_delta`, and a
    neighbour changes the counts of `keys` keys by one (where a person is exchanged: of twice as many). Give keys by
    name, or counts on a public list of keys: see `Published`.

    Parameters
    ----------
    key_epsilon, key_delta: the guarantee of one key.
    keys: how many keys one person can have.
    epsilon, delta, adjacency: the claim.

    Examples
    --------
    >>> import shapedp as sdp
    >>> m = sdp.KeySelection.calibrate(keys=1, epsilon=1.0, delta=1e-6, adjacency="add-remove")
    >>> m.threshold(0.5), m.certificate.verdict
    (14, 'certified')
    >>> m.release({"Ulm": 1000, "Aal": 1, "Bonn": 500}).names
    ('Bonn', 'Ulm')
    """

    kind: ClassVar[str] = "keys"
    key_epsilon: float
    key_delta: float
    keys: int
    epsilon: float
    delta: float
    adjacency: Adjacency

    def __post_init__(self) -> None:
        self._plain(positive, "epsilon", "key_epsilon", "key_delta")
        self._plain(probability, "delta", "key_delta")
        object.__setattr__(self, "keys", _few(self.keys))
        one_of("adjacency", self.adjacency, ADJACENCIES)
        if not 2.0**-1000 <= self.key_delta < 1 or not _LEAST <= self.key_epsilon <= _LARGEST:
            raise ValueError("key_epsilon or key_delta is out of range: claim a usual epsilon and delta")
        if 2 * math.log1p(math.expm1(self.key_epsilon) / (2 * self.key_delta)) / self.key_epsilon > _MOST_STEPS / 2:
            raise ValueError("a key would need half a million persons to be sure: claim a larger epsilon or fewer keys")

    @property
    def changed(self) -> int:
        """How many keys' counts differ between neighbours, at most."""
        return changed_keys(self.keys, self.adjacency)

    @cached_property
    def loss(self) -> KeysLoss:
        """The privacy loss of all decisions together."""
        return KeysLoss(self.key_epsilon, self.key_delta, self.changed, self.keys).under(self.adjacency)

    @classmethod
    def calibrate(cls, *, keys: int, epsilon: float, delta: float, adjacency: Adjacency) -> Self:
        """The split of the claim over the keys at which a key with few persons is published most likely.

        One key takes the claim itself. For several, epsilon of a key is tried between an even share and what
        composition allows, and its delta is what is left (Kairouz, Oh and Viswanath's optimal composition).
        """
        claimed, rest = positive("epsilon", epsilon), positive("delta", probability("delta", delta))
        times = changed_keys(_few(keys), one_of("adjacency", adjacency, ADJACENCIES))
        if times == 1:
            return cls(claimed, rest, keys, claimed, rest, adjacency)
        best: tuple[float, float, float] | None = None
        for own in np.geomspace(min(claimed / times, _LARGEST), min(claimed, _LARGEST), _SPLITS).tolist():
            own = own * BELOW_8192
            spent = float(responses(np.array([claimed]), own, times)[0])
            if spent >= rest:
                break
            each = -math.expm1((math.log1p(-rest) - math.log1p(-spent)) / times) * BELOW_8192
            if each > 0 and KeysLoss(own, each, times).delta(claimed).upper <= rest:
                half = math.log1p(math.expm1(own) / (2 * each)) / own
                best = min(best or (math.inf, 0.0, 0.0), (half, own, each))
        if best is None:
            raise ValueError("the claim is too small to be shared among so many keys")
        return cls(best[1], best[2], keys, claimed, rest, adjacency)

    def probabilities(self, counts: ArrayLike) -> Floats:
        """With what probability a key is published that so many persons have."""
        lows, highs = keep_ends(self.key_epsilon, self.key_delta, _WORD)
        at = np.minimum(_counts(counts), len(lows) - 1)
        middle = np.array([(low + high) / 2 ** (_WORD + 1) for low, high in zip(lows, highs, strict=True)])
        return np.asarray(middle[at])

    def threshold(self, share: float) -> int:
        """The least number of persons at which a key is published with at least that probability."""
        goal = probability("share", share)
        table = self.probabilities(np.arange(len(keep_ends(self.key_epsilon, self.key_delta, _WORD)[0])))
        return int(np.searchsorted(table, goal))

    def release(self, x: Mapping[Any, int] | ArrayLike, *, rng: Rng = None, unsafe: bool = False) -> Published:
        """x says how many persons have each key: {key: persons}, or a list of counts whose keys are public.

        What is released: the names of the keys that are published; of a public list, their places in it.
        """
        given: Any = x
        unsafe = boolean("unsafe", unsafe)
        named = dict(given.items()) if hasattr(given, "items") else None
        counts = _counts(given if named is None else list(named.values()))
        drawn = self._drawn(counts, lambda source: self._kept(counts, source), rng, unsafe)
        value, names = drawn.value, None
        if named is not None:
            listed = list(named)
            names = tuple(sorted((listed[place] for place in value.tolist()), key=repr))
            value = np.arange(len(names), dtype=np.int64)
        return Published(value, None, drawn.certificate, unsafe=drawn.unsafe, names=names)

    def _kept(self, counts: Integers, source: Source) -> Integers:
        """A word decides unless it falls between the two ends of 2^64 p; then more bits do."""
        lows, highs = keep_ends(self.key_epsilon, self.key_delta, _WORD)
        at = np.minimum(counts, len(lows) - 1)
        top = (1 << _WORD) - 1
        sure = np.array([low > top for low in lows])[at]
        low, high = (np.array([min(one, top) for one in ends], dtype=np.uint64)[at] for ends in (lows, highs))
        words = source.words(counts.size)
        kept = sure | (words < low)
        open_ = np.flatnonzero(~kept & ((words < high) | (np.array([one > top for one in highs])[at])))
        bits = Bits(source)
        for place in open_.tolist():
            kept[place] = decided_from(int(words[place]), _WORD, self._ends_at(int(at[place])), bits)
        return np.flatnonzero(kept).astype(np.int64)

    def _ends_at(self, n: int) -> Any:
        def ends(bits: int) -> tuple[int, int]:
            lows, highs = keep_ends(self.key_epsilon, self.key_delta, bits)
            place = min(n, len(lows) - 1)
            return lows[place], highs[place]

        return ends


def changed_keys(keys: int, adjacency: str) -> int:
    """How many counts differ between neighbours: those of a person's keys, or of both persons'."""
    return 2 * keys if adjacency == "replace" else keys


def _few(keys: int) -> int:
    return count("keys", keys, most=_KEYS)


def _counts(values: ArrayLike) -> Integers:
    counts = whole_numbers("counts", values)
    if counts.size and counts.min() < 0:
        raise ValueError("counts must be >= 0: each is the number of persons who have the key")
    return counts
