"""Staircase noise on the integers: P(k) ~ e^(-epsilon level(k)), level(k) = floor((|k| + width - inner)/width)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from shapedp_check.balls import Ball, TooLarge, ball, tick
from shapedp_check.pairs import Pair, Worst, no_less

_MOST = 2000  # steps that a shift may cross


@dataclass(frozen=True)
class Staircase(Pair):
    """The law against itself shifted by a whole number of steps.

    Both laws are constant between the places where one of them drops, so each stretch has one loss, a multiple of
    epsilon. Beyond the last place where a centre matters the pattern repeats with factor e^-epsilon per width:
    one more width on each side, divided by 1 - e^-epsilon, is the whole tail.
    """

    width: int
    inner: int
    epsilon: Fraction
    shift: int
    formula = "staircase: sum over its steps of (P - e^x Q)+"

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        return self.epsilon * -(-self.shift // self.width)

    @property
    def unit(self) -> Fraction | None:  # type: ignore[override]
        return self.epsilon

    def _level(self, k: int) -> int:
        return (abs(k) + self.width - self.inner) // self.width

    def hockey(self, x: Ball) -> Ball:
        decay, norm = (-ball(self.epsilon)).exp(), self._norm()
        tail = 1 / (1 - decay)
        tick()
        result = ball(0)
        for length, mine, other, repeats in self._stretches():
            excess = (ball(-self.epsilon * mine)).exp() - (x + ball(-self.epsilon * other)).exp()
            result += excess.max(ball(0)) * length * (tail if repeats else 1)
        return no_less(x, result / norm)

    def _norm(self) -> Ball:
        decay = (-ball(self.epsilon)).exp()
        return 2 * (self.inner + decay * (self.width - self.inner)) / (1 - decay) - 1

    def _stretches(self) -> list[tuple[int, int, int, bool]]:
        """(length, level of P, level of Q, whether it repeats outward); Q is centred at -shift, so the loss is high
        on the right of 0."""
        if self.shift // self.width > _MOST:
            raise TooLarge("the shift crosses too many steps")
        cuts: set[int] = set()
        reach = self.shift + 2 * self.width
        for centre in (0, -self.shift):
            for n in range(-(-(reach + self.shift) // self.width) + 1):
                edge = self.inner + n * self.width
                cuts.update((centre + edge, centre - edge + 1))
        low, high = -self.shift - self.width, self.width  # outside both centres by one width
        inside = sorted({cut for cut in cuts if low < cut < high} | {low, high})
        left = sorted({cut for cut in cuts if low - self.width < cut < low} | {low - self.width, low})
        right = sorted({cut for cut in cuts if high < cut < high + self.width} | {high, high + self.width})
        result = []
        for places, repeats in ((inside, False), (left, True), (right, True)):
            for start, end in pairwise(places):
                result.append((end - start, self._level(start), self._level(start + self.shift), repeats))
        return result


def staircase(width: int, inner: int, epsilon: Fraction, shift: int) -> Pair:
    """The worst over all shifts up to `shift`.

    Between two shifts at which an edge of one law meets an edge of the other, the length of every stretch is linear
    in the shift, hence so is H(x): its maximum sits at such a shift or at the end. Edges meet at n width and at
    n width + (2 inner - 1), n width - (2 inner - 1).
    """
    if shift // width > _MOST:
        raise TooLarge("the shift crosses too many steps")
    meets = {shift}
    for n in range(-1, shift // width + 3):
        meets.update(n * width + offset for offset in (0, 2 * inner - 1, 1 - 2 * inner))
    chosen = sorted(meet for meet in meets if 0 < meet <= shift)
    return Worst(tuple(Staircase(width, inner, epsilon, meet) for meet in chosen or [0]))
