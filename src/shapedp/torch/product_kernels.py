# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-not-found, unused-ignore"
"""Triton kernels: norms and weighted sums of the gradients of single records, none of which is laid out.

A record's gradient of a linear layer is G = L^T R over its positions, in float32 on the matrix units. `squares_kernel`
and `sums_kernel` compute the same tiles of G by the same instructions from the record's factors alone, so that what
is added is, to the last bit, what was measured.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _factor(base, plane, t, positions, at, stride):
    """Positions t of the columns `at` of one factor; those behind its width are zeros."""
    inside = (t[:, None] < positions) & (at[None, :] < stride)
    return tl.load(base + plane + t[:, None] * stride + at[None, :], mask=inside, other=0.0)


@triton.jit
def _product(
    acc, left, right, t, positions, rows, left_stride, left_plane, columns, right_stride, right_plane,
    pieces: tl.constexpr,
):  # fmt: skip
    """acc + L^T R over some positions; two pieces a factor leave out the product of the small ones."""
    l0 = tl.trans(_factor(left, 0, t, positions, rows, left_stride))
    r0 = _factor(right, 0, t, positions, columns, right_stride)
    if pieces == 2:
        l1 = tl.trans(_factor(left, left_plane, t, positions, rows, left_stride))
        r1 = _factor(right, right_plane, t, positions, columns, right_stride)
        acc = tl.dot(l1, r0, acc)
        acc = tl.dot(l0, r1, acc)
    return tl.dot(l0, r0, acc)


@triton.jit
def squares_kernel(
    left, right, back, squares, out, slots, positions, outs, ins, left_stride, left_plane, right_stride, right_plane,
    pieces: tl.constexpr, scaled: tl.constexpr, store: tl.constexpr,
    block_o: tl.constexpr, block_i: tl.constexpr, block_t: tl.constexpr,
):  # fmt: skip
    """Sums of squares of the tiles of G times back^2, rounded up, one program per tile and record.

    Squares are added in float32, at most 128 at a time, which errs by less than 2^-17 of the sum; each may lose 2^-126
    where it leaves float32's range.

    `store` 1 writes G to `out` and no squares; 2 writes row v of it to row slots[record, v] of `out`, where that is
    not negative.
    """
    pid, record = tl.program_id(0), tl.program_id(1).to(tl.int64)
    across = tl.cdiv(ins, block_i)
    rows = pid // across * block_o + tl.arange(0, block_o)
    columns = pid % across * block_i + tl.arange(0, block_i)
    left += record * positions * left_stride
    right += record * positions * right_stride
    acc = tl.zeros((block_o, block_i), dtype=tl.float32)
    for start in range(0, positions, block_t):
        acc = _product(
            acc, left, right, start + tl.arange(0, block_t), positions, rows, left_stride, left_plane,
            columns, right_stride, right_plane, pieces,
        )  # fmt: skip
    if store != 1:
        total = tl.sum(tl.sum(acc * acc, axis=1).to(tl.float64), axis=0)
        total = total * (1 + 2.0**-17 + 2.0**-32) + block_o * block_i * 2.0**-126
        if scaled:
            by = tl.load(back + record)
            total = total * by * by
        tl.store(squares + record * tl.num_programs(0) + pid, total)
    if store == 1:
        inside = (rows[:, None] < outs) & (columns[None, :] < ins)
        tl.store(out + record * outs * ins + rows[:, None].to(tl.int64) * ins + columns[None, :], acc, mask=inside)
    if store == 2:
        place = tl.load(slots + record * outs + rows, mask=rows < outs, other=-1)
        inside = (place[:, None] >= 0) & (columns[None, :] < ins)
        tl.store(out + (record * positions + place[:, None]) * ins + columns[None, :], acc, mask=inside)


@triton.jit
def sums_kernel(
    left, right, back, weights, out, records, per_split, positions, outs, ins, left_stride, left_plane,
    right_stride, right_plane,
    pieces: tl.constexpr, scaled: tl.constexpr,
    block_o: tl.constexpr, block_i: tl.constexpr, block_t: tl.constexpr,
):  # fmt: skip
    """sum_i w_i back_i G_i over the records of a split, in pairs of float32 whose sum is right to 2^-47; float64.

    Weights lose 2^-22, so that no rounding of theirs or of a product makes a row longer than it may be.

    Each addition leaves its rounding error to the second number of the pair (Knuth's two-sum): products and sums must
    not be fused.
    """
    pid, split = tl.program_id(0), tl.program_id(1)
    across = tl.cdiv(ins, block_i)
    rows = pid // across * block_o + tl.arange(0, block_o)
    columns = pid % across * block_i + tl.arange(0, block_i)
    first = split * per_split
    count = tl.minimum(per_split, records - first)
    steps = tl.cdiv(positions, block_t)
    acc = tl.zeros((block_o, block_i), dtype=tl.float32)
    high = tl.zeros((block_o, block_i), dtype=tl.float32)
    low = tl.zeros((block_o, block_i), dtype=tl.float32)
    for k in range(0, count * steps):
        record = (first + k // steps).to(tl.int64)
        acc = _product(
            acc, left + record * positions * left_stride, right + record * positions * right_stride,
            k % steps * block_t + tl.arange(0, block_t), positions, rows, left_stride, left_plane,
            columns, right_stride, right_plane, pieces,
        )  # fmt: skip
        if k % steps == steps - 1:
            weight = tl.load(weights + record) * (1 - 2.0**-22)
            if scaled:
                weight = weight * tl.load(back + record)
            weight = tl.minimum(weight.to(tl.float32), 3e38)
            row = tl.where(weight == 0.0, 0.0, acc * weight)
            added = high + row
            other = added - high
            low += (high - (added - other)) + (row - other)
            high = added
            acc = tl.zeros((block_o, block_i), dtype=tl.float32)
    inside = (rows[:, None] < outs) & (columns[None, :] < ins)
    place = split.to(tl.int64) * outs * ins + rows[:, None].to(tl.int64) * ins + columns[None, :]
    tl.store(out + place, high.to(tl.float64) + low.to(tl.float64), mask=inside)


@triton.jit
def split_kernel(x, out, factor, width, stride, plane, per_record, pieces: tl.constexpr, block: tl.constexpr):
    """Rows of x times their record's power of two as one or two float16 numbers; columns beyond `width` are zeros.

    No pieces: a copy.
    """
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    value = tl.load(x + row * width + at, mask=at < width, other=0.0)
    if pieces == 0:
        tl.store(out + row * stride + at, value, mask=at < stride)
        return
    value = value.to(tl.float32) * tl.load(factor + row // per_record)
    high = value.to(tl.float16)
    tl.store(out + row * stride + at, high, mask=at < stride)
    if pieces == 2:
        tl.store(out + plane + row * stride + at, (value - high.to(tl.float32)).to(tl.float16), mask=at < stride)


@triton.jit
def row_squares_kernel(x, squares, width, per_program, block: tl.constexpr):
    """Sums of squares of parts of the rows, float64."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first = part * per_program
    total = tl.zeros((block,), dtype=tl.float64)
    for start in range(0, per_program, block):
        at = first + start + tl.arange(0, block)
        value = tl.load(x + row * width + at, mask=at < width, other=0.0).to(tl.float64)
        total += value * value
    tl.store(squares + row * tl.num_programs(1) + part, tl.sum(total, axis=0))


@triton.jit
def row_sums_kernel(x, weights, out, records, width, per_split, block_n: tl.constexpr, block: tl.constexpr):
    """sum_i w_i x_i over the records of a split, float64; a weight of zero takes nothing."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    split = tl.program_id(1)
    first = split * per_split
    total = tl.zeros((block,), dtype=tl.float64)
    for start in range(0, per_split, block_n):
        row = first + start + tl.arange(0, block_n)
        weight = tl.load(weights + row, mask=(row < records) & (start + tl.arange(0, block_n) < per_split), other=0.0)
        inside = (weight[:, None] != 0.0) & (at[None, :] < width)
        value = tl.load(x + row[:, None].to(tl.int64) * width + at[None, :], mask=inside, other=0.0).to(tl.float64)
        total += tl.sum(value * weight[:, None], axis=0)
    tl.store(out + split.to(tl.int64) * width + at, total, mask=at < width)
