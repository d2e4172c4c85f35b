"""Writes the table of best radial shapes that `calibrate("radial", ...)` starts its search from.

python experiments/product_noise/shapes.py        # some minutes; src/shapedp/noise/radial_shapes.toml
"""

from __future__ import annotations

import math
from importlib.resources import files
from pathlib import Path

from shapedp.noise.radial_shape import TABLE, searched

DIMS = (2, 3, 4, 6, 10, 20, 50, 200, 2000, 65536)
EPSILONS = (0.03, 0.3, 1.0, 3.0, 10.0)
DELTAS = (1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 1e-1)


def points(dim: int) -> str:
    """The lines of one dimension."""
    lines = []
    for epsilon in EPSILONS:
        shapes = [searched(dim, epsilon, delta, None, close=1e-7, most=150) for delta in DELTAS]
        row = [f"[{math.sqrt(max(1 - a / dim, 0.0)):.4f}, {math.log(b):.4f}]" for a, b in shapes]
        lines.append("    " + ", ".join(row) + ",\n")
    return "".join(lines)


def main() -> None:
    text = "# Made by experiments/product_noise/shapes.py: (sqrt(1 - a/dim), log b) of the best radial law, for each\n"
    text += "# dim, epsilon and delta in turn. A start of searches only: no certificate rests on it.\n\n"
    text += "".join(
        f"{name} = {list(axis)}\n" for name, axis in (("dims", DIMS), ("epsilons", EPSILONS), ("deltas", DELTAS))
    )
    text += "points = [\n" + "".join(map(points, DIMS)) + "]\n"
    path = Path(str(files("shapedp.noise"))) / TABLE
    path.write_text(text, encoding="utf-8")
    print(f"{path}: {len(DIMS) * len(EPSILONS) * len(DELTAS)} points")


if __name__ == "__main__":
    main()
