"""Named numbers (the parameters of a claim, and what computing it gives), and the data files of the papers' rooms."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

Values = Mapping[str, float]
Compute = Callable[[Values], Values]
Judge = Callable[[Values], bool]


def unit_claim(p: Values) -> dict[str, Any]:
    """The arguments of a recipe: sensitivity 1 and the claim (delta 0 where none is given)."""
    return {"sensitivity": 1.0, "epsilon": p["epsilon"], "delta": p.get("delta", 0.0)}


def read_toml(package: str, name: str) -> dict[str, Any]:
    """The TOML file of that name inside a package of ours."""
    return tomllib.loads(resources.files(package).joinpath(name).read_text(encoding="utf-8"))
