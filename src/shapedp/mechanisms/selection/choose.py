"""The best of some candidates: exponential mechanism, permute-and-flip and noisy maximum, drawn in integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.boundary.values import boolean, booleans
from shapedp.mechanisms.base import Claimed, Release, Rng
from shapedp.numerics import last_true, last_true_near
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, numeric, one_of, positive, probability
from shapedp.numerics.outward import WIDE
from shapedp.privacy.losses.selected import METHODS, SelectionLoss, log_win
from shapedp.sampling import Source
from shapedp.sampling.choice import Bits, exponential_choice
from shapedp.sensitivity import ADJACENCIES, Adjacency

MOST = 1 << 62  # of the two numbers of a rate, of candidates and of sensitivities
Integers = NDArray[np.int64]
_PLAIN = 1 << 20  # denominators tried first: 0.1 means 1/10
_CLOSE = Fraction(1, 1 << 40)
_LEFT = 1e-4  # of delta, for several selections
_LEAST = 1e-290  # a smaller delta buys nothing


def fraction_below(value: Fraction) -> Fraction:
    """A fraction at or below a positive number, by less than 2^-20 of it, of two numbers that floats hold.

    Mostly by less than 2^-40; very small rates have fewer digits.
    """
    plain = value.limit_denominator(_PLAIN)
    if value * (1 - _CLOSE) <= plain <= value and plain.numerator <= MOST:
        return plain
    size = value.denominator.bit_length() - value.numerator.bit_length()
    bits = min(44 + size, MOST.bit_length() - 1)
    found = Fraction(math.floor(value * Fraction(2) ** bits)) / Fraction(2) ** bits
    if bits < size + 21 or max(found.numerator, found.denominator) > MOST:
        raise ValueError("the rate leaves the range of exact selection: claim a usual epsilon for these utilities")
    return found


def whole_numbers(name: str, values: ArrayLike, size: int | None = None) -> Integers:
    """A 1-d array of integers, floats refused; of a stated size."""
    array = numeric(name, values)
    if (array.dtype.kind not in "iu" and array.size) or array.ndim != 1:
        raise TypeError(f"{name} must be a 1-d array of integers: put real utilities on an integer grid first")
    if size is not None and array.size != size:
        raise ValueError(f"{name} must have one entry per candidate, {size} in all, got {array.size}")
    return array.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Selected(Release[Integers]):
    """Which candidates were chosen: `value` holds their places, the first choice first.

    Examples
    --------
    >>> made = top_k([500, 3, 900], 1, epsilon=1.0, delta=0.0, sensitivity=1, monotone=True)
    >>> made.index, made.shortfall(0.95)
    (2, 5)
    """

    mechanism: Selection | None = None

    @property
    def index(self) -> int:
        """The place of the first choice."""
        return int(self.value.reshape(-1)[0])

    def shortfall(self, confidence: float) -> float:
        """How far, at most, each choice is below the best candidate left, with the given probability for all."""
        assert self.mechanism is not None
        return self.mechanism.shortfall(confidence)


@dataclass(frozen=True, eq=False)
class Selection(Claimed):
    """The place of a candidate of nearly the largest utility; of the `times` best, one after the other.

    Utilities are integers. One person changes each of them by at most `sensitivity`; `monotone` says that a person
    changes all of them in the same direction (counts: a person who joins lowers none). Then the rate is twice as high.

    Guarantee: the draw has exactly the probabilities of the method; the loss is that of `SelectionLoss`. How long a
    draw takes may depend on the utilities: do not show it.

    Parameters
    ----------
    candidates: how many there are; public.
    rate: two integers (a, b): the weight of a candidate falls by e^(-a/b) per unit of utility.
    epsilon, delta: the claim.
    sensitivity, monotone: what one person can change.
    method: "exponential", "permute-and-flip" or "noisy-max".
    times: how many are chosen, without replacement.
    adjacency: the neighbour relation under which `sensitivity` holds; None where the user vouches for it.

    Examples
    --------
    >>> import shapedp as sdp
    >>> m = sdp.Selection.calibrate(3, epsilon=1.0, delta=0.0, sensitivity=1, monotone=True)
    >>> m.rate, m.certificate.verdict
    ((1, 1), 'certified')
    >>> m.release([10, 90, 20]).index
    1
    """

    kind: ClassVar[str] = "selection"
    candidates: int
    rate: tuple[int, int]
    epsilon: float
    delta: float
    sensitivity: int
    monotone: bool
    method: str = "exponential"
    times: int = 1
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        booleans(self)
        self._plain(positive, "epsilon")
        self._plain(probability, "delta")
        self._plain(count, "candidates", "sensitivity", "times")
        one_of("method", self.method, METHODS)
        one_of("adjacency", self.adjacency, (*ADJACENCIES, None))
        given: Any = self.rate
        if not isinstance(given, list | tuple) or len(given) != 2:
            raise TypeError("rate must be two integers (a, b), the fraction a/b")
        rate = tuple(count("a number of rate", one, most=MOST) for one in given)
        numbers = (*rate, self.candidates, self.sensitivity)
        if max(numbers) > MOST or any(int(float(one)) != one for one in numbers):
            raise ValueError("rate, candidates and sensitivity must be integers up to 2^62 that a float holds")
        object.__setattr__(self, "rate", rate)
        if self.monotone and self.adjacency == "replace":
            raise ValueError("a person who is exchanged lowers some utilities and raises others: say monotone=False")
        if not 1 <= self.times < self.candidates:
            raise ValueError(f"of {self.candidates} candidates at most {self.candidates - 1} can be chosen")

    @property
    def premises(self) -> tuple[str, ...]:
        """The user vouches for the sensitivity where no neighbour relation is named."""
        return ("sensitivity",) if self.adjacency is None else ()

    @property
    def distance(self) -> int:
        """The length of the interval in which all changes of utilities between neighbours lie."""
        return distance_of(self.sensitivity, self.monotone)

    @cached_property
    def loss(self) -> SelectionLoss:
        """The privacy loss of all `times` selections.

        From below it is that of a person who can change every utility at once. Under a named neighbour relation (a
        table's rows, say) nobody may be able to: nothing is known from below.
        """
        shown = min((self.times + 1) // 2, self.candidates // 2) if self.adjacency is None else 0
        found = SelectionLoss(self.method, Fraction(*self.rate), self.distance, self.times, shown)
        return found.under(self.adjacency)

    @classmethod
    def calibrate(
        cls,
        candidates: int,
        *,
        epsilon: float,
        delta: float,
        sensitivity: int,
        monotone: bool,
        method: str = "exponential",
        times: int = 1,
        adjacency: Adjacency | None = None,
    ) -> Self:
        """The selection of the highest rate that meets the claim.

        Example:
            >>> Selection.calibrate(5, epsilon=1.0, delta=0.0, sensitivity=1, monotone=False, times=2).rate
            (1, 4)
        """
        monotone, size = boolean("monotone", monotone), count("sensitivity", sensitivity)
        times, given = count("times", times), probability("delta", delta)
        distance = distance_of(size, monotone)
        rate = calibrated_rate(one_of("method", method, METHODS), epsilon, given, distance, times)
        return cls(candidates, rate.as_integer_ratio(), epsilon, delta, sensitivity, monotone, method, times, adjacency)

    def release(self, x: ArrayLike, *, rng: Rng = None, unsafe: bool = False) -> Selected:
        """x holds the utility of each candidate. What is released: the places chosen."""
        unsafe, utilities = boolean("unsafe", unsafe), whole_numbers("utilities", x, self.candidates)
        drawn = self._drawn(utilities, lambda source: self._chosen(utilities, source), rng, unsafe)
        return Selected(drawn.value, None, drawn.certificate, unsafe=drawn.unsafe, mechanism=self)

    def _chosen(self, utilities: Integers, source: Source) -> Integers:
        bits, left, chosen = Bits(source), np.arange(self.candidates), []
        for _ in range(self.times):
            place = CHOICES[self.method](utilities[left], Fraction(*self.rate), bits)
            chosen.append(int(left[place]))
            left = np.delete(left, place)
        return np.array(chosen, dtype=np.int64)

    def shortfall(self, confidence: float) -> float:
        """How far, at most, each choice is below the best candidate left, with the given probability for all.

        A candidate that is g behind wins with at most the probability with which it beats the best one alone, so that
        P(shortfall >= g) <= candidates times P(win by two at margin -g), in each selection. For the exponential
        mechanism and permute-and-flip P(win) <= e^(-rate g).
        """
        missed = 1 - probability("confidence", confidence)
        if not missed > 0:
            return math.inf
        rate, level = float(Fraction(*self.rate)), math.log(missed / (self.candidates * self.times))
        if self.method != "noisy-max":
            return math.ceil(-level / rate)
        top = 1.0
        while log_win(self.method, rate, np.array([-top]))[0] > level:
            top *= 2
        behind = last_true(
            lambda g: bool(log_win(self.method, rate, np.array([-g]))[0] > level), 0.0, top, relative=WIDE
        )
        return math.ceil(behind * (1 + 2 * WIDE))

    def probabilities(self, utilities: ArrayLike) -> Floats:
        """With what probability each candidate is the first choice, to about 13 digits: for studies, not released."""
        gaps = whole_numbers("utilities", utilities, self.candidates)
        behind = (gaps.max() - gaps).astype(np.float64)
        return LAWS[self.method](behind, float(Fraction(*self.rate)))


def distance_of(sensitivity: int, monotone: bool) -> int:
    """The length of the interval of changes: [0, s] or [-s, 0] where all go in one direction, else [-s, s]."""
    return sensitivity if monotone else 2 * sensitivity


@lru_cache(maxsize=256)
def calibrated_rate(method: str, epsilon: float, delta: float, distance: int, times: int) -> Fraction:
    """The highest rate at which `times` selections meet the claim, rounded down.

    Of several, a little of delta is left, so that who computes it on a coarser grid still finds the claim met.
    """
    from scipy.optimize import brentq  # here alone: loading it takes longer than all else

    claimed = positive("epsilon", epsilon)
    plain = fraction_below(Fraction(claimed) / (distance * times))
    if delta < _LEAST:
        return plain

    def spent(factor: float) -> float:
        rate = fraction_below(plain * Fraction(factor))
        return SelectionLoss(method, rate, distance, times, 0).delta(claimed).upper

    delta *= 1 - _LEFT if times > 1 else 1.0
    top = 1.25
    while spent(top) <= delta and top < 1e6:
        top *= 2
    near = brentq(lambda factor: math.log(max(spent(factor), 1e-300) / delta), 1.0, top, xtol=1e-9)
    return fraction_below(plain * Fraction(last_true_near(lambda factor: spent(factor) <= delta, near, relative=WIDE)))


def _exponential(utilities: Integers, rate: Fraction, bits: Bits) -> int:
    gaps, back, counts = np.unique(utilities.max() - utilities, return_inverse=True, return_counts=True)
    group = exponential_choice(gaps.tolist(), counts.tolist(), rate, bits)
    members = np.flatnonzero(back == group)
    return int(members[bits.below(members.size)])


def _permute_and_flip(utilities: Integers, rate: Fraction, bits: Bits) -> int:
    """Candidates in random order; the first whose coin e^(-rate gap) shows heads. Reference: McKenna, Sheldon 2020."""
    gaps = (utilities.max() - utilities).tolist()
    order = list(range(len(gaps)))
    for left in range(len(gaps), 0, -1):
        place = bits.below(left)
        order[place], order[left - 1] = order[left - 1], order[place]
        chosen = order[left - 1]
        if bits.coin(rate.numerator * gaps[chosen], rate.denominator):
            return chosen
    raise AssertionError("the best candidate shows heads always")


def _noisy_max(utilities: Integers, rate: Fraction, bits: Bits) -> int:
    """Laplace noise on the integers; ties are settled at random."""
    noisy = [one + bits.laplace(rate) for one in utilities.tolist()]
    best = max(noisy)
    first = [place for place, one in enumerate(noisy) if one == best]
    return first[bits.below(len(first))]


def _exponential_law(gaps: Floats, rate: float) -> Floats:
    weights = np.exp(-rate * gaps)
    return np.asarray(weights / weights.sum())


def _flip_law(gaps: Floats, rate: float) -> Floats:
    """p_i times the integral over [0, 1] of prod_{j != i} (1 - p_j t): a polynomial, exact by Gauss and Legendre."""
    heads = np.exp(-rate * gaps)
    nodes, weights = np.polynomial.legendre.leggauss(gaps.size // 2 + 1)
    tails = 1 - heads[:, None] * (nodes + 1) / 2
    others = [np.prod(np.delete(tails, place, axis=0), axis=0) for place in range(gaps.size)]
    return np.asarray(heads * (np.array(others) @ weights) / 2)


def _noisy_law(gaps: Floats, rate: float) -> Floats:
    """Sums over the value of the maximum: of j candidates that tie at it each wins with probability 1/j."""
    reach = math.ceil(40 / rate) + 1
    top = np.arange(-reach - int(gaps.max()), reach + 1, dtype=np.float64)
    r = math.exp(-rate)
    moved = top[:, None] + gaps
    here = np.exp(-rate * np.abs(moved)) * math.tanh(rate / 2)
    low = np.exp(-rate * np.maximum(1 - moved, 0.0)) / (1 + r)
    below = np.where(moved <= 0, low, 1 - np.exp(-rate * np.maximum(moved, 0.0)) / (1 + r))
    nodes, weights = np.polynomial.legendre.leggauss(gaps.size // 2 + 1)
    ties = (nodes + 1) / 2  # 1/(1 + m) is the integral of s^m over [0, 1], m the number of others that tie
    found = []
    for place in range(gaps.size):
        others = np.delete(below, place, axis=1)[..., None] + np.delete(here, place, axis=1)[..., None] * ties
        found.append(float(here[:, place] @ (np.prod(others, axis=1) @ weights) / 2))
    return np.array(found)


CHOICES: dict[str, Callable[[Integers, Fraction, Bits], int]] = {
    "exponential": _exponential,
    "permute-and-flip": _permute_and_flip,
    "noisy-max": _noisy_max,
}
LAWS: dict[str, Callable[[Floats, float], Floats]] = {
    "exponential": _exponential_law,
    "permute-and-flip": _flip_law,
    "noisy-max": _noisy_law,
}


def top_k(
    utilities: ArrayLike,
    k: int,
    *,
    epsilon: float,
    delta: float,
    sensitivity: int,
    monotone: bool,
    method: str = "exponential",
    adjacency: Adjacency | None = None,
    rng: Rng = None,
) -> Selected:
    """The places of about the k largest of some integers (counts), the largest first.

    Parameters
    ----------
    utilities: one exact integer per candidate; the number of candidates is public.
    k: how many; 1 is the argmax.
    epsilon, delta, sensitivity, monotone, method, adjacency: as in `Selection`.
    rng: None for secure randomness.

    Returns
    -------
    A release with the places, the certificate, and `shortfall(confidence)`.

    Examples
    --------
    >>> top_k([500, 3, 900, 5], 2, epsilon=1.0, delta=0.0, sensitivity=1, monotone=True).value
    array([2, 0])
    """
    monotone, whole = boolean("monotone", monotone), whole_numbers("utilities", utilities)
    made = Selection.calibrate(
        whole.size,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        monotone=monotone,
        method=method,
        times=k,
        adjacency=adjacency,
    )
    return made.release(whole, rng=rng)
