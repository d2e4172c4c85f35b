"""Results as JSON beside the experiments."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"


def write(name: str, content: dict[str, Any]) -> Path:
    """Write a result under a temporary name, then rename it."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    partial = path.with_suffix(".json.partial")
    partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path)
    return path


def read(name: str) -> dict[str, Any]:
    """A stored result; empty where there is none."""
    path = FOLDER / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found
