"""What the options that several commands share describe."""

from __future__ import annotations

import argparse
import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from shapedp.boundary.refusals import refusal
from shapedp.mechanisms import Additive
from shapedp.numerics.arrays import Floats
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity, Slices

T = TypeVar("T")


def claim(options: argparse.Namespace) -> dict[str, Any]:
    """--epsilon and --delta, by name."""
    return {"epsilon": options.epsilon, "delta": options.delta}


def numbers(name: str, text: str) -> Floats:
    """Numbers separated by commas, or the vector in a file of that name."""
    try:
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        from shapedp.tables.vectors import SUFFIXES, read_vector

        if Path(text).suffix in SUFFIXES:
            return np.asarray(read_vector(Path(text)).values, dtype=np.float64)
        raise ValueError(refusal("cli", "numbers", name=name, text=text)) from None


def parts(name: str, text: str, kind: Callable[[str], T], mark: str, what: str) -> list[T]:
    """The values in one word."""
    try:
        return [kind(part) for part in text.split(mark)]
    except ValueError:
        raise ValueError(f"--{name} must be {what}, got {text!r}") from None


def tensor_shape(options: argparse.Namespace) -> tuple[int, ...] | None:
    """28x28x64 as (28, 28, 64)."""
    if options.tensor is None:
        return None
    return tuple(parts("tensor", options.tensor, int, "x", "sizes joined by x, such as 28x28x64"))


def sensitivity(options: argparse.Namespace) -> Sensitivity:
    """The set that the options describe."""
    adjacency = options.adjacency
    shape = tensor_shape(options)
    if options.slice_bounds is not None:
        return _slices(options, shape)
    if options.box is not None:
        return Box(_boxed(numbers("box", options.box), shape), adjacency=adjacency)
    if options.blocks is not None:
        if options.sizes is None:
            raise ValueError("--blocks needs --sizes, the number of coordinates of each block")
        sizes = parts("sizes", options.sizes, int, ",", "whole numbers separated by commas")
        return Blocks(numbers("blocks", options.blocks), np.array(sizes), adjacency=adjacency)
    if (options.dim is None) == (shape is None):
        raise ValueError("--l2 and --l1 need --dim, the number of coordinates of the answer, or --tensor, its shape")
    if options.l1 is not None:
        return L1(options.l1, options.dim, shape=shape, adjacency=adjacency)
    scales = None if options.scales is None else numbers("scales", options.scales)
    return L2(options.l2, options.dim, shape=shape, scales=scales, adjacency=adjacency)


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


def recipe(options: argparse.Namespace) -> Additive:
    """The mechanism of the published recipe that the options name."""
    from shapedp.papers.recipes import RECIPES  # every room of the papers

    if None in claim(options).values() or (options.dim is None) == (options.tensor is None):
        raise ValueError("a recipe needs --epsilon, --delta and either --dim or --tensor")
    make = RECIPES[options.subject]
    size = {"dim": options.dim} if options.tensor is None else {"shape": tensor_shape(options)}
    if "shape" in size and "shape" not in inspect.signature(make).parameters:
        raise ValueError(f"{options.subject} releases vectors: give --dim instead of --tensor")
    try:
        return make(**size, **claim(options), sensitivity=options.sensitivity)
    except ValueError as error:
        if "dim" in size and "shape" in str(error):
            raise ValueError(f"{error}: give --tensor instead of --dim, such as --tensor 2x{options.dim}") from None
        raise
