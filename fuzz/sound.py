"""Sound arguments of the callables that the general ones of `pool` never satisfy, by place; and objects for the stock.

A place is the end of "callable.parameter". A value is a tuple of candidates, or makes one from the object the method
belongs to (None for a function).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import shapedp as sdp
from shapedp import accounting, learn, noise
from shapedp.ledger import make_filter
from shapedp.ledger.fixed import Charge
from shapedp.mechanisms import selection
from shapedp.mechanisms.adaptive_mixing import AdaptiveMixing
from shapedp.mechanisms.angles import AngleWindows, MeanAngles
from shapedp.mechanisms.objective import ObjectivePerturbation
from shapedp.noise.request import Request
from shapedp.workloads import Banded, StepSums
from shapedp.workloads.time_bands import Toeplitz
from shapedp.workloads.time_buffers import Buffered

CLAIM: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
_NEAR: dict[str, Any] = {**CLAIM, "adjacency": "add-remove"}
_SUMS = StepSums(8)


def _dim(one: Any) -> int:
    """The dimension of a set, a law or a mechanism; 3 where there is none."""
    return int(getattr(one, "dim", getattr(getattr(one, "law", None), "dim", 3)) or 3)


def _rows(one: Any) -> tuple[Any, ...]:
    dim = _dim(one)
    rows = np.linspace(-2.0, 2.0, 5 * dim).reshape(5, dim)
    return rows, rows.astype(np.float32), rows.tolist(), np.zeros((0, dim))


def _vectors(one: Any) -> tuple[Any, ...]:
    return (np.linspace(0.5, 2.0, _dim(one)),)


def _generators(one: Any) -> tuple[Any, ...]:
    return (np.random.default_rng(0),)


def _flags(one: Any) -> tuple[Any, ...]:
    return (np.arange(_dim(one)) % 2 == 0,)


def _requests(one: Any) -> tuple[Any, ...]:
    box = sdp.Box([1.0, 2.0, 0.5])
    return tuple(Request(set_, **CLAIM) for set_ in (sdp.L2(1.0, 3), sdp.L1(1.0, 3), box))


@cache
def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame({"id": [1, 1, 2, 3], "v": [0.5, 2.0, None, 1.0], "g": ["a", "b", "a", "c"]})


def _model() -> Any:
    import torch

    return torch.nn.Linear(3, 2)


def _loader() -> Any:
    import torch

    data = torch.utils.data.TensorDataset(torch.ones(12, 3), torch.zeros(12, dtype=torch.long))
    return torch.utils.data.DataLoader(data, batch_size=4)


def _optimizer() -> Any:
    import torch

    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)


@cache
def _plans() -> tuple[Any, ...]:
    from shapedp.torch import Flat, Layout, TrainingPlan

    claim: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "steps": 10}
    return (TrainingPlan(Layout.single(1000), records=600, batch_size=600, clip=Flat(1.0), **claim),)


@cache
def _table() -> Any:
    return sdp.table(_frame(), person="id", bounds={"v": (0, 2)}, domains={"g": ["a", "b"]})


@cache
def _question() -> Any:
    return _table().group_by("g").agg(n=sdp.count(), s=sdp.sum("v"))


@cache
def _events() -> tuple[Any, ...]:
    import dp_accounting as dp

    gaussian = dp.GaussianDpEvent(1.5)
    return (
        gaussian,
        dp.LaplaceDpEvent(1.0),
        dp.PoissonSampledDpEvent(0.1, gaussian),
        dp.SelfComposedDpEvent(gaussian, 5),
    )


@cache
def _distributions() -> tuple[Any, ...]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return (pld.from_laplace_mechanism(2.0, value_discretization_interval=1e-2),)


def _tensors() -> tuple[Any, ...]:
    from fuzz.pool import stock

    return tuple(one.law for one in stock() if isinstance(getattr(one, "law", None), noise.TensorGaussian))


def _cells(workload: Any) -> Any:
    """Five rows of a table for a workload."""
    import pandas as pd

    columns = {
        one.name: [k % one.size if one.labels is None else one.labels[k % one.size] for k in range(5)]
        for one in workload.schema.attributes
    }
    return pd.DataFrame(columns | {one.name: np.linspace(0, 1, 5) for one in workload.schema.measures})


@cache
def _fitted() -> tuple[Any, ...]:
    x, y = np.linspace(-1, 1, 40).reshape(20, 2), np.linspace(-1, 1, 20)
    near: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "feature_bound": 2.0}
    return (learn.LinearRegression(**near, target_bound=1.0).fit(x, y), learn.PCA(1, **near).fit(x))


@cache
def objects() -> tuple[Any, ...]:
    """More sound objects, on which methods are called."""
    built: list[Any] = [noise.Mixed([1.0, 2.0], [True, False])]
    built += [MeanAngles.calibrate(dim=3, clip=1.0, batch=8, epsilon=1.0, delta=1e-5)]
    built += [AngleWindows.calibrate(dim=3, clip=1.0, batch=8, epsilon=1.0, delta=1e-5)]
    built += [ObjectivePerturbation(sdp.Gaussian(10.0, 1), 1.0, 1, 0.1, sdp.Gaussian(1e-3, 1), 1e-6, 1.0, 1e-5)]
    built += [selection.Selection.calibrate(3, epsilon=1.0, delta=0.0, sensitivity=1, monotone=True)]
    built += [selection.KeySelection.calibrate(keys=1, **_NEAR)]
    built += [selection.Quantiles.calibrate(9, [0.25, 0.5], epsilon=1.0, delta=0.0, adjacency="add-remove")]
    built += [selection.Prefixes.calibrate([1, 2, 3], [0.5], **_NEAR)]
    built += [accounting.Repetition(sdp.GaussianLoss(0.1), 0.1, "add-remove")]
    built += [Banded.best(_SUMS, bands=4), Toeplitz.best(_SUMS, bands=4), Buffered.best(_SUMS, separation=8, buffers=2)]
    built += [sdp.Workload({"a": 3, "b": ["F", "M"]}).marginals(1).calibrate(epsilon=1.0, delta=0.0, noise="discrete")]
    built += [make_filter(**CLAIM), make_filter(**CLAIM, rule="gaussian"), Charge((3,)), _requests(None)[0], _SUMS]
    built += [AdaptiveMixing.calibrate(rows=20, row_bound=1.0, **CLAIM)]
    built += [*_fitted(), *_plans(), _table(), _question(), _question().release(**CLAIM)]
    return tuple(built)


def _described(one: Any) -> tuple[Any, ...]:
    """Descriptions of objects that can be written, of the class asked if there is one."""
    from fuzz.pool import stock

    can = [other for other in stock() if callable(getattr(type(other), "to_json", None))]
    own = [other for other in can if isinstance(one, type) and isinstance(other, one)]
    return tuple(other.to_json() for other in own or can)


def _stock(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    from fuzz.pool import stock

    return lambda one: tuple(other for other in stock() if isinstance(other, kind))


_LOSSES = ((sdp.GaussianLoss(0.5), 2), (sdp.LaplaceLoss(0.3), 1))
_SMALL = sdp.calibrate("gaussian", sdp.L2(1.0, dim=1), epsilon=0.1, delta=1e-7)
_COUNTS = ([5, 900, 40], np.array([10, 20, 30]))
_BEYOND: tuple[Callable[[float], bool], ...] = (lambda x: x > 1,)
_BELOW: tuple[Callable[[float], bool], ...] = (lambda x: x < 1,)

Values = tuple[Any, ...] | Callable[[Any], tuple[Any, ...]]
SOUND: dict[str, Values] = {
    "from_json.data": _described,
    "mechanism_from_json.data": _described,
    "law_from_json.data": lambda one: tuple(other.to_json() for other in _stock(sdp.Law)(one)),
    "sensitivity_from_json.data": lambda one: tuple(other.to_json() for other in _stock(sdp.Sensitivity)(one)),
    "workload_from_json.data": lambda one: tuple(other.to_json() for other in _stock(sdp.Workload)(one)),
    "of_json.data": _described,
    "ComposedLoss.parts": (_LOSSES,),
    "Plan.steps": ((accounting.Step(sdp.GaussianLoss(1.0), 0.1, 5),),),
    "Plan.vouched": ((), ("somebody",)),
    "trade_off.alpha": ([0.1, 0.5], 0.05, np.array([0.0, 1.0])),
    "renyi.alpha": (1.5, 2, 32.0),
    "empirical.mechanism.mechanism": _stock(sdp.Additive),
    "empirical.mechanism.neighbours": ((np.zeros(3), np.array([1.0, 0.0, 0.0])),),
    "empirical.mechanism.samples": (2000,),
    "gauge.gauge.sensitivity": (sdp.L2(1.0, 3), sdp.L1(1.0, 3), sdp.Box([1.0, 2.0, 0.5])),
    "gauge.gauge.difference": (np.array([0.1, 0.2, 0.3]),),
    "gauge.moved.mechanism": lambda one: tuple(m for m in _stock(sdp.Additive)(one) if _dim(m) == 3),
    "gauge.moved.first": (np.zeros(3),),
    "gauge.moved.second": (np.array([0.1, 0.2, 0.3]),),
    "transcript.replay.run": (lambda data: len(data),),
    "transcript.replay.pairs": ([(np.ones(5), np.ones(4))],),
    "certificate_of.fitted": lambda one: _fitted()[:1],
    "make_pipeline.steps": lambda one: ((learn.PublicScaler(0.0, 1.0), _fitted()[0]),),
    "subspace_error.estimated": (np.eye(3)[:1],),
    "subspace_error.true": (np.eye(3)[1:2],),
    "build.orders": (None, [2.0, 8.0]),
    "build.failure_share": (0.1, 0.5),
    "Charge.amounts": ((3,), (1, 2)),
    "calibrate.claim": ({"clip": 1.0, "batch": 8, "epsilon": 1.0, "delta": 1e-5},),
    "AngleWindows.law": (sdp.Gaussian(10.0, 3),),
    "Selection.rate": ((1, 2), (3, 100)),
    "top_k.utilities": _COUNTS,
    "top_k.k": (1, 2),
    "Prefixes.calibrate.grid": ([1.0, 2.0, 3.0],),
    "calibrate.q": (0.5, [0.25, 0.75]),
    "calibrate.cells": (9, 3),
    "Quantiles.targets": (((1, 2),), ((1, 4), (3, 4))),
    "Quantiles.reach": ((1, 2), (1, 1)),
    "Quantiles.cells": (9, 3),
    "quantiles.counts": _COUNTS,
    "quantiles.grid": ([1.0, 2.0, 3.0],),
    "quantiles.q": (0.5, [0.25, 0.75]),
    "Quantiles.release.x": (np.full(9, 100),),
    "Quantiles.release.counts": (np.full(9, 100),),
    "Prefixes.release.counts": (_COUNTS[0],),
    "Prefixes.release.x": (_COUNTS[0],),
    "Selection.release.x": _COUNTS,
    "Selection.release.utilities": _COUNTS,
    "KeySelection.release.x": ({"Ulm": 500, "Aal": 1},),
    "KeySelection.release.counts": ({"Ulm": 500, "Aal": 1},),
    "fitted.request": _requests,
    "above.request": _requests,
    "why.request": _requests,
    "DiscreteLaplace.steps": ([3], [3, 4]),
    "DiscreteLaplace.grid": ([1.0], [0.25]),
    "above.scales": (np.array([1.0, 2.0, 3.0]),),
    "of_coordinates.keep": _flags,
    "Mixed.scale": ([1.0, 2.0],),
    "Mixed.gaussian": ([True, False], np.array([False, True])),
    "Mixed.over.scales": (np.array([1.0, 2.0, 3.0]),),
    "Mixed.over.dim": (3,),
    "roots.first_true.holds": _BEYOND,
    "roots.first_true_near.holds": _BEYOND,
    "roots.last_true.holds": _BELOW,
    "roots.last_true_near.holds": _BELOW,
    "first_true.low": (0.5,),
    "first_true.high": (4.0,),
    "last_true.low": (0.5,),
    "last_true.high": (4.0,),
    "falling_root.log_value": (lambda x: -x,),
    "falling_root.target": (-1.0,),
    "falling_root.high": (4.0,),
    "log_difference.larger": (np.array([2.0, 1.0]), 2.0),
    "log_difference.smaller": (np.array([1.0, -1.0]), 1.0),
    "synthetic.make_gaussian.rng": _generators,
    "synthetic.make_mlp.rng": _generators,
    "synthetic.make_uniform.rng": _generators,
    "synthetic.make_synthetic_h.rng": _generators,
    "synthetic.stream_gaussian.rng": _generators,
    "synthetic.stream_mlp.rng": _generators,
    "synthetic.stream_uniform.rng": _generators,
    "synthetic.stream_synthetic_h.rng": _generators,
    "make_synthetic_h.options": ({"rows": 20, "dim": 12},),
    "stream_synthetic_h.rows": (20,),
    "stream_synthetic_h.dim": (12,),
    "make_gaussian.rows": (5,),
    "make_gaussian.test_rows": (5,),
    "make_mlp.rows": (5,),
    "make_mlp.test_rows": (5,),
    "make_uniform.rows": (5,),
    "make_uniform.test_rows": (5,),
    "loss_of.law": (sdp.Gaussian(6.0, 3), sdp.Laplace(2.0, 3)),
    "loss_of.sensitivity": (sdp.L2(1.0, 3), sdp.L1(1.0, 3)),
    "one_relation.found": (["replace", None], ["add-remove"]),
    "sum_profile.epsilon": (np.array([0.1, 1.0]),),
    "sum_profile.total": (None,),
    "Aggregate.verb": ("count", "sum", "quantile"),
    "Aggregate.column": (None, "v"),
    "PrivateTable.mean.column": ("v",),
    "PrivateTable.sum.column": ("v",),
    "PrivateTable.variance.column": ("v",),
    "PrivateTable.median.column": ("v",),
    "PrivateTable.quantile.column": ("v",),
    "PrivateTable.quantiles.column": ("v",),
    "PrivateTable.quantile.level": (0.5, 0.9),
    "PrivateTable.quantiles.levels": ([0.25, 0.75], (0.5,)),
    "PrivateTable.median.grid": (4, [0, 1, 2]),
    "PrivateTable.quantile.grid": (4, [0, 1, 2]),
    "PrivateTable.quantiles.grid": (4, [0, 1, 2]),
    "PrivateTable.histogram.column": ("v", "g"),
    "PrivateTable.histogram.edges": (None, [0, 1, 2]),
    "PrivateTable.top_k.column": ("g",),
    "PrivateTable.top_k.k": (1, 2),
    "PrivateTable.kind.name": ("v", "g", "id"),
    "agg.unnamed": ((), (sdp.count(),)),
    "agg.asked": ({"n": sdp.count()}, {"s": sdp.sum("v"), "m": sdp.mean("v")}),
    "ask.questions": lambda one: ((_stock(type(_question()))(one)[0],),),
    "plan.questions": lambda one: ((_stock(type(_question()))(one)[0],),),
    "Question.where.condition": ("v > 1", "g == 'a'"),
    "Filter.admits.totals": lambda one: (one.charge(_SMALL),),
    "totals": lambda one: (one.charge(_SMALL),) if one is not None else (Charge((3,)),),
    "affords.charge": lambda one: (one.charge(_SMALL),),
    "plus.other": (Charge((5,)),),
    "fit.X": (np.linspace(-1, 1, 40).reshape(20, 2), np.ones((20, 2), dtype=np.float32)),
    "fit_transform.X": (np.linspace(-1, 1, 40).reshape(20, 2),),
    "fit.y": (np.linspace(-1, 1, 20),),
    "fit.sample_weight": (None,),
    "add_to.x": _rows,
    "log_density.x": _rows,
    "weighted_second_moment.weights": _vectors,
    "Mixed.loss.sensitivity": (sdp.Box([1.0, 2.0]),),
    "Radial.of_coordinates.keep": (np.array([True, False, True]),),
    "Stack.laws": lambda one: ((_tensors()[0],),),
    "probabilities.utilities": _COUNTS,
    "probabilities.counts": ({"Ulm": 500, "Aal": 1}, [1, 5]),
    "error.workload": (_SUMS,),
    "least.workload": (_SUMS,),
    "covariances.term": lambda one: one.workload.terms[:2],
    "variances.term": lambda one: one.workload.terms[:2],
    "Workload.exact.x": lambda one: (_cells(one),),
    "AnswerMechanism.release.x": lambda one: (_cells(one.workload),),
    "WorkloadMechanism.release.x": lambda one: (_cells(one.workload),),
    "confidence_interval.level": (0.9,),
    "likelihood_ratio_attack.rng": _generators,
    "shadow_attack.rng": _generators,
    "shadow_attack.train": (lambda seen: np.log(np.full((40, 2), 0.5)),),
    "likelihood_ratio_attack.train": (lambda seen: np.log(np.full((40, 2), 0.5)),),
    "shadow_attack.labels": (np.arange(40) % 2,),
    "likelihood_ratio_attack.labels": (np.arange(40) % 2,),
    "likelihood_ratio_attack.shadows": (4,),
    "lowbits.bits.neighbours": ((0.0, 1.0), ([0.0], [1.0])),
    "lowbits.bits.samples": (4000,),
    "from_event.event": lambda one: _events(),
    "from_dp_accounting.distribution": lambda one: _distributions(),
    "Partitioned.x": lambda one: ([np.ones((4, 2)), np.zeros((3, 2))],),
    "table.table.source": lambda one: (_frame(),),
    "table.table.person": (None, "id"),
    "table.table.bounds": ({"v": (0, 2)},),
    "table.table.domains": ({"g": ["a", "b"]},),
    "table.table.types": (None, {"v": "number"}),
    "table.table.memory": (None, "100MB"),
    "PrivateTable.where.condition": ("v > 1", "g == 'a'"),
    "PrivateTable.group_by.columns": (("g",),),
    "Fitted.of.estimator": lambda one: _fitted(),
    "pages.of.subject": lambda one: (*_stock(sdp.Additive)(one), *_stock(sdp.Certificate)(one)),
    "exponential_coins.numerator": (np.array([1, 2, 3]),),
    "exponential_coins.denominator": (4,),
    "SimulatedSource.generator": _generators,
    "clip.rows": _rows,
    "clip.owner": (None, [1, 1, 2, 2, 3]),
    "clip.max_rows": (None, 1, 2),
    "predict.X": (np.ones((3, 2)),),
    "transform.X": (np.ones((3, 2)),),
    "inverse_transform.X": (np.ones((3, 1)),),
    "score.X": (np.ones((3, 2)),),
    "score.y": (np.ones(3),),
    "Hull.vertices": ([[1.0, 0.0, 1.0], [0.0, 1.0, 2.0]],),
    "of_people.contributions": ([[1.0, 0.0], [0.0, 1.0]],),
    "Hull.reach.parts": ([(np.ones(1), np.ones(1))],),
    "Slices.radii": ([1.0, 2.0],),
    "Slices.shape": ((2, 3),),
    "Slices.mode": (0,),
    "by_slice.values": _vectors,
    "in_place.values": (np.array([1.0, 2.0]),),
    "reach.scales": _vectors,
    "l1_reach.scales": _vectors,
    "l2_reach.scales": _vectors,
    "Columns.x": lambda one: (_frame(),),
    "Columns.features": (["v"], ("v", "id")),
    "get_compatible_module.module": lambda one: (_model(),),
    "Layout.names": (("weight", "bias"),),
    "Layout.shapes": (((2, 3), (2,)),),
    "Layout.layers": ((0, 0), (0, 1)),
    "Layout.of.model": lambda one: (_model(),),
    "make_private.clip": (1.0,),
    "make_private.noise": ("gaussian",),
    "make_private.sampling": ("poisson", "shuffle", "fixed"),
    "make_private.model": lambda one: (_model(),),
    "make_private.loader": lambda one: (_loader(),),
    "make_private.optimizer": lambda one: (_optimizer(),),
    "term.name": ("a", "b", "a x b", "mean of v"),
    "Attribute.of.name": ("a",),
    "Attribute.of.domain": (3, ["x", "y"], {"edges": [0, 1, 2]}),
    "Measure.of.name": ("v",),
    "Measure.of.bounds": ((0, 1), (-1.0, 2.5)),
    "Schema.of.attributes": ({"a": 2, "b": ["x", "y"]},),
    "Schema.of.measures": (None, {"v": (0, 1)}),
    "Workload.schema": ({"a": 2, "b": ["x", "y"]},),
    "Workload.measures": (None, {"v": (0, 1)}),
    "Workload.terms": ((),),
    "Workload.along": ("a", "b"),
    "hierarchy.along": ("a", "b"),
    "prefixes.along": ("a", "b"),
    "ranges.along": ("a", ["a", "b"]),
    "Workload.rows.along": ("a", "b"),
    "Workload.rows.matrix": (np.eye(2), np.ones((1, 3))),
    "Workload.by": ((), ("b",)),
    "hierarchy.by": ((), ("b",)),
    "prefixes.by": ((), ("b",)),
    "ranges.by": ((), ("b",)),
    "rows.by": ((), ("b",)),
    "marginals.orders": ((1,), (0, 1, 2)),
    "means.measure": ("v",),
    "sums.measure": ("v",),
    "means.by": ((), ("a",)),
    "sums.by": ((), ("b",)),
    "Workload.table.by": (("a",), ("a", "b")),
    "Workload.table.measure": (0, 1),
    "Banded.columns": (((4, 2), (4, 2), (4,)),),
    "Banded.best.workload": (_SUMS,),
    "Toeplitz.best.workload": (_SUMS,),
    "Buffered.best.workload": (_SUMS,),
    "best.bands": (1, 4),
    "best.separation": (8, 4),
    "best.buffers": (1, 2),
    "Toeplitz.steps": (8,),
    "Toeplitz.coefficients": ((2**30, 2**29),),
    "Buffered.steps": (8,),
    "Buffered.separation": (8,),
    "Buffered.decays": ((0.5,),),
    "Buffered.weights": ((0.2,),),
}


def _ends(place: str) -> Iterator[str]:
    while place:
        yield place
        place = place.partition(".")[2]


def sound(place: str, owner: Any) -> tuple[Any, ...]:
    """The sound values of a place, longest name first; none where the general ones do."""
    for end in _ends(place):
        if end in SOUND:
            values = SOUND[end]
            return values(owner) if callable(values) else values
    return ()
