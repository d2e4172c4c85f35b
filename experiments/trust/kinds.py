"""Parts of a composition: an object of the library beside the laws its answers must agree with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

import shapedp as sdp
from laws import (
    Atoms,
    Ball,
    ChiSquare,
    Laplacian,
    Law,
    Moved,
    Normal,
    Sampled,
    Slow,
    many_answers,
    response,
    staircase,
)
from shapedp.accounting import BareLoss, compose, from_event, from_opendp, subsample
from shapedp.privacy import GaussianLoss, LaplaceLoss, Loss
from shapedp.privacy.losses import MixedLoss, MixingLoss, RadialLoss

Generator = np.random.Generator
Laws = tuple[Law, ...]


@dataclass(frozen=True)
class Item:
    """`build` makes the library's object; upper ends must cover `worst`, lower ends stay below `best`.

    `best` is empty where nothing is known from below. Directions: forward and reverse; None where they agree.
    """

    kind: str
    text: str
    build: Callable[[], Any] = field(repr=False)
    worst: Laws
    best: Laws | None = None
    worst_back: Laws | None = None
    best_back: Laws | None = None
    relation: str | None = None

    def laws(self, upper: bool, back: bool) -> Laws:
        """What the upper (lower) end of one direction is held against."""
        worst = self.worst_back if back and self.worst_back is not None else self.worst
        if upper:
            return worst
        best = self.best_back if back and self.best_back is not None else self.best
        return worst if best is None else best

    @property
    def lopsided(self) -> bool:
        return self.worst_back is not None or self.best_back is not None


class OwnLoss(Loss):
    """A user's own loss: a profile and nothing else."""

    def __init__(self, name: str, scale: float) -> None:
        self.name, self.scale = name, scale

    def profile(self, epsilon: Any, *, reverse: bool = False) -> tuple[Any, Any]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        below = np.minimum(epsilon - self.scale, 0.0)
        value = -np.expm1(below / 2) if self.name == "laplace" else -np.expm1(below) / (1 + math.exp(-self.scale))
        return value * (1 - 2.0**-48), np.where(value > 0, np.minimum(value * (1 + 2.0**-48), 1.0), 0.0)


class OwnTail(Loss):
    """A user's own loss with a slow tail, and perhaps mass at infinity."""

    def __init__(self, height: float, fall: float, infinity: float) -> None:
        self.height, self.fall, self.infinity = height, fall, infinity

    def profile(self, epsilon: Any, *, reverse: bool = False) -> tuple[Any, Any]:
        value = self.infinity + (1 - self.infinity) * self.height * np.exp(-self.fall * epsilon)
        slack = 2.0**-48 * (1 + self.fall * np.minimum(epsilon, 1e3))
        return value * (1 - slack), np.minimum(value * (1 + slack) + 5e-324, 1.0)


class OwnSampled(Loss):
    """A user's own asymmetric loss: randomised response on a Poisson sample."""

    symmetric = False

    def __init__(self, scale: float, rate: float) -> None:
        self.scale, self.rate = scale, rate

    def profile(self, epsilon: Any, *, reverse: bool = False) -> tuple[Any, Any]:
        k = np.exp(np.asarray(epsilon, dtype=np.float64))
        high, q = 1 / (1 + math.exp(-self.scale)), self.rate
        pairs = [(q * high + (1 - q) * (1 - high), 1 - high), (q * (1 - high) + (1 - q) * high, high)]
        gains = [(b - k * a) if reverse else (a - k * b) for a, b in pairs]
        slack = 2.0**-49 * (1 + k * (not reverse))  # each may be above 0 where its rounded value is 0
        lower, upper = (sum(np.maximum(gain + side, 0.0) for gain in gains) for side in (-slack, slack))
        return lower, np.minimum(upper, 1.0)


@lru_cache(maxsize=64)
def mechanism(family: str, epsilon: float) -> Any:
    """A calibrated pure mechanism of one coordinate."""
    return sdp.calibrate(family, sdp.L1(1.0, dim=1, adjacency="add-remove"), epsilon=epsilon, delta=0.0)


def scale(rng: Generator, low: float, high: float) -> float:
    return float(10 ** rng.uniform(low, high))


def _noise(rng: Generator, extreme: bool) -> float:
    return scale(rng, -5, 1.6) if extreme else scale(rng, -2, 0.4)


def _pure(rng: Generator, extreme: bool) -> float:
    return scale(rng, -6, 2.3) if extreme else scale(rng, -2, 0.7)


