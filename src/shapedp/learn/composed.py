"""Several certificates of fits to the same data as one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from shapedp.accounting import Plan
from shapedp.accounting.bare import BareLoss
from shapedp.accounting.plan import Step
from shapedp.accounting.repeat import Repetition
from shapedp.boundary.documents import parse
from shapedp.mechanisms import certify, mechanism_from_json
from shapedp.mechanisms.certify import certify_near
from shapedp.numerics.checks import positive, probability
from shapedp.privacy import Certificate


def steps_of(certificate: Certificate) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """What a certificate describes, as steps of a plan, and what a user vouches for in it.

    A certificate without a description counts as its own bare claim: (epsilon, the upper end of delta), and all that it
    assumes is vouched for.
    """
    if certificate.subject is None:
        return (_bare(certificate),), certificate.assumptions
    subject = mechanism_from_json(dict(certificate.subject))
    return (subject.steps, subject.vouched) if isinstance(subject, Plan) else ((Step(subject),), ())


def _bare(certificate: Certificate) -> Step:
    """What it claims, of whatever was released: nothing is known from below."""
    claimed = certificate.epsilon, min(certificate.bracket.upper, 1.0)
    return Step(BareLoss(*claimed, attained=False, adjacency=certificate.adjacency))


def plan_of(certificates: Sequence[Certificate], vouched: Iterable[str] = ()) -> Plan:
    """All releases that these certificates describe, as one plan.

    A search beside other releases counts as its own claim: its profile is a minimum over Renyi orders, which no grid
    of privacy losses comes near in reasonable time.
    """
    known: dict[int, tuple[tuple[Step, ...], tuple[str, ...]]] = {}
    for one in {id(one): one for one in certificates}.values():
        steps, own = steps_of(one)
        searched = len(certificates) > 1 and any(isinstance(step.subject, Repetition) for step in steps)
        known[id(one)] = ((_bare(one),) if searched else steps), own
    found = [known[id(one)] for one in certificates]
    premises = (*dict.fromkeys((*(one for _, own in found for one in own), *vouched)),)
    counts: dict[str, Step] = {}
    for step in (step for steps, _ in found for step in steps):
        key = json.dumps({**step.to_json(), "count": 1}, sort_keys=True)
        counts[key] = replace(step, count=step.count + (counts[key].count if key in counts else 0))
    return Plan(tuple(counts.values()), premises)


def composed(
    certificates: Sequence[Certificate],
    *,
    scope: str,
    epsilon: float | None = None,
    delta: float | None = None,
    vouched: Iterable[str] = (),
) -> Certificate:
    """The certificate of all these releases together.

    Left out, delta is the sum of the deltas claimed, and epsilon the least that is certified at it, a little above:
    coordinate descent chooses its noise on its way, within rounding of what was fixed beforehand.

    Guarantee: exact composition of what the certificates describe; of different neighbour relations it is refused.
    """
    claimed = math.fsum(one.delta for one in certificates) if delta is None else probability("delta", delta)
    own = certificates[0].epsilon if len(certificates) == 1 and delta is None else None
    text = json.dumps(plan_of(certificates, vouched).to_json())
    made = _certified(text, own if epsilon is None else positive("epsilon", epsilon), claimed)
    return replace(made, secure=all(one.secure is True for one in certificates), scope=scope)


@lru_cache(maxsize=16)  # what was released, by its description: the next fit of the same sizes finds it
def _certified(text: str, epsilon: float | None, delta: float) -> Certificate:
    """The certificate of a plan; without an epsilon, of the least that is certified, a little above."""
    plan = Plan.from_json(parse(text))
    if epsilon is not None:
        return certify(plan, epsilon=epsilon, delta=delta)
    least = plan.epsilon(delta).upper
    if not least < math.inf:
        raise ValueError(f"no epsilon holds at delta {delta:g}: allow a larger delta")
    return certify_near(plan, max(least, 1e-12), delta)
