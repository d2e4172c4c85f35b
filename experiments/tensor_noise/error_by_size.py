"""Tensor error against the number of entries: recipes and exact calibration, and what slice bounds are worth.

    python experiments/tensor_noise/error_by_size.py [--quick] [--output FOLDER]

Expected at (1, 1e-5): the isotropic variance of Theorem 1 over the exact one is 1.38e3, 7.69e6 and 7.23e10 at
I = 100, 1e4 and 1e6, all certified; with slice bounds k^-1.5 over 64 channels exact shaped noise has 13.8 times less
squared error than exact isotropic noise. Writes error_by_size.json and, with matplotlib, error_by_size.png.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from shapedp import L2, Additive, Box, Slices, calibrate, recipes

EPSILON, DELTA = 1.0, 1e-5
CLAIM = {"epsilon": EPSILON, "delta": DELTA}
EXPECTED = {100: 1.38e3, 10**4: 7.69e6, 10**6: 7.23e10}
HERE = Path(__file__).parent


def per_entry(mechanism: Additive) -> float:
    """Expected squared error of an entry; only a certified mechanism counts."""
    assert mechanism.certificate.verdict == "certified"
    return mechanism.expected_squared_error / mechanism.law.dim


def by_size(totals: list[int]) -> list[dict[str, float]]:
    """Variance per entry of a square matrix query with L2 sensitivity 1."""
    rows = []
    for total in totals:
        side = math.isqrt(total)
        matrix = {"shape": (side, side), "sensitivity": 1.0, **CLAIM}
        row = {
            "entries": float(total),
            "exact": per_entry(calibrate("tensor", L2(1.0, shape=(side, side)), **CLAIM)),
            "tvg": per_entry(recipes.tvg(**matrix)),
            "udn": per_entry(recipes.udn(**matrix)),
            "mvg": per_entry(recipes.mvg(**matrix)),
            "idn": per_entry(recipes.idn(**matrix)),
            "idn, exact": per_entry(calibrate("tensor", Box(np.full((side, side), 1 / side)), **CLAIM)),
        }
        row["tvg over exact"] = row["tvg"] / row["exact"]
        rows.append(row)
        if total in EXPECTED:
            assert abs(row["tvg over exact"] / EXPECTED[total] - 1) < 5e-3, row
    return rows


def by_decay(powers: list[float], shape: tuple[int, ...] = (28, 28, 64)) -> list[dict[str, float]]:
    """Exact isotropic over exact shaped squared error where slice k of the last mode has the bound k^-power."""
    rows = []
    for power in powers:
        radii = np.arange(1.0, shape[-1] + 1) ** -power
        slices = Slices(radii, shape, len(shape) - 1)
        shaped = calibrate("tensor", slices, **CLAIM)
        even = calibrate("tensor", L2(float(np.linalg.norm(radii)), shape=shape), **CLAIM)
        assert Additive(even.law, slices, EPSILON, DELTA).certificate.verdict == "certified"
        gain = per_entry(even) / per_entry(shaped)
        assert abs(gain / (shape[-1] * (radii**2).sum() / radii.sum() ** 2) - 1) < 1e-6
        rows.append({"power": power, "isotropic over shaped": gain})
        if power == 1.5:
            assert gain >= 5, gain
    return rows


def draw(sizes: list[dict[str, float]], decays: list[dict[str, float]], path: Path) -> None:
    """Both studies side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    x = [row["entries"] for row in sizes]
    for name, style in (("mvg", "-."), ("tvg", "--"), ("udn", ":"), ("exact", "-")):
        left.loglog(x, [row[name] for row in sizes], style, marker="o", markersize=3, label=name)
    left.set(xlabel="entries I", ylabel="variance per entry", title="L2 sensitivity 1, (1, 1e-5): all certified")
    left.legend()
    gains = [row["isotropic over shaped"] for row in decays]
    right.plot([row["power"] for row in decays], gains, "-", marker="o", markersize=3)
    right.set(xlabel="decay a of the slice bounds k^-a", ylabel="isotropic over shaped squared error", yscale="log")
    right.set_title("28 x 28 x 64, a bound per channel, both exact")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and decays")
    parser.add_argument("--output", type=Path, default=HERE, help="folder for the results")
    options = parser.parse_args(arguments)
    totals = sorted(EXPECTED) if options.quick else [100, 400, 10**3 + 24, 10**4, 10**5 + 489, 10**6]
    powers = [0.0, 1.5] if options.quick else [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0]
    sizes, decays = by_size(totals), by_decay(powers)
    print("entries    exact    tvg        udn        mvg        tvg over exact")
    for row in sizes:
        print("{entries:8.0f} {exact:8.4g} {tvg:10.4g} {udn:10.4g} {mvg:10.4g}".format(**row), end=" ")
        print(f"{row['tvg over exact']:10.4g}")
    for row in decays:
        print(f"slice bounds k^-{row['power']:g}: isotropic over shaped {row['isotropic over shaped']:.4g}")
    options.output.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "by_size": sizes, "by_decay": decays}
    (options.output / "error_by_size.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    try:
        draw(sizes, decays, options.output / "error_by_size.png")
    except ImportError:
        print("matplotlib is missing: no picture")


if __name__ == "__main__":
    main()
