"""requirements/lock.txt from pip's own report: every version of constraints.txt with the hash of the file pip chose.

python -m pip install --dry-run --ignore-installed --no-deps --report report.json -r constraints.txt
python requirements/lock.py report.json > requirements/lock.txt
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

_HEAD = """\
# The versions of constraints.txt with the sha256 of their files (Python 3.11 on Linux, x86-64).
# Hashes stand here and not in constraints.txt: there pip would ask for a hash of shapedp's own checkout too.
#   python -m pip install --require-hashes --no-deps -r requirements/lock.txt
#   python -m pip install --no-deps -e .    (pip fetches the pinned build backend by itself, without a hash)
# Written by requirements/lock.py, which says how."""


def lines(report: Path) -> list[str]:
    """One requirement per line, sorted."""
    found = []
    for one in json.loads(report.read_text(encoding="utf-8"))["install"]:
        name, version = one["metadata"]["name"], one["metadata"]["version"]
        found.append(f"{name}=={version} --hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}")
    return sorted(found, key=str.lower)


if __name__ == "__main__":
    print("\n".join([_HEAD, *lines(Path(sys.argv[1]))]))
