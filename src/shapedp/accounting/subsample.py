"""Amplification by subsampling, on the loss itself where it is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.compose import loss_from
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative, one_of, probability, real, share
from shapedp.numerics.outward import ABOVE_2, ABOVE_16, ABOVE_32, BELOW_16, ROUNDINGS_8, ROUNDINGS_16
from shapedp.privacy import Bracket, GaussianLoss, Loss
from shapedp.privacy.losses.base import Pieces, adjacency_of
from shapedp.sensitivity import ADJACENCIES

Scheme = Literal["poisson", "without-replacement"]
SCHEMES: tuple[Scheme, ...] = ("poisson", "without-replacement")
_EXP_LIMIT = 700.0
RELATIONS = {"poisson": ("add-remove", "zero-out"), "without-replacement": ("replace",)}


@dataclass(frozen=True)
class SubsampledLoss(Loss):
    """The loss of a mechanism run on a random part of the data.

    Poisson: each person is in with probability `rate`; neighbours add or remove one (or blank one). With (P, Q) the
    base pair and the person in P, the forward pair is ((1 - rate) Q + rate P, Q) and the reverse its mirror image:
        H(k) = rate H(P, Q; 1 + (k - 1)/rate),        H'(k) = (1 - k (1 - rate)) H(Q, P; k rate/(1 - k (1 - rate))).
    Without replacement: a fixed-size sample, neighbours replace one person. Both directions are at most the first form,
    and a query that depends on whether one record is there reaches the Poisson pair: the ends of `profile`.
    `person` says which side of an asymmetric base holds the person; with None both are allowed for.

    Guarantee: exact for Poisson and a tight base pair; for one run on a sample without replacement tight among all
    mechanisms with that base loss. Roundings of the transformed epsilon are evaluated outward.
    Reference: Zhu, Dong and Wang 2022, Theorem 11; Balle, Barthe and Gaboardi 2018, Theorems 8 and 9.

    Example:
        >>> round(SubsampledLoss(GaussianLoss(1.0), 0.1).epsilon(1e-6).upper, 2)
        2.18
    """

    base: Loss
    rate: float
    scheme: Scheme = "poisson"
    person: Literal["P", "Q"] | None = None

    def __post_init__(self) -> None:
        self._inherit([self.base])
        object.__setattr__(self, "rate", share("rate", self.rate))
        one_of("scheme", self.scheme, SCHEMES)
        one_of("person", self.person, ("P", "Q", None))
        fits = RELATIONS[self.scheme]
        if self.adjacency is None:
            object.__setattr__(self, "adjacency", fits[0])
        elif self.adjacency not in fits:
            raise ValueError(
                f"{self.scheme} sampling is analysed under {' or '.join(fits)}, not {self.adjacency}: "
                "derive the sensitivity under that relation, or choose the other scheme"
            )

    @property
    def premises(self) -> tuple[str, ...]:
        """What sampling rests on; see `privacy.assumptions`."""
        return ("blanks",) if self.adjacency == "zero-out" and self.rate < 1 else ()

    @property
    def settled(self) -> bool:  # type: ignore[override]
        return self.base.settled

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.rate in (0.0, 1.0) and self.base.symmetric

    @property
    def lower_pair(self) -> Loss:
        """Of a fixed-size sample the Poisson pair."""
        return self if self.scheme == "poisson" or self.rate in (0.0, 1.0) else _Pair(self)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        if self.rate == 0:
            return np.zeros_like(epsilon), np.zeros_like(epsilon)
        if self.rate == 1:
            if self.base.symmetric or self.person is not None:
                return self.base.profile(epsilon, reverse=reverse != (self.person == "Q"))
            one, other = (self.base.profile(epsilon, reverse=side != reverse) for side in (False, True))
            shown = one[0] if self.scheme == "without-replacement" else np.minimum(one[0], other[0])
            return shown, np.maximum(one[1], other[1])
        if self.scheme == "without-replacement":
            forward = self._forward(epsilon, False)
            reached = self._backward(epsilon, True) if reverse else forward
            upper = forward[1]
            return reached[0], upper if self.base.symmetric else np.maximum(upper, self._forward(epsilon, True)[1])
        if self.base.symmetric or self.person is not None:
            mirrored = self.person == "Q"
            return self._backward(epsilon, not mirrored) if reverse else self._forward(epsilon, mirrored)
        sides = [self._backward(epsilon, side) if reverse else self._forward(epsilon, side) for side in (False, True)]
        return np.minimum(sides[0][0], sides[1][0]), np.maximum(sides[0][1], sides[1][1])

    def _person_in_p(self, epsilon: Floats, reverse: bool) -> tuple[Floats, Floats]:
        """The Poisson pair with the person in P."""
        return self._backward(epsilon, True) if reverse else self._forward(epsilon, False)

    def best_shown(self, epsilon: float) -> float:
        """Of a single run: all data show what the base shows, a sample what `_forward` makes of it."""
        if self.rate == 1:
            return self.base.delta(epsilon).lower
        if self.rate == 0 or not self.base.symmetric:
            return 0.0
        inner, move = self._inner(np.array([real("epsilon", epsilon)]))
        shown = self.base.best_shown(float((inner + move)[0]))
        return float(self._scaled(np.array([shown]), up=False)[0])

    def _inner(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """log(1 + (e^eps - 1)/rate), and how far rounding may move it."""
        with np.errstate(over="ignore"):
            inner = np.log1p(np.expm1(epsilon) / self.rate)
        inner = np.where(np.isfinite(inner), inner, epsilon - math.log(self.rate))
        return inner, ROUNDINGS_16 * (inner + np.minimum(inner, 1.0)) + 5e-324

    def _forward(self, epsilon: Floats, reverse: bool) -> tuple[Floats, Floats]:
        """rate H(1 + (e^eps - 1)/rate)."""
        inner, move = self._inner(epsilon)
        lower, upper = self.base.profile_near(inner, move, reverse=reverse)
        return self._scaled(lower, up=False), self._scaled(upper, up=True)

    def _backward(self, epsilon: Floats, reverse: bool) -> tuple[Floats, Floats]:
        """(1 - k (1 - rate)) H(k rate/(1 - k (1 - rate))), 0 where the factor is not positive.

        With z = (1 - rate)(k - 1)/rate the factor is rate (1 - z) and the inner epsilon is eps - log(1 - z); rounding
        moves z by at most `slip`, and both ends are evaluated.
        """
        lower, upper = np.zeros_like(epsilon), np.zeros_like(epsilon)
        with np.errstate(over="ignore", invalid="ignore"):
            z = (1 - self.rate) * np.expm1(epsilon) / self.rate
            slip = ROUNDINGS_16 * z
            inside, sure = z - slip < 1, z + slip < 1
        near = np.minimum(z[inside] - slip[inside], 1.0)
        at = (epsilon[inside] - np.log1p(-near)) * (1 - ROUNDINGS_16)
        upper[inside] = self._scaled(self.base.profile(at, reverse=reverse)[1], np.minimum(1 - near, 1.0), up=True)
        far = z[sure] + slip[sure]
        at = (epsilon[sure] - np.log1p(-far)) * (1 + ROUNDINGS_16)
        lower[sure] = self._scaled(self.base.profile(at, reverse=reverse)[0], 1 - far, up=False)
        return lower, upper

    def _scaled(self, value: Floats, factor: Floats | float = 1.0, *, up: bool) -> Floats:
        """rate times a factor times a bound, rounded outward, also where it underflows."""
        with np.errstate(under="ignore"):
            product = self.rate * factor * value
            if up:
                return np.where(value > 0, np.minimum(product * (1 + ROUNDINGS_8) + 5e-324, 1.0), 0.0)
            return np.maximum(product * (1 - ROUNDINGS_8) - 5e-324, 0.0)

    def epsilon(self, delta: float) -> Bracket:
        """At delta = 0 by the base's: the largest loss L becomes log(1 + rate (e^L - 1))."""
        if probability("delta", delta) or not 0 < self.rate < 1:
            return super().epsilon(delta)
        base = self.base.epsilon(0.0)
        known = self.base.symmetric and base.lower < _EXP_LIMIT
        lower = _log_mix(base.lower, self.rate) * BELOW_16 if known else 0.0
        return Bracket(lower, _log_mix(base.upper, self.rate) * ABOVE_16 if base.upper < math.inf else math.inf)

    def tabulated(self, accuracy: float) -> Loss:
        """Sampling of a table: the base is asked at the same points for both directions and every grid."""
        base = self.base.tabulated(accuracy)
        return self if base is self.base else replace(self, base=base)

    def pieces(self) -> Pieces:
        """What the base has on top stays: a sampler errs in every run. Bare guarantees fail with less probability.

        A mixture over samples of laws that are within a total variation, a slip or a failure of others is within the
        same of their mixture. Of a bare guarantee that fails with probability d, a sample of rate q fails with
        probability q d: with H0 the profile of the sampled randomised response: q d + (1 - q d) H0 is at least the
        sampled profile for every k, in both directions (for k < 1 by H0(k) >= 1 - k), and q d + (1 - d) H0 at most it
        for k >= 1.
        """
        if self.base.lost:  # of a release without noise a sample tells all, or nothing
            nothing = GaussianLoss(0.0, adjacency=self.adjacency)
            return Pieces(((nothing, 1),), certain=min(self.rate * ABOVE_2, 1.0), spoilt=1.0)
        if not isinstance(self.base, BareLoss) or not self.base.failure or not self.rate:
            base = self.base.pieces()
            if not self.rate or base.log_ratio or base.certain or len(base.parts) > 1 or base.parts[0][1] > 1:
                return Pieces(((self, 1),))
            return replace(base, parts=((replace(self, base=base.parts[0][0]), 1),))
        clean, failed = replace(self, base=replace(self.base, failure=0.0)), self.rate * self.base.failure * ABOVE_2
        if not self.base.attained:  # nothing is shown by a failure that may never happen
            return Pieces(((clean, 1),), failure=failed)
        return Pieces(((clean, 1),), certain=failed, spoilt=self.base.failure)

    def renyi(self, alpha: float) -> Bracket:
        """Gaussian base, Poisson: the divergence of the mixture, an upper bound on both directions.

        It rises with mu: the lower end is that of the least mu known.
        """
        from shapedp.accounting.renyi import subsampled_gaussian_renyi

        if self.rate == 1:
            return self.base.renyi(alpha)
        if self.rate == 0 or self.base.pure == 0:
            return Bracket(0.0, 0.0)
        if isinstance(self.base, GaussianLoss) and self.scheme == "poisson":
            found, least = subsampled_gaussian_renyi(self.base.mu, self.rate, alpha), self.base.least
            if least is None or least == self.base.mu:
                return found
            lower = subsampled_gaussian_renyi(least, self.rate, alpha).lower if least else 0.0
            return Bracket(min(lower, found.upper), found.upper)
        raise ValueError(
            "Renyi curves of subsampled losses are known here for Gaussian noise and Poisson sampling only"
        )


