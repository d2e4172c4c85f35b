"""Small files in the official formats."""

import io
import struct

import numpy as np
from numpy.typing import NDArray

IDX_CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx_bytes(array: NDArray[np.generic]) -> bytes:
    kind = array.dtype.str[1:]
    header = struct.pack(">HBB", 0, IDX_CODES[kind], array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(f">{kind}").tobytes()


def npz_bytes(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def svmlight_bytes(x: NDArray[np.float64], y: NDArray[np.int64]) -> bytes:
    lines = []
    for row, label in zip(x, y, strict=True):
        lines.append(f"{label:+d} " + " ".join(f"{k + 1}:{float(row[k])!r}" for k in np.flatnonzero(row)))
    return ("\n".join(lines) + "\n").encode()
