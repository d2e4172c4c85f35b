"""Work on a CUDA device: noise from a cryptographic stream, gradients of records by kernels of our own.

The noise is drawn in float32 (Box and Muller) from ChaCha with 12 rounds, keyed with 256 fresh bits per release. The
sum (float64) and the noise are each rounded to a grid of 2^-23 of the noise first, so that what leaves is a function of
their sum alone; that the float32 normals follow their law to about 2^-20 is an approximation, which the exact route on
the CPU does not make. Radii come from 96 bits, so that the noise ends at 11.6 standard deviations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from shapedp.noise import Gaussian
from shapedp.sampling import Source

Tensor = torch.Tensor
ROUNDS = 12
GRID_BITS = 23


@cache
def kernels() -> Any:
    """The module of kernels, or None where Triton is missing."""
    try:
        from shapedp.torch import kernels as found
    except ImportError:
        return None
    return found


@cache
def products() -> Any:
    """The module of kernels for products."""
    from shapedp.torch import product_kernels

    return product_kernels


def at_hand(like: Tensor) -> bool:
    """Whether kernels can run where the tensor is."""
    return like.is_cuda and kernels() is not None


def has_room(like: Tensor) -> bool:
    """Whether kernels can run where the tensor is, and their tiles of products fit into its shared memory."""
    return at_hand(like) and _capability(like.device) in _ROOMY


_ROOMY = ((8, 0), (9, 0), (10, 0), (10, 3))  # compute capabilities with 160 KiB or more per multiprocessor


@cache
def _capability(device: Any) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)


def draw(law: Gaussian, values: Tensor, source: Source, *, rounds: int = ROUNDS) -> Tensor:
    """values (float32 or float64) + noise, float32, on the grid; the key comes from `source`."""
    words = source.words(4).view(np.int32)
    key = sent(torch.from_numpy(words.copy()), values.device)
    scales, sizes = law.spread.values, law.spread.sizes
    if not scales.min() > 2.0**-90 or not scales.max() < 2.0**90:
        raise ValueError("noise on a GPU must have scales between 2^-90 and 2^90: measure the gradient in other units")
    if scales.size == 1:
        return add_noise(values, float(scales[0]), None, key, rounds=rounds)
    if sizes is not None:
        return add_noise(values, 1.0, None, key, rounds=rounds, table=_table_of(law, values.device))
    spread = torch.from_numpy(np.nextafter(law.scales.astype(np.float32), np.float32(np.inf))).to(values.device)
    return add_noise(values, 1.0, spread, key, rounds=rounds)


Table = tuple[Tensor, Tensor, Tensor]  # where the part of each program begins and ends, and its standard deviation
_TABLES: WeakKeyDictionary[Gaussian, Table] = WeakKeyDictionary()


def _table_of(law: Gaussian, device: Any) -> Table:
    """The programs for noise with one standard deviation per block, kept as long as the law."""
    found = _TABLES.get(law)
    if found is None or found[0].device != device:
        sizes = np.asarray(law.spread.sizes)
        part = kernels().BLOCK * kernels().WORDS
        programs = -(-sizes // part)
        last = np.cumsum(sizes)
        within = np.arange(programs.sum()) - np.repeat(np.cumsum(programs) - programs, programs)
        starts = np.repeat(last - sizes, programs) + within * part
        sigmas = np.nextafter(law.spread.values.astype(np.float32), np.float32(np.inf))
        held = (starts, np.repeat(last, programs), np.repeat(sigmas, programs))
        first, second, third = (sent(torch.from_numpy(one), device) for one in held)
        found = _TABLES[law] = (first, second, third)
    return found


@lru_cache(maxsize=64)
def kept(numbers: tuple[int, ...], device: Any) -> Tensor:
    """Whole numbers on a device, sent once."""
    return sent(torch.tensor(numbers), device)


def sent(values: Tensor, device: Any) -> Tensor:
    """A copy on the device; a GPU is not waited for."""
    return values.pin_memory().to(device, non_blocking=True) if torch.device(device).type == "cuda" else values


def add_noise(
    values: Tensor, sigma: float, scales: Tensor | None, key: Tensor, *, rounds: int = ROUNDS,
    out: Tensor | None = None, table: Table | None = None,
) -> Tensor:  # fmt: skip
    """out = values + noise of one standard deviation, of one per entry, or as the table of programs has it."""
    found = kernels()
    values = values.contiguous()
    out = torch.empty_like(values, dtype=torch.float32) if out is None else out
    n, block = values.numel(), found.BLOCK
    programs = -(-n // (block * found.WORDS)) if table is None else len(table[0])
    if programs * block > 2**32:
        raise ValueError("one release holds at most 2^36 values: a ChaCha counter has 32 bits here")
    exponent = math.frexp(sigma)[1] - 1 - GRID_BITS
    single = float(np.nextafter(np.float32(sigma), np.float32(np.inf)))
    starts, ends, each = (values, values, values if scales is None else scales) if table is None else table
    found.noise_kernel[(programs,)](
        values, out, each, key, n, starts, ends, single, 2.0**exponent, 2.0**-exponent,
        rounds=rounds, vector=scales is not None, table=table is not None, wide=values.dtype == torch.float64,
        block=block, num_warps=4,
    )  # fmt: skip
    return out


def conv_rows(module: Any, x: Tensor, grad: Tensor) -> Tensor | None:
    """The weight gradients of a 2-d convolution per record, or None where the kernel does not serve it."""
    found = kernels()
    plain = x.ndim == 4 and module.groups == 1 and module.padding_mode == "zeros"
    if found is None or not plain or isinstance(module.padding, str):
        return None
    x, grad = x.contiguous(), grad.contiguous()
    n, channels, height, width = x.shape
    outputs, out_height, out_width = grad.shape[1:]
    columns = channels * math.prod(module.kernel_size)
    rows = torch.empty((n, *module.weight.shape), device=x.device, dtype=torch.float32)
    block_o = min(max(16, _power(outputs)), 64)
    block_c = min(max(16, _power(columns)), 64)
    precision = "tf32" if torch.backends.cudnn.allow_tf32 else "ieee"
    blocks = (n, -(-columns // block_c), -(-outputs // block_o))
    found.conv_kernel[blocks](
        x, grad, rows, channels, height, width, outputs, out_height, out_width, *module.kernel_size, *module.stride,
        *module.padding, *module.dilation, block_o, block_c, 64, precision, num_warps=4,
    )  # fmt: skip
    return rows


def group_norm_rows(x: Tensor, grad: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor] | None:
    """(scale, shift) gradients of a group norm per record, or None without kernels."""
    found = kernels()
    if found is None:
        return None
    x, grad = x.contiguous(), grad.contiguous()
    n, channels = x.shape[:2]
    positions = math.prod(x.shape[2:])
    scale, shift = (torch.empty((n, channels), device=x.device, dtype=torch.float32) for _ in range(2))
    block = min(max(64, _power(positions)), 1024)
    found.norm_kernel[(n, groups)](x, grad, scale, shift, channels, channels // groups, positions, eps, block)
    return scale, shift


@dataclass(frozen=True, eq=False)
class Tiles:
    """Factors of products over positions as the kernels take them, in 16 bits.

    Each is `pieces` planes of shape (n * positions, stride), padded with zeros. `back` (n, float64) is the power of
    two by which a product of what is held must be multiplied; None is 1.
    """

    left: Tensor
    right: Tensor
    back: Tensor | None
    records: int
    positions: int
    outs: int
    ins: int

    @property
    def pieces(self) -> int:
        """How many numbers of 16 bits stand for one."""
        return len(self.left)

    @property
    def given(self) -> tuple[int, ...]:
        """Sizes, then strides and planes of both factors."""
        a, b = self.left, self.right
        return self.positions, self.outs, self.ins, a.stride(1), a.stride(0), b.stride(1), b.stride(0)

    @cached_property
    def settings(self) -> dict[str, int]:
        """The tile of one program and how it runs; the same for norms and sums."""
        outs, ins, block_t, warps, stages = TILES[self.pieces]
        outs, ins = (min(max(16, _power(n)), most) for n, most in ((self.outs, outs), (self.ins, ins)))
        warps = warps if outs * ins >= TILES[self.pieces][0] * TILES[self.pieces][1] else 4
        held = {"pieces": self.pieces, "scaled": self.back is not None, "block_o": outs, "block_i": ins}
        return {**held, "block_t": block_t, "num_warps": warps, "num_stages": stages}

    @cached_property
    def across(self) -> int:
        """The number of tiles of a gradient."""
        return -(-self.outs // self.settings["block_o"]) * -(-self.ins // self.settings["block_i"])


TILES = {1: (128, 128, 64, 8, 3), 2: (128, 128, 32, 8, 3)}  # rows, columns, positions, warps and stages, by pieces
TOGETHER = 64  # records whose rows are added in one pair of float32
_MOST_PARTS = 1 << 24  # entries of partial sums
_PAD = 64  # columns
_SMALL = 1 << 22  # entries that a copy would not make faster


def tiles(left: Tensor, right: Tensor) -> Tiles:
    """What the kernels take, from factors of shapes (n, positions, out) and (n, positions, in)."""
    sizes = len(left), left.shape[1], left.shape[2], right.shape[2]
    if left.dtype in (torch.bfloat16, torch.float16) and right.dtype == left.dtype:
        return Tiles(_aligned(left), _aligned(right), None, *sizes)
    pieces = 1 if torch.get_float32_matmul_precision() != "highest" else 2
    (first, by), (second, other) = _pieces_of(left.float(), pieces), _pieces_of(right.float(), pieces)
    return Tiles(first, second, 1 / (by * other), *sizes)


def _aligned(x: Tensor) -> Tensor:
    """One plane whose rows begin at whole 16 bytes."""
    n, positions, width = x.shape
    if x.is_contiguous() and (width % 16 == 0 or x.numel() < _SMALL):
        return x.view(1, n * positions, width)
    out = torch.empty(1, n * positions, -(-width // _PAD) * _PAD, dtype=x.dtype, device=x.device)
    _split(x.contiguous(), out, out, 0)
    return out


def _pieces_of(x: Tensor, pieces: int) -> tuple[Tensor, Tensor]:
    """float32 numbers as one or two float16 numbers, times a power of two of each record."""
    n, positions, width = x.shape
    x = x.contiguous()
    largest = torch.linalg.vector_norm(x.view(n, -1), torch.inf, dim=1)
    by = torch.exp2((15 - torch.frexp(largest).exponent).clamp(-126, 126).double())
    stride = width if width % 16 == 0 else -(-width // _PAD) * _PAD
    out = torch.empty(pieces, n * positions, stride, dtype=torch.float16, device=x.device)
    _split(x, out, by.float(), pieces)
    return out, by


def _split(x: Tensor, out: Tensor, by: Tensor, pieces: int) -> None:
    n, positions, width = x.shape
    stride, block = out.stride(1), 1024
    products().split_kernel[(n * positions, -(-stride // block))](
        x, out, by, width, stride, out.stride(0), positions, pieces=pieces, block=block
    )


def tile_squares(given: Tiles, slots: Tensor | None = None, seen: Tensor | None = None) -> Tensor:
    """|g_i|^2 rounded up; rows v of what is held with a place slots[i, v] are written to that place of seen[i]."""
    squares = torch.empty(given.records, given.across, dtype=torch.float64, device=given.left.device)
    _measured(given, squares, slots, seen, 0 if slots is None else 2)
    return squares.sum(1)


def tile_products(given: Tiles) -> Tensor:
    """The products of what is held, (n, out, in), float32."""
    out = torch.empty(given.records, given.outs, given.ins, dtype=torch.float32, device=given.left.device)
    _measured(given, None, None, out, 1)
    return out


def _measured(given: Tiles, squares: Tensor | None, slots: Tensor | None, out: Tensor | None, store: int) -> None:
    left = given.left
    products().squares_kernel[(given.across, given.records)](
        left, given.right, left if given.back is None else given.back, left if squares is None else squares,
        left if out is None else out, left if slots is None else slots,
        *given.given, **given.settings, store=store,
    )  # fmt: skip


def products_of_half(left: Tensor, right: Tensor) -> Tensor:
    """The products over positions of factors in 16 bits, (n, out, in), float32."""
    if _WIDE_PRODUCTS:
        found: Tensor = torch.bmm(left.transpose(1, 2), right, out_dtype=torch.float32)
        return found
    return tile_products(tiles(left, right))


_WIDE_PRODUCTS = "dtype" in torch.ops.aten.bmm.overloads()  # type: ignore[no-untyped-call]  # whether torch's own keep float32


def tile_sums(given: Tiles, weights: Tensor, total: Tensor) -> None:
    """sum_i w_i g_i for float64 weights, to `total` (float64, flat); at most 64 records a pair."""
    weights = weights.contiguous()
    most = max(1, min(4, _MOST_PARTS // max(given.outs * given.ins, 1)))
    for first in range(0, given.records, TOGETHER * most):
        records = min(TOGETHER * most, given.records - first)
        splits = max(-(-records // TOGETHER), _splits(given, records, most))
        each = -(-records // splits)
        splits = -(-records // each)
        direct = splits == 1 and first == 0
        out = total if direct else total.new_empty(splits, total.numel())
        start = first * given.positions
        products().sums_kernel[(given.across, splits)](
            given.left[:, start:], given.right[:, start:], weights if given.back is None else given.back[first:],
            weights[first:], out, records, each, *given.given, **given.settings, enable_fp_fusion=False,
        )  # fmt: skip
        if not direct:
            torch.sum(out, 0, out=total) if first == 0 else total.add_(out.sum(0))


@cache
def _units(device: Any) -> int:
    """The number of multiprocessors."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 132


