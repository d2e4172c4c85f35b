"""The register: every claim, and how it is verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from shapedp.papers.register.format import Claim, Verdict, read_claims
from shapedp.papers.register.seal import seals, unsealed

ROOMS = ("classics", "product_noise", "inid_noise", "tensor_noise", "gaussian_mixing", "geodp")


def _register() -> dict[str, Claim]:
    """Every claim by its name, in the order of the seals; claims without a seal come last."""
    order = list(seals())
    known = [claim for room in ROOMS for claim in read_claims(room)]
    known.sort(key=lambda claim: order.index(claim.id) if claim.id in order else len(order))
    return {claim.id: claim for claim in known}


CLAIMS: dict[str, Claim] = _register()

_FOUND_TOLERANCE = 1e-4

__all__ = ["CLAIMS", "Claim", "Finding", "check", "verify_all"]


@dataclass(frozen=True)
class Finding:
    """A claim computed anew: its values, its verdict, and what disagrees with the register.

    >>> check(CLAIMS["baselines/laplace"]).verified
    True
    """

    claim: Claim
    values: Mapping[str, float]
    verdict: Verdict
    disagreements: tuple[str, ...]

    @property
    def verified(self) -> bool:
        """Whether the register says what was computed."""
        return not self.disagreements

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        data = {f.name: getattr(self.claim, f.name) for f in fields(self.claim) if f.name not in ("compute", "judge")}
        return {
            **data,
            "values": dict(self.values),
            "computed_verdict": self.verdict,
            "verified": self.verified,
            "disagreements": list(self.disagreements),
        }


def check(claim: Claim) -> Finding:
    """Recompute a claim and compare every constant of the register with what comes out.

    Parameters
    ----------
    claim: an entry of `CLAIMS`.

    Returns
    -------
    The finding, with the computed values and verdict and a text for each disagreement.

    Guarantee: a changed parameter, printed number, found number or verdict is a disagreement.

    >>> check(CLAIMS["baselines/classic-gaussian-10"]).verdict
    'false'
    """
    values = dict(claim.compute(claim.parameters))
    verdict: Verdict = "holds" if claim.judge(values) else "false"
    problems = [f"verdict: the register says {claim.verdict}, computed {verdict}"] if verdict != claim.verdict else []
    for name, (printed, tolerance) in claim.printed.items():
        if name not in values or not abs(values[name] - printed) <= tolerance * abs(printed):
            problems.append(f"{name}: the paper prints {printed:g}, its formula gives {values.get(name)}")
    for name in sorted(set(values) | set(claim.found)):
        stored, computed = claim.found.get(name), values.get(name)
        if stored is None or computed is None or not abs(stored - computed) <= _FOUND_TOLERANCE * abs(computed):
            problems.append(f"{name}: the register holds {stored}, computed {computed}")
    broken = unsealed(claim)
    return Finding(claim, values, verdict, (*problems, broken) if broken else tuple(problems))


def verify_all(claims: Iterable[Claim] | None = None) -> Iterator[Finding]:
    """Recompute claims one by one.

    Parameters
    ----------
    claims: the claims to compute; all of the register by default.

    Returns
    -------
    An iterator over their findings, each computed when it is asked for.

    >>> [finding.verified for finding in verify_all([CLAIMS["baselines/adassp"]])]
    [True]
    """
    for claim in CLAIMS.values() if claims is None else claims:
        yield check(claim)
