"""The software bill of materials of this environment, as CycloneDX 1.5 JSON on standard output.

    python requirements/sbom.py > sbom.json

What is installed is read by importlib.metadata; nothing is fetched. The components are sorted and carry no time, so
that the same environment gives the same bytes.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import sys
from typing import Any

ROOT = "shapedp"


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _component(found: importlib.metadata.Distribution) -> dict[str, Any]:
    name, version = _key(found.metadata["Name"]), found.version
    reference = f"pkg:pypi/{name}@{version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "purl": reference,
    }
    licence = found.metadata.get("License-Expression") or found.metadata.get("License") or ""
    if licence and len(licence) < 100 and "\n" not in licence:
        component["licenses"] = [{"license": {"name": licence}}]
    return component


def _needs(found: importlib.metadata.Distribution, installed: dict[str, str]) -> list[str]:
    names = (re.match(r"[A-Za-z0-9._-]+", one) for one in found.requires or ())
    return sorted({installed[_key(one.group())] for one in names if one and _key(one.group()) in installed})


def document() -> dict[str, Any]:
    """Every distribution that is installed, and which needs which."""
    distributions = {_key(one.metadata["Name"]): one for one in importlib.metadata.distributions()}
    components = {name: _component(one) for name, one in sorted(distributions.items())}
    installed = {name: one["bom-ref"] for name, one in components.items()}
    root = components.pop(ROOT)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": root | {"type": "application"},
            "properties": [{"name": "python", "value": platform.python_version()}],
        },
        "components": list(components.values()),
        "dependencies": [
            {"ref": installed[name], "dependsOn": _needs(one, installed)} for name, one in sorted(distributions.items())
        ],
    }


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=2)
    sys.stdout.write("\n")
