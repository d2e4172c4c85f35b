"""What a mechanism is worth: certificates computed, and computed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from shapedp._papers import PROVIDED, published
from shapedp.boundary.documents import described
from shapedp.boundary.refusals import refusal
from shapedp.mechanisms.base import KINDS, certificate_for
from shapedp.numerics.checks import positive, probability
from shapedp.privacy import Bracket, Certificate, Loss, assumptions_of, certificate_of
from shapedp.privacy.assumptions import UNSTATED

__all__ = ["KINDS", "certify", "mechanism_from_json", "verify"]

LATER = {  # modules of this package that are loaded when one of these names is asked for, or one of their kinds is read
    "shapedp.mechanisms.adaptive_mixing": ("AdaptiveMixing",),
    "shapedp.mechanisms.angles": ("AngleWindows", "MeanAngles"),
    "shapedp.mechanisms.mixing": ("Mixing", "Sketch"),
    "shapedp.mechanisms.objective": ("ObjectivePerturbation",),
    "shapedp.mechanisms.selection": ("KeySelection", "Quantiles", "Selected", "Selection", "quantiles", "top_k"),
}
_REPEATABLE = 1e-9  # how far the ends of a bracket may differ from machine to machine, relatively
_NARROW = 1e-6  # a bracket this narrow may be off by its own width besides


def class_of(kind: object) -> Any:
    """The class of the mechanisms of this kind, None if there is none. Packages above add theirs when loaded."""
    if not isinstance(kind, str):
        return None
    if kind in PROVIDED["mechanism"]:
        return published("mechanism", kind)
    for package in (*LATER, "shapedp.accounting", "shapedp.workloads"):
        if kind not in KINDS:
            import_module(package)
    return KINDS.get(kind)


@described
def mechanism_from_json(data: Any) -> Any:
    """The mechanism that its `to_json` wrote.

    Parameters
    ----------
    data: a JSON object.

    Returns
    -------
    The mechanism. Raises ValueError where the object does not describe one.

    Examples
    --------
    >>> import shapedp as sdp
    >>> made = sdp.calibrate("gaussian", sdp.L2(1.0, dim=3), epsilon=1.0, delta=1e-6)
    >>> mechanism_from_json(made.to_json()).to_json() == made.to_json()
    True
    """
    kind = data.get("kind") if isinstance(data, dict) else None
    found = class_of(kind)
    if found is None:
        known = dict.fromkeys((*KINDS, *PROVIDED["mechanism"]))
        raise ValueError(f"not a mechanism: the field kind must read one of {', '.join(known)}, got {kind!r}")
    return found.from_json(data)


def certify(subject: Any, *, epsilon: float, delta: float) -> Certificate:
    """The computed certificate of a claim about a mechanism (anything with a `loss`) or a loss.

    Parameters
    ----------
    subject: the mechanism or the loss.
    epsilon, delta: the claim.

    Returns
    -------
    The certificate, with the verdict and a bracket around the exact delta.

    Examples
    --------
    >>> import shapedp as sdp
    >>> certify(sdp.GaussianLoss(1.0), epsilon=1.0, delta=1e-6).verdict
    'refuted'
    """
    if isinstance(subject, Loss):
        return certificate_of(subject, epsilon, delta, assumptions=assumptions_of(subject))
    if not isinstance(getattr(subject, "loss", None), Loss):
        raise TypeError(f"certify takes a mechanism or a loss, got {type(subject).__name__}")
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    own = getattr(subject, "certificate", None)
    if isinstance(own, Certificate) and (own.epsilon, own.delta) == (epsilon, delta):
        return own
    return certificate_for(subject, epsilon, delta)


def certify_near(subject: Any, epsilon: float, delta: float) -> Certificate:
    """The certificate of an epsilon a little above, where it is certified: another grid may put delta higher there."""
    for room in (1e-9, 1e-6, 1e-4, 1e-2):
        found = certify(subject, epsilon=epsilon * (1 + room), delta=delta)
        if found.verdict == "certified":
            break
    return found


def _compare(stated: Any, made: Any, where: str) -> None:
    """Refuses a description with a field that was not read, or read as something else."""
    if isinstance(stated, Mapping) and isinstance(made, Mapping):
        for name, value in stated.items():
            if name not in made:
                raise ValueError(f"the certificate's {where} has a field {name!r} that describes nothing")
            _compare(value, made[name], f"{where}.{name}")
    elif isinstance(stated, list | tuple) and isinstance(made, list | tuple) and len(stated) == len(made):
        for value, own in zip(stated, made, strict=True):
            _compare(value, own, where)
    elif isinstance(stated, bool) is not isinstance(made, bool) or stated != made:
        raise ValueError(f"the certificate's {where} reads {stated!r}, where its mechanism has {made!r}")


def _agree(one: Bracket, other: Bracket) -> bool:
    """Whether both ends are the same, up to what another machine's rounding may change; [0, 1] states nothing."""
    if (one.lower, one.upper) == (0.0, 1.0):
        return True
    room = _REPEATABLE * other.upper + (other.gap if other.relative_gap < _NARROW else 0.0)
    return abs(one.upper - other.upper) <= room and abs(one.lower - other.lower) <= room


def verify(certificate: Certificate) -> Certificate:
    """The certificate computed again from the mechanism it describes, within the scope that it states.

    Guarantee: raises ValueError if the two brackets do not overlap, that is if one of them is false; if the neighbour
    relation stated is not the one that the mechanism and its loss carry; if the description says anything that the
    mechanism made from it does not; and, for a certificate of this version, if the bracket stated is not the one that
    follows from the description, or if the assumptions stated are not those that the mechanism implies. What nothing
    here can tell, such as the sensitivity itself, is taken as stated.

    Parameters
    ----------
    certificate: one that describes its mechanism.

    Returns
    -------
    The certificate computed anew.

    Examples
    --------
    >>> import shapedp as sdp
    >>> made = sdp.calibrate("gaussian", sdp.L2(1.0, dim=3), epsilon=1.0, delta=1e-6)
    >>> verify(made.certificate).verdict
    'certified'
    """
    if certificate.subject is None:
        raise ValueError("this certificate does not describe its mechanism, so nothing can be recomputed")
    mechanism = mechanism_from_json(dict(certificate.subject))
    _compare(dict(certificate.subject), mechanism.to_json(), "subject")
    again = certify(mechanism, epsilon=certificate.epsilon, delta=certificate.delta)
    if again.adjacency != certificate.adjacency:
        raise ValueError(f"the certificate says {certificate.adjacency!r}, its mechanism {again.adjacency!r}")
    if certificate.assumptions not in (again.assumptions, UNSTATED):
        raise ValueError("the certificate does not state the assumptions that its mechanism rests on")
    stated, computed = certificate.bracket, again.bracket
    if stated.lower > computed.upper or computed.lower > stated.upper:
        raise ValueError(f"the stated bracket {stated} contradicts the recomputed {computed}")
    if certificate.version == again.version and certificate.method != again.method:
        raise ValueError(f"the certificate says {certificate.method!r}, its mechanism has a {again.method}")
    if certificate.version == again.version and mechanism.loss.settled and not _agree(stated, computed):
        raise ValueError(refusal("mechanisms", "edited", stated=stated, computed=computed))
    return replace(again, scope=certificate.scope) if certificate.scope else again
