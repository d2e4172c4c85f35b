"""Random certificates, one per case number: every law, set, relation, sampling, composition and extreme."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

import shapedp
from shapedp.accounting import BareLoss, Plan, Step
from shapedp.accounting.repeat import Repetition
from shapedp.mechanisms import AdaptiveMixing, Additive, Mixing, Quantiles
from shapedp.noise import DiscreteLaplace, Gaussian, Laplace, Logistic, Mixed, Radial, TensorGaussian
from shapedp.papers.gaussian_mixing.recipes import ModifiedGaussMix
from shapedp.papers.gaussian_mixing.sheffet import ThresholdMixing
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import L1, L2, Blocks, Box, Hull, Slices
from shapedp.workloads.whole import WholeNoise

Json = dict[str, Any]
KINDS = (
    "gaussian",
    "laplace",
    "discrete",
    "mixed",
    "radial",
    "staircase",
    "tensor",
    "mixing",
    "plan",
    "bare",
    "sampled",
    "sketch",
    "repetition",
    "logistic",
    "fixed-size",
    "passes",
    "hull",
    "workload",
    "answers",
    "selection",
    "keys",
    "quantiles",
)
# a quick kind is met as often as its price allows: a round of cases holds each slow kind once
ROUND = (
    *("gaussian", "mixing", "discrete", "tensor", "bare", "laplace", "gaussian", "staircase", "bare", "repetition"),
    *("plan", "gaussian", "discrete", "mixing", "radial", "repetition", "bare", "tensor", "laplace", "sketch"),
    *("discrete", "gaussian", "staircase", "bare", "sampled", "mixing", "repetition", "plan", "laplace", "mixed"),
)
LATER = 100_000  # from this case on rounds hold kinds that came later: the cases before keep theirs
LATER_ROUND = (*ROUND, "logistic", "fixed-size", "fixed-size")
LATEST = 200_000  # and again
LATEST_ROUND = (*LATER_ROUND, "hull", "workload")
NEWEST = 700_000  # and again
NEWEST_ROUND = (*LATEST_ROUND, "answers", "selection", "selection", "keys", "quantiles")
PASSES = 3_000_000  # and again
PASSES_ROUND = (*NEWEST_ROUND, "passes")
# epsilon takes seconds
_SLOW = (
    "passes",
    "laplace",
    "logistic",
    "mixed",
    "plan",
    "sampled",
    "fixed-size",
    "radial",
    "sketch",
    "mixing",
    "hull",
    "selection",
    "quantiles",
)


def kind_of(number: int) -> str:
    """The kind of a case."""
    starts = ((PASSES, PASSES_ROUND), (NEWEST, NEWEST_ROUND), (LATEST, LATEST_ROUND), (LATER, LATER_ROUND), (0, ROUND))
    kinds = next(kinds for start, kinds in starts if number >= start)
    return kinds[number % len(kinds)]


class Skipped(Exception):
    """The library refuses this combination."""


def certificate(number: int) -> Json:
    """The certificate of a case as the library writes it, asked in a random order of questions."""
    rng = np.random.default_rng([17, number])
    kind = kind_of(number)
    epsilon = float(np.round(10 ** rng.uniform(-1.5, 1), 4))
    delta = float(10.0 ** -rng.integers(2, 30)) if rng.random() < 0.3 else float(10.0 ** -rng.integers(3, 9))
    try:
        subject = _subject(kind, rng, epsilon, delta)
        slow = kind in _SLOW
        for question in rng.permutation(2):
            if question and rng.random() < (0.2 if slow else 0.5):
                subject.loss.delta(float(rng.uniform(0.1, 4)))
            if not question and rng.random() < (0.05 if slow else 0.5):
                subject.loss.epsilon(delta)
        claim = epsilon * float(rng.choice([1.0, 1.0, 0.5, 0.9, 1.1, 2.0]))
        made = shapedp.certify(subject, epsilon=claim, delta=delta)
    except (ValueError, TypeError) as refused:
        raise Skipped(f"{kind}: {refused}") from None
    return json.loads(json.dumps(made.to_json()))


def _relation(rng: np.random.Generator) -> Any:
    return rng.choice(["add-remove", "replace", "zero-out", None])


def _set(
    rng: np.random.Generator, relation: Any, names: tuple[str, ...] = ("l1", "l2", "box", "blocks", "slices")
) -> Any:
    kind, radius = str(rng.choice(names)), float(10 ** rng.uniform(-2, 2))
    dim = int(rng.choice([1, 2, 3, 7] if names == ("box",) else [1, 1, 2, 2, 3, 3, 7, 7, 40, 300]))
    if kind == "l1":
        return L1(radius, dim=dim, adjacency=relation)
    if kind == "l2":
        scales = rng.uniform(0.3, 1, dim) if rng.random() < 0.3 else None
        return L2(radius, dim=dim, scales=scales, adjacency=relation)
    if kind == "box":
        return Box(
            radius * rng.uniform(0.1, 1, dim) if rng.random() < 0.5 else np.full(dim, radius), adjacency=relation
        )
    if kind == "blocks":
        sizes = rng.integers(1, 5, size=int(rng.integers(1, 5)))
        return Blocks(radius * rng.uniform(0.1, 1, sizes.size), sizes, adjacency=relation)
    return Slices(radius * rng.uniform(0.1, 1, 3), (2, 3, 2), 1, adjacency=relation)


def _scaled(rng: np.random.Generator, region: Any, epsilon: float) -> np.ndarray[Any, Any]:
    """Scales of about the size that epsilon asks for, not calibrated."""
    size = float(np.linalg.norm(region.extreme()))
    return size / epsilon * 10 ** rng.uniform(-0.3, 0.9) * rng.uniform(0.7, 1, region.dim)


def _subject(kind: str, rng: np.random.Generator, epsilon: float, delta: float) -> Any:
    relation = _relation(rng)
    if kind in ("plan", "bare", "sampled", "fixed-size", "passes"):
        return _plan(kind, rng, epsilon, delta)
    if kind == "sketch":
        return _sketch(rng, epsilon, delta)
    if kind == "repetition":
        return _repetition(rng, epsilon)
    if kind == "mixing":
        rows, gamma = int(rng.choice([1, 10, 100, 1000])), float(1 + 10 ** rng.uniform(-1, 3))
        sizes = (None, None) if rng.random() < 0.5 else (int(rng.integers(10, 1000)), int(rng.integers(1, 20)))
        return Mixing(rows, 1.0, gamma, epsilon, delta, str(rng.choice(["zero-out", "replace"])), *sizes)
    if kind == "hull":
        return _hull(rng, relation, epsilon, delta)
    if kind in ("selection", "keys", "quantiles"):
        return _chosen(kind, rng, epsilon, delta)
    if kind == "workload":
        return _workload(rng, epsilon, delta)
    if kind == "answers":
        return _answers(rng, epsilon, delta)
    names: dict[str, tuple[str, ...]] = {"radial": ("l2",), "staircase": ("box",), "mixed": ("box",)}
    region = _set(rng, relation, names.get(kind, ("l1", "l2", "box", "blocks", "slices")))
    if kind == "discrete" and isinstance(region, L1 | Box) and rng.spawn(1)[0].random() < 0.4:
        region = (
            L1(max(region.radius, 1.0), dim=region.dim, adjacency=relation)
            if isinstance(region, L1)
            else Box(np.maximum(region.profile, 1.0), adjacency=relation)
        ).of_integers()
    if kind == "tensor":
        region = L2(float(rng.uniform(0.1, 3)), shape=(3, 4), adjacency=relation)
        factors = [rng.normal(size=(3, 3)) if rng.random() < 0.5 else rng.uniform(0.5, 1, 3), rng.uniform(0.5, 1, 4)]
        return Additive(TensorGaussian(factors, scale=10 / epsilon), region, epsilon, delta)
    if kind == "staircase" or (rng.random() < 0.5 and kind != "mixed"):  # staircases are calibrated only
        family = {"discrete": "laplace"}.get(kind, kind)
        pure = kind == "discrete" or (kind == "staircase" and rng.random() < 0.7)
        return shapedp.calibrate(family, region, epsilon=epsilon, delta=0.0 if pure else delta)
    return Additive(_law(kind, rng, region, epsilon), region, epsilon, delta)


def _law(kind: str, rng: np.random.Generator, region: Any, epsilon: float) -> Any:
    scales = _scaled(rng, region, epsilon)
    if kind == "gaussian":
        return Gaussian(scales if rng.random() < 0.5 else float(scales[0]), region.dim)
    if kind == "laplace":
        return Laplace(scales if rng.random() < 0.5 else float(scales[0]), region.dim)
    if kind == "logistic":
        return Logistic(scales if rng.random() < 0.5 else float(scales[0]), region.dim)
    if kind == "mixed":
        return Mixed(scales, rng.random(region.dim) < 0.5)
    if kind == "radial":
        a = region.dim * float(rng.choice([1.0, 0.97, 0.8]))
        return Radial(region.dim, a, float(rng.uniform(0.6, 2.5)), float(scales[0]))
    if kind == "discrete":
        grid = 2.0 ** np.floor(np.log2(scales) - rng.integers(1, 20))
        return DiscreteLaplace(np.maximum(np.rint(scales / grid), 1), grid, region.dim)
    raise ValueError(f"no {kind} noise")


def _hull(rng: np.random.Generator, relation: Any, epsilon: float, delta: float) -> Any:
    """Vertices, differences or sums of them, dense or sparse, with the best noise or another."""
    dim, rows = int(rng.integers(1, 9)), int(rng.integers(2, 12))
    vertices = rng.normal(size=(rows, dim)) * 10 ** rng.uniform(-1.5, 1.5, dim)
    if rng.random() < 0.5:
        vertices = np.rint(vertices) + np.eye(rows, dim)
    written = sparse.csr_array(vertices) if rng.random() < 0.3 else vertices
    if relation is not None and rng.random() < 0.5:
        whole = (vertices == np.rint(vertices)).all()
        rows_each = int(rng.integers(1, 4))
        region = Hull.of_people(written, adjacency=relation, max_rows=rows_each, distinct=bool(whole))
    else:
        region = Hull(written, differences=bool(rng.random() < 0.3), adjacency=relation)
    which = int(rng.integers(6))
    if which > 3:
        whole = bool((region.dense() % 1 == 0).all())
        chosen = region.of_integers() if whole and rng.random() < 0.5 else region
        pure = 0.0 if which == 4 else delta
        return shapedp.calibrate("laplace", chosen, epsilon=epsilon, delta=pure, exact_zeros=True)
    if which == 0:
        return Additive(Gaussian(_scaled(rng, region, epsilon)), region, epsilon, delta)
    if which == 1:
        return Additive(TensorGaussian([rng.normal(size=(dim, dim))], scale=10 / epsilon), region, epsilon, delta)
    error = "max" if rng.random() < 0.3 else "squared"
    return shapedp.calibrate("gaussian", region, epsilon=epsilon, delta=delta, error=error, exact_zeros=True)


def _chosen(kind: str, rng: np.random.Generator, epsilon: float, delta: float) -> Any:
    """Selections, keys and quantiles: calibrated, or with a rate of about the right size."""
    relation, off = str(rng.choice(["add-remove", "replace", "zero-out"])), float(rng.choice([1.0, 1.0, 0.7, 1.5]))
    given = 0.0 if rng.random() < 0.5 else delta
    if kind == "keys":
        each = int(rng.choice([1, 1, 2, 5, 30]))
        m = shapedp.KeySelection.calibrate(keys=each, epsilon=epsilon, delta=delta, adjacency=relation)
        return replace(m, key_epsilon=m.key_epsilon * off, key_delta=m.key_delta * float(rng.choice([1.0, 0.5, 3.0])))
    if kind == "quantiles":
        q = (np.arange(int(rng.integers(1, 40))) + 1) / 41
        each = int(rng.integers(1, 4))
        made = Quantiles.calibrate(
            int(rng.integers(2, 2000)), q, epsilon=epsilon, delta=given, adjacency=relation, records=each
        )
        return replace(made, reach=(int(made.reach[0] * off) + 1, made.reach[1]))
    candidates, times = int(rng.integers(2, 40)), int(rng.choice([1, 1, 2, 3, 9]))
    chosen = shapedp.Selection.calibrate(
        candidates,
        epsilon=epsilon,
        delta=given,
        sensitivity=int(rng.integers(1, 6)),
        monotone=bool(rng.random() < 0.5) and relation != "replace",
        method=str(rng.choice(["exponential", "permute-and-flip", "noisy-max"])),
        times=min(times, candidates - 1),
        adjacency=relation if rng.random() < 0.8 else None,
    )
    return replace(chosen, rate=(int(chosen.rate[0] * off) + (off != 1), chosen.rate[1]))


def _workload(rng: np.random.Generator, epsilon: float, delta: float) -> Any:
    """Marginals, ranges and measures of small tables."""
    sizes = {name: int(rng.integers(1, 5)) for name in "abc"[: int(rng.integers(1, 4))]}
    measures = {"v": (float(rng.uniform(-2, 0)), float(rng.uniform(0.1, 30)))} if rng.random() < 0.3 else None
    asked = shapedp.Workload(sizes, measures=measures).marginals(*{int(k) for k in rng.integers(0, len(sizes) + 1, 2)})
    if rng.random() < 0.4:
        asked = getattr(asked, str(rng.choice(["ranges", "prefixes", "hierarchy"])))(str(rng.choice(list(sizes))))
    if measures:
        asked = asked.sums("v", *list(sizes)[: int(rng.integers(0, 3))])
    relation = str(rng.choice(["add-remove", "replace", "zero-out"]))
    return asked.calibrate(epsilon=epsilon, delta=delta, adjacency=relation, gap=1e-2)


def _answers(rng: np.random.Generator, epsilon: float, delta: float) -> Any:
    """Noise on whole numbers: on each answer or the cells, rows with signs, measures; calibrated, or of any scale."""
    sizes = {name: int(rng.integers(1, 5)) for name in "abc"[: int(rng.integers(1, 4))]}
    measures = {"v": (float(rng.uniform(-2, 0)), float(rng.uniform(0.1, 30)))} if rng.random() < 0.3 else None
    asked = shapedp.Workload(sizes, measures=measures).marginals(*{int(k) for k in rng.integers(0, len(sizes) + 1, 2)})
    for place in range(int(rng.integers(3))):
        along = str(rng.choice(list(sizes)))
        by = [name for name in sizes if name != along and rng.random() < 0.5]
        shape = str(rng.choice(["ranges", "prefixes", "hierarchy", "rows"]))
        if shape == "rows":
            asked = asked.rows(
                rng.integers(-2, 4, (2, sizes[along])) + np.array([[1], [0]]), along, by=by, name=f"rows {place}"
            )
        else:
            asked = getattr(asked, shape)(along, by=by, name=f"{shape} {place}")
    if measures:
        asked = asked.sums("v", *list(sizes)[: int(rng.integers(0, 3))])
    noise = "laplace" if measures else str(rng.choice(["laplace", "discrete", "cells", "knorm"]))
    pure = 0.0 if rng.random() < 0.6 else delta
    made = asked.calibrate(
        epsilon=epsilon, delta=pure, noise=noise, adjacency=str(rng.choice(["add-remove", "replace", "zero-out"]))
    )
    if rng.random() < 0.6:
        return made
    scales = [one.scale * 10 ** rng.uniform(-0.5, 0.5) for one in made.noise]
    others = [WholeNoise.above(one.law, s, one.whole, one.bits) for one, s in zip(made.noise, scales, strict=True)]
    return replace(made, noise=tuple(others))


def _sketch(rng: np.random.Generator, epsilon: float, delta: float) -> Any:
    """A sketch whose noise depends on the data, of ours and as published."""
    rows, gamma = int(rng.choice([1, 10, 100, 1000])), float(1 + 10 ** rng.uniform(0, 3))
    relation, bound = str(rng.choice(["zero-out", "replace"])), float(rng.choice([1.0, 0.5, 3.0]))
    sizes = (None, None) if rng.random() < 0.5 else (int(rng.integers(10, 1000)), int(rng.integers(1, 20)))
    eta, tau = float(10 ** rng.uniform(-1, 1.5)), float(rng.uniform(0.5, 8))
    which = int(rng.integers(3))
    if which == 0:
        return AdaptiveMixing(rows, bound, gamma, eta, tau, epsilon, delta, relation, *sizes)
    if which == 1:
        return ModifiedGaussMix(rows, bound, gamma, eta, tau, epsilon, delta, relation, *sizes)
    variance = float(gamma * 10 ** rng.uniform(-0.5, 0.5))
    return ThresholdMixing(rows, bound, gamma, eta * tau, eta, variance, epsilon, delta, relation, *sizes)


def _repetition(rng: np.random.Generator, epsilon: float) -> Repetition:
    """The best of a random number of runs."""
    relation, gamma = _relation(rng), float(10 ** rng.uniform(-4, -0.01))
    which = int(rng.integers(3))
    if which == 0:
        return Repetition(GaussianLoss(epsilon / float(rng.uniform(1, 30))), gamma, relation)
    if which == 1:
        return Repetition(BareLoss(epsilon / float(rng.uniform(1, 5))), gamma, relation)
    region = L1(1.0, dim=1, adjacency=relation)
    return Repetition(Additive(Laplace(float(rng.uniform(1, 5)) / epsilon, 1), region, epsilon, 0.0), gamma)


def _plan(kind: str, rng: np.random.Generator, epsilon: float, delta: float) -> Plan:
    count = int(rng.choice([1, 2, 3, 10, 50, 500]))
    if kind == "bare":
        relation, attained = _relation(rng), bool(rng.random() < 0.8)
        size = epsilon / count * float(rng.choice([1.0, 3.0]))
        steps = [Step(BareLoss(size, delta / count / 10, attained, adjacency=relation), count=count)]
        if rng.random() < 0.5:
            mu = float(rng.uniform(0.01, 0.5))
            least = None if rng.random() < 0.5 else mu * float(rng.uniform(0, 1))
            steps.append(Step(GaussianLoss(mu, least), count=int(rng.integers(1, 5))))
        return Plan(tuple(steps))
    if kind == "passes":
        scheme: Any = "allocation" if rng.random() < 0.7 else "shuffle"
        mu, batches = float(np.exp(rng.uniform(-1.2, 1.2))), int(np.exp(rng.uniform(0, 7)))
        return Plan((Step(GaussianLoss(mu), count=min(count, 10), scheme=scheme, batches=batches),))
    if kind in ("sampled", "fixed-size"):
        relation, scheme = ("add-remove", "poisson") if kind == "sampled" else ("replace", "without-replacement")
        rate = float(rng.choice([1e-3, 0.01, 0.1, 0.5, 0.9]))
        base: Any = GaussianLoss(float(rng.uniform(0.2, 2)))
        if rng.random() < 0.5:
            region = _set(rng, relation, ("box", "l2"))
            base = shapedp.calibrate("gaussian", region, epsilon=epsilon, delta=delta)
        elif rng.random() < 0.3:
            base = BareLoss(epsilon, delta)
        return Plan((Step(base, rate, count, scheme),))
    relation = _relation(rng)
    steps = []
    for _ in range(int(rng.integers(1, 4))):
        family = str(rng.choice(["gaussian", "laplace", "laplace", "staircase"]))
        region = _set(rng, relation, ("box",) if family == "staircase" else ("l1", "box"))
        if region.dim > 7:
            continue
        claim = float(10 ** rng.uniform(-1, 0.3))
        pure = family != "gaussian" and rng.random() < 0.7
        steps.append(Step(shapedp.calibrate(family, region, epsilon=claim, delta=0.0 if pure else 1e-7), count=count))
    return Plan(tuple(steps))
