"""Work on a CUDA device: noise from a cryptographic stream, gradients of records by kernels of our own.

The noise is drawn in float32 (Box and Muller) from ChaCha with 12 rounds, keyed with 256 fresh bits per release. The
sum (float64) and the noise are each rounded to a grid of 2^-23 of the noise first, so that what leaves is a function of
their sum alone; that the float32 normals follow their law to about 2^-20 is an approximation, which the exact route on
the CPU does not make. Radii come from 96 bits, so that the noise ends at 11.6 standard deviations.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

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


def at_hand(like: Tensor) -> bool:
    """Whether kernels can run where the tensor is."""
    return like.is_cuda and kernels() is not None


def draw(law: Gaussian, values: Tensor, source: Source, *, rounds: int = ROUNDS) -> Tensor:
    """values (float32 or float64) + noise, float32, on the grid; the key comes from `source`."""
    words = source.words(4).view(np.int32)
    key = torch.from_numpy(words.copy()).to(values.device)
    scales = law.scales
    if not scales.min() > 2.0**-90 or not scales.max() < 2.0**90:
        raise ValueError("noise on a GPU must have scales between 2^-90 and 2^90: measure the gradient in other units")
    if scales.size == 1:
        return add_noise(values, float(scales[0]), None, key, rounds=rounds)
    spread = torch.from_numpy(np.nextafter(scales.astype(np.float32), np.float32(np.inf))).to(values.device)
    return add_noise(values, 1.0, spread, key, rounds=rounds)


def add_noise(
    values: Tensor, sigma: float, scales: Tensor | None, key: Tensor, *, rounds: int = ROUNDS, out: Tensor | None = None
) -> Tensor:
    """out = values + noise of one standard deviation, or of one per entry."""
    found = kernels()
    values = values.contiguous()
    out = torch.empty_like(values, dtype=torch.float32) if out is None else out
    n, block = values.numel(), found.BLOCK
    if n > 2**32 * found.WORDS:
        raise ValueError("one release holds at most 2^36 values: a ChaCha counter has 32 bits here")
    exponent = math.frexp(sigma)[1] - 1 - GRID_BITS
    single = float(np.nextafter(np.float32(sigma), np.float32(np.inf)))
    programs = -(-n // (block * found.WORDS))
    found.noise_kernel[(programs,)](
        values, out, values if scales is None else scales, key, n, single, 2.0**exponent, 2.0**-exponent,
        rounds=rounds, vector=scales is not None, wide=values.dtype == torch.float64, block=block,
        num_warps=4,
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


def _power(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << (n - 1).bit_length()
