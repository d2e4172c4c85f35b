"""Membership inference: was a record among those a model was trained on?

An attack trains models through a function of its user's, `train(indices) -> log-probabilities (n, classes)` of all n
records under a model that saw the records `indices` only. Nothing here needs a deep-learning library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from shapedp.audit.bounds import lower_bound, upper_bound
from shapedp.audit.learned import logistic
from shapedp.audit.result import Result
from shapedp.boundary.values import boolean
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, finite, numeric, probability

Mask = NDArray[np.bool_]
Train = Callable[[NDArray[np.int64]], ArrayLike]
RATES = (0.001, 0.01, 0.1)
_SHADOWS = 10_000
_RIDGE = 1e-3
_FLOOR = 1e-6  # of the spread of a record's confidence over shadow models


@dataclass(frozen=True)
class Power:
    """The share of members found at a threshold that wrongly names at most `rate` of the others, with its interval."""

    rate: float
    found: float
    lower: float
    upper: float


@dataclass(frozen=True)
class MembershipResult(Result, kind="membership", stated="tailored_auc"):
    """How well scores tell members from others.

    `auc` lies in (`lower`, `upper`) with probability about `confidence` (DeLong's variance, normal limit; the model
    is fixed, the records are drawn). `powers` are exact intervals for the thresholds the others' scores set.

    Examples
    --------
    >>> from shapedp.audit import MembershipResult
    >>> found = MembershipResult(
    ...     auc=0.501, lower=0.49, upper=0.512, confidence=0.95, members=500, others=500, powers=(), attack="scores"
    ... )
    >>> found.found_nothing()
    True
    """

    auc: float
    lower: float
    upper: float
    confidence: float
    members: int
    others: int
    powers: tuple[Power, ...]
    attack: str

    @property
    def tailored_auc(self) -> float:
        """max(AUC, 1/2). Reference: product-noise paper, section 6.3.2 and table 4."""
        return max(self.auc, 0.5)

    def found_nothing(self, within: float = 0.02) -> bool:
        """Whether the interval lies in [1/2 - within, 1/2 + within]; a wider one has not looked closely enough."""
        return self.lower >= 0.5 - within and self.upper <= 0.5 + within

    def explain(self) -> str:
        """The finding in one line."""
        powers = ", ".join(f"{p.found:.4g} of the members at a false-positive rate of {p.rate:g}" for p in self.powers)
        return (
            f"{self.attack}: AUC {self.auc:.4f} in [{self.lower:.4f}, {self.upper:.4f}] ({self.confidence:g}), from "
            f"{self.members} members and {self.others} others; {powers}"
        )


def membership(
    members: ArrayLike,
    others: ArrayLike,
    *,
    confidence: float = 0.95,
    rates: Sequence[float] = RATES,
    attack: str = "scores",
) -> MembershipResult:
    """Judge scores: higher means "member". Ties count half.

    A threshold for rate r is the smallest score that at most a share r of the others reaches.
    Reference: DeLong, DeLong and Clarke-Pearson 1988; Clopper and Pearson 1934.
    """
    inside, outside = (_scores(name, values) for name, values in (("members", members), ("others", others)))
    level = probability("confidence", confidence)
    m, n = inside.size, outside.size
    within = stats.rankdata(inside), stats.rankdata(outside)
    joint = stats.rankdata(np.concatenate([inside, outside]))
    above = (joint[:m] - within[0]) / n  # the share of others below each member
    below = 1 - (joint[m:] - within[1]) / m
    auc = float(above.mean())
    spread = math.sqrt(float(above.var(ddof=1)) / m + float(below.var(ddof=1)) / n)
    width = float(special.ndtri(0.5 + level / 2)) * max(spread, 1 / (2 * math.sqrt(m * n)))
    powers = tuple(_power(inside, outside, probability("rates", rate), (1 - level) / 2) for rate in rates)
    return MembershipResult(auc, max(auc - width, 0.0), min(auc + width, 1.0), level, m, n, powers, attack)


def _power(inside: Floats, outside: Floats, rate: float, alpha: float) -> Power:
    allowed = math.floor(rate * outside.size)
    ordered = np.sort(outside)[::-1]
    cut = ordered[allowed] if allowed < outside.size else -math.inf
    hits = int((inside > cut).sum())
    low, high = float(lower_bound(hits, inside.size, alpha)), float(upper_bound(hits, inside.size, alpha))
    return Power(rate, hits / inside.size, low, high)


def shadow_attack(
    train: Train,
    labels: ArrayLike,
    *,
    shadows: int = 4,
    rng: np.random.Generator,
    confidence: float = 0.95,
    rates: Sequence[float] = RATES,
) -> MembershipResult:
    """Black-box attack: shadow models teach a classifier what a member's prediction looks like.

    The target and each shadow are trained on random halves of the records. The classifier (logistic regression)
    sees the loss, the three largest log-probabilities, and whether the label was predicted.

    Parameters
    ----------
    train : from indices of records to log-probabilities (n, classes) of all n records, by a model that saw those only.
    labels : of all records.
    shadows : the number of shadow models.
    rng : of the halves.
    confidence, rates : of the intervals, and the false-positive rates at which members are counted.

    Returns
    -------
    A `MembershipResult`.

    Examples
    --------
    >>> import numpy as np, shapedp as sdp
    >>> labels = np.arange(40) % 2
    >>> def train(seen):  # a model that learns by heart
    ...     p = np.full((40, 2), 0.5)
    ...     p[seen, labels[seen]], p[seen, 1 - labels[seen]] = 0.9, 0.1
    ...     return np.log(p)
    >>> sdp.audit.shadow_attack(train, labels, shadows=2, rng=np.random.default_rng(0)).auc
    1.0

    Reference: Shokri, Stronati, Song and Shmatikov 2017; Salem et al. 2019.
    """
    y = _labels(labels)
    seen, features = [], []
    for _ in range(count("shadows", shadows, most=_SHADOWS)):
        seen.append(_half(y.size, rng))
        features.append(_features(_outputs(train, seen[-1]), y))
    x = np.concatenate(features)
    centre, spread = x.mean(0), x.std(0) + 1e-12
    weights = logistic((x - centre) / spread, np.concatenate(seen).astype(np.float64), np.full(x.shape[1], _RIDGE))
    inside = _half(y.size, rng)
    scores = (_features(_outputs(train, inside), y) - centre) / spread @ weights
    name = f"{shadows} shadow models"
    return membership(scores[inside], scores[~inside], confidence=confidence, rates=rates, attack=name)


def likelihood_ratio_attack(
    train: Train,
    labels: ArrayLike,
    *,
    shadows: int = 16,
    offline: bool = False,
    rng: np.random.Generator,
    confidence: float = 0.95,
    rates: Sequence[float] = RATES,
) -> MembershipResult:
    """LiRA: per record, how likely the target's confidence is under shadow models with and without it.

    Confidences log p/(1 - p) of the label are taken as normal over shadow models, with one spread for all records
    on each side. Each record is in exactly half of the shadows, which come in complementary pairs.

    Parameters
    ----------
    train, labels, shadows, rng, confidence, rates : as in `shadow_attack`; the number of shadow models is even.
    offline : whether only shadow models without the record are used.

    Returns
    -------
    How well the ratios tell members from others.

    Examples
    --------
    >>> import numpy as np
    >>> from shapedp.audit import likelihood_ratio_attack
    >>> guessing = lambda seen: np.log(np.full((8, 2), 0.5))  # a model that learns nothing
    >>> likelihood_ratio_attack(guessing, [0, 1] * 4, shadows=4, rng=np.random.default_rng(0)).auc
    0.5

    Reference: Carlini et al. 2022, Membership inference attacks from first principles, Algorithm 1 and section VI.
    """
    offline = boolean("offline", offline)
    y = _labels(labels)
    n = y.size
    if count("shadows", shadows, least=4, most=_SHADOWS) % 2:
        raise ValueError(f"shadows must be even, got {shadows}: they come in complementary pairs")
    confidences, seen = [], []
    for _ in range(shadows // 2):
        chosen = _half(n, rng)
        for part in (chosen, ~chosen):
            confidences.append(_confidences(_outputs(train, part), y))
            seen.append(part)
    table, inside = np.stack(confidences), np.stack(seen)
    member = _half(n, rng)
    target = _confidences(_outputs(train, member), y)
    means, spreads = [], []
    for mask in (inside, ~inside):
        mean = np.where(mask, table, 0.0).sum(0) / (shadows // 2)
        left = np.where(mask, table - mean, 0.0)
        means.append(mean)
        spreads.append(max(math.sqrt(float(np.square(left).sum()) / (n * (shadows // 2 - 1))), _FLOOR))
    within, without = ((target - mean) / spread for mean, spread in zip(means, spreads, strict=True))
    scores = without if offline else (np.square(without) - np.square(within)) / 2
    name = f"likelihood ratio, {shadows} shadow models{', offline' if offline else ''}"
    return membership(scores[member], scores[~member], confidence=confidence, rates=rates, attack=name)


def epsilon_bound(with_record: ArrayLike, without: ArrayLike, *, delta: float, confidence: float) -> float:
    """A lower bound on epsilon from scores of independent runs with and without a record; higher means "with".

    The first half of each chooses thresholds for the two tests (score above, score below), the second half counts.

    Parameters
    ----------
    with_record, without : the scores.
    delta : where epsilon is bounded.
    confidence : of the bound.

    Returns
    -------
    The bound, 0 where nothing was seen.

    Examples
    --------
    >>> import numpy as np, shapedp as sdp
    >>> scores = np.linspace(0.0, 1.0, 200)
    >>> sdp.audit.epsilon_bound(scores + 2.0, scores, delta=1e-3, confidence=0.95) > 2.5
    True

    Guarantee: exceeds the epsilon of an (epsilon, delta)-DP procedure with probability at most 1 - confidence.
    Reference: Clopper and Pearson 1934; Nasr et al. 2021, Adversary instantiation.
    """
    delta, alpha = probability("delta", delta), (1 - probability("confidence", confidence)) / 4
    one, nought = (_scores(name, v) for name, v in (("with_record", with_record), ("without", without)))
    best = 0.0
    for p, q in ((one, nought), (-nought, -one)):
        cut = _threshold(p[: p.size // 2], q[: q.size // 2], delta, alpha)
        hits, alarms = (v[v.size // 2 :] for v in (p, q))
        seen = float(lower_bound(int((hits >= cut).sum()), hits.size, alpha)) - delta
        mistaken = float(upper_bound(int((alarms >= cut).sum()), alarms.size, alpha))
        if seen > mistaken:
            best = max(best, math.log(seen / mistaken))
    return best


def _threshold(hits: Floats, alarms: Floats, delta: float, alpha: float) -> float:
    cuts = np.quantile(np.concatenate([hits, alarms]), np.linspace(0, 1, 201))
    seen = lower_bound((hits[:, None] >= cuts).sum(0), hits.size, alpha) - delta
    mistaken = upper_bound((alarms[:, None] >= cuts).sum(0), alarms.size, alpha)
    with np.errstate(divide="ignore"):
        return float(cuts[int(np.argmax(np.log(np.maximum(seen, 1e-300)) - np.log(mistaken)))])


def _scores(name: str, values: ArrayLike) -> Floats:
    found = finite(name, values)
    if found.ndim != 1 or found.size < 2:
        raise ValueError(f"{name} must hold at least two scores in one row, got shape {found.shape}")
    return found


def _labels(labels: ArrayLike) -> NDArray[np.int64]:
    y = numeric("labels", labels)
    if y.ndim != 1 or y.size < 8 or not np.issubdtype(y.dtype, np.integer) or y.min() < 0:
        raise ValueError("labels must be whole numbers from 0, one for each of at least 8 records")
    return y.astype(np.int64)


def _half(n: int, rng: np.random.Generator) -> Mask:
    """A random half of the records."""
    return np.isin(np.arange(n), rng.permutation(n)[: n // 2])


def _outputs(train: Train, chosen: Mask) -> Floats:
    table = finite("log-probabilities", train(np.flatnonzero(chosen)))
    if table.ndim != 2 or len(table) != chosen.size or table.shape[1] < 2 or table.max() > 1e-6:
        raise ValueError(f"train must return log-probabilities of shape ({chosen.size}, classes), got {table.shape}")
    return table


def _confidences(table: Floats, y: NDArray[np.int64]) -> Floats:
    """log p - log(1 - p) of the label; 1 - p is summed over the other classes, which loses nothing near p = 1."""
    others, own = table.copy(), (np.arange(y.size), y)
    others[own] = -np.inf
    return np.asarray(table[own] - special.logsumexp(others, axis=1))


def _features(table: Floats, y: NDArray[np.int64]) -> Floats:
    top = np.sort(table, axis=1)[:, ::-1][:, :3]
    loss = -table[np.arange(y.size), y]
    right = (table.argmax(1) == y).astype(np.float64)
    return np.column_stack([np.minimum(loss, 30.0), np.maximum(top, -30.0), right])
