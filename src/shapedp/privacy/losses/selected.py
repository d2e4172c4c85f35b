"""The privacy loss of a selection among candidates, and of the choice of keys.

Candidate i has an integer utility u_i; between neighbours all differences u'_i - u_i lie in an interval of length
`distance`. The method has a `rate` per unit of utility; reach = rate distance.

Exponential mechanism, P(i) ~ w_i e^(rate u_i). L(i) = rate (u_i - u'_i) + log(Z'/Z) lies in an interval [t - reach, t]
("bounded range"), and 0 <= t <= reach since E_Q e^L = 1. Put k = e^eps and H(k) = E_Q (e^L - k)_+. It is convex in k,
1 - k at k = e^(t - reach) and 0 at k = e^t, so it lies below the chord of these two points,

    H_t(k) = (e^reach - e^t) (1 - k e^-t)/(e^reach - 1),

which a pair with two outcomes has. The largest over t is at e^t = sqrt(k e^reach), for |eps| <= reach:

    sup_t H_t = (1 - e^((eps - reach)/2))^2/(1 - e^-reach).

A largest of convex curves is convex, it is 1 at k = 0, falls, and is nowhere below 1 - k or 0. So it is the curve of a
pair (Zhu, Dong and Wang 2022, Proposition 9), that pair dominates every t, and by their Theorem 10 its compositions
dominate adaptive compositions. It is the pair of logistic noise of ratio `reach`, of which K-fold sums are known.

Permute-and-flip, and the noisy maximum: given the noise of the others, a candidate wins if its own noise passes a
threshold, and the threshold moves by at most `distance`. P(noise >= c) <= e^(rate s) P(noise >= c + s), so that both
are purely private with epsilon = reach, and dominated by randomised response. (Permute-and-flip is the maximum with
one-sided exponential noise: Ding et al. 2021.) Neither is of bounded range.

Reference: Dong, Durfee and Rogers 2020 (bounded range); McKenna and Sheldon 2020 (permute-and-flip).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from shapedp.numerics import last_true
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, nonnegative, one_of, probability
from shapedp.numerics.outward import ABOVE_16, ABOVE_128, BELOW_8192, ROUNDINGS_64, ROUNDINGS_8192, WIDE
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.conversions import pure_to_rdp
from shapedp.privacy.losses.base import Loss, Pieces, renyi_order
from shapedp.privacy.losses.logistic import LogisticLoss

METHODS = ("exponential", "permute-and-flip", "noisy-max")
_TINY = 5e-324
_CANCELLED = 200.0  # logarithms of this size cancel in the law of a noisy maximum
_MANY = 4096
_DRAWS = 1 << 15  # selections, or keys that neighbours can change: numbers of ways are exact integers
_ENTRIES = 1 << 20  # of one array
_LARGEST = 600.0  # beyond it e^reach leaves the range of floats: only the pure bound is used
_TRIES = np.concatenate([np.arange(-3, 4), np.rint(np.geomspace(4, 1e6, 40)), -np.rint(np.geomspace(4, 1e6, 40))])


def rounded_up(value: Fraction) -> float:
    """The least float at or above a fraction."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


