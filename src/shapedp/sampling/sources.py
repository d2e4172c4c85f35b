"""Where random bits come from: the operating system by default, a numpy Generator for simulation."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_CHUNK = 1 << 19  # bytes expanded from one key
_SMALL = 1 << 12  # bytes below which the operating system answers directly
_NOUGHT = bytes(_CHUNK)


class Source(Protocol):
    """A supply of independent uniform bits.

    Guarantee: no two calls, in any process or thread, share bits when `secure` is true.

    Example:
        >>> SecureSource().secure
        True
    """

    @property
    def secure(self) -> bool:
        """Whether the bits may protect a release."""

    def words(self, n: int) -> Words:
        """Return n independent uniform 64-bit words."""


@dataclass(frozen=True)
class SecureSource:
    """Bits of the operating system, expanded by AES-256 in counter mode where `cryptography` is installed.

    Guarantee: no state. Each chunk of at most 2^19 bytes has a fresh 256-bit key and 128-bit nonce from
    os.urandom, so fork, threads and pickling cannot repeat a stream; without `cryptography`, and for
    small requests, every bit comes from os.urandom.
    Reference: NIST SP 800-38A (2001), section 6.5 (counter mode).

    Example:
        >>> SecureSource().words(3).dtype
        dtype('uint64')
    """

    @property
    def secure(self) -> bool:
        """Always true."""
        return True

    def words(self, n: int) -> Words:
        """Return n independent uniform 64-bit words.

        Guarantee: computationally indistinguishable from uniform, independent of every other call.
        """
        size = 8 * _count(n)
        cipher = _cipher() if size > _SMALL else None
        if cipher is None:
            return np.frombuffer(bytearray(os.urandom(size)), dtype=np.uint64)
        buffer = np.empty(size + 16, dtype=np.uint8)  # update_into wants a spare block
        view = buffer.data
        for start in range(0, size, _CHUNK):
            stop = min(start + _CHUNK, size)
            zeros = _NOUGHT if stop - start == _CHUNK else bytes(stop - start)
            cipher(os.urandom(32), os.urandom(16)).update_into(zeros, view[start : stop + 15])
        return buffer[:size].view(np.uint64)

    def bytes(self, n: int) -> bytes:
        """Return n independent uniform bytes.

        Guarantee: that of `words`.
        """
        return self.words(-(-_count(n) // 8)).tobytes()[:n]


@dataclass(frozen=True)
class SimulatedSource:
    """Bits of a numpy Generator, for tests and simulation.

    Guarantee: reproducible from the generator's seed; protects nothing (`secure` is false).

    Parameters: `generator`, a numpy.random.Generator.

    Example:
        >>> SimulatedSource(np.random.default_rng(0)).secure
        False
    """

    generator: np.random.Generator

    def __post_init__(self) -> None:
        if not isinstance(self.generator, np.random.Generator):
            raise TypeError(f"generator must be a numpy.random.Generator, got {type(self.generator).__name__}")

    @property
    def secure(self) -> bool:
        """Always false."""
        return False

    def words(self, n: int) -> Words:
        """Return n uniform 64-bit words of the generator."""
        return self.generator.integers(0, 2**64 - 1, size=_count(n), dtype=np.uint64, endpoint=True)

    def bytes(self, n: int) -> bytes:
        """Return n uniform bytes of the generator."""
        return self.words(-(-_count(n) // 8)).tobytes()[:n]


def source(rng: np.random.Generator | None = None) -> Source:
    """Return the secure source, or a simulated one over `rng`.

    Guarantee: secure unless a numpy Generator is passed; seeds and legacy generators are refused.

    Parameters: `rng`, None for secure randomness.
    Returns: the source.

    Example:
        >>> source().secure, source(np.random.default_rng(0)).secure
        (True, False)
    """
    if rng is None:
        return SecureSource()
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be None (secure randomness) or a numpy.random.Generator (simulation only), "
            f"got {type(rng).__name__}; for a simulation pass numpy.random.default_rng(seed)"
        )
    return SimulatedSource(rng)


def _count(n: int) -> int:
    size = index(n)
    if size < 0:
        raise ValueError(f"n must be an integer >= 0, got {n!r}")
    return size


@cache
def _cipher() -> Any:
    """Return (key, nonce) -> AES-256-CTR encryptor, or None where `cryptography` is missing."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        return None
    return lambda key, nonce: Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor()
