"""The key stream: fresh bits for every call, in every process and thread."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.sampling.helpers import band

from shapedp.sampling import SecureSource, SimulatedSource, source, sources

SIZES = (1, 7, 512, 513, 1 << 16, (1 << 16) + 1, 200_000)  # both sides of each internal threshold


@pytest.fixture(params=["cipher", "system"])
def secure(request, monkeypatch):
    sources._cipher.cache_clear()
    if request.param == "system":
        monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    else:
        pytest.importorskip("cryptography")
    yield SecureSource()
    sources._cipher.cache_clear()


@pytest.mark.parametrize("n", SIZES)
def test_words_are_distinct_and_writable(secure, n):
    words = np.concatenate([secure.words(n), secure.words(n)])
    assert words.dtype == np.uint64
    assert words.size == 2 * n
    assert np.unique(words).size == words.size  # a collision has probability below 1e-8
    words[0] = 0


def test_fallback_is_used(secure, request):
    assert (sources._cipher() is None) == ("system" in request.node.name)


def test_each_bit_is_fair(secure):
    """False-alarm rate 1e-6 for each of 64 bits."""
    words = secure.words(200_000)
    for bit in range(64):
        share = float(((words >> np.uint64(bit)) & np.uint64(1)).mean())
        assert abs(share - 0.5) < band(words.size)


@pytest.mark.parametrize("n", SIZES[-3:])
def test_threads_never_collide(secure, n):
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: secure.words(n), range(8)))
    assert np.unique(np.concatenate(parts)).size == 8 * n


@pytest.mark.parametrize("n", [64, 100_000])
def test_unpickled_never_collide(secure, n):
    secure.words(n)
    stored = pickle.dumps(secure)
    parts = [pickle.loads(stored).words(n) for _ in range(4)] + [secure.words(n)]
    assert np.unique(np.concatenate(parts)).size == 5 * n


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("n", [64, 100_000])
def test_forked_never_collide(secure, n):
    secure.words(n)
    parts = [_from_child(secure, n) for _ in range(3)] + [secure.words(n)]
    assert np.unique(np.concatenate(parts)).size == 4 * n


def _from_child(secure, n):
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn about threads
        child = os.fork()
    if child == 0:
        try:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(secure.words(n).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        words = np.frombuffer(pipe.read(), dtype=np.uint64)
    os.waitpid(child, 0)
    assert words.size == n
    return words


def test_bytes(secure):
    assert [len(secure.bytes(n)) for n in (0, 1, 8, 9, 5000)] == [0, 1, 8, 9, 5000]
    assert secure.bytes(32) != secure.bytes(32)


def test_simulated_source_repeats_its_seed():
    first, second = (SimulatedSource(np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.words(1000), second.words(1000))
    assert first.bytes(9) == second.bytes(9)
    assert not first.secure
    assert SecureSource().secure


def test_secure_unless_asked():
    assert isinstance(source(None), SecureSource)
    assert isinstance(source(), SecureSource)
    assert isinstance(source(np.random.default_rng(0)), SimulatedSource)


@pytest.mark.parametrize("rng", [0, 42, True, "seed", np.random.RandomState(0), np.random.PCG64(0), np.random])
def test_other_generators_are_refused(rng):
    with pytest.raises(TypeError, match="rng must be None"):
        source(rng)


def test_bad_counts():
    with pytest.raises(ValueError, match="n must be"):
        SecureSource().words(-1)
    with pytest.raises(TypeError):
        SecureSource().words(1.5)
    with pytest.raises(TypeError, match="generator must be"):
        SimulatedSource(7)