def _splits(given: Tiles, records: int, most: int) -> int:
    """Into how many parts the records are cut so that all multiprocessors work, at some cost each."""
    units = _units(given.left.device)

    def cost(splits: int) -> float:
        return -(-given.across * splits // units) * -(-records // splits) + 3.0 * splits * given.across / units

    return min(range(1, most + 1), key=cost)


def row_squares(rows: Tensor) -> Tensor:
    """|row|^2, float64."""
    rows = rows.contiguous()
    n, width = rows.shape
    block = 1024
    parts = max(1, min(-(-width // block), -(-_PROGRAMS // max(n, 1))))
    each = -(-(-(-width // parts)) // block) * block
    parts = -(-width // each) if width else 1
    squares = torch.empty(n, parts, dtype=torch.float64, device=rows.device)
    products().row_squares_kernel[(n, parts)](rows, squares, width, max(each, block), block=block)
    return squares.sum(1)


def row_sums(rows: Tensor, weights: Tensor, total: Tensor) -> None:
    """sum_i w_i row_i for float64 weights, to `total`; a weight of zero takes nothing."""
    rows, weights = rows.contiguous(), weights.contiguous()
    n, width = rows.shape
    block, some = 128, 16
    programs = -(-width // block)
    splits = max(1, min(-(-n // some), -(-_PROGRAMS // programs)))
    each = -(-(-(-n // splits)) // some) * some
    splits = -(-n // each)
    out = total if splits == 1 else total.new_empty(splits, width)
    products().row_sums_kernel[(programs, splits)](rows, weights, out, n, width, each, block_n=some, block=block)
    if splits > 1:
        torch.sum(out, 0, out=total)


_PROGRAMS = 1056  # enough to keep a GPU's multiprocessors busy


def _power(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << (n - 1).bit_length()
