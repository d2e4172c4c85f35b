"""One run of a search: what it may spend, how its private steps share that, and whether a fit stayed within it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from shapedp.accounting.repeat import Repetition, deciding_orders, gaussian_run
from shapedp.boundary.refusals import refusal
from shapedp.learn.composed import composed, plan_of
from shapedp.learn.pipelines import PrivatePipeline
from shapedp.learn.walk import STEPS, checked
from shapedp.mechanisms import certify
from shapedp.mechanisms.objective import FAR
from shapedp.numerics import SearchError
from shapedp.numerics.outward import BELOW_8192, BELOW_WIDER
from shapedp.privacy import Certificate, GaussianLoss
from shapedp.sensitivity import Adjacency

MISSED = 16 * FAR  # what a run may be off, in total variation
TAKEN = frozenset({"epsilon", "delta", "adjacency", "random_state", "unsafe"})
_TRIES = 40
_FAR_OFF = 4.0  # what an infinite divergence counts as: the next try spends half


@dataclass(frozen=True)
class Budget:
    """What one run may spend: the Renyi divergence of `run` at the two `orders` that decide the claim of the search.

    Guarantee: the best of K runs that stay within it, up to `MISSED` in total variation, has the `certificate`.
    """

    run: GaussianLoss
    orders: tuple[float, ...]
    epsilon: float
    delta: float
    certificate: Certificate

    def stated(self, vouched: tuple[str, ...]) -> Certificate:
        """The certificate, with what a user vouches for among its assumptions."""
        if not vouched:
            return self.certificate
        claim = {"epsilon": self.certificate.epsilon, "delta": self.certificate.delta}
        return composed([self.certificate], scope=self.certificate.scope, vouched=vouched, **claim)

    def over(self, certificates: Sequence[Certificate]) -> float:
        """How many times what a run may spend a fit has spent; at most 1 if it is within, infinite if not known."""
        if any(one.subject is None for one in certificates):
            return math.inf
        loss = plan_of(certificates).loss
        if isinstance(loss, GaussianLoss):
            return 1.0 if loss.mu <= self.run.mu else (loss.mu / self.run.mu) ** 2
        parts = loss.pieces()
        if parts.slip or parts.certain or parts.spoilt or not parts.failure + parts.total_variation <= MISSED:
            return math.inf
        try:
            return max(self._share(parts, order) for order in self.orders)
        except ValueError:
            return math.inf

    def _share(self, parts: Any, order: float) -> float:
        spent = math.fsum(n * one.renyi(order).upper for one, n in parts.parts) + parts.log_ratio
        return min(math.nextafter(spent, math.inf) / (self.run.renyi(order).lower * BELOW_8192), _FAR_OFF)


@lru_cache(maxsize=64)  # no data enter
def budget(gamma: float, epsilon: float, delta: float, adjacency: Adjacency) -> Budget:
    """What one run may spend, its claim, and the certificate of all runs together."""
    try:
        run = gaussian_run(gamma, epsilon, delta * BELOW_WIDER)  # room for the rounding of whoever checks it
    except SearchError:
        raise ValueError(refusal("learn", "no-run-small-enough", epsilon=epsilon, delta=delta)) from None
    orders = deciding_orders(run, gamma, epsilon)
    while (found := _certified(run, gamma, adjacency, orders, epsilon, delta)).verdict != "certified":
        run = GaussianLoss(run.mu * BELOW_8192)  # what runs may be off takes a little
    return Budget(run, orders, *_claim(run, delta), found)


def _certified(run: GaussianLoss, gamma: float, adjacency: Adjacency, orders: Any, epsilon: float, delta: float) -> Any:
    return certify(Repetition(run, gamma, adjacency, orders, MISSED), epsilon=epsilon, delta=delta)


def _claim(run: GaussianLoss, delta: float) -> tuple[float, float]:
    """A claim whose Gaussian has at most the mu of a run."""
    for smaller in (delta * 10.0**-k for k in range(30)):
        own = run.epsilon(smaller).lower
        if own > 0:
            return own, smaller
    raise ValueError("delta is too large for a search: ask for a smaller one")


class Template:
    """An estimator or a pipeline that a search fits copies of, with the parameters of its private steps."""

    def __init__(self, estimator: Any) -> None:
        self.is_pipeline = type(estimator) in (Pipeline, PrivatePipeline)
        self.estimator = PrivatePipeline(estimator.steps) if type(estimator) is Pipeline else estimator
        self.last = f"{estimator.steps[-1][0]}__" if self.is_pipeline else ""
        self.model = estimator.steps[-1][1] if self.is_pipeline else estimator
        self.vouched: dict[str, None] = {}
        self._factors: dict[int, float] = {}

    def check(self, candidates: Sequence[dict[str, Any]]) -> None:
        """Refuse what is not private, and candidates that set what the search sets, before any data are seen."""
        for one in candidates:
            taken = sorted({name.rpartition("__")[2] for name in one} & TAKEN)
            made = self.with_parameters(one)
            takes = made.get_params() if isinstance(made, BaseEstimator) else {}
            if taken:
                raise ValueError(f"candidates cannot set {', '.join(taken)}: the search does")
            if self.is_pipeline:
                self.vouched |= dict.fromkeys(checked(made).vouched)
            elif type(made) not in STEPS:
                self.vouched[refusal("learn", "vouched-class", kind=type(made).__qualname__).strip()] = None
            if not self.is_pipeline and not {"epsilon", "delta", "adjacency"} <= set(takes):
                raise ValueError(refusal("learn", "not-private", kind=type(self.model).__name__))

    def with_parameters(self, chosen: dict[str, Any]) -> Any:
        """A copy with the parameters of a candidate; steps among them are copied too, or runs would share them."""
        return clone(self.estimator).set_params(**{name: clone(one, safe=False) for name, one in chosen.items()})

    def classes(self, chosen: dict[str, Any]) -> Any:
        """The classes that a candidate names; () where it is no classifier."""
        return chosen.get(f"{self.last}classes", getattr(self.model, "classes", ()))

    def fitted(self, number: int, chosen: dict[str, Any], own: Budget, shared: dict[str, Any], parts: Any) -> Any:
        """A copy with the parameters of a candidate, fitted within the budget of a run.

        A fit that spends more is thrown away unseen and tried again with a smaller claim; certificates decide that.
        """
        for _ in range(_TRIES):
            model = self.with_parameters(chosen)
            factor = self._factors.get(number, 1.0)
            model.set_params(**dict(self._settings(model, own, factor, shared)))
            walk = model.fit_steps(*parts) if self.is_pipeline else None
            spent = model.fit(*parts).privacy_ if walk is None else walk.released[0]
            over = 1.0 if shared["unsafe"] else own.over([spent] if walk is None else walk.released)
            if over <= 1 or over == math.inf:
                break
            self._factors[number] = factor * min(0.98, 0.99 / math.sqrt(over))
        if not over <= 1 or spent.adjacency != shared["adjacency"]:
            kind = type(self.model).__name__
            raise ValueError(
                refusal("learn", "run-not-certified", kind=kind, mu=own.run.mu, adjacency=shared["adjacency"])
            )
        return model

    def _settings(self, model: Any, own: Budget, factor: float, shared: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The claims and settings of all private steps; several share the mu^2 of a run as their own claims do."""
        private = checked(model).private if self.is_pipeline else [("", model)]
        sizes = [_mu(step) if len(private) > 1 else 1.0 for _, step in private]
        for (name, step), size in zip(private, sizes, strict=True):
            part = GaussianLoss(own.run.mu * size / math.sqrt(math.fsum(s * s for s in sizes)) * BELOW_8192)
            epsilon, delta = (own.epsilon, own.delta) if len(private) == 1 else _claim(part, own.delta)
            prefix = f"{name}__" if name else ""
            yield f"{prefix}epsilon", epsilon * factor
            yield f"{prefix}delta", delta
            for setting in ("adjacency", "random_state"):
                yield f"{prefix}{setting}", shared[setting]
            if hasattr(step, "progress"):
                yield f"{prefix}progress", False
        if self.is_pipeline:
            yield "verbose", False
        if shared["classes"] is not None and getattr(self._last(model), "classes", ()) is None:
            yield f"{self.last}classes", shared["classes"]

    def kept(self, model: Any, certificate: Certificate) -> Any:
        """The model that is shown, with what it cost to find it in place of what its own fit spent."""
        if self.is_pipeline:
            return model.seal(certificate, checked(model, fitted=True), (certificate,))
        model.privacy_ = certificate
        return model

    def _last(self, model: Any) -> Any:
        return model.steps[-1][1] if self.is_pipeline else model


def _mu(step: Any) -> float:
    if not step.delta > 0:
        raise ValueError("delta must be > 0 in every private step of a pipeline that is searched")
    return GaussianLoss.calibrate(step.epsilon, step.delta).mu
