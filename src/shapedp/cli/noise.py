"""shapedp advise, calibrate and demo: which noise serves a query best, as a ranking, as a file, as a picture."""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

from shapedp import mechanisms
from shapedp.boundary.documents import write
from shapedp.cli.options import claim, numbers, sensitivity, weights
from shapedp.cli.output import certificate_lines, show, table, written
from shapedp.cli.streams import progress
from shapedp.mechanisms import Advice


def advise(options: argparse.Namespace) -> int:
    """Print the ranking."""
    query = sensitivity(options)
    wanted = {"weights": weights(options), "error": options.error, "exact_zeros": options.exact_zeros}
    ranked = mechanisms.advise(query, **claim(options), **wanted)
    if options.plot is not None:
        from shapedp.report.pictures import draw_scales

        draw_scales(ranked, options.plot)
    rows = [_row(advice, query.dim) for advice in ranked]
    shown = table(("family", "expected error", "rms per coordinate", "certificate", "why"), rows)
    why = [f"\n{ranked[0].why}"] if ranked[0].why else []
    return show(options, [_record(advice) for advice in ranked], shown, *why)


def _row(advice: Advice, dim: int) -> tuple[str, ...]:
    if advice.mechanism is None:
        return (advice.family, "-", "-", "-", advice.reason)
    rms = math.sqrt(advice.mechanism.expected_squared_error / dim)
    verdict = advice.mechanism.certificate.verdict
    return (advice.family, f"{advice.expected_error:.6g}", f"{rms:.6g}", verdict, advice.reason)


def _record(advice: Advice) -> dict[str, Any]:
    made = advice.mechanism
    found: dict[str, Any] = {"expected_error": None, "mechanism": None}
    if made is not None:
        found = {"expected_error": advice.expected_error, "mechanism": made.to_json()}
    return {"family": advice.family, "reason": advice.reason, "why": advice.why, **found}


def calibrate(options: argparse.Namespace) -> int:
    """The least-error mechanism that meets a claim: calibrate, write, print."""
    query, exact = sensitivity(options), options.exact_zeros
    given = {**claim(options), "weights": weights(options), "exact_zeros": exact, **_radial(options)}
    mechanism = mechanisms.calibrate(options.family, query, **given)
    if options.output is not None:
        write(options.output, mechanism.to_json())
    kind = f"mechanism  {mechanism.law.kind} in dimension {mechanism.law.dim}"
    error = f"error      {mechanism.expected_squared_error:.6g} expected squared"
    lines = [kind, error, *certificate_lines(mechanism.certificate), *written(options.output)]
    return show(options, mechanism.to_json(), *lines)


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


def demo(options: argparse.Namespace) -> int:
    """One query, every applicable mechanism, published claims refused: print the table, save the picture."""
    from shapedp.report.demo import DELTA, EPSILON, draw, records

    entries = records()
    headers = ("mechanism", "expected error", "measured", "certificate", "note")
    rows = [
        (e.name, f"{e.expected:.4g}", "-" if e.measured is None else f"{e.measured:.4g}", e.verdict, e.note)
        for e in entries
    ]
    title = f"Totals of 30 measurements over 569 patients, (epsilon, delta) = ({EPSILON:g}, {DELTA:g})\n"
    note = "\nerror: root mean square over the 30 totals; measured: one secure release against the true totals"
    code = show(options, [entry.to_json() for entry in entries], title, table(headers, rows), note)
    draw(entries, options.output)
    if not options.json:
        print(f"picture: {options.output}")
    return code
