"""The privacy loss of spherical noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapedp.boundary.values import plain
from shapedp.numerics import SearchError, last_true_near
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, nonnegative, positive, probability
from shapedp.numerics.excess import ShiftExcess
from shapedp.numerics.excess_guide import SLOPE, ShiftGuide
from shapedp.numerics.gammatail import deviance, log_peak, log_radii
from shapedp.numerics.outward import ABOVE_8, BELOW_16, BELOW_8192
from shapedp.numerics.quadrature import legendre
from shapedp.numerics.roots import increasing_root
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import EPSILON_LIMIT, Loss, Pieces, renyi_order, with_sampler_error
from shapedp.privacy.losses.gaussian import GaussianLoss

GAP = 1e-7
_RENYI_CELLS = 1500
_MOMENT_CELLS = 2081
_FAR = 1e5  # beyond this epsilon the upper end of delta is taken here, where it can be computed


@dataclass(frozen=True)
class RadialLoss(Loss):
    """The loss of the density r^(a-dim) exp(-(r/s)^b) on R^dim against its shift by `ratio` times s.

    Symmetric: the reflection x -> -x - v exchanges the pair.

    Guarantee: the bracket holds delta(eps) of every shift of length up to `ratio`, at every real eps, within a
    relative `gap` wherever delta >= 1e-12 allows it. The full shift dominates all shorter ones: with g decreasing
    (a <= dim), 1 - delta = integral of min(g(|x|), e^eps g(|x + v|)) = integral over u of the volume of
    B(0, r_u) and B(-v, r'_u) in common, which never grows with |v|. For a > dim this fails (dim 2, a 100, s 1,
    eps 0.5: delta 0.912 at |v| = 10 but 0.869 at 13), and such shapes are refused.
    Reference: product noise, section 4 (its Theorem 1 drops the volume factor); `numerics.excess` has the integral.

    Parameters: `dim`, `a` and `b` of the density, `ratio` of the shift to s, and `gap`.

    Example:
        >>> round(RadialLoss(3, 3.0, 1.0, 0.5).pure, 9)  # density exp(-r): pure differential privacy
        0.5
    """

    dim: int
    a: float
    b: float
    ratio: float
    gap: float = GAP
    slow = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in zip(("dim", "a", "b"), _shape(self.dim, self.a, self.b), strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "gap", positive("gap", self.gap))
        object.__setattr__(self, "ratio", nonnegative("ratio", self.ratio))

    @cached_property
    def _excess(self) -> ShiftExcess:
        return ShiftExcess(self.dim, self.a, self.b, self.ratio)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        return self.profile_within(epsilon, np.zeros_like(epsilon), None)

    def profile_within(
        self, epsilon: Floats, gap: Floats, guess: Floats | None, *, reverse: bool = False
    ) -> tuple[Floats, Floats]:
        if self.ratio == 0:
            return np.zeros_like(epsilon), np.zeros_like(epsilon)
        lower, upper = self._excess.bounds(np.minimum(epsilon, _FAR), np.maximum(gap, self.gap), guess=guess)
        return np.where(epsilon > _FAR, 0.0, lower * BELOW_8192), upper

    @property
    def pure(self) -> float:  # type: ignore[override]
        """The epsilon of pure differential privacy: ratio^b if a = dim and b <= 1, otherwise infinite.

        For a < dim the density has a pole, for b > 1 its log is not Lipschitz.
        """
        return self.ratio**self.b * ABOVE_8 if self.a == self.dim and self.b <= 1 else math.inf

    def epsilon(self, delta: float) -> Bracket:
        """The least epsilon for which (epsilon, delta)-DP holds; `upper` meets the delta asked for."""
        target = probability("delta", delta)
        if target == 0:
            exact = min(self.pure * BELOW_16, EPSILON_LIMIT)  # `pure` is rounded up
            return Bracket(exact if math.isfinite(self.pure) else math.inf, self.pure)
        if self.delta(0.0).upper <= target:
            return Bracket(0.0, 0.0)

        def gap(log_epsilon: float) -> float:
            return math.log(target) - math.log(max(self.delta(math.exp(log_epsilon)).upper, 1e-300))

        try:
            guess = math.exp(increasing_root(gap, 0.0))
        except (SearchError, OverflowError):  # below what the bounds on delta resolve
            return super().epsilon(delta)
        high, low, step = guess, guess, 2.0**-36
        while self.delta(high).upper > target:
            high, step = guess * (1 + step), 4 * step
        step = 2.0**-36
        while low > 0 and not self.delta(low).lower > target:
            low, step = max(guess * (1 - step), 0.0), 4 * step
        return Bracket(low, high)

    def renyi(self, alpha: float) -> Bracket:
        """The Renyi divergence of order alpha; finite exactly if alpha (dim - a) < dim.

        (alpha - 1) D = log(1 + alpha (alpha - 1) I), I = integral over e >= 0 of (k^(alpha-1) + k^-alpha) delta(e),
        k = e^e. delta is convex in k: chords bound it from above, their extensions from below. Beyond the grid
        delta(e) <= k^(1-beta) E[k^(beta-1)] with an order beta > alpha.
        Reference: Liese and Vajda 2006, Theorem 11 (divergences as integrals of hockey sticks).
        """
        alpha, slack = renyi_order(alpha), self.dim - self.a
        if alpha * slack >= self.dim:
            return Bracket(math.inf, math.inf)
        if self.ratio == 0:
            return Bracket(0.0, 0.0)
        most = math.inf if slack == 0 else (self.dim / slack - alpha) / 2
        orders = alpha + np.unique(np.minimum(alpha * np.geomspace(1 / 16, 1e6, 25), most))
        moments = np.array([self._log_moment_upper(beta) for beta in orders])
        end = min(self.pure, max(float(np.min((moments + 40) / (orders - alpha))), 1e-6), 1e4)
        grid = np.concatenate([[0.0], np.geomspace(end * 1e-5, end, _RENYI_CELLS)])
        lower, upper = self.profile(grid)
        keep = max(int(np.count_nonzero(upper > 1e-250)) + 1, 3)
        grid, lower, upper = grid[:keep], lower[:keep], upper[:keep]
        end = float(grid[-1])
        tail = math.log(2) + float(np.min(moments - (orders - alpha) * end - np.log(orders - alpha)))
        nodes, weights = legendre(8)
        half = 0.5 * np.diff(grid)[:, None]
        e = 0.5 * (grid[1:] + grid[:-1])[:, None] + half * nodes
        log_kernel = np.log(half * weights) + np.logaddexp((alpha - 1) * e, -alpha * e)
        share = np.expm1(e - grid[:-1, None]) / np.expm1(2 * half)
        chord = (1 - share) * upper[:-1, None] + share * upper[1:, None]
        fall = np.append((upper[2:] - lower[1:-1]) / np.expm1(np.diff(grid)[1:]), 0.0)[:, None]
        below = np.maximum(lower[1:, None] + fall * np.expm1(e - grid[1:, None]), lower[1:, None])
        with np.errstate(divide="ignore"):
            low, high = (float(np.logaddexp.reduce((np.log(f) + log_kernel).ravel())) for f in (below, chord))
        high = high if end >= self.pure else float(np.logaddexp(high, tail))
        factor, slack_of = math.log(alpha * (alpha - 1)), 1e-12 * (1 + alpha * end)
        low = float(np.logaddexp(0.0, factor + low - slack_of))
        high = min(float(np.logaddexp(0.0, factor + high + slack_of)), self._log_moment_upper(alpha))
        return Bracket(max(low - 1e-15, 0.0) / (alpha - 1), max(high, low) * ABOVE_8 / (alpha - 1))

    def _log_moment_upper(self, beta: float) -> float:
        """An upper bound on log E[e^((beta-1) L)], perhaps infinite; panels of the radius, the worst of each.

        L <= h(R + shift) - h(R); and with u = r^2, c = the largest slope of h in u between r^2 and (r + shift)^2
        (at r^2 if b <= 2), L <= c (shift^2 + 2 r shift X) where that is positive, X a coordinate of a uniform
        direction (`_log_sphere_moment_upper`). Where it is negative (b > 2) a smaller slope does: twice the bound.
        """
        k, b, slack, d = self.a / self.b, self.b, self.dim - self.a, self.ratio
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            edges = self._moment_edges(beta)
            log_r = (edges + math.log(k)) / b
            gain = np.logaddexp(0.0, math.log(d) - log_r)  # log(1 + shift/r)
            pole, grown = slack * gain, np.exp(b * log_r) * np.expm1(b * np.minimum(gain, 30.0 / b))
            grown = np.where(b * gain > 30, np.exp(b * (log_r + gain)), grown)
            crude = (beta - 1) * (pole[:-1] + np.maximum(grown[1:], grown[:-1]))
            r, far = np.exp(log_r), np.exp(log_r) + (d if b > 2 else 0.0)
            power, moved = far ** (b - 2), r * far ** (b - 2)
            slope = slack / (2 * r[:-1] ** 2) + b / 2 * np.maximum(power[1:], power[:-1])
            turn = slack / r[:-1] + b * np.maximum(moved[1:], moved[:-1])
            fine = (beta - 1) * slope * d * d + _log_sphere_moment_upper(self.dim, (beta - 1) * d * turn)
            fine = fine + (math.log(2) if b > 2 else 0.0)
            log_f = log_peak(k) - k * deviance(edges)
            cells = np.fmin(crude, fine) + np.maximum(log_f[1:], log_f[:-1]) + np.log(np.diff(edges))
            rate = -k * math.expm1(edges[0]) - (beta - 1) * slack / b
            left = (beta - 1) * (pole[0] + max(float(grown[0]), d**b if b < 1 else 0.0)) + log_f[0] - np.log(rate)
            push = math.exp((b - 1) * float(gain[-1])) - 1 if b > 1 else 0.0
            rate = k * (math.exp(edges[-1]) * (1 - (beta - 1) * push) - 1)
            right = (beta - 1) * (pole[-1] + grown[-1]) + log_f[-1] - np.log(rate)
            total = float(np.logaddexp.reduce(np.append(cells, [left, right])))
        return math.inf if math.isnan(total) else total + 1e-9 * (1 + abs(total))

    def _moment_edges(self, beta: float) -> Floats:
        """Panels of the log-radius out to where its density beats the largest loss of `_log_moment_upper`."""
        k, b, d = self.a / self.b, self.b, self.ratio
        gain = math.log1p(d * math.exp(-math.log(k) / b))
        most = (beta - 1) * ((self.dim - self.a) * gain + k * math.expm1(min(b * gain, 600.0)))
        reach = right = max(4 * math.sqrt(most), 30.0)
        if b > 1:  # beyond r the loss grows by less than half of what its density falls
            r = d / math.expm1(math.log1p(0.5 / (beta - 1)) / (b - 1))
            right = max(right, 2 * math.sqrt(k * float(deviance(np.array([b * math.log(r) - math.log(k)]))[0])))
        near = np.linspace(0, 26, _MOMENT_CELLS)
        sides = [np.concatenate([near, np.geomspace(26, min(far, 1e8), 801)[1:]]) for far in (reach, right)]
        return log_radii(k, np.concatenate([-sides[0][:0:-1], sides[1]]))

    @classmethod
    def calibrate(cls, dim: int, a: float, b: float, epsilon: float, delta: float) -> RadialLoss:
        """The largest ratio that meets (epsilon, delta), on the private side.

        Guarantee: `calibrate(...).delta(epsilon).upper <= delta`. delta grows with the ratio.
        """
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
        a, b = positive("a", a), positive("b", b)
        if delta == 0 and (a != dim or b > 1):
            raise ValueError("delta = 0 needs a = dim and b <= 1 (such as the multivariate Laplace law, b = 1)")

        def holds(ratio: float) -> bool:
            return cls(dim, a, b, ratio).delta(epsilon).upper <= delta

        with _within_floats(b):
            if delta == 0:
                return cls(dim, a, b, epsilon ** (1 / b) * BELOW_8192)
            guess = cls.approximate(dim, a, b, epsilon, delta)
            return cls(dim, a, b, last_true_near(holds, guess, relative=2.0**-33))

    @classmethod
    def approximate(
        cls,
        dim: int,
        a: float,
        b: float,
        epsilon: float,
        delta: float,
        *,
        start: float | None = None,
        gap: float = 1e-8,
        tolerance: float = 1e-11,
    ) -> float:
        """The ratio at which delta(epsilon) = delta, to a relative tolerance; certifies nothing."""
        dim, a, b = _shape(dim, a, b)
        epsilon, delta = positive("epsilon", epsilon), positive("delta", delta)
        at, gap = np.array([epsilon]), positive("gap", gap)

        def above(log_ratio: float) -> float:
            ends = ShiftExcess(dim, a, b, math.exp(log_ratio)).bounds(at, gap, gap * delta)
            return math.log(max(float(ends[1][0]), 1e-3 * delta)) - math.log(delta)

        with _within_floats(b):
            try:
                first, slope = cls.estimated(dim, a, b, epsilon, delta, start=start)
            except SearchError:  # where the fixed rule sees nothing, such as in very heavy tails
                first, slope = _typical(dim, a, b, epsilon, delta) if start is None else math.log(start), SLOPE
            return math.exp(increasing_root(above, first, tolerance, slope))

    @classmethod
    def estimated(
        cls,
        dim: int,
        a: float,
        b: float,
        epsilon: float,
        delta: float,
        *,
        start: float | None = None,
        slope: float = SLOPE,
    ) -> tuple[float, float]:
        """About the log of the ratio at which delta(epsilon) = delta, and d log delta/d log ratio there.

        By a fixed rule: quick, and nothing is known of its error. `start` is a ratio to begin with.
        """
        dim, a, b = _shape(dim, a, b)
        epsilon, delta, slope = positive("epsilon", epsilon), positive("delta", delta), positive("slope", slope)
        with _within_floats(b):
            first = _typical(dim, a, b, epsilon, delta) if start is None else math.log(positive("start", start))
            return ShiftGuide(dim, a, b, epsilon, delta).root(delta, first, slope)


@contextmanager
def _within_floats(b: float) -> Iterator[None]:
    """What leaves the range of floats is refused in words."""
    try:
        yield
    except OverflowError:
        raise ValueError(f"b={b!r} does not fit this claim: radii leave the range of floats") from None


def _shape(dim: int, a: float, b: float) -> tuple[int, float, float]:
    """A checked dimension and shape."""
    dim, a, b = count("dim", dim, least=2), positive("a", a), positive("b", b)
    if a > dim:
        raise ValueError(
            f"a must be at most dim = {dim}, got {a!r}: the density would rise away from 0, "
            "and a shorter shift could be worse than the longest"
        )
    return dim, a, b


def _log_sphere_moment_upper(dim: int, t: Floats) -> Floats:
    """An upper bound on log E e^(t X), t >= 0, X a coordinate of a uniform direction of R^dim.

    At most t^2/(2 dim), term by term; and its derivative, a ratio of Bessel functions, is at most
    t/(c + sqrt(t^2 + c^2)), c = (dim - 1)/2. Reference: Amos 1974, Computation of modified Bessel functions.
    """
    c = (dim - 1) / 2
    root = np.hypot(t, c)
    return np.fmin(np.square(t) / (2 * dim), root - c - c * np.log((c + root) / (2 * c)))


def _typical(dim: int, a: float, b: float, epsilon: float, delta: float) -> float:
    """log of the ratio at which a coordinate has the rms of the Gaussian that meets the claim."""
    mu = GaussianLoss.calibrate(epsilon, delta).mu
    alike = math.log(mu) + math.log(a / b) / b - 0.5 * math.log(dim)
    return max(alike, math.log(epsilon) / b) if b < 1.5 and dim - a < 0.1 * dim else alike


@dataclass(frozen=True)
class ReleasedRadialLoss(Loss):
    """What a float release of radial noise is worth: `base`, and what rounding may cost on top.

    Guarantee: delta(e) <= e^slip base(e - 2 slip) + (1 + e^e) missed, as the released noise and a smoothed radial
    law are within e^slip of each other outside probability `missed`; smoothing only helps. `slip` is 38 mu for a
    Gaussian distance mu, so that over several releases its squares add up (`accounting.compose`). The lower end is
    that of the radial law itself, the law that was claimed about.
    """

    base: RadialLoss
    slip: float = 0.0
    missed: float = 0.0
    slow = True

    def __post_init__(self) -> None:
        plain(self)
        self._inherit([self.base])

    @property
    def pure(self) -> float:  # type: ignore[override]
        return self.pieces().pure

    def pieces(self) -> Pieces:
        return self.base.pieces().adjusted(total_variation=self.missed, slip=self.slip)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        lower, _ = self.base.profile(epsilon)

        def slipped(points: Floats) -> Floats:
            return self.base.hockey_stick(points - 2 * self.slip)[1] * (math.exp(self.slip) * ABOVE_8)

        upper = with_sampler_error(slipped, epsilon, self.missed) if self.missed else slipped(epsilon)
        return lower, np.clip(upper, lower, 1.0)

    def renyi(self, alpha: float) -> Bracket:
        if self.slip or self.missed:
            raise ValueError(
                "a float release of radial noise has no finite Renyi divergence: ask its `base` for the law's"
            )
        return self.base.renyi(alpha)