@dataclass(frozen=True)
class _Pair(Loss):
    """The Poisson pair of a sample, whatever its scheme."""

    sample: SubsampledLoss
    symmetric = False

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        return self.sample._person_in_p(epsilon, reverse)


def subsample(
    item: Any,
    rate: float,
    scheme: Scheme = "poisson",
    *,
    adjacency: str | None = None,
    person: Literal["P", "Q"] | None = None,
) -> Loss:
    """The loss of a mechanism (or a loss) run on a random sample of the data.

    `adjacency` is needed for a bare loss, and is read from a mechanism's sensitivity: Poisson sampling is analysed
    under "add-remove" (or "zero-out"), sampling without replacement under "replace"; anything else is refused.

    Guarantee: as `SubsampledLoss`. A `BareLoss` under Poisson sampling keeps the generic rule's epsilon and delta.

    Example:
        >>> round(subsample(GaussianLoss(1.0), 0.1, adjacency="add-remove").epsilon(1e-6).upper, 2)
        2.18
    """
    rate = share("rate", rate)
    one_of("scheme", scheme, SCHEMES)
    if adjacency is not None:
        one_of("adjacency", adjacency, ADJACENCIES)
    loss, own = loss_from(item), adjacency_of(item)
    if own is not None and adjacency is not None and own != adjacency:
        raise ValueError(f"adjacency {adjacency!r} was asked for, but the mechanism was derived under {own!r}")
    relation = own or adjacency
    if relation is None and not isinstance(item, Loss):
        raise ValueError(
            "the mechanism's sensitivity names no adjacency, and amplification depends on it: "
            "derive it with adjacency='add-remove' (Poisson) or 'replace' (without replacement)"
        )
    return SubsampledLoss(loss, rate, scheme, person, adjacency=relation)


