"""Secret states for the global random generators: nobody can repeat what a model draws while it trains.

Dropout draws a mask for each place in the batch. If the seed were known and one record left, all records behind it
would get other, known masks, and the sum could move by many clips. With secret, independent masks only their
distribution counts, which is the same whoever is in the batch.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch

from shapedp.sampling import Source, source

_HEAD, _WORDS = 24, 624  # of torch's Mersenne twister: bytes before its words, each of them in 64 bits


@contextmanager
def kept_states(devices: Iterable[Any] = ()) -> Iterator[None]:
    """Afterwards all global generators are as before: torch's (on the CPU and these devices), NumPy's and Python's."""
    kept = random.getstate(), np.random.get_state()  # noqa: NPY002 (a model may draw from it)
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002


@contextmanager
def secret_states(bits: Source, devices: Iterable[Any] = ()) -> Iterator[None]:
    """Fresh secret states for the global generators of torch, NumPy and Python, which are put back afterwards."""
    with kept_states(devices):
        reseed(bits)
        for device in devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(int(bits.words(1)[0] >> np.uint64(1)))
        yield


def reseed(bits: Source) -> None:
    """Fresh states for the global generators of torch on the CPU, NumPy and Python."""
    state = _template().clone()
    words = bits.words(_WORDS // 2).view(np.uint32)
    state.numpy()[_HEAD : _HEAD + 8 * _WORDS].view(np.uint64)[:] = words  # a seed would have 32 bits: few enough to try
    torch.set_rng_state(state)
    random.seed(bits.words(4).tobytes())
    np.random.seed(bits.words(4).view(np.uint32))  # noqa: NPY002


@cache
def _template() -> torch.Tensor:
    """The state of a fresh generator; raises where its words are not where they are known to be."""
    state = torch.Generator().manual_seed(1).get_state()
    expected = np.random.RandomState(1).get_state(legacy=False)["state"]["key"]  # the same twister
    found = state.numpy()[_HEAD : _HEAD + 8 * _WORDS].view(np.uint64)
    if not np.array_equal(found, expected):
        raise RuntimeError("this version of torch keeps its random state in another form: use one that is supported")
    return state


def seed_all(seed: int) -> None:
    """Known states for the global generators of torch on the CPU, NumPy and Python."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def secret_worker(given: Any, secure: bool, worker: int) -> None:
    """A worker's `worker_init_fn`: the user's, then secret states of its own."""
    if given is not None:
        given(worker)
    if secure:
        reseed(source())


def side_stream(bits: Source, rng: np.random.Generator | None) -> Source:
    """Where secret states come from: the secure source, or in a simulation a stream beside that of the noise."""
    if rng is None:
        return bits
    try:
        return source(rng.spawn(1)[0])
    except TypeError:  # a generator that was made without a seed sequence
        return source(np.random.default_rng(int(bits.words(1)[0])))
