"""What a review of selections found: places of private keys, caches of private gaps, deltas too small to calibrate."""

import sys
from itertools import permutations

import numpy as np
import pytest

import shapedp as sdp
from shapedp.mechanisms import Quantiles
from shapedp.mechanisms.selection import recursion


def test_what_is_published_shows_nothing_of_other_keys():
    """A key that one person alone has stands before the others, between them, or is absent: the release is the same."""
    m = sdp.KeySelection.calibrate(keys=1, epsilon=1.0, delta=1e-6, adjacency="add-remove")
    many = {"Ulm": 5000, "Bonn": 900}
    for counts in (many, {"Aal": 0, **many}, {"Bonn": 900, "Chur": 0, "Ulm": 5000}):
        made = m.release(counts)
        assert made.names == ("Bonn", "Ulm")
        assert made.value.tolist() == [0, 1]
    for order in permutations(["a", 7, ("b", 1), None]):
        names = m.release(dict.fromkeys(order, 1000)).names
        assert names == ("a", ("b", 1), 7, None)


def test_series_have_names():
    pd = pytest.importorskip("pandas")
    m = sdp.KeySelection.calibrate(keys=1, epsilon=1.0, delta=1e-6, adjacency="add-remove")
    assert m.release(pd.Series({"x": 0, "z": 5000, "y": 700})).names == ("y", "z")
    assert m.release({}).names == ()
    assert m.release([700, 0, 5000]).names is None


@pytest.mark.parametrize("delta", [1e-300, 5e-324])
def test_the_least_deltas_are_served(delta):
    for times in (1, 3):
        m = sdp.Selection.calibrate(5, epsilon=1.0, delta=delta, sensitivity=1, monotone=True, times=times)
        assert m.rate == (1, times)
        assert m.certificate.verdict == "certified"
    made = Quantiles.calibrate(9, [0.2, 0.5, 0.8], epsilon=1.0, delta=delta, adjacency="add-remove")
    assert made.certificate.verdict == "certified"


def caches():
    """How many entries the caches of the library's functions hold."""
    loaded = [module for name, module in sorted(sys.modules.items()) if name.startswith("shapedp.")]
    held = {f"{m.__name__}.{name}": one for m in loaded for name, one in vars(m).items() if hasattr(one, "cache_info")}
    return {name: one.cache_info().currsize for name, one in held.items()}


def test_nothing_of_the_data_stays_in_a_cache():
    """What a cache keeps of one release makes the next one faster where the data are alike."""
    rng = np.random.default_rng(1)
    chosen = sdp.Selection.calibrate(9, epsilon=1e-3, delta=0.0, sensitivity=1, monotone=True, times=2)
    middle = Quantiles.calibrate(9, [0.2, 0.5, 0.8], epsilon=1e-3, delta=0.0, adjacency="add-remove")
    keys = sdp.KeySelection.calibrate(keys=1, epsilon=1e-1, delta=1e-6, adjacency="add-remove")
    for made in (chosen, middle, keys):
        made.release(np.full(9, 1000))
        before = caches()
        for _ in range(3):
            made.release(rng.integers(0, 1000, 9))
        assert caches() == before


def test_too_many_records_are_refused_without_their_number(monkeypatch):
    m = Quantiles.calibrate(2, [0.5], epsilon=1.0, delta=0.0, adjacency="add-remove")

    def full(counts, source):
        raise MemoryError(f"Unable to allocate an array with shape ({counts.sum()},)")

    monkeypatch.setattr(recursion, "_places", full)
    for counts in ([123456, 1], [10**14, 123456]):
        with pytest.raises(MemoryError, match="per record") as refused:
            m.release(counts)
        assert "12345" not in str(refused.value)
        assert refused.value.__context__ is None


def test_records_are_counted_without_wrapping():
    """2,048 cells of 2^53 records are 2^64 in all, 0 to a 64-bit sum."""
    m = Quantiles.calibrate(2048, [0.5], epsilon=1.0, delta=0.0, adjacency="add-remove")
    with pytest.raises(MemoryError, match="per record"):
        m.release(np.full(2048, 2**53))
