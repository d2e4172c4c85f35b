"""shapedp calibrate: the least-error mechanism that meets a claim, as a file."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from shapedp.cli.files import write_json
from shapedp.cli.options import claim, numbers, sensitivity, weights
from shapedp.cli.output import certificate_lines, show, written
from shapedp.cli.streams import progress
from shapedp.mechanisms import calibrate


def run(options: argparse.Namespace) -> int:
    """Calibrate, write, print."""
    mechanism = calibrate(
        options.family,
        sensitivity(options),
        **claim(options),
        weights=weights(options),
        exact_zeros=options.exact_zeros,
        **_radial(options),
    )
    if options.output is not None:
        write_json(options.output, mechanism.to_json())
    return show(
        options,
        mechanism.to_json(),
        f"mechanism  {mechanism.law.kind} in dimension {mechanism.law.dim}",
        f"error      {mechanism.expected_squared_error:.6g} expected squared",
        *certificate_lines(mechanism.certificate),
        *written(options.output),
    )


def _radial(options: argparse.Namespace) -> dict[str, Any]:
    """The options of the radial family: a fixed shape, or a display while the best one is searched."""
    if options.family != "radial":
        if options.shape is not None:
            raise ValueError("--shape belongs to the radial family")
        return {}
    if options.shape is None:
        return {"progress": _show} if sys.stderr.isatty() else {}
    shape = numbers("shape", options.shape)
    if shape.size != 2:
        raise ValueError(f"--shape must be two numbers A,B, got {options.shape!r}")
    return {"shape": (float(shape[0]), float(shape[1]))}


def _show(done: int, shape: tuple[float, float], ratio: float) -> None:
    best = f"best ({shape[0]:.4g}, {shape[1]:.4g}): {ratio:.4f} of the Gaussian's squared norm"
    progress(f"{done} shapes tried, {best}")