def gaussian(rng: Generator, extreme: bool) -> Item:
    mu = _noise(rng, extreme)
    return Item("gaussian", f"GaussianLoss({mu!r})", lambda: GaussianLoss(mu), (Normal(mu),))


def laplace(rng: Generator, extreme: bool) -> Item:
    a = _pure(rng, extreme)
    if rng.random() < 0.3:
        return Item("laplace", f"LaplaceLoss({a!r})", lambda: LaplaceLoss(a), (Laplacian(a),), ())
    return Item(
        "laplace",
        f"LaplaceLoss({a!r}, array([{a!r}]), worst=True)",
        lambda: LaplaceLoss(a, np.array([a]), worst=True),
        (Laplacian(a),),
    )


def box(rng: Generator, extreme: bool) -> Item:
    ratios = [_pure(rng, extreme) for _ in range(int(rng.integers(2, 6)))]
    if rng.random() < 0.4:
        ratios = [ratios[0]] * len(ratios)
    total = math.fsum(ratios)
    return Item(
        "laplace box",
        f"LaplaceLoss({total!r}, array({ratios!r}), worst=True)",
        lambda: LaplaceLoss(total * (1 + 2.0**-50), np.array(ratios), worst=True),
        tuple(Laplacian(a) for a in ratios),
    )


def calibrated(rng: Generator, extreme: bool) -> Item:
    family = str(rng.choice(["laplace", "staircase"]))
    a = float(np.round(scale(rng, -2, 0.7), 3 if rng.random() < 0.5 else 1)) or 0.1
    m = mechanism(family, a)
    law: Law
    if family == "laplace":
        law = _weaker(Laplacian(float(m.loss.ratios.max()) * (1 - 1e-6)))
    else:
        law = staircase(float(m.law.epsilons[0]), float(m.law.inner[0] / m.law.width[0]))
    pure = response(a * (1 + 1e-9))
    text = f"calibrate({family!r}, L1(1.0, dim=1), epsilon={a!r}, delta=0.0)"
    return Item(family + " mechanism", text, lambda: m, (law,), (pure,), relation="add-remove")


def _weaker(law: Laplacian) -> Law:
    """Less of the loss than the discrete law has: a thousandth of a per cent is given up."""
    at = np.linspace(-law.a, law.a, 201)
    tails = law.tail(np.append(at[:-1], np.nextafter(law.a, -np.inf))) * (1 - 1e-5)
    masses = np.append(tails[:-1] - tails[1:], tails[-1])
    masses[0] += 1 - masses.sum()
    return Atoms(tuple(at.tolist()), tuple(masses.tolist()))


def mixed(rng: Generator, extreme: bool) -> Item:
    ratios, mu = [scale(rng, -2, 0.5) for _ in range(int(rng.integers(1, 4)))], scale(rng, -2, 0.3)
    laws = (*(Laplacian(a) for a in ratios), Normal(mu))
    return Item("mixed", f"MixedLoss(array({ratios!r}), {mu!r})", lambda: MixedLoss(np.array(ratios), mu), laws)


def radial(rng: Generator, extreme: bool) -> Item:
    ratio = scale(rng, -2, 0.7)
    if rng.random() < 0.5:
        dim = int(rng.integers(2, 30))
        text = f"RadialLoss({dim}, {dim}.0, 2.0, {ratio!r})"
        return Item("radial", text, lambda: RadialLoss(dim, float(dim), 2.0, ratio), (Normal(ratio * math.sqrt(2)),))
    text = f"RadialLoss(3, 3.0, 1.0, {ratio!r})"
    return Item("radial", text, lambda: RadialLoss(3, 3.0, 1.0, ratio), (Ball(ratio),), (response(ratio),))


def mixing(rng: Generator, extreme: bool) -> Item:
    rows, t = int(10 ** rng.uniform(0, 2.5)), scale(rng, -3, -0.3)
    first, second = ChiSquare(rows, t), ChiSquare(rows, t, False)
    if rng.random() < 0.5:
        text = f"MixingLoss({rows}, {t!r})"
        return Item("mixing", text, lambda: MixingLoss(rows, t), (first,), worst_back=(second,), relation="zero-out")
    mu = scale(rng, -2, 0) if rng.random() < 0.5 else 0.0
    laws: Laws = (first, second, Normal(mu)) if mu else (first, second)
    text = f"MixingLoss({rows}, {t!r}, 'replace', {mu!r})"
    return Item("mixing", text, lambda: MixingLoss(rows, t, "replace", mu), laws, relation="replace")


