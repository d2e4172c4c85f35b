"""To and from `dp_accounting`'s events: what was run, without a number for what it is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any, Literal

import numpy as np

from shapedp.accounting.compose import compose, loss_from
from shapedp.accounting.composed import ComposedLoss
from shapedp.accounting.plan import Plan
from shapedp.accounting.response import ResponseLoss
from shapedp.accounting.subsample import SubsampledLoss, subsample
from shapedp.numerics.checks import nonnegative, one_of
from shapedp.numerics.outward import ABOVE_8, BELOW_8
from shapedp.privacy import GaussianLoss, LaplaceLoss, Loss
from shapedp.privacy.conversions import rdp_curve_to_delta, zcdp_to_rdp
from shapedp.privacy.losses.base import adjacency_of
from shapedp.privacy.losses.stated import StatedLoss

Read = Literal["add-remove", "zero-out"]
READ: tuple[Read, ...] = ("add-remove", "zero-out")
_UP, _DOWN = ABOVE_8, BELOW_8
_ORDERS = tuple(1 + 2.0 ** (i / 4) for i in range(-40, 49))
_OTHER = "hand over its privacy-loss distribution with to_dp_accounting"


def _events() -> Any:
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError("dp_accounting is needed for this: pip install 'shapedp[accounting]'") from error
    return dp_event


def to_event(subject: Any, *, adjacency: Read = "add-remove") -> Any:
    """The `DpEvent` of a mechanism, a loss or a plan, to be read under the neighbour relation `adjacency`.

    An event names no relation. Accountants read it under "add-remove" unless told otherwise; "zero-out" is their
    REPLACE_SPECIAL. A subject of another relation is refused, and so is "replace", which the other library's
    accountants do not agree on: one doubles the sensitivity of Gaussian noise, another does not.

    Guarantee: noise multipliers are rounded down. What no event describes is refused: hand over its privacy-loss
    distribution instead (`to_dp_accounting`). Laplace noise on a grid is described by the continuous noise, a little
    smaller, that dominates it; so is a `LaplaceLoss` that was stated as a bound. Such an event has a lower end of its
    own when it is read back: the noise's, which the bound does not promise.

    Example:
        >>> from shapedp import GaussianLoss
        >>> to_event(GaussianLoss(0.5))
        GaussianDpEvent(noise_multiplier=1.9999999999999982)
    """
    one_of("adjacency", adjacency, READ)
    own = adjacency_of(subject)
    if own is not None and own != adjacency:
        remedy = "pass adjacency='zero-out' and compose under REPLACE_SPECIAL" if own == "zero-out" else _OTHER
        raise ValueError(f"an event that is read under {adjacency!r} neighbours cannot describe {own!r} ones: {remedy}")
    if isinstance(subject, Plan):
        return _repeated([(_to_event(step.loss), step.count) for step in subject.steps])
    return _to_event(loss_from(subject))


def _repeated(pairs: list[tuple[Any, int]]) -> Any:
    events = [_events().SelfComposedDpEvent(event, n) for event, n in pairs]
    return events[0] if len(events) == 1 else _events().ComposedDpEvent(events)


@singledispatch
def _to_event(loss: Loss) -> Any:
    raise TypeError(f"no event of dp_accounting describes a {type(loss).__name__} exactly: {_OTHER}")


@_to_event.register
def _gaussian(loss: GaussianLoss) -> Any:
    return _events().GaussianDpEvent(_multiplier(loss.mu))


@_to_event.register
def _laplace(loss: LaplaceLoss) -> Any:
    if loss.ratios.size > 1 or loss.dominating == math.inf > loss.pure:
        raise TypeError(f"dp_accounting's Laplace event is of continuous noise on one coordinate: {_OTHER}")
    return _events().LaplaceDpEvent(_multiplier(loss.dominating))


def _multiplier(ratio: float) -> float:
    """1/ratio, rounded down."""
    if not ratio > 1e-300:
        raise TypeError("nobody can change what this releases: it is no event at all, leave it out")
    return 1 / ratio * _DOWN


@_to_event.register
def _sampled(loss: SubsampledLoss) -> Any:
    if loss.scheme != "poisson":
        raise TypeError(f"dp_accounting's sampling without replacement needs a data set size: {_OTHER}")
    return _events().PoissonSampledDpEvent(loss.rate, _to_event(loss.base))


@_to_event.register
def _composed(loss: ComposedLoss) -> Any:
    if loss.certain:
        raise TypeError(f"no event describes a failure probability: {_OTHER}")
    return _events().ComposedDpEvent([_events().SelfComposedDpEvent(_to_event(part), n) for part, n in loss.parts])


def from_event(event: Any, *, adjacency: Read = "add-remove") -> Loss:
    """The loss of a `DpEvent`, under add-or-remove neighbours unless told otherwise, as that library has it.

    Randomised response is of exchanged records ("replace") there, whatever is asked for.

    Guarantee: exact for Gaussian and Laplace noise, their Poisson samples and compositions, and for randomised
    response; an upper bound for zCDP. Anything else is refused.

    Example:
        >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
        >>> round(from_event(PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))).epsilon(1e-6).upper, 2)
        2.18
    """
    _events()
    return _from(event, one_of("adjacency", adjacency, READ))


def _from(event: Any, adjacency: Read) -> Loss:
    name = type(event).__name__
    if name not in _FROM:
        raise TypeError(f"{name} is not understood here; there are {', '.join(_FROM)}")
    return _FROM[name](event, adjacency)


def _from_gaussian(event: Any, adjacency: Read) -> Loss:
    least, mu = _ratio(event)
    return GaussianLoss(mu, least, adjacency=adjacency)


def _from_laplace(event: Any, adjacency: Read) -> Loss:
    least, pure = _ratio(event)
    return LaplaceLoss(pure, np.array([least]), worst=True, adjacency=adjacency)


def _ratio(event: Any) -> tuple[float, float]:
    """Bounds on 1/noise multiplier; infinite without noise."""
    multiplier = nonnegative("noise_multiplier", event.noise_multiplier)
    if not multiplier > 1e-300:
        return math.inf, math.inf
    return 1 / multiplier * _DOWN, 1 / multiplier * _UP


def zcdp_loss(rho: float, xi: float = 0.0, adjacency: str | None = None) -> Loss:
    """(xi, rho)-zCDP, of whatever mechanism: the least delta over Renyi orders."""
    rho, xi = nonnegative("rho", rho), nonnegative("xi", xi)
    curve = rdp_curve_to_delta({alpha: (zcdp_to_rdp(rho, alpha) + xi) * _UP for alpha in _ORDERS})
    return StatedLoss(curve, adjacency=adjacency)


_FROM: dict[str, Callable[[Any, Read], Loss]] = {
    "NoOpDpEvent": lambda _, near: GaussianLoss(0.0, adjacency=near),
    "GaussianDpEvent": _from_gaussian,
    "LaplaceDpEvent": _from_laplace,
    "RandomizedResponseDpEvent": lambda e, _: ResponseLoss(e.noise_parameter, e.num_buckets, adjacency="replace"),
    "ZCDpEvent": lambda e, near: zcdp_loss(float(e.rho), float(e.xi), near),
    "PoissonSampledDpEvent": lambda e, near: subsample(_from(e.event, near), e.sampling_probability),
    "SelfComposedDpEvent": lambda e, near: compose([(_from(e.event, near), e.count)]),
    "ComposedDpEvent": lambda e, near: compose([_from(part, near) for part in e.events]),
}
