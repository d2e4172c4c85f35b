"""The seal of each claim: a digest of its constants, so that none can change unnoticed.

Computing a claim anew shows most changes; the seal also shows those to which the outcome is insensitive.
`python -c "from shapedp.claims.seal import write; write()"` writes seals.json after a deliberate change.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from shapedp.boundary import documents
from shapedp.boundary.files import write_bytes
from shapedp.claims.format import Claim

SEALS = Path(__file__).with_name("seals.json")


def digest(claim: Claim) -> str:
    """A digest of everything the register states about a claim."""
    constants = {
        "statement": claim.statement,
        "source": claim.source,
        "parameters": {key: repr(value) for key, value in claim.parameters.items()},
        "printed": {key: [repr(part) for part in pair] for key, pair in claim.printed.items()},
        "found": {key: repr(value) for key, value in claim.found.items()},
        "verdict": claim.verdict,
        "witness": claim.witness,
        "about": claim.about,
    }
    return hashlib.sha256(json.dumps(constants, sort_keys=True).encode()).hexdigest()[:16]


def unsealed(claim: Claim) -> str | None:
    """Why a claim does not carry its seal, or None if it does."""
    seals = documents.read(SEALS)
    if claim.id not in seals:
        return "seal: the claim has none"
    return None if seals[claim.id] == digest(claim) else "seal: a constant of the register has changed"


def write() -> None:
    """Seal the register as it stands."""
    from shapedp.claims.register import CLAIMS

    text = json.dumps({name: digest(claim) for name, claim in sorted(CLAIMS.items())}, indent=1) + "\n"
    write_bytes(SEALS, text.encode())