def bare(rng: Generator, extreme: bool) -> Item:
    a = _pure(rng, extreme)
    lost = scale(rng, -12, -3) if rng.random() < 0.4 else 0.0
    if extreme and lost and rng.random() < 0.3:
        lost = scale(rng, -250, -12)
    return Item("bare", f"BareLoss({a!r}, {lost!r})", lambda: BareLoss(a, lost), (response(a, lost),))


def _base(rng: Generator, extreme: bool) -> tuple[str, Callable[[], Loss], Law]:
    """A base pair that mirrors itself, for sampling."""
    which, a = int(rng.integers(4)), _pure(rng, False)
    if extreme:
        a = scale(rng, -3, 1.5)
    if which == 0:
        mu = scale(rng, -1.5, 0.5)
        return f"GaussianLoss({mu!r})", lambda: GaussianLoss(mu), Normal(mu)
    if which == 1:
        text = f"LaplaceLoss({a!r}, array([{a!r}]), worst=True)"
        return text, lambda: LaplaceLoss(a, np.array([a]), worst=True), Laplacian(a)
    lost = scale(rng, -12, -3) if which == 3 else 0.0
    return f"BareLoss({a!r}, {lost!r})", lambda: BareLoss(a, lost), response(a, lost)


def poisson(rng: Generator, extreme: bool) -> Item:
    text, build, law = _base(rng, extreme)
    rate = scale(rng, -4, 0) if extreme else scale(rng, -2, -0.05)
    return Item(
        "poisson",
        f"subsample({text}, {rate!r}, adjacency='add-remove')",
        lambda: subsample(build(), rate, adjacency="add-remove"),
        (Sampled(law, rate),),
        worst_back=(Sampled(law, rate, False),),
        relation="add-remove",
    )


def fixed_size(rng: Generator, extreme: bool) -> Item:
    text, build, law = _base(rng, extreme)
    rate = scale(rng, -2, -0.05)
    return Item(
        "fixed size",
        f"subsample({text}, {rate!r}, 'without-replacement', adjacency='replace')",
        lambda: subsample(build(), rate, "without-replacement", adjacency="replace"),
        (Sampled(law, rate),),
        worst_back=(Sampled(law, rate, False),),
        relation="replace",
    )


_SIMPLE = (gaussian, laplace, bare)


def discretized(rng: Generator, extreme: bool) -> Item:
    base = _SIMPLE[int(rng.integers(3))](rng, extreme)
    nodes = int(rng.choice([500, 2000, 16384]))
    return Item(
        "discretized",
        f"{base.text}.discretize(nodes={nodes})",
        lambda: base.build().discretize(nodes=nodes),
        base.worst,
        base.best,
    )


def shifted(rng: Generator, extreme: bool) -> Item:
    base, by = _SIMPLE[int(rng.integers(3))](rng, extreme), scale(rng, -6, 0)
    worst = (Moved(base.worst[0], by),)
    return Item("shifted", f"{base.text}.shift({by!r})", lambda: base.build().shift(by), worst, base.laws(False, False))


def failing(rng: Generator, extreme: bool) -> Item:
    base, lost = _SIMPLE[int(rng.integers(3))](rng, extreme), scale(rng, -14, -3)
    worst = (Moved(base.worst[0], 0.0, lost),)
    best = base.laws(False, False)
    if rng.random() < 0.5:
        return Item(
            "failing", f"{base.text}.with_failure({lost!r})", lambda: base.build().with_failure(lost), worst, best
        )
    return Item(
        "failing",
        f"{base.text}.with_failure(0.0, total_variation={lost!r})",
        lambda: base.build().with_failure(0.0, total_variation=lost),
        worst,
        best,
    )


def event(rng: Generator, extreme: bool) -> Item:
    from dp_accounting import dp_event as e

    which, sigma = int(rng.integers(5)), 1 / _noise(rng, extreme)
    laws: Laws
    best: Laws | None = None
    back: Laws | None = None
    if which == 0:
        made, laws = e.GaussianDpEvent(sigma), (Normal(1 / sigma),)
    elif which == 1:
        made, laws = e.LaplaceDpEvent(sigma), (Laplacian(1 / sigma),)
    elif which == 2:
        noise, buckets = float(rng.uniform(0.05, 0.95)), int(rng.integers(2, 9))
        made, laws = e.RandomizedResponseDpEvent(noise, buckets), (many_answers(noise, buckets),)
    elif which == 3:
        rho = min((1 / sigma) ** 2 / 2, 50.0)
        made, laws, best = e.ZCDpEvent(rho), (Normal(math.sqrt(2 * rho)),), ()
    else:
        rate, mu = scale(rng, -2, -0.1), scale(rng, -1, 0.4)
        made = e.PoissonSampledDpEvent(rate, e.GaussianDpEvent(1 / mu))
        laws, back = (Sampled(Normal(mu), rate),), (Sampled(Normal(mu), rate, False),)
    relation = "add-remove" if which == 4 else None
    return Item("event", f"from_event({made!r})", lambda: from_event(made), laws, best, back, relation=relation)


