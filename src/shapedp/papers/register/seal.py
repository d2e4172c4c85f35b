"""The seal of each claim: a digest of its constants, so that none can change unnoticed.

Computing a claim anew shows most changes; the seal also shows those to which the outcome is insensitive.
`python -c "from shapedp.papers.register.seal import write; write()"` writes seals.json after a deliberate change.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from shapedp.boundary import documents
from shapedp.boundary.files import write_bytes
from shapedp.papers.register.format import Claim

SEALS = Path(__file__).with_name("seals.json")


def digest(claim: Claim) -> str:
    """A digest of everything the register states about a claim."""
    constants = {name: getattr(claim, name) for name in ("statement", "source", "verdict", "witness", "about")}
    for name in ("parameters", "found"):
        constants[name] = {key: repr(value) for key, value in getattr(claim, name).items()}
    constants["printed"] = {key: [repr(part) for part in pair] for key, pair in claim.printed.items()}
    constants["judged"] = [getattr(claim.compute, "__qualname__", ""), *map(str, getattr(claim.judge, "args", ()))]
    if claim.readings:
        constants["readings"] = dict(claim.readings)
    return hashlib.sha256(json.dumps(constants, sort_keys=True).encode()).hexdigest()[:16]


def seals() -> dict[str, str]:
    """The seal of each claim, in the order of the register."""
    stored: dict[str, str] = documents.read(SEALS)
    return stored


def unsealed(claim: Claim) -> str | None:
    """Why a claim does not carry its seal, or None if it does."""
    seal = seals().get(claim.id)
    if seal is None:
        return "seal: the claim has none"
    return None if seal == digest(claim) else "seal: a constant of the register has changed"


def write() -> None:
    """Seal the register as it stands."""
    from shapedp.papers.register.register import CLAIMS

    text = json.dumps({name: digest(claim) for name, claim in CLAIMS.items()}, indent=1) + "\n"
    write_bytes(SEALS, text.encode())
