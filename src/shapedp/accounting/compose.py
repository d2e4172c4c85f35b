"""Composition of releases: exact where closed, otherwise `ComposedLoss`, with what the parts add on top."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from shapedp.accounting.composed import ComposedLoss
from shapedp.boundary.values import boolean
from shapedp.noise.radial import DEVIATIONS
from shapedp.numerics import SearchError, first_true, last_true_near
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, nonnegative, positive, probability
from shapedp.numerics.outward import ABOVE_128, BELOW_8, ROUNDINGS_2048
from shapedp.privacy import AdjustedLoss, Bracket, GaussianLoss, Loss
from shapedp.privacy.losses.base import Pieces, adjacency_of, one_relation
from shapedp.privacy.losses.mixing import MixingLoss


@dataclass(frozen=True)
class _Larger(Loss):
    """The larger of the two directions of a loss, at each epsilon."""

    base: Loss

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        ends = [self.base.delta(float(one)) for one in epsilon]
        return np.array([end.lower for end in ends]), np.array([end.upper for end in ends])


@dataclass(frozen=True)
class AdjustedComposition(AdjustedLoss):
    """A composition with what its parts add on top; epsilon is searched where the composition puts it."""

    def epsilon(self, delta: float) -> Bracket:
        target = probability("delta", delta)
        room = target - self.failure - 2 * self.total_variation
        if room <= 0:
            return Bracket(0.0, math.inf)
        base = self.base.epsilon(target)
        near, lower = base.lower, 0.0
        if not self.log_ratio and math.isfinite(near):
            with contextlib.suppress(SearchError):
                lower = last_true_near(lambda e: self.delta(e).lower > target, near)
        for share in (1 - 1e-9, 0.999, 0.9, 0.5, 0.1, 1e-3):
            top = self.base.epsilon(room * share).upper + self.log_ratio + 2 * self.slip
            if math.isfinite(top) and self.delta(top).upper <= target:
                return Bracket(lower, _first_below(lambda e: self.delta(e).upper <= target, near, top))
            if not top < 700 or math.exp(top) * self.total_variation > target:  # so it is beyond
                break
        return Bracket(lower, math.inf)

    def delta(self, epsilon: float) -> Bracket:
        """From the larger direction of the composition: what is added is the same for both."""
        at = nonnegative("epsilon", epsilon)
        if at < self.log_ratio + 2 * self.slip:
            return super().delta(at)
        larger = AdjustedLoss(_Larger(self.base), self.log_ratio, self.failure, self.total_variation, self.slip)
        return larger.delta(at)


def _first_below(holds: Callable[[float], bool], low: float, high: float) -> float:
    """`first_true` where the answer is expected just below `high`: what lies far from it is not asked."""
    good, step = high, ROUNDINGS_2048
    while (bad := max(high * (1 - step), low)) < good and holds(bad):
        good, step = bad, 4 * step
    return first_true(holds, min(bad, good), good, relative=ROUNDINGS_2048)


def loss_from(item: Any) -> Loss:
    """The loss of a mechanism, or a loss itself."""
    found = item if isinstance(item, Loss) else getattr(item, "loss", None)
    if not isinstance(found, Loss):
        raise TypeError(f"a loss, or a mechanism that has one, is expected, got {item!r}")
    return found


def counted(item: Any) -> tuple[Any, int]:
    """(item, count) from either; the one place where a repetition count is read."""
    if isinstance(item, tuple):
        if len(item) != 2:
            raise TypeError(f"an item is a loss, a mechanism or a pair (either, count), got {item!r}")
        return item[0], count("count", item[1])
    return item, 1


def common_adjacency(items: Iterable[Any]) -> str | None:
    """The one neighbour relation of all items; refuses a mixture."""
    return one_relation(map(adjacency_of, items))


def compose(items: Iterable[Any], *, closed_forms: bool = True, accuracy: float | None = None) -> Loss:
    """The loss of several releases on the same data: mechanisms, losses, or (either, count) pairs.

    Guarantee: as `ComposedLoss`. Gaussian losses compose to a Gaussian (mu^2 adds up, rounded up); failures and
    total variations add up, and log-ratios shift. A slip of 38 mu stands for noise within a Gaussian distance mu of
    its law, whatever the data: of all releases together mu^2 adds up, and a Gaussian loss exceeds 38 mu + mu^2/2 with
    probability below e^-700. `closed_forms=False` sends everything through the grids.
    The choice of the parts must not depend on earlier answers; a `Ledger` is for that.
    Reference: Dong, Roth and Su 2022, Corollary 3.3; Zhu, Dong and Wang 2022, Theorem 10 (dominating pairs).

    Example:
        >>> from shapedp import GaussianLoss, LaplaceLoss
        >>> whole = compose([(GaussianLoss(0.1), 10), LaplaceLoss(0.5)])
        >>> round(whole.epsilon(1e-6).upper, 2)
        1.82
    """
    closed_forms = boolean("closed_forms", closed_forms)
    if isinstance(items, Loss | tuple | str | dict) or not isinstance(items, Iterable):
        raise TypeError(f"compose takes a list of losses, mechanisms or (either, count) pairs, got {items!r}")
    pairs = [counted(item) for item in items]
    if not pairs:
        raise ValueError("nothing to compose: give at least one loss or mechanism")
    if accuracy is not None and not 1e-12 <= positive("accuracy", accuracy) < 1:
        raise ValueError(f"accuracy must lie in [1e-12, 1), got {accuracy!r}")
    adjacency = common_adjacency(item for item, _ in pairs)
    losses = [loss_from(item) for item, _ in pairs]
    if any(loss.lost for loss in losses):
        return GaussianLoss(math.inf, adjacency=adjacency)
    if closed_forms and accuracy is None and len(pairs) == 1 and pairs[0][1] == 1:
        return losses[0].under(adjacency)
    merged: dict[Loss, int] = {}
    sums: dict[str, list[float]] = {
        name: [] for name in ("log_ratio", "failure", "total_variation", "certain", "spoilt", "slip")
    }
    for loss, (_, times) in zip(losses, pairs, strict=True):
        taken = loss.pieces()
        for part, inner in taken.parts:
            merged[part] = merged.get(part, 0) + inner * times
        for name in ("log_ratio", "failure", "total_variation"):
            sums[name].append(times * getattr(taken, name))
        for name in ("certain", "spoilt"):
            missed = getattr(taken, name)
            sums[name].append(times * math.log1p(-missed) if missed < 1 else -math.inf)
        sums["slip"].append(times * taken.slip**2)
    log_ratio, failure, total_variation, log_certain, log_clean, squares = (math.fsum(one) for one in sums.values())
    failures = -math.expm1(log_certain), -math.expm1(log_clean)
    moving = {part: n for part, n in merged.items() if part.pure > 0} or merged
    base = _base(tuple(moving.items()), failures, closed_forms, accuracy, adjacency)
    if not (log_ratio or failure or total_variation or squares):
        return base
    slip = (math.sqrt(squares) + squares / (2 * DEVIATIONS**2)) * ABOVE_128
    failure = failure if slip < 700 else 1.0
    return AdjustedComposition(
        base,
        log_ratio * ABOVE_128,
        min(failure * ABOVE_128, 1.0),
        min(total_variation * ABOVE_128, 1.0),
        min(slip, 700.0),
    )


def _base(
    parts: tuple[tuple[Loss, int], ...],
    failures: tuple[float, float],
    closed: bool,
    accuracy: float | None,
    adjacency: str | None,
) -> Loss:
    certain, spoilt = failures
    if closed and not certain:
        if all(isinstance(loss, GaussianLoss) for loss, _ in parts):
            gaussians: list[tuple[Any, int]] = list(parts)
            mu = root_sum_squares([(loss.mu, n) for loss, n in gaussians])
            if all(loss.least is None for loss, _ in gaussians):
                return GaussianLoss(mu, adjacency=adjacency)
            known = [(loss.mu if loss.least is None else loss.least, n) for loss, n in gaussians]
            return GaussianLoss(mu, min(root_sum_squares(known) * BELOW_8, mu), adjacency=adjacency)
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0].under(adjacency)
        found = _mixed(parts)
        if found is not None:
            return found.under(adjacency)
    return ComposedLoss(parts, accuracy, certain, spoilt, adjacency=adjacency)


def _mixed(parts: tuple[tuple[Loss, int], ...]) -> Loss | None:
    """One mixing loss with Gaussian ones beside it: the same loss with a larger mu; None for anything else."""
    sketches = [(loss, n) for loss, n in parts if isinstance(loss, MixingLoss)]
    beside = [(loss, n) for loss, n in parts if isinstance(loss, GaussianLoss)]
    if len(sketches) != 1 or sketches[0][1] != 1 or len(beside) + 1 != len(parts):
        return None
    sketch = sketches[0][0]
    upper = replace(sketch, mu=root_sum_squares([(sketch.mu, 1), *((loss.mu, n) for loss, n in beside)]))
    if all(loss.least is None for loss, _ in beside):
        return upper
    known = [(loss.mu if loss.least is None else loss.least, n) for loss, n in beside]
    return _Ends(upper, replace(sketch, mu=min(root_sum_squares([(sketch.mu, 1), *known]) * BELOW_8, upper.mu)), parts)


@dataclass(frozen=True)
class _Ends(Loss):
    """A loss known between two others; it is composed further by its parts."""

    upper: MixingLoss
    lower: MixingLoss
    parts: tuple[tuple[Loss, int], ...]

    def __post_init__(self) -> None:
        self._inherit((self.upper, self.lower))

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.upper.symmetric

    def pieces(self) -> Pieces:
        return Pieces(self.parts)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        upper = self.upper.profile(epsilon, reverse=reverse)[1]
        return np.minimum(self.lower.profile(epsilon, reverse=reverse)[0], upper), upper

    def renyi(self, alpha: float) -> Bracket:
        return Bracket(self.lower.renyi(alpha).lower, self.upper.renyi(alpha).upper)


def root_sum_squares(terms: list[tuple[float, int]]) -> float:
    """sqrt(sum n mu^2), rounded up: never below the exact value, at most two units above."""
    if any(mu == math.inf for mu, _ in terms):
        return math.inf
    exact = sum((Fraction(mu) ** 2 * n for mu, n in terms), Fraction(0))
    if not exact:
        return 0.0
    try:
        guess = math.sqrt(exact)
    except OverflowError:
        raise ValueError("the composed mu exceeds the range of floats: there is no privacy left to account") from None
    while Fraction(guess) ** 2 < exact:
        guess = math.nextafter(guess, math.inf)
    return guess
