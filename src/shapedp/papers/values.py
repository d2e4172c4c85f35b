"""Named numbers: the parameters of a claim, and what computing it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Values = Mapping[str, float]
Compute = Callable[[Values], Values]
Judge = Callable[[Values], bool]


def unit_claim(p: Values) -> dict[str, Any]:
    """The arguments of a recipe: sensitivity 1 and the claim (delta 0 where none is given)."""
    return {"sensitivity": 1.0, "epsilon": p["epsilon"], "delta": p.get("delta", 0.0)}
