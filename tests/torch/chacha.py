"""ChaCha in numpy, as RFC 8439 defines it (with a 32-bit counter and a nonce of zeros by default)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)


def words(key: Any, counters: Any, rounds: int, nonce: Sequence[int] = (0, 0, 0)) -> list[NDArray[np.uint32]]:
    """The 16 words of each block."""
    count = np.asarray(counters, dtype=np.uint32)
    zero = np.zeros_like(count)
    start = [zero + np.uint32(v) for v in (*CONSTANTS, *key)] + [count] + [zero + np.uint32(v) for v in nonce]
    s = [v.copy() for v in start]

    def rotated(x: Any, left: int) -> Any:
        return (x << np.uint32(left)) | (x >> np.uint32(32 - left))

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for left, right in ((16, 12), (8, 7)):
            s[a] = s[a] + s[b]
            s[d] = rotated(s[d] ^ s[a], left)
            s[c] = s[c] + s[d]
            s[b] = rotated(s[b] ^ s[c], right)

    for _ in range(rounds // 2):
        for k in range(4):
            quarter(k, 4 + k, 8 + k, 12 + k)
        for k in range(4):
            quarter(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
    return [a + b for a, b in zip(s, start, strict=True)]
