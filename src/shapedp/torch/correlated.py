"""The choice of noise over time for a plan: by the error at the claim, from what is public."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from shapedp.accounting import PlanningError
from shapedp.accounting import plan as planned
from shapedp.numerics.checks import one_of
from shapedp.torch.plan import TrainingPlan
from shapedp.torch.refusals import refusal
from shapedp.workloads import Banded, Buffered, Correlation, StepSums, Toeplitz

Kind = Literal["banded", "blt", "auto"]
KINDS: tuple[Kind, ...] = ("banded", "blt", "auto")
MOST_BANDS = 64
_DENSE = 200  # steps up to which bands are optimised entry by entry
_ROUGH = 1e-2


def error_of(plan: TrainingPlan, workload: StepSums) -> float:
    """The squared error of the workload's answers under a plan's noise, in units of the clip."""
    kept = plan.correlated
    reach, error = (
        (1.0, workload.squares(_once(workload.steps))) if kept is None else (kept.reach, kept.error(workload))
    )
    return plan.scale**2 * reach**2 * error


def chosen(kind: str, plain: Callable[[Correlation | None], TrainingPlan], workload: StepSums, separation: int) -> Any:
    """The plan of least error among bands of 1, 2, 4, ... up to 64, or buffers, or both; `plain` makes a plan.

    `separation` is the number of batches in the data. Independent noise is always among what is compared, at the claim
    of the final certificates, so that the choice never has more error than that.
    """
    one_of("correlated", kind, KINDS)
    first = plain(None)
    if first.epsilon is None:
        raise ValueError(refusal("correlated-needs-claim"))
    found: list[Correlation] = [] if kind == "blt" else _bands(workload, separation)
    rough = sorted(found, key=lambda one: _rough(first, one) ** 2 * one.error(workload))
    best: list[TrainingPlan] = [first, *(plain(one) for one in rough[:2])]
    if kind != "banded":
        best.append(plain(Buffered.best(workload, -(-first.records // first.batch_size))))
    return min(best, key=lambda one: error_of(one, workload))


def _bands(workload: StepSums, separation: int) -> list[Correlation]:
    most, kind = min(separation, workload.steps, MOST_BANDS), Banded if workload.steps <= _DENSE else Toeplitz
    return [kind.best(workload, 2**power) for power in range(1, most.bit_length())]


def _rough(plan: TrainingPlan, kept: Correlation) -> float:
    """About the noise scale that a plan with these bands would have."""
    assert plan.epsilon is not None
    assert plan.delta is not None
    rate = min(kept.separation * plan.batch_size / plan.records, 1.0)
    try:
        return planned(
            epsilon=plan.epsilon, delta=plan.delta, sampling_rate=rate, steps=kept.units, relative=_ROUGH
        ).scale
    except PlanningError:
        return float("inf")


def _once(steps: int) -> Any:
    import numpy as np

    return np.eye(1, steps)[0]
