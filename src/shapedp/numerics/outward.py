"""Margins for rounding: the one place that says how much a computed number may be off.

A float64 operation (+, -, *, /, sqrt) errs by a relative 2^-53 at most: `UNIT`. After n of them, on numbers of one
sign, a result errs by less than n UNIT (1 + n UNIT). log, exp, expm1 and log1p of the C library and of numpy err by
less than 4 UNIT (measured against ball arithmetic: docs/special-functions.md). `ROUNDINGS_n` is n UNIT. A value
times `ABOVE_n` is an upper bound where fewer than n roundings went into it, times `BELOW_n` a lower bound; each use
takes a power of two above the roundings it counts. The scan of compositions and the campaign of certificates
(experiments/trust) hold the results against programs that share no code. `WIDE` and `WIDER` count no roundings:
they are margins far above any, where room costs nothing.
"""

from __future__ import annotations

UNIT = 2.0**-53
ROUNDINGS_2 = 2 * UNIT
ROUNDINGS_4 = 4 * UNIT
ROUNDINGS_8 = 8 * UNIT
ROUNDINGS_16 = 16 * UNIT
ROUNDINGS_32 = 32 * UNIT
ROUNDINGS_64 = 64 * UNIT
ROUNDINGS_128 = 128 * UNIT
ROUNDINGS_256 = 256 * UNIT
ROUNDINGS_512 = 512 * UNIT
ROUNDINGS_1024 = 1024 * UNIT
ROUNDINGS_2048 = 2048 * UNIT
ROUNDINGS_8192 = 8192 * UNIT
WIDE = 2.0**-30
WIDER = 2.0**-20
ABOVE_2 = 1 + ROUNDINGS_2
ABOVE_8 = 1 + ROUNDINGS_8
ABOVE_16 = 1 + ROUNDINGS_16
ABOVE_32 = 1 + ROUNDINGS_32
ABOVE_128 = 1 + ROUNDINGS_128
ABOVE_256 = 1 + ROUNDINGS_256
ABOVE_512 = 1 + ROUNDINGS_512
ABOVE_8192 = 1 + ROUNDINGS_8192
ABOVE_WIDE = 1 + WIDE
ABOVE_WIDER = 1 + WIDER
ABOVE_GRID = 1 + 2.0**-26  # entries on a grid of 2^-30 of their bounds
BELOW_1 = 1 - UNIT
BELOW_8 = 1 - ROUNDINGS_8
BELOW_16 = 1 - ROUNDINGS_16
BELOW_32 = 1 - ROUNDINGS_32
BELOW_128 = 1 - ROUNDINGS_128
BELOW_256 = 1 - ROUNDINGS_256
BELOW_512 = 1 - ROUNDINGS_512
BELOW_8192 = 1 - ROUNDINGS_8192
BELOW_WIDE = 1 - WIDE
BELOW_WIDER = 1 - WIDER