@lru_cache(maxsize=1)
def prelude() -> Any:
    """OpenDP, imported where no question is being timed."""
    import opendp.prelude as dp

    return dp


@lru_cache(maxsize=256)
def _opendp(which: str, size: float) -> Any:
    dp = prelude()
    dp.enable_features("contrib")
    if which == "response":
        return from_opendp(dp.m.make_randomized_response_bool(prob=size), 1)
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    made = dp.m.then_laplace(scale=size) if which == "laplace" else dp.m.then_gaussian(scale=size)
    return from_opendp(space >> made, 1.0)


def opendp(rng: Generator, extreme: bool) -> Item:
    which = str(rng.choice(["laplace", "gaussian", "response"]))
    prelude()
    size = float(np.round(rng.uniform(0.55, 0.95), 2)) if which == "response" else float(np.round(scale(rng, -1, 1), 1))
    text = f"from_opendp({which}, {size!r})"
    laws: dict[str, Callable[[], Law]] = {
        "laplace": lambda: Laplacian(1 / size),
        "gaussian": lambda: Normal(1 / size),
        "response": lambda: response(math.log(size / (1 - size))),
    }
    law = laws[which]()
    # OpenDP's own noise lives on a fine grid: a little less is asked of upper ends, a little more allowed below
    worst = (_weaker(Laplacian(law.a * (1 - 1e-6))),) if isinstance(law, Laplacian) else (law,)
    best = (Laplacian(law.a * (1 + 1e-6)),) if isinstance(law, Laplacian) else (law,)
    return Item("opendp", text, lambda: _opendp(which, size), worst, best)


def own(rng: Generator, extreme: bool) -> Item:
    a = _pure(rng, False)
    which = int(rng.integers(3))
    if which == 2:
        rate, law = float(rng.uniform(0.05, 0.9)), response(min(a, 3.0))
        scale_ = min(a, 3.0)
        both = (Sampled(law, rate),), (Sampled(law, rate, False),)
        return Item(
            "own", f"OwnSampled({scale_!r}, {rate!r})", lambda: OwnSampled(scale_, rate), both[0], None, both[1]
        )
    name = ("laplace", "response")[which]
    law = Laplacian(a) if which == 0 else response(a)
    return Item("own", f"OwnLoss({name!r}, {a!r})", lambda: OwnLoss(name, a), (law,))


def nested(rng: Generator, extreme: bool) -> Item:
    one, other = (_SIMPLE[int(rng.integers(3))](rng, extreme) for _ in range(2))
    n = int(rng.integers(1, 6))
    worst = one.worst * n + other.worst
    best = one.laws(False, False) * n + other.laws(False, False)
    text = f"compose([({one.text}, {n}), {other.text}])"
    return Item("nested", text, lambda: compose([(one.build(), n), other.build()]), worst, best)


def slow(rng: Generator, extreme: bool) -> Item:
    fall = scale(rng, -0.7, 0.3)
    height = float(rng.uniform(0.05, 1.0)) / (1 + 2 * fall)
    lost = scale(rng, -9, -1) if rng.random() < 0.5 else 0.0
    text, law = f"OwnTail({height!r}, {fall!r}, {lost!r})", Slow(height, fall, lost)
    if rng.random() < 0.5:
        return Item("slow", text, lambda: OwnTail(height, fall, lost), (law,))
    rate = scale(rng, -2, -0.05)
    return Item(
        "slow sampled",
        f"subsample({text}, {rate!r}, adjacency='add-remove')",
        lambda: subsample(OwnTail(height, fall, lost), rate, adjacency="add-remove"),
        (Sampled(law, rate),),
        worst_back=(Sampled(law, rate, False),),
        relation="add-remove",
    )


CHEAP = (gaussian, laplace, bare, calibrated, own)
KINDS = (
    gaussian,
    laplace,
    box,
    calibrated,
    mixed,
    radial,
    mixing,
    bare,
    poisson,
    fixed_size,
    discretized,
    shifted,
    failing,
    event,
    opendp,
    own,
    nested,
)
