"""shapedp release: a noisy answer, and the certificate beside it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shapedp.cli.files import Vector, read_json, read_vector, suffix, write_json, write_vector
from shapedp.cli.options import add_json
from shapedp.cli.output import print_certificate, print_json
from shapedp.mechanisms import Additive


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "release",
        help="add a mechanism's noise to a vector in a file",
        description="Release a vector (csv, npy or parquet) with secure randomness. Writes the noisy vector and, "
        "beside it, the certificate. Nothing is written unless the mechanism is certified.",
        epilog="example: shapedp release mechanism.json answers.csv -o noisy.csv",
    )
    parser.add_argument("mechanism", type=Path, help="a mechanism written by calibrate")
    parser.add_argument("input", type=Path, help="the true answer: csv, npy or parquet")
    parser.add_argument("-o", "--output", type=Path, required=True, help="where the noisy answer goes")
    parser.add_argument("--column", help="the column to release, where the file has several")
    parser.add_argument("--certificate", type=Path, help="where the certificate goes (default: beside the output)")
    parser.add_argument("--unsafe", action="store_true", help="release though the claim is not certified (research)")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Release and write."""
    beside = options.certificate or options.output.with_suffix(".certificate.json")
    suffix(options.output)
    for path in (options.output, beside):
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{path.parent}: no such folder")
    for path in (options.output, beside):
        if path.exists() and any(path.samefile(used) for used in (options.input, options.mechanism) if used.exists()):
            raise ValueError(f"{path} is an input of this release: choose another --output")
    mechanism = Additive.from_json(read_json(options.mechanism))
    vector = read_vector(options.input, options.column)
    if len(mechanism.shape) > 1 and options.output.suffix != ".npy":
        raise ValueError(f"the answer is a tensor of shape {mechanism.shape}: only npy files hold it")
    release = mechanism.release(vector.values, unsafe=options.unsafe)
    record = {**release.certificate.to_json(), "unsafe": release.unsafe}
    write_json(beside, record)
    write_vector(options.output, Vector(release.value, vector.name))
    if options.json:
        print_json(record)
        return 0
    print_certificate(release.certificate)
    print(f"written    {options.output} and {beside}")
    if release.unsafe:
        print("unsafe     the claim is NOT certified: do not publish this release")
    return 0
