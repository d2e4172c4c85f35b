"""What every privacy loss answers."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from shapedp.boundary.values import boolean
from shapedp.numerics import SearchError, falling_root, first_true_near, last_true, last_true_near
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative, one_of, positive, probability
from shapedp.numerics.outward import ABOVE_8, ABOVE_16, ABOVE_128, ROUNDINGS_8, WIDE
from shapedp.privacy.bracket import Bracket
from shapedp.sensitivity import ADJACENCIES, Sensitivity

if TYPE_CHECKING:
    from shapedp.privacy.losses.discrete import DiscreteLoss

EPSILON_LIMIT = 1e6


def with_sampler_error(upper: Callable[[Floats], Floats], epsilon: Floats, missed: float) -> Floats:
    """upper(e) + (1 + e^e) missed, and at large e what holds at a smaller one: delta never rises with e."""

    def at(points: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.minimum((upper(points) + (1 + np.exp(points)) * missed) * ABOVE_8, 1.0)

    values = at(epsilon)
    steps = -math.log(missed) * np.linspace(0.1, 0.9, 9)
    with np.errstate(over="ignore"):
        late = (epsilon > steps[0]) & (np.exp(epsilon) * missed > 1e-3 * values)  # elsewhere it gains nothing
    if late.any():
        steps = steps[steps < epsilon[late].max()]
        best = np.minimum.accumulate(at(steps))
        values[late] = np.minimum(values[late], best[np.searchsorted(steps, epsilon[late], side="right") - 1])
    return values


def one_relation(found: Iterable[str | None]) -> str | None:
    """The one neighbour relation among those found, None where none is named; refuses a mixture.

    Parameters: names of relations, or None where none is named.
    Returns: the one name among them, or None.

    Example:
        >>> one_relation(["replace", None])
        'replace'
    """
    names = sorted({one_of("adjacency", name, ADJACENCIES) for name in found if name is not None})
    if len(names) > 1:
        raise ValueError(
            f"one guarantee cannot mix neighbour relations ({', '.join(names)}): what one person changes differs; "
            "derive every sensitivity under the same adjacency"
        )
    return names[0] if names else None


def adjacency_of(subject: Any) -> str | None:
    """The neighbour relation of a mechanism, a plan or a loss, None where the user vouches for it.

    Guarantee: what the subject states of itself agrees with what its loss was computed for, or ValueError is raised.
    """
    loss = getattr(subject, "loss", None)
    holders = (subject, getattr(subject, "sensitivity", None), loss if isinstance(loss, Loss) else None)
    return one_relation(getattr(holder, "adjacency", None) for holder in holders)


def renyi_order(alpha: float) -> float:
    """An order above 1."""
    alpha = positive("alpha", alpha)
    if not alpha > 1:
        raise ValueError(f"alpha must be > 1, got {alpha!r}")
    return alpha


@dataclass(frozen=True)
class Pieces:
    """A loss taken apart: `parts` with counts, which compose, and what adds up by itself.

    `log_ratio` adds to the loss, nothing is promised with probability `failure`, both laws are within
    `total_variation` and, of the rest, within a factor e^slip of those of the parts (over several releases the squares
    of `slip` add up). With probability `certain` the loss is infinite; `spoilt` is the probability that a part's
    failure was drawn, with or without that effect.
    """

    parts: tuple[tuple[Loss, int], ...]
    log_ratio: float = 0.0
    failure: float = 0.0
    total_variation: float = 0.0
    certain: float = 0.0
    spoilt: float = 0.0
    slip: float = 0.0

    @property
    def pure(self) -> float:
        """An epsilon at which delta is 0, rounded up; infinite where none is known."""
        if self.failure or self.total_variation or self.certain:
            return math.inf
        parts = math.fsum(n * loss.pure for loss, n in self.parts)
        return (parts + self.log_ratio + 2 * self.slip) * ABOVE_16

    def adjusted(
        self, *, log_ratio: float = 0.0, failure: float = 0.0, total_variation: float = 0.0, slip: float = 0.0
    ) -> Pieces:
        """The same parts with more of what adds up by itself."""
        return replace(
            self,
            log_ratio=self.log_ratio + log_ratio,
            failure=self.failure + failure,
            total_variation=self.total_variation + total_variation,
            slip=math.hypot(self.slip, slip) * ABOVE_128,
        )


def _checked(profile: Callable[..., tuple[Floats, Floats]]) -> Callable[..., tuple[Floats, Floats]]:
    @functools.wraps(profile)
    def checked(self: Any, epsilon: Floats, *more: Any, reverse: Any = False, **named: Any) -> tuple[Floats, Floats]:
        direction = reverse if type(reverse) is bool else boolean("reverse", reverse)
        at = np.asarray(epsilon, dtype=np.float64)
        if np.isnan(at).any():
            raise ValueError("epsilon must hold numbers: one of them is NaN")
        return profile(self, at, *more, reverse=direction, **named)

    return checked


@dataclass(frozen=True, eq=False)
class Loss(ABC):
    """The privacy loss L = log dP/dQ of a dominating pair (P, Q), and of its reverse (Q, P).

    A subclass writes one formula, `profile`; everything else follows from it. The forward direction is
    (P, Q), the reverse is (Q, P): each composes on its own and the maximum is taken last. `adjacency` is the neighbour
    relation that the pair stands for, None where the user vouches for it; whatever is made of a loss keeps it.

    Example:
        >>> from shapedp import GaussianLoss
        >>> loss = GaussianLoss(0.5).with_failure(1e-9)
        >>> loss.delta(1.0).upper > GaussianLoss(0.5).delta(1.0).upper
        True
    """

    adjacency: str | None = field(default=None, kw_only=True, repr=False)

    symmetric = True
    slow = False  # whether `profile` costs so much per point that compositions should ask it rarely
    settled = True  # whether an answer depends on nothing but the loss and the question, not on a grid chosen before
    pure = math.inf  # an epsilon at which delta is 0, infinite where none is known
    lost = False  # whether neighbours are told apart with certainty: there is no noise

    def __post_init__(self) -> None:
        self._inherit(())

    @property
    def lattice(self) -> float | None:
        """The spacing on which the loss has its atoms, where it is known."""
        return None

    @property
    def lower_pair(self) -> Loss:
        """The loss of the pair that the lower ends are, where the upper ends are of no pair or of another one."""
        return self

    def pieces(self) -> Pieces:
        """What this loss is made of: the one decomposition, for compositions and for ledgers."""
        return Pieces(((self, 1),))

    def under(self, adjacency: str | None) -> Self:
        """This loss, said to hold for that neighbour relation; None changes nothing, another one is refused."""
        if adjacency in (None, self.adjacency):
            return self
        one_relation([adjacency, self.adjacency])
        labelled = copy(self)
        object.__setattr__(labelled, "adjacency", adjacency)
        return labelled

    def _inherit(self, parts: Iterable[Loss]) -> None:
        """Takes the neighbour relation of what this loss is made of; refuses a mixture."""
        made = [*parts]
        if any(not isinstance(part, Loss) for part in made):
            raise TypeError(f"a {type(self).__name__} is made of losses")
        found = one_relation([self.adjacency, *(part.adjacency for part in made)])
        object.__setattr__(self, "adjacency", found)

    def __init_subclass__(cls, **options: Any) -> None:
        """Every `profile` gets floats, and refuses NaN and a `reverse` that is no boolean ("no" would mean yes)."""
        super().__init_subclass__(**options)
        for name in {"profile", "profile_within"} & cls.__dict__.keys():
            setattr(cls, name, _checked(cls.__dict__[name]))

    @abstractmethod
    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper bounds on E_P[(1 - e^(epsilon - L))_+] at each epsilon >= 0.

        Guarantee: lower <= truth <= upper in every entry, rounding included. All lower ends, of both directions, are
        those of one pair of neighbours, since a composition of the best of several is reached by none of them. What
        other pairs show at one epsilon is for `best_shown`.
        """

    def best_shown(self, epsilon: float) -> float:
        """A lower bound on delta at one epsilon, of whichever neighbours show most there; 0 where none is known."""
        return 0.0

    def profile_near(self, epsilon: Floats, move: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """`profile` where each epsilon is known up to a move only: bounds that hold for all it may be."""
        reverse = boolean("reverse", reverse)
        lower = self.profile(epsilon + move, reverse=reverse)[0]
        return lower, self.profile(np.maximum(epsilon - move, 0.0), reverse=reverse)[1]

    def profile_within(
        self, epsilon: Floats, gap: Floats, guess: Floats | None, *, reverse: bool = False
    ) -> tuple[Floats, Floats]:
        """`profile`, perhaps quicker where a relative gap is enough and a guess is at hand; bounds hold for any."""
        reverse = boolean("reverse", reverse)
        return self.profile(epsilon, reverse=reverse)

    def hockey_stick(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """`profile` at every real epsilon: H(P, Q; -e) = 1 - e^-e + e^-e H(Q, P; e)."""
        reverse = boolean("reverse", reverse)
        epsilon = np.asarray(epsilon, dtype=np.float64)
        lower, upper = self.profile(np.abs(epsilon), reverse=reverse)
        below = epsilon < 0
        if not below.any():
            return lower, upper
        mirrored = self.profile(-epsilon[below], reverse=not reverse)
        base, factor = -np.expm1(epsilon[below]), np.exp(epsilon[below])
        lower, upper = lower.copy(), upper.copy()
        lower[below] = np.maximum(base + factor * mirrored[0] - ROUNDINGS_8, 0.0)
        upper[below] = np.minimum(base + factor * mirrored[1] + ROUNDINGS_8, 1.0)
        return lower, upper

    def delta(self, epsilon: float) -> Bracket:
        """The least delta for which (epsilon, delta)-DP holds: the larger of the two directions."""
        at = np.array([nonnegative("epsilon", epsilon)])
        bracket = Bracket(*(float(end[0]) for end in self.profile(at)))
        if not self.symmetric:
            bracket = bracket.max(Bracket(*(float(end[0]) for end in self.profile(at, reverse=True))))
        shown = min(self.best_shown(float(at[0])), bracket.upper)
        return bracket if shown <= bracket.lower else Bracket(shown, bracket.upper)

    def epsilon(self, delta: float) -> Bracket:
        """The least epsilon for which (epsilon, delta)-DP holds.

        Guarantee: at `upper` the upper bound on delta is at most the delta asked for; `upper` is infinite
        where none up to 1e6 was found.
        """
        target = probability("delta", delta)
        goal = math.log(target) if target else -math.inf

        def log_upper(epsilon: float) -> float:
            value = self.delta(epsilon).upper
            return math.log(value) if value else -math.inf

        guess = falling_root(log_upper, goal, EPSILON_LIMIT)
        try:
            upper = first_true_near(lambda e: self.delta(e).upper <= target, guess, EPSILON_LIMIT)
        except SearchError:
            upper = math.inf
        return Bracket(self._insufficient(target, guess, upper), upper)

    def _insufficient(self, target: float, guess: float, upper: float) -> float:
        """An epsilon at which even the lower bound on delta exceeds the target; 0 where none is seen."""

        def fails(epsilon: float) -> bool:
            return self.delta(epsilon).lower > target

        try:
            return min(last_true_near(fails, min(guess, EPSILON_LIMIT)), upper)
        except SearchError:
            pass
        try:
            return min(last_true(fails, 0.0, min(upper, EPSILON_LIMIT), relative=WIDE), upper)
        except SearchError:
            return 0.0

    def renyi(self, alpha: float) -> Bracket:
        """The Renyi divergence of order alpha > 1, the larger of the two directions."""
        raise ValueError(f"{type(self).__name__} has no Renyi curve")

    def tabulated(self, accuracy: float) -> Loss:
        """This loss, or a table of it where it is slow, for a composition of that relative accuracy of delta."""
        from shapedp.privacy.losses.table import Table

        accuracy = positive("accuracy", accuracy)
        if not self.slow:
            return self
        kept = vars(self).get("_tabulated")
        if kept is None or kept[0] != accuracy:  # a plan may ask again and again
            kept = (accuracy, Table.of(self, accuracy))
            object.__setattr__(self, "_tabulated", kept)
        return kept[1].under(self.adjacency)

    def discretize(self, **options: Any) -> DiscreteLoss:
        """This loss on a grid, bounded from both sides, ready to be composed; it rests on what this one rests on."""
        from shapedp.privacy.assumptions import premises_of
        from shapedp.privacy.losses.discrete import DiscreteLoss

        return replace(DiscreteLoss.of(self, **options).under(self.adjacency), premises=premises_of(self))

    def shift(self, log_ratio: float) -> Loss:
        """The loss L + log_ratio, L distributed as before: a determinant factor.

        Guarantee: in each direction (P, Q), holds for P against any Q' >= e^(-log_ratio) Q. Where P changes too,
        P' <= e^s P, it does not: that costs a factor e^s on delta besides.
        """
        from shapedp.privacy.losses.adjusted import AdjustedLoss

        return AdjustedLoss(self, log_ratio=nonnegative("log_ratio", log_ratio))

    def with_failure(self, p: float, *, total_variation: float = 0.0) -> Loss:
        """The loss when nothing is promised on an event of probability p.

        `total_variation` is the distance between what a sampler draws and the law it should draw: it costs
        (1 + e^epsilon) times as much, since it also makes likely outputs of the neighbour less likely.
        """
        from shapedp.privacy.losses.adjusted import AdjustedLoss

        return AdjustedLoss(
            self, failure=probability("p", p), total_variation=probability("total_variation", total_variation)
        )


class HasLoss(Protocol):
    """A law of noise: it knows its privacy loss against a sensitivity set."""

    def loss(self, sensitivity: Sensitivity) -> Loss:
        """The loss of f(D) + noise when neighbours move f by a vector of the set."""


def loss_of(law: HasLoss, sensitivity: Sensitivity) -> Loss:
    """The privacy loss of f(D) + noise when neighbours move f by a vector of the set, under its neighbour relation.

    Parameters: a law of `shapedp.noise`, and a set of `shapedp.sensitivity`.
    Returns: the `Loss`. Refuses what cannot be computed, with the reason.

    Example:
        >>> import shapedp as sdp
        >>> round(loss_of(sdp.Gaussian(2.0, dim=3), sdp.L2(1.0, dim=3)).mu, 12)
        0.5
    """
    return law.loss(sensitivity)