def amplify(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """(log(1 + rate (e^epsilon - 1)), rate delta), rounded up: what Poisson sampling makes of any (epsilon, delta).

    Reference: Balle, Barthe and Gaboardi 2018, Theorem 8; He et al. 2024 (product noise), Theorem 2.

    Example:
        >>> tuple(round(value, 9) for value in amplify(1.0, 1e-6, 0.1))
        (0.158565079, 1e-07)
    """
    epsilon, delta, rate = nonnegative("epsilon", epsilon), probability("delta", delta), share("rate", rate)
    return _log_mix(epsilon, rate) * ABOVE_16, delta * rate * ABOVE_2


def _log_mix(epsilon: float, rate: float) -> float:
    """log(1 + rate (e^epsilon - 1)), without overflow."""
    if epsilon > _EXP_LIMIT:
        return epsilon + math.log(rate) if rate > 1e-200 else epsilon
    return math.log1p(rate * math.expm1(epsilon))


def amplify_pure(epsilon: float, rate: float) -> BareLoss:
    """What a pure guarantee becomes when each entry is blanked with probability 1 - rate, both data sets alike.

    epsilon' = log(1 + rate (e^epsilon - 1)) - log(1 - rate (1 - e^-epsilon)), rounded up, and at most epsilon; nothing
    is known from below.
    Reference: Beimel, Kasiviswanathan and Nissim 2010, Lemma 2 (tensor supplement, Theorem D.2), solved for epsilon'.

    Example:
        >>> round(amplify_pure(1.0, 0.1).pure_epsilon, 3)
        0.224
    """
    epsilon, rate = nonnegative("epsilon", epsilon), share("rate", rate)
    if rate == 1:
        return BareLoss(epsilon, attained=False)
    value = _log_mix(epsilon, rate) - math.log1p(rate * math.expm1(-epsilon))
    return BareLoss(min(value * ABOVE_32, epsilon), attained=False)
