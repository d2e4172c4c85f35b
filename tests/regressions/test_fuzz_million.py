"""Calls that ended in an undocumented exception among a million random ones; each is refused in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from tests.regressions.test_fuzz_calls import Liar

import shapedp as sdp
from shapedp.accounting import Step, allocate, plan, trade_off
from shapedp.accounting.accountants import he_theorem_3, optimal_homogeneous
from shapedp.audit.membership import shadow_attack
from shapedp.audit.sizes import power
from shapedp.audit.transcript import replay
from shapedp.ledger.filters import BasicFilter, EitherFilter, RenyiFilter, make_filter
from shapedp.ledger.fixed import Charge
from shapedp.mechanisms.adaptive_mixing import AdaptiveMixing
from shapedp.mechanisms.angles import AngleWindows
from shapedp.mechanisms.objective import ObjectivePerturbation
from shapedp.mechanisms.selection.keys import KeySelection
from shapedp.mechanisms.selection.recursion import Quantiles
from shapedp.noise.logistic import Logistic
from shapedp.noise.mixed import Mixed
from shapedp.noise.staircase_l1 import L1Staircase
from shapedp.numerics.roots import first_true_near, last_true_near
from shapedp.papers.classics.recipes import multivariate_laplace
from shapedp.papers.datasets.base import Dataset
from shapedp.papers.datasets.synthetic import make_gaussian, make_mlp
from shapedp.papers.register.harness import Table
from shapedp.papers.tensor_noise.recipes import mvg, tvg
from shapedp.privacy.losses.radial import RadialLoss
from shapedp.private.questions import Aggregate
from shapedp.report import claims_page
from shapedp.sampling import discrete_laplace, geometric, source
from shapedp.tables.blocks import Columns
from shapedp.torch.accountant import Account
from shapedp.torch.private import make_private
from shapedp.torch.training import Training
from shapedp.workloads.answers import AnswerMechanism
from shapedp.workloads.mechanism import WorkloadMechanism

RNG = np.random.default_rng(0)
MECHANISM = sdp.calibrate("gaussian", sdp.L2(1.0, 3), epsilon=1.0, delta=1e-6)
TWO = torch.tensor([1.0, 2.0])
LIAR: Any = Liar()
FRAME: Any = pl.DataFrame({"a": [1.0]})
COMPOSED = sdp.compose([(sdp.LaplaceLoss(1.0), 2)])
LAPLACE, BALL = sdp.Laplace(2.0, 3), sdp.L2(1.0, 3)
CALLS: dict[str, Callable[[], Any]] = {
    "a bracket of tensors": lambda: sdp.Bracket(TWO, TWO),
    "a certificate of a number": lambda: sdp.Certificate(1.0, 1e-6, "replace", 0.5, "GaussianLoss"),
    "an account of a mechanism": lambda: Account(MECHANISM, 1.0, 1e-6, 3),
    "rows of an array": lambda: make_mlp(RNG, rows=pl.DataFrame({"a": [1.0]}), test_rows=np.array(["a"])),
    "a guess beyond floats": lambda: last_true_near(lambda x: True, 10**400),
    "claims that lie about their number": lambda: claims_page(LIAR),
    "findings of a tensor": lambda: claims_page(findings=TWO),
    "a single number as a table": lambda: Dataset("toy", np.array(2.0), np.zeros(3)),
    "a radial shape of a tensor": lambda: RadialLoss.approximate(50, 2.0, TWO, 0.1, 0.1),
    "more draws than fit": lambda: discrete_laplace(3, 2**40, source(0)),
    "more radii than fit": lambda: sdp.Radial(3, 1.0, 2.0, 4.0).draw_radii(2**31, source(0)),
    "a scale that lies about its length": lambda: Logistic(LIAR, 3),
    "labels that lie about their number": lambda: shadow_attack(print, LIAR, rng=RNG),
    "a law that is none": lambda: ObjectivePerturbation(LAPLACE, 0.5, 1, 0.5, BALL, 2.0, 1.0, 0.1, 0.5),
    "a sensitivity whose square is no float": lambda: mvg(shape=(2, 3), sensitivity=1e300, epsilon=0.1, delta=1e-6),
    "a delta of two": lambda: RenyiFilter.build(1.0, TWO, 0.0, None),
    "a share that is none": lambda: RenyiFilter.build(1.0, 1e-6, LIAR, None),
    "a charge of a tensor": lambda: Charge((1,), TWO),
    "steps that lie about their number": lambda: sdp.Plan(LIAR),
    "amounts that lie about their number": lambda: Charge(LIAR),
    "a cap of ten to the 120": lambda: EitherFilter.build(1.0, 10**120, 2.0, None),
    "a cap below zero": lambda: BasicFilter.build(-1e264, 3, 0.0, None),
    "a view at no accuracy": lambda: COMPOSED.view(1.0, reverse=False, accuracy=0),
    "a table of two accuracies": lambda: COMPOSED.tabulated(torch.tensor([1.0, 2.0])),
    "a table at no accuracy": lambda: COMPOSED.tabulated(-1.0),
    "neighbours of no table": lambda: sdp.audit.neighbours((), adjacency="zero-out", at=1),
    "neighbours of a number": lambda: sdp.audit.neighbours(1.0, adjacency="replace"),
    "neighbours at no row": lambda: sdp.audit.neighbours(np.ones((4, 2)), adjacency="replace", at=4),
    "a frame as a sampling": lambda: make_private(
        set(), 1, {"kind": 1}, clip=0.5, delta=1e-5, noise_multiplier=10.0, sampling=pl.DataFrame({"a": [1.0]})
    ),
    "a series as a number of rows": lambda: sdp.L2(1.0, dim=2).clip(
        np.ones((2, 2)), adjacency="replace", max_rows=pl.Series(["a"])
    ),
    "a text as a number of rows": lambda: sdp.L2(1.0, dim=2).clip(np.ones((2, 2)), adjacency="replace", max_rows="3"),
    "more records than floats hold": lambda: sdp.Mixing(rows=100, gamma=100.0, row_bound=1.0, records=10**120, dim=3),
    "features that lie about their number": lambda: Columns(pd.DataFrame({"a": [1.0]}), LIAR).as_table("a", None),
    "a view at no place": lambda: COMPOSED.view([], reverse=True, accuracy=0.5),
    "a view far below zero": lambda: COMPOSED.view(-1e99, reverse=False, accuracy=0.5),
    "keys without number": lambda: KeySelection.calibrate(keys=10**120, epsilon=0.1, delta=1e-9, adjacency="replace"),
    "keys at any price": lambda: KeySelection.calibrate(keys=3, epsilon=2**63, delta=1e-12, adjacency="add-remove"),
    "an infinite quantile": lambda: Quantiles.calibrate(9, math.inf, epsilon=1.0, delta=0.0, adjacency="replace"),
    "quantiles that lie": lambda: Quantiles.calibrate(9, LIAR, epsilon=1.0, delta=0.0, adjacency="replace"),
    "a geometric draw too many": lambda: geometric(1, 2**31, source(0)),
    "a frame as a workload": lambda: WorkloadMechanism(pl.DataFrame({"a": [1.0]}), (), 1.0, 0.1, "replace"),
    "families of nothing": lambda: WorkloadMechanism(sdp.Workload({"a": 2}).marginals(0), [None], 1.0, 0.1, "replace"),
    "families that lie": lambda: WorkloadMechanism(sdp.Workload({"a": 2}).marginals(0), LIAR, 1.0, 0.1, "replace"),
    "an epsilon whose square is no float": lambda: mvg(shape=(2, 3), sensitivity=1.0, epsilon=5e-324, delta=1e-12),
    "a frame as a verb": lambda: Aggregate(pl.DataFrame({"a": [1.0]})),
    "a tail beyond floats": lambda: RadialLoss.calibrate(3, 2.0, 0.005, 1.0, 1e-6),
    "a pure tail beyond floats": lambda: RadialLoss.calibrate(3, 3.0, 0.001, 3.0, 0.0),
    "a shape that rises": lambda: RadialLoss.estimated(50, 1e300, 0.9999999999999999, 0.1, 0.1),
    "more compositions than floats count": lambda: he_theorem_3(0.1, 1e-6, times=10**120, constant=1e-6),
    "a sum of 2^40 terms": lambda: optimal_homogeneous(0.1, 0.0, times=2**42, index=2**40),
    "more steps than floats count": lambda: plan(epsilon=1.0, delta=0.0, sampling_rate=0.1, steps=10**120),
    "a frame as a scheme": lambda: plan(epsilon=1.0, delta=0.1, sampling_rate=1.0, steps=1, scheme=FRAME),
    "a search that begins above its end": lambda: plan(
        epsilon=1.0, delta=0.1, sampling_rate=0.1, steps=5, smallest=1e300, largest=10.0
    ),
    "a search that is content with anything": lambda: plan(
        epsilon=20.0, delta=1e-3, sampling_rate=1.0, steps=1, relative=1e18
    ),
    "a frame as neighbours": lambda: allocate(MECHANISM, 2, adjacency=FRAME),
    "rates in rows": lambda: trade_off(sdp.GaussianLoss(1.0), np.ones((3, 3))),
    "rates at 2^60 points": lambda: trade_off(sdp.GaussianLoss(1.0), [0.1], points=2**60),
    "a witness at no epsilon": lambda: sdp.subsample(sdp.GaussianLoss(1.0), 0.1).best_shown(LIAR),
    "inputs that lie about their number": lambda: sdp.audit.bits(MECHANISM, neighbours=LIAR),
    "samples for a year": lambda: sdp.audit.distribution(MECHANISM, samples=2**40),
    "a confidence of ten to the 120": lambda: power(epsilon=1.0, delta=0.1, confidence=10**120),
    "a chance of two tensors": lambda: power(epsilon=1.0, delta=0.1, chance=TWO),
    "premises of a tensor": lambda: sdp.Certificate(1.0, 0.1, None, sdp.Bracket(0.0, 0.1), "x", assumptions=TWO),
    "steps before of a tensor": lambda: Account(Step(sdp.GaussianLoss(1.0)), 1.0, 1e-6, 3, taken=TWO),
    "angles of 2^31 coordinates": lambda: AngleWindows.calibrate(dim=2**31, width=0.01),
    "a guide of a tensor": lambda: AdaptiveMixing.calibrate(rows=10, row_bound=0.5, epsilon=1.0, delta=1e-3, plain=TWO),
    "kinds that lie about their number": lambda: Mixed([1.0, 2.0], LIAR),
    "steps too fine to sum": lambda: L1Staircase(0.5, 1e-12, 50),
    "steps beyond floats": lambda: L1Staircase(0.5, 2**31, 1),
    "a share of two tensors": lambda: L1Staircase(0.5, 1.0, 1, gamma=TWO),
    "a radial shape at no accuracy": lambda: RadialLoss.approximate(3, 0.5, 2.0, 0.1, 1e-6, tolerance=TWO),
    "a gap of words": lambda: RadialLoss.approximate(3, 0.5, 2.0, 0.1, 1e-6, gap=pl.Series(["a"])),
    "a radial power beyond floats": lambda: RadialLoss.approximate(50, 2.0, 1e300, 1.0, 0.1, gap=0.5),
    "a step of two tensors": lambda: last_true_near(lambda x: x < 1, 2.0, relative=TWO),
    "an end of two tensors": lambda: first_true_near(lambda x: x > 1, 0.5, TWO),
    "a Laplace law in 10^120 dimensions": lambda: multivariate_laplace(
        dim=10**120, sensitivity=2.0, epsilon=20.0, delta=0.1
    ),
    "a tensor of 2^31 entries in one mode": lambda: tvg(dim=2**31, sensitivity=1.0, epsilon=1.0, delta=1e-3),
    "a law as a mechanism": lambda: make_filter(epsilon=1.0, delta=1e-6, rule="gaussian").charge(
        sdp.Radial(3, 1.0, 2.0, 4.0)
    ),
    "a truth value as a workload": lambda: AnswerMechanism(True, (), False, 1.0, 0.0, "add-remove", 100),  # type: ignore
    "a number as a model": lambda: Training(-2.8, MECHANISM, 3, None, None),  # type: ignore[arg-type]
    "a frame as a state": lambda: Table(("a",), (), state=FRAME),
    "a replay of letters": lambda: replay("1", "ab", adjacency=None, public=TWO),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused_in_words(name: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        CALLS[name]()


def test_small_integers_do_not_wrap() -> None:
    assert make_gaussian(RNG, rows=np.int8(100), dim=6, test_rows=np.int8(100)).x.shape == (200, 6)
    assert RadialLoss.approximate(50, 2.0, np.int8(3), 0.1, 0.1) == RadialLoss.approximate(50, 2.0, 3.0, 0.1, 0.1)


def test_a_heavy_tail_is_calibrated_within_the_range_of_floats() -> None:
    """Radii beyond floats were raised to a power by Python, which refuses where numpy gives infinity."""
    loss = RadialLoss.calibrate(3, 2.0, 0.01, 1.0, 1e-6)
    assert 0.99e-6 < loss.delta(1.0).lower <= loss.delta(1.0).upper <= 1e-6
