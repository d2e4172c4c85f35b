"""To and from `dp_accounting`'s events: what was run, without a number for what it is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.compose import ComposedLoss, compose, loss_from
from shapedp.accounting.plan import Plan
from shapedp.accounting.subsample import SubsampledLoss, subsample
from shapedp.privacy import GaussianLoss, LaplaceLoss, Loss
from shapedp.privacy.conversions import rdp_to_delta, zcdp_to_rdp
from shapedp.privacy.losses.stated import StatedLoss

_DOWN = 1 - 2.0**-50
_ORDERS = tuple(1 + 2.0 ** (i / 4) for i in range(-40, 49))


def _events() -> Any:
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError("dp_accounting is needed for this: pip install 'shapedp[accounting]'") from error
    return dp_event


def to_event(subject: Any) -> Any:
    """The `DpEvent` of a mechanism, a loss or a plan.

    Guarantee: noise multipliers are rounded down. What no event describes exactly is refused: hand over its
    privacy-loss distribution instead (`to_dp_accounting`).
    """
    if isinstance(subject, Plan):
        events = _events()
        steps = [events.SelfComposedDpEvent(to_event(step.loss), step.count) for step in subject.steps]
        return steps[0] if len(steps) == 1 else events.ComposedDpEvent(steps)
    return _to_event(loss_from(subject))


@singledispatch
def _to_event(loss: Loss) -> Any:
    raise TypeError(
        f"no event of dp_accounting describes a {type(loss).__name__} exactly: hand over its privacy-loss distribution "
        "with to_dp_accounting"
    )


@_to_event.register
def _gaussian(loss: GaussianLoss) -> Any:
    return _events().GaussianDpEvent(1 / loss.mu * _DOWN)


@_to_event.register
def _laplace(loss: LaplaceLoss) -> Any:
    if loss.ratios.size > 1 or loss.ratios[0] not in (0.0, loss.pure):
        raise TypeError("dp_accounting's Laplace event is of one coordinate: use to_dp_accounting")
    return _events().LaplaceDpEvent(1 / loss.pure * _DOWN)


@_to_event.register
def _sampled(loss: SubsampledLoss) -> Any:
    if loss.scheme != "poisson":
        raise TypeError("dp_accounting's sampling without replacement needs a data set size: use to_dp_accounting")
    return _events().PoissonSampledDpEvent(loss.rate, to_event(loss.base))


@_to_event.register
def _composed(loss: ComposedLoss) -> Any:
    if loss.certain:
        raise TypeError("no event describes a failure probability: use to_dp_accounting")
    return _events().ComposedDpEvent([_events().SelfComposedDpEvent(to_event(part), n) for part, n in loss.parts])


def from_event(event: Any) -> Loss:
    """The loss of a `DpEvent`, under add-or-remove neighbours as that library has it.

    Guarantee: exact for Gaussian and Laplace noise, their Poisson samples and compositions; an upper bound for
    randomised response of more than two answers and for zCDP. Anything else is refused.
    """
    _events()
    name = type(event).__name__
    if name not in _FROM:
        raise TypeError(f"{name} is not understood here; there are {', '.join(_FROM)}")
    return _FROM[name](event)


def _from_response(event: Any) -> Loss:
    other = event.noise_parameter / event.num_buckets
    return BareLoss(math.log((1 - event.noise_parameter + other) / other) * (1 + 2.0**-48), 0.0)


def zcdp_loss(rho: float, xi: float = 0.0) -> Loss:
    """(xi, rho)-zCDP, of whatever mechanism: the least delta over Renyi orders."""

    def curve(epsilon: float) -> float:
        return min(rdp_to_delta(a, (zcdp_to_rdp(rho, a) + xi) * (1 + 2.0**-50), epsilon) for a in _ORDERS)

    return StatedLoss(curve)


_FROM: dict[str, Callable[[Any], Loss]] = {
    "GaussianDpEvent": lambda e: GaussianLoss(1 / e.noise_multiplier * (1 + 2.0**-50)),
    "LaplaceDpEvent": lambda e: LaplaceLoss(1 / e.noise_multiplier * (1 + 2.0**-50)),
    "RandomizedResponseDpEvent": _from_response,
    "ZCDpEvent": lambda e: zcdp_loss(float(e.rho), float(e.xi)),
    "PoissonSampledDpEvent": lambda e: subsample(from_event(e.event), e.sampling_probability, adjacency="add-remove"),
    "SelfComposedDpEvent": lambda e: compose([(from_event(e.event), e.count)]),
    "ComposedDpEvent": lambda e: compose([from_event(part) for part in e.events]),
}
