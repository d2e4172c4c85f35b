"""What a mechanism is worth: certificates computed, and computed again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shapedp.mechanisms.adaptive_mixing import AdaptiveMixing
from shapedp.mechanisms.additive import Additive
from shapedp.mechanisms.mixing import Mixing
from shapedp.mechanisms.objective import ObjectivePerturbation
from shapedp.numerics.checks import positive, probability
from shapedp.privacy import Certificate, Deferred, Loss, certificate_of

KINDS: dict[str, Any] = {
    "additive": Additive,
    "mixing": Mixing,
    "adaptive-mixing": AdaptiveMixing,
    "objective": ObjectivePerturbation,
}


def mechanism_from_json(data: Any) -> Any:
    """The mechanism that its `to_json` wrote."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind not in KINDS:
        raise ValueError(f"not a mechanism: the field kind must read one of {', '.join(KINDS)}, got {kind!r}")
    return KINDS[kind].from_json(data)


def certify(subject: Any, *, epsilon: float, delta: float) -> Certificate:
    """The computed certificate of a claim about a mechanism (anything with a `loss`) or a loss."""
    if isinstance(subject, Loss):
        return certificate_of(subject, epsilon, delta)
    if not isinstance(getattr(subject, "loss", None), Loss):
        raise TypeError(f"certify takes a mechanism or a loss, got {type(subject).__name__}")
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    own = getattr(subject, "certificate", None)
    if isinstance(own, Certificate) and (own.epsilon, own.delta) == (epsilon, delta):
        return own
    sensitivity = getattr(subject, "sensitivity", None)
    description = Deferred(subject.to_json) if hasattr(subject, "to_json") else None
    adjacency = getattr(sensitivity, "adjacency", None) or getattr(subject, "adjacency", None)
    reason = getattr(subject, "reason", "")
    return certificate_of(subject.loss, epsilon, delta, adjacency=adjacency, subject=description, reason=reason)


def verify(certificate: Certificate) -> Certificate:
    """The certificate computed again from the mechanism it describes, within the scope that it states.

    Guarantee: raises ValueError if the two brackets do not overlap, that is if one of them is false.
    """
    if certificate.subject is None:
        raise ValueError("this certificate does not describe its mechanism, so nothing can be recomputed")
    mechanism = mechanism_from_json(dict(certificate.subject))
    again = certify(mechanism, epsilon=certificate.epsilon, delta=certificate.delta)
    if again.adjacency != certificate.adjacency:
        raise ValueError(f"the certificate says {certificate.adjacency!r}, its mechanism {again.adjacency!r}")
    stated, computed = certificate.bracket, again.bracket
    if stated.lower > computed.upper or computed.lower > stated.upper:
        raise ValueError(f"the stated bracket {stated} contradicts the recomputed {computed}")
    return replace(again, scope=certificate.scope) if certificate.scope else again
