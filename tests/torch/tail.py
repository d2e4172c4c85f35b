# mypy: ignore-errors
"""The normals of given words, for tests on a CUDA device; importing it needs Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from shapedp.torch.kernels import _normals


@triton.jit
def _kernel(words, out, n, block: tl.constexpr):
    at = tl.arange(0, block)
    inside = at < n
    first = tl.load(words + at, mask=inside, other=1).to(tl.uint32, bitcast=True)
    second = tl.load(words + n + at, mask=inside, other=1).to(tl.uint32, bitcast=True)
    high = tl.load(words + 2 * n + at, mask=inside, other=1).to(tl.uint32, bitcast=True)
    low = tl.load(words + 3 * n + at, mask=inside, other=1).to(tl.uint32, bitcast=True)
    a, b = _normals(first, second, high, low)
    tl.store(out + at, a, mask=inside)
    tl.store(out + n + at, b, mask=inside)


def normals(words: torch.Tensor) -> torch.Tensor:
    """Shape (2, n) from (first, second, high, low) of shape (4, n), int32."""
    n = words.shape[1]
    out = torch.empty(2, n, device=words.device)
    _kernel[(1,)](words.contiguous(), out, n, block=triton.next_power_of_2(n))
    return out
