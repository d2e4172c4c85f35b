"""Options that several commands share."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shapedp.cli.files import SUFFIXES, read_vector
from shapedp.sensitivity import ADJACENCIES, L1, L2, Blocks, Box, Sensitivity, Slices

Floats = NDArray[np.float64]


def add_claim(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """--epsilon and --delta; never with a default."""
    parser.add_argument("--epsilon", type=float, required=required, help="the epsilon to meet, > 0")
    parser.add_argument("--delta", type=float, required=required, help="the delta to meet, in [0, 1); 0 is pure DP")


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_no_header(parser: argparse.ArgumentParser) -> None:
    """--no-header."""
    parser.add_argument(
        "--no-header", action="store_true", help="the first row of a csv file is a record: columns are named 0, 1, ..."
    )


def add_sensitivity(parser: argparse.ArgumentParser) -> None:
    """What one person can change."""
    group = parser.add_argument_group("what one person can change in the answer (choose one)")
    sets = group.add_mutually_exclusive_group(required=True)
    sets.add_argument("--l2", type=float, metavar="RADIUS", help="L2 ball; with --dim")
    sets.add_argument("--l1", type=float, metavar="RADIUS", help="L1 ball; with --dim")
    sets.add_argument("--box", metavar="BOUNDS", help="a bound per coordinate: 1,0.5,0.1 or a csv/npy/parquet file")
    sets.add_argument("--blocks", metavar="RADII", help="an L2 bound per block, as for --box; with --sizes")
    sets.add_argument(
        "--slice-bounds", metavar="RADII", help="an L2 bound per slice of a mode, as for --box; with --tensor"
    )
    group.add_argument("--tensor", metavar="SHAPE", help="the answer is a tensor: 28x28x64, instead of --dim")
    group.add_argument("--mode", type=int, help="the sliced mode, counted from 0 (default: the one that fits)")
    group.add_argument("--dim", type=int, help="number of coordinates of the answer")
    group.add_argument("--sizes", help="block sizes: 100,20,10")
    group.add_argument("--scales", help="semi-axes that turn --l2 into an ellipsoid, as for --box")
    group.add_argument(
        "--adjacency",
        choices=ADJACENCIES,
        help="the neighbour relation behind these bounds, which are of a change of the answer: under replace a row "
        "of release --records is clipped to half of them, as an exchanged record changes a total twice",
    )
    parser.add_argument("--weights", help="importance of each coordinate's squared error, as for --box")
    parser.add_argument(
        "--exact-zeros", action="store_true", help="release coordinates of zero sensitivity as they are"
    )


def numbers(name: str, text: str) -> Floats:
    """Numbers separated by commas, or the vector in a file of that name."""
    try:
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        if Path(text).suffix in SUFFIXES:
            return np.asarray(read_vector(Path(text)).values, dtype=np.float64)
        raise ValueError(
            f"--{name} must be numbers separated by commas or a csv, npy or parquet file, got {text!r}"
        ) from None


def sensitivity(options: argparse.Namespace) -> Sensitivity:
    """The set that the options describe."""
    adjacency = options.adjacency
    shape = None if options.tensor is None else tensor_shape(options.tensor)
    if options.slice_bounds is not None:
        return _slices(options, shape)
    if options.box is not None:
        return Box(_boxed(numbers("box", options.box), shape), adjacency=adjacency)
    if options.blocks is not None:
        if options.sizes is None:
            raise ValueError("--blocks needs --sizes, the number of coordinates of each block")
        try:
            sizes = np.array([int(part) for part in options.sizes.split(",")])
        except ValueError:
            raise ValueError(f"--sizes must be whole numbers separated by commas, got {options.sizes!r}") from None
        return Blocks(numbers("blocks", options.blocks), sizes, adjacency=adjacency)
    if (options.dim is None) == (shape is None):
        raise ValueError("--l2 and --l1 need --dim, the number of coordinates of the answer, or --tensor, its shape")
    if options.l1 is not None:
        return L1(options.l1, options.dim, shape=shape, adjacency=adjacency)
    scales = None if options.scales is None else numbers("scales", options.scales)
    return L2(options.l2, options.dim, shape=shape, scales=scales, adjacency=adjacency)


def tensor_shape(text: str) -> tuple[int, ...]:
    """28x28x64 as (28, 28, 64)."""
    try:
        return tuple(int(part) for part in text.split("x"))
    except ValueError:
        raise ValueError(f"--tensor must be sizes joined by x, such as 28x28x64, got {text!r}") from None


def _boxed(bounds: Floats, shape: tuple[int, ...] | None) -> Floats:
    """Bounds in the tensor's shape; a single one is that of every entry."""
    if shape is None:
        return bounds
    if bounds.size == 1:
        return np.full(shape, bounds.reshape(-1)[0])
    if bounds.size != math.prod(shape):
        raise ValueError(f"--box must hold one bound, or one per entry of --tensor, got {bounds.size}")
    return bounds.reshape(shape)


def _slices(options: argparse.Namespace, shape: tuple[int, ...] | None) -> Slices:
    """The slices of the mode that is named, or of the only one that has as many."""
    if shape is None:
        raise ValueError("--slice-bounds needs --tensor, the shape of the answer")
    radii = numbers("slice-bounds", options.slice_bounds)
    fitting = [mode for mode, size in enumerate(shape) if size == radii.size]
    if options.mode is None and len(fitting) != 1:
        raise ValueError(f"--slice-bounds has {radii.size} entries: name the --mode of {shape} that they slice")
    return Slices(radii, shape, fitting[0] if options.mode is None else options.mode, adjacency=options.adjacency)


def weights(options: argparse.Namespace) -> Floats | None:
    """The weights that the options describe."""
    return None if options.weights is None else numbers("weights", options.weights)
