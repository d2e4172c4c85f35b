"""Data files of the papers' rooms: texts, tables and lists that are no code."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read_toml(package: str, name: str) -> dict[str, Any]:
    """The TOML file of that name inside a package of ours."""
    return tomllib.loads(resources.files(package).joinpath(name).read_text(encoding="utf-8"))
