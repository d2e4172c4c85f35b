# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-not-found, unused-ignore"
"""Triton kernels: Gaussian noise from a ChaCha stream, and per-record gradients of convolutions and group norms.

Imported only where a CUDA device and Triton are present.
"""

from __future__ import annotations

import triton
import triton.language as tl

BLOCK = 128
WORDS = 16  # of one ChaCha block


@triton.jit
def _rotated(x, left: tl.constexpr):
    return (x << left) | (x >> (32 - left))


@triton.jit
def _quarter(a, b, c, d):
    a = a + b
    d = _rotated(d ^ a, 16)
    c = c + d
    b = _rotated(b ^ c, 12)
    a = a + b
    d = _rotated(d ^ a, 8)
    c = c + d
    b = _rotated(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _word(key, k: tl.constexpr, like):
    return tl.load(key + k).to(tl.uint32, bitcast=True) + like * 0


@triton.jit
def _ptx(x, instruction: tl.constexpr):
    """One PTX instruction on each float32."""
    return tl.inline_asm_elementwise(instruction + " $0, $1;", "=f,f", [x], tl.float32, True, 1)


@triton.jit
def _nearest(x):
    return _ptx(x, "cvt.rni.f32.f32")


@triton.jit
def _normals(first, second, high, low):
    """Box and Muller: two standard normals.

    The radius comes from the 96 bits of first, high and low, the angle from the upper 24 bits of second.
    """
    u = (low.to(tl.float32) + 0.5) * 1.262177448353619e-29  # 2^-96
    u += high.to(tl.float32) * 5.421010862427522e-20  # 2^-64
    u += first.to(tl.float32) * 2.3283064365386963e-10  # 2^-32
    square = tl.maximum(_ptx(u, "lg2.approx.ftz.f32") * -1.3862943611198906, 2.9802322387695312e-08)  # at least 2^-25
    radius = _ptx(square, "sqrt.approx.ftz.f32")
    angle = ((second.to(tl.int32, bitcast=True) >> 8).to(tl.float32) + 0.5) * 3.7450702829238413e-07  # pi 2^-23
    return radius * _ptx(angle, "cos.approx.ftz.f32"), radius * _ptx(angle, "sin.approx.ftz.f32")


@triton.jit
def _last_bytes(a, b, c, d):
    """The lower bytes of four words, which angles leave."""
    return (a << 24) | ((b & 255) << 16) | ((c & 255) << 8) | (d & 255)


@triton.jit
def _put(
    x, out, scales, at, n, normal, sigma, grid, per,
    vector: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """out = grid (round(x/grid) + round(sigma normal/grid)): the sum of two whole numbers, rounded once."""
    inside = at < n
    value = tl.load(x + at, mask=inside, other=0.0)
    if vector:
        sigma = tl.load(scales + at, mask=inside, other=1.0)
        exponent = (sigma.to(tl.int32, bitcast=True) & 0x7F800000) - (23 << 23)
        grid = exponent.to(tl.float32, bitcast=True)
        per = ((254 << 23) - exponent).to(tl.float32, bitcast=True)
    noise = _nearest(normal * (sigma * per))
    if wide:
        whole = tl.floor(value * per + 0.5) + noise.to(tl.float64)
        tl.store(out + at, (whole * grid).to(tl.float32), mask=inside)
    else:
        tl.store(out + at, (_nearest(value * per) + noise) * grid, mask=inside)


@triton.jit
def _pair(
    x, out, scales, at, n, first, second, high, low, sigma, grid, per,
    vector: tl.constexpr, wide: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Two words become two values with noise, one block apart."""
    a, b = _normals(first, second, high, low)
    _put(x, out, scales, at, n, a, sigma, grid, per, vector, wide)
    _put(x, out, scales, at + block, n, b, sigma, grid, per, vector, wide)


@triton.jit
def noise_kernel(
    x, out, scales, key, n, starts, ends, sigma, grid, per,
    rounds: tl.constexpr, vector: tl.constexpr, table: tl.constexpr, wide: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """x + noise on a grid; lane l of program p turns ChaCha block p * block + l into 16 normals.

    With a `table` each program has its own part of x and standard deviation (`starts`, `ends`, `scales`).

    The bytes that the eight angles of a block leave extend all its eight radii: they matter beyond 6.7 sigma only,
    which two radii of a block reach with probability 2^-59.
    """
    pid = tl.program_id(0)
    lane = tl.arange(0, block)
    counter = (pid * block + lane).to(tl.uint32)
    nought = counter * 0
    s0, s1, s2, s3 = nought + 0x61707865, nought + 0x3320646E, nought + 0x79622D32, nought + 0x6B206574
    s4, s5, s6, s7 = _word(key, 0, nought), _word(key, 1, nought), _word(key, 2, nought), _word(key, 3, nought)
    s8, s9, s10, s11 = _word(key, 4, nought), _word(key, 5, nought), _word(key, 6, nought), _word(key, 7, nought)
    s12, s13, s14, s15 = counter, nought, nought, nought
    for _ in tl.static_range(rounds // 2):
        s0, s4, s8, s12 = _quarter(s0, s4, s8, s12)
        s1, s5, s9, s13 = _quarter(s1, s5, s9, s13)
        s2, s6, s10, s14 = _quarter(s2, s6, s10, s14)
        s3, s7, s11, s15 = _quarter(s3, s7, s11, s15)
        s0, s5, s10, s15 = _quarter(s0, s5, s10, s15)
        s1, s6, s11, s12 = _quarter(s1, s6, s11, s12)
        s2, s7, s8, s13 = _quarter(s2, s7, s8, s13)
        s3, s4, s9, s14 = _quarter(s3, s4, s9, s14)
    s0, s1, s2, s3 = s0 + 0x61707865, s1 + 0x3320646E, s2 + 0x79622D32, s3 + 0x6B206574
    s4, s5 = s4 + _word(key, 0, nought), s5 + _word(key, 1, nought)
    s6, s7 = s6 + _word(key, 2, nought), s7 + _word(key, 3, nought)
    s8, s9 = s8 + _word(key, 4, nought), s9 + _word(key, 5, nought)
    s10, s11 = s10 + _word(key, 6, nought), s11 + _word(key, 7, nought)
    s12 = s12 + counter
    high, low = _last_bytes(s1, s3, s5, s7), _last_bytes(s9, s11, s13, s15)
    at = pid.to(tl.int64) * (block * 16) + lane
    if table:
        at = tl.load(starts + pid) + lane
        n = tl.load(ends + pid)
        sigma = tl.load(scales + pid)
        exponent = (sigma.to(tl.int32, bitcast=True) & 0x7F800000) - (23 << 23)
        grid = exponent.to(tl.float32, bitcast=True)
        per = ((254 << 23) - exponent).to(tl.float32, bitcast=True)
    _pair(x, out, scales, at, n, s0, s1, high, low, sigma, grid, per, vector, wide, block)
    _pair(x, out, scales, at + 2 * block, n, s2, s3, high, low, sigma, grid, per, vector, wide, block)
    _pair(x, out, scales, at + 4 * block, n, s4, s5, high, low, sigma, grid, per, vector, wide, block)
    _pair(x, out, scales, at + 6 * block, n, s6, s7, high, low, sigma, grid, per, vector, wide, block)
    _pair(x, out, scales, at + 8 * block, n, s8, s9, high, low, sigma, grid, per, vector, wide, block)
    _pair(x, out, scales, at + 10 * block, n, s10, s11, high, low, sigma, grid, per, vector, wide, block)
    _pair(x, out, scales, at + 12 * block, n, s12, s13, high, low, sigma, grid, per, vector, wide, block)
    _pair(x, out, scales, at + 14 * block, n, s14, s15, high, low, sigma, grid, per, vector, wide, block)


@triton.jit
def conv_kernel(
    x, g, out, channels: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    outputs: tl.constexpr, out_height: tl.constexpr, out_width: tl.constexpr,
    kh: tl.constexpr, kw: tl.constexpr, sh: tl.constexpr, sw: tl.constexpr, ph: tl.constexpr, pw: tl.constexpr,
    dh: tl.constexpr, dw: tl.constexpr, block_o: tl.constexpr, block_c: tl.constexpr, block_p: tl.constexpr,
    precision: tl.constexpr,
):  # fmt: skip
    """Rows of a convolution's weight gradient: g (outputs x positions) times patches of x, per record."""
    record = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * block_c + tl.arange(0, block_c)
    rows = tl.program_id(2) * block_o + tl.arange(0, block_o)
    total: tl.constexpr = channels * kh * kw
    positions: tl.constexpr = out_height * out_width
    channel, tap = columns // (kh * kw), columns % (kh * kw)
    down, right = tap // kw * dh - ph, tap % kw * dw - pw
    x += record * channels * height * width
    g += record * outputs * positions
    acc = tl.zeros((block_o, block_c), dtype=tl.float32)
    for start in range(0, positions, block_p):
        p = start + tl.arange(0, block_p)
        y, z = p // out_width * sh, p % out_width * sw
        grads = tl.load(
            g + rows[:, None] * positions + p[None, :],
            mask=(rows[:, None] < outputs) & (p[None, :] < positions),
            other=0.0,
        ).to(tl.float32)
        iy, ix = y[None, :] + down[:, None], z[None, :] + right[:, None]
        inside = (iy >= 0) & (iy < height) & (ix >= 0) & (ix < width)
        patches = tl.load(
            x + channel[:, None] * (height * width) + iy * width + ix,
            mask=inside & (p[None, :] < positions) & (columns[:, None] < total),
            other=0.0,
        ).to(tl.float32)
        acc = tl.dot(grads, tl.trans(patches), acc, input_precision=precision)
    place = record * outputs * total + rows[:, None] * total + columns[None, :]
    tl.store(out + place, acc, mask=(rows[:, None] < outputs) & (columns[None, :] < total))


@triton.jit
def norm_kernel(
    x, g, scale, shift, channels: tl.constexpr, per_group: tl.constexpr, positions: tl.constexpr,
    eps: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Sums over positions of g and of g times the group-normalised x; one program per record and group."""
    record, group = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first = record * channels + group * per_group
    size: tl.constexpr = per_group * positions
    x += first * positions
    g += first * positions
    at = tl.arange(0, block)
    total = tl.zeros((block,), dtype=tl.float32)
    for start in range(0, size, block):
        total += tl.load(x + start + at, mask=start + at < size, other=0.0).to(tl.float32)
    mean = tl.sum(total) / size
    total = tl.zeros((block,), dtype=tl.float32)
    for start in range(0, size, block):
        value = tl.load(x + start + at, mask=start + at < size, other=0.0).to(tl.float32)
        value = tl.where(start + at < size, value - mean, 0.0)
        total += value * value
    inverse = 1 / tl.sqrt(tl.sum(total) / size + eps)
    for channel in range(0, per_group):
        products = tl.zeros((block,), dtype=tl.float32)
        plain = tl.zeros((block,), dtype=tl.float32)
        for start in range(0, positions, block):
            inside = start + at < positions
            place = channel * positions + start + at
            grad = tl.load(g + place, mask=inside, other=0.0).to(tl.float32)
            value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
            products += grad * (value - mean) * inverse
            plain += grad
        tl.store(scale + first + channel, tl.sum(products))
        tl.store(shift + first + channel, tl.sum(plain))
