"""Composition, amplification and planning, every answer a bracket."""

from shapedp.accounting.accountants import ACCOUNTANTS, Accountant, Answer, he_theorem_3, optimal_homogeneous
from shapedp.accounting.bare import BareLoss
from shapedp.accounting.compose import compose
from shapedp.accounting.composed import ComposedLoss
from shapedp.accounting.interchange import (
    from_dp_accounting,
    from_event,
    from_opendp,
    to_dp_accounting,
    to_event,
    to_opendp,
)
from shapedp.accounting.passes import allocate
from shapedp.accounting.plan import Plan, Planned, PlanningError, Step, plan
from shapedp.accounting.repeat import RepeatedLoss, Repetition
from shapedp.accounting.risk import bayes_risk, membership_advantage, trade_off
from shapedp.accounting.subsample import SubsampledLoss, amplify, amplify_pure, subsample
from shapedp.privacy.losses.allocation import AllocatedLoss
from shapedp.privacy.losses.shuffle import ShuffledLoss

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "AllocatedLoss",
    "Answer",
    "BareLoss",
    "ComposedLoss",
    "Plan",
    "Planned",
    "PlanningError",
    "RepeatedLoss",
    "Repetition",
    "ShuffledLoss",
    "Step",
    "SubsampledLoss",
    "allocate",
    "amplify",
    "amplify_pure",
    "bayes_risk",
    "compose",
    "from_dp_accounting",
    "from_event",
    "from_opendp",
    "he_theorem_3",
    "membership_advantage",
    "optimal_homogeneous",
    "plan",
    "subsample",
    "to_dp_accounting",
    "to_event",
    "to_opendp",
    "trade_off",
]
