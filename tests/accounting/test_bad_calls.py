"""Bad input is refused with the reason."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

import shapedp.accounting as accounting
from shapedp.accounting import ACCOUNTANTS, BareLoss, Plan, Step, compose, plan, subsample
from shapedp.privacy import GaussianLoss

GAUSSIAN = GaussianLoss(1.0)


def mechanism(adjacency: Any) -> Any:
    return SimpleNamespace(loss=GAUSSIAN, sensitivity=SimpleNamespace(adjacency=adjacency))


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan, math.inf, -math.inf, 1 + 1e-15])
def test_rates_outside_the_unit_interval(rate: float) -> None:
    for call in (
        lambda: subsample(GAUSSIAN, rate),
        lambda: accounting.amplify(1.0, 0.0, rate),
        lambda: Step(GAUSSIAN, rate),
    ):
        with pytest.raises(ValueError, match=r"rate must lie in \[0, 1\]"):
            call()


@pytest.mark.parametrize("rate", ["0.1", None, True, [0.1]])
def test_rates_of_the_wrong_type(rate: Any) -> None:
    with pytest.raises(TypeError, match="rate must be a real number"):
        subsample(GAUSSIAN, rate)


@pytest.mark.parametrize(
    ("times", "error"),
    [(1.0, TypeError), (2.5, TypeError), ("3", TypeError), (True, TypeError), (0, ValueError), (-4, ValueError)],
)
def test_counts(times: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="count must be"):
        compose([(GAUSSIAN, times)])
    with pytest.raises(error, match="count must be"):
        Step(GAUSSIAN, 0.5, times)
    with pytest.raises(error, match="steps must be"):
        plan(epsilon=1.0, delta=1e-5, sampling_rate=0.1, steps=times)


def test_what_cannot_be_composed() -> None:
    with pytest.raises(ValueError, match="nothing to compose"):
        compose([])
    for bad in (GAUSSIAN, (GAUSSIAN, 3), "gaussian", None):
        with pytest.raises(TypeError, match="compose takes a list"):
            compose(bad)  # type: ignore[arg-type]
    for item in (3, "x", (GAUSSIAN, 1, 2), object()):
        with pytest.raises(TypeError):
            compose([item])
    for accuracy in (0.0, -1.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="accuracy"):
            compose([GAUSSIAN], accuracy=accuracy)


def test_neighbour_relations() -> None:
    with pytest.raises(ValueError, match=r"cannot mix neighbour relations \(add-remove, replace\)"):
        compose([mechanism("add-remove"), mechanism("replace")])
    with pytest.raises(ValueError, match="cannot mix"):
        compose([mechanism("replace"), subsample(GAUSSIAN, 0.1)])
    with pytest.raises(ValueError, match="cannot mix"):
        Plan((Step(mechanism("zero-out")), Step(mechanism("replace"))))
    with pytest.raises(ValueError, match="adjacency must be one of"):
        compose([mechanism("neighbouring")])
    with pytest.raises(ValueError, match="adjacency must be one of"):
        subsample(GAUSSIAN, 0.1, adjacency="neighbouring")
    with pytest.raises(ValueError, match="names no adjacency"):
        subsample(mechanism(None), 0.1)
    with pytest.raises(ValueError, match="analysed under add-remove or zero-out, not replace"):
        subsample(mechanism("replace"), 0.1)
    with pytest.raises(ValueError, match="analysed under replace"):
        subsample(mechanism("add-remove"), 0.1, "without-replacement")
    with pytest.raises(ValueError, match="scheme must be one of"):
        subsample(GAUSSIAN, 0.1, "shuffle")  # type: ignore[arg-type]
    assert compose([mechanism("replace"), mechanism(None)]) == GaussianLoss(math.sqrt(2), adjacency="replace")


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-0.1, 0.0), (math.nan, 0.0), (math.inf, 0.0), (1.0, -1e-9), (1.0, 1.0), (1.0, math.nan)]
)
def test_bare_guarantees(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError):
        BareLoss(epsilon, delta)


def test_accountants_refuse_what_they_cannot_do() -> None:
    with pytest.raises(ValueError, match="Gaussian losses only"):
        ACCOUNTANTS["gdp"].answer([BareLoss(0.1)], 1e-5)
    with pytest.raises(ValueError, match="bare"):
        ACCOUNTANTS["kov"].answer([GAUSSIAN], 1e-5)
    with pytest.raises(ValueError, match="delta"):
        ACCOUNTANTS["pld"].answer([GAUSSIAN], 1.0)
    with pytest.raises(ValueError, match="nothing to account"):
        ACCOUNTANTS["pld"].answer([], 1e-5)