@lru_cache(maxsize=16)
def _log_combinations(times: int) -> Floats:
    """The logarithm of `times` over k, k = 0, 1, ..., each of the exact integer."""
    ways, found = 1, np.zeros(times + 1)
    for k in range(times // 2):
        ways = ways * (times - k) // (k + 1)
        found[k + 1] = found[times - k - 1] = math.log(ways)
    return frozen(found)


def two_outcomes(epsilon: Floats, up: Floats | float, down: Floats | float, times: int, *, upper: bool) -> Floats:
    """delta of `times` copies of a pair with losses `up` and -`down`, rounded outward.

    P(up) = (1 - e^-down)/(1 - e^-(up + down)). `epsilon` has one axis; the pairs may have another one before it.
    """
    up, down = np.asarray(up, dtype=np.float64), np.asarray(down, dtype=np.float64)
    whole: Floats = np.asarray(up + down)
    with np.errstate(divide="ignore", under="ignore", invalid="ignore"):
        log_p = np.log(np.expm1(-down) / np.expm1(-whole))
        log_rest = np.log(np.expm1(-up) / np.expm1(-whole)) - down
        size = times * whole
        move = (-1 if upper else 1) * ROUNDINGS_64 * (size + np.abs(epsilon))
        total = np.zeros(np.broadcast_shapes(epsilon.shape, whole.shape))
        block = max(_ENTRIES // total.size, 1)
        for start in range(0, times + 1, block):
            lost = np.arange(start, min(start + block, times + 1), dtype=np.float64).reshape(-1, *[1] * total.ndim)
            loss = (times - lost) * up - lost * down
            if np.all(loss[0] <= epsilon + move):
                break
            ways = _log_combinations(times)[start : start + block].reshape(lost.shape)
            log_mass = ways + (times - lost) * log_p + np.where(lost > 0, lost * log_rest, 0.0)
            above = np.exp(log_mass) * -np.expm1(np.minimum(epsilon + move - loss, 0.0))
            total += np.where(loss > epsilon + move, above, 0.0).sum(axis=0)
    slack = ROUNDINGS_8192 * (1 + times * (1 + whole))
    if upper:
        return np.minimum(total * (1 + slack) + (times + 1) * _TINY, 1.0)
    return np.nan_to_num(np.maximum(total * (1 - slack) - (times + 1) * _TINY, 0.0))


def responses(epsilon: Floats, own: float, times: int) -> Floats:
    """delta of `times` answers by randomised response of epsilon `own`, rounded up.

    Reference: Kairouz, Oh and Viswanath 2017, Theorem 3.3.
    """
    if own == 0:
        return np.zeros_like(epsilon)
    top = own if times == 1 else times * own * ABOVE_16
    return np.where(epsilon < top, two_outcomes(epsilon, own, own, times, upper=True), 0.0)


@dataclass(frozen=True)
class SelectionLoss(Loss):
    """The loss of `times` selections by one method, one after the other among what is left.

    Parameters: `method`, `rate` and `distance` as at the head of this file; `pairs` says in how many of the selections
    neighbours can show what two candidates show, independently (peeling: every second one, since the loser comes next).

    Guarantee: upper ends hold for adaptively chosen utilities; lower ends are reached by integer utilities of `pairs`
    pairs of candidates, the others far below.

    Example:
        >>> round(SelectionLoss("exponential", Fraction(1), 1).delta(0.0).upper, 6)  # tanh(1/4)
        0.244919
    """

    method: str
    rate: Fraction
    distance: int
    times: int = 1
    pairs: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("method", self.method, METHODS)
        for name, least in (("distance", 1), ("times", 1), ("pairs", 0)):
            object.__setattr__(self, name, count(name, getattr(self, name), least=least, most=1 << 64))
        rate: object = self.rate
        if not isinstance(rate, Fraction) or not rate > 0:
            raise ValueError("rate must be a fraction above 0")
        if self.times > _DRAWS:
            raise ValueError(f"times must be at most {_DRAWS}, got {self.times}")
        if self.pairs > self.times:
            raise ValueError(f"pairs must be at most times = {self.times}, got {self.pairs}")

    @cached_property
    def reach(self) -> float:
        """The epsilon of one selection, rounded up."""
        return rounded_up(self.rate * self.distance)

    @property
    def ranged(self) -> bool:
        """Whether the loss lies in an interval of length `reach`."""
        return self.method == "exponential" and self.reach < _LARGEST

    @cached_property
    def pure(self) -> float:  # type: ignore[override]
        return rounded_up(self.rate * self.distance * self.times)

    @property
    def slow(self) -> bool:  # type: ignore[override]
        return self.times > 1

    def pieces(self) -> Pieces:
        """Single selections: those that neighbours reach, and the others."""
        if self.times == 1:
            return Pieces(((self, 1),))
        shown = (replace(self, times=1, pairs=1), self.pairs)
        rest = (replace(self, times=1, pairs=0), self.times - self.pairs)
        return Pieces(tuple(part for part in (shown, rest) if part[1]))

    @cached_property
    def _logistic(self) -> LogisticLoss:
        return LogisticLoss(self.pure, np.full(self.times, self.reach), worst=True)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """From below one pair of neighbours for all epsilons: randomised response of the most even margin."""
        upper = self._logistic.profile(epsilon)[1] if self.ranged else responses(epsilon, self.reach, self.times)
        upper = np.where(epsilon < self.pure, upper, 0.0)
        even = self._even
        if not self.pairs or not even > 0:
            return np.zeros_like(upper), upper
        lower = two_outcomes(epsilon, even, even, self.pairs, upper=False)
        return np.minimum(lower, upper), upper

    def losses(self, margin: Floats) -> tuple[Floats, Floats]:
        """(up, down): log P/Q where the first of two candidates wins, and log Q/P where the second does.

        The first is ahead by `margin` in P, by `margin` - `distance` in Q. Rounded down: smaller losses show less.
        """
        behind = margin - self.distance
        first, second, third, fourth = (
            log_win(self.method, float(self.rate), x) for x in (margin, behind, -behind, -margin)
        )
        room = 0.0 if self.method == "exponential" else _CANCELLED
        up = first - second - ROUNDINGS_64 * (np.abs(first) + np.abs(second) + room)
        return up, third - fourth - ROUNDINGS_64 * (np.abs(third) + np.abs(fourth) + room)

    @cached_property
    def _even(self) -> float:
        up, down = self.losses(np.array([float((self.distance + 1) // 2)]))
        return float(min(up[0], down[0]))

    def delta(self, epsilon: float) -> Bracket:
        """The lower end is that of the margin between two candidates that shows most at this epsilon."""
        at = nonnegative("epsilon", epsilon)
        lower, upper = (float(end[0]) for end in self.profile(np.array([at])))
        return Bracket(min(max(lower, self._shown(at)), upper), upper)

    def _shown(self, epsilon: float) -> float:
        """delta of the pairs of candidates that show most, or nearly."""
        if not 0 < self.pairs <= _MANY or epsilon >= self.pure:
            return 0.0
        up, down = self.losses(np.unique(self._margins(epsilon / self.pairs)))
        known = (up > 0) & (down > 0) & np.isfinite(up) & np.isfinite(down)
        shown = two_outcomes(np.array([epsilon]), up[known, None], down[known, None], self.pairs, upper=False)
        return float(shown.max(initial=0.0))

    def _margins(self, each: float) -> Floats:
        """Margins near the best for one of two candidates, and others."""
        rate = float(self.rate)
        centre = (self.distance - each / rate) / 2
        if self.method == "exponential" and 0 < self.reach < _LARGEST and each < self.reach:
            top = (each + self.reach) / 2  # e^t of the pair with two outcomes that is worst here
            odds = -math.expm1(top - self.reach) / -math.expm1(-top)
            centre = (self.reach - top + math.log(odds)) / rate if odds > 0 else centre
        return np.asarray(math.floor(min(max(centre, -1e15), 1e15)) + _TRIES)

    def epsilon(self, delta: float) -> Bracket:
        target = probability("delta", delta)
        if not target:
            return Bracket(min(self.pure * self.pairs / self.times * BELOW_8192, self.pure), self.pure)
        if not self.ranged:
            found = super().epsilon(target)
            return Bracket(min(found.lower, self.pure), min(found.upper, self.pure))
        upper = min(self._logistic.epsilon(target).upper, self.pure)
        shows = self._shown(0.0) > target
        return Bracket(last_true(lambda e: self._shown(e) > target, 0.0, upper, relative=WIDE) if shows else 0.0, upper)

    def renyi(self, alpha: float) -> Bracket:
        """Of bounded range: the largest over t of the pair with two outcomes, at most alpha reach^2/8.

        With E = e^reach and s = e^t, E_Q e^(alpha L) = s^(alpha - 1) A - s^alpha B for A = (E - E^(1 - alpha))/(E - 1)
        and B = A - 1, largest at s = (1 - 1/alpha) A/B: a convex function of e^L is largest at the ends of its range.
        """
        order = renyi_order(alpha)
        if not self.ranged:
            return Bracket(0.0, pure_to_rdp(self.reach, order) * self.times * ABOVE_16)
        top, fall = self.reach, (order - 1) * self.reach
        b = -math.expm1(-fall) / math.expm1(top)
        a = 1 + b
        log = (order - 1) * math.log((1 - 1 / order) * a / b) + math.log(a / order)
        slack = ROUNDINGS_8192 * (1 + order * (1 + top))
        upper = min((log + slack) / (order - 1), order * top / 8 * top, top) * ABOVE_128 + _TINY
        return Bracket(0.0, max(upper, 0.0) * self.times * ABOVE_16)


def log_win(method: str, rate: float, margin: Floats) -> Floats:
    """log of the probability that a candidate wins over one that is `margin` behind, to about 12 digits."""
    x = rate * np.asarray(margin, dtype=np.float64)
    with np.errstate(under="ignore", over="ignore"):
        if method == "exponential":
            return np.asarray(-np.logaddexp(0.0, -x))
        if method == "permute-and-flip":
            return np.asarray(np.where(x < 0, np.minimum(x, 0.0) - math.log(2), np.log1p(-np.exp(-np.abs(x)) / 2)))
        tail = _difference_tail(rate, np.abs(margin))
        return np.asarray(np.where(x < 0, tail, np.log1p(-np.exp(tail))))


def _difference_tail(rate: float, margin: Floats) -> Floats:
    """log P(Z > k) + P(Z = k)/2 for the difference Z of two draws of P(n) ~ r^|n|, r = e^-rate, at k >= 0.

    P(Z = k) = c^2 r^k (k + 1 + 2 r^2/(1 - r^2)), c = (1 - r)/(1 + r): of n + n' = k there are k + 1 of total size k.
    """
    r, short = math.exp(-rate), -math.expm1(-rate)
    more = 2 * r * r / (short * (1 + r))
    rest = r * ((margin + 2 + more) / short + r / short**2) + (margin + 1 + more) / 2
    return np.asarray(2 * math.log(short / (1 + r)) - rate * margin + np.log(rest))


@dataclass(frozen=True)
class KeysLoss(Loss):
    """The loss of keys published one by one, where a person can change `keys` of them.

    Each decision is (own, failure)-DP, so that all together are dominated by as many answers of randomised response
    that fail with that probability.

    Guarantee: `new` of the keys are those of one neighbour alone. They pass with probability `failure` each, so that
    the lower end is reached.
    Reference: Desfontaines, Voss, Gipson and Mandayam 2022, Theorem 1; Kairouz, Oh and Viswanath 2017, Theorem 3.3.

    Example:
        >>> KeysLoss(1.0, 1e-6).delta(1.0)
        Bracket(lower=1e-06, upper=1e-06)
    """

    own: float
    failure: float
    keys: int = 1
    new: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "own", nonnegative("epsilon", self.own))
        object.__setattr__(self, "failure", probability("delta", self.failure))
        object.__setattr__(self, "keys", count("keys", self.keys))
        object.__setattr__(self, "new", count("new", self.new, least=0))
        if self.keys > _DRAWS:
            raise ValueError(f"keys must be at most {_DRAWS}, got {self.keys}")
        if self.new > self.keys:
            raise ValueError(f"new must be at most keys = {self.keys}, got {self.new}")

    @property
    def pure(self) -> float:  # type: ignore[override]
        return math.inf if self.failure else self.own * self.keys * ABOVE_16

    def _passed(self, keys: int) -> tuple[float, float]:
        """1 - (1 - failure)^keys from both sides; exact for one key."""
        if keys <= 1 or not self.failure:
            return self.failure * keys, self.failure * keys
        value = -math.expm1(keys * math.log1p(-self.failure)) if self.failure < 1 else 1.0
        return value / ABOVE_128, min(value * ABOVE_128, 1.0)

    def pieces(self) -> Pieces:
        """The failure is promised to nobody: which direction shows it is not said."""
        return Pieces(((replace(self, failure=0.0, keys=1, new=0), self.keys),), failure=self._passed(self.keys)[1])

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """A lower end would have to be that of one pair of neighbours in both directions: none is shown here."""
        low, high = self._passed(self.keys)
        finite = responses(epsilon, self.own, self.keys)
        upper = np.where(finite > 0, np.minimum((high + (1 - low) * finite) * ABOVE_16, 1.0), high)
        return np.zeros_like(upper), upper

    def delta(self, epsilon: float) -> Bracket:
        found = super().delta(epsilon)
        return Bracket(min(self._passed(self.new)[0], found.upper), found.upper)

    def renyi(self, alpha: float) -> Bracket:
        if self.failure:
            raise ValueError("keys are published with delta > 0: that implies no finite Renyi divergence")
        return Bracket(0.0, pure_to_rdp(self.own, renyi_order(alpha)) * self.keys * ABOVE_16)
