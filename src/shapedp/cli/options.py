"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from shapedp.cli.files import read_vector
from shapedp.sensitivity import ADJACENCIES, L1, L2, Blocks, Box, Sensitivity


def add_claim(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """--epsilon and --delta; never with a default."""
    parser.add_argument("--epsilon", type=float, required=required, help="the epsilon to meet, > 0")
    parser.add_argument("--delta", type=float, required=required, help="the delta to meet, in [0, 1); 0 is pure DP")


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_sensitivity(parser: argparse.ArgumentParser) -> None:
    """What one person can change."""
    group = parser.add_argument_group("what one person can change in the answer (choose one)")
    sets = group.add_mutually_exclusive_group(required=True)
    sets.add_argument("--l2", type=float, metavar="RADIUS", help="L2 ball; with --dim")
    sets.add_argument("--l1", type=float, metavar="RADIUS", help="L1 ball; with --dim")
    sets.add_argument("--box", metavar="BOUNDS", help="a bound per coordinate: 1,0.5,0.1 or a csv/npy/parquet file")
    sets.add_argument("--blocks", metavar="RADII", help="an L2 bound per block, as for --box; with --sizes")
    group.add_argument("--dim", type=int, help="number of coordinates of the answer")
    group.add_argument("--sizes", help="block sizes: 100,20,10")
    group.add_argument("--scales", help="semi-axes that turn --l2 into an ellipsoid, as for --box")
    group.add_argument("--adjacency", choices=ADJACENCIES, help="the neighbour relation behind these bounds")
    parser.add_argument("--weights", help="importance of each coordinate's squared error, as for --box")
    parser.add_argument(
        "--exact-zeros", action="store_true", help="release coordinates of zero sensitivity as they are"
    )


def numbers(name: str, text: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Numbers separated by commas, or the vector in a file of that name."""
    if Path(text).exists() or Path(text).suffix in (".csv", ".npy", ".parquet"):
        return np.asarray(read_vector(Path(text)).values, dtype=np.float64)
    try:
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise ValueError(
            f"--{name} must be numbers separated by commas or a csv, npy or parquet file, got {text!r}"
        ) from None


def sensitivity(options: argparse.Namespace) -> Sensitivity:
    """The set that the options describe."""
    adjacency = options.adjacency
    if options.box is not None:
        return Box(numbers("box", options.box), adjacency=adjacency)
    if options.blocks is not None:
        if options.sizes is None:
            raise ValueError("--blocks needs --sizes, the number of coordinates of each block")
        try:
            sizes = np.array([int(part) for part in options.sizes.split(",")])
        except ValueError:
            raise ValueError(f"--sizes must be whole numbers separated by commas, got {options.sizes!r}") from None
        return Blocks(numbers("blocks", options.blocks), sizes, adjacency=adjacency)
    if options.dim is None:
        raise ValueError("--l2 and --l1 need --dim, the number of coordinates of the answer")
    if options.l1 is not None:
        return L1(options.l1, options.dim, adjacency=adjacency)
    scales = None if options.scales is None else numbers("scales", options.scales)
    return L2(options.l2, options.dim, scales=scales, adjacency=adjacency)


def weights(options: argparse.Namespace) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """The weights that the options describe."""
    return None if options.weights is None else numbers("weights", options.weights)
